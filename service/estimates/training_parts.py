"""The parts of a throughput answer about a training run."""

from service.estimates.hints import list_hints
from service.estimates.scaling import add_scaling
from service.estimates.serving_parts import advice_answer, bottleneck, phase_answer
from service.planning.cases import TrainingCase
from service.planning.estimates import TrainingRun
from service.planning.estimates.advice import Advice as PlannedAdvice
from service.planning.estimates.compression import estimate_compression
from service.planning.estimates.data_pipeline import DataTime
from service.planning.estimates.reliability import Checkpoint, Failures, Interruptions
from service.planning.estimates.training_advice import (
    TimedOperator,
    describe_terms,
    list_roofline_points,
    list_step_advice,
    list_technique_advice,
)
from service.planning.operators import Bound
from service.planning.quantity import Quantity, assumed, combine, inverted, scaled
from service.planning.reliability.interruptions import failure_probability
from service.planning.training import ModelledTime, Technique, TrainingTime, unmasked_flops_per_token
from service.planning.training.data_pipeline import (
    StageSeconds,
    buffer_bytes,
    device_utilization,
    prefetched_batches,
    read_seconds,
    step_seconds,
    workers_needed,
)
from service.planning.training.rollout import Generation
from service.planning.units import HOUR_SECONDS
from service.planning.workload import Rollout
from service.resolve.catalog import CatalogView
from service.schemas.answer import quantity, whole
from service.schemas.answers import OperatorAnswer, ThroughputAnswer
from service.schemas.base import Advice
from service.schemas.estimates import ThroughputQuestion
from service.schemas.run_answers import (
    CheckpointAnswer,
    DataPipelineAnswer,
    DataStage,
    ReliabilityAnswer,
    RolloutAnswer,
    TrainingParts,
)


def add_training(
    answer: ThroughputAnswer, question: ThroughputQuestion, run: TrainingRun, catalog: CatalogView
) -> None:
    """Rates of a training run, where its step goes, and what the question asks beside them."""
    if run.total_flops is not None:
        answer["total_flops"] = run.total_flops
    add_scaling(answer, question, run, catalog)
    case = run.case
    total, workload = case.total_tokens, case.workload
    if run.data:
        samples = None if total is None else total / workload.sample_tokens
        answer["data_pipeline"] = _data_answer(run.data, samples)
    compression = estimate_compression(run)
    if compression:
        answer["gradient_compression"] = {
            "ratio": compression.ratio,
            "compression_seconds": quantity(compression.compression_seconds),
            "step_seconds_without": quantity(compression.plain_step_seconds),
            "pays": compression.pays,
        }
    if run.generated and workload.rollout is not None:
        answer["rollout"] = _rollout_answer(run.generated, case, workload.rollout)
    answer.update(_interruption_parts(run.interruptions))  # type: ignore[typeddict-item]
    if case.batch_known and (found := list_hints(case)):
        answer["hints"] = found
    if run.time:
        _add_step(answer, run, run.time, explain=question.explain)


def _add_step(
    answer: ThroughputAnswer, run: TrainingRun, time: TrainingTime | ModelledTime, *, explain: bool
) -> None:
    case = run.case
    profile, workload, devices = case.profile, case.workload, float(case.cluster.accelerator_count)
    rate = combine(lambda s: 1.0 / s, inverted(time.seconds_per_token))
    tokens_each = run.tokens_of_sample
    if tokens_each is not None:
        answer["tokens_per_second"] = quantity(scaled(rate, tokens_each))
        answer["tokens_per_second_per_device"] = quantity(scaled(rate, tokens_each / devices))
    answer["samples_per_second"] = quantity(scaled(rate, 1.0 / workload.sample_tokens))
    answer["model_flops_utilization"] = quantity(time.model_flops_utilization)
    answer["hardware_flops_utilization"] = quantity(time.hardware_flops_utilization)
    for name, flops in (
        ("hardware_flops_per_second_per_device", time.flops.hardware),
        ("model_flops_per_second_per_device", time.flops.model),
        ("unmasked_flops_per_second_per_device", unmasked_flops_per_token(profile, workload)),
    ):
        answer[name] = quantity(scaled(rate, flops / devices))  # type: ignore[literal-required]
    advice: list[PlannedAdvice] = []
    if explain and isinstance(time, TrainingTime):
        advice = list_technique_advice(time, workload)
    elif explain and isinstance(time, ModelledTime):
        advice = list_step_advice(run, time)
        answer["operators"] = [_operator_answer(one) for one in list_roofline_points(case)]
    answer["bottleneck"] = bottleneck(time.bound, [advice_answer(one) for one in advice])
    if not case.batch_known:
        run.notes.gap(
            "/step_seconds", "BATCH_REQUIRED", "the sequences of a step do not follow from the question"
        )
        return
    tokens = case.step_tokens
    answer["step_seconds"] = quantity(scaled(time.seconds_per_token, tokens))
    answer["breakdown"] = [phase_answer(phase) for phase in (run.working_time or time).phases(tokens)]
    _add_data(answer, run.data)


def _operator_answer(timed: TimedOperator) -> OperatorAnswer:
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
        "bound": "compute" if point.bound is Bound.COMPUTE else "memory",
    }


def _rollout_answer(generated: Generation, case: TrainingCase, rollout: Rollout) -> RolloutAnswer:
    """How one rollout is made."""
    workload, engines = case.workload, generated.layout
    sequences = workload.sequences * workload.micro_batches * case.layout.data * rollout.steps
    responses = sequences * (workload.sequence_length - rollout.prompt_tokens)
    rate = combine(lambda seconds: responses / seconds, inverted(generated.seconds))
    return {
        "seconds": quantity(generated.seconds),
        "sequences": sequences,
        "generated_tokens_per_second": quantity(rate),
        "replicas": engines.data,
        "devices_per_replica": engines.tensor * engines.pipeline,
        "sequences_per_replica": generated.held,
    }


def _add_data(answer: ThroughputAnswer, data: DataTime | None) -> None:
    """What the devices wait for data, in the breakdown and, where it sets the time, as the bottleneck."""
    if data is None:
        return
    if data.exposed.value:
        answer["breakdown"].append({"phase": "data", "seconds": quantity(data.exposed), "bound": "data"})
    if data.bound:
        answer["bottleneck"] = {"bound": "data", "axis": "data", "advice": _data_advice(data)}


def _data_advice(time: DataTime) -> list[Advice]:
    """What would bring the data up to the devices; the largest gain first."""
    pipeline, stages, computing = time.pipeline, time.stages, time.computing.value
    prefetched = pipeline.prefetched
    found: list[tuple[str, str, float]] = []
    if not prefetched:
        found.append(("PREFETCH", "prepare batches during compute", _step(time, stages, prefetched=True)))
    if stages.preprocessing > computing and pipeline.worker_seconds is not None:
        needed = workers_needed(time.samples_per_replica * pipeline.worker_seconds, computing)
        shorter = _step(time, stages._replace(preprocessing=computing), prefetched=prefetched)
        found.append(("MORE_WORKERS", f"{needed:.0f} workers for each replica", shorter))
    if stages.storage > computing:
        what = f"storage {stages.storage / computing:.3g} times as fast, or reading in sequence"
        shorter = _step(time, stages._replace(storage=computing), prefetched=prefetched)
        found.append(("FASTER_STORAGE", what, shorter))
    if stages.transfer > computing:
        what = f"{stages.transfer / computing:.3g} times fewer bytes to each device"
        shorter = _step(time, stages._replace(transfer=computing), prefetched=prefetched)
        found.append(("FEWER_DEVICE_BYTES", what, shorter))
    terms = describe_terms(Technique.PREFETCH)
    advice: list[Advice] = []
    for code, what, shorter in sorted(found, key=lambda change: change[2]):
        gain = 1.0 - shorter / time.step.value
        detail = f"{what}: a step takes {gain:.0%} less time; {terms}"
        advice.append({"code": code, "detail": detail, "gain_share": gain})
    return advice


def _step(time: DataTime, stages: StageSeconds, *, prefetched: bool) -> float:
    return step_seconds(time.computing.value, stages, prefetched=prefetched)


def _interruption_parts(found: Interruptions) -> TrainingParts:
    """Checkpoint, reliability and goodput of an answer."""
    parts: TrainingParts = {}
    if found.checkpoint:
        parts["checkpoint"] = _checkpoint_answer(found.checkpoint, found.step)
    if found.failures:
        parts["reliability"] = _reliability_answer(found, found.failures)
    if found.goodput:
        parts["goodput"] = quantity(found.goodput)
    return parts


def _checkpoint_answer(checkpoint: Checkpoint, step: Quantity | None) -> CheckpointAnswer:
    answer: CheckpointAnswer = {
        "bytes": whole(checkpoint.bytes),
        "bytes_per_device": whole(checkpoint.bytes_per_device),
    }
    if checkpoint.write_seconds is not None:
        answer["write_seconds"] = quantity(assumed(checkpoint.write_seconds))
    if checkpoint.stall_seconds is not None:
        answer["stall_seconds"] = quantity(assumed(checkpoint.stall_seconds))
    if checkpoint.interval is not None:
        answer["interval_seconds"] = quantity(checkpoint.interval)
        if step is not None:
            answer["interval_steps"] = max(1, whole(checkpoint.interval.value / step.value))
    return answer


def _reliability_answer(found: Interruptions, failures: Failures) -> ReliabilityAnswer:
    answer: ReliabilityAnswer = {
        "mean_time_between_failures_seconds": quantity(failures.mtbf),
        "restart_seconds": quantity(failures.restart),
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
        part = found.part(pick)
        if part is not None:
            answer[name] = quantity(part)  # type: ignore[literal-required]
    expected = found.part(lambda elapsed: elapsed.failures)
    if expected is not None:
        answer["expected_failures"] = expected.value
    duration = found.duration
    if duration is not None:
        hours = scaled(duration, failures.devices / HOUR_SECONDS)
        corrupted = combine(lambda h, each: h * each, hours, failures.corruptions_per_device_hour)
        answer["expected_silent_corruptions"] = quantity(corrupted)
    return answer


def _data_answer(time: DataTime, total_samples: float | None) -> DataPipelineAnswer:
    """The data pipeline of an answer."""
    pipeline, stages = time.pipeline, time.stages
    times = {
        "storage": stages.storage,
        "preprocessing": stages.preprocessing,
        "transfer": stages.transfer,
    }
    known: list[DataStage] = [
        {"name": name, "seconds": quantity(assumed(seconds))}  # type: ignore[typeddict-item]
        for name, seconds in times.items()
        if seconds
    ]
    known.append({"name": "compute", "seconds": quantity(time.computing)})
    slowest = max(known, key=lambda stage: stage["seconds"]["value"])
    busy = combine(
        lambda c: device_utilization(c, step_seconds(c, stages, prefetched=pipeline.prefetched)),
        time.computing,
    )
    ready = prefetched_batches(pipeline.workers, pipeline.prefetch_factor) if pipeline.prefetched else 0.0
    held = buffer_bytes(pipeline.device_bytes * time.samples_per_replica, prefetched=ready)
    answer: DataPipelineAnswer = {
        "stages": known,
        "slowest": slowest["name"],
        "exposed_seconds": quantity(time.exposed),
        "device_utilization": quantity(busy),
        "buffer_bytes": whole(held),
    }
    if pipeline.worker_seconds is not None:
        batch = time.samples_per_replica * pipeline.worker_seconds
        answer["workers_needed"] = whole(max(workers_needed(batch, time.computing.value), 1.0))
    _add_dataset(answer, time, total_samples)
    return answer


def _add_dataset(answer: DataPipelineAnswer, time: DataTime, total_samples: float | None) -> None:
    pipeline = time.pipeline
    size, rate, read = pipeline.dataset_bytes, pipeline.read_rate(time.nodes), None
    if pipeline.stored_bytes is not None and total_samples is not None:
        read = total_samples * pipeline.stored_bytes
    if size is not None and read is not None:
        answer["epochs"] = read / size
    # A run whose dataset is not given reads it once.
    size = read if size is None else size
    if size is None:
        return
    answer["dataset_bytes"] = whole(size)
    if rate is not None:
        answer["stream_seconds"] = quantity(assumed(read_seconds(size, rate)))
