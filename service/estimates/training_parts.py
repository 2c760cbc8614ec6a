"""Parts of a throughput answer about a training run."""

from service.estimates.scaling import add_scaling
from service.estimates.serving_parts import to_advice, to_bottleneck, to_phase
from service.planning.cases import NaiveLayout
from service.planning.estimates import TrainingRun
from service.planning.estimates.advice import Advice
from service.planning.estimates.compression import estimate_compression
from service.planning.estimates.data_pipeline import DataPipelineTime
from service.planning.estimates.data_use import DataUse, estimate_data_use, list_data_advice
from service.planning.estimates.failure_losses import count_interval_steps, estimate_failure_losses
from service.planning.estimates.recipe import list_recipe_hints
from service.planning.estimates.reliability import CheckpointTimes, RunInterruptions
from service.planning.estimates.training_advice import (
    TimedOperator,
    list_roofline_points,
    list_step_advice,
    list_technique_advice,
)
from service.planning.estimates.training_rates import estimate_rollout_rates, estimate_training_rates
from service.planning.operators import TimeBound
from service.planning.quantity import assumed
from service.planning.training import ModelledTime, TrainingTime
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_integer, to_parallelism, to_quantities, to_quantity
from service.schemas.answers import NaiveLayout as NaiveLayoutAnswer
from service.schemas.answers import OperatorEstimate, ThroughputEstimate
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.run_answers import (
    CheckpointEstimate,
    DataPipelineEstimate,
    TrainingEstimateParts,
)


def add_training(
    answer: ThroughputEstimate, question: ThroughputEstimateRequest, run: TrainingRun, catalog: CatalogView
) -> None:
    """Adds the rates of a training run, the phases of its step, and the parts that the question asks for."""
    if run.total_flops is not None:
        answer["total_flops"] = run.total_flops
    add_scaling(answer, question, run, catalog)
    total, workload = run.case.total_tokens, run.case.workload
    if run.data:
        samples = None if total is None else total / workload.sample_tokens
        answer["data_pipeline"] = _to_data_pipeline(estimate_data_use(run.data, samples))
    compression = estimate_compression(run)
    if compression:
        answer["gradient_compression"] = {
            "ratio": compression.ratio,
            "compression_seconds": to_quantity(compression.compression_seconds),
            "step_seconds_without": to_quantity(compression.plain_step_seconds),
            "pays": compression.pays,
        }
    rollout = estimate_rollout_rates(run)
    if rollout is not None:
        answer["rollout"] = to_quantities(rollout)
    answer.update(_to_interruption_parts(run.interruptions))  # type: ignore[typeddict-item]
    if run.case.naive is not None and run.case.assumed is None:
        answer["naive_layout"] = _to_naive_layout(run.case.naive)
    hints = list_recipe_hints(run.case)
    if hints:
        answer["hints"] = [to_quantities(hint) for hint in hints]
    if run.time:
        _add_step(answer, run, run.time, explain=question.explain)


def _to_naive_layout(naive: NaiveLayout) -> NaiveLayoutAnswer:
    return {
        "parallelism": to_parallelism(naive.layout, chosen=True),
        "micro_batch_size": naive.micro_batch_size,
        "recomputation": naive.recomputation,
        "step_time_ratio": naive.time_ratio,
    }


def _add_step(
    answer: ThroughputEstimate, run: TrainingRun, time: TrainingTime | ModelledTime, *, explain: bool
) -> None:
    case = run.case
    answer.update(to_quantities(estimate_training_rates(run, time)))
    advice: list[Advice] = []
    if explain and isinstance(time, TrainingTime):
        advice = list_technique_advice(time, case.workload)
    elif explain and isinstance(time, ModelledTime):
        advice = list_step_advice(run, time)
        answer["operators"] = [_to_operator(one) for one in list_roofline_points(case)]
    answer["bottleneck"] = to_bottleneck(time.bound, advice)
    if case.batch_known:
        phases = (run.working_time or time).list_phases(case.step_tokens)
        answer["breakdown"] = [to_phase(phase) for phase in phases]
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


def _add_data(answer: ThroughputEstimate, data: DataPipelineTime | None) -> None:
    """Adds the wait of the devices for data and, where data sets the time, the bottleneck."""
    if data is None:
        return
    if data.exposed.value:
        answer["breakdown"].append({"phase": "data", "seconds": to_quantity(data.exposed), "bound": "data"})
    if data.bound:
        advice = to_advice(list_data_advice(data))
        answer["bottleneck"] = {"bound": "data", "axis": "data", "advice": advice}


def _to_data_pipeline(use: DataUse) -> DataPipelineEstimate:
    answer: DataPipelineEstimate = {
        "stages": [to_quantities(stage) for stage in use.stages],
        "slowest": use.slowest.name,  # type: ignore[typeddict-item]
        "exposed_seconds": to_quantity(use.exposed_seconds),
        "device_utilization": to_quantity(use.device_utilization),
        "buffer_bytes": to_integer(use.buffer_bytes),
    }
    if use.workers_needed is not None:
        answer["workers_needed"] = to_integer(use.workers_needed)
    if use.epochs is not None:
        answer["epochs"] = use.epochs
    if use.dataset_bytes is not None:
        answer["dataset_bytes"] = to_integer(use.dataset_bytes)
    if use.stream_seconds is not None:
        answer["stream_seconds"] = to_quantity(use.stream_seconds)
    return answer


def _to_interruption_parts(found: RunInterruptions) -> TrainingEstimateParts:
    parts: TrainingEstimateParts = {}
    if found.checkpoint:
        parts["checkpoint"] = _to_checkpoint(found.checkpoint, count_interval_steps(found))
    losses = estimate_failure_losses(found)
    if losses is not None:
        parts["reliability"] = to_quantities(losses)
    if found.goodput:
        parts["goodput"] = to_quantity(found.goodput)
    return parts


def _to_checkpoint(checkpoint: CheckpointTimes, interval_steps: float | None) -> CheckpointEstimate:
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
    if interval_steps is not None:
        answer["interval_steps"] = to_integer(interval_steps)
    return answer
