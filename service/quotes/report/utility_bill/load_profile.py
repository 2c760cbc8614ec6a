"""Power by phase of the run, and at the meter in time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from service.quotes.report.charts import About, Bar, Slot, bars, course
from service.quotes.report.numbers import KW, KWH, SECONDS, digits, in_scale, scale_of, shown, words
from service.quotes.report.scaling import linear
from service.quotes.report.shapes import Block, Picture, Table
from service.schemas.energy_answers import LoadProfileAnswer

_MOST_SLOTS = 96
_HOUR_SECONDS = 3600.0


def load_blocks(profile: LoadProfileAnswer | None) -> list[Block | None]:
    """The course of the power, as far as it is known."""
    if profile is None:
        return []
    blocks: list[Block | None] = [_phases(profile)]
    if profile.get("intervals_kw"):
        blocks.append(_course(profile))
    return blocks


def _phases(profile: LoadProfileAnswer) -> Picture:
    """Mean power by phase: an area of one over the other would not say in which order they come."""
    phases = [
        (phase, phase["it_kwh"] / (phase["seconds"] / _HOUR_SECONDS) if phase["seconds"] else 0.0)
        for phase in profile["phases"]
    ]
    scale = scale_of(KW, max((power for _, power in phases), default=0.0))
    caption = "Mean power of the equipment by phase of the run"
    rows = [
        Bar(f"{words(phase['name'])}, {shown(phase['seconds'], SECONDS)}", in_scale(power, scale), 0.0, power)
        for phase, power in phases
    ]
    description = "; ".join(f"{row.name}: {row.shown}" for row in rows)
    chart = bars(
        About("load-phases", caption, description),
        rows,
        linear(*(row.end for row in rows), unit=scale.factor),
        scale,
    )
    table = Table(
        caption,
        ("Phase", "Time", f"Mean power, {scale.unit}", "Energy"),
        [
            (
                words(phase["name"]),
                shown(phase["seconds"], SECONDS),
                digits(power / scale.factor),
                shown(phase["it_kwh"], KWH),
            )
            for phase, power in phases
        ],
        frozenset({1, 2, 3}),
    )
    note = f"From switching on to switching off: {shown(profile['elapsed_seconds'], SECONDS)}."
    if "highest_interval_kw" in profile:
        highest = shown(profile["highest_interval_kw"], KW)
        note += f" Highest mean of {profile['interval_minutes']} minutes at the meter: {highest}."
    return Picture(caption, chart, table, note)


def slots_of(kw: Sequence[float], interval_seconds: float) -> list[Slot]:
    """Intervals in as many stretches as a chart has room for, as equal as whole intervals allow."""
    count = min(len(kw), _MOST_SLOTS)
    bounds = [round(place * len(kw) / count) for place in range(count + 1)]
    return [
        Slot(
            begin * interval_seconds,
            end * interval_seconds,
            sum(kw[begin:end]) / (end - begin),
            min(kw[begin:end]),
            max(kw[begin:end]),
        )
        for begin, end in pairwise(bounds)
    ]


def _course(profile: LoadProfileAnswer) -> Picture:
    slots = slots_of(profile["intervals_kw"], profile["interval_minutes"] * 60.0)
    power = scale_of(KW, max(slot.high for slot in slots))
    time = scale_of(SECONDS, slots[-1].end)
    caption = "Power at the meter in time"
    first = profile.get("first_interval_at")
    count = len(profile["intervals_kw"])
    note = f"{count:,} intervals of {profile['interval_minutes']} minutes"
    if count > len(slots):
        note += f", in {len(slots)} stretches: the area is the mean, a line the range within a stretch"
    if first:
        note += f"; from {first} on"
    description = (
        f"Mean power between {shown(min(slot.mean for slot in slots), KW)} and "
        f"{shown(max(slot.mean for slot in slots), KW)} over {in_scale(slots[-1].end, time)}."
    )
    chart = course(
        About("course", caption, description),
        slots,
        time._replace(unit=f"time since the first interval, {time.unit}"),
        power,
    )
    table = Table(
        caption,
        ("From", *(f"{name}, {power.unit}" for name in ("Mean", "Least", "Most"))),
        [
            (
                _moment(first, slot.start) if first else in_scale(slot.start, time),
                *(digits(kw / power.factor) for kw in (slot.mean, slot.low, slot.high)),
            )
            for slot in slots
        ],
        frozenset({1, 2, 3}),
        is_folded=True,
    )
    return Picture(caption, chart, table, f"{note}.")


def _moment(first: str, seconds: float) -> str:
    at = datetime.fromisoformat(first).astimezone(UTC) + timedelta(seconds=seconds)
    return f"{at:%Y-%m-%d %H:%M} UTC"
