"""What a benchmark suite is: data that says what to measure, how long, and what the figure means.

A kind of benchmark names code that the worker has; a suite can choose its parameters, within bounds, and
nothing else.
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Annotated, Literal, TypeVar

from pydantic import MISSING, Field, model_validator

from service.protocol.base import AboveZero, Name, PositiveInt53, ProtocolMessage, Seconds, SingleLine
from service.protocol.nodes import DeviceKind
from service.protocol.work import (
    BenchmarkWork,
    CapacityWork,
    CollectiveWork,
    ContextMemoryWork,
    PeerLinkWork,
    PowerWork,
)

PREPARING_SECONDS: dict[DeviceKind, float] = {"cpu": 1.0, "cuda": 5.0}
"""To start a process, make its data and check what came out: assumed, of a machine that does nothing else."""


class BenchmarkSampling(ProtocolMessage):
    """When to begin and when to stop."""

    warmup_seconds: Seconds = 3.0
    """The same work, run before the first sample."""
    most_warmup_seconds: Seconds = 0.0
    """Where it is longer: the warm-up goes on until rate and temperature stand still, at most so long."""
    least_samples: PositiveInt53 = 30
    """Take so many at least."""
    least_seconds: Seconds = 0.5
    """Sum of the samples."""
    relative_spread: Annotated[float, Field(gt=0, le=1)] = 0.01
    """Enough once the interquartile range is at most this share of the median."""
    most_samples: Annotated[int, Field(ge=1, le=20_000, json_schema_extra={"format": "int64"})] = 2000
    """Stop at so many."""
    most_seconds: Seconds = 15.0
    """Stop even if the spread is larger; the result says so."""


class PublishedRange(ProtocolMessage):
    """What has been published for a device: a figure outside is looked at, not thrown away."""

    accelerator_id: Name
    """Id of the catalog."""
    low: AboveZero | MISSING = MISSING
    """Lowest figure that is expected."""
    high: AboveZero
    """Highest figure that is expected."""
    source: SingleLine
    """Where it is published."""
    is_provisional: bool = False
    """Whether fewer than two independent sources stand behind it."""


AnyWork = TypeVar("AnyWork", bound=ProtocolMessage)


class Benchmark(ProtocolMessage):
    """One benchmark of a suite."""

    name: Name
    """Such as gemm.bf16 or hbm.copy."""
    work: BenchmarkWork
    """What one execution does."""
    metric: Literal["flops_per_second", "bytes_per_second", "seconds", "bytes", "watts"]
    """Unit of the figure."""
    direction: Literal["higher", "lower"]
    """Which of two figures is the better."""
    formula: SingleLine
    """How much work one sample does, in words and symbols."""
    repeats: Annotated[int, Field(ge=1, le=10, json_schema_extra={"format": "int64"})] = 3
    """Processes that measure it one after the other."""
    concurrent: bool = False
    """Whether all accelerators of the node measure it at the same time; the slowest is the node's figure."""
    sampling: BenchmarkSampling = BenchmarkSampling()
    timeout_seconds: Annotated[float, Field(ge=1, le=3600)] = 120.0
    """After which its process is killed."""
    windows: Annotated[list[PublishedRange], Field(max_length=50)] = []

    @model_validator(mode="after")
    def _validate_concurrency(self) -> "Benchmark":
        if self.concurrent and isinstance(self.work, CollectiveWork | PeerLinkWork):
            raise ValueError("work of several accelerators cannot be done by each at the same time")
        return self

    def get_work(self, kind: type[AnyWork]) -> AnyWork:
        """The work as one of a kind; raises TypeError where it is of another."""
        if not isinstance(self.work, kind):
            raise TypeError(f"{self.name} is no {kind.__name__}")
        return self.work

    def compute_figure(self, samples: Sequence[float], *, inner_iterations: int) -> float:
        """The figure of samples: seconds of ``inner_iterations`` executions each, or readings in its unit.

        One implementation: the node shows it, the service computes it again from the raw samples.
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
        """How long its repeats take: preparing each, and its warm-up and its samples, both at most."""
        match self.work:
            case PowerWork():
                own = self.work.settle_seconds + self.work.window_seconds
            case CapacityWork() | ContextMemoryWork():
                own = 0.0
            case _:
                rule = self.sampling
                own = max(rule.warmup_seconds, rule.most_warmup_seconds) + rule.most_seconds
        return self.repeats * (PREPARING_SECONDS[device] + own)


class BenchmarkSuite(ProtocolMessage):
    """Benchmarks that one node runs under one lease."""

    id: Name
    version: PositiveInt53
    """Rises when what is measured changes."""
    title: SingleLine
    """What the suite measures."""
    device: DeviceKind
    """What it runs on."""
    benchmarks: Annotated[list[Benchmark], Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _validate_names(self) -> "BenchmarkSuite":
        names = [benchmark.name for benchmark in self.benchmarks]
        if len(names) != len(set(names)):
            raise ValueError("two benchmarks of one name")
        return self

    def find_benchmark(self, name: str) -> Benchmark | None:
        """The benchmark of a name."""
        return next((benchmark for benchmark in self.benchmarks if benchmark.name == name), None)

    @property
    def planned_seconds(self) -> float:
        """How long the suite takes where nothing hangs."""
        return sum(benchmark.planned_seconds(self.device) for benchmark in self.benchmarks)

    @property
    def longest_seconds(self) -> float:
        """How long the suite takes if every process of it runs into its timeout."""
        return sum(benchmark.repeats * benchmark.timeout_seconds for benchmark in self.benchmarks)


@cache
def shipped_suites() -> dict[str, BenchmarkSuite]:
    """The suites that come with the service, by id."""
    folder = files("service.protocol") / "suites"
    found = [json.loads(file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".json")]
    suites = [BenchmarkSuite.model_validate(document) for document in found]
    return {suite.id: suite for suite in sorted(suites, key=lambda suite: suite.id)}
