"""Resolution of the data pipeline, checkpoints and failures of a training run."""

from pydantic import MISSING

from service.planning.cases import Checkpointing, KnownLearningRate, Reliability
from service.planning.errors import PlanningError
from service.planning.hardware.curves import ReferenceCurves
from service.planning.quantity import EvidenceBasis, assumed
from service.planning.training.data_pipeline import INT64_BYTES, DataPipeline
from service.schemas.workloads import TrainingWorkloadInput


def _to_optional(value: float | MISSING) -> float | None:
    return None if value is MISSING else value


def resolve_data_pipeline(given: TrainingWorkloadInput) -> DataPipeline | None:
    """Returns the input pipeline, or None if the question has none."""
    pipeline = given.data_pipeline
    if pipeline is MISSING:
        return None
    device_bytes = _to_optional(pipeline.device_bytes_per_sample)
    return DataPipeline(
        stored_bytes=_to_optional(pipeline.stored_bytes_per_sample),
        storage_rate=_to_optional(pipeline.storage_bandwidth_bytes_per_second),
        node_rate=_to_optional(pipeline.node_bandwidth_bytes_per_second),
        access_factor=pipeline.access_factor,
        worker_seconds=_to_optional(pipeline.preprocessing_seconds_per_sample),
        workers=float(pipeline.worker_count),
        device_bytes=INT64_BYTES * given.sequence_length if device_bytes is None else device_bytes,
        link_rate=_to_optional(pipeline.host_to_device_bandwidth_bytes_per_second),
        prefetched=pipeline.prefetch,
        prefetch_factor=float(pipeline.prefetch_factor),
        dataset_bytes=_to_optional(pipeline.dataset_bytes),
    )


def resolve_checkpointing(given: TrainingWorkloadInput) -> Checkpointing | None:
    """Returns the checkpoints of the run. Refuses two intervals, and settings of a run that saves nothing."""
    asked = given.checkpointing
    if asked is MISSING:
        return None
    if asked.mode == "none":
        for name in sorted(asked.model_fields_set - {"mode"}):
            detail = "a run that saves nothing (mode none) has no such setting"
            raise PlanningError("NOT_APPLICABLE", f"/workload/checkpointing/{name}", detail)
        return Checkpointing(is_written=False)
    if asked.interval_seconds is not MISSING and asked.interval_steps is not MISSING:
        detail = "give either interval_seconds or interval_steps"
        raise PlanningError("INTERVAL_CONFLICT", "/workload/checkpointing/interval_steps", detail)
    return Checkpointing(
        is_asynchronous=asked.mode == "asynchronous",
        interval_seconds=_to_optional(asked.interval_seconds),
        interval_steps=None if asked.interval_steps is MISSING else asked.interval_steps,
        storage_rate=_to_optional(asked.storage_bandwidth_bytes_per_second),
        read_rate=_to_optional(asked.read_bandwidth_bytes_per_second),
        host_rate=_to_optional(asked.device_to_host_bandwidth_bytes_per_second),
        is_sharded=asked.sharded,
        stall_seconds=_to_optional(asked.stall_seconds),
    )


def resolve_reliability(given: TrainingWorkloadInput, curves: ReferenceCurves) -> Reliability | None:
    """Returns failure rate and restart time. Both default to those of published runs."""
    asked = given.reliability
    if asked is MISSING:
        return None
    hours, restart = asked.device_mtbf_hours, asked.restart_seconds
    return Reliability(
        curves.device_mtbf_hours.to_quantity(EvidenceBasis.REFERENCE) if hours is MISSING else assumed(hours),
        curves.restart_seconds.to_quantity(EvidenceBasis.REFERENCE)
        if restart is MISSING
        else assumed(restart),
    )


def resolve_learning_rate(given: TrainingWorkloadInput) -> KnownLearningRate | None:
    """Returns the known learning rate, or None if the question gives none."""
    asked = given.learning_rate
    return None if asked is MISSING else KnownLearningRate(asked.base, asked.base_batch_size)
