"""The parts of a throughput answer about a training run."""

from service.estimates.hints import list_hints
from service.estimates.scaling import add_scaling
from service.estimates.serving_parts import to_advice, to_bottleneck, to_phase
from service.planning.cases import TrainingCase
from service.planning.estimates import TrainingRun
from service.planning.estimates.advice import Advice as PlannedAdvice
from service.planning.estimates.compression import estimate_compression
from service.planning.estimates.data_pipeline import DataPipelineTime
from service.planning.estimates.reliability import CheckpointTimes, FailureTimes, RunInterruptions
from service.planning.estimates.training_advice import (
    TimedOperator,
    describe_terms,
    list_roofline_points,
    list_step_advice,
    list_technique_advice,
)
from service.planning.operators import TimeBound
from service.planning.quantity import Quantity, assumed, combine, inverted, scaled
from service.planning.reliability.interruptions import failure_probability
from service.planning.training import IronLawTechnique, ModelledTime, TrainingTime, unmasked_flops_per_token
from service.planning.training.data_pipeline import (
    StageSeconds,
    buffer_bytes,
    compute_step_seconds,
    count_needed_workers,
    device_utilization,
    prefetched_batches,
    read_seconds,
)
from service.planning.training.rollout import RolloutGeneration
from service.planning.units import HOUR_SECONDS
from service.planning.workload import Rollout
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_integer, to_quantity
from service.schemas.answers import OperatorEstimate, ThroughputEstimate
from service.schemas.base import EstimateAdvice
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.run_answers import (
    CheckpointEstimate,
    DataPipelineEstimate,
    DataPipelineStage,
    ReliabilityEstimate,
    RolloutEstimate,
    TrainingEstimateParts,
)


def add_training(
    answer: ThroughputEstimate, question: ThroughputEstimateRequest, run: TrainingRun, catalog: CatalogView
) -> None:
    """Rates of a training run, where its step goes, and what the question asks beside them."""
    if run.total_flops is not None:
        answer["total_flops"] = run.total_flops
    add_scaling(answer, question, run, catalog)
    case = run.case
    total, workload = case.total_tokens, case.workload
    if run.data:
        samples = None if total is None else total / workload.sample_tokens
        answer["data_pipeline"] = _to_data_pipeline(run.data, samples)
    compression = estimate_compression(run)
    if compression:
        answer["gradient_compression"] = {
            "ratio": compression.ratio,
            "compression_seconds": to_quantity(compression.compression_seconds),
            "step_seconds_without": to_quantity(compression.plain_step_seconds),
            "pays": compression.pays,
        }
    if run.generated and workload.rollout is not None:
        answer["rollout"] = _to_rollout(run.generated, case, workload.rollout)
    answer.update(_to_interruption_parts(run.interruptions))  # type: ignore[typeddict-item]
    if case.batch_known and (found := list_hints(case)):
        answer["hints"] = found
    if run.time:
        _add_step(answer, run, run.time, explain=question.explain)


def _add_step(
    answer: ThroughputEstimate, run: TrainingRun, time: TrainingTime | ModelledTime, *, explain: bool
) -> None:
    case = run.case
    profile, workload, devices = case.profile, case.workload, float(case.cluster.accelerator_count)
    rate = combine(lambda s: 1.0 / s, inverted(time.seconds_per_token))
    tokens_each = run.tokens_of_sample
    if tokens_each is not None:
        answer["tokens_per_second"] = to_quantity(scaled(rate, tokens_each))
        answer["tokens_per_second_per_device"] = to_quantity(scaled(rate, tokens_each / devices))
    answer["samples_per_second"] = to_quantity(scaled(rate, 1.0 / workload.sample_tokens))
    answer["model_flops_utilization"] = to_quantity(time.model_flops_utilization)
    answer["hardware_flops_utilization"] = to_quantity(time.hardware_flops_utilization)
    for name, flops in (
        ("hardware_flops_per_second_per_device", time.flops.hardware),
        ("model_flops_per_second_per_device", time.flops.model),
        ("unmasked_flops_per_second_per_device", unmasked_flops_per_token(profile, workload)),
    ):
        answer[name] = to_quantity(scaled(rate, flops / devices))  # type: ignore[literal-required]
    advice: list[PlannedAdvice] = []
    if explain and isinstance(time, TrainingTime):
        advice = list_technique_advice(time, workload)
    elif explain and isinstance(time, ModelledTime):
        advice = list_step_advice(run, time)
        answer["operators"] = [_to_operator(one) for one in list_roofline_points(case)]
    answer["bottleneck"] = to_bottleneck(time.bound, [to_advice(one) for one in advice])
    if not case.batch_known:
        run.notes.add_gap(
            "/step_seconds", "BATCH_REQUIRED", "the sequences of a step do not follow from the question"
        )
        return
    tokens = case.step_tokens
    answer["step_seconds"] = to_quantity(scaled(time.seconds_per_token, tokens))
    answer["breakdown"] = [to_phase(phase) for phase in (run.working_time or time).list_phases(tokens)]
    _add_data(answer, run.data)


def _to_operator(timed: TimedOperator) -> OperatorEstimate:
    point = timed.point
    return {
        "operator": point.name,
        "direction": "backward" if timed.is_backward else "forward",
        "flops": point.flops,
        "moved_bytes": round(point.moved_bytes),
        "flops_per_byte": point.intensity,
        "attainable_flops_per_second": point.attainable_flops_per_second,
        "achieved_flops_per_second": point.achieved_flops_per_second,
        "seconds": point.seconds,
        "bound": "compute" if point.bound is TimeBound.COMPUTE else "memory",
    }


def _to_rollout(generated: RolloutGeneration, case: TrainingCase, rollout: Rollout) -> RolloutEstimate:
    """How one rollout is made."""
    workload, engines = case.workload, generated.layout
    sequences = workload.sequences * workload.micro_batches * case.layout.data * rollout.steps
    responses = sequences * (workload.sequence_length - rollout.prompt_tokens)
    rate = combine(lambda seconds: responses / seconds, inverted(generated.seconds))
    return {
        "seconds": to_quantity(generated.seconds),
        "sequences": sequences,
        "generated_tokens_per_second": to_quantity(rate),
        "replicas": engines.data,
        "devices_per_replica": engines.tensor * engines.pipeline,
        "sequences_per_replica": generated.held,
    }


def _add_data(answer: ThroughputEstimate, data: DataPipelineTime | None) -> None:
    """What the devices wait for data, in the breakdown and, where it sets the time, as the bottleneck."""
    if data is None:
        return
    if data.exposed.value:
        answer["breakdown"].append({"phase": "data", "seconds": to_quantity(data.exposed), "bound": "data"})
    if data.bound:
        answer["bottleneck"] = {"bound": "data", "axis": "data", "advice": _list_data_advice(data)}


def _list_data_advice(time: DataPipelineTime) -> list[EstimateAdvice]:
    """What would bring the data up to the devices; the largest gain first."""
    pipeline, stages, computing = time.pipeline, time.stages, time.computing.value
    prefetched = pipeline.prefetched
    found: list[tuple[str, str, float]] = []
    if not prefetched:
        found.append(
            (
                "PREFETCH",
                "prepare batches during compute",
                _compute_step_seconds(time, stages, prefetched=True),
            )
        )
    if stages.preprocessing > computing and pipeline.worker_seconds is not None:
        needed = count_needed_workers(time.samples_per_replica * pipeline.worker_seconds, computing)
        shorter = _compute_step_seconds(time, stages._replace(preprocessing=computing), prefetched=prefetched)
        found.append(("MORE_WORKERS", f"{needed:.0f} workers for each replica", shorter))
    if stages.storage > computing:
        what = f"storage {stages.storage / computing:.3g} times as fast, or reading in sequence"
        shorter = _compute_step_seconds(time, stages._replace(storage=computing), prefetched=prefetched)
        found.append(("FASTER_STORAGE", what, shorter))
    if stages.transfer > computing:
        what = f"{stages.transfer / computing:.3g} times fewer bytes to each device"
        shorter = _compute_step_seconds(time, stages._replace(transfer=computing), prefetched=prefetched)
        found.append(("FEWER_DEVICE_BYTES", what, shorter))
    terms = describe_terms(IronLawTechnique.PREFETCH)
    advice: list[EstimateAdvice] = []
    for code, what, shorter in sorted(found, key=lambda change: change[2]):
        gain = 1.0 - shorter / time.step.value
        detail = f"{what}: a step takes {gain:.0%} less time; {terms}"
        advice.append({"code": code, "detail": detail, "gain_share": gain})
    return advice


def _compute_step_seconds(time: DataPipelineTime, stages: StageSeconds, *, prefetched: bool) -> float:
    return compute_step_seconds(time.computing.value, stages, prefetched=prefetched)


def _to_interruption_parts(found: RunInterruptions) -> TrainingEstimateParts:
    """Checkpoint, reliability and goodput of an answer."""
    parts: TrainingEstimateParts = {}
    if found.checkpoint:
        parts["checkpoint"] = _to_checkpoint(found.checkpoint, found.step)
    if found.failures:
        parts["reliability"] = _to_reliability(found, found.failures)
    if found.goodput:
        parts["goodput"] = to_quantity(found.goodput)
    return parts


def _to_checkpoint(checkpoint: CheckpointTimes, step: Quantity | None) -> CheckpointEstimate:
    answer: CheckpointEstimate = {
        "bytes": to_integer(checkpoint.bytes),
        "bytes_per_device": to_integer(checkpoint.bytes_per_device),
    }
    if checkpoint.write_seconds is not None:
        answer["write_seconds"] = to_quantity(assumed(checkpoint.write_seconds))
    if checkpoint.stall_seconds is not None:
        answer["stall_seconds"] = to_quantity(assumed(checkpoint.stall_seconds))
    if checkpoint.interval is not None:
        answer["interval_seconds"] = to_quantity(checkpoint.interval)
        if step is not None:
            answer["interval_steps"] = max(1, to_integer(checkpoint.interval.value / step.value))
    return answer


def _to_reliability(found: RunInterruptions, failures: FailureTimes) -> ReliabilityEstimate:
    answer: ReliabilityEstimate = {
        "mean_time_between_failures_seconds": to_quantity(failures.mtbf),
        "restart_seconds": to_quantity(failures.restart),
    }
    productive = found.productive
    if productive is None:
        return answer
    answer["failure_probability"] = failure_probability(productive.value, failures.mtbf.value)
    times = {
        "productive_seconds": lambda elapsed: elapsed.productive,
        "checkpoint_seconds": lambda elapsed: elapsed.checkpoints,
        "lost_work_seconds": lambda elapsed: elapsed.lost_work,
        "restarting_seconds": lambda elapsed: elapsed.restarts,
    }
    if found.goodput is None:
        return answer
    for name, pick in times.items():
        part = found.estimate_part(pick)
        if part is not None:
            answer[name] = to_quantity(part)  # type: ignore[literal-required]
    expected = found.estimate_part(lambda elapsed: elapsed.failures)
    if expected is not None:
        answer["expected_failures"] = expected.value
    duration = found.duration
    if duration is not None:
        hours = scaled(duration, failures.devices / HOUR_SECONDS)
        corrupted = combine(lambda h, each: h * each, hours, failures.corruptions_per_device_hour)
        answer["expected_silent_corruptions"] = to_quantity(corrupted)
    return answer


def _to_data_pipeline(time: DataPipelineTime, total_samples: float | None) -> DataPipelineEstimate:
    """The data pipeline of an answer."""
    pipeline, stages = time.pipeline, time.stages
    times = {
        "storage": stages.storage,
        "preprocessing": stages.preprocessing,
        "transfer": stages.transfer,
    }
    known: list[DataPipelineStage] = [
        {"name": name, "seconds": to_quantity(assumed(seconds))}  # type: ignore[typeddict-item]
        for name, seconds in times.items()
        if seconds
    ]
    known.append({"name": "compute", "seconds": to_quantity(time.computing)})
    slowest = max(known, key=lambda stage: stage["seconds"]["value"])
    busy = combine(
        lambda c: device_utilization(c, compute_step_seconds(c, stages, prefetched=pipeline.prefetched)),
        time.computing,
    )
    ready = prefetched_batches(pipeline.workers, pipeline.prefetch_factor) if pipeline.prefetched else 0.0
    held = buffer_bytes(pipeline.device_bytes * time.samples_per_replica, prefetched=ready)
    answer: DataPipelineEstimate = {
        "stages": known,
        "slowest": slowest["name"],
        "exposed_seconds": to_quantity(time.exposed),
        "device_utilization": to_quantity(busy),
        "buffer_bytes": to_integer(held),
    }
    if pipeline.worker_seconds is not None:
        batch = time.samples_per_replica * pipeline.worker_seconds
        answer["workers_needed"] = to_integer(max(count_needed_workers(batch, time.computing.value), 1.0))
    _add_dataset(answer, time, total_samples)
    return answer


def _add_dataset(answer: DataPipelineEstimate, time: DataPipelineTime, total_samples: float | None) -> None:
    pipeline = time.pipeline
    size, rate, read = pipeline.dataset_bytes, pipeline.compute_read_rate(time.nodes), None
    if pipeline.stored_bytes is not None and total_samples is not None:
        read = total_samples * pipeline.stored_bytes
    if size is not None and read is not None:
        answer["epochs"] = read / size
    # A run whose dataset is not given reads it once.
    size = read if size is None else size
    if size is None:
        return
    answer["dataset_bytes"] = to_integer(size)
    if rate is not None:
        answer["stream_seconds"] = to_quantity(assumed(read_seconds(size, rate)))
