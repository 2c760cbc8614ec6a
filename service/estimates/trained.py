"""The run of a model in training."""

from pydantic import MISSING

from service.estimates.calibrated import note_run
from service.estimates.data_pipeline import data_time
from service.estimates.reliability import interruptions
from service.estimates.residuals import serving_spreads, step_spread
from service.estimates.run import Run, step_tokens, tokens_of_sample, unmodelled, warn_too_large
from service.estimates.settings import trained_setting
from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import Efficiency, ReferenceCurves
from service.planning.hardware.distance import System
from service.planning.hardware.local_evidence import corrected
from service.planning.memory.training import StageMemory, training_memory, unsharded_state
from service.planning.models.positions import forward_flops_of_sample
from service.planning.models.profile import Profile
from service.planning.operators import Bound
from service.planning.quantity import exact, scaled
from service.planning.training import (
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
from service.planning.training.rollout import Generation, generated_step, generation, synchronization_seconds
from service.planning.workload import (
    AttentionKernel,
    Offload,
    TrainingWorkload,
)
from service.resolve.catalog import Catalog
from service.resolve.hardware import compute_peak, resolve_efficiency, usable_bytes
from service.resolve.host import note_host
from service.resolve.operation import data_pipeline
from service.schemas.estimates import RunQuestion
from service.schemas.notes import Notes
from service.schemas.references import AssumedEfficiency, EfficiencyInput, ModelledEfficiency
from service.schemas.rollouts import training_cluster
from service.schemas.workloads import TrainingWorkloadInput


def trained_run(run: Run, question: RunQuestion, catalog: Catalog) -> Run:
    """The run of a model in training, with what it waits for data, saves and loses to failures."""
    given, workload = question.workload, run.resolved.workload
    assert isinstance(given, TrainingWorkloadInput)  # noqa: S101
    assert isinstance(workload, TrainingWorkload)  # noqa: S101
    note_host(question.cluster.host, run.cluster.host, workload, catalog, run.notes)
    is_assumed = isinstance(question.efficiency, AssumedEfficiency)
    if is_assumed or not _is_modelled(run):
        efficiency = resolve_efficiency(question.efficiency, catalog, run.cluster, workload, run.notes)
        trained = _trained(run, workload, efficiency, catalog, is_assumed=is_assumed)
    else:
        trained = _modelled(run, workload, catalog)
    return _operated(_slowed(trained, question.efficiency), given, workload, catalog)


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
    basis = machine.rates.basis_of_work(compute_format)
    waiting = sum(seconds for _, seconds, bound in step.phases() if bound is Bound.COMMUNICATION)
    note_run(resolved, cluster, catalog, run.notes)
    spread = corrected(
        curves.local,
        "training_step",
        trained_setting(profile, workload, layout, cluster),
        step_spread(curves, workload.framework, cluster, compute_format, waiting / step.total),
    )
    run.notes.calibrated(spread.calibration_ids)
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
    sequences = workload.sequences * workload.micro_batches * run.resolved.layout.data
    return generated_on(
        run.resolved.model.profile,
        workload,
        sequences,
        cluster=run.cluster,
        curves=catalog.curves,
        notes=run.notes,
    )


def generated_on(
    profile: Profile,
    workload: TrainingWorkload,
    step_sequences: int,
    *,
    cluster: Cluster,
    curves: ReferenceCurves,
    notes: Notes,
) -> Generation | None:
    """A rollout of what optimizer steps of ``step_sequences`` are taken on; None where none is made."""
    rollout, accelerator = workload.rollout, cluster.accelerator
    if rollout is None:
        return None
    sequences = step_sequences * rollout.steps
    system = System(None, None, accelerator.id, accelerator.generation)
    [spread] = serving_spreads(curves, ["serving_throughput"], system, profile.parameter_count)
    found = generation(
        profile,
        workload,
        sequences,
        cluster=cluster,
        calibration=curves.calibration,
        spread=spread,
    )
    if found is not None and not found.held:
        detail = "a replica of the engine does not hold the model and a sequence; the time is that of one"
        notes.warn("DOES_NOT_FIT", "/workload/rollout", detail)
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
            run.notes.gap("/tokens_per_second", *unmodelled(profile.unmodelled_kinds))
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


def _slowed(run: Run, efficiency: EfficiencyInput) -> Run:
    """The run on devices that take as many times as long as the question says."""
    if not isinstance(efficiency, ModelledEfficiency) or efficiency.time_factor is MISSING:
        return run
    if run.training is None:
        return run
    time = run.training.slowed_to(
        scaled(run.training.seconds_per_token, efficiency.time_factor),
        peak_flops_per_second=run.peak_flops_per_second * run.cluster.accelerator_count,
    )
    return _lasting(run, time)


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
        warn_too_large(run.notes, needed, usable)
    return stage
