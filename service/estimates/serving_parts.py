"""Parts of a throughput answer about a served model."""

from collections.abc import Iterable
from typing import Final, Literal

from service.planning.estimates import ForwardPassRun, ServingRun
from service.planning.estimates.advice import Advice as PlannedAdvice
from service.planning.estimates.bound_advice import PASS_ADVICE, ROOFLINE_ADVICE
from service.planning.estimates.disaggregated import DisaggregatedServing
from service.planning.estimates.passes import PassServing
from service.planning.estimates.served_rates import (
    PassLoad,
    ServedLoad,
    estimate_pass_load,
    estimate_served_goodput,
    estimate_served_load,
    estimate_served_rates,
)
from service.planning.estimates.serving import ServingEstimate
from service.planning.estimates.serving_advice import list_serving_advice
from service.planning.inference import IterationTime, Percentiles, ServingTime
from service.planning.operators import TimeBound, TimedPhase
from service.schemas.answer import to_quantities, to_quantity
from service.schemas.answers import Bottleneck, IterationPartTime, PhaseTime, ThroughputEstimate
from service.schemas.base import EstimateAdvice
from service.schemas.disaggregated import DisaggregatedPoolEstimate, DisaggregationEstimate
from service.schemas.passes import ForwardPassEstimate
from service.schemas.serving_answers import LatencyPercentiles, LoadSaturation

_PARTS: Final = ("matrices", "experts", "attention", "other", "collectives", "launch", "host")
_AXES: Final[dict[TimeBound, Literal["algorithm", "machine"]]] = {
    TimeBound.COMPUTE: "algorithm",
    TimeBound.MEMORY: "machine",
    TimeBound.COMMUNICATION: "machine",
    TimeBound.WAITING: "algorithm",
    TimeBound.HOST: "machine",
}


def add_serving(answer: ThroughputEstimate, run: ServingRun, *, explain: bool) -> None:
    """Adds the latencies, the rates and the phases of a request."""
    serving, case = run.serving, run.case
    if serving is None:
        return
    answer.update(to_quantities(estimate_served_rates(run, serving)))
    if isinstance(serving, ServingTime):
        answer["breakdown"] = [to_phase(phase) for phase in serving.phases]
        bound = _find_bound(serving.phases)
        answer["bottleneck"] = to_bottleneck(bound, ROOFLINE_ADVICE[bound] if explain else ())
        return
    _add_load(answer, estimate_served_load(serving, case.workload))
    if isinstance(serving, DisaggregatedServing):
        answer["disaggregation"] = _to_disaggregation(serving)
    answer["saturation"] = _to_saturation(serving)
    if case.levels is not None:
        goodput = estimate_served_goodput(serving, case.levels)
        answer["service_level_goodput"] = {
            "share": to_quantity(goodput.share),
            "requests_per_second": to_quantity(goodput.requests_per_second),
            "attained": goodput.is_attained,
        }
    answer["breakdown"] = [_to_phase_with_parts(phase, serving) for phase in serving.phases]
    advice = list_serving_advice(serving, case) if explain else []
    answer["bottleneck"] = to_bottleneck(_find_bound(serving.phases), advice)


def add_passes(answer: ThroughputEstimate, run: ForwardPassRun) -> None:
    """Adds latency and rate of requests that are passes, and the phases of a request."""
    passing = run.passing
    if passing is None:
        return
    load = estimate_pass_load(run, passing)
    answer["requests_per_second"] = to_quantity(passing.requests_per_second)
    if passing.request_seconds is not None:
        answer["request_seconds"] = to_quantity(passing.request_seconds)
    if passing.request_percentiles is not None and load.mean_queue is not None:
        answer["request_seconds_percentiles"] = _to_percentiles(passing.request_percentiles)
        answer["mean_queue"] = to_quantity(load.mean_queue)
    answer["utilization"] = to_quantity(load.utilization)
    answer["passes"] = _to_passes(passing, load)
    answer["saturation"] = {
        "saturated": passing.batched.saturated,
        "most_requests_per_second": to_quantity(passing.most_requests_per_second),
        "knee_concurrency": load.knee_concurrency,
        "limit": load.limit,  # type: ignore[typeddict-item]
    }
    answer["breakdown"] = [to_phase(phase) for phase in passing.phases]
    bound = _find_bound(passing.phases)
    answer["bottleneck"] = to_bottleneck(bound, PASS_ADVICE[bound])


def to_phase(phase: TimedPhase) -> PhaseTime:
    """Maps a phase of a step or of a request."""
    return {
        "phase": phase.name,  # type: ignore[typeddict-item]
        "seconds": to_quantity(phase.seconds),
        "bound": phase.bound.value,
    }


def to_bottleneck(bound: TimeBound, advice: Iterable[PlannedAdvice]) -> Bottleneck:
    """Maps the limit of the speed, with changes worth trying."""
    return {"bound": bound.value, "axis": _AXES[bound], "advice": to_advice(advice)}


def to_advice(advice: Iterable[PlannedAdvice]) -> list[EstimateAdvice]:
    """Maps changes worth trying."""
    return [{name: value for name, value in one._asdict().items() if value is not None} for one in advice]  # type: ignore[misc]


def _find_bound(phases: Iterable[TimedPhase]) -> TimeBound:
    """Returns the bound of the longest phase that does not wait for other requests."""
    busy = [phase for phase in phases if phase.bound is not TimeBound.WAITING]
    return max(busy, key=lambda phase: phase.seconds.value).bound


def _to_passes(passing: PassServing, load: PassLoad) -> ForwardPassEstimate:
    return {
        "models": [
            {
                "phase": time.role.value,  # type: ignore[typeddict-item]
                "evaluations": time.passes,
                "samples": part.samples,
                "flops": time.passes * float(time.work.flops) / passing.batched.batch,
            }
            for time, (part, _) in zip(passing.parts, passing.requested.parts, strict=True)
        ],
        "samples_per_second": to_quantity(load.samples_per_second),
        "batch": passing.batched.batch,
        "pass_seconds": to_quantity(load.pass_seconds),
    }


def _to_disaggregation(serving: DisaggregatedServing) -> DisaggregationEstimate:
    sides, transfer = serving.sides, serving.transfer

    def to_pool(devices: int, most: float, utilization: float, batch: float) -> DisaggregatedPoolEstimate:
        return {
            "accelerator_count": devices,
            "most_requests_per_second": to_quantity(serving.spreads.rate.around(most, serving.basis)),
            "utilization": utilization,
            "mean_batch": batch,
        }

    prefill, decode = serving.devices
    answer: DisaggregationEstimate = {
        "prefill": to_pool(
            prefill, sides.most_prefilled_per_second, sides.prefill_utilization, sides.prefill_batch
        ),
        "decode": to_pool(
            decode, sides.most_decoded_per_second, sides.decode_utilization, sides.decode_batch
        ),
        "transfer": {
            "bytes_per_request": round(transfer.bytes_per_request),
            "seconds": transfer.seconds,
            "exposed_seconds": sides.exposed_seconds,
        },
        "balanced_prefill_replicas_per_decode_replica": sides.balanced_ratio,
    }
    if transfer.seconds:
        answer["transfer"]["most_requests_per_second"] = sides.most_sent_per_second
    return answer


def _add_load(answer: ThroughputEstimate, load: ServedLoad) -> None:
    answer["time_to_first_token_seconds_percentiles"] = _to_percentiles(load.first_token_percentiles)
    answer["request_seconds_percentiles"] = _to_percentiles(load.request_percentiles)
    if load.output_token_percentiles is not None:
        each = _to_percentiles(load.output_token_percentiles)
        answer["time_per_output_token_seconds_percentiles"] = each
    answer["utilization"] = to_quantity(load.utilization)
    if load.mean_batch is not None:
        answer["mean_batch"] = to_quantity(load.mean_batch)
    answer["mean_queue"] = to_quantity(load.mean_queue)
    answer["preemptions_per_request"] = to_quantity(load.preemptions_per_request)


def _to_percentiles(seconds: Percentiles) -> LatencyPercentiles:
    return {"p50": seconds.p50, "p95": seconds.p95, "p99": seconds.p99}


def _to_saturation(serving: ServingEstimate) -> LoadSaturation:
    answer: LoadSaturation = {
        "saturated": serving.served.saturated,
        "most_requests_per_second": to_quantity(serving.most_requests_per_second),
        "limit": serving.limit,  # type: ignore[typeddict-item]
    }
    if serving.served.knee_requests is not None:
        answer["knee_concurrency"] = serving.served.knee_requests * serving.replicas
    return answer


def _to_phase_with_parts(phase: TimedPhase, serving: ServingEstimate) -> PhaseTime:
    answer = to_phase(phase)
    if phase.bound is TimeBound.WAITING:
        return answer
    iteration = serving.served.iteration if phase.name == "decode" else serving.prefill_iteration
    answer["parts"] = _to_parts(iteration, phase.seconds.value)
    return answer


def _to_parts(iteration: IterationTime, seconds: float) -> list[IterationPartTime]:
    """Maps the time of a phase by the parts of its iterations."""
    whole = iteration.seconds
    return [
        {"part": name, "seconds": seconds * part / whole}  # type: ignore[typeddict-item]
        for name, part in zip(_PARTS, iteration, strict=False)
        if part
    ]
