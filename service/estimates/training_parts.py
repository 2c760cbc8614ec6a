"""The parts of a throughput answer about a training run beside its step."""

from pydantic import MISSING

from service.estimates.compression import compression_answer
from service.estimates.data_pipeline import DataTime, data_advice, data_answer
from service.estimates.hints import hints
from service.estimates.reliability import interruption_parts
from service.estimates.run import Run, step_tokens
from service.estimates.scaling import scaling_parts
from service.planning.workload import TrainingWorkload
from service.questions.answer import quantity
from service.questions.answers import ThroughputAnswer
from service.questions.catalog import Catalog
from service.questions.estimates import ThroughputQuestion
from service.questions.workloads import TrainingWorkloadInput


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
        samples = None if total is None else total / workload.sequence_length
        answer["data_pipeline"] = data_answer(run.data, samples)
    compression = compression_answer(run, workload, catalog, step_tokens(run.resolved, workload))
    if compression:
        answer["gradient_compression"] = compression
    answer.update(interruption_parts(run.interruptions))  # type: ignore[typeddict-item]
    if run.resolved.batch_known:
        found = hints(given, workload, run.resolved, run.cluster.accelerator_count)
        if found:
            answer["hints"] = found


def add_data(answer: ThroughputAnswer, data: DataTime | None) -> None:
    """What the devices wait for data, in the breakdown and, where it sets the time, as the bottleneck."""
    if data is None:
        return
    if data.exposed.value:
        answer["breakdown"].append({"phase": "data", "seconds": quantity(data.exposed), "bound": "data"})
    if data.bound:
        answer["bottleneck"] = {"bound": "data", "axis": "data", "advice": data_advice(data)}
