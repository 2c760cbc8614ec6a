"""Run of a model in training."""

from service.planning.cases import TrainingCase
from service.planning.errors import PlanningError
from service.planning.estimates.calibrations import note_case
from service.planning.estimates.data_pipeline import estimate_data_time, note_unknown_stages
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.estimates.intervals import find_serving_spreads, find_step_spread
from service.planning.estimates.reliability import estimate_interruptions
from service.planning.estimates.runs import TrainingRun, describe_unmodelled, warn_too_large
from service.planning.estimates.settings import build_case_setting
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import Efficiency, ReferenceCurves, build_assumed_efficiency
from service.planning.hardware.distance import EvidenceSystem
from service.planning.hardware.local_evidence import apply_correction
from service.planning.memory.training import StageMemory, compute_unsharded_state, estimate_training_memory
from service.planning.models.positions import forward_flops_of_sample
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.operators import DeviceMachine, TimeBound
from service.planning.quantity import exact, scaled
from service.planning.training import (
    ModelledTime,
    TrainingTime,
    build_empty_known,
    build_training_machine,
    count_flops_per_token,
    estimate_modelled_time,
    estimate_step,
    estimate_training_time,
    weight_traffic_bytes,
)
from service.planning.training.rollout import (
    RolloutGeneration,
    add_generation,
    estimate_generation,
    synchronization_seconds,
    training_cluster,
)
from service.planning.workload import AttentionKernel, Offload, TrainingWorkload


def run_training(case: TrainingCase, notes: AnswerNotes) -> TrainingRun:
    """Estimates the run of a model in training, with its waits for data, its checkpoints and its failures.

    Raises :class:`PlanningError` where the device has no rate of the precision, or the run makes no progress.
    """
    run = TrainingRun(case, notes, compute_peak(case.cluster, case.workload)[1])
    machine = None if case.assumed is not None else _find_machine(case, notes)
    if machine is None:
        run = _run_at_share(run, _find_efficiency(case, notes))
    else:
        run = _run_operators(run, machine)
    return _add_interruptions(_add_data(_apply_time_factor(run)))


def _find_machine(case: TrainingCase, notes: AnswerNotes) -> DeviceMachine | None:
    """Returns the device as kernels see it.

    None where shapes or rates for the time of operators are missing.
    """
    if not case.profile.shapes_known:
        return None
    machine = build_training_machine(case.cluster.accelerator, case.workload, case.curves.calibration)
    if machine is None:
        notes.warn(
            "BANDWIDTH_UNKNOWN",
            "/cluster/accelerator",
            "the time is estimated by a measured share of the peak rate: operators need the bandwidth",
        )
    return machine


def _find_efficiency(case: TrainingCase, notes: AnswerNotes) -> Efficiency:
    """Returns the achieved shares that the case assumes or that measured runs give."""
    if case.assumed is not None:
        return build_assumed_efficiency(*case.assumed)
    if case.calibration_id is not None:
        detail = "without the shapes of the model, only whole measured runs time a run"
        notes.warn("NOT_USED", "/efficiency/id", detail)
    efficiency = find_measured_efficiency(case.curves, case.cluster, case.workload)
    notes.cite_reference("/efficiency", efficiency.source)
    return efficiency


def find_measured_efficiency(
    curves: ReferenceCurves, cluster: Cluster, workload: TrainingWorkload
) -> Efficiency:
    """Returns the share of the peak rate that measured runs reach on devices of this generation."""
    generation = cluster.accelerator.generation
    return curves.find_training_efficiency(
        generation, workload.recipe.compute, workload.measured_recomputation
    )


def _run_operators(run: TrainingRun, machine: DeviceMachine) -> TrainingRun:
    """Estimates the run from the time of its operators and collectives."""
    case, notes = run.case, run.notes
    profile, workload, layout, cluster, curves = (
        case.profile,
        case.workload,
        case.layout,
        case.cluster,
        case.curves,
    )
    if not _is_answered(case, notes):
        return run
    _warn_of_memory(case, notes)
    calibration = curves.calibration
    compute_format = compute_peak(cluster, workload)[0]
    known = build_empty_known()
    step = estimate_step(
        profile,
        workload,
        layout,
        cluster=training_cluster(cluster, workload.rollout),
        calibration=calibration,
        compute_format=compute_format,
        known=known,
    )
    if step is None:
        return run
    generated = generate_rollout(
        profile,
        workload,
        workload.sequences * workload.micro_batches * layout.data,
        cluster=cluster,
        curves=curves,
        notes=notes,
    )
    if generated is not None and workload.rollout is not None:
        sent = synchronization_seconds(
            profile, workload, generated, training=layout, cluster=cluster, calibration=calibration
        )
        step = add_generation(step, workload.rollout, generated, sent)
    waiting = sum(seconds for _, seconds, bound in step.list_phases() if bound is TimeBound.COMMUNICATION)
    note_case(case, notes)
    spread = apply_correction(
        curves.local,
        "training_step",
        build_case_setting(case),
        find_step_spread(
            curves,
            workload,
            cluster,
            compute_format,
            waiting_share=waiting / step.total,
            launch_share=step.launch / step.total,
        ),
    )
    notes.record_calibrations(spread.calibration_ids)
    time = estimate_modelled_time(
        count_flops_per_token(profile, workload),
        step,
        tokens=case.step_tokens,
        peak_flops_per_second=run.peak_flops_per_second * cluster.accelerator_count,
        spread=spread,
        basis=machine.rates.get_work_basis(compute_format),
        generated=None if generated is None else generated.seconds,
    )
    citation = f"operators, collectives and schedule of the layout; {spread.source}"
    notes.cite_reference("/efficiency", citation)
    return _apply_rates(run._replace(known=known, generated=generated), time)


def generate_rollout(
    profile: ModelProfile,
    workload: TrainingWorkload,
    step_sequences: int,
    *,
    cluster: Cluster,
    curves: ReferenceCurves,
    notes: AnswerNotes,
) -> RolloutGeneration | None:
    """Estimates a rollout for the optimizer steps of ``step_sequences`` that train on it.

    None without one.
    """
    rollout, accelerator = workload.rollout, cluster.accelerator
    if rollout is None:
        return None
    sequences = step_sequences * rollout.steps
    system = EvidenceSystem(None, None, accelerator.id, accelerator.generation)
    [spread] = find_serving_spreads(curves, ["serving_throughput"], system, profile.parameter_count)
    found = estimate_generation(
        profile,
        workload,
        sequences,
        cluster=cluster,
        calibration=curves.calibration,
        spread=spread,
    )
    if found is not None and not found.held:
        detail = "the model and a sequence do not fit on a replica; the time assumes that they do"
        notes.warn("DOES_NOT_FIT", "/workload/rollout", detail)
    return found


def _run_at_share(run: TrainingRun, efficiency: Efficiency) -> TrainingRun:
    """Estimates the run at a share of the peak rate."""
    case, notes = run.case, run.notes
    profile, workload, is_assumed = case.profile, case.workload, case.assumed is not None
    if not _is_answered(case, notes):
        return run
    fullest = _warn_of_memory(case, notes) if profile.shapes_known else None
    if not is_assumed and (workload.rollout or workload.offload != Offload()):
        detail = "generation and transfers to the host need the shapes of the model and rates of the device"
        notes.add_gap("/tokens_per_second", "ARCHITECTURE_REQUIRED", detail)
        return run
    time = estimate_training_time(
        count_flops_per_token(profile, workload),
        peak_flops_per_second=run.peak_flops_per_second,
        devices=case.cluster.accelerator_count,
        efficiency=efficiency,
        # An assumed utilization is that of the whole step.
        bubble_share=0.0 if is_assumed else case.layout.bubble_share(workload.micro_batches),
    )
    if workload.kernel is AttentionKernel.STANDARD and not is_assumed and profile.attention:
        notes.warn(
            "FUSED_KERNEL_MEASURED",
            "/workload/attention",
            "the measured runs used a fused kernel; one that stores the scores is slower",
        )
    moving = 0.0 if fullest is None else _compute_moving_seconds(case, fullest)
    if is_assumed and moving > time.seconds_per_token.value:
        notes.warn(
            "UTILIZATION_ABOVE_BANDWIDTH",
            "/efficiency/utilization",
            "at this batch size moving weights, gradients and optimizer states alone takes longer "
            "than the assumed utilization leaves",
        )
    return _apply_rates(run, time)


def _is_answered(case: TrainingCase, notes: AnswerNotes) -> bool:
    """Returns true if the work of the case is known; adds a gap if it is not."""
    profile = case.profile
    if profile.sample is None and profile.unmodelled_kinds:
        if case.unknown is not None:
            notes.add_gap("/samples_per_second", case.unknown.code, case.unknown.detail)
        else:
            notes.add_gap("/tokens_per_second", *describe_unmodelled(profile.unmodelled_kinds))
        return False
    if profile.sampled is not None and profile.sample is not None:
        try:
            forward_flops_of_sample(profile.sampled, profile.sample)
        except PlanningError as error:
            notes.add_gap("/samples_per_second", error.code, error.detail)
            return False
    if not profile.shapes_known:
        notes.warn(
            "ATTENTION_NOT_COUNTED",
            "/model",
            "6 N D without attention scores: a parameter count says nothing of shapes",
        )
    if case.workload.rollout and profile.sample is not None:
        detail = "generating the samples of models that are asked by the sample is not modelled"
        notes.add_gap("/samples_per_second", "NOT_MODELLED", detail)
        return False
    return True


def _apply_rates(run: TrainingRun, time: TrainingTime | ModelledTime) -> TrainingRun:
    """Returns the run at these rates, until its total is trained on."""
    total, each = run.case.total_tokens, run.tokens_of_sample
    if total is None:
        return run._replace(time=time)
    return run._replace(
        time=time,
        tokens=None if each is None else exact(total * each),
        duration_seconds=scaled(time.seconds_per_token, total),
        total_flops=total * time.flops.hardware,
    )


def _apply_time_factor(run: TrainingRun) -> TrainingRun:
    """Returns the run with the case's time factor applied."""
    factor = run.case.time_factor
    if factor is None or run.time is None:
        return run
    time = run.time.slow_to(
        scaled(run.time.seconds_per_token, factor),
        peak_flops_per_second=run.peak_flops_per_second * run.case.cluster.accelerator_count,
    )
    return _apply_rates(run, time)


def _add_interruptions(run: TrainingRun) -> TrainingRun:
    """Returns the run with its checkpoints and the time that it loses to failures."""
    step = None
    if run.time and run.case.batch_known:
        step = scaled(run.time.seconds_per_token, run.case.step_tokens)
    found = estimate_interruptions(run.case, step=step, productive=run.duration_seconds, notes=run.notes)
    return run._replace(interruptions=found, duration_seconds=found.duration)


def _add_data(run: TrainingRun) -> TrainingRun:
    """Returns the run with its waits for data."""
    case, pipeline = run.case, run.case.data_pipeline
    if pipeline is None:
        return run
    note_unknown_stages(pipeline, run.notes)
    if run.time is None:
        return run
    if not case.batch_known:
        detail = "the sequences of a step do not follow from the question"
        run.notes.add_gap("/data_pipeline", "BATCH_REQUIRED", detail)
        return run
    tokens, total = case.step_tokens, case.total_tokens
    data = estimate_data_time(case, pipeline, scaled(run.time.seconds_per_token, tokens))
    time = run.time.slow_to(
        scaled(data.step, 1.0 / tokens),
        peak_flops_per_second=run.peak_flops_per_second * case.cluster.accelerator_count,
    )
    return run._replace(
        time=time,
        working_time=run.time,
        data=data,
        duration_seconds=None if total is None else scaled(time.seconds_per_token, total),
    )


def _compute_moving_seconds(case: TrainingCase, fullest: StageMemory) -> float:
    """Seconds per token of the cluster to move the training state at full bandwidth."""
    bandwidth = case.cluster.accelerator.bandwidth_bytes_per_second
    if not bandwidth:
        return 0.0
    unsharded = compute_unsharded_state(case.profile, case.workload, case.layout, fullest.stage)
    moved = weight_traffic_bytes(fullest.state, unsharded, case.workload.micro_batches)
    return moved / bandwidth / case.step_tokens


def _warn_of_memory(case: TrainingCase, notes: AnswerNotes) -> StageMemory:
    """Returns the fullest stage; warns where it does not fit."""
    overhead = case.curves.training_memory.overhead
    stage = estimate_training_memory(case.profile, case.workload, case.layout, overhead)[0]
    usable, needed = get_usable_bytes(case.cluster, case.workload), stage.total_bytes
    if usable is not None and needed > usable:
        warn_too_large(notes, needed, usable)
    return stage
