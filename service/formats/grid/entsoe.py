"""Day-ahead prices from the XML documents of ENTSO-E (A44, publication document 7).

A period is an interval of time with points at whole multiples of its resolution. Under curve type A03 an
omitted point repeats the one before it; under A01 every point must be present.
"""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from service.planning.errors import PlanningError
from service.planning.tariff.charges import IntervalPrices

_RESOLUTIONS = {"PT15M": 15, "PT30M": 30, "PT60M": 60, "PT1H": 60}
_UNITS = {"MWH": 1000.0, "KWH": 1.0}
_LONGEST = 20_000_000
"""Longest document in characters; some years of days."""
_MOST_INTERVALS = 400_000
_REPEATING, _POINTS = "A03", "A01"


class PriceSeries(NamedTuple):
    """Prices per kWh of consecutive intervals of one bidding zone, and their currency."""

    prices: IntervalPrices
    currency_code: str
    zone: str


class _PricePeriod(NamedTuple):
    start: datetime
    minutes: int
    values: list[float]
    currency: str
    zone: str

    @property
    def end(self) -> datetime:
        return self.start + timedelta(minutes=self.minutes) * len(self.values)


def _build_error(detail: str) -> PlanningError:
    return PlanningError("PRICE_FILE", "/content", detail)


def _parse_root(text: str) -> ET.Element:
    """Parses the root of a document without a type definition, so that no entity is expanded or fetched."""
    if len(text) > _LONGEST:
        raise _build_error("the document is too long")
    if "<!" in _strip_comments(text):
        raise _build_error("a document with a type definition or character data sections is not read")
    try:
        return ET.fromstring(text)  # noqa: S314 - without a type definition there are no entities
    except (ET.ParseError, ValueError, LookupError) as error:
        raise _build_error("not an XML document") from error


def _strip_comments(text: str) -> str:
    """Removes comments; an unterminated one is left as it is."""
    kept, place = [], 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[place:start])
        place = end + 3
    return "".join((*kept, text[place:]))


def _get_tag_name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _list_children(element: ET.Element, name: str) -> list[ET.Element]:
    return [child for child in element if _get_tag_name(child) == name]


def _read_text(element: ET.Element, *path: str) -> str:
    for name in path:
        found = _list_children(element, name)
        if len(found) != 1:
            raise _build_error(f"one {name} is expected")
        element = found[0]
    return (element.text or "").strip()


def _parse_time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise _build_error("a time is not like 2025-09-28T22:00Z") from error


def _read_points(period: ET.Element, count: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for point in _list_children(period, "Point"):
        position, price = _read_text(point, "position"), _read_text(point, "price.amount")
        try:
            place, value = int(position), float(price)
        except ValueError as error:
            raise _build_error("a position or a price is not a number") from error
        if place in found or not 1 <= place <= count or not math.isfinite(value):
            raise _build_error("a position is repeated or lies outside its period")
        found[place] = value
    return found


class _SeriesProperties(NamedTuple):
    """Members of a series that hold for all its periods."""

    curve: str
    per_kwh: float
    currency: str
    zone: str


def _read_series(series: ET.Element) -> _SeriesProperties:
    curve, per = _read_text(series, "curveType"), _UNITS.get(_read_text(series, "price_Measure_Unit.name"))
    if curve not in (_REPEATING, _POINTS) or per is None:
        raise _build_error("the curve type is not A01 or A03, or the unit is not MWH")
    return _SeriesProperties(
        curve, per, _read_text(series, "currency_Unit.name"), _read_text(series, "in_Domain.mRID")
    )


def _read_period(period: ET.Element, series: _SeriesProperties) -> _PricePeriod:
    minutes = _RESOLUTIONS.get(_read_text(period, "resolution"))
    if minutes is None:
        raise _build_error(f"the resolution is none of {', '.join(_RESOLUTIONS)}")
    start, end = (
        _parse_time(_read_text(period, "timeInterval", "start")),
        _parse_time(_read_text(period, "timeInterval", "end")),
    )
    count, rest = divmod((end - start).total_seconds(), minutes * 60)
    if count < 1 or rest or count > _MOST_INTERVALS:
        raise _build_error("a period is not a whole number of intervals")
    found = _read_points(period, int(count))
    if 1 not in found or (series.curve == _POINTS and len(found) < count):
        raise _build_error("a position is missing that no rule fills")
    values: list[float] = []
    for place in range(1, int(count) + 1):
        values.append(found[place] / series.per_kwh if place in found else values[-1])
    return _PricePeriod(start, minutes, values, series.currency, series.zone)


def _read_periods(root: ET.Element) -> Iterator[_PricePeriod]:
    intervals = 0
    for element in _list_children(root, "TimeSeries"):
        periods = _list_children(element, "Period")
        if not periods:
            continue
        series = _read_series(element)
        for each in periods:
            period = _read_period(each, series)
            intervals += len(period.values)
            if intervals > _MOST_INTERVALS:
                raise _build_error(f"the document has more than {_MOST_INTERVALS} intervals")
            yield period


def read_entsoe_prices(text: str) -> PriceSeries:
    """Reads the prices of a document whose periods follow each other without a gap.

    Refuses with ``PRICE_FILE`` other documents, holes that no rule fills, and mixed zones, currencies or
    resolutions.
    """
    root = _parse_root(text)
    if _get_tag_name(root) != "Publication_MarketDocument" or _read_text(root, "type") != "A44":
        raise _build_error("not a document of day-ahead prices (A44)")
    periods = sorted(_read_periods(root), key=lambda period: period.start)
    if not periods:
        raise _build_error("no prices")
    first = periods[0]
    for before, after in pairwise(periods):
        if after.start != before.end:
            raise _build_error("the periods do not follow each other without a gap")
        if (after.minutes, after.currency, after.zone) != (first.minutes, first.currency, first.zone):
            raise _build_error("zones, currencies or resolutions differ")
    if not re.fullmatch("[A-Z]{3}", first.currency):
        raise _build_error("the currency is not a code of three letters")
    values = np.concatenate([period.values for period in periods])
    return PriceSeries(IntervalPrices(first.start, first.minutes, values), first.currency, first.zone)
