"""Device data as the driver reports them. An unreported value is a gap, never a 0."""

import importlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

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


class DeviceUnit(NamedTuple):
    """An accelerator, or a slice of one that is divided (MIG): measured by itself."""

    handle: Any
    whole: Any
    """Handle of the accelerator that the slice is a part of, or the same handle."""
    is_divided: bool

    @property
    def is_slice(self) -> bool:
        """True for a slice."""
        return self.handle is not self.whole


def list_units(nvml: Any) -> Iterator[DeviceUnit | Exception]:  # noqa: ANN401
    """Yields what can be measured in the order of the inventory: slices take the place of their accelerator.

    An accelerator that does not answer is the error that it gave instead.
    """
    for index in range(int(nvml.nvmlDeviceGetCount())):
        try:
            whole = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            yield error
            continue
        is_divided = _is_divided(nvml, whole)
        slices = list(_list_slices(nvml, whole)) if is_divided else []
        for handle in slices or [whole]:
            yield DeviceUnit(handle, whole, is_divided)


def _is_divided(nvml: Any, whole: Any) -> bool:  # noqa: ANN401
    try:
        return bool(nvml.nvmlDeviceGetMigMode(whole)[0])
    except (nvml.NVMLError, AttributeError):
        return False


def _list_slices(nvml: Any, whole: Any) -> Iterator[Any]:  # noqa: ANN401
    for place in range(int(nvml.nvmlDeviceGetMaxMigDeviceCount(whole))):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(whole, place)
        except nvml.NVMLError:  # a place without a slice
            continue


def find_unit(nvml: Any, index: int) -> DeviceUnit:  # noqa: ANN401
    """Returns the unit at an index of the inventory; raises :class:`Unsupported` if it is gone."""
    found = next(itertools.islice(list_units(nvml), index, None), None)
    if isinstance(found, DeviceUnit):
        return found
    raise Unsupported(f"accelerator {index}: {found or 'it does not exist'}")


def get_handle(nvml: Any, index: int) -> Any:  # noqa: ANN401
    """Returns the handle of an accelerator or slice; raises :class:`Unsupported` if it is gone."""
    return find_unit(nvml, index).handle


def count_units(nvml: Any) -> int:  # noqa: ANN401
    """Counts the accelerators, or slices in their place."""
    return sum(1 for _ in list_units(nvml))


def has_slices(nvml: Any) -> bool:  # noqa: ANN401
    """Returns true on a host of which an accelerator is divided into slices."""
    return any(isinstance(unit, DeviceUnit) and unit.is_slice for unit in list_units(nvml))


def is_device_lost(index: int | None) -> bool:
    """Returns true if the driver says that an accelerator does not answer any more."""
    if index is None:
        return False
    try:
        with open_nvml() as nvml:
            unit = next(itertools.islice(list_units(nvml), index, None), None)
            try:
                if isinstance(unit, DeviceUnit):
                    nvml.nvmlDeviceGetTemperature(unit.whole, nvml.NVML_TEMPERATURE_GPU)
                elif unit is not None:
                    raise unit
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

    def __init__(self, nvml: Any, at: str, *, withheld: tuple[str, ...] = ()) -> None:  # noqa: ANN401
        """``withheld`` are beginnings of members that a whole device has, and a slice has not."""
        self.nvml = nvml
        self.at = at
        self._withheld = withheld
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
        if self._withheld and member.startswith(self._withheld):
            self.record_gap(
                member, "of-whole-device", "the device is divided, and this is not known of a slice"
            )
            return MISSING
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
