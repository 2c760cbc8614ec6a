"""Serving whose prompts and answers are computed on devices of their own."""

from typing import Literal, NotRequired

from pydantic import MISSING
from typing_extensions import TypedDict

from service.schemas.base import Degree, Integer, QuantityEstimate, Size, StrictModel
from service.schemas.references import AcceleratorReference, LinkReference, ParallelismInput


class DisaggregatedPoolInput(StrictModel):
    """Replicas of one kind: all compute prompts, or all generate."""

    parallelism: ParallelismInput = ParallelismInput()
    """Layout of one replica; `data`, attention ranks that share its experts, defaults to `expert`."""
    replicas: Degree = 1
    """Equal replicas, with devices of their own."""
    accelerator: AcceleratorReference | MISSING = MISSING
    """Defaults to that of the cluster."""
    max_num_seqs: Degree | MISSING = MISSING
    """Most requests of one replica in one iteration. Defaults to that of the engine."""
    max_batched_tokens: Size | MISSING = MISSING
    """Most tokens of one iteration. Defaults to that of the engine."""


class DisaggregationInput(StrictModel):
    """Prefill and decode on replicas of their own; the KV cache of a prompt goes from one to the other."""

    prefill: DisaggregatedPoolInput
    """Replicas that compute prompts."""
    decode: DisaggregatedPoolInput
    """Replicas that generate."""
    transfer_link: LinkReference | MISSING = MISSING
    """What carries the KV cache, for each device; defaults to the cluster's link between nodes, and to that
    inside a node where all replicas stand in one."""
    transfer: Literal["by_layer", "whole"] = "by_layer"
    """Whether the cache of a layer leaves while later layers compute, or all of it behind the last."""


class DisaggregatedPoolEstimate(TypedDict):
    """What one side does."""

    accelerator_count: Integer
    """Devices of all its replicas."""
    most_requests_per_second: QuantityEstimate
    """The rate that all its replicas cannot pass."""
    utilization: float
    """Share of the time in which a replica computes."""
    mean_batch: float
    """Prompts of a pass, or requests that decode at a time, on one replica."""


class KvCacheTransferEstimate(TypedDict):
    """What the KV cache of a prompt takes on its way."""

    bytes_per_request: Integer
    """Over all links."""
    seconds: float
    """From the first byte to the last."""
    exposed_seconds: float
    """What of it, and of handing the request over, a request waits for."""
    most_requests_per_second: NotRequired[float]
    """The rate that the links cannot pass; absent where nothing is sent."""


class DisaggregationEstimate(TypedDict):
    """Both sides of disaggregated serving at the rate that they reach together."""

    prefill: DisaggregatedPoolEstimate
    """Replicas that compute prompts."""
    decode: DisaggregatedPoolEstimate
    """Replicas that generate."""
    transfer: KvCacheTransferEstimate
    """Between them."""
    balanced_prefill_replicas_per_decode_replica: float
    """With as many, neither side waits for the other: what decode ends over what prefill begins, each at its
    most."""
