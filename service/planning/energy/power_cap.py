"""Power cap below a device's own limit: the remaining clock, and the time of the work under it.

A device under a cap lowers its clock, and its voltage with it, until it draws no more. Of its draw while
kernels run, one part scales with the clock and one does not:

    busy(f) = fixed + clocked(f)                                                       W
    fixed      idle power, communication, and energy of a byte times bytes / b(f)
    clocked    (active + unpacking + matrix (m / (f b(f)))^g) x limit x f v(f)^2
    b(f)    = b - m + m / f                                                            s

with f the share of the clock that the work has under the device's own limit, b the seconds in which kernels
run there, m those of them in which the multipliers would be busy alone: only they take longer. Switched
capacitance times voltage squared times clock is dynamic power (Chandrakasan, Sheng and Brodersen 1992). The
voltage falls with the clock to a floor, below which only the clock falls:

    v(f) = max(floor, f)                                        floor 0.82

The floor is read off clocks, times and energies of A100 SXM in a pass of GPT-3 175B (Chung et al. 2024,
Perseus: published profiles): dynamic power falls as the cube of the clock to 0.82 of it and in proportion
below. docs/methods/utility-bill.md compares the model with measurements of A100, V100 and A40. A device that
its own limit slows down counts as f = 1 there.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from service.planning.energy.power import DeviceWork, device_watts, idle_watts
from service.planning.errors import PlanningError
from service.planning.hardware.calibration.power import PowerRates

VOLTAGE_FLOOR: Final = 0.82
"""Lowest share of the voltage at the full clock at any lower clock; 0.75 to 0.9 in measurements."""
LOWEST_CLOCK: Final = 0.15
"""Lowest share of the clock: about 210 of 1,410 MHz (A100) and 345 of 1,980 (H100), as drivers list."""
_ROUNDS: Final = 48
_LEAST_SECONDS: Final = 1e-12


class CappedWork(NamedTuple):
    """A part of the work under a cap: its seconds, mean watts over them, and its share of the clock."""

    seconds: float
    watts: float
    clock: float


class CappedRun(NamedTuple):
    """Works that follow each other under a cap."""

    slowdown: float
    """Time over the time without the cap."""
    watts: float
    """Mean draw of a device."""
    clock: float
    """Lowest share of the clock of any part."""


def apply_power_cap(
    works: Sequence[DeviceWork], cap_watts: float, limit_watts: float, rates: PowerRates
) -> CappedRun:
    """Returns time and mean draw of ``works`` on a device of ``limit_watts`` that may draw ``cap_watts``.

    A part in which the device only waits for others lengthens like the work around it. Refuses a cap
    that no clock keeps (POWER_CAP_TOO_LOW), at /power_cap.
    """
    parts = [_cap_work(work, cap_watts, limit_watts, rates) for work in works if work.seconds > 0.0]
    before = [work for work in works if work.seconds > 0.0]
    computing = [(part, work) for part, work in zip(parts, before, strict=True) if work.matrix_seconds > 0.0]
    own = sum(work.seconds for _, work in computing)
    slower = sum(part.seconds for part, _ in computing) / own if own else 1.0
    seconds = [
        part.seconds * (slower if _is_only_waiting(work) else 1.0)
        for part, work in zip(parts, before, strict=True)
    ]
    whole = sum(seconds)
    joules = sum(part.watts * taken for part, taken in zip(parts, seconds, strict=True))
    return CappedRun(
        whole / sum(work.seconds for work in before), joules / whole, min(part.clock for part in parts)
    )


def _is_only_waiting(work: DeviceWork) -> bool:
    """Returns true if a kernel spins for other devices, which are as slow as this one."""
    return work.busy_seconds > 0.0 and not (
        work.matrix_seconds or work.moved_bytes or work.communication_seconds
    )


def _cap_work(work: DeviceWork, cap_watts: float, limit_watts: float, rates: PowerRates) -> CappedWork:
    if device_watts(work._replace(seconds=max(work.busy_seconds, _LEAST_SECONDS)), limit_watts, rates) <= (
        cap_watts
    ):
        return CappedWork(work.seconds, device_watts(work, limit_watts, rates), 1.0)
    low, high = LOWEST_CLOCK, 1.0
    if _compute_busy_watts(work, low, limit_watts, rates) > cap_watts:
        detail = "no clock of the accelerator keeps its work below this power"
        raise PlanningError("POWER_CAP_TOO_LOW", "/power_cap", detail)
    for _ in range(_ROUNDS):
        middle = (low + high) / 2.0
        if _compute_busy_watts(work, middle, limit_watts, rates) > cap_watts:
            high = middle
        else:
            low = middle
    busy_seconds = _busy_seconds(work, low)
    seconds = work.seconds - work.busy_seconds + busy_seconds
    share = busy_seconds / seconds
    watts = cap_watts * share + idle_watts(limit_watts, rates) * (1.0 - share)
    return CappedWork(seconds, watts, low)


def _busy_seconds(work: DeviceWork, clock: float) -> float:
    matrix = min(work.matrix_seconds, work.busy_seconds)
    return work.busy_seconds - matrix + matrix / clock


def _compute_busy_watts(work: DeviceWork, clock: float, limit_watts: float, rates: PowerRates) -> float:
    """Returns the watts while kernels run at a share of the clock; at 1 those of the device's own limit."""
    fixed, clocked = _split_power(work, 1.0, limit_watts, rates)
    # Where the device's own limit slows it, the clocked part is what that limit leaves.
    factor = min(1.0, (limit_watts - fixed) / clocked)
    fixed, clocked = _split_power(work, clock, limit_watts, rates)
    return fixed + factor * clocked * clock * max(VOLTAGE_FLOOR, clock) ** 2


def _split_power(
    work: DeviceWork, clock: float, limit_watts: float, rates: PowerRates
) -> tuple[float, float]:
    """Returns the fixed and the clocked part of the power, before clock and voltage."""
    seconds = _busy_seconds(work, clock)
    used = min(work.matrix_seconds, work.busy_seconds) / (clock * seconds)
    fixed = rates.idle_share + rates.communication_share * work.communication_seconds / seconds
    clocked = (
        rates.active_share
        + rates.unpacking_share * work.unpacking_seconds / work.busy_seconds
        + rates.matrix_share * used**rates.matrix_exponent
    )
    return fixed * limit_watts + rates.byte_joules * work.moved_bytes / seconds, clocked * limit_watts
