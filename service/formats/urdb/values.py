"""Reading values of a document: numbers, lists of twelve, schedules; what does not fit is refused by name."""

import math
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from service.formats.urdb.findings import ImportFindings, build_child_pointer
from service.formats.urdb.hours import HOURS_OF_DAY, MONTHS_OF_YEAR

YEAR_MONTHS = len(MONTHS_OF_YEAR)
_LARGEST_NUMBER = Decimal("1e15")
_PERCENT = 100.0


def parse_decimal(value: object) -> Decimal | None:
    """A finite number as it is written, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return number if number.is_finite() else None


class MemberPath(NamedTuple):
    """A member of the document that holds a value, for refusing it by name."""

    value: object
    pointer: str
    findings: ImportFindings

    def record_refusal(self, detail: str) -> None:
        """Records that the value is not taken over."""
        self.findings.record_refusal(self.pointer, detail)

    def get_part(self, key: str | int) -> "MemberPath":
        """A member of an object or an entry of a list, None where there is none."""
        value: object = None
        if isinstance(self.value, Mapping):
            value = self.value.get(key)
        elif isinstance(self.value, Sequence) and isinstance(key, int) and key < len(self.value):
            value = self.value[key]
        return MemberPath(value, build_child_pointer(self.pointer, key), self.findings)

    def read_price(self) -> Decimal | None:
        """Any number that is money."""
        number = parse_decimal(self.value)
        if number is None or abs(number) > _LARGEST_NUMBER:
            self.record_refusal("must be a number")
            return None
        return number

    def read_quantity(self, *, negative: bool = False, largest: Decimal = _LARGEST_NUMBER) -> float | None:
        """A number that is not money, not below 0."""
        number = parse_decimal(self.value)
        if number is None or abs(number) > largest or (number < 0 and not negative):
            self.record_refusal("must be a number" if negative else "must be a number not below 0")
            return None
        return float(number)

    def read_integer(self, lowest: int, highest: int) -> int | None:
        """An integer, also where it is written with a point; no boolean."""
        number = parse_decimal(self.value)
        if number is None or number != number.to_integral_value() or not lowest <= number <= highest:
            self.record_refusal(f"must be a whole number from {lowest} to {highest}")
            return None
        return int(number)

    def read_choice(self, known: Collection[str]) -> str | None:
        """One of the known words."""
        if isinstance(self.value, str) and self.value in known:
            return self.value
        self.record_refusal(f"is not known; known are {', '.join(known)}")
        return None

    def list_entries(self) -> "list[MemberPath] | None":
        """The entries of a list."""
        if not isinstance(self.value, list | tuple):
            self.record_refusal("must be a list")
            return None
        return [self.get_part(place) for place in range(len(self.value))]

    def read_members(self, known: Collection[str]) -> "dict[str, MemberPath] | None":
        """The members of an object that are there; others than the known are refused by name."""
        if not isinstance(self.value, Mapping):
            self.record_refusal("must be an object")
            return None
        for name in self.value:
            if name not in known:
                self.get_part(name).record_refusal("is not known here")
        return {name: self.get_part(name) for name in known if self.value.get(name) is not None}

    def read_twelve(self) -> "list[MemberPath] | None":
        """Twelve entries, January to December."""
        entries = self.list_entries()
        if entries is not None and len(entries) != YEAR_MONTHS:
            self.record_refusal("must have 12 entries")
            return None
        return entries

    def read_twelve_flags(self) -> tuple[bool, ...] | None:
        """Twelve of 0, 1, false and true."""
        entries = self.read_twelve()
        if entries is None:
            return None
        found = tuple(entry.value for entry in entries)
        if not all(isinstance(value, int | float | Decimal) and value in {0, 1} for value in found):
            self.record_refusal("must have 12 entries of 0 or 1")
            return None
        return tuple(bool(value) for value in found)

    def read_twelve_numbers(self, *, negative: bool = False) -> tuple[float, ...] | None:
        """Twelve numbers."""
        entries = self.read_twelve()
        if entries is None:
            return None
        found = [entry.read_quantity(negative=negative) for entry in entries]
        return None if None in found else tuple(value for value in found if value is not None)

    def read_twelve_indexes(self, count: int) -> list[int] | None:
        """Twelve places in a list of ``count`` entries, from 0."""
        entries = self.read_twelve()
        return None if entries is None else _read_indexes(entries, count)

    def read_schedule(self, count: int) -> list[list[int]] | None:
        """12 x 24 places in a list of ``count`` periods, from 0."""
        months = self.read_twelve()
        if months is None:
            return None
        rows: list[list[int]] = []
        for month in months:
            hours = month.list_entries()
            if hours is None:
                return None
            if len(hours) != HOURS_OF_DAY:
                month.record_refusal("must have 24 hours")
                return None
            row = _read_indexes(hours, count)
            if row is None:
                return None
            rows.append(row)
        return rows

    def read_shares(self) -> tuple[float, ...] | None:
        """Twelve fractions; where one is above 1, all are read as percentages."""
        found = self.read_twelve_numbers()
        if found is None:
            return None
        if max(found) <= 1.0:
            return found
        if max(found) > _PERCENT:
            self.record_refusal("must be fractions from 0 to 1")
            return None
        self.findings.record_approximation(self.pointer, "read as percentages, because one is above 1")
        return tuple(value / _PERCENT for value in found)

    def read_share(self) -> float | None:
        """A fraction; above 1 it is read as a percentage."""
        found = self.read_quantity()
        if found is None or found <= 1.0:
            return found
        if found > _PERCENT:
            self.record_refusal("must be a fraction from 0 to 1")
            return None
        self.findings.record_approximation(self.pointer, "read as a percentage, because it is above 1")
        return found / _PERCENT


def _read_indexes(entries: "Sequence[MemberPath]", count: int) -> list[int] | None:
    """Places below ``count``; the first that is not one is refused."""
    found: list[int] = []
    for entry in entries:
        place = entry.read_integer(0, count - 1)
        if place is None:
            return None
        found.append(place)
    return found
