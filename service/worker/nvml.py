"""The driver's own account of its devices. What a device does not report is a gap, never a 0."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import MISSING

from service.protocol.nodes import NodeGap
from service.worker.benchmark import Unsupported

T = TypeVar("T")


@contextmanager
def open_nvml() -> Iterator[Any]:
    """The NVML bindings, initialised; raises :class:`Unsupported` without bindings or driver."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        raise Unsupported("nvidia-ml-py is not installed") from None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise Unsupported(f"NVML: {error}") from None
    try:
        yield nvml
    finally:
        nvml.nvmlShutdown()


def get_handle(nvml: Any, index: int) -> Any:  # noqa: ANN401
    """Handle of the accelerator at an index of the inventory; raises :class:`Unsupported` if it is gone."""
    try:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        raise Unsupported(f"accelerator {index}: {error}") from None


def decode_text(value: str | bytes) -> str:
    """Strings of the bindings, which are bytes in some versions and places."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class NvmlAnswers:
    """Asks NVML, and keeps a gap for each question that it does not answer."""

    def __init__(self, nvml: Any, at: str) -> None:  # noqa: ANN401
        self.nvml = nvml
        self.at = at
        self._gaps: dict[str, NodeGap] = {}

    @property
    def gaps(self) -> list[NodeGap]:
        """One for each member that could not be had."""
        return list(self._gaps.values())

    def record_gap(self, member: str, code: str, detail: str) -> None:
        """Note that a member is unknown."""
        pointer = f"{self.at}/{member}"
        self._gaps[pointer] = NodeGap(pointer=pointer, code=code, detail=_clean_line(detail))

    def query_member(self, member: str, question: Callable[[], T]) -> T | MISSING:
        """The answer, or its absence."""
        try:
            return question()
        except self.nvml.NVMLError as error:
            self.record_gap(member, "not-supported", str(error))
        except AttributeError as error:
            # Bindings and driver are of their own ages; either may lack a question.
            self.record_gap(member, "not-in-bindings", str(error))
        return MISSING

    def query_field(self, member: str, handle: Any, name: str) -> int | MISSING:  # noqa: ANN401
        """A field value by the name of its constant."""
        value = self.query_member(
            member, lambda: self.nvml.nvmlDeviceGetFieldValues(handle, [getattr(self.nvml, name)])[0]
        )
        if value is MISSING:
            return MISSING
        if value.nvmlReturn != self.nvml.NVML_SUCCESS:
            return self.query_member(member, lambda: _raise_error(self.nvml.NVMLError(value.nvmlReturn)))
        kinds = {
            self.nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
            self.nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
            self.nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
            self.nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
            self.nvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
        }
        if value.valueType not in kinds:
            self.record_gap(member, "not-supported", f"{name} has values of type {value.valueType}")
            return MISSING
        return int(getattr(value.value, kinds[value.valueType]))


def _raise_error(error: Exception) -> int:
    raise error


def _clean_line(detail: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in detail)[:500]
