"""A tariff as rows of charges with windows of any minute (``x_charges``)."""

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from service.formats.urdb.rate import WINDOW, UrdbRate
from service.formats.urdb.values import MemberPath, parse_decimal
from service.planning.tariff.charges import (
    DAY_MINUTES,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    LocalTimeWindow,
    PricePeriod,
    PriceTier,
    TariffTierUnit,
)

_UNITS = {"customer": "$/month", "energy": "$/kwh", "demand": "$/kw", "export": "$/kwh"}
_MEMBERS = ("type", "name", "rate", "unit", "months", "weekdays_0mon", "hours")
_HOUR_MINUTES = 60


class _TierRow(NamedTuple):
    kind: str
    name: str
    price: Decimal
    window: LocalTimeWindow


def read_charge_rows(rate: UrdbRate) -> None:
    """Charges of ``x_charges``: rows of demand with the same name and price share one peak."""
    if not rate.has_key("x_charges"):
        return
    entries = rate.get_field("x_charges").list_entries()
    rows = [row for entry in entries or () if (row := _read_row(entry)) is not None]
    taken = {charge.name for charge in rate.charges}
    peaks: dict[tuple[str, Decimal], list[LocalTimeWindow]] = {}
    for row in rows:
        if row.kind == "demand":
            peaks.setdefault((row.name, row.price), []).append(row.window)
        elif row.kind == "energy":
            period = PricePeriod(name=WINDOW, tiers=(PriceTier(price=row.price),), windows=(row.window,))
            rate.charges.append(EnergyCharge(name=_build_unused_name(row, taken), periods=(period,)))
        elif row.kind == "customer":
            rate.charges.append(
                FixedCharge(name=_build_unused_name(row, taken), price=row.price, months=row.window.months)
            )
    for (name, price), windows in peaks.items():
        period = PricePeriod(
            name=WINDOW, tiers=(PriceTier(price=price, unit=TariffTierUnit.KW),), windows=tuple(windows)
        )
        row = _TierRow("demand", name, price, windows[0])
        rate.charges.append(DemandCharge(name=_build_unused_name(row, taken), periods=(period,)))


def _build_unused_name(row: _TierRow, taken: set[str]) -> str:
    """A name that no other charge has: what the row is, and how it is called."""
    stem = f"{row.kind} {row.name}".strip()
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem} {number}"
    taken.add(name)
    return name


def _read_row(place: MemberPath) -> _TierRow | None:
    members = _read_members(place)
    if members is None:
        return None
    kind = str(members["type"].value)
    price, window, name = members["rate"].read_price(), _read_window(members), _read_name(members)
    if price is None or window is None or name is None:
        return None
    if kind == "export":
        place.findings.record_warning(place.pointer, "is a credit for exported energy, which is not billed")
        return None
    if kind == "customer" and window != LocalTimeWindow(months=window.months):
        place.record_refusal("is a charge per month: its days and hours cannot be restricted")
        return None
    return _TierRow(kind, name, price, window)


def _read_members(place: MemberPath) -> dict[str, MemberPath] | None:
    """The members of a row that has a known type, its unit and a price."""
    members = place.read_members(_MEMBERS)
    if members is None:
        return None
    for needed in ("type", "rate", "unit"):
        if needed not in members:
            place.get_part(needed).record_refusal("is missing")
            return None
    kind = members["type"].read_choice(tuple(_UNITS))
    if kind is None:
        return None
    unit = members["unit"].value
    if not isinstance(unit, str) or unit.lower() != _UNITS[kind]:
        members["unit"].record_refusal(f"is not that of {kind} rows")
        return None
    return members


def _read_name(members: dict[str, MemberPath]) -> str | None:
    if "name" not in members:
        return ""
    if isinstance(members["name"].value, str):
        return members["name"].value
    members["name"].record_refusal("must be text")
    return None


def _read_window(members: dict[str, MemberPath]) -> LocalTimeWindow | None:
    """Months and days with both ends included, hours without the last; all where they are not there."""
    whole = LocalTimeWindow()
    months = _read_span(members, "months", lambda place: place.read_integer(1, 12), (1, 12))
    days = _read_span(members, "weekdays_0mon", lambda place: place.read_integer(0, 6), (0, 6))
    minutes = _read_span(members, "hours", _read_minute, (0, DAY_MINUTES))
    if months is None or days is None or minutes is None:
        return None
    if minutes[0] == minutes[1]:
        members["hours"].record_refusal("is empty")
        return None
    return LocalTimeWindow(
        months=whole.months & frozenset(range(months[0], months[1] + 1)),
        weekdays=frozenset(day + 1 for day in range(days[0], days[1] + 1)),
        from_minute=minutes[0],
        to_minute=minutes[1],
    )


def _read_span(
    members: dict[str, MemberPath],
    name: str,
    read: Callable[[MemberPath], int | None],
    whole: tuple[int, int],
) -> tuple[int, int] | None:
    if name not in members:
        return whole
    entries = members[name].list_entries()
    if entries is None:
        return None
    if len(entries) != len(whole):
        members[name].record_refusal("must have a first and a last")
        return None
    first, last = read(entries[0]), read(entries[1])
    if first is None or last is None:
        return None
    if first > last:
        members[name].record_refusal("ends before it begins")
        return None
    return first, last


def _read_minute(place: MemberPath) -> int | None:
    """The minute of the day of a decimal hour."""
    hour = parse_decimal(place.value)
    minute = None if hour is None else hour * _HOUR_MINUTES
    if minute is None or minute != minute.to_integral_value() or not 0 <= minute <= DAY_MINUTES:
        place.record_refusal("must be an hour from 0 to 24 that falls on a minute")
        return None
    return int(minute)
