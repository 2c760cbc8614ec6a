"""Electricity of a run: at a flat price, or billed under a tariff."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from service.planning.cost.charges import CurrencyCharges, UnitPrice, charge_quantities
from service.planning.cost.tariff_lines import sum_rounded_bill
from service.planning.energy.load_profile import LoadProfile, build_load_series
from service.planning.estimates.energy import RunEnergy
from service.planning.estimates.load import ProfileBounds
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity, weakest
from service.planning.tariff.allocation import (
    AllocatedVersions,
    BillAllocation,
    allocate_bill,
    estimate_allocation_effort,
)
from service.planning.tariff.allowance import SpendEffort
from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.contract import ELECTRICITY, TariffContract, find_local_start, relocate_errors
from service.planning.tariff.metering_point import MeteringPoint
from service.planning.tariff.time_dependence import TimeDependence

_MILLIWATT_DIGITS = 6
_STALE_DAYS = 400
_DUE_ANYWAY = ("fixed", "demand", "overrun", "coincident_peak", "minimum")
"""Kinds of charges that a meter of one's own brings with it."""


class RunTariffBill(NamedTuple):
    """The bill of a run under a tariff, at the middle of its energy."""

    allocation: BillAllocation
    source: str
    is_incremental: bool
    """True if the bill is the difference that the run makes to a baseline."""
    is_dated: bool
    """False if the start of the run is assumed, so that the bill stands for any time."""


class RunElectricity(NamedTuple):
    """Electricity of a run: its charges where they are known, and the bill that they sum under a tariff."""

    charged: CurrencyCharges | None = None
    bill: RunTariffBill | None = None


def estimate_electricity(
    price: UnitPrice | TariffContract,
    energy: RunEnergy,
    starts_at: datetime | None,
    notes: AnswerNotes,
    spend: SpendEffort,
) -> RunElectricity:
    """Returns the cost of a run's electricity; a gap in ``notes`` where its energy is not known.

    ``spend`` counts the effort of a bill before it is computed, and may refuse it.
    """
    metered = [(item.name, item.facility_kwh) for item in energy.equipment if item.facility_kwh]
    if isinstance(price, UnitPrice) and metered:
        return RunElectricity(charge_quantities(price, "kWh", *metered))
    if isinstance(price, TariffContract) and energy.facility_kwh is not None and energy.profiles is not None:
        return _bill_under_tariff(price, energy.facility_kwh, energy.profiles, starts_at, notes, spend=spend)
    notes.add_gap("/electricity/total", "ENERGY_UNKNOWN", "the energy at the meter is not known")
    return RunElectricity()


def _bill_under_tariff(
    contract: TariffContract,
    metered: Quantity,
    profiles: ProfileBounds,
    starts_at: datetime | None,
    notes: AnswerNotes,
    *,
    spend: SpendEffort,
) -> RunElectricity:
    point = contract.point
    start = find_local_start(contract, starts_at, notes)
    if start.is_assumed and contract.time_dependence is TimeDependence.NOTHING:
        point = _merge_billing_periods(point, start.at, max(profile.elapsed_seconds for profile in profiles))
    # An end that is the middle needs no bill of its own.
    distinct = list(dict.fromkeys(profiles))
    with relocate_errors(contract.pointer):
        loads = [build_run_load(profile, start.at, point.interval_minutes) for profile in distinct]
        spend(estimate_allocation_effort(point, loads), contract.pointer)
        allocated = allocate_bill(point, loads)
    _warn_of_age(contract, start.at, notes)
    _warn_of_unknown_terms(allocated, contract.pointer, notes)
    _warn_of_standing_charges(point, allocated.allocations[0], notes)
    charged = [contract.apply_price_factor(allocation) for allocation in allocated.allocations]
    bill = RunTariffBill(charged[0], contract.source, point.baseline is not None, not start.is_assumed)
    return RunElectricity(_sum_bills(charged, weakest(metered, Quantity(0, 0, 0, contract.basis))), bill)


def _sum_bills(allocations: Sequence[BillAllocation], basis: EvidenceBasis) -> CurrencyCharges:
    """Returns the sum of the first bill, with the least and the largest of all as its interval."""
    totals = [sum_rounded_bill(allocation) for allocation in allocations]
    return CurrencyCharges((), totals[0], min(totals), max(totals), allocations[0].currency_code, basis)


def build_run_load(profile: LoadProfile, starts_at: datetime, interval_minutes: int) -> MeteredLoad:
    """Returns the run at the meter, to the milliwatt: of intervals that are alike the first sets the peak."""
    load = build_load_series(profile, starts_at, interval_minutes)
    return load._replace(kw=np.round(load.kw, _MILLIWATT_DIGITS))


def _merge_billing_periods(point: MeteringPoint, starts_at: datetime, seconds: float) -> MeteringPoint:
    """Returns the point with one billing period for the whole run, so that each price has one line."""
    last = (starts_at + timedelta(seconds=seconds)).date() + timedelta(days=1)
    return point._replace(starts=(starts_at.date(), last))


def _warn_of_age(contract: TariffContract, starts_at: datetime, notes: AnswerNotes) -> None:
    """Warns of a tariff of the catalog whose prices are more than 400 days old at the start of the run."""
    if contract.basis is not EvidenceBasis.REFERENCE:
        return
    begun = [one.effective_from for one in contract.point.tariff.revisions if one.effective_from.year > 1]
    since = max((day for day in begun if day <= starts_at.date()), default=None)
    if since is not None and (starts_at.date() - since).days > _STALE_DAYS:
        detail = f"its prices are those of {since}; the utility may have changed them since"
        notes.warn("TARIFF_STALE", contract.pointer, detail)


def _warn_of_unknown_terms(allocated: AllocatedVersions, pointer: str, notes: AnswerNotes) -> None:
    if allocated.unknown:
        first, last = allocated.unknown[0].start, allocated.unknown[-1].end
        detail = f"the tariff ties the run to what is used from {first} to {last}, where the series has gaps"
        notes.warn("BASELINE_ENDS", "/site/baseline_load", detail)
    for finding in allocated.allocations[0].findings:
        notes.warn(finding.code, pointer, finding.detail)


def _warn_of_standing_charges(point: MeteringPoint, middle: BillAllocation, notes: AnswerNotes) -> None:
    if point.baseline is not None:
        return
    lines = (line for share in middle.periods for line in share.lines if line.kind in _DUE_ANYWAY)
    names = ", ".join(dict.fromkeys(line.charge for line in lines))
    if names:
        detail = (
            f"every billing period that the run touches is billed in full, for the run alone: with {names}"
        )
        notes.warn("STANDALONE_BILL", ELECTRICITY, detail)
