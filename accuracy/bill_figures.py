"""Components of bills that the figures of rows are."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from accuracy.bill_cases import (
    BillCase,
    ChargeFilter,
    RowCells,
    charges_of,
    counts_later,
    is_annual,
    is_row,
)
from accuracy.bill_loads import BillError, use_of
from service.formats.urdb.rate import COINCIDENT_PEAK, ENERGY, FLAT_DEMAND, TIME_OF_USE_DEMAND
from service.planning.tariff.bill import BillLine, PeriodBill
from service.planning.tariff.charges import (
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    Tariff,
    TariffCharge,
)

_TIER = re.compile(r"energy_kwh_tier_([1-9]\d?)")
_MONEY_BY_KIND = {
    "energy_charge": "energy",
    "fixed_charge": "fixed",
    "coincident_peak_charge": "coincident_peak",
}
_FLAT_OR_TIMED = {"flat_demand_charge": FLAT_DEMAND, "tou_demand_charge": TIME_OF_USE_DEMAND}
_UNITS = {"coincident_peak_kw": "kW", "billing_demand_kw": "kW", "hours_of_use_h": "h"}
_TOTALS = frozenset({"total", "average_price"})
_COMPONENTS = frozenset(
    {*_MONEY_BY_KIND, *_FLAT_OR_TIMED, *_UNITS, *_TOTALS, "demand_charge", "annual_demand_charge"}
)


def is_component(component: str) -> bool:
    """Returns true if the word is a component."""
    return component in _COMPONENTS or _TIER.fullmatch(component) is not None


def check_unit(row: RowCells, tariff: Tariff) -> None:
    """Checks that the figure's unit is that of the component, including its currency."""
    component, unit = row["component"], row["currency"]
    if component == "average_price":
        code = unit.removesuffix("cents/kWh").removesuffix("/kWh").strip()
        if not unit.endswith("/kWh") or code != tariff.currency_code:
            raise BillError("currency is not that of the tariff per kWh")
        return
    needed = "kWh" if _TIER.fullmatch(component) else _UNITS.get(component, tariff.currency_code)
    if unit != needed:
        raise BillError(f"currency is not {needed}")


def needs_coincident(component: str) -> bool:
    """Returns true if charges on the grid's peaks are part of the component."""
    return component.startswith("coincident_peak") or component in _TOTALS


def needed_by(component: str, tariff: Tariff) -> ChargeFilter:
    """Returns a filter of the charges of the load's year that a component needs."""
    if component in _TOTALS:
        return lambda charge: not counts_later(charge)
    if component in _DEMAND_NAMES:
        return lambda charge: charge.name == _DEMAND_NAMES[component]
    if component.startswith("energy"):
        return _energy_and_what_scales_it(tariff)
    return _BY_KIND[component]


def _energy_and_what_scales_it(tariff: Tariff) -> ChargeFilter:
    scales = {charge.billing_demand_of for charge in charges_of(tariff) if isinstance(charge, EnergyCharge)}
    return lambda charge: isinstance(charge, EnergyCharge) or charge.name in scales


def _is_coincident(charge: TariffCharge) -> bool:
    return isinstance(charge, CoincidentPeakCharge) and not charge.in_following_year


_DEMAND_NAMES = {**_FLAT_OR_TIMED, "billing_demand_kw": FLAT_DEMAND}
_BY_KIND: Mapping[str, ChargeFilter] = {
    "fixed_charge": lambda charge: isinstance(charge, FixedCharge),
    "demand_charge": lambda charge: isinstance(charge, DemandCharge) and not is_annual(charge),
    "annual_demand_charge": is_annual,
    "coincident_peak_charge": _is_coincident,
    "coincident_peak_kw": _is_coincident,
}


def hours_of_use(case: BillCase) -> float:
    """Returns annual energy divided by annual peak of the whole load."""
    energy_kwh, peak_kw = use_of(case.given)
    if not peak_kw:
        raise BillError("the load has no peak")
    return energy_kwh / peak_kw


def figure(component: str, case: BillCase, months: Sequence[PeriodBill]) -> float:
    """Returns the component of the months' bills, not rounded."""
    if needs_coincident(component) and component != "coincident_peak_kw" and _lacks_price(case.tariff):
        raise BillError("x_coincident_peak has no price")
    lines = [line for month in months for line in month.lines]
    if component in _MONEY_BY_KIND:
        kind = _MONEY_BY_KIND[component]
        return float(_sum(line for line in lines if line.kind == kind))
    if component in _FLAT_OR_TIMED:
        return _demand_of(component, case, lines)
    if component in _UNITS:
        return _demand_kw(component, case, months)
    if tier := _TIER.fullmatch(component):
        if not any(charge.name == ENERGY for charge in charges_of(case.tariff)):
            raise BillError("the tariff has no energy tiers")
        return sum(line.quantity for line in lines if line.charge == ENERGY and line.tier == int(tier[1]))
    total = float(_sum(lines))
    return _average(case, months, total) if component == "average_price" else total


def _lacks_price(tariff: Tariff) -> bool:
    return any(
        one.price is None
        for charge in charges_of(tariff)
        if isinstance(charge, CoincidentPeakCharge)
        for one in charge.sets
    )


def _sum(lines: Iterable[BillLine]) -> Decimal:
    return sum((line.amount for line in lines), Decimal(0))


def _demand_of(component: str, case: BillCase, lines: Iterable[BillLine]) -> float:
    if any(isinstance(charge, DemandCharge) and is_row(charge) for charge in charges_of(case.tariff)):
        raise BillError("x_charges do not say which demand charges are flat")
    return float(_sum(line for line in lines if line.charge == _FLAT_OR_TIMED[component]))


def _demand_kw(component: str, case: BillCase, months: Sequence[PeriodBill]) -> float:
    if component == "billing_demand_kw":
        if len(months) != 1:
            raise BillError("a billing demand is that of one month")
        return months[0].billing_demand_kw.get(FLAT_DEMAND, months[0].peak_kw)
    found = [
        month.billing_demand_kw[COINCIDENT_PEAK]
        for month in months
        if COINCIDENT_PEAK in month.billing_demand_kw
    ]
    sets = [charge.sets for charge in charges_of(case.tariff) if isinstance(charge, CoincidentPeakCharge)]
    if len(found) != 1 or len(sets[0]) != 1:
        raise BillError("the period does not have one figure of coincident peak")
    return found[0]


def _average(case: BillCase, months: Sequence[PeriodBill], total: float) -> float:
    energy_kwh = sum(month.energy_kwh for month in months)
    if not energy_kwh:
        raise BillError("the load has no energy in the period")
    hundredths = 100.0 if "cents" in case.row["currency"] else 1.0
    return total / energy_kwh * hundredths
