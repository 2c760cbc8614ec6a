"""Work of the device as a whole: launches and power."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from service.protocol.work.base import INT64, Work, WorkAmount


class LaunchLatencyWork(Work):
    """Time from one empty kernel to the next, launched one by one or as a graph."""

    comparison: ClassVar[Literal["never"]] = "never"

    kind: Literal["launch_latency"]
    method: Literal["stream", "graph"]
    """Way in which the kernels are launched."""
    launches: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=INT64)]
    """Kernels of one execution."""

    def count_work(self) -> WorkAmount:
        """Returns the launches of one execution."""
        return WorkAmount(parts=self.launches)


class EnqueueLatencyWork(Work):
    """Time in which the host enqueues an empty kernel, whenever the device runs it."""

    comparison: ClassVar[Literal["never"]] = "never"

    kind: Literal["enqueue_latency"]
    caller: Literal["c", "cuda_bindings"]
    """Caller of the driver: a loop in C, or Python through cuda-bindings."""
    launches: Annotated[int, Field(ge=1, le=1000, json_schema_extra=INT64)]
    """Launches of one execution, no more than a stream queues before the host has to wait."""

    @property
    def suite_form(self) -> int:
        """2, because the first release does not know it."""
        return 2

    def count_work(self) -> WorkAmount:
        """Returns the launches of one execution."""
        return WorkAmount(parts=self.launches)


class PowerWork(Work):
    """Power of a device, by its energy counter over the window, idle or under a load."""

    comparison: ClassVar[Literal["never"]] = "never"

    kind: Literal["power"]
    load: Literal["idle", "context", "gemm", "stream", "decode"]
    """`idle` without any context, `context` with one that does nothing, `decode` streams weights."""
    duty: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the time in which the load runs. The device waits in between, too shortly to idle."""
    window_seconds: Annotated[float, Field(ge=1, le=600)]
    """Time over which energy is counted."""
    settle_seconds: Annotated[float, Field(ge=0, le=600)]
    """Time under the load before that."""

    def count_work(self) -> WorkAmount:
        """Returns no work, because the figure is read."""
        return WorkAmount()

    @property
    def needs_random_data(self) -> bool:
        """True of loads that multiply."""
        return self.load in {"gemm", "decode"}

    @property
    def reading_seconds(self) -> float:
        """Seconds of settling and of the window."""
        return self.settle_seconds + self.window_seconds


DeviceWork = LaunchLatencyWork | EnqueueLatencyWork | PowerWork
