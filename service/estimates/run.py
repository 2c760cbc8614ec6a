"""The run behind throughput, cost and utility bill: rates of the whole cluster, and how long it lasts."""

from typing import NamedTuple

from pydantic import MISSING

from service.estimates.data_pipeline import DataTime, data_time
from service.estimates.disaggregated import serve_apart
from service.estimates.passes import Passing, serve_passes
from service.estimates.reliability import Interruptions, interruptions
from service.estimates.residuals import serving_spreads, step_spread
from service.estimates.serving import Serving, Subject, serve, subject_of
from service.planning.cluster import Cluster
from service.planning.curves import Efficiency
from service.planning.distance import System
from service.planning.errors import PlanningError
from service.planning.inference import ServingTime, places_of, serving_time
from service.planning.inference.encoded import decoder_of
from service.planning.memory.capacity import requests_that_fit, usable_bytes_of
from service.planning.memory.serving import inference_memory
from service.planning.memory.training import StageMemory, training_memory, unsharded_state
from service.planning.operators import Bound
from service.planning.positions import forward_flops_of_sample
from service.planning.profile import Profile
from service.planning.quantity import Quantity, assumed, combine, exact, inverted, scaled
from service.planning.rollout import Generation, generated_step, generation, synchronization_seconds
from service.planning.training import (
    Known,
    ModelledTime,
    TrainingTime,
    flops_per_token,
    machine_under,
    modelled_step,
    modelled_time,
    nothing_known,
    training_time,
    weight_traffic_bytes,
)
from service.planning.units import GIGABYTE_BYTES
from service.planning.workload import (
    AttentionKernel,
    HorizonUnit,
    InferenceWorkload,
    Offload,
    TrainingWorkload,
)
from service.questions.base import Source
from service.questions.catalog import Catalog
from service.questions.estimates import RunQuestion, ThroughputQuestion
from service.questions.hardware import compute_peak, resolve_cluster, resolve_efficiency, usable_bytes
from service.questions.host import note_host
from service.questions.load import SimulatedSolver
from service.questions.notes import Notes
from service.questions.references import AssumedEfficiency, ParameterCountModel
from service.questions.resolve import Resolved, resolve
from service.questions.resolve.operation import data_pipeline
from service.questions.resolve.passes import is_passed
from service.questions.rollouts import training_cluster
from service.questions.workloads import InferenceWorkloadInput, TrainingWorkloadInput


class Run(NamedTuple):
    """A resolved question with its rates; ``training`` or ``serving`` is set, or neither is known."""

    resolved: Resolved
    cluster: Cluster
    notes: Notes
    peak_flops_per_second: float
    training: TrainingTime | ModelledTime | None = None
    serving: Serving | ServingTime | None = None
    passing: Passing | None = None
    duration_seconds: Quantity | None = None
    tokens: Quantity | None = None
    """Tokens trained on, or generated, over the whole run."""
    total_flops: float | None = None
    working: TrainingTime | ModelledTime | None = None
    """``training`` without waiting for data."""
    data: DataTime | None = None
    """What the devices wait for data; ``training`` counts it."""
    known: Known | None = None
    """What the step of ``training`` shares with changed ones."""
    generated: Generation | None = None
    """A rollout of a policy; ``training`` counts a step's share of it."""
    interruptions: Interruptions = Interruptions()
    """Checkpoints and failures; ``duration_seconds`` counts them."""


def plan_run(question: RunQuestion, catalog: Catalog) -> Run:
    """Resolve a question and compute its rates."""
    notes = Notes()
    is_assumed = isinstance(question.efficiency, AssumedEfficiency)
    given = question.workload
    communicates = not (is_assumed or isinstance(question.model, ParameterCountModel))
    cluster = resolve_cluster(question.cluster, catalog, notes, communicates=communicates)
    resolved = _in_samples(resolve(question, cluster, catalog, notes))
    peak = compute_peak(cluster, resolved.workload)[1]
    run = Run(resolved, cluster, notes, peak)
    if isinstance(resolved.workload, TrainingWorkload):
        note_host(question.cluster.host, cluster.host, resolved.workload, notes)
        if is_assumed or not _is_modelled(run):
            efficiency = resolve_efficiency(question.efficiency, catalog, cluster, resolved.workload, notes)
            trained = _trained(run, resolved.workload, efficiency, catalog, is_assumed=is_assumed)
        else:
            trained = _modelled(run, resolved.workload, catalog)
        assert isinstance(given, TrainingWorkloadInput)  # noqa: S101
        return _operated(trained, given, resolved.workload, catalog)
    return _served(run, question, catalog)


def _in_samples(resolved: Resolved) -> Resolved:
    """A training question of a model that is asked by the sample: each of its tokens is one sample."""
    held, workload, total = resolved.held, resolved.workload, resolved.total_tokens
    if held.sample is None or not isinstance(workload, TrainingWorkload):
        return resolved
    assert isinstance(held.workload, TrainingWorkload)  # noqa: S101
    return resolved._replace(
        model=resolved.model._replace(profile=held.profile),
        workload=held.workload,
        total_tokens=None if total is None else total / workload.sequence_length,
    )


def tokens_of_sample(resolved: Resolved) -> float | None:
    """Tokens of what a rate counts: 1, or those of a sample; None for a model that takes no tokens."""
    profile = resolved.model.profile
    if profile.sampled is None or profile.sample is None:
        return 1.0
    takes = any(item.kind == "tokens" for item in profile.sampled.inputs)
    return float(profile.sample.tokens or 0) or None if takes else None


def _is_modelled(run: Run) -> bool:
    """Whether shapes and device say enough for the time of operators."""
    profile, accelerator = run.resolved.model.profile, run.cluster.accelerator
    if not profile.shapes_known:
        return False
    if accelerator.bandwidth_bytes_per_second is None:
        run.notes.warn(
            "BANDWIDTH_UNKNOWN",
            "/cluster/accelerator",
            "the time is that of a measured share of the peak rate: that of operators needs the bandwidth",
        )
        return False
    return True


def _modelled(run: Run, workload: TrainingWorkload, catalog: Catalog) -> Run:
    """The run in the time of its operators and collectives."""
    resolved, cluster, curves = run.resolved, run.cluster, catalog.curves
    profile, layout = resolved.model.profile, resolved.layout
    if not _is_answered(run, workload):
        return run
    _warn_unless_it_fits(run, workload, catalog)
    calibration = curves.calibration
    compute_format = compute_peak(cluster, workload)[0]
    machine = machine_under(cluster.accelerator, workload, calibration)
    known = nothing_known()
    step = modelled_step(
        profile,
        workload,
        layout,
        cluster=training_cluster(cluster, workload.rollout),
        calibration=calibration,
        compute_format=compute_format,
        known=known,
    )
    assert machine is not None  # noqa: S101
    assert step is not None  # noqa: S101
    generated = _generated(run, workload, catalog)
    if generated is not None and workload.rollout is not None:
        sent = synchronization_seconds(
            profile, workload, generated, training=layout, cluster=cluster, calibration=calibration
        )
        step = generated_step(step, workload.rollout, generated, sent)
    basis = machine.rates.basis
    waiting = sum(seconds for _, seconds, bound in step.phases() if bound is Bound.COMMUNICATION)
    spread = step_spread(curves, workload.framework, cluster, compute_format, waiting / step.total)
    time = modelled_time(
        flops_per_token(profile, workload),
        step,
        tokens=step_tokens(resolved, workload),
        peak_flops_per_second=run.peak_flops_per_second * cluster.accelerator_count,
        spread=spread,
        basis=basis,
        generated=None if generated is None else generated.seconds,
    )
    run.notes.sources.append(
        {
            "pointer": "/efficiency",
            "kind": "reference_curve",
            "id": "reference",
            "version": 1,
            "origin": "shipped",
            "citation": f"operators, collectives and schedule of the layout; {spread.source}",
        }
    )
    return _lasting(run._replace(known=known, generated=generated), time)


def _generated(run: Run, workload: TrainingWorkload, catalog: Catalog) -> Generation | None:
    """A rollout on the engines of the question's devices; None for objectives that generate nothing."""
    rollout, resolved, curves = workload.rollout, run.resolved, catalog.curves
    if rollout is None:
        return None
    profile, accelerator = resolved.model.profile, run.cluster.accelerator
    system = System(None, None, accelerator.id, accelerator.generation)
    sequences = workload.sequences * workload.micro_batches * resolved.layout.data * rollout.steps
    [spread] = serving_spreads(curves, ["serving_throughput"], system, profile.parameter_count)
    found = generation(
        profile,
        workload,
        sequences,
        cluster=run.cluster,
        calibration=curves.calibration,
        spread=spread,
    )
    if found is not None and not found.held:
        detail = "a replica of the engine does not hold the model and a sequence; the time is that of one"
        run.notes.warn("DOES_NOT_FIT", "/workload/rollout", detail)
    return found


def _trained(
    run: Run, workload: TrainingWorkload, efficiency: Efficiency, catalog: Catalog, *, is_assumed: bool
) -> Run:
    profile = run.resolved.model.profile
    if not _is_answered(run, workload):
        return run
    if not is_assumed and (workload.rollout or workload.offload != Offload()):
        detail = "generation and transfers to the host need the shapes of the model and rates of the device"
        run.notes.gap("/tokens_per_second", "ARCHITECTURE_REQUIRED", detail)
        return run
    flops = flops_per_token(profile, workload)
    time = training_time(
        flops,
        peak_flops_per_second=run.peak_flops_per_second,
        devices=run.cluster.accelerator_count,
        efficiency=efficiency,
        # An assumed utilization is that of the whole step.
        bubble_share=0.0 if is_assumed else run.resolved.layout.bubble_share(workload.micro_batches),
    )
    if workload.kernel is AttentionKernel.STANDARD and not is_assumed and profile.attention:
        run.notes.warn(
            "FUSED_KERNEL_MEASURED",
            "/workload/attention",
            "the measured runs used a fused kernel; one that stores the scores is slower",
        )
    if is_assumed and _moving_seconds_per_token(run, workload, catalog) > time.seconds_per_token.value:
        run.notes.warn(
            "UTILIZATION_ABOVE_BANDWIDTH",
            "/efficiency/utilization",
            "at this batch size moving weights, gradients and optimizer states alone takes longer "
            "than the assumed utilization leaves",
        )
    return _lasting(run, time)


def _is_answered(run: Run, workload: TrainingWorkload) -> bool:
    """Whether the work of the workload is known; what is not is a gap."""
    profile, held = run.resolved.model.profile, run.resolved.held
    if profile.sample is None and profile.unmodelled_kinds:
        if held.unknown is not None:
            run.notes.gap("/samples_per_second", held.unknown.code, held.unknown.detail)
        else:
            run.notes.gap("/tokens_per_second", *_unmodelled(profile.unmodelled_kinds))
        return False
    if profile.sampled is not None and profile.sample is not None:
        try:
            forward_flops_of_sample(profile.sampled, profile.sample)
        except PlanningError as error:
            run.notes.gap("/samples_per_second", error.code, error.detail)
            return False
    if not profile.shapes_known:
        run.notes.warn(
            "ATTENTION_NOT_COUNTED",
            "/model",
            "6 N D without attention scores: a parameter count says nothing of shapes",
        )
    if workload.rollout and profile.sample is not None:
        detail = "generating the samples of models that are asked by the sample is not modelled"
        run.notes.gap("/samples_per_second", "NOT_MODELLED", detail)
        return False
    return True


def _lasting(run: Run, time: TrainingTime | ModelledTime) -> Run:
    """The run at these rates, until its total is trained on."""
    total, each = run.resolved.total_tokens, tokens_of_sample(run.resolved)
    if total is None:
        return run._replace(training=time)
    return run._replace(
        training=time,
        tokens=None if each is None else exact(total * each),
        duration_seconds=scaled(time.seconds_per_token, total),
        total_flops=total * time.flops.hardware,
    )


def _operated(run: Run, given: TrainingWorkloadInput, workload: TrainingWorkload, catalog: Catalog) -> Run:
    """The run with what it waits for data, saves and loses to failures."""
    run = _fed(run, given, workload)
    step = None
    if run.training and run.resolved.batch_known:
        step = scaled(run.training.seconds_per_token, step_tokens(run.resolved, workload))
    found = interruptions(
        given,
        run.resolved.model.profile,
        workload,
        run.cluster,
        step=step,
        productive=run.duration_seconds,
        curves=catalog.curves,
        notes=run.notes,
    )
    return run._replace(interruptions=found, duration_seconds=found.duration)


def _fed(run: Run, given: TrainingWorkloadInput, workload: TrainingWorkload) -> Run:
    pipeline = data_pipeline(given, run.notes)
    if pipeline is None or run.training is None:
        return run
    if not run.resolved.batch_known:
        detail = "the sequences of a step do not follow from the question"
        run.notes.gap("/data_pipeline", "BATCH_REQUIRED", detail)
        return run
    tokens = step_tokens(run.resolved, workload)
    computing = scaled(run.training.seconds_per_token, tokens)
    data = data_time(pipeline, computing, workload, run.resolved.layout, run.cluster)
    time = run.training.slowed_to(
        scaled(data.step, 1.0 / tokens),
        peak_flops_per_second=run.peak_flops_per_second * run.cluster.accelerator_count,
    )
    total = run.resolved.total_tokens
    return run._replace(
        training=time,
        working=run.training,
        data=data,
        duration_seconds=None if total is None else scaled(time.seconds_per_token, total),
    )


def _unmodelled(kinds: frozenset[str]) -> tuple[str, str]:
    names = ", ".join(sorted(kinds))
    return "LAYER_KIND_NOT_MODELLED", f"the work of layers of kind {names} is not modelled"


def _moving_seconds_per_token(run: Run, workload: TrainingWorkload, catalog: Catalog) -> float:
    """Seconds per token of the cluster to move the training state at full bandwidth.

    Warns where the state does not fit.
    """
    resolved, accelerator = run.resolved, run.cluster.accelerator
    if not resolved.model.profile.shapes_known:
        return 0.0
    profile, layout = resolved.model.profile, resolved.layout
    stage = _warn_unless_it_fits(run, workload, catalog)
    if not accelerator.bandwidth_bytes_per_second:
        return 0.0
    unsharded = unsharded_state(profile, workload, layout, stage.stage)
    moved = weight_traffic_bytes(stage.state, unsharded, workload.micro_batches)
    return moved / accelerator.bandwidth_bytes_per_second / step_tokens(resolved, workload)


def _warn_unless_it_fits(run: Run, workload: TrainingWorkload, catalog: Catalog) -> StageMemory:
    """The fullest stage; the answer warns where it does not fit."""
    overhead = catalog.curves.training_memory.overhead
    stage = training_memory(run.resolved.model.profile, workload, run.resolved.layout, overhead)[0]
    usable, needed = usable_bytes(run.cluster, workload), stage.total_bytes
    if usable is not None and needed > usable:
        _warn_too_large(run.notes, needed, usable)
    return stage


def _warn_too_large(notes: Notes, total: float, usable: float) -> None:
    notes.warn(
        "DOES_NOT_FIT",
        "/cluster",
        f"a device needs {total / GIGABYTE_BYTES:.1f} GB and may use {usable / GIGABYTE_BYTES:.1f} GB; "
        "the rates are those of devices with enough memory",
    )


def step_tokens(resolved: Resolved, workload: TrainingWorkload) -> float:
    """Tokens of one optimizer step over all replicas."""
    samples = workload.micro_batch_size * workload.micro_batches * resolved.layout.data
    return float(samples * workload.sample_tokens)


def _served(run: Run, question: RunQuestion, catalog: Catalog) -> Run:
    """The run of a served model; what is not known of it is a gap."""
    resolved, workload = run.resolved, run.resolved.workload
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    profile, horizon = resolved.model.profile, workload.horizon
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
        run.notes.gap(pointer, *_unmodelled(kinds))
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
    _warn_of_room(run, subject, serving, limit)
    _warn_of_load(run, serving)
    run.notes.sources.append(cited_iterations(serving))
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
            _warn_too_large(run.notes, memory.total_bytes, usable)


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
        _warn_too_large(run.notes, memory.total_bytes, usable)
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
        tokens = combine(lambda r, d: r * outputs * d, requests, run.duration_seconds)
        return run._replace(tokens=tokens if outputs else None)
    total = horizon.amount
    if horizon.unit is HorizonUnit.OUTPUT_TOKENS:
        if not outputs:
            raise PlanningError("NO_TOKENS_GENERATED", "/workload/horizon", "the model generates no tokens")
        total /= outputs
    return run._replace(
        duration_seconds=combine(lambda r: total / r, inverted(requests)),
        tokens=exact(total * outputs) if outputs else None,
    )
