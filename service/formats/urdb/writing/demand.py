"""Demand charges: flat, by time of use, and their ratchets."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from service.formats.urdb.findings import build_child_pointer
from service.formats.urdb.hours import MONTHS_OF_YEAR
from service.formats.urdb.rate import FLAT_DEMAND, TIME_OF_USE_DEMAND
from service.formats.urdb.values import YEAR_MONTHS
from service.formats.urdb.writing.document import PlacedCharge, RateDocument, select_charges
from service.formats.urdb.writing.ratchets import build_ratchet_keys
from service.formats.urdb.writing.structures import (
    build_structure,
    check_period_names,
    index_periods,
    write_scheduled,
)
from service.planning.tariff.charges import (
    MONTHS,
    BillingDemand,
    DemandCharge,
    LocalTimeWindow,
    TariffTierUnit,
)


def write_demand(placed: Sequence[PlacedCharge], document: RateDocument) -> DemandCharge | None:
    """The flat and the time-of-use structure; gives the flat charge that was written."""
    charges = []
    for one, charge in select_charges(placed, DemandCharge):
        why = _explain_demand_omission(charge)
        if why:
            document.record_charge_omission(one, why)
        else:
            charges.append((one, charge))
    flat = _find_first_charge(
        charges, lambda charge: _is_flat(charge) and charge.billing_demand != BillingDemand()
    )
    flat = flat or _find_first_charge(
        charges, lambda charge: _is_flat(charge) and charge.name != TIME_OF_USE_DEMAND
    )
    rest = [pair for pair in charges if pair is not flat]
    timed = _find_first_charge(rest, lambda charge: charge.billing_demand == BillingDemand())
    window: int | None = None
    written = None
    for pair, write in ((timed, _write_timed), (flat, _write_flat)):
        if pair is None:
            continue
        one, charge = pair
        if window is not None and charge.window_minutes != window:
            document.record_charge_omission(one, "is measured over another window than the other demand")
        elif write(one, charge, document):
            window = charge.window_minutes
            written = charge if pair is flat else written
    if window is not None:
        document.keys["demandwindow"] = window
    for pair in rest:
        if pair is not timed:
            document.record_charge_omission(pair[0], "stands beside another of its kind")
    return written


def _find_first_charge(
    charges: Sequence[tuple[PlacedCharge, DemandCharge]], chosen: Callable[[DemandCharge], bool]
) -> tuple[PlacedCharge, DemandCharge] | None:
    return next((pair for pair in charges if chosen(pair[1])), None)


def _explain_demand_omission(charge: DemandCharge) -> str | None:
    """Returns the reason why a demand charge cannot be stated in a rate, or None."""
    plain = replace(
        DemandCharge(name=charge.name, periods=charge.periods),
        apparent=charge.apparent,
        window_minutes=charge.window_minutes,
        billing_demand=charge.billing_demand,
    )
    if plain != charge:
        return "is not on the highest demand of the month, tier by tier"
    if {tier.unit for period in charge.periods for tier in period.tiers} != {TariffTierUnit.KW}:
        return "has tiers by energy"
    if charge.billing_demand != BillingDemand() and build_ratchet_keys(charge.billing_demand) is None:
        return "has floors or ratchets that no rate states"
    return None


def _is_flat(charge: DemandCharge) -> bool:
    return all(
        replace(window, months=MONTHS) == LocalTimeWindow()
        for period in charge.periods
        for window in period.windows
    )


def _write_timed(one: PlacedCharge, charge: DemandCharge, document: RateDocument) -> bool:
    if not write_scheduled("demand", one, charge.periods, document):
        return False
    document.keys["demandrateunit"] = "kVA" if charge.apparent else "kW"
    document.check_charge_name(one, TIME_OF_USE_DEMAND)
    return True


def _write_flat(one: PlacedCharge, charge: DemandCharge, document: RateDocument) -> bool:
    places = index_periods(charge.periods)
    by_month: dict[int, int] = {}
    for period in charge.periods:
        months = [month for window in period.windows for month in window.months]
        if len(set(months)) != len(months) or by_month.keys() & set(months):
            document.record_charge_omission(one, "has two periods in one month")
            return False
        by_month |= dict.fromkeys(months, places[period.name])
    spare = max(places.values()) + 1
    structure = build_structure(charge.periods, places, "kW", spare if len(by_month) < YEAR_MONTHS else None)
    if structure is None:
        document.record_charge_omission(
            one, "has more digits than a number of JSON, or limits that read as none"
        )
        return False
    document.keys |= {
        "flatdemandstructure": structure,
        "flatdemandmonths": [by_month.get(month, spare) for month in MONTHS_OF_YEAR],
        "flatdemandunit": "kVA" if charge.apparent else "kW",
        **(build_ratchet_keys(charge.billing_demand) or {}),
    }
    document.check_charge_name(one, FLAT_DEMAND)
    ratchets = charge.billing_demand.ratchets
    if any(ratchet.preceding_months and not ratchet.wraps_year for ratchet in ratchets):
        why = "looks at the end of the same year for months before a load, once it is read as lookbackrange"
        document.record_omission(charge.name, build_child_pointer(one.pointer, "billing_demand"), why)
    check_period_names(one, charge.periods, document)
    return True
