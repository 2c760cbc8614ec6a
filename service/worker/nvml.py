"""Device data as the driver reports them. An unreported value is a gap, never a 0."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import MISSING

from service.protocol.nodes import NodeGap
from service.worker.benchmark import Unsupported
from service.worker.nvml_fields import find_field_number, read_driver_version

T = TypeVar("T")


@contextmanager
def open_nvml() -> Iterator[Any]:
    """Opens the NVML bindings; raises :class:`Unsupported` without bindings or driver."""
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
    """Returns the handle of the accelerator at an index; raises :class:`Unsupported` if it is gone."""
    try:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        raise Unsupported(f"accelerator {index}: {error}") from None


def is_device_lost(index: int | None) -> bool:
    """Returns true if the driver says that an accelerator does not answer any more."""
    if index is None:
        return False
    try:
        with open_nvml() as nvml:
            try:
                nvml.nvmlDeviceGetTemperature(
                    nvml.nvmlDeviceGetHandleByIndex(index), nvml.NVML_TEMPERATURE_GPU
                )
            except nvml.NVMLError as error:
                return bool(error.value == nvml.NVML_ERROR_GPU_IS_LOST)
    except Unsupported:
        return False
    return False


def decode_text(value: str | bytes) -> str:
    """Decodes strings of the bindings, which are bytes in some versions and places."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class NvmlAnswers:
    """Queries NVML, and records a gap for each query without an answer."""

    def __init__(self, nvml: Any, at: str) -> None:  # noqa: ANN401
        self.nvml = nvml
        self.at = at
        self._gaps: dict[str, NodeGap] = {}
        self._driver: str | None = None

    @property
    def gaps(self) -> list[NodeGap]:
        """A gap for each member without a value."""
        return list(self._gaps.values())

    def record_gap(self, member: str, code: str, detail: str) -> None:
        """Records that a member is unknown."""
        pointer = f"{self.at}/{member}"
        self._gaps[pointer] = NodeGap(pointer=pointer, code=code, detail=_clean_line(detail))

    def query_member(self, member: str, question: Callable[[], T]) -> T | MISSING:
        """Returns the answer to a query, or MISSING."""
        try:
            return question()
        except self.nvml.NVMLError as error:
            codes = {
                self.nvml.NVML_ERROR_NO_PERMISSION: "no-permission",
                self.nvml.NVML_ERROR_GPU_IS_LOST: "device-lost",
            }
            self.record_gap(member, codes.get(error.value, "not-supported"), str(error))
        except AttributeError as error:
            # Bindings and driver have versions of their own; either may lack a query.
            self.record_gap(member, "not-in-bindings", str(error))
        return MISSING

    def query_field(
        self,
        member: str,
        handle: Any,  # noqa: ANN401
        name: str,
        *,
        is_counter: bool = False,
    ) -> int | MISSING:
        """Returns a field value by the name of its constant; counters have 64 bits, or are something else."""
        number = self._find_number(member, name)
        if number is None:
            return MISSING
        value = self.query_member(member, lambda: self.nvml.nvmlDeviceGetFieldValues(handle, [number])[0])
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
        is_wide = value.valueType == self.nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
        if value.valueType not in kinds or (is_counter and not is_wide):
            self.record_gap(member, "wrong-type", f"{name}, {number}, has values of type {value.valueType}")
            return MISSING
        return int(getattr(value.value, kinds[value.valueType]))

    def _find_number(self, member: str, name: str) -> int | None:
        in_bindings = self.query_member(member, lambda: int(getattr(self.nvml, name)))
        if in_bindings is MISSING:
            return None
        driver = self.query_member(member, self._read_driver)
        if driver is MISSING:
            return None
        number = find_field_number(name, in_bindings, read_driver_version(driver))
        if number is None:
            self.record_gap(member, "no-field-number", f"driver {driver} has no known number of {name}")
        return number

    def _read_driver(self) -> str:
        if self._driver is None:
            self._driver = decode_text(self.nvml.nvmlSystemGetDriverVersion())
        return self._driver


def _raise_error(error: Exception) -> int:
    raise error


def _clean_line(detail: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in detail)[:500]
