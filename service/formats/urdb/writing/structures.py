"""Structures of price and the schedules of hours that name their periods."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from service.formats.urdb.findings import build_child_pointer
from service.formats.urdb.hours import HourCell, build_schedule, list_all_cells, list_cells
from service.formats.urdb.ladders import HUGE, UNITS
from service.formats.urdb.rate import format_period_name
from service.formats.urdb.writing.document import PlacedCharge, RateDocument, to_json_number
from service.planning.tariff.charges import PricePeriod, PriceTier

_MOST_PERIODS = 288
_PERIOD_NAME = re.compile(r"period_(0|[1-9]\d{0,2})")
_UNIT_NAMES = {unit: name for name, unit in UNITS.items()}


def write_scheduled(
    kind: str,
    one: PlacedCharge,
    periods: Sequence[PricePeriod],
    document: RateDocument,
    adj: Decimal = Decimal(0),
) -> bool:
    """A structure and its two schedules; hours of no period get one of their own without a price."""
    places = index_periods(periods)
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
    structure = build_structure(periods, places, unit, spare if missing else None, adj)
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
    check_period_names(one, periods, document)
    return True


def index_periods(periods: Sequence[PricePeriod]) -> dict[str, int]:
    """Returns the position of each period: the one in its name, else in order."""
    named = {period.name: _PERIOD_NAME.fullmatch(period.name) for period in periods}
    places = {name: int(found[1]) for name, found in named.items() if found}
    if len(places) == len(periods) and max(places.values()) < _MOST_PERIODS:
        return places
    return {period.name: place for place, period in enumerate(periods)}


def check_period_names(one: PlacedCharge, periods: Sequence[PricePeriod], document: RateDocument) -> None:
    """Records the names of periods, unless they are those that an import assigns."""
    names = {format_period_name(place) for place in index_periods(periods).values()}
    if {period.name for period in periods} != names:
        pointer = build_child_pointer(one.pointer, "periods")
        document.record_omission(one.charge.name, pointer, "has named periods, and a rate numbers them")


def build_structure(
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
    rate, further = to_json_number(tier.price), to_json_number(adj)
    if rate is None or further is None or (tier.limit is not None and not 0 < tier.limit < HUGE):
        return None
    entry: dict[str, Any] = {"rate": rate, "unit": _UNIT_NAMES[tier.unit]}
    if tier.limit is not None:
        entry["max"] = tier.limit
    return entry | ({"adj": further} if adj else {})
