"""Carbon intensities of grids by hour, from CSV.

AVERT (EPA): columns ``Month``, ``Timestamp`` (hour of the year from 0) and one for each region, marginal
pounds of CO2 per kWh, below zero where more load lets cleaner plants run. By month and hour (as eeco):
``month``, ``hour``, ``co2_eq_kg_per_MWh``, 288 rows. Figures come out in kg per kWh.
"""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice

from service.planning.errors import PlanningError

POUND_KILOGRAMS = 0.45359237
"""International pound."""
_MWH_KWH = 1000.0
_MONTHS, _HOURS = 12, 24
_MOST_HOURS = 8784
_MOST_REGIONS = 100
_HIGHEST = 1e6
_KEYS = ("Month", "Timestamp")


def _build_error(line: int, detail: str) -> PlanningError:
    return PlanningError("GRID_FILE", "/content", f"line {line}: {detail}")


def _read_rows(text: str) -> tuple[list[str], list[Sequence[str]]]:
    """Header and rows; refuses a table whose rows differ from its header."""
    try:
        # More rows than a year has are refused below, and the rest is not read.
        table = list(islice(csv.reader(io.StringIO(text), strict=True), _MOST_HOURS + 2))
    except csv.Error as error:
        raise PlanningError("GRID_FILE", "/content", "the content is not a CSV table") from error
    if not table:
        raise PlanningError("GRID_FILE", "/content", "no header")
    header, *rows = table
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise _build_error(line, f"{len(row)} values under {len(header)} columns")
    return [name.strip() for name in header], list(rows)


def _parse_number(text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise _build_error(line, "a value is not a number") from error
    if not math.isfinite(value) or abs(value) > _HIGHEST:
        raise _build_error(line, "a value is not finite or too large")
    return value


def _parse_integer(text: str, line: int) -> int:
    if not re.fullmatch("[0-9]{1,5}", text.strip()):
        raise _build_error(line, "a month or an hour is not a whole number")
    return int(text)


def read_avert_regions(text: str) -> Mapping[str, tuple[float, ...]]:
    """Marginal kg CO2 per kWh by region, for the hours of a year from its first on.

    Refuses with ``GRID_FILE`` a table whose hours have a gap or are not in order, or with more than a year.
    """
    header, rows = _read_rows(text)
    if tuple(header[: len(_KEYS)]) != _KEYS or not 0 < len(header) - len(_KEYS) <= _MOST_REGIONS:
        raise PlanningError("GRID_FILE", "/content", "the columns are Month, Timestamp and regions")
    if len(set(header)) != len(header):
        raise PlanningError("GRID_FILE", "/content", "two columns have the same name")
    if not 0 < len(rows) <= _MOST_HOURS:
        raise PlanningError("GRID_FILE", "/content", f"1 to {_MOST_HOURS} hours")
    for place, row in enumerate(rows):
        if _parse_integer(row[1], place + 2) != place:
            raise _build_error(place + 2, f"hour {place} of the year is missing or not in its place")
    return {
        region: tuple(
            _parse_number(row[column], line) * POUND_KILOGRAMS for line, row in enumerate(rows, start=2)
        )
        for column, region in enumerate(header[len(_KEYS) :], start=len(_KEYS))
    }


def read_month_hours(text: str) -> tuple[float, ...]:
    """Average kg CO2e per kWh, by month and hour of the day: 12 times 24, from midnight in January on.

    Refuses with ``GRID_FILE`` a table in which one of them is missing or stands twice.
    """
    header, rows = _read_rows(text)
    if header != ["month", "hour", "co2_eq_kg_per_MWh"]:
        raise PlanningError("GRID_FILE", "/content", "the columns are month, hour and co2_eq_kg_per_MWh")
    found: dict[tuple[int, int], float] = {}
    for line, (month, hour, value) in enumerate(rows, start=2):
        key = (_parse_integer(month, line), _parse_integer(hour, line))
        if key in found or not (1 <= key[0] <= _MONTHS and key[1] < _HOURS):
            raise _build_error(line, "a month and hour is repeated or does not exist")
        found[key] = _parse_number(value, line) / _MWH_KWH
        if found[key] < 0.0:
            raise _build_error(line, "an average is not below zero")
    if len(found) != _MONTHS * _HOURS:
        raise PlanningError("GRID_FILE", "/content", f"{len(found)} of {_MONTHS * _HOURS} months and hours")
    return tuple(found[month, hour] for month in range(1, _MONTHS + 1) for hour in range(_HOURS))
