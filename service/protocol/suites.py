"""Benchmark suites: data that states the work, the duration and the figure of each benchmark.

A kind of benchmark names code that the worker has; a suite can choose its parameters, within bounds, and
nothing else.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import MISSING, Field, model_validator

from service.protocol.base import AboveZero, Name, PositiveInt53, ProtocolMessage, Seconds, SingleLine
from service.protocol.canonical import compute_digest
from service.protocol.nodes import DeviceKind
from service.protocol.work import BenchmarkWork

Metric: TypeAlias = Literal["flops_per_second", "bytes_per_second", "seconds", "bytes", "watts"]
MetricDirection: TypeAlias = Literal["higher", "lower"]

SUITE_FORM = 2
"""Newest form of suites, with all kinds of work and all of their parameters. The first release read 1."""
LEAST_FLOPS = 2**34
"""FLOP below which arithmetic may not bound a smaller size: those of a product of 2048 x 2048 x 2048."""
PREPARING_SECONDS: dict[DeviceKind, float] = {"cpu": 1.0, "cuda": 5.0}
"""Time to start a process, make its data and check its result: assumed, of an otherwise idle machine."""


class BenchmarkSampling(ProtocolMessage):
    """Rules for the warm-up and the number of samples of a measurement."""

    warmup_seconds: Seconds = 3.0
    """Duration of the warm-up: the same work, run before the first sample."""
    most_warmup_seconds: Seconds = 0.0
    """Longest duration of the warm-up. If it is longer than `warmup_seconds`, the warm-up goes on until rate
    and temperature are steady."""
    least_samples: PositiveInt53 = 30
    """Least number of samples."""
    least_seconds: Seconds = 0.5
    """Least sum of the samples."""
    relative_spread: Annotated[float, Field(gt=0, le=1)] = 0.01
    """Interquartile range, as a share of the median, at which there are enough samples."""
    most_samples: Annotated[int, Field(ge=1, le=20_000, json_schema_extra={"format": "int64"})] = 2000
    """Largest number of samples."""
    most_seconds: Seconds = 15.0
    """Longest sum of the samples, even if the spread is larger; the result states it."""


class PublishedRange(ProtocolMessage):
    """Published figures of a device. A figure outside the range is reviewed, not discarded."""

    accelerator_id: Name
    """Id of the accelerator in the catalog."""
    low: AboveZero | MISSING = MISSING
    """Lowest expected figure."""
    high: AboveZero
    """Highest expected figure."""
    source: SingleLine
    """Publication of the figures."""
    is_provisional: bool = False
    """True if fewer than two independent sources support the range."""


AnyWork = TypeVar("AnyWork", bound=ProtocolMessage)


class Benchmark(ProtocolMessage):
    """One benchmark of a suite."""

    name: Name
    """Name within the suite, such as gemm.bf16 or hbm.copy."""
    work: BenchmarkWork
    """Work of one execution."""
    metric: Metric
    """Unit of the figure."""
    direction: MetricDirection
    """Direction in which a figure is better."""
    formula: SingleLine
    """Amount of work of one sample, in words and symbols."""
    repeats: Annotated[int, Field(ge=1, le=10, json_schema_extra={"format": "int64"})] = 3
    """Number of processes that measure it one after the other."""
    concurrent: bool = False
    """True if all accelerators of the node measure it at the same time; the slowest gives the figure."""
    sampling: BenchmarkSampling = BenchmarkSampling()
    timeout_seconds: Annotated[float, Field(ge=1, le=3600)] = 120.0
    """Time after which its process is killed."""
    windows: Annotated[list[PublishedRange], Field(max_length=50)] = []

    @model_validator(mode="after")
    def _validate_concurrency(self) -> "Benchmark":
        if self.concurrent and self.work.is_joint:
            raise ValueError("work of several accelerators cannot be done by each at the same time")
        return self

    def get_work(self, kind: type[AnyWork]) -> AnyWork:
        """Returns the work as one of a kind; raises TypeError if it is of another kind."""
        if not isinstance(self.work, kind):
            raise TypeError(f"{self.name} is no {kind.__name__}")
        return self.work

    def list_sizes(self) -> Iterator["Benchmark"]:
        """Yields the benchmark, then the smaller ones that stand in for it where a device has no room.

        What bounds the work stays the same, as far as the work alone tells. Published windows are of the full
        size, so that a smaller one has none.
        """
        size = self
        while True:
            yield size
            work = size.work.halve()
            if work is None or not self._is_bounded_alike(work):
                return
            size = self.model_copy(update={"work": work, "windows": []})

    def _is_bounded_alike(self, work: BenchmarkWork) -> bool:
        is_arithmetic = work.kernel_bound == "arithmetic" and not work.is_memory_bound(self.metric)
        return not is_arithmetic or work.count_work().flops >= LEAST_FLOPS

    def map_sizes(self) -> dict[str, "Benchmark"]:
        """Returns the sizes of :meth:`list_sizes`, in their order, by the digest of their work."""
        return {compute_digest(size.work): size for size in self.list_sizes()}

    def compute_figure(self, samples: Sequence[float], *, inner_iterations: int) -> float:
        """Returns the figure of samples: seconds of ``inner_iterations`` executions each, or readings.

        The node shows the figure, and the service computes it again from the raw samples.
        """
        middle, amount = median(samples), self.work.count_work()
        match self.metric:
            case "flops_per_second":
                return amount.flops * inner_iterations / middle
            case "bytes_per_second":
                return amount.moved_bytes * inner_iterations / middle
            case "seconds":
                return middle / (inner_iterations * amount.parts)
            case "bytes" | "watts":
                return middle

    def planned_seconds(self, device: DeviceKind) -> float:
        """Returns the seconds of its repeats: to prepare, to check, and for warm-up and samples at most."""
        own = self.work.reading_seconds
        if own is None:
            rule = self.sampling
            own = max(rule.warmup_seconds, rule.most_warmup_seconds) + rule.most_seconds
        return self.repeats * (PREPARING_SECONDS[device] + own + self.work.checking_seconds)


class BenchmarkSuite(ProtocolMessage):
    """Benchmarks that one node runs under one lease."""

    id: Name
    version: PositiveInt53
    """Version of the suite, which rises when its measurements change."""
    title: SingleLine
    """Title of the suite."""
    device: DeviceKind
    """Kind of device that it runs on."""
    benchmarks: Annotated[list[Benchmark], Field(min_length=1, max_length=300)]

    @model_validator(mode="after")
    def _validate_names(self) -> "BenchmarkSuite":
        names = [benchmark.name for benchmark in self.benchmarks]
        if len(names) != len(set(names)):
            raise ValueError("two benchmarks have the same name")
        return self

    def find_benchmark(self, name: str) -> Benchmark | None:
        """Returns the benchmark of a name, None if there is none."""
        return next((benchmark for benchmark in self.benchmarks if benchmark.name == name), None)

    def narrow_to_form(self, form: int) -> "BenchmarkSuite":
        """Returns the suite without benchmarks of a newer form, for a worker that does not read them."""
        known = [benchmark for benchmark in self.benchmarks if benchmark.work.suite_form <= form]
        return self.model_copy(update={"benchmarks": known})

    @property
    def planned_seconds(self) -> float:
        """Duration of the suite if no process hangs."""
        return sum(benchmark.planned_seconds(self.device) for benchmark in self.benchmarks)

    @property
    def longest_seconds(self) -> float:
        """Duration of the suite if every process runs into its timeout."""
        return sum(benchmark.repeats * benchmark.timeout_seconds for benchmark in self.benchmarks)


@cache
def shipped_suites() -> dict[str, BenchmarkSuite]:
    """Returns the suites that are shipped with the service, by id."""
    folder = files("service.protocol") / "suites"
    found = [json.loads(file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".json")]
    suites = [BenchmarkSuite.model_validate(document) for document in found]
    return {suite.id: suite for suite in sorted(suites, key=lambda suite: suite.id)}
