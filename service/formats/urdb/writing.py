"""From a tariff to the document of a rate, and what such a document cannot say."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from service.formats.urdb.findings import Finding, child
from service.formats.urdb.hours import (
    MONTHS_OF_YEAR,
    Cell,
    all_cells,
    cells,
    schedule_of,
)
from service.formats.urdb.ladders import HOURS_USE, HUGE, UNITS
from service.formats.urdb.rate import (
    CUSTOMER,
    ENERGY,
    FLAT_DEMAND,
    MINIMUM,
    REACTIVE_DEMAND,
    TIME_OF_USE_DEMAND,
    YEARLY_MINIMUM,
    period_name,
)
from service.formats.urdb.reading import DOLLAR
from service.formats.urdb.values import YEAR_MONTHS, decimal_of
from service.planning.tariff.charges import (
    MONTHS,
    Accumulation,
    BillingDemand,
    Charge,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    Per,
    PricePeriod,
    Ratchet,
    ReactiveCharge,
    Revision,
    Tariff,
    Tier,
    TierUnit,
    Window,
)

_MOST_PERIODS = 288
_PERIOD_NAME = re.compile(r"period_(0|[1-9]\d{0,2})")
_UNIT_NAMES = {unit: name for name, unit in UNITS.items()}
_ENERGY_TIERS = frozenset(UNITS.values()) - {TierUnit.KW}
_CHARGED = TypeVar("_CHARGED", bound=Charge)


class UrdbExport(NamedTuple):
    """A rate of version 8. Every charge in it is said exactly; all else is in ``left_out`` by name.

    Pointers of ``left_out`` lead into the tariff: its members, and charges by their place in the revision.
    """

    document: dict[str, object]
    left_out: tuple[Finding, ...]


class _Placed(NamedTuple):
    """A charge and where it stands in the tariff."""

    charge: Charge
    pointer: str


@dataclass(slots=True)
class _Document:
    keys: dict[str, object] = field(default_factory=dict)
    left_out: list[Finding] = field(default_factory=list)

    def leave_out(self, name: str, pointer: str, detail: str) -> None:
        self.left_out.append(Finding(name, pointer, detail))

    def leave_out_charge(self, placed: _Placed, detail: str) -> None:
        self.leave_out(placed.charge.name, placed.pointer, detail)

    def name(self, placed: _Placed, expected: str) -> None:
        """Names are not said; those that an import gives are no loss."""
        if placed.charge.name != expected:
            self.leave_out(
                placed.charge.name, child(placed.pointer, "name"), "has no place: charges have no names"
            )


def urdb_from_tariff(
    tariff: Tariff, *, name: str = "", utility: str = "", on: date | None = None
) -> UrdbExport:
    """The rate of OpenEI's utility rate database, version 8, that states the tariff.

    Of several revisions that in force ``on`` a day is stated, else the last. Currencies other than the dollar
    stand in ``_meta``, as the page of worked bills has them.
    """
    document = _Document({"name": name} if name else {})
    if utility:
        document.keys["utility"] = utility
    place, revision = _revision(tariff, on)
    pointer = f"/revisions/{place}"
    _tariff_members(tariff, place, document)
    if revision.effective_from != date.min:
        start = datetime(*revision.effective_from.timetuple()[:3], tzinfo=UTC)
        document.keys["startdate"] = int(start.timestamp())
    placed = [_Placed(charge, f"{pointer}/charges/{i}") for i, charge in enumerate(revision.charges)]
    sayable = [one for one in placed if _is_unconditional(one, document)]
    _write_fixed(sayable, document)
    flat = _write_demand(sayable, document)
    _write_energy(sayable, flat, document)
    _write_single(sayable, document)
    return UrdbExport(document.keys, tuple(document.left_out))


def _revision(tariff: Tariff, on: date | None) -> tuple[int, Revision]:
    """The last revision, or the last that began by a day; the first where none did."""
    places = [i for i, one in enumerate(tariff.revisions) if on is None or one.effective_from <= on]
    place = places[-1] if places else 0
    return place, tariff.revisions[place]


def _tariff_members(tariff: Tariff, place: int, document: _Document) -> None:
    for other in range(len(tariff.revisions)):
        if other != place:
            document.leave_out("revisions", f"/revisions/{other}", "a rate states one revision")
    document.leave_out("time_zone", "/time_zone", "a rate states no clock")
    if tariff.currency_code != DOLLAR:
        document.keys["_meta"] = {"currency": tariff.currency_code}
    if tariff.holidays:
        document.leave_out("holidays", "/holidays", "a rate knows no holidays")
    if tariff.secondary_loss_factor:
        document.leave_out("secondary_loss_factor", "/secondary_loss_factor", "has no place")
    if tariff.hours_of_use_minimum:
        document.leave_out("hours_of_use_minimum", "/hours_of_use_minimum", "has no place")
    if tariff.notes:
        document.leave_out("notes", "/notes", "has no place")


def _is_unconditional(placed: _Placed, document: _Document) -> bool:
    charge = placed.charge
    if charge.hours_of_use_from or charge.hours_of_use_below is not None:
        document.leave_out_charge(placed, "depends on annual hours of use")
        return False
    if charge.months != MONTHS:
        document.leave_out_charge(placed, "is not charged in every month")
        return False
    return True


def _number(price: Decimal) -> float | int | None:
    """The price as JSON has it, or None where it would be another."""
    if price == price.to_integral_value():
        return int(price)
    return float(price) if decimal_of(float(price)) == price else None


def _of(placed: Iterable[_Placed], kind: type[_CHARGED]) -> list[tuple[_Placed, _CHARGED]]:
    return [(one, one.charge) for one in placed if isinstance(one.charge, kind)]


def _write_fixed(placed: Sequence[_Placed], document: _Document) -> None:
    """One customer charge: what is due by month and by year is added up, what by day only with its like."""
    charges = _of(placed, FixedCharge)
    if not charges:
        return
    by_day = charges[0][1].per is Per.DAY
    said = [(one, charge) for one, charge in charges if (charge.per is Per.DAY) == by_day]
    for one, charge in charges:
        if (charge.per is Per.DAY) != by_day:
            document.leave_out_charge(one, f"is due by {charge.per}, and the customer charge is not")
    per = said[0][1].per if len({charge.per for _, charge in said}) == 1 else Per.YEAR
    total = sum((_due(charge, per) for _, charge in said), Decimal(0))
    number = _number(total)
    if number is None:
        document.leave_out_charge(said[0][0], "has more digits than a number of JSON")
        return
    document.keys |= {"fixedchargefirstmeter": number, "fixedchargeunits": f"$/{per}"}
    document.name(said[0][0], CUSTOMER)
    for one, _ in said[1:]:
        document.leave_out_charge(one, "is part of the customer charge")


def _due(charge: FixedCharge, per: Per) -> Decimal:
    months = YEAR_MONTHS if per is Per.YEAR and charge.per is Per.MONTH else 1
    return charge.price * charge.meters * months


def _write_single(placed: Sequence[_Placed], document: _Document) -> None:
    """Charges that are one number each, and those that have no place."""
    for one, reactive in _of(placed, ReactiveCharge):
        if reactive.free_share_of_active or reactive.by_energy:
            document.leave_out_charge(one, "is not on all kvar at the peak of the month")
        else:
            _write_number(one, "demandreactivepowercharge", reactive.price, REACTIVE_DEMAND, document)
    for one, minimum in _of(placed, MinimumCharge):
        if minimum.of:
            document.leave_out_charge(one, "is a minimum of some of the charges")
        elif minimum.name == YEARLY_MINIMUM and minimum.per is Per.YEAR:
            _write_number(one, "annualmincharge", minimum.amount, YEARLY_MINIMUM, document)
        elif _write_number(one, "mincharge", minimum.amount, MINIMUM, document):
            document.keys["minchargeunits"] = f"$/{minimum.per}"
    known = (FixedCharge, DemandCharge, EnergyCharge, ReactiveCharge, MinimumCharge)
    for one in placed:
        if not isinstance(one.charge, known):
            document.leave_out_charge(one, "has no place")


def _write_number(one: _Placed, key: str, price: Decimal, name: str, document: _Document) -> bool:
    number = _number(price)
    if key in document.keys or number is None:
        why = (
            "stands beside another of its kind"
            if number is not None
            else "has more digits than a number of JSON"
        )
        document.leave_out_charge(one, why)
        return False
    document.keys[key] = number
    document.name(one, name)
    return True


def _write_energy(placed: Sequence[_Placed], flat: DemandCharge | None, document: _Document) -> None:
    """One structure of energy; prices for all hours beside it are the ``adj`` of every tier."""
    charges = _of(placed, EnergyCharge)
    main = next((one for one, charge in charges if not _is_one_price(charge)), None)
    main = main or next((one for one, _ in charges), None)
    if main is None:
        return
    charge = next(charge for one, charge in charges if one is main)
    why = _unsaid_energy(charge, flat)
    if why:
        document.leave_out_charge(main, why)
        for one, _ in charges:
            if one is not main:
                document.leave_out_charge(one, "stands beside energy prices that are left out")
        return
    adj = Decimal(0)
    for one, other in charges:
        if one is main:
            continue
        if not _is_one_price(other):
            document.leave_out_charge(one, "stands beside another of its kind")
            continue
        adj += other.periods[0].tiers[0].price
        document.leave_out_charge(one, "is the adj of every tier")
    if _write_scheduled("energy", main, charge.periods, document, adj):
        document.name(main, ENERGY)


def _is_one_price(charge: EnergyCharge) -> bool:
    return (
        len(charge.periods) == 1
        and charge.periods[0].windows == (Window(),)
        and len(charge.periods[0].tiers) == 1
        and charge.periods[0].tiers[0].unit is TierUnit.KWH
    )


def _unsaid_energy(charge: EnergyCharge, flat: DemandCharge | None) -> str | None:
    tiers = [tier for period in charge.periods for tier in period.tiers]
    if charge.accumulation is not Accumulation.PER_PERIOD and any(tier.limit is not None for tier in tiers):
        return "fills its tiers with the energy of all periods"
    if not {tier.unit for tier in tiers} <= _ENERGY_TIERS:
        return "has tiers by kW"
    if not any(tier.unit in HOURS_USE for tier in tiers):
        return None
    raised = flat is not None and flat.billing_demand != BillingDemand()
    scaled = charge.billing_demand_of is not None
    if (raised and charge.billing_demand_of != (flat.name if flat else None)) or (scaled and flat is None):
        return "has tiers by hours of use of another demand than the billed"
    return None


def _write_demand(placed: Sequence[_Placed], document: _Document) -> DemandCharge | None:
    """The flat and the time-of-use structure; gives the flat charge that was written."""
    charges = []
    for one, charge in _of(placed, DemandCharge):
        why = _unsaid_demand(charge)
        if why:
            document.leave_out_charge(one, why)
        else:
            charges.append((one, charge))
    flat = _first(charges, lambda charge: _is_flat(charge) and charge.billing_demand != BillingDemand())
    flat = flat or _first(charges, lambda charge: _is_flat(charge) and charge.name != TIME_OF_USE_DEMAND)
    rest = [pair for pair in charges if pair is not flat]
    timed = _first(rest, lambda charge: charge.billing_demand == BillingDemand())
    window: int | None = None
    written = None
    for pair, write in ((timed, _write_timed), (flat, _write_flat)):
        if pair is None:
            continue
        one, charge = pair
        if window is not None and charge.window_minutes != window:
            document.leave_out_charge(one, "is measured over another window than the other demand")
        elif write(one, charge, document):
            window = charge.window_minutes
            written = charge if pair is flat else written
    if window is not None:
        document.keys["demandwindow"] = window
    for pair in rest:
        if pair is not timed:
            document.leave_out_charge(pair[0], "stands beside another of its kind")
    return written


def _first(
    charges: Sequence[tuple[_Placed, DemandCharge]], chosen: Callable[[DemandCharge], bool]
) -> tuple[_Placed, DemandCharge] | None:
    return next((pair for pair in charges if chosen(pair[1])), None)


def _unsaid_demand(charge: DemandCharge) -> str | None:
    """What of a demand charge no rate can say."""
    plain = replace(
        DemandCharge(name=charge.name, periods=charge.periods),
        apparent=charge.apparent,
        window_minutes=charge.window_minutes,
        billing_demand=charge.billing_demand,
    )
    if plain != charge:
        return "is not on the highest demand of the month, tier by tier"
    if {tier.unit for period in charge.periods for tier in period.tiers} != {TierUnit.KW}:
        return "has tiers by energy"
    if charge.billing_demand != BillingDemand() and _ratchet_keys(charge.billing_demand) is None:
        return "has floors or ratchets that no rate states"
    return None


def _is_flat(charge: DemandCharge) -> bool:
    return all(
        replace(window, months=MONTHS) == Window() for period in charge.periods for window in period.windows
    )


def _ratchet_keys(rule: BillingDemand) -> dict[str, object] | None:
    """The keys that state the ratchets of a rule, or None where there are none for it."""
    if replace(rule, ratchets=()) != BillingDemand():
        return None
    keys: dict[str, object] = {}
    for ratchet in rule.ratchets:
        found = _keys_of(ratchet, older="lookbackpercent" in keys)
        if found is None or keys.keys() & found.keys():
            return None
        keys |= found
    return keys


def _keys_of(ratchet: Ratchet, *, older: bool) -> dict[str, object] | None:
    shares = ratchet.share_by_billing_month
    plain = Ratchet(
        share_by_billing_month=shares,
        preceding_months=ratchet.preceding_months,
        peak_months=ratchet.peak_months,
        wraps_year=ratchet.wraps_year and ratchet.preceding_months is not None,
    )
    if plain != ratchet or not 0.0 < max(shares) <= 1.0 or min(shares) < 0.0:
        return None
    uniform = len(set(shares)) == 1
    reach, months = ratchet.preceding_months, ratchet.peak_months
    if months is None and reach is not None and uniform and 1 <= reach <= YEAR_MONTHS:
        return {"lookbackpercent": shares[0], "lookbackrange": reach}
    if reach is not None or not months:
        return None
    if uniform and not older:
        flags = [int(month in months) for month in MONTHS_OF_YEAR]
        return {"lookbackpercent": shares[0], "lookbackmonths": flags}
    return {"demandratchetpercentage": list(shares)} if months == MONTHS else None


def _write_timed(one: _Placed, charge: DemandCharge, document: _Document) -> bool:
    if not _write_scheduled("demand", one, charge.periods, document):
        return False
    document.keys["demandrateunit"] = "kVA" if charge.apparent else "kW"
    document.name(one, TIME_OF_USE_DEMAND)
    return True


def _write_flat(one: _Placed, charge: DemandCharge, document: _Document) -> bool:
    places = _places(charge.periods)
    by_month: dict[int, int] = {}
    for period in charge.periods:
        months = [month for window in period.windows for month in window.months]
        if len(set(months)) != len(months) or by_month.keys() & set(months):
            document.leave_out_charge(one, "has two periods in one month")
            return False
        by_month |= dict.fromkeys(months, places[period.name])
    spare = max(places.values()) + 1
    structure = _structure(charge.periods, places, "kW", spare if len(by_month) < YEAR_MONTHS else None)
    if structure is None:
        document.leave_out_charge(one, "has more digits than a number of JSON, or limits that read as none")
        return False
    document.keys |= {
        "flatdemandstructure": structure,
        "flatdemandmonths": [by_month.get(month, spare) for month in MONTHS_OF_YEAR],
        "flatdemandunit": "kVA" if charge.apparent else "kW",
        **(_ratchet_keys(charge.billing_demand) or {}),
    }
    document.name(one, FLAT_DEMAND)
    ratchets = charge.billing_demand.ratchets
    if any(ratchet.preceding_months and not ratchet.wraps_year for ratchet in ratchets):
        why = "looks at the end of the same year for months before a load, once it is read as lookbackrange"
        document.leave_out(charge.name, child(one.pointer, "billing_demand"), why)
    _period_names(one, charge.periods, document)
    return True


def _write_scheduled(
    kind: str,
    one: _Placed,
    periods: Sequence[PricePeriod],
    document: _Document,
    adj: Decimal = Decimal(0),
) -> bool:
    """A structure and its two schedules; hours of no period get one of their own without a price."""
    places = _places(periods)
    grid: dict[Cell, int] = {}
    for period in periods:
        covered = cells(period.windows)
        if covered is None or covered & grid.keys():
            document.leave_out_charge(one, "has periods that no schedule of hours states")
            return False
        grid |= dict.fromkeys(covered, places[period.name])
    spare = max(places.values()) + 1
    missing = all_cells() - grid.keys()
    unit = "kWh" if kind == "energy" else "kW"
    structure = _structure(periods, places, unit, spare if missing else None, adj)
    if structure is None:
        document.leave_out_charge(one, "has more digits than a number of JSON, or limits that read as none")
        return False
    grid |= dict.fromkeys(missing, spare)
    document.keys |= {
        f"{kind}ratestructure": structure,
        f"{kind}weekdayschedule": schedule_of(grid, at_weekend=False),
        f"{kind}weekendschedule": schedule_of(grid, at_weekend=True),
    }
    _period_names(one, periods, document)
    return True


def _places(periods: Sequence[PricePeriod]) -> dict[str, int]:
    """Where each period stands: where its name says so, else in order."""
    named = {period.name: _PERIOD_NAME.fullmatch(period.name) for period in periods}
    places = {name: int(found[1]) for name, found in named.items() if found}
    if len(places) == len(periods) and max(places.values()) < _MOST_PERIODS:
        return places
    return {period.name: place for place, period in enumerate(periods)}


def _period_names(one: _Placed, periods: Sequence[PricePeriod], document: _Document) -> None:
    names = {period_name(place) for place in _places(periods).values()}
    if {period.name for period in periods} != names:
        pointer = child(one.pointer, "periods")
        document.leave_out(one.charge.name, pointer, "has named periods, and a rate numbers them")


def _structure(
    periods: Sequence[PricePeriod],
    places: dict[str, int],
    unit: str,
    spare: int | None,
    adj: Decimal = Decimal(0),
) -> list[list[dict[str, Any]]] | None:
    """Ladders by place, those of no period without a price; None where a number cannot be said."""
    count = max(places.values()) + 1 + (spare is not None)
    nothing: list[dict[str, Any]] = [{"rate": 0, "unit": unit}]
    structure = [nothing for _ in range(count)]
    for period in periods:
        ladder = [_entry(tier, adj) for tier in period.tiers]
        if None in ladder:
            return None
        structure[places[period.name]] = [entry for entry in ladder if entry is not None]
    return structure


def _entry(tier: Tier, adj: Decimal) -> dict[str, Any] | None:
    rate, further = _number(tier.price), _number(adj)
    if rate is None or further is None or (tier.limit is not None and not 0 < tier.limit < HUGE):
        return None
    entry: dict[str, Any] = {"rate": rate, "unit": _UNIT_NAMES[tier.unit]}
    if tier.limit is not None:
        entry["max"] = tier.limit
    return entry | ({"adj": further} if adj else {})
