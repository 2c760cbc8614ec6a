"""Loads of worked bills: a series made by a rule, billing quantities, or the energy and peak of a year."""

import csv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from service.formats.urdb.rate import ALL_HOURS
from service.planning.tariff.bill import BillingDeterminants, MeteredLoad


class BillError(Exception):
    """Reason why a row of worked bills cannot be computed."""


class BillingQuantity(NamedTuple):
    """One billing quantity of a month. ``place`` is the number of a price period from 0."""

    month: int
    kind: str
    place: int | None
    value: float


class QuantityLoad(NamedTuple):
    """A load with known billing quantities only."""

    values: tuple[BillingQuantity, ...]


class AnnualLoad(NamedTuple):
    """A load with known yearly energy and peak only."""

    energy_kwh: float
    peak_kw: float


class SeriesLoad(NamedTuple):
    """Mean kW of consecutive intervals."""

    interval_minutes: int
    kw: NDArray[np.float64]


KnownLoad: TypeAlias = SeriesLoad | QuantityLoad | AnnualLoad


class GivenLoad(NamedTuple):
    """A load and its local span, half-open; times have no zone, because no hour is skipped or repeated."""

    known: KnownLoad
    start: datetime
    end: datetime
    power_factor: float
    secondary: bool

    @property
    def last_year(self) -> int:
        """The year of the last interval."""
        return (self.end - timedelta(microseconds=1)).year


_COMMON = frozenset({"kind", "start", "end", "power_factor", "metering"})
_MEMBERS: Mapping[str, frozenset[str]] = {
    "constant": frozenset({"kw", "interval_minutes"}),
    "series_rule": frozenset({"base_kw", "step_kw", "add", "set", "interval_minutes"}),
    "determinants": frozenset({"values", "file", "load"}),
    "annual": frozenset({"energy_kwh", "peak_kw"}),
}
_SELECTORS = frozenset({"kw", "months", "weekdays", "hours"})
_QUANTITY_MEMBERS = frozenset({"month", "kind", "period_index_0based", "value", "unit"})
_QUANTITY_UNITS = {"energy": "kWh", "tou_peak": "kW", "month_peak": "kW", "coincident_peak": "kW"}
_METERING = {"primary": False, "secondary": True}
_HOUR_MINUTES = 60
_DAY_MINUTES = 1440
_MOST_INTERVALS = 3_000_000
_LARGEST = 1e12
YEARS = range(1900, 2200)
"""Years that a row may have."""


def load_of(fields: Mapping[str, object], folder: Path, tariff: str) -> GivenLoad:
    """Returns the load that a row describes. Raises :class:`BillError` for an unknown description."""
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _MEMBERS:
        raise BillError(f"load: kind is none of {', '.join(_MEMBERS)}")
    _refuse_unknown(fields, _COMMON | _MEMBERS[kind], "load")
    start, end = local_time(fields.get("start"), "load: start"), local_time(fields.get("end"), "load: end")
    if end <= start:
        raise BillError("load: ends before it starts")
    power_factor = _number(fields, "power_factor", "load", default=1.0)
    if not 0.0 < power_factor <= 1.0:
        raise BillError("load: power_factor is not above 0 and up to 1")
    metering = fields.get("metering", "primary")
    if not isinstance(metering, str) or metering not in _METERING:
        raise BillError("load: metering is neither primary nor secondary")
    known = _known(kind, fields, (start, end), folder, tariff)
    return GivenLoad(known, start, end, power_factor, _METERING[metering])


def _known(
    kind: str, fields: Mapping[str, object], span: tuple[datetime, datetime], folder: Path, tariff: str
) -> KnownLoad:
    if kind == "annual":
        return AnnualLoad(_number(fields, "energy_kwh", "load"), _number(fields, "peak_kw", "load"))
    if kind == "determinants":
        return QuantityLoad(_quantities(fields, folder, tariff))
    minutes = _number(fields, "interval_minutes", "load")
    if minutes != int(minutes) or not 1 <= minutes <= _DAY_MINUTES:
        raise BillError("load: interval_minutes is not a whole number up to a day")
    count = (span[1] - span[0]) / timedelta(minutes=minutes)
    if count != int(count) or count > _MOST_INTERVALS:
        raise BillError("load: the span is not a whole number of intervals")
    if kind == "constant":
        return SeriesLoad(int(minutes), np.full(int(count), _number(fields, "kw", "load")))
    return SeriesLoad(int(minutes), _ruled(fields, span[0], int(minutes), int(count)))


def _ruled(fields: Mapping[str, object], start: datetime, minutes: int, count: int) -> NDArray[np.float64]:
    """Returns base and step, with additions in selected intervals and then replaced values."""
    step = _number(fields, "step_kw", "load", default=0.0)
    kw = _number(fields, "base_kw", "load") + step * np.arange(count, dtype=np.float64)
    begins = np.datetime64(start, "m") + np.arange(count) * np.timedelta64(minutes, "m")
    for entry in _objects(fields, "add"):
        _refuse_unknown(entry, _SELECTORS, "load: add")
        kw[_selected(entry, begins)] += _number(entry, "kw", "load: add")
    for entry in _objects(fields, "set"):
        _refuse_unknown(entry, frozenset({"intervals_1based", "kw"}), "load: set")
        places = _whole_numbers(entry, "intervals_1based", "load: set")
        if not all(1 <= place <= count for place in places):
            raise BillError("load: set names an interval outside of the load")
        kw[[place - 1 for place in places]] = _number(entry, "kw", "load: set")
    return kw


def _selected(entry: Mapping[str, object], begins: NDArray[np.datetime64]) -> NDArray[np.bool_]:
    """Returns a mask of the intervals whose start matches all selectors of an entry."""
    days = begins.astype("datetime64[D]")
    chosen = np.ones(len(begins), dtype=np.bool_)
    if "months" in entry:
        months = begins.astype("datetime64[M]").astype(np.int64) % 12 + 1
        chosen &= np.isin(months, _whole_numbers(entry, "months", "load: add"))
    if "weekdays" in entry:
        # 1 January 1970 was a Thursday, ISO weekday 4.
        weekdays = (days.astype(np.int64) + 3) % 7 + 1
        chosen &= np.isin(weekdays, _whole_numbers(entry, "weekdays", "load: add"))
    if "hours" in entry:
        first, last = _numbers(entry, "hours", 2)
        hours = (begins - days).astype(np.int64) / _HOUR_MINUTES
        chosen &= (hours >= first) & (hours < last)
    return chosen


def _quantities(fields: Mapping[str, object], folder: Path, tariff: str) -> tuple[BillingQuantity, ...]:
    if ("values" in fields) == ("file" in fields):
        raise BillError("load: has either values or a file")
    rows = _objects(fields, "values") if "values" in fields else _file_rows(fields, folder, tariff)
    found = tuple(_quantity(row) for row in rows)
    named = [(one.month, one.kind, one.place) for one in found if one.kind != "coincident_peak"]
    if len(set(named)) != len(named):
        raise BillError("load: states a billing quantity twice")
    return found


def _file_rows(fields: Mapping[str, object], folder: Path, tariff: str) -> list[Mapping[str, object]]:
    """Returns rows of a file in the folder for this load and the periods of this tariff."""
    name, load = fields.get("file"), fields.get("load")
    if not isinstance(name, str) or Path(name).name != name or not (folder / name).is_file():
        raise BillError("load: its file is not in the folder")
    with (folder / name).open(encoding="utf-8-sig", newline="") as file:
        rows = [
            row for row in csv.DictReader(file) if row.get("load") == load and row.get("tariff") == tariff
        ]
    if not rows:
        raise BillError("load: its file has no row of this load and tariff")
    return [_parsed(row) for row in rows]


def _parsed(row: Mapping[str, str]) -> Mapping[str, object]:
    place = row["period_index_0based"]
    try:
        return {
            "month": int(row["month"]),
            "kind": row["kind"],
            "period_index_0based": int(place) if place else None,
            "value": float(row["value"]),
            "unit": row["unit"],
        }
    except (KeyError, TypeError, ValueError):
        raise BillError("load: a row of its file cannot be read") from None


def _quantity(row: Mapping[str, object]) -> BillingQuantity:
    _refuse_unknown(row, _QUANTITY_MEMBERS, "load: values")
    kind, month, place = row.get("kind"), row.get("month"), row.get("period_index_0based")
    if not isinstance(kind, str) or kind not in _QUANTITY_UNITS:
        raise BillError(f"load: a quantity is none of {', '.join(_QUANTITY_UNITS)}")
    if row.get("unit") != _QUANTITY_UNITS[kind]:
        raise BillError(f"load: a quantity of kind {kind} is not in {_QUANTITY_UNITS[kind]}")
    if not _is_whole(month) or not 1 <= month <= 12:  # noqa: PLR2004 - months of a year
        raise BillError("load: a quantity has no month")
    if place is not None and (not _is_whole(place) or place < 0):
        raise BillError("load: a quantity has no place of a period")
    return BillingQuantity(month, kind, place, _number(row, "value", "load: values"))


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def local_time(value: object, what: str) -> datetime:
    """Parses a local time without a zone."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None or found.year not in YEARS:
        raise BillError(f"{what} is not a local time")
    return found


def clock_of(time_zone: str, year: int) -> str:
    """Returns the zone itself if its offset is fixed in a year, else a clock of 24 hours every day.

    Rows are read on one local clock whose hours are neither skipped nor repeated.
    """
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BillError("the time zone is not known") from None
    first = datetime(year, 1, 1, tzinfo=UTC)
    offsets = {(first + timedelta(days=day)).astimezone(zone).utcoffset() for day in range(367)}
    return time_zone if len(offsets) == 1 else "Etc/UTC"


def series_load(load: GivenLoad, series: SeriesLoad, clock: str) -> MeteredLoad:
    """Returns the load in the form of the tariff engine."""
    return MeteredLoad(
        load.start.replace(tzinfo=ZoneInfo(clock)),
        series.interval_minutes,
        series.kw,
        load.power_factor,
        load.secondary,
    )


class PeriodNames(NamedTuple):
    """Names of price periods by place in a structure. A price without a structure applies to all hours."""

    energy: Mapping[int, str]
    demand: Mapping[int, str]
    has_energy: bool


def determinants_of(
    load: GivenLoad, quantities: QuantityLoad, year: int, names: PeriodNames
) -> BillingDeterminants:
    """Returns billing quantities under the names of the price periods of a tariff."""
    energy: dict[tuple[int, str], float] = {}
    for one in _of_kind(quantities, "energy") if names.has_energy else ():
        key = (one.month, _named(names.energy, one) if names.energy else ALL_HOURS)
        energy[key] = energy.get(key, 0.0) + one.value
    peaks = {
        (one.month, _named(names.demand, one)): one.value
        for one in (_of_kind(quantities, "tou_peak") if names.demand else ())
    }
    # Demands of one set of peak intervals are grouped, in the order of the load.
    coincident = sorted(_of_kind(quantities, "coincident_peak"), key=lambda one: one.place or 0)
    return BillingDeterminants(
        year=year,
        energy_kwh=energy,
        period_peak_kw=peaks,
        month_peak_kw={one.month: one.value for one in _of_kind(quantities, "month_peak")},
        coincident_kw=tuple(one.value for one in coincident),
        power_factor=load.power_factor,
        secondary=load.secondary,
    )


def use_of(load: GivenLoad) -> tuple[float, float]:
    """Returns energy in kWh and peak in kW of the whole load."""
    known = load.known
    if isinstance(known, AnnualLoad):
        return known.energy_kwh, known.peak_kw
    if isinstance(known, SeriesLoad):
        hours = known.interval_minutes / _HOUR_MINUTES
        return float(known.kw.sum() * hours), float(known.kw.max())
    peaks = [one.value for one in known.values if one.kind in {"month_peak", "tou_peak"}]
    return sum(one.value for one in _of_kind(known, "energy")), max(peaks, default=0.0)


def _of_kind(quantities: QuantityLoad, kind: str) -> list[BillingQuantity]:
    return [one for one in quantities.values if one.kind == kind]


def _named(names: Mapping[int, str], one: BillingQuantity) -> str:
    name = names.get(one.place or 0)
    if name is None:
        raise BillError(f"load: the tariff has no period {one.place} for a quantity of kind {one.kind}")
    return name


def _refuse_unknown(fields: Mapping[str, object], known: frozenset[str], what: str) -> None:
    for name in fields:
        if name not in known:
            raise BillError(f"{what}: {name} is not known")


def _number(fields: Mapping[str, object], name: str, what: str, default: float | None = None) -> float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise BillError(f"{what}: {name} is not a number")
    return float(value)


def _numbers(fields: Mapping[str, object], name: str, count: int) -> list[float]:
    values = fields[name]
    if not isinstance(values, list) or len(values) != count:
        raise BillError(f"load: {name} does not have {count} numbers")
    return [_number({name: value}, name, "load") for value in values]


def _whole_numbers(fields: Mapping[str, object], name: str, what: str) -> list[int]:
    values = fields.get(name)
    if not isinstance(values, list) or not all(_is_whole(value) for value in values):
        raise BillError(f"{what}: {name} is not a list of whole numbers")
    return values


def _objects(fields: Mapping[str, object], name: str) -> Sequence[Mapping[str, object]]:
    values = fields.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise BillError(f"load: {name} is not a list of objects")
    return values
