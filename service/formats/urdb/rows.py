"""A tariff as rows of charges with windows of any minute (``x_charges``)."""

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from service.formats.urdb.rate import WINDOW, Rate
from service.formats.urdb.values import Place, decimal_of
from service.planning.tariff.charges import (
    DAY_MINUTES,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    PricePeriod,
    Tier,
    TierUnit,
    Window,
)

_UNITS = {"customer": "$/month", "energy": "$/kwh", "demand": "$/kw", "export": "$/kwh"}
_MEMBERS = ("type", "name", "rate", "unit", "months", "weekdays_0mon", "hours")
_HOUR_MINUTES = 60


class _Row(NamedTuple):
    kind: str
    name: str
    price: Decimal
    window: Window


def charge_rows(rate: Rate) -> None:
    """Charges of ``x_charges``: rows of demand with the same name and price share one peak."""
    if not rate.has("x_charges"):
        return
    entries = rate.at("x_charges").entries()
    rows = [row for entry in entries or () if (row := _row(entry)) is not None]
    taken = {charge.name for charge in rate.charges}
    peaks: dict[tuple[str, Decimal], list[Window]] = {}
    for row in rows:
        if row.kind == "demand":
            peaks.setdefault((row.name, row.price), []).append(row.window)
        elif row.kind == "energy":
            period = PricePeriod(name=WINDOW, tiers=(Tier(price=row.price),), windows=(row.window,))
            rate.charges.append(EnergyCharge(name=_unused(row, taken), periods=(period,)))
        elif row.kind == "customer":
            rate.charges.append(
                FixedCharge(name=_unused(row, taken), price=row.price, months=row.window.months)
            )
    for (name, price), windows in peaks.items():
        period = PricePeriod(
            name=WINDOW, tiers=(Tier(price=price, unit=TierUnit.KW),), windows=tuple(windows)
        )
        row = _Row("demand", name, price, windows[0])
        rate.charges.append(DemandCharge(name=_unused(row, taken), periods=(period,)))


def _unused(row: _Row, taken: set[str]) -> str:
    """A name that no other charge has: what the row is, and how it is called."""
    stem = f"{row.kind} {row.name}".strip()
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem} {number}"
    taken.add(name)
    return name


def _row(place: Place) -> _Row | None:
    members = _members(place)
    if members is None:
        return None
    kind = str(members["type"].value)
    price, window, name = members["rate"].price(), _window(members), _name(members)
    if price is None or window is None or name is None:
        return None
    if kind == "export":
        place.findings.warn(place.pointer, "is a credit for exported energy, which is not billed")
        return None
    if kind == "customer" and window != Window(months=window.months):
        place.refuse("is a charge per month: its days and hours cannot be restricted")
        return None
    return _Row(kind, name, price, window)


def _members(place: Place) -> dict[str, Place] | None:
    """The members of a row that has a known type, its unit and a price."""
    members = place.members(_MEMBERS)
    if members is None:
        return None
    for needed in ("type", "rate", "unit"):
        if needed not in members:
            place.part(needed).refuse("is missing")
            return None
    kind = members["type"].text(tuple(_UNITS))
    if kind is None:
        return None
    unit = members["unit"].value
    if not isinstance(unit, str) or unit.lower() != _UNITS[kind]:
        members["unit"].refuse(f"is not that of {kind} rows")
        return None
    return members


def _name(members: dict[str, Place]) -> str | None:
    if "name" not in members:
        return ""
    if isinstance(members["name"].value, str):
        return members["name"].value
    members["name"].refuse("must be text")
    return None


def _window(members: dict[str, Place]) -> Window | None:
    """Months and days with both ends included, hours without the last; all where they are not there."""
    whole = Window()
    months = _span(members, "months", lambda place: place.whole(1, 12), (1, 12))
    days = _span(members, "weekdays_0mon", lambda place: place.whole(0, 6), (0, 6))
    minutes = _span(members, "hours", _minute, (0, DAY_MINUTES))
    if months is None or days is None or minutes is None:
        return None
    if minutes[0] == minutes[1]:
        members["hours"].refuse("is empty")
        return None
    return Window(
        months=whole.months & frozenset(range(months[0], months[1] + 1)),
        weekdays=frozenset(day + 1 for day in range(days[0], days[1] + 1)),
        from_minute=minutes[0],
        to_minute=minutes[1],
    )


def _span(
    members: dict[str, Place], name: str, read: Callable[[Place], int | None], whole: tuple[int, int]
) -> tuple[int, int] | None:
    if name not in members:
        return whole
    entries = members[name].entries()
    if entries is None:
        return None
    if len(entries) != len(whole):
        members[name].refuse("must have a first and a last")
        return None
    first, last = read(entries[0]), read(entries[1])
    if first is None or last is None:
        return None
    if first > last:
        members[name].refuse("ends before it begins")
        return None
    return first, last


def _minute(place: Place) -> int | None:
    """The minute of the day of a decimal hour."""
    hour = decimal_of(place.value)
    minute = None if hour is None else hour * _HOUR_MINUTES
    if minute is None or minute != minute.to_integral_value() or not 0 <= minute <= DAY_MINUTES:
        place.refuse("must be an hour from 0 to 24 that falls on a minute")
        return None
    return int(minute)
