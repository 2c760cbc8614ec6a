"""Section of energy by equipment and power over time."""

from collections.abc import Mapping
from typing import Any

from service.kit.reports.charts.bars import ChartBar, render_bars, stack_bars
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.numbers import (
    KW,
    KWH,
    UnitScale,
    add_unit,
    build_quantity_figure,
    format_number,
    list_figures,
    select_scale,
    to_title,
)
from service.kit.reports.rounding import round_to_sum
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import FigureList, ReportChart, ReportSection, ReportTable, select_blocks
from service.quotes.report.utility_bill.load_profile import build_load_blocks
from service.schemas.bill_answers import UtilityBill
from service.schemas.energy_answers import EnergyEstimate


def build_energy_section(answer: UtilityBill) -> ReportSection:
    """Returns the section with energy and the load profile."""
    energy = answer["energy"]
    rest = list_figures(energy)
    return ReportSection(
        "energy",
        "Energy and power",
        _format_energy_lead(energy),
        select_blocks(
            _build_equipment_picture(energy),
            FigureList("Energy and power", rest),
            *build_load_blocks(energy.get("load_profile")),
        ),
    )


def _format_energy_lead(energy: EnergyEstimate) -> str:
    if "facility_kwh" in energy:
        text = (
            f"At the meter of the building: {build_quantity_figure('kwh', energy['facility_kwh'], KWH).shown}"
        )
    elif "it_kwh" in energy:
        text = f"Drawn by the equipment: {build_quantity_figure('kwh', energy['it_kwh'], KWH).shown}"
    else:
        return "The energy of the run is unknown."
    if "peak_kw" in energy:
        text += f", at most {build_quantity_figure('kw', energy['peak_kw'], KW).shown}"
    return f"{text}."


def _build_equipment_picture(energy: EnergyEstimate) -> ReportChart | None:
    place = "facility_kwh" if any("facility_kwh" in line for line in energy["lines"]) else "it_kwh"
    lines: list[tuple[str, Mapping[str, Any], str]] = [
        (to_title(line["name"]), line[place], line["source"])  # type: ignore[literal-required]
        for line in energy["lines"]
        if place in line
    ]
    if not lines or len(lines) < len(energy["lines"]):
        return None
    summed = sum(quantity["value"] for _, quantity, _ in lines)
    scale = select_scale(KWH, summed)
    texts = round_to_sum([q["value"] / scale.factor for _, q, _ in lines], summed / scale.factor)
    named = [(name, add_unit(text, scale), q) for (name, q, _), text in zip(lines, texts.parts, strict=True)]
    rows = stack_bars([(name, text, q["value"]) for name, text, q in named])
    whole = energy.get("facility_kwh") if place == "facility_kwh" else energy.get("it_kwh")
    low, high = (whole["low"], whole["high"]) if whole else (summed, summed)
    rows.append(ChartBar("Together", add_unit(texts.whole, scale), 0.0, summed, low, high, is_total=True))
    where = "at the meter of the building" if place == "facility_kwh" else "that the equipment draws"
    caption = f"Energy {where}, by equipment"
    axis = build_linear_axis(*(end for row in rows for end in (row.end, row.high or 0.0)), unit=scale.factor)
    description = "; ".join(f"{name} {text}" for name, text, _ in named)
    chart = render_bars(ChartLabel("equipment", caption, description), rows, axis, scale)
    table = ReportTable(
        caption,
        ("Equipment", scale.unit, f"80% interval, {scale.unit}", "Source of the figure"),
        [
            (
                name,
                text,
                _format_interval(q, scale),
                source,
            )
            for (name, q, source), text in zip(lines, texts.parts, strict=True)
        ],
        frozenset({1, 2}),
        ("Together", texts.whole, _format_interval(whole, scale), ""),
    )
    return ReportChart(caption, chart, table)


def _format_interval(quantity: Mapping[str, Any] | None, scale: UnitScale) -> str:
    if quantity is None:
        return ""
    return (
        f"{format_number(quantity['low'] / scale.factor)} to {format_number(quantity['high'] / scale.factor)}"
    )
