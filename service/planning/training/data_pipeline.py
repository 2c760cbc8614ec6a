"""Input pipeline of a training step: storage, preprocessing and transfer beside compute.

Prefetched, the stages work on different batches at a time and the slowest of them sets the pace; serial, they
follow one another and their times add up (tf.data: Murray et al. 2021; PyTorch ``DataLoader`` without workers
is serial). All figures are floats or arrays of them, rates above zero.
"""

from typing import NamedTuple

from service.planning.figures import larger, rounded_up, smaller

INT64_BYTES = 8.0
"""Bytes of a token on its way to the device."""


class StageSeconds(NamedTuple):
    """Seconds of each stage for the same samples; 0 for a stage that takes none."""

    storage: float = 0.0
    preprocessing: float = 0.0
    transfer: float = 0.0

    @property
    def slowest(self) -> float:
        """Seconds of the slowest stage, the pace of a prefetched pipeline."""
        return larger(larger(self.storage, self.preprocessing), self.transfer)

    @property
    def total(self) -> float:
        """Seconds of all stages, one after the other."""
        return self.storage + self.preprocessing + self.transfer


def storage_bytes_per_second(
    disk_bytes_per_second: float, network_bytes_per_second: float, *, access_factor: float = 1.0
) -> float:
    """Returns the rate at which samples are read.

    Of drives behind a network, at the access pattern's share.
    """
    return smaller(disk_bytes_per_second, network_bytes_per_second) * access_factor


def read_seconds(size_bytes: float, bytes_per_second: float) -> float:
    """Returns the seconds to read ``size_bytes`` once: of a batch, or of a whole dataset."""
    return size_bytes / bytes_per_second


def preprocessing_seconds(samples: float, seconds_per_sample: float, *, workers: float) -> float:
    """Returns the seconds in which ``workers`` prepare ``samples`` of ``seconds_per_sample`` each."""
    return samples * seconds_per_sample / workers


def count_needed_workers(seconds_per_batch: float, compute_seconds: float) -> float:
    """Returns the least whole number of workers that prepare batches as fast as the device takes them.

    A quotient within 1e-9 of a whole number is that number: both times are measured.
    """
    return rounded_up(seconds_per_batch / compute_seconds - 1e-9)


class DataPipeline(NamedTuple):
    """Supply of samples to the devices; a member is None if not known, and its stage then takes no time.

    Bytes and seconds are of one sample, rates in bytes per second: of the storage for the whole cluster, of
    the reads of one node, and of the link from the host to each device. ``workers`` serve one data-parallel
    replica, each holding ``prefetch_factor`` batches ready.
    """

    stored_bytes: float | None = None
    storage_rate: float | None = None
    node_rate: float | None = None
    access_factor: float = 1.0
    worker_seconds: float | None = None
    workers: float = 1.0
    device_bytes: float = 0.0
    link_rate: float | None = None
    prefetched: bool = True
    prefetch_factor: float = 2.0
    dataset_bytes: float | None = None

    def compute_read_rate(self, nodes: float) -> float | None:
        """Returns the bytes per second that ``nodes`` read together, if storage or nodes bound it."""
        rates = [self.storage_rate, None if self.node_rate is None else self.node_rate * nodes]
        known = [rate for rate in rates if rate is not None]
        if not known:
            return None
        return storage_bytes_per_second(known[0], known[-1], access_factor=self.access_factor)

    def compute_stage_seconds(self, samples: float, *, replicas: float, nodes: float) -> StageSeconds:
        """Returns the seconds of each stage for the ``samples`` of a step on ``replicas`` and ``nodes``."""
        rate, each = self.compute_read_rate(nodes), samples / replicas
        nothing = 0.0 * each
        storage = nothing
        if self.stored_bytes is not None and rate is not None:
            storage = read_seconds(samples * self.stored_bytes, rate)
        preprocessing = nothing
        if self.worker_seconds is not None:
            preprocessing = preprocessing_seconds(each, self.worker_seconds, workers=self.workers)
        transfer = nothing
        if self.link_rate is not None:
            transfer = read_seconds(each * self.device_bytes, self.link_rate)
        return StageSeconds(storage, preprocessing, transfer)


def compute_step_seconds(compute_seconds: float, stages: StageSeconds, *, prefetched: bool) -> float:
    """Returns the seconds of a step with its input: the slowest of all, or their sum."""
    if prefetched:
        return larger(compute_seconds, stages.slowest)
    return compute_seconds + stages.total


def compute_exposed_seconds(compute_seconds: float, stages: StageSeconds, *, prefetched: bool) -> float:
    """Returns the seconds of a step in which the devices wait for their input."""
    if prefetched:
        return larger(stages.slowest - compute_seconds, 0.0 * compute_seconds)
    return stages.total + 0.0 * compute_seconds


def device_utilization(compute_seconds: float, seconds: float) -> float:
    """Returns the share of ``seconds`` in which a device computes, at most 1."""
    return smaller(compute_seconds / seconds, 1.0)


def prefetched_batches(workers: float, prefetch_factor: float) -> float:
    """Returns the batches that workers hold ready."""
    return workers * prefetch_factor


def buffer_bytes(
    batch_bytes: float, *, prefetched: float, processing: float = 1.0, transferring: float = 1.0
) -> float:
    """Returns the host memory of the batches held ready, at work and in transfer to the device."""
    return (prefetched + processing + transferring) * batch_bytes
