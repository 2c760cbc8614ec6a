"""Reading values of a document: numbers, lists of twelve, schedules; what does not fit is refused by name."""

import math
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from service.formats.urdb.findings import Findings, child
from service.formats.urdb.hours import HOURS_OF_DAY, MONTHS_OF_YEAR

YEAR_MONTHS = len(MONTHS_OF_YEAR)
_LARGEST_NUMBER = Decimal("1e15")
_PERCENT = 100.0


def decimal_of(value: object) -> Decimal | None:
    """A finite number as it is written, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return number if number.is_finite() else None


class Place(NamedTuple):
    """A member of the document that holds a value, for refusing it by name."""

    value: object
    pointer: str
    findings: Findings

    def refuse(self, detail: str) -> None:
        """Say that the value is not taken over."""
        self.findings.refuse(self.pointer, detail)

    def part(self, key: str | int) -> "Place":
        """A member of an object or an entry of a list, None where there is none."""
        value: object = None
        if isinstance(self.value, Mapping):
            value = self.value.get(key)
        elif isinstance(self.value, Sequence) and isinstance(key, int) and key < len(self.value):
            value = self.value[key]
        return Place(value, child(self.pointer, key), self.findings)

    def price(self) -> Decimal | None:
        """Any number that is money."""
        number = decimal_of(self.value)
        if number is None or abs(number) > _LARGEST_NUMBER:
            self.refuse("must be a number")
            return None
        return number

    def quantity(self, *, negative: bool = False, largest: Decimal = _LARGEST_NUMBER) -> float | None:
        """A number that is not money, not below 0."""
        number = decimal_of(self.value)
        if number is None or abs(number) > largest or (number < 0 and not negative):
            self.refuse("must be a number" if negative else "must be a number not below 0")
            return None
        return float(number)

    def whole(self, lowest: int, highest: int) -> int | None:
        """An integer, also where it is written with a point; no boolean."""
        number = decimal_of(self.value)
        if number is None or number != number.to_integral_value() or not lowest <= number <= highest:
            self.refuse(f"must be a whole number from {lowest} to {highest}")
            return None
        return int(number)

    def text(self, known: Collection[str]) -> str | None:
        """One of the known words."""
        if isinstance(self.value, str) and self.value in known:
            return self.value
        self.refuse(f"is not known; known are {', '.join(known)}")
        return None

    def entries(self) -> "list[Place] | None":
        """The entries of a list."""
        if not isinstance(self.value, list | tuple):
            self.refuse("must be a list")
            return None
        return [self.part(place) for place in range(len(self.value))]

    def members(self, known: Collection[str]) -> "dict[str, Place] | None":
        """The members of an object that are there; others than the known are refused by name."""
        if not isinstance(self.value, Mapping):
            self.refuse("must be an object")
            return None
        for name in self.value:
            if name not in known:
                self.part(name).refuse("is not known here")
        return {name: self.part(name) for name in known if self.value.get(name) is not None}

    def twelve(self) -> "list[Place] | None":
        """Twelve entries, January to December."""
        entries = self.entries()
        if entries is not None and len(entries) != YEAR_MONTHS:
            self.refuse("must have 12 entries")
            return None
        return entries

    def twelve_flags(self) -> tuple[bool, ...] | None:
        """Twelve of 0, 1, false and true."""
        entries = self.twelve()
        if entries is None:
            return None
        found = tuple(entry.value for entry in entries)
        if not all(isinstance(value, int | float | Decimal) and value in {0, 1} for value in found):
            self.refuse("must have 12 entries of 0 or 1")
            return None
        return tuple(bool(value) for value in found)

    def twelve_numbers(self, *, negative: bool = False) -> tuple[float, ...] | None:
        """Twelve numbers."""
        entries = self.twelve()
        if entries is None:
            return None
        found = [entry.quantity(negative=negative) for entry in entries]
        return None if None in found else tuple(value for value in found if value is not None)

    def twelve_places(self, count: int) -> list[int] | None:
        """Twelve places in a list of ``count`` entries, from 0."""
        entries = self.twelve()
        return None if entries is None else _places(entries, count)

    def schedule(self, count: int) -> list[list[int]] | None:
        """12 x 24 places in a list of ``count`` periods, from 0."""
        months = self.twelve()
        if months is None:
            return None
        rows: list[list[int]] = []
        for month in months:
            hours = month.entries()
            if hours is None:
                return None
            if len(hours) != HOURS_OF_DAY:
                month.refuse("must have 24 hours")
                return None
            row = _places(hours, count)
            if row is None:
                return None
            rows.append(row)
        return rows

    def shares(self) -> tuple[float, ...] | None:
        """Twelve fractions; where one is above 1, all are read as percentages."""
        found = self.twelve_numbers()
        if found is None:
            return None
        if max(found) <= 1.0:
            return found
        if max(found) > _PERCENT:
            self.refuse("must be fractions from 0 to 1")
            return None
        self.findings.approximate(self.pointer, "read as percentages, because one is above 1")
        return tuple(value / _PERCENT for value in found)

    def share(self) -> float | None:
        """A fraction; above 1 it is read as a percentage."""
        found = self.quantity()
        if found is None or found <= 1.0:
            return found
        if found > _PERCENT:
            self.refuse("must be a fraction from 0 to 1")
            return None
        self.findings.approximate(self.pointer, "read as a percentage, because it is above 1")
        return found / _PERCENT


def _places(entries: "Sequence[Place]", count: int) -> list[int] | None:
    """Places below ``count``; the first that is not one is refused."""
    found: list[int] = []
    for entry in entries:
        place = entry.whole(0, count - 1)
        if place is None:
            return None
        found.append(place)
    return found
