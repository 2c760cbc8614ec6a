"""Data pipeline of a training run: its stages beside compute, and changes that shorten its steps."""

from typing import NamedTuple

from service.planning.estimates.advice import Advice
from service.planning.estimates.data_pipeline import DataPipelineTime
from service.planning.estimates.training_advice import LEAST_GAIN, describe_terms
from service.planning.quantity import Quantity, assumed, combine
from service.planning.training import IronLawTechnique
from service.planning.training.data_pipeline import (
    StageSeconds,
    buffer_bytes,
    compute_step_seconds,
    count_needed_workers,
    device_utilization,
    prefetched_batches,
    read_seconds,
)


class DataStage(NamedTuple):
    """Seconds of a stage for the samples of a step."""

    name: str
    seconds: Quantity


class DataUse(NamedTuple):
    """Figures of a data pipeline; None for what is not known."""

    stages: tuple[DataStage, ...]
    exposed_seconds: Quantity
    device_utilization: Quantity
    buffer_bytes: float
    workers_needed: float | None = None
    dataset_bytes: float | None = None
    """Bytes of the dataset; those that the run reads where none is given."""
    stream_seconds: Quantity | None = None
    """Seconds to read the dataset once."""
    epochs: float | None = None

    @property
    def slowest(self) -> DataStage:
        """The stage that takes longest."""
        return max(self.stages, key=lambda stage: stage.seconds.value)


def estimate_data_use(time: DataPipelineTime, total_samples: float | None) -> DataUse:
    """Returns the figures of a run's data pipeline; ``total_samples`` are those of the whole run."""
    pipeline, stages = time.pipeline, time.stages
    busy = combine(
        lambda c: device_utilization(c, compute_step_seconds(c, stages, prefetched=pipeline.prefetched)),
        time.computing,
    )
    ready = prefetched_batches(pipeline.workers, pipeline.prefetch_factor) if pipeline.prefetched else 0.0
    workers = None
    if pipeline.worker_seconds is not None:
        batch = time.samples_per_replica * pipeline.worker_seconds
        workers = max(count_needed_workers(batch, time.computing.value), 1.0)
    known = [DataStage(name, assumed(seconds)) for name, seconds in stages._asdict().items() if seconds]
    found = DataUse(
        (*known, DataStage("compute", time.computing)),
        time.exposed,
        busy,
        buffer_bytes(pipeline.device_bytes * time.samples_per_replica, prefetched=ready),
        workers,
    )
    return _add_dataset(found, time, total_samples)


def _add_dataset(found: DataUse, time: DataPipelineTime, total_samples: float | None) -> DataUse:
    pipeline = time.pipeline
    size, rate, read = pipeline.dataset_bytes, pipeline.compute_read_rate(time.nodes), None
    if pipeline.stored_bytes is not None and total_samples is not None:
        read = total_samples * pipeline.stored_bytes
    epochs = None if size is None or read is None else read / size
    # A run whose dataset is not given reads it once.
    size = read if size is None else size
    stream = None if size is None or rate is None else assumed(read_seconds(size, rate))
    return found._replace(dataset_bytes=size, stream_seconds=stream, epochs=epochs)


class _Change(NamedTuple):
    code: str
    what: str
    step_seconds: float


def list_data_advice(time: DataPipelineTime) -> list[Advice]:
    """Lists the changes that bring the data up to the devices; the largest gain first."""
    terms = describe_terms(IronLawTechnique.PREFETCH)
    advice: list[Advice] = []
    for change in sorted(_list_changes(time), key=lambda change: change.step_seconds):
        gain = 1.0 - change.step_seconds / time.step.value
        if gain < LEAST_GAIN:
            continue
        advice.append(Advice(change.code, f"{change.what}: a step takes {gain:.0%} less time; {terms}", gain))
    return advice


def _list_changes(time: DataPipelineTime) -> list[_Change]:
    pipeline, stages, computing = time.pipeline, time.stages, time.computing.value

    def change(code: str, what: str, changed: StageSeconds, *, prefetched: bool) -> _Change:
        return _Change(code, what, compute_step_seconds(computing, changed, prefetched=prefetched))

    prefetched = pipeline.prefetched
    found: list[_Change] = []
    if not prefetched:
        found.append(change("PREFETCH", "prepare batches during compute", stages, prefetched=True))
    if stages.preprocessing > computing and pipeline.worker_seconds is not None:
        needed = count_needed_workers(time.samples_per_replica * pipeline.worker_seconds, computing)
        what, changed = f"{needed:.0f} workers for each replica", stages._replace(preprocessing=computing)
        found.append(change("MORE_WORKERS", what, changed, prefetched=prefetched))
    if stages.storage > computing:
        what = f"storage {stages.storage / computing:.3g} times as fast, or reading in sequence"
        changed = stages._replace(storage=computing)
        found.append(change("FASTER_STORAGE", what, changed, prefetched=prefetched))
    if stages.transfer > computing:
        what = f"{stages.transfer / computing:.3g} times fewer bytes to each device"
        changed = stages._replace(transfer=computing)
        found.append(change("FEWER_DEVICE_BYTES", what, changed, prefetched=prefetched))
    return found
