"""Charts of the power by phase of the run, and at the meter over time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from service.kit.locales import format_count
from service.kit.reports.charts.bars import ChartBar, render_bars
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.charts.moments import TimeSlot, render_time_series
from service.kit.reports.numbers import (
    KW,
    KWH,
    SECONDS,
    format_in_scale,
    format_number,
    format_value,
    select_scale,
    to_title,
)
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import ReportBlock, ReportChart, ReportTable
from service.schemas.energy_answers import LoadProfileEstimate

_MOST_SLOTS = 96
_HOUR_SECONDS = 3600.0


def build_load_blocks(profile: LoadProfileEstimate | None) -> list[ReportBlock | None]:
    """Returns the charts of the power that are known."""
    if profile is None:
        return []
    return [_build_phases_picture(profile), build_power_picture(profile)]


def _build_phases_picture(profile: LoadProfileEstimate) -> ReportChart:
    """Returns a chart of mean power by phase. An area chart would suggest an order of the phases."""
    phases = [
        (phase, phase["it_kwh"] / (phase["seconds"] / _HOUR_SECONDS) if phase["seconds"] else 0.0)
        for phase in profile["phases"]
    ]
    scale = select_scale(KW, max((power for _, power in phases), default=0.0))
    caption = "Mean power of the equipment by phase of the run"
    rows = [
        ChartBar(
            f"{to_title(phase['name'])}, {format_value(phase['seconds'], SECONDS)}",
            format_in_scale(power, scale),
            0.0,
            power,
        )
        for phase, power in phases
    ]
    description = "; ".join(f"{row.name}: {row.shown}" for row in rows)
    chart = render_bars(
        ChartLabel("load-phases", caption, description),
        rows,
        build_linear_axis(*(row.end for row in rows), unit=scale.factor),
        scale,
    )
    table = ReportTable(
        caption,
        ("Phase", "Time", f"Mean power, {scale.unit}", "Energy"),
        [
            (
                to_title(phase["name"]),
                format_value(phase["seconds"], SECONDS),
                format_number(power / scale.factor),
                format_value(phase["it_kwh"], KWH),
            )
            for phase, power in phases
        ],
        frozenset({1, 2, 3}),
    )
    note = f"From switching on to switching off: {format_value(profile['elapsed_seconds'], SECONDS)}."
    if "highest_interval_kw" in profile:
        highest = format_value(profile["highest_interval_kw"], KW)
        note += f" Highest mean of {profile['interval_minutes']} minutes at the meter: {highest}."
    return ReportChart(caption, chart, table, note)


def build_slots(kw: Sequence[float], interval_seconds: float) -> list[TimeSlot]:
    """Returns intervals joined into at most as many slots as a chart holds, as equal as possible."""
    count = min(len(kw), _MOST_SLOTS)
    bounds = [round(place * len(kw) / count) for place in range(count + 1)]
    return [
        TimeSlot(
            begin * interval_seconds,
            end * interval_seconds,
            sum(kw[begin:end]) / (end - begin),
            min(kw[begin:end]),
            max(kw[begin:end]),
        )
        for begin, end in pairwise(bounds)
    ]


def build_power_picture(profile: LoadProfileEstimate) -> ReportChart | None:
    """Returns the chart of the power at the meter, or None if its intervals are not listed."""
    if not profile.get("intervals_kw"):
        return None
    slots = build_slots(profile["intervals_kw"], profile["interval_minutes"] * 60.0)
    power = select_scale(KW, max(slot.high for slot in slots))
    time = select_scale(SECONDS, slots[-1].end)
    caption = "Power at the meter in time"
    first = profile.get("first_interval_at")
    count = len(profile["intervals_kw"])
    note = f"{format_count(count)} intervals of {profile['interval_minutes']} minutes"
    if count > len(slots):
        note += f", in {len(slots)} stretches: the area is the mean, a line the range within a stretch"
    if first:
        note += f"; from {first} on"
    description = (
        f"Mean power between {format_value(min(slot.mean for slot in slots), KW)} and "
        f"{format_value(max(slot.mean for slot in slots), KW)} over {format_in_scale(slots[-1].end, time)}."
    )
    chart = render_time_series(
        ChartLabel("course", caption, description),
        slots,
        time._replace(unit=f"time since the first interval, {time.unit}"),
        power,
    )
    table = ReportTable(
        caption,
        ("From", *(f"{name}, {power.unit}" for name in ("Mean", "Least", "Most"))),
        [
            (
                _format_moment(first, slot.start) if first else format_in_scale(slot.start, time),
                *(format_number(kw / power.factor) for kw in (slot.mean, slot.low, slot.high)),
            )
            for slot in slots
        ],
        frozenset({1, 2, 3}),
        is_folded=True,
    )
    return ReportChart(caption, chart, table, f"{note}.")


def _format_moment(first: str, seconds: float) -> str:
    at = datetime.fromisoformat(first).astimezone(UTC) + timedelta(seconds=seconds)
    return f"{at:%Y-%m-%d %H:%M} UTC"
