"""The parts of a throughput answer about a served model."""

from typing import Literal

from service.planning.cases import ServiceLevels
from service.planning.estimates import ForwardPassRun, ServingRun
from service.planning.estimates.advice import Advice as PlannedAdvice
from service.planning.estimates.disaggregated import DisaggregatedServing
from service.planning.estimates.passes import PassServing
from service.planning.estimates.serving import ServingEstimate
from service.planning.estimates.serving_advice import list_serving_advice
from service.planning.inference import IterationTime, Percentiles, ServingTime
from service.planning.operators import TimeBound, TimedPhase
from service.planning.quantity import Quantity, combine, scaled
from service.planning.workload import InferenceWorkload
from service.schemas.answer import to_quantity
from service.schemas.answers import Bottleneck, IterationPartTime, PhaseTime, ThroughputEstimate
from service.schemas.base import EstimateAdvice
from service.schemas.disaggregated import DisaggregatedPoolEstimate, DisaggregationEstimate
from service.schemas.passes import ForwardPassEstimate
from service.schemas.serving_answers import LatencyPercentiles, LoadSaturation, ServiceLevelAttainment


def add_serving(answer: ThroughputEstimate, run: ServingRun, *, explain: bool) -> None:
    """Latencies, rates and where the time of a request goes."""
    serving, case = run.serving, run.case
    if serving is None:
        return
    _add_rates(answer, run, serving)
    if isinstance(serving, ServingTime):
        answer["breakdown"] = [to_phase(phase) for phase in serving.phases]
        longest = max(serving.phases, key=lambda phase: phase.seconds.value)
        answer["bottleneck"] = to_bottleneck(
            longest.bound, _ROOFLINE_ADVICE[longest.bound] if explain else []
        )
        return
    _add_load(answer, serving, case.workload)
    if isinstance(serving, DisaggregatedServing):
        answer["disaggregation"] = _to_disaggregation(serving)
    answer["saturation"] = _to_saturation(serving)
    if case.levels is not None:
        answer["service_level_goodput"] = _to_goodput(serving, case.levels)
    answer["breakdown"] = [_to_phase_with_parts(phase, serving) for phase in serving.phases]
    busy = [phase for phase in serving.phases if phase.bound is not TimeBound.WAITING]
    longest = max(busy, key=lambda phase: phase.seconds.value)
    advice = [to_advice(one) for one in list_serving_advice(serving, case)] if explain else []
    answer["bottleneck"] = to_bottleneck(longest.bound, advice)


def to_advice(advice: PlannedAdvice) -> EstimateAdvice:
    """A change worth trying."""
    answer: EstimateAdvice = {"code": advice.code, "detail": advice.detail}
    if advice.gain_share is not None:
        answer["gain_share"] = advice.gain_share
    return answer


def add_passes(answer: ThroughputEstimate, run: ForwardPassRun) -> None:
    """Latency and rate of requests that are passes, and where their time goes."""
    passing = run.passing
    if passing is None:
        return
    batched = passing.batched
    answer["requests_per_second"] = to_quantity(passing.requests_per_second)
    request = passing.request_seconds
    if request is None:
        run.notes.add_gap("/request_seconds", "SATURATED", "the line of requests grows without end")
    else:
        answer["request_seconds"] = to_quantity(request)
    by_request = passing.request_percentiles
    if by_request is not None:
        answer["request_seconds_percentiles"] = _to_percentiles(by_request)
        answer["mean_queue"] = to_quantity(passing.to_time(batched.waiting))
    low, busy = passing.to_time(1.0).low, batched.utilization
    answer["utilization"] = to_quantity(Quantity(busy, busy * low, min(1.0, busy / low), passing.basis))
    for name in ("time_to_first_token_seconds", "time_per_output_token_seconds", "output_tokens_per_second"):
        run.notes.add_gap(f"/{name}", "NOT_APPLICABLE", "a request generates no tokens")
    answer["passes"] = _to_passes(passing)
    answer["saturation"] = {
        "saturated": batched.saturated,
        "most_requests_per_second": to_quantity(passing.most_requests_per_second),
        "knee_concurrency": max(
            1.0, batched.most_requests_per_second * passing.replicas * passing.alone_seconds
        ),
        "limit": "concurrency" if passing.arriving is None else "rate" if batched.saturated else "arrivals",
    }
    answer["breakdown"] = [to_phase(phase) for phase in passing.phases]
    busy_phases = [phase for phase in passing.phases if phase.bound is not TimeBound.WAITING]
    longest = max(busy_phases, key=lambda phase: phase.seconds.value)
    answer["bottleneck"] = to_bottleneck(longest.bound, _PASS_ADVICE[longest.bound])


def _to_passes(passing: PassServing) -> ForwardPassEstimate:
    """The models of a request, and how they are batched."""
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
        "samples_per_second": to_quantity(scaled(passing.requests_per_second, passing.requested.samples)),
        "batch": passing.batched.batch,
        "pass_seconds": to_quantity(passing.to_time(passing.batched.pass_seconds * passing.pipeline)),
    }


def _to_disaggregation(serving: DisaggregatedServing) -> DisaggregationEstimate:
    """Both sides, and what is between them."""
    sides, transfer = serving.sides, serving.transfer

    def to_pool(devices: int, most: float, utilization: float, batch: float) -> DisaggregatedPoolEstimate:
        rate: Quantity = serving.spreads.rate.around(most, serving.basis)
        return {
            "accelerator_count": devices,
            "most_requests_per_second": to_quantity(rate),
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


def _add_rates(answer: ThroughputEstimate, run: ServingRun, serving: ServingEstimate | ServingTime) -> None:
    requests, devices = serving.requests_per_second, float(run.case.cluster.accelerator_count)
    answer["requests_per_second"] = to_quantity(requests)
    answer["time_to_first_token_seconds"] = to_quantity(serving.time_to_first_token_seconds)
    answer["request_seconds"] = to_quantity(serving.request_seconds)
    outputs = run.case.workload.output_tokens
    answer["total_tokens_per_second"] = to_quantity(scaled(requests, run.case.prompt_tokens + outputs))
    each = serving.time_per_output_token_seconds
    if each is not None:
        answer["time_per_output_token_seconds"] = to_quantity(each)
    if outputs:
        answer["output_tokens_per_second"] = to_quantity(scaled(requests, outputs))
        answer["output_tokens_per_second_per_device"] = to_quantity(scaled(requests, outputs / devices))
    if outputs and each is None:
        run.notes.add_gap("/time_per_output_token_seconds", "NOT_APPLICABLE", "no request has a second token")
    elif not outputs:
        for name in ("time_per_output_token_seconds", "output_tokens_per_second"):
            run.notes.add_gap(f"/{name}", "NOT_APPLICABLE", "the model generates no tokens")


def _add_load(answer: ThroughputEstimate, serving: ServingEstimate, workload: InferenceWorkload) -> None:
    served, basis = serving.served, serving.basis
    slower, spreads = serving.request_seconds, serving.spreads
    around = (slower.low / slower.value, slower.high / slower.value)
    answer["time_to_first_token_seconds_percentiles"] = _to_percentiles(
        served.time_to_first_token_seconds, spreads.first_token.middle
    )
    answer["request_seconds_percentiles"] = _to_percentiles(
        served.request_seconds, slower.value / served.request_seconds.mean
    )
    if served.time_per_output_token_seconds is not None:
        each = _to_percentiles(served.time_per_output_token_seconds, spreads.output_token.middle)
        answer["time_per_output_token_seconds_percentiles"] = each
    busy, held = served.utilization, served.decoding
    fixed = serving.load.concurrency is not None
    low, high = (1.0, 1.0) if fixed else around
    answer["utilization"] = to_quantity(Quantity(busy, busy * low, min(1.0, max(busy, busy * high)), basis))
    if workload.output_tokens:
        answer["mean_batch"] = to_quantity(Quantity(held, held * low, held * high, basis))
    waiting = served.waiting
    answer["mean_queue"] = to_quantity(Quantity(waiting, waiting * low, waiting * high, basis))
    lost = served.preemptions_per_request
    answer["preemptions_per_request"] = to_quantity(Quantity(lost, lost, lost, basis))


def _to_percentiles(seconds: Percentiles, factor: float = 1.0) -> LatencyPercentiles:
    return {"p50": seconds.p50 * factor, "p95": seconds.p95 * factor, "p99": seconds.p99 * factor}


def _to_saturation(serving: ServingEstimate) -> LoadSaturation:
    answer: LoadSaturation = {
        "saturated": serving.served.saturated,
        "most_requests_per_second": to_quantity(serving.most_requests_per_second),
        "limit": serving.limit,  # type: ignore[typeddict-item]
    }
    if serving.served.knee_requests is not None:
        answer["knee_concurrency"] = serving.served.knee_requests * serving.replicas
    return answer


def _to_goodput(serving: ServingEstimate, levels: ServiceLevels) -> ServiceLevelAttainment:
    share = serving.estimate_goodput(levels.limits)
    return {
        "share": to_quantity(share),
        "requests_per_second": to_quantity(combine(lambda s, r: s * r, share, serving.requests_per_second)),
        "attained": share.value >= levels.share,
    }


def to_phase(phase: TimedPhase) -> PhaseTime:
    """A phase of a step or of a request."""
    return {
        "phase": phase.name,  # type: ignore[typeddict-item]
        "seconds": to_quantity(phase.seconds),
        "bound": phase.bound.value,
    }


_PARTS = ("matrices", "experts", "attention", "other", "collectives", "launch", "host")


def _to_phase_with_parts(phase: TimedPhase, serving: ServingEstimate) -> PhaseTime:
    answer = to_phase(phase)
    if phase.bound is TimeBound.WAITING:
        return answer
    iteration = serving.served.iteration if phase.name == "decode" else serving.prefill_iteration
    answer["parts"] = _to_parts(iteration, phase.seconds.value)
    return answer


def _to_parts(iteration: IterationTime, seconds: float) -> list[IterationPartTime]:
    """The time of a phase by what its iterations spend it on."""
    whole = iteration.seconds
    return [
        {"part": name, "seconds": seconds * part / whole}  # type: ignore[typeddict-item]
        for name, part in zip(_PARTS, iteration, strict=False)
        if part
    ]


_AXES: dict[TimeBound, Literal["algorithm", "machine"]] = {
    TimeBound.COMPUTE: "algorithm",
    TimeBound.MEMORY: "machine",
    TimeBound.COMMUNICATION: "machine",
    TimeBound.WAITING: "algorithm",
    TimeBound.HOST: "machine",
}


def to_bottleneck(bound: TimeBound, advice: list[EstimateAdvice]) -> Bottleneck:
    """What limits the speed, with changes worth trying."""
    return {"bound": bound.value, "axis": _AXES[bound], "advice": advice}


_PASS_ADVICE: dict[TimeBound, list[EstimateAdvice]] = {
    TimeBound.MEMORY: [
        {"code": "MORE_CONCURRENCY", "detail": "a pass reads the weights once for all of its requests"},
        {"code": "FUSED_KERNELS", "detail": "an engine that joins operators moves activations less often"},
    ],
    TimeBound.COMPUTE: [
        {"code": "NARROWER_COMPUTE", "detail": "a format with a higher dense rate"},
        {"code": "FEWER_EVALUATIONS", "detail": "of a sampled picture: fewer steps, or guidance distilled"},
    ],
    TimeBound.COMMUNICATION: [
        {"code": "LESS_TENSOR_PARALLELISM", "detail": "replicas send nothing to each other"},
    ],
    TimeBound.HOST: [
        {"code": "FEWER_LAUNCHES", "detail": "an engine, a compiler or a graph launches kernels at once"},
        {"code": "MORE_CONCURRENCY", "detail": "larger batches take no more launches"},
    ],
    TimeBound.WAITING: [],
}

_ROOFLINE_ADVICE: dict[TimeBound, list[EstimateAdvice]] = {
    TimeBound.MEMORY: [
        {"code": "MORE_CONCURRENCY", "detail": "a decode step reads the weights once for all requests"},
        {"code": "NARROWER_WEIGHTS", "detail": "fewer bytes per decode step"},
    ],
    TimeBound.COMPUTE: [
        {"code": "MORE_TENSOR_PARALLELISM", "detail": "each device computes a smaller share of a pass"},
        {"code": "NARROWER_COMPUTE", "detail": "a format with a higher dense rate"},
    ],
}
