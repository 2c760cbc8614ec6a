"""Time of a training step with the supply of its data."""

from typing import NamedTuple

from service.planning.cases import TrainingCase
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity, combine, inverted
from service.planning.training.data_pipeline import (
    DataPipeline,
    StageSeconds,
    compute_exposed_seconds,
    compute_step_seconds,
)


class DataPipelineTime(NamedTuple):
    """Time of a step: ``computing`` without its data, ``step`` with it, ``exposed`` the difference."""

    pipeline: DataPipeline
    stages: StageSeconds
    computing: Quantity
    step: Quantity
    exposed: Quantity
    nodes: float
    samples_per_replica: float

    @property
    def bound(self) -> bool:
        """True if the data, not the devices, set the time of a step."""
        needed = self.stages.slowest if self.pipeline.prefetched else self.stages.total
        return needed > self.computing.value


def estimate_data_time(case: TrainingCase, pipeline: DataPipeline, computing: Quantity) -> DataPipelineTime:
    """Returns the time of a step that computes for ``computing`` seconds and waits for its data."""
    workload, layout = case.workload, case.layout
    held = float(workload.micro_batch_size * workload.micro_batches)
    nodes = float(case.cluster.node_count)
    stages = pipeline.compute_stage_seconds(held * layout.data, replicas=float(layout.data), nodes=nodes)
    prefetched = pipeline.prefetched
    step = combine(lambda c: compute_step_seconds(c, stages, prefetched=prefetched), computing)
    exposed = combine(
        lambda c: compute_exposed_seconds(c, stages, prefetched=prefetched), inverted(computing)
    )
    return DataPipelineTime(pipeline, stages, computing, step, exposed, nodes, held)


def note_unknown_stages(pipeline: DataPipeline, notes: AnswerNotes) -> None:
    """Adds a gap for each stage whose time is not known; such a stage takes no time."""
    storage = pipeline.storage_rate if pipeline.node_rate is None else pipeline.node_rate
    needed = {
        "stored_bytes_per_sample": pipeline.stored_bytes,
        "storage_bandwidth_bytes_per_second": storage,
        "preprocessing_seconds_per_sample": pipeline.worker_seconds,
        "host_to_device_bandwidth_bytes_per_second": pipeline.link_rate,
    }
    for name, value in needed.items():
        if value is None:
            detail = f"the stage takes no time: {name} is not known"
            notes.add_gap("/data_pipeline/stages", "STAGE_UNKNOWN", detail)
