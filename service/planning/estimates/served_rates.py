"""Rates and load of a served model, of tokens or of forward passes."""

from typing import NamedTuple

from service.planning.cases import ServiceLevels
from service.planning.estimates.passes import PassServing
from service.planning.estimates.runs import ForwardPassRun, ServingRun
from service.planning.estimates.serving import ServingEstimate
from service.planning.inference import Percentiles, ServingTime
from service.planning.quantity import Quantity, combine, scaled
from service.planning.workload import InferenceWorkload

_UNGENERATED = ("time_to_first_token_seconds", "time_per_output_token_seconds", "output_tokens_per_second")


class ServedRates(NamedTuple):
    """Rates and latencies of a served model; None for those of tokens that it does not generate."""

    requests_per_second: Quantity
    time_to_first_token_seconds: Quantity
    request_seconds: Quantity
    total_tokens_per_second: Quantity
    """Tokens of prompts and of answers."""
    time_per_output_token_seconds: Quantity | None = None
    output_tokens_per_second: Quantity | None = None
    output_tokens_per_second_per_device: Quantity | None = None


class ServedLoad(NamedTuple):
    """Load of a served model: percentiles of its latencies, and how full its replicas are."""

    first_token_percentiles: Percentiles
    request_percentiles: Percentiles
    output_token_percentiles: Percentiles | None
    utilization: Quantity
    mean_batch: Quantity | None
    """Requests that decode at a time; None for a model that generates no tokens."""
    mean_queue: Quantity
    preemptions_per_request: Quantity


class ServedGoodput(NamedTuple):
    """Requests that keep to the service levels."""

    share: Quantity
    requests_per_second: Quantity
    is_attained: bool
    """True if the share is at least that of the levels."""


class PassLoad(NamedTuple):
    """Load of a server of forward passes."""

    utilization: Quantity
    mean_queue: Quantity | None
    """None where the queue grows without end."""
    knee_concurrency: float
    limit: str
    """Limit of the rate: ``concurrency``, ``rate`` or ``arrivals``."""
    samples_per_second: Quantity
    pass_seconds: Quantity


def estimate_served_rates(run: ServingRun, serving: ServingEstimate | ServingTime) -> ServedRates:
    """Returns the rates of a served model; gaps in the notes of the run for tokens that are not generated."""
    requests, devices = serving.requests_per_second, float(run.case.cluster.accelerator_count)
    outputs, each = run.case.workload.output_tokens, serving.time_per_output_token_seconds
    found = ServedRates(
        requests,
        serving.time_to_first_token_seconds,
        serving.request_seconds,
        scaled(requests, run.case.prompt_tokens + outputs),
        each,
    )
    if outputs:
        found = found._replace(
            output_tokens_per_second=scaled(requests, outputs),
            output_tokens_per_second_per_device=scaled(requests, outputs / devices),
        )
        if each is None:
            pointer = "/time_per_output_token_seconds"
            run.notes.add_gap(pointer, "NOT_APPLICABLE", "no request has a second token")
        return found
    for name in ("time_per_output_token_seconds", "output_tokens_per_second"):
        run.notes.add_gap(f"/{name}", "NOT_APPLICABLE", "the model generates no tokens")
    return found


def estimate_served_load(serving: ServingEstimate, workload: InferenceWorkload) -> ServedLoad:
    """Returns the load of a served model."""
    served, basis = serving.served, serving.basis
    slower, spreads = serving.request_seconds, serving.spreads
    each = served.time_per_output_token_seconds
    is_fixed = serving.load.concurrency is not None
    low, high = (1.0, 1.0) if is_fixed else (slower.low / slower.value, slower.high / slower.value)
    busy, held, waiting = served.utilization, served.decoding, served.waiting
    lost = served.preemptions_per_request
    return ServedLoad(
        _scale_percentiles(served.time_to_first_token_seconds, spreads.first_token.middle),
        _scale_percentiles(served.request_seconds, slower.value / served.request_seconds.mean),
        None if each is None else _scale_percentiles(each, spreads.output_token.middle),
        Quantity(busy, busy * low, min(1.0, max(busy, busy * high)), basis),
        Quantity(held, held * low, held * high, basis) if workload.output_tokens else None,
        Quantity(waiting, waiting * low, waiting * high, basis),
        Quantity(lost, lost, lost, basis),
    )


def _scale_percentiles(seconds: Percentiles, factor: float) -> Percentiles:
    return Percentiles(*(figure * factor for figure in seconds))


def estimate_served_goodput(serving: ServingEstimate, levels: ServiceLevels) -> ServedGoodput:
    """Returns the requests that keep to the service levels."""
    share = serving.estimate_goodput(levels.limits)
    rate = combine(lambda s, r: s * r, share, serving.requests_per_second)
    return ServedGoodput(share, rate, share.value >= levels.share)


def estimate_pass_load(run: ForwardPassRun, passing: PassServing) -> PassLoad:
    """Returns the load of a server of passes; gaps in the notes of the run for figures of tokens."""
    batched = passing.batched
    if passing.request_seconds is None:
        run.notes.add_gap("/request_seconds", "SATURATED", "the line of requests grows without end")
    low, busy = passing.to_time(1.0).low, batched.utilization
    for name in _UNGENERATED:
        run.notes.add_gap(f"/{name}", "NOT_APPLICABLE", "a request generates no tokens")
    knee = batched.most_requests_per_second * passing.replicas * passing.alone_seconds
    return PassLoad(
        Quantity(busy, busy * low, min(1.0, busy / low), passing.basis),
        None if passing.request_percentiles is None else passing.to_time(batched.waiting),
        max(1.0, knee),
        "concurrency" if passing.arriving is None else "rate" if batched.saturated else "arrivals",
        scaled(passing.requests_per_second, passing.requested.samples),
        passing.to_time(batched.pass_seconds * passing.pipeline),
    )
