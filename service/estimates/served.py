"""The run of a served model."""

from pydantic import MISSING

from service.estimates.calibrated import note_memory, note_run
from service.estimates.disaggregated import serve_apart
from service.estimates.passes import serve_passes
from service.estimates.run import Run, unmodelled, warn_too_large
from service.estimates.serving import Serving, Subject, serve, subject_of
from service.planning.errors import PlanningError
from service.planning.inference import places_of, serving_time
from service.planning.inference.encoded import decoder_of
from service.planning.memory.capacity import requests_that_fit, usable_bytes_of
from service.planning.memory.serving import inference_memory
from service.planning.models.profile import Profile
from service.planning.quantity import Quantity, assumed, combine, exact, inverted, scaled
from service.planning.workload import (
    HorizonUnit,
    InferenceWorkload,
)
from service.resolve.catalog import Catalog
from service.resolve.hardware import resolve_efficiency, usable_bytes
from service.resolve.passes import is_passed
from service.schemas.base import Source
from service.schemas.estimates import RunQuestion, ThroughputQuestion
from service.schemas.load import SimulatedSolver
from service.schemas.references import AssumedEfficiency, ModelledEfficiency
from service.schemas.workloads import InferenceWorkloadInput


def served_run(run: Run, question: RunQuestion, catalog: Catalog) -> Run:
    """The run of a served model; what is not known of it is a gap."""
    resolved, workload = run.resolved, run.resolved.workload
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    profile, horizon = resolved.model.profile, workload.horizon
    if isinstance(question.efficiency, ModelledEfficiency) and question.efficiency.time_factor is not MISSING:
        detail = "how the load of a service follows from slower devices is not modelled"
        raise PlanningError("NOT_MODELLED", "/efficiency/time_factor", detail)
    if horizon and horizon.unit is HorizonUnit.DURATION:
        run = run._replace(duration_seconds=assumed(horizon.amount))
    pointer = "/requests_per_second"
    given = question.workload
    assert isinstance(given, InferenceWorkloadInput)  # noqa: S101
    if profile.shapes_known and is_passed(given, profile):
        return _by_passes(run, question, given, catalog)
    if not profile.shapes_known:
        detail = "prefill and decode need the shapes of the model"
        run.notes.gap(pointer, "ARCHITECTURE_REQUIRED", detail)
    elif resolved.held.unknown is not None:
        run.notes.gap(pointer, resolved.held.unknown.code, resolved.held.unknown.detail)
    elif kinds := _unserved(profile, question):
        run.notes.gap(pointer, *unmodelled(kinds))
    elif run.cluster.accelerator.bandwidth_bytes_per_second is None:
        detail = "the memory bandwidth of the accelerator is not known"
        run.notes.gap(pointer, "BANDWIDTH_UNKNOWN", detail)
    elif isinstance(question.efficiency, AssumedEfficiency):
        return _by_roofline(run, question, catalog)
    else:
        return _by_iterations(run, question, catalog)
    return run


def _unserved(profile: Profile, question: RunQuestion) -> frozenset[str]:
    if isinstance(question.efficiency, AssumedEfficiency):
        return profile.unmodelled_kinds
    return unserved_kinds(profile)


def unserved_kinds(profile: Profile) -> frozenset[str]:
    """Kinds whose work is not modelled: of a model with an encoder those of its decoder."""
    if profile.sampled is None:
        return profile.unmodelled_kinds
    inputs = {item.kind for item in profile.sampled.inputs}
    return decoder_of(profile.sampled).unmodelled_kinds - inputs


def _by_passes(run: Run, question: RunQuestion, given: InferenceWorkloadInput, catalog: Catalog) -> Run:
    """The run of requests that are forward passes."""
    resolved, held, pointer = run.resolved, run.resolved.held, "/requests_per_second"
    workload = resolved.workload
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    if held.unknown is not None:
        run.notes.gap(pointer, held.unknown.code, held.unknown.detail)
        return run
    efficiency = None
    if isinstance(question.efficiency, AssumedEfficiency):
        efficiency = resolve_efficiency(question.efficiency, catalog, run.cluster, workload, run.notes)
    passing = serve_passes(resolved, given, run.cluster, catalog, run.notes, efficiency=efficiency)
    if passing is None:
        detail = "the memory bandwidth of the accelerator is not known"
        run.notes.gap(pointer, "BANDWIDTH_UNKNOWN", detail)
        return run
    if efficiency is None:
        note_run(resolved, run.cluster, catalog, run.notes)
    if passing.batched.saturated:
        most = passing.most_requests_per_second.value
        detail = f"more requests arrive than the {most:.3g} a second that can be served: queues grow"
        run.notes.warn("SATURATED", "/workload", detail)
    idle = resolved.layout.data - passing.replicas
    if idle:
        detail = f"{idle:.0f} of {resolved.layout.data} replicas have no request"
        run.notes.warn("REPLICAS_IDLE", "/workload/concurrency", detail)
    return _until_horizon(run._replace(passing=passing), workload, passing.requests_per_second)


def _by_iterations(run: Run, question: RunQuestion, catalog: Catalog) -> Run:
    """The run in the time of the iterations of its engine."""
    assert isinstance(question.workload, InferenceWorkloadInput)  # noqa: S101
    subject = subject_of(run.resolved, question.workload, run.cluster)
    limit = usable_bytes(run.cluster, subject.workload)
    solver = question.solver if isinstance(question, ThroughputQuestion) else None
    apart = question.workload.disaggregated
    serving: Serving | None
    if apart is not MISSING:
        if isinstance(solver, SimulatedSolver):
            raise PlanningError("NOT_MODELLED", "/solver/kind", "disaggregated serving is not simulated")
        serving = serve_apart(subject, question, apart, catalog, run.notes)
    else:
        serving = serve(subject, run.cluster, catalog.curves, limit_bytes=limit, solver=solver)
    if serving is None:
        run.notes.gap("/requests_per_second", "PEAK_RATE_UNKNOWN", "no rate of the accelerator is known")
        return run
    if apart is MISSING:
        note_run(run.resolved, run.cluster, catalog, run.notes)
    if serving.limit == "cache":
        note_memory(catalog, run.notes, has_context=True)
    _warn_of_room(run, subject, serving, limit)
    _warn_of_load(run, serving)
    run.notes.sources.append(cited_iterations(serving))
    run.notes.calibrated(serving.spreads.of_time)
    return _until_horizon(run._replace(serving=serving), subject.workload, serving.requests_per_second)


def cited_iterations(serving: Serving) -> Source:
    """What the time of iterations rests on."""
    return {
        "pointer": "/efficiency",
        "kind": "reference_curve",
        "id": "reference",
        "version": 1,
        "origin": "shipped",
        "citation": "operators, collectives and launches of an iteration; "
        + serving.spreads.output_token.source,
    }


def _warn_of_room(run: Run, subject: Subject, serving: Serving, limit: float | None) -> None:
    """Requests that find no replica or no room."""
    workload, layout, asked = subject.workload, subject.layout, subject.asked
    replicas = layout.data // layout.expert
    if asked.concurrency is not None and asked.concurrency < replicas:
        run.notes.warn(
            "REPLICAS_IDLE",
            "/workload/concurrency",
            f"{replicas - asked.concurrency} of {replicas} replicas have no request",
        )
    if limit is not None and serving.held is not None and serving.held < 1.0:
        one = workload._replace(concurrency=layout.data)
        memory = inference_memory(subject.profile, one, layout)
        usable = usable_bytes_of(memory, one, limit)
        if memory.total_bytes > usable:
            warn_too_large(run.notes, memory.total_bytes, usable)


def _warn_of_load(run: Run, serving: Serving) -> None:
    """More than the cluster can serve at a time, or at all."""
    if not serving.served.saturated:
        return
    if serving.load.rate_per_second is not None:
        most = serving.most_requests_per_second.value
        detail = f"more requests arrive than the {most:.3g} a second that can be served: queues grow"
        run.notes.warn("SATURATED", "/workload", detail)
    elif serving.limit in ("cache", "max_num_seqs"):
        places = int(places_of(serving.server, serving.load) * serving.replicas)
        holder = "KV cache holds" if serving.limit == "cache" else "engine takes"
        detail = f"the {holder} {places} requests at a time; the others wait"
        run.notes.warn("CONCURRENCY_CAPPED", "/workload/concurrency", detail)


def _by_roofline(run: Run, question: RunQuestion, catalog: Catalog) -> Run:
    """The run of a constant number of requests at the assumed shares of rate and bandwidth."""
    resolved, workload, layout = run.resolved, run.resolved.workload, run.resolved.layout
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    assert resolved.asked is not None  # noqa: S101
    bandwidth = run.cluster.accelerator.bandwidth_bytes_per_second
    assert bandwidth is not None  # noqa: S101
    if resolved.asked.concurrency is None:
        detail = "at assumed shares requests are a constant number: give concurrency, or leave efficiency out"
        run.notes.gap("/requests_per_second", "CONCURRENCY_REQUIRED", detail)
        return run
    efficiency = resolve_efficiency(question.efficiency, catalog, run.cluster, workload, run.notes)
    utilization, share = efficiency.shares
    if workload.concurrency < layout.data:
        run.notes.warn(
            "REPLICAS_IDLE",
            "/workload/concurrency",
            f"{layout.data - workload.concurrency} of {layout.data} replicas have no request",
        )
    if resolved.asked.proposals is not None:
        detail = "at assumed shares a pass makes one token"
        run.notes.warn("SPECULATION_NOT_TIMED", "/workload/speculative", detail)
    serving = serving_time(
        resolved.model.profile,
        _held(run, workload),
        layout,
        peak_flops_per_second=run.peak_flops_per_second,
        bandwidth_bytes_per_second=bandwidth,
        utilization=utilization,
        bandwidth_utilization=share,
    )
    return _until_horizon(run._replace(serving=serving), workload, serving.requests_per_second)


def _held(run: Run, workload: InferenceWorkload) -> InferenceWorkload:
    """The workload with as many requests at a time as the cache holds."""
    layout = run.resolved.layout
    memory = inference_memory(run.resolved.model.profile, workload, layout)
    limit = usable_bytes(run.cluster, workload)
    if limit is None:
        return workload
    usable = usable_bytes_of(memory, workload, limit)
    if memory.total_bytes <= usable:
        return workload
    most = requests_that_fit(run.resolved.model.profile, workload, layout, limit)
    if most == 0:
        warn_too_large(run.notes, memory.total_bytes, usable)
        return workload
    run.notes.warn(
        "CONCURRENCY_CAPPED",
        "/workload/concurrency",
        f"the KV cache holds {most * layout.data} whole requests at a time; the rates are for those",
    )
    return workload._replace(concurrency=most * layout.data)


def _until_horizon(run: Run, workload: InferenceWorkload, requests: Quantity) -> Run:
    """How long a number of requests lasts, or how many tokens a time makes."""
    outputs, horizon = workload.output_tokens, workload.horizon
    if horizon is None:
        return run
    if run.duration_seconds is not None:
        answered = combine(lambda r, d: r * d, requests, run.duration_seconds)
        return run._replace(tokens=scaled(answered, outputs) if outputs else None, requests=answered)
    total = horizon.amount
    if horizon.unit is HorizonUnit.OUTPUT_TOKENS:
        if not outputs:
            raise PlanningError("NO_TOKENS_GENERATED", "/workload/horizon", "the model generates no tokens")
        total /= outputs
    return run._replace(
        duration_seconds=combine(lambda r: total / r, inverted(requests)),
        tokens=exact(total * outputs) if outputs else None,
        requests=exact(total),
    )
