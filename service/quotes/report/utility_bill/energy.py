"""Energy by equipment, and power in time."""

from collections.abc import Mapping
from typing import Any

from service.quotes.report.charts import About, Bar, bars, stacked
from service.quotes.report.numbers import (
    KW,
    KWH,
    Scale,
    digits,
    figures,
    quantity_figure,
    scale_of,
    with_unit,
    words,
)
from service.quotes.report.rounding import printed
from service.quotes.report.scaling import linear
from service.quotes.report.shapes import Figures, Picture, Section, Table, shown_blocks
from service.quotes.report.utility_bill.load_profile import load_blocks
from service.schemas.bill_answers import UtilityBillAnswer
from service.schemas.energy_answers import EnergyAnswer


def energy_section(answer: UtilityBillAnswer) -> Section:
    """Energy, and the course of the power."""
    energy = answer["energy"]
    rest = figures(energy)
    return Section(
        "energy",
        "Energy and power",
        _energy_lead(energy),
        shown_blocks(
            _equipment(energy),
            Figures("Energy and power", rest),
            *load_blocks(energy.get("load_profile")),
        ),
    )


def _energy_lead(energy: EnergyAnswer) -> str:
    if "facility_kwh" in energy:
        text = f"At the meter of the building: {quantity_figure('kwh', energy['facility_kwh'], KWH).shown}"
    elif "it_kwh" in energy:
        text = f"Drawn by the equipment: {quantity_figure('kwh', energy['it_kwh'], KWH).shown}"
    else:
        return "The energy of the run is not known."
    if "peak_kw" in energy:
        text += f", at most {quantity_figure('kw', energy['peak_kw'], KW).shown}"
    return f"{text}."


def _equipment(energy: EnergyAnswer) -> Picture | None:
    place = "facility_kwh" if any("facility_kwh" in line for line in energy["lines"]) else "it_kwh"
    lines: list[tuple[str, Mapping[str, Any], str]] = [
        (words(line["name"]), line[place], line["source"])  # type: ignore[literal-required]
        for line in energy["lines"]
        if place in line
    ]
    if not lines or len(lines) < len(energy["lines"]):
        return None
    summed = sum(quantity["value"] for _, quantity, _ in lines)
    scale = scale_of(KWH, summed)
    texts = printed([q["value"] / scale.factor for _, q, _ in lines], summed / scale.factor)
    named = [(name, with_unit(text, scale), q) for (name, q, _), text in zip(lines, texts.parts, strict=True)]
    rows = stacked([(name, text, q["value"]) for name, text, q in named])
    whole = energy.get("facility_kwh") if place == "facility_kwh" else energy.get("it_kwh")
    low, high = (whole["low"], whole["high"]) if whole else (summed, summed)
    rows.append(Bar("Together", with_unit(texts.whole, scale), 0.0, summed, low, high, is_total=True))
    where = "at the meter of the building" if place == "facility_kwh" else "that the equipment draws"
    caption = f"Energy {where}, by equipment"
    axis = linear(*(end for row in rows for end in (row.end, row.high or 0.0)), unit=scale.factor)
    description = "; ".join(f"{name} {text}" for name, text, _ in named)
    chart = bars(About("equipment", caption, description), rows, axis, scale)
    table = Table(
        caption,
        ("Equipment", scale.unit, f"80% interval, {scale.unit}", "Where the figure comes from"),
        [
            (
                name,
                text,
                _interval(q, scale),
                source,
            )
            for (name, q, source), text in zip(lines, texts.parts, strict=True)
        ],
        frozenset({1, 2}),
        ("Together", texts.whole, _interval(whole, scale), ""),
    )
    return Picture(caption, chart, table)


def _interval(quantity: Mapping[str, Any] | None, scale: Scale) -> str:
    if quantity is None:
        return ""
    return f"{digits(quantity['low'] / scale.factor)} to {digits(quantity['high'] / scale.factor)}"
