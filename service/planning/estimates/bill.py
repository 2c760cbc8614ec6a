"""Utility bill of a run: energy, electricity, carbon, water, and rent set against purchase."""

from typing import NamedTuple

from service.planning.cost.charges import CurrencyCharges
from service.planning.cost.terms import CostTerms
from service.planning.estimates.break_even import (
    BreakEven,
    estimate_break_even,
    estimate_break_even_runs,
    estimate_runs_of_saving,
    estimate_saving,
    find_incomparable,
)
from service.planning.estimates.carbon import RunCarbon, RunWater
from service.planning.estimates.device_hours import estimate_device_hours
from service.planning.estimates.electricity import RunElectricity
from service.planning.estimates.energy import RunEnergy
from service.planning.estimates.ownership import estimate_ownership
from service.planning.estimates.runs import Run
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity

_ALONE, _WITH_ELECTRICITY = "/break_even_runs", "/break_even_runs_with_electricity"


class Payback(NamedTuple):
    """Runs that pay a purchase back; None, with a gap, where that is not known or may never be."""

    runs: Quantity | None = None
    """Against the rent alone."""
    runs_with_electricity: Quantity | None = None
    """Against the rent less the electricity of own devices."""
    break_even: tuple[BreakEven, ...] = ()
    """Runs and months under each assumption."""


class RunBill(NamedTuple):
    """Utility bill of a run; None for what is not known."""

    run: Run
    device_hours: Quantity | None
    energy: RunEnergy
    electricity: RunElectricity
    rent: CurrencyCharges | None
    purchase: CurrencyCharges | None
    carbon: RunCarbon
    water: RunWater
    payback: Payback


def note_unknown_duration(run: Run) -> None:
    """Adds the gaps of a run whose rate is not known."""
    for name in ("duration_seconds", "device_hours"):
        run.notes.add_gap(f"/{name}", "RATE_UNKNOWN", "the rate of the run is not known")


def estimate_payback(
    run: Run,
    terms: CostTerms,
    *,
    rent: CurrencyCharges | None,
    purchase: CurrencyCharges | None,
    electricity: CurrencyCharges | None,
    facility_kw: Quantity | None,
) -> Payback:
    """Returns the runs that pay ``purchase`` back; the notes of the run name what is not known.

    ``facility_kw`` is the peak at the meter, whose interval is that of the electricity.
    """
    notes, hours, duration = run.notes, estimate_device_hours(run), run.duration_seconds
    for name, charged in (("rent", rent), ("purchase", purchase)):
        if charged is None and f"/{name}/total" not in {gap["pointer"] for gap in notes.gaps}:
            notes.add_gap(f"/{name}/total", "PRICE_REQUIRED", f"the {name} is not known")
    refusal = find_incomparable(rent, purchase)
    if refusal or not (hours and duration and rent and purchase):
        for pointer in (_ALONE, _WITH_ELECTRICITY):
            notes.add_gap(pointer, *(refusal or ("PRICE_REQUIRED", "needs the rent and the purchase")))
        return Payback()
    alone = estimate_break_even_runs(rent, purchase)
    with_electricity = _estimate_runs_with_electricity(
        hours, rent, purchase, electricity, facility_kw, notes=notes
    )
    owning = terms.purchase and terms.purchase.ownership
    break_even = estimate_break_even(
        duration,
        rent,
        purchase,
        notes,
        terms=owning,
        owned=owning and estimate_ownership(run, owning, purchase, terms.currencies),
        electricity=None if find_incomparable(rent, electricity) else electricity,
    )
    return Payback(alone, with_electricity, break_even)


def _estimate_runs_with_electricity(
    hours: Quantity,
    rent: CurrencyCharges,
    purchase: CurrencyCharges,
    electricity: CurrencyCharges | None,
    facility_kw: Quantity | None,
    *,
    notes: AnswerNotes,
) -> Quantity | None:
    refusal = find_incomparable(rent, electricity)
    if refusal or not (electricity and facility_kw):
        reason = refusal or ("ELECTRICITY_UNKNOWN", "the electricity is not known")
        notes.add_gap(_WITH_ELECTRICITY, *reason)
        return None
    saved = estimate_saving(hours, rent, electricity, facility_kw)
    if saved.low > 0.0:
        return estimate_runs_of_saving(hours, saved, purchase)
    detail = "electricity costs as much as the rent that it saves"
    if saved.value <= 0.0:
        notes.add_gap(_WITH_ELECTRICITY, "NEVER", detail)
    else:
        notes.add_gap(_WITH_ELECTRICITY, "UNBOUNDED", f"it may be that {detail}")
    return None
