"""Conversion of a tariff to the document of a rate, and the omissions of such a document."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from service.formats.urdb.findings import ImportFinding, build_child_pointer
from service.formats.urdb.hours import (
    MONTHS_OF_YEAR,
    HourCell,
    build_schedule,
    list_all_cells,
    list_cells,
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
    format_period_name,
)
from service.formats.urdb.reading import DOLLAR
from service.formats.urdb.values import YEAR_MONTHS, parse_decimal
from service.planning.tariff.charges import (
    MONTHS,
    BillingDemand,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    LocalTimeWindow,
    MinimumCharge,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    Tariff,
    TariffCharge,
    TariffRevision,
    TariffTierUnit,
    TierAccumulation,
)

_MOST_PERIODS = 288
_PERIOD_NAME = re.compile(r"period_(0|[1-9]\d{0,2})")
_UNIT_NAMES = {unit: name for name, unit in UNITS.items()}
_ENERGY_TIERS = frozenset(UNITS.values()) - {TariffTierUnit.KW}
_CHARGED = TypeVar("_CHARGED", bound=TariffCharge)


class UrdbExport(NamedTuple):
    """A rate of version 8. Every charge in it is exact; everything else is in ``left_out`` by name.

    Pointers of ``left_out`` lead into the tariff: its members, and charges by their place in the revision.
    """

    document: dict[str, object]
    left_out: tuple[ImportFinding, ...]


class _PlacedCharge(NamedTuple):
    """A charge and its place in the tariff."""

    charge: TariffCharge
    pointer: str


@dataclass(slots=True)
class _RateDocument:
    keys: dict[str, object] = field(default_factory=dict)
    left_out: list[ImportFinding] = field(default_factory=list)

    def record_omission(self, name: str, pointer: str, detail: str) -> None:
        self.left_out.append(ImportFinding(name, pointer, detail))

    def record_charge_omission(self, placed: _PlacedCharge, detail: str) -> None:
        self.record_omission(placed.charge.name, placed.pointer, detail)

    def check_charge_name(self, placed: _PlacedCharge, expected: str) -> None:
        """Records the name as omitted, unless it is the one that an import assigns."""
        if placed.charge.name != expected:
            self.record_omission(
                placed.charge.name,
                build_child_pointer(placed.pointer, "name"),
                "has no place: charges have no names",
            )


def urdb_from_tariff(
    tariff: Tariff, *, name: str = "", utility: str = "", on: date | None = None
) -> UrdbExport:
    """The rate of OpenEI's utility rate database, version 8, that states the tariff.

    Of several revisions that in force ``on`` a day is stated, else the last. Currencies other than the dollar
    stand in ``_meta``, as the page of worked bills has them.
    """
    document = _RateDocument({"name": name} if name else {})
    if utility:
        document.keys["utility"] = utility
    place, revision = _select_revision(tariff, on)
    pointer = f"/revisions/{place}"
    _write_tariff_members(tariff, place, document)
    if revision.effective_from != date.min:
        start = datetime(*revision.effective_from.timetuple()[:3], tzinfo=UTC)
        document.keys["startdate"] = int(start.timestamp())
    placed = [_PlacedCharge(charge, f"{pointer}/charges/{i}") for i, charge in enumerate(revision.charges)]
    sayable = [one for one in placed if _is_unconditional(one, document)]
    _write_fixed(sayable, document)
    flat = _write_demand(sayable, document)
    _write_energy(sayable, flat, document)
    _write_single(sayable, document)
    return UrdbExport(document.keys, tuple(document.left_out))


def _select_revision(tariff: Tariff, on: date | None) -> tuple[int, TariffRevision]:
    """The last revision, or the last that began by a day; the first where none did."""
    places = [i for i, one in enumerate(tariff.revisions) if on is None or one.effective_from <= on]
    place = places[-1] if places else 0
    return place, tariff.revisions[place]


def _write_tariff_members(tariff: Tariff, place: int, document: _RateDocument) -> None:
    for other in range(len(tariff.revisions)):
        if other != place:
            document.record_omission("revisions", f"/revisions/{other}", "a rate states one revision")
    document.record_omission("time_zone", "/time_zone", "a rate states no clock")
    if tariff.currency_code != DOLLAR:
        document.keys["_meta"] = {"currency": tariff.currency_code}
    if tariff.holidays:
        document.record_omission("holidays", "/holidays", "a rate knows no holidays")
    if tariff.secondary_loss_factor:
        document.record_omission("secondary_loss_factor", "/secondary_loss_factor", "has no place")
    if tariff.hours_of_use_minimum:
        document.record_omission("hours_of_use_minimum", "/hours_of_use_minimum", "has no place")
    if tariff.notes:
        document.record_omission("notes", "/notes", "has no place")


def _is_unconditional(placed: _PlacedCharge, document: _RateDocument) -> bool:
    charge = placed.charge
    if charge.hours_of_use_from or charge.hours_of_use_below is not None:
        document.record_charge_omission(placed, "depends on annual hours of use")
        return False
    if charge.months != MONTHS:
        document.record_charge_omission(placed, "is not charged in every month")
        return False
    return True


def _to_json_number(price: Decimal) -> float | int | None:
    """The price as JSON has it, or None where it would be another."""
    if price == price.to_integral_value():
        return int(price)
    return float(price) if parse_decimal(float(price)) == price else None


def _select_charges(
    placed: Iterable[_PlacedCharge], kind: type[_CHARGED]
) -> list[tuple[_PlacedCharge, _CHARGED]]:
    return [(one, one.charge) for one in placed if isinstance(one.charge, kind)]


def _write_fixed(placed: Sequence[_PlacedCharge], document: _RateDocument) -> None:
    """Writes one customer charge: monthly and yearly amounts are summed, daily ones only with their like."""
    charges = _select_charges(placed, FixedCharge)
    if not charges:
        return
    by_day = charges[0][1].per is FixedChargePeriod.DAY
    said = [(one, charge) for one, charge in charges if (charge.per is FixedChargePeriod.DAY) == by_day]
    for one, charge in charges:
        if (charge.per is FixedChargePeriod.DAY) != by_day:
            document.record_charge_omission(one, f"is due by {charge.per}, and the customer charge is not")
    per = said[0][1].per if len({charge.per for _, charge in said}) == 1 else FixedChargePeriod.YEAR
    total = sum((_compute_amount_due(charge, per) for _, charge in said), Decimal(0))
    number = _to_json_number(total)
    if number is None:
        document.record_charge_omission(said[0][0], "has more digits than a number of JSON")
        return
    document.keys |= {"fixedchargefirstmeter": number, "fixedchargeunits": f"$/{per}"}
    document.check_charge_name(said[0][0], CUSTOMER)
    for one, _ in said[1:]:
        document.record_charge_omission(one, "is part of the customer charge")


def _compute_amount_due(charge: FixedCharge, per: FixedChargePeriod) -> Decimal:
    months = YEAR_MONTHS if per is FixedChargePeriod.YEAR and charge.per is FixedChargePeriod.MONTH else 1
    return charge.price * charge.meters * months


def _write_single(placed: Sequence[_PlacedCharge], document: _RateDocument) -> None:
    """Charges that are one number each, and those that have no place."""
    for one, reactive in _select_charges(placed, ReactiveCharge):
        if reactive.free_share_of_active or reactive.by_energy:
            document.record_charge_omission(one, "is not on all kvar at the peak of the month")
        else:
            _write_number(one, "demandreactivepowercharge", reactive.price, REACTIVE_DEMAND, document)
    for one, minimum in _select_charges(placed, MinimumCharge):
        if minimum.of:
            document.record_charge_omission(one, "is a minimum of some of the charges")
        elif minimum.name == YEARLY_MINIMUM and minimum.per is FixedChargePeriod.YEAR:
            _write_number(one, "annualmincharge", minimum.amount, YEARLY_MINIMUM, document)
        elif _write_number(one, "mincharge", minimum.amount, MINIMUM, document):
            document.keys["minchargeunits"] = f"$/{minimum.per}"
    known = (FixedCharge, DemandCharge, EnergyCharge, ReactiveCharge, MinimumCharge)
    for one in placed:
        if not isinstance(one.charge, known):
            document.record_charge_omission(one, "has no place")


def _write_number(one: _PlacedCharge, key: str, price: Decimal, name: str, document: _RateDocument) -> bool:
    number = _to_json_number(price)
    if key in document.keys or number is None:
        why = (
            "stands beside another of its kind"
            if number is not None
            else "has more digits than a number of JSON"
        )
        document.record_charge_omission(one, why)
        return False
    document.keys[key] = number
    document.check_charge_name(one, name)
    return True


def _write_energy(
    placed: Sequence[_PlacedCharge], flat: DemandCharge | None, document: _RateDocument
) -> None:
    """One structure of energy; prices for all hours beside it are the ``adj`` of every tier."""
    charges = _select_charges(placed, EnergyCharge)
    main = next((one for one, charge in charges if not _is_one_price(charge)), None)
    main = main or next((one for one, _ in charges), None)
    if main is None:
        return
    charge = next(charge for one, charge in charges if one is main)
    why = _explain_energy_omission(charge, flat)
    if why:
        document.record_charge_omission(main, why)
        for one, _ in charges:
            if one is not main:
                document.record_charge_omission(one, "stands beside energy prices that are left out")
        return
    adj = Decimal(0)
    for one, other in charges:
        if one is main:
            continue
        if not _is_one_price(other):
            document.record_charge_omission(one, "stands beside another of its kind")
            continue
        adj += other.periods[0].tiers[0].price
        document.record_charge_omission(one, "is the adj of every tier")
    if _write_scheduled("energy", main, charge.periods, document, adj):
        document.check_charge_name(main, ENERGY)


def _is_one_price(charge: EnergyCharge) -> bool:
    return (
        len(charge.periods) == 1
        and charge.periods[0].windows == (LocalTimeWindow(),)
        and len(charge.periods[0].tiers) == 1
        and charge.periods[0].tiers[0].unit is TariffTierUnit.KWH
    )


def _explain_energy_omission(charge: EnergyCharge, flat: DemandCharge | None) -> str | None:
    tiers = [tier for period in charge.periods for tier in period.tiers]
    if charge.accumulation is not TierAccumulation.PER_PERIOD and any(
        tier.limit is not None for tier in tiers
    ):
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


def _write_demand(placed: Sequence[_PlacedCharge], document: _RateDocument) -> DemandCharge | None:
    """The flat and the time-of-use structure; gives the flat charge that was written."""
    charges = []
    for one, charge in _select_charges(placed, DemandCharge):
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
    charges: Sequence[tuple[_PlacedCharge, DemandCharge]], chosen: Callable[[DemandCharge], bool]
) -> tuple[_PlacedCharge, DemandCharge] | None:
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
    if charge.billing_demand != BillingDemand() and _build_ratchet_keys(charge.billing_demand) is None:
        return "has floors or ratchets that no rate states"
    return None


def _is_flat(charge: DemandCharge) -> bool:
    return all(
        replace(window, months=MONTHS) == LocalTimeWindow()
        for period in charge.periods
        for window in period.windows
    )


def _build_ratchet_keys(rule: BillingDemand) -> dict[str, object] | None:
    """Returns the keys that state the ratchets of a rule, or None if there are none for it."""
    if replace(rule, ratchets=()) != BillingDemand():
        return None
    keys: dict[str, object] = {}
    for ratchet in rule.ratchets:
        found = _build_one_ratchet_keys(ratchet, older="lookbackpercent" in keys)
        if found is None or keys.keys() & found.keys():
            return None
        keys |= found
    return keys


def _build_one_ratchet_keys(ratchet: DemandRatchet, *, older: bool) -> dict[str, object] | None:
    shares = ratchet.share_by_billing_month
    plain = DemandRatchet(
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


def _write_timed(one: _PlacedCharge, charge: DemandCharge, document: _RateDocument) -> bool:
    if not _write_scheduled("demand", one, charge.periods, document):
        return False
    document.keys["demandrateunit"] = "kVA" if charge.apparent else "kW"
    document.check_charge_name(one, TIME_OF_USE_DEMAND)
    return True


def _write_flat(one: _PlacedCharge, charge: DemandCharge, document: _RateDocument) -> bool:
    places = _index_periods(charge.periods)
    by_month: dict[int, int] = {}
    for period in charge.periods:
        months = [month for window in period.windows for month in window.months]
        if len(set(months)) != len(months) or by_month.keys() & set(months):
            document.record_charge_omission(one, "has two periods in one month")
            return False
        by_month |= dict.fromkeys(months, places[period.name])
    spare = max(places.values()) + 1
    structure = _build_structure(charge.periods, places, "kW", spare if len(by_month) < YEAR_MONTHS else None)
    if structure is None:
        document.record_charge_omission(
            one, "has more digits than a number of JSON, or limits that read as none"
        )
        return False
    document.keys |= {
        "flatdemandstructure": structure,
        "flatdemandmonths": [by_month.get(month, spare) for month in MONTHS_OF_YEAR],
        "flatdemandunit": "kVA" if charge.apparent else "kW",
        **(_build_ratchet_keys(charge.billing_demand) or {}),
    }
    document.check_charge_name(one, FLAT_DEMAND)
    ratchets = charge.billing_demand.ratchets
    if any(ratchet.preceding_months and not ratchet.wraps_year for ratchet in ratchets):
        why = "looks at the end of the same year for months before a load, once it is read as lookbackrange"
        document.record_omission(charge.name, build_child_pointer(one.pointer, "billing_demand"), why)
    _check_period_names(one, charge.periods, document)
    return True


def _write_scheduled(
    kind: str,
    one: _PlacedCharge,
    periods: Sequence[PricePeriod],
    document: _RateDocument,
    adj: Decimal = Decimal(0),
) -> bool:
    """A structure and its two schedules; hours of no period get one of their own without a price."""
    places = _index_periods(periods)
    grid: dict[HourCell, int] = {}
    for period in periods:
        covered = list_cells(period.windows)
        if covered is None or covered & grid.keys():
            document.record_charge_omission(one, "has periods that no schedule of hours states")
            return False
        grid |= dict.fromkeys(covered, places[period.name])
    spare = max(places.values()) + 1
    missing = list_all_cells() - grid.keys()
    unit = "kWh" if kind == "energy" else "kW"
    structure = _build_structure(periods, places, unit, spare if missing else None, adj)
    if structure is None:
        document.record_charge_omission(
            one, "has more digits than a number of JSON, or limits that read as none"
        )
        return False
    grid |= dict.fromkeys(missing, spare)
    document.keys |= {
        f"{kind}ratestructure": structure,
        f"{kind}weekdayschedule": build_schedule(grid, at_weekend=False),
        f"{kind}weekendschedule": build_schedule(grid, at_weekend=True),
    }
    _check_period_names(one, periods, document)
    return True


def _index_periods(periods: Sequence[PricePeriod]) -> dict[str, int]:
    """Returns the position of each period: the one in its name, else in order."""
    named = {period.name: _PERIOD_NAME.fullmatch(period.name) for period in periods}
    places = {name: int(found[1]) for name, found in named.items() if found}
    if len(places) == len(periods) and max(places.values()) < _MOST_PERIODS:
        return places
    return {period.name: place for place, period in enumerate(periods)}


def _check_period_names(one: _PlacedCharge, periods: Sequence[PricePeriod], document: _RateDocument) -> None:
    names = {format_period_name(place) for place in _index_periods(periods).values()}
    if {period.name for period in periods} != names:
        pointer = build_child_pointer(one.pointer, "periods")
        document.record_omission(one.charge.name, pointer, "has named periods, and a rate numbers them")


def _build_structure(
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
        ladder = [_build_entry(tier, adj) for tier in period.tiers]
        if None in ladder:
            return None
        structure[places[period.name]] = [entry for entry in ladder if entry is not None]
    return structure


def _build_entry(tier: PriceTier, adj: Decimal) -> dict[str, Any] | None:
    rate, further = _to_json_number(tier.price), _to_json_number(adj)
    if rate is None or further is None or (tier.limit is not None and not 0 < tier.limit < HUGE):
        return None
    entry: dict[str, Any] = {"rate": rate, "unit": _UNIT_NAMES[tier.unit]}
    if tier.limit is not None:
        entry["max"] = tier.limit
    return entry | ({"adj": further} if adj else {})
