"""Base of all kinds of work: bounds of parameters, amounts, and the properties that validation reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from service.protocol.base import ProtocolMessage

INT64 = {"format": "int64"}
DType = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "int8"]
MatrixSide = Annotated[int, Field(ge=1, le=131_072, json_schema_extra=INT64)]
Bytes = Annotated[int, Field(ge=4, le=2**40, json_schema_extra=INT64)]
Elements = Annotated[int, Field(ge=1, le=2**36, json_schema_extra=INT64)]


@dataclass(frozen=True, slots=True)
class WorkAmount:
    """Amount of work of one execution. What does not apply is 0."""

    flops: int = 0
    moved_bytes: int = 0
    parts: int = 1
    """Equal parts of which the time of one is the figure, such as launches."""


class Work(ProtocolMessage):
    """Work of one execution of a benchmark.

    A kind of work declares here all that suites and validation have to know of it, so that neither names
    kinds. The defaults are those of work that no kernel does, such as a copy over a link.
    """

    kernel_bound: ClassVar[Literal["arithmetic", "memory", "on_chip"] | None] = None
    """Resource of the device that bounds the kernels of the work. None if no kernel does it.

    The work of kernels is held against the clock of the multiprocessors and the time of a launch, work that
    memory bounds against its data sheet, the cache and plain reads as well.
    """
    is_on_host: ClassVar[bool] = False
    """True if the host does the work, even on a node with accelerators. Limits are those of a processor."""
    is_joint: ClassVar[bool] = False
    """True if several accelerators do the work together."""
    is_reported: ClassVar[bool] = False
    """True if the times are those that a tool reports, and no process measures them."""
    comparison: ClassVar[Literal["always", "sometimes", "never"]] = "sometimes"
    """Frequency with which the worker compares the result with a reference. Never if nothing is computed."""

    @property
    def suite_form(self) -> int:
        """First form of suites that has this work; a worker is sent none of a newer form than it reads."""
        return 1

    halved: ClassVar[Mapping[str, int]] = {}
    """Parameters that are halved where a device has no room for the data, the first one first, with the least
    value of each. Empty if a smaller work would answer another question, as of a message over a link."""
    halved_multiple: ClassVar[int] = 1
    """Number of which every parameter that was halved is a multiple."""

    def count_work(self) -> WorkAmount:
        """Returns the amount of work of one execution."""
        raise NotImplementedError

    def halve(self) -> Self | None:
        """Returns the work with half of one parameter; None if there is no smaller one."""
        for name in self.halving_order:
            half, rest = divmod(getattr(self, name), 2 * self.halved_multiple)
            half *= self.halved_multiple
            if not rest and half >= self.halved[name]:
                return self.model_copy(update={name: half})
        return None

    @property
    def halving_order(self) -> Iterable[str]:
        """Parameters in the order in which they are halved."""
        return self.halved

    @property
    def needs_random_data(self) -> bool:
        """True if constant data would draw less power or run faster than data in use."""
        return self.kernel_bound in {"arithmetic", "memory"}

    @property
    def fetched_bytes_per_moved_byte(self) -> float:
        """Bytes of device memory behind each byte that is counted, at least. 0 if caches may hold them."""
        return 1.0 if self.kernel_bound == "memory" else 0.0

    def is_memory_bound(self, metric: str) -> bool:
        """Returns true if plain reads of memory bound the bytes per second of a benchmark of this metric."""
        del metric
        return self.kernel_bound == "memory"

    @property
    def checking_seconds(self) -> float:
        """Seconds of one core that the comparison with a reference takes. 0 if that is a moment."""
        return 0.0

    @property
    def reading_seconds(self) -> float | None:
        """Seconds that a reading takes. None if samples are taken by the rule of the benchmark."""
        return None
