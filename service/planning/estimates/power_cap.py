"""A training run on devices that are held below their power limit."""

from collections.abc import Sequence
from typing import NamedTuple

from service.planning.energy.power import DeviceWork
from service.planning.energy.power_cap import CappedRun, apply_power_cap
from service.planning.errors import PlanningError
from service.planning.estimates.bill import RunBill
from service.planning.estimates.power import DevicePower, estimate_draw, list_training_works
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.hardware.calibration.power import PowerRates
from service.planning.quantity import EvidenceBasis, Quantity, combine

_MEASURED_ERROR = ((2 / 3, 0.04), (0.0, 0.14))
"""Largest error of the time, by the share of the power that is left (docs/methods/utility-bill.md)."""


class CappedTraining(NamedTuple):
    """A training run under a cap, and the power, the clock and the slowdown of its devices."""

    run: TrainingRun
    draw: DevicePower
    slowdown: Quantity
    """Time over that without a cap."""
    clock: float
    """Lowest share of the clock."""
    cap_watts: float | None = None
    """None without a cap."""


class CappableTraining(NamedTuple):
    """A training run whose work is known, so that a cap can be applied to it."""

    run: TrainingRun
    draw: DevicePower
    duration: Quantity
    works: Sequence[DeviceWork]
    limit_watts: float
    rates: PowerRates

    def run_uncapped(self) -> CappedTraining:
        """Returns the run under the power limit of its devices."""
        one = Quantity(1.0, 1.0, 1.0, self.draw.watts.basis)
        run = self.run._replace(notes=self.run.notes.copy())
        return CappedTraining(run, self.draw, one, self._apply(self.limit_watts).clock)

    def run_capped(self, cap_watts: float, pointer: str) -> CappedTraining:
        """Returns the run under a cap; refuses at ``pointer`` one above the limit or below every clock."""
        if cap_watts > self.limit_watts:
            detail = f"the device is limited to {self.limit_watts:.0f} W"
            raise PlanningError("POWER_CAP_TOO_HIGH", pointer, detail)
        try:
            held = self._apply(cap_watts)
        except PlanningError as error:
            raise PlanningError(error.code, pointer, error.detail) from error
        left = held.watts / self._apply(self.limit_watts).watts
        slowdown = _estimate_slowdown(held.slowdown, left)
        slower = _slow_run(self.run, self.duration, slowdown)
        return CappedTraining(slower, _cap_draw(self.draw, left, cap_watts), slowdown, held.clock, cap_watts)

    def _apply(self, cap_watts: float) -> CappedRun:
        return apply_power_cap(self.works, cap_watts, self.limit_watts, self.rates)


def build_cappable_training(run: Run) -> CappableTraining:
    """Returns a run to which caps can be applied.

    Raises :class:`PlanningError` for a run that is no training, or whose power, operators or length are not
    known.
    """
    accelerator = run.case.cluster.accelerator
    draw, limit, duration = estimate_draw(run), accelerator.power_limit_watts, run.duration_seconds
    if limit is None:
        detail = "the power limit of the accelerator is not known"
        raise PlanningError("POWER_UNKNOWN", "/cluster/accelerator", detail)
    works = list_training_works(run) if isinstance(run, TrainingRun) else None
    if not isinstance(run, TrainingRun) or works is None or draw is None or duration is None:
        detail = "a cap is answered for a training run whose operators are known and whose length is given"
        raise PlanningError("WORK_NOT_MODELLED", "/workload", detail)
    rates = run.case.curves.calibration.power.get_rates(accelerator.generation)
    return CappableTraining(run, draw, duration, works, limit, rates)


def find_least_energy_cap(uncapped: RunBill, caps: Sequence[tuple[float, RunBill]]) -> float | None:
    """Returns the cap in watts under which a run takes least energy; None if none saves any."""
    used = uncapped.energy.it_kwh
    known = [(cap, bill.energy.it_kwh) for cap, bill in caps if bill.energy.it_kwh is not None]
    if not known or used is None:
        return None
    cap, least = min(known, key=lambda each: each[1].value)
    return cap if least.value < used.value else None


def _estimate_slowdown(slowdown: float, left: float) -> Quantity:
    """Widens a slowdown by the largest error that was measured at such a cap; nothing gets faster."""
    error = next(error for share, error in _MEASURED_ERROR if left >= share) if slowdown > 1.0 else 0.0
    return Quantity(
        slowdown, max(1.0, slowdown * (1 - error)), slowdown * (1 + error), EvidenceBasis.REFERENCE
    )


def _cap_draw(draw: DevicePower, share: float, cap: float) -> DevicePower:
    """Returns the draw under a cap: the same share of each end, and never above the cap."""
    value, low, high, basis = draw.watts
    ends = [min(cap, end * share) for end in (value, low, high)]
    return draw._replace(watts=Quantity(ends[0], min(ends[:2]), max(ends[0], ends[2]), basis))


def _slow_run(run: TrainingRun, duration: Quantity, slowdown: Quantity) -> TrainingRun:
    """Returns the run, of ``duration``, with its productive time multiplied by ``slowdown``."""
    found, lasting = run.interruptions, run.duration_seconds
    if found.productive is None:
        lasting = combine(lambda t, s: t * s, duration, slowdown)
    else:
        found = found._replace(productive=combine(lambda t, s: t * s, found.productive, slowdown))
        lasting = found.duration
    return run._replace(interruptions=found, duration_seconds=lasting, notes=run.notes.copy())
