"""Numbers of NVML's field values, which its versions have given to other fields.

Bindings and driver have versions of their own. A number of the bindings may ask a driver for another field,
which it answers: 251 is a counter of throttling in nanoseconds, or whether power smoothing is enabled. The
numbers are those of ``nvml.h`` as nvidia-ml-py 12.570.86, 12.575.51, 13.580.65 and 13.580.82 have it. To a
driver that is older than a field, its number means nothing.
"""

import re
from typing import NamedTuple

DriverVersion = tuple[int, ...]


class FieldNumbers(NamedTuple):
    """Numbers of the fields that moved, in drivers from one version up to another."""

    first: DriverVersion
    end: DriverVersion | None
    numbers: dict[str, int]


_MOVED = (
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
)
_RANGES = (
    FieldNumbers((575,), (580, 66), dict(zip(_MOVED, (251, 252, 253), strict=True))),
    FieldNumbers((580, 82), None, dict(zip(_MOVED, (269, 270, 271), strict=True))),
)
_ADDED: dict[str, DriverVersion] = {"NVML_FI_DEV_POWER_INSTANT": (525,)}
"""First driver with a field. nvidia-ml-py 11.525.112 to 13.615.71 have one number for each."""


def read_driver_version(text: str) -> DriverVersion:
    """Returns the numbers of a driver's version, such as 580.159.03; empty if it has none."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def find_field_number(name: str, in_bindings: int, driver: DriverVersion) -> int | None:
    """Returns the number of a field in a driver; None if it has none there, or an unknown one."""
    if name not in _MOVED:
        return in_bindings if driver >= _ADDED.get(name, ()) else None
    return next(
        (
            fields.numbers[name]
            for fields in _RANGES
            if fields.first <= driver and (fields.end is None or driver < fields.end)
        ),
        None,
    )
