"""How the data keeps up with the devices of a training run."""

from typing import NamedTuple

from service.planning.hardware.cluster import Cluster
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity, assumed, combine, inverted
from service.planning.training.data_pipeline import (
    DataPipeline,
    StageSeconds,
    buffer_bytes,
    device_utilization,
    exposed_seconds,
    prefetched_batches,
    read_seconds,
    step_seconds,
    workers_needed,
)
from service.planning.workload import TrainingWorkload
from service.schemas.answer import quantity, whole
from service.schemas.run_answers import DataPipelineAnswer, DataStage


class DataTime(NamedTuple):
    """A step with its data: ``computing`` without, ``step`` with, ``exposed`` the difference."""

    pipeline: DataPipeline
    stages: StageSeconds
    computing: Quantity
    step: Quantity
    exposed: Quantity
    nodes: float
    samples_per_replica: float

    @property
    def bound(self) -> bool:
        """Whether the data, not the devices, sets the time of a step."""
        needed = self.stages.slowest if self.pipeline.prefetched else self.stages.total
        return needed > self.computing.value


def data_time(
    pipeline: DataPipeline,
    computing: Quantity,
    workload: TrainingWorkload,
    layout: Parallelism,
    cluster: Cluster,
) -> DataTime:
    """What a step that computes for ``computing`` seconds waits for data."""
    held = float(workload.micro_batch_size * workload.micro_batches)
    nodes = float(cluster.node_count)
    stages = pipeline.stages(held * layout.data, replicas=float(layout.data), nodes=nodes)
    prefetched = pipeline.prefetched
    step = combine(lambda c: step_seconds(c, stages, prefetched=prefetched), computing)
    exposed = combine(lambda c: exposed_seconds(c, stages, prefetched=prefetched), inverted(computing))
    return DataTime(pipeline, stages, computing, step, exposed, nodes, held)


def data_answer(time: DataTime, total_samples: float | None) -> DataPipelineAnswer:
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
