"""Parts of an answer on a served model: latencies with percentiles, load and saturation."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.schemas.base import QuantityEstimate


class LatencyPercentiles(TypedDict):
    """Percentiles over requests, in seconds. Each has the relative uncertainty of the mean."""

    p50: float
    """Half of the requests take no longer."""
    p95: float
    """95% of the requests take no longer."""
    p99: float
    """99% of the requests take no longer."""


class ServiceLevelAttainment(TypedDict):
    """Requests that meet all service levels."""

    share: QuantityEstimate
    """Share of the requests that meet them."""
    requests_per_second: QuantityEstimate
    """Rate of the requests that meet them, of the whole cluster."""
    attained: bool
    """True if at least the requested percentile of the requests meets them."""


class LoadSaturation(TypedDict):
    """Load of the cluster relative to the load that it can serve."""

    saturated: bool
    """True if the load exceeds what can be served. Queues then grow, and latencies are those after an hour of
    the load."""
    most_requests_per_second: QuantityEstimate
    """Highest rate of the whole cluster, at any load."""
    knee_concurrency: NotRequired[float]
    """Concurrent requests at which the rate over the time of a request is largest (Kleinrock 1979). Beyond it
    latency grows faster than the rate."""
    limit: Literal[
        "concurrency", "arrivals", "cache", "max_num_seqs", "rate", "prefill", "decode", "transfer"
    ]
    """Limit of the rate: the number of requests, the arrivals, the KV cache, the engine's setting, or the
    speed of the devices; in disaggregated serving of one side, or of the links between them."""


class ServingEstimateParts(TypedDict):
    """Members of an answer on a served model."""

    time_to_first_token_seconds: NotRequired[QuantityEstimate]
    """Time from a request to its first token; the mean over requests."""
    time_to_first_token_seconds_percentiles: NotRequired[LatencyPercentiles]
    """Percentiles of the time to first token over requests."""
    time_per_output_token_seconds: NotRequired[QuantityEstimate]
    """Time from one token of a request to the next; the mean."""
    time_per_output_token_seconds_percentiles: NotRequired[LatencyPercentiles]
    """Percentiles over requests of the mean time per output token of each request."""
    request_seconds: NotRequired[QuantityEstimate]
    """Time from a request to its last token; the mean."""
    request_seconds_percentiles: NotRequired[LatencyPercentiles]
    """Percentiles of the time of a request."""
    requests_per_second: NotRequired[QuantityEstimate]
    """Requests that the whole cluster completes."""
    output_tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the whole cluster generates."""
    output_tokens_per_second_per_device: NotRequired[QuantityEstimate]
    """Tokens that each device generates."""
    total_tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens of prompts and answers together that the whole cluster processes."""
    utilization: NotRequired[QuantityEstimate]
    """Share of the time in which a replica computes."""
    mean_batch: NotRequired[QuantityEstimate]
    """Mean number of requests that decode at a time on one replica."""
    mean_queue: NotRequired[QuantityEstimate]
    """Mean number of requests that wait for a place on one replica."""
    preemptions_per_request: NotRequired[QuantityEstimate]
    """Number of times that a request loses its place in the cache and is recomputed."""
    service_level_goodput: NotRequired[ServiceLevelAttainment]
    """Requests that meet the service levels. Present if these are given."""
    saturation: NotRequired[LoadSaturation]
    """Load of the cluster relative to the load that it can serve."""
    power_per_device_watts: NotRequired[QuantityEstimate]
    """Mean power of one device."""
    energy_per_output_token_joules: NotRequired[QuantityEstimate]
    """Energy of all devices over the tokens that they generate."""
