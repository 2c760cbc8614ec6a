"""Run of a served model."""

from collections.abc import Callable

from service.planning.cases import AssumedShares, ForwardPassCase, InferenceCase, ServingCase
from service.planning.errors import PlanningError
from service.planning.estimates.calibrations import note_case, note_memory
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.estimates.disaggregated import serve_disaggregated
from service.planning.estimates.passes import serve_passes
from service.planning.estimates.runs import ForwardPassRun, ServingRun, describe_unmodelled, warn_too_large
from service.planning.estimates.serving import ServingEstimate, do_nothing, estimate_serving
from service.planning.hardware.curves import Efficiency, build_assumed_efficiency
from service.planning.inference import compute_request_capacity, estimate_serving_time
from service.planning.inference.encoded import build_decoder_profile
from service.planning.memory.capacity import compute_usable_bytes, count_fitting_requests
from service.planning.memory.serving import estimate_inference_memory
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity, assumed, combine, exact, inverted, scaled
from service.planning.workload import Horizon, HorizonUnit, InferenceWorkload

_RATE = "/requests_per_second"
ROOFLINE_CITATION = "operators, collectives and launches of an iteration; "


def run_serving(
    case: ServingCase, notes: AnswerNotes, between: Callable[[], None] = do_nothing
) -> ServingRun:
    """Estimates the run of a model that generates tokens; a figure that is not known is a gap.

    ``between`` is called repeatedly while requests are simulated.
    """
    profile, unknown = case.profile, case.unknown
    run = ServingRun(case, notes, compute_peak(case.cluster, case.workload)[1])
    run = run._replace(duration_seconds=_get_known_duration(case.workload.horizon))
    if not profile.shapes_known:
        notes.add_gap(_RATE, "ARCHITECTURE_REQUIRED", "prefill and decode need the shapes of the model")
    elif unknown is not None:
        notes.add_gap(_RATE, unknown.code, unknown.detail)
    elif kinds := (list_unserved_kinds(profile) if case.assumed is None else profile.unmodelled_kinds):
        notes.add_gap(_RATE, *describe_unmodelled(kinds))
    elif case.cluster.accelerator.bandwidth_bytes_per_second is None:
        notes.add_gap(_RATE, "BANDWIDTH_UNKNOWN", "the memory bandwidth of the accelerator is not known")
    elif case.assumed is not None:
        bandwidth = case.cluster.accelerator.bandwidth_bytes_per_second
        return _run_roofline(run, case.assumed, bandwidth)
    else:
        return _run_iterations(run, between)
    return run


def run_passes(case: ForwardPassCase, notes: AnswerNotes) -> ForwardPassRun:
    """Estimates the run of requests that are forward passes; a figure that is not known is a gap."""
    run = ForwardPassRun(case, notes, compute_peak(case.cluster, case.workload)[1])
    run = run._replace(duration_seconds=_get_known_duration(case.workload.horizon))
    if case.unknown is not None:
        notes.add_gap(_RATE, case.unknown.code, case.unknown.detail)
    if case.parts is None:
        return run
    if case.assumed is not None:
        warn_of_defaulted_bandwidth(case.assumed, notes)
    passing = serve_passes(case, case.parts, notes)
    if passing is None:
        notes.add_gap(_RATE, "BANDWIDTH_UNKNOWN", "the memory bandwidth of the accelerator is not known")
        return run
    if case.assumed is None:
        note_case(case, notes)
    if passing.batched.saturated:
        _warn_of_saturation(notes, passing.most_requests_per_second.value)
    _warn_of_idle_replicas(notes, int(passing.replicas), case.layout.data)
    run = run._replace(passing=passing)
    found = _follow_horizon(case.workload, run.duration_seconds, passing.requests_per_second)
    return run._replace(duration_seconds=found[0], tokens=found[1], requests=found[2])


def _get_known_duration(horizon: Horizon | None) -> Quantity | None:
    is_duration = horizon is not None and horizon.unit is HorizonUnit.DURATION
    return assumed(horizon.amount) if horizon is not None and is_duration else None


def list_unserved_kinds(profile: ModelProfile) -> frozenset[str]:
    """Returns the kinds whose work is not modelled; for a model with an encoder, those of its decoder."""
    if profile.sampled is None:
        return profile.unmodelled_kinds
    inputs = {item.kind for item in profile.sampled.inputs}
    return build_decoder_profile(profile.sampled).unmodelled_kinds - inputs


def warn_of_defaulted_bandwidth(shares: AssumedShares, notes: AnswerNotes) -> None:
    """Warns that the bandwidth is assumed to be used to the same share as the peak rate."""
    if shares.bandwidth_utilization is None:
        notes.warn(
            "BANDWIDTH_UTILIZATION_DEFAULTED",
            "/efficiency/bandwidth_utilization",
            "the bandwidth is used to the same share as the peak rate",
        )


def _run_iterations(run: ServingRun, between: Callable[[], None]) -> ServingRun:
    """Estimates the run from the time of the iterations of its engine."""
    case, notes, pools = run.case, run.notes, run.case.disaggregation
    serving: ServingEstimate | None
    if pools is None:
        serving = estimate_serving(case, case.simulation, between)
    else:
        if case.simulation is not None:
            raise PlanningError("NOT_MODELLED", "/solver/kind", "disaggregated serving is not simulated")
        serving = serve_disaggregated(case, pools, notes)
    if serving is None:
        notes.add_gap(_RATE, "PEAK_RATE_UNKNOWN", "no rate of the accelerator is known")
        return run
    if pools is None:
        note_case(case, notes)
    if serving.limit == "cache":
        note_memory(case.device, notes, has_context=True)
    _warn_of_room(case, serving, notes)
    _warn_of_load(serving, notes)
    cite_iterations(serving, notes)
    notes.record_calibrations(serving.spreads.of_time)
    return _apply_horizon(run._replace(serving=serving), serving.requests_per_second)


def cite_iterations(serving: ServingEstimate, notes: AnswerNotes) -> None:
    """Cites the sources of the time of iterations."""
    notes.cite_reference("/efficiency", ROOFLINE_CITATION + serving.spreads.output_token.source)


def _warn_of_room(case: InferenceCase, serving: ServingEstimate, notes: AnswerNotes) -> None:
    """Warns of requests that find no replica or no memory."""
    workload, layout, concurrency = case.workload, case.layout, case.load.concurrency
    limit = get_usable_bytes(case.cluster, workload)
    if concurrency is not None:
        _warn_of_idle_replicas(notes, concurrency, case.replicas)
    if limit is not None and serving.held is not None and serving.held < 1.0:
        one = workload._replace(concurrency=layout.data)
        memory = estimate_inference_memory(case.profile, one, layout)
        usable = compute_usable_bytes(memory, one, limit)
        if memory.total_bytes > usable:
            warn_too_large(notes, memory.total_bytes, usable)


def _warn_of_idle_replicas(notes: AnswerNotes, requests: int, replicas: int) -> None:
    if requests < replicas:
        detail = f"{replicas - requests} of {replicas} replicas have no request"
        notes.warn("REPLICAS_IDLE", "/workload/concurrency", detail)


def _warn_of_saturation(notes: AnswerNotes, most_per_second: float) -> None:
    detail = f"more requests arrive than the {most_per_second:.3g} a second that can be served: queues grow"
    notes.warn("SATURATED", "/workload", detail)


def _warn_of_load(serving: ServingEstimate, notes: AnswerNotes) -> None:
    """Warns of more requests than the cluster can serve at a time, or at all."""
    if not serving.served.saturated:
        return
    if serving.load.rate_per_second is not None:
        _warn_of_saturation(notes, serving.most_requests_per_second.value)
    elif serving.limit in ("cache", "max_num_seqs"):
        places = int(compute_request_capacity(serving.server, serving.load) * serving.replicas)
        holder = "KV cache holds" if serving.limit == "cache" else "engine takes"
        detail = f"the {holder} {places} requests at a time; the others wait"
        notes.warn("CONCURRENCY_CAPPED", "/workload/concurrency", detail)


def _run_roofline(run: ServingRun, shares: AssumedShares, bandwidth: float) -> ServingRun:
    """Estimates the run of a constant number of requests at assumed shares of rate and bandwidth."""
    case, notes, layout = run.case, run.notes, run.case.layout
    # At assumed shares, a prompt consists of its tokens alone.
    workload = case.workload._replace(input_tokens=case.prompt_tokens, source_tokens=None)
    if case.load.concurrency is None:
        detail = "assumed shares need a constant number of requests: give concurrency, or omit efficiency"
        notes.add_gap(_RATE, "CONCURRENCY_REQUIRED", detail)
        return run
    warn_of_defaulted_bandwidth(shares, notes)
    efficiency: Efficiency = build_assumed_efficiency(*shares)
    utilization, share = efficiency.shares
    _warn_of_idle_replicas(notes, workload.concurrency, layout.data)
    if case.load.proposals is not None:
        detail = "at assumed shares a forward pass generates one token"
        notes.warn("SPECULATION_NOT_TIMED", "/workload/speculative", detail)
    serving = estimate_serving_time(
        case.profile,
        _cap_concurrency(case, workload, notes),
        layout,
        peak_flops_per_second=run.peak_flops_per_second,
        bandwidth_bytes_per_second=bandwidth,
        utilization=utilization,
        bandwidth_utilization=share,
    )
    return _apply_horizon(run._replace(serving=serving), serving.requests_per_second)


def _cap_concurrency(case: ServingCase, workload: InferenceWorkload, notes: AnswerNotes) -> InferenceWorkload:
    """Returns the workload with its concurrency capped at the requests that the cache holds."""
    layout, limit = case.layout, get_usable_bytes(case.cluster, workload)
    if limit is None:
        return workload
    memory = estimate_inference_memory(case.profile, workload, layout)
    usable = compute_usable_bytes(memory, workload, limit)
    if memory.total_bytes <= usable:
        return workload
    most = count_fitting_requests(case.profile, workload, layout, limit)
    if most == 0:
        warn_too_large(notes, memory.total_bytes, usable)
        return workload
    notes.warn(
        "CONCURRENCY_CAPPED",
        "/workload/concurrency",
        f"the KV cache holds {most * layout.data} whole requests at a time; the rates are for those",
    )
    return workload._replace(concurrency=most * layout.data)


def _apply_horizon(run: ServingRun, requests: Quantity) -> ServingRun:
    duration, tokens, answered = _follow_horizon(run.case.workload, run.duration_seconds, requests)
    return run._replace(duration_seconds=duration, tokens=tokens, requests=answered)


def _follow_horizon(
    workload: InferenceWorkload, duration: Quantity | None, requests_per_second: Quantity
) -> tuple[Quantity | None, Quantity | None, Quantity | None]:
    """Returns duration, tokens and requests of the run, from the amount or the duration of its horizon."""
    outputs, horizon = workload.output_tokens, workload.horizon
    if horizon is None:
        return duration, None, None
    if duration is not None:
        answered = combine(lambda r, d: r * d, requests_per_second, duration)
        return duration, scaled(answered, outputs) if outputs else None, answered
    total = horizon.amount
    if horizon.unit is HorizonUnit.OUTPUT_TOKENS:
        if not outputs:
            raise PlanningError("NO_TOKENS_GENERATED", "/workload/horizon", "the model generates no tokens")
        total /= outputs
    lasting = combine(lambda r: total / r, inverted(requests_per_second))
    return lasting, exact(total * outputs) if outputs else None, exact(total)
