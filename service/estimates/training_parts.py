"""The parts of a throughput answer about a training run beside its step."""

from pydantic import MISSING

from service.estimates.compression import compression_answer
from service.estimates.data_pipeline import DataTime, data_answer
from service.estimates.diagnosis import technique_terms
from service.estimates.hints import hints
from service.estimates.reliability import interruption_parts
from service.estimates.run import Run, step_tokens
from service.estimates.scaling import scaling_parts
from service.planning.parallelism import Parallelism
from service.planning.quantity import combine, inverted
from service.planning.training import Technique
from service.planning.training.data_pipeline import StageSeconds, step_seconds, workers_needed
from service.planning.training.rollout import Generation
from service.planning.workload import TrainingWorkload
from service.resolve.catalog import Catalog
from service.schemas.answer import quantity
from service.schemas.answers import ThroughputAnswer
from service.schemas.base import Advice
from service.schemas.estimates import ThroughputQuestion
from service.schemas.run_answers import RolloutAnswer
from service.schemas.workloads import TrainingWorkloadInput


def add_training_parts(
    answer: ThroughputAnswer, question: ThroughputQuestion, run: Run, catalog: Catalog
) -> None:
    """Data pipeline, checkpoints, failures, scaling and hints, as far as the question asks for them."""
    if question.scaling is not MISSING:
        parts = scaling_parts(question, run, catalog)
        if parts:
            answer["scaling"], answer["scaling_decision"] = parts
    given, workload = question.workload, run.resolved.workload
    if not isinstance(given, TrainingWorkloadInput) or not isinstance(workload, TrainingWorkload):
        return
    total = run.resolved.total_tokens
    if run.data:
        samples = None if total is None else total / workload.sample_tokens
        answer["data_pipeline"] = data_answer(run.data, samples)
    compression = compression_answer(run, workload, catalog, step_tokens(run.resolved, workload))
    if compression:
        answer["gradient_compression"] = compression
    if run.generated:
        answer["rollout"] = rollout_answer(run.generated, workload, run.resolved.layout)
    answer.update(interruption_parts(run.interruptions))  # type: ignore[typeddict-item]
    if run.resolved.batch_known:
        found = hints(given, workload, run.resolved, run.cluster.accelerator_count)
        if found:
            answer["hints"] = found


def rollout_answer(generated: Generation, workload: TrainingWorkload, layout: Parallelism) -> RolloutAnswer:
    """How one rollout is made."""
    assert workload.rollout is not None  # noqa: S101
    rollout, engines = workload.rollout, generated.layout
    sequences = workload.sequences * workload.micro_batches * layout.data * rollout.steps
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


def add_data(answer: ThroughputAnswer, data: DataTime | None) -> None:
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
    terms = technique_terms(Technique.PREFETCH)
    advice: list[Advice] = []
    for code, what, shorter in sorted(found, key=lambda change: change[2]):
        gain = 1.0 - shorter / time.step.value
        detail = f"{what}: a step takes {gain:.0%} less time; {terms}"
        advice.append({"code": code, "detail": detail, "gain_share": gain})
    return advice


def _step(time: DataTime, stages: StageSeconds, *, prefetched: bool) -> float:
    return step_seconds(time.computing.value, stages, prefetched=prefetched)
