"""The device as a whole: launches and power."""

from typing import Annotated, Literal

from pydantic import Field

from service.protocol.base import ProtocolMessage
from service.protocol.work.base import INT64, WorkAmount


class LaunchLatencyWork(ProtocolMessage):
    """Time from one empty kernel to the next, launched one by one or as a graph."""

    kind: Literal["launch_latency"]
    method: Literal["stream", "graph"]
    """How the kernels are launched."""
    launches: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=INT64)]
    """Kernels of one execution."""

    def count_work(self) -> WorkAmount:
        """The launches of one execution."""
        return WorkAmount(parts=self.launches)


class PowerWork(ProtocolMessage):
    """Power of a device, by its energy counter over the window, idle or under a load."""

    kind: Literal["power"]
    load: Literal["idle", "context", "gemm", "stream", "decode"]
    """`idle` without any context, `context` with one that does nothing, `decode` streams weights."""
    duty: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the time in which the load runs; the device waits in between, too shortly to idle."""
    window_seconds: Annotated[float, Field(ge=1, le=600)]
    """Time over which energy is counted."""
    settle_seconds: Annotated[float, Field(ge=0, le=600)]
    """Time under the load before that."""

    def count_work(self) -> WorkAmount:
        """Nothing is counted: the figure is read."""
        return WorkAmount()
