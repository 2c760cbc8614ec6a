"""How a training run is fed, saved and restarted, from a question."""

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.training.data_pipeline import INT64_BYTES, DataPipeline
from service.schemas.notes import Notes
from service.schemas.workloads import CheckpointingInput, DataPipelineInput, TrainingWorkloadInput


def data_pipeline(given: TrainingWorkloadInput, notes: Notes) -> DataPipeline | None:
    """The input pipeline; None where the question has none. Stages without their figures are gaps."""
    pipeline = given.data_pipeline
    if pipeline is MISSING:
        return None
    _note_missing(pipeline, notes)
    device_bytes = _or_none(pipeline.device_bytes_per_sample)
    return DataPipeline(
        stored_bytes=_or_none(pipeline.stored_bytes_per_sample),
        storage_rate=_or_none(pipeline.storage_bandwidth_bytes_per_second),
        node_rate=_or_none(pipeline.node_bandwidth_bytes_per_second),
        access_factor=pipeline.access_factor,
        worker_seconds=_or_none(pipeline.preprocessing_seconds_per_sample),
        workers=float(pipeline.worker_count),
        device_bytes=INT64_BYTES * given.sequence_length if device_bytes is None else device_bytes,
        link_rate=_or_none(pipeline.host_to_device_bandwidth_bytes_per_second),
        prefetched=pipeline.prefetch,
        prefetch_factor=float(pipeline.prefetch_factor),
        dataset_bytes=_or_none(pipeline.dataset_bytes),
    )


def _or_none(value: float | MISSING) -> float | None:
    return None if value is MISSING else value


def _note_missing(pipeline: DataPipelineInput, notes: Notes) -> None:
    storage, node = pipeline.storage_bandwidth_bytes_per_second, pipeline.node_bandwidth_bytes_per_second
    needed = {
        "stored_bytes_per_sample": pipeline.stored_bytes_per_sample,
        "storage_bandwidth_bytes_per_second": node if storage is MISSING else storage,
        "preprocessing_seconds_per_sample": pipeline.preprocessing_seconds_per_sample,
        "host_to_device_bandwidth_bytes_per_second": pipeline.host_to_device_bandwidth_bytes_per_second,
    }
    for name, value in needed.items():
        if value is MISSING:
            detail = f"without {name} its stage takes no time here"
            notes.gap("/data_pipeline/stages", "STAGE_UNKNOWN", detail)


def check_checkpointing(checkpointing: CheckpointingInput) -> None:
    """Refuse two intervals."""
    if checkpointing.interval_seconds is not MISSING and checkpointing.interval_steps is not MISSING:
        detail = "give interval_seconds or interval_steps"
        raise PlanningError("INTERVAL_CONFLICT", "/workload/checkpointing/interval_steps", detail)
