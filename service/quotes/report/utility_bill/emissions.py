"""Section of emissions by method, which do not add up, and of water."""

from collections.abc import Mapping
from typing import Any

from service.kit.reports.numbers import (
    KG_CO2E,
    KWH,
    PERCENT,
    build_quantity_figure,
    format_number,
    format_value,
    list_figures,
    to_title,
)
from service.kit.reports.shapes import FigureList, ReportSection, ReportTable, select_blocks
from service.schemas.bill_answers import UtilityBill
from service.schemas.energy_answers import CarbonEmissions


def build_emissions_section(answer: UtilityBill) -> ReportSection:
    """Returns the section of emissions by method, which do not add up, and of water."""
    carbon = answer["carbon"]
    told = [
        f"{format_number(each['value'])} {to_title(each['name']).lower()}"
        for each in answer.get("equivalents", [])
    ]
    lead = "Figures of different methods are alternatives; they do not add up."
    if told:
        lead += f" For illustration, the energy is comparable to {', '.join(told)}."
    return ReportSection(
        "emissions",
        "Emissions and water",
        lead,
        select_blocks(
            FigureList("Emissions", list_figures(carbon)),
            _build_methods_table(carbon),
            _build_market_table(carbon),
            _build_embodied_table(carbon),
            _build_intensity_table(carbon),
            FigureList(
                "Water",
                [
                    *list_figures(_select_member(answer, "water_liters")),
                    *list_figures(answer.get("water", {})),
                ],
            ),
        ),
    )


def _select_member(answer: Mapping[str, Any], member: str) -> dict[str, Any]:
    return {member: answer[member]} if member in answer else {}


def _build_methods_table(carbon: Mapping[str, Any]) -> ReportTable:
    rows = [
        (
            to_title(name.removesuffix("_method")),
            to_title(method["emission_rate"]),
            to_title(method.get("accounting", "not said")),
            "by interval" if method["in_time"] else "mean times energy",
        )
        for name, method in carbon.items()
        if name.endswith("_method")
    ]
    return ReportTable("Methods of the intensities", ("Figure", "Rate", "Counted", "Summed"), rows)


def _build_market_table(carbon: CarbonEmissions) -> ReportTable:
    rows = [
        (
            to_title(line["name"]),
            format_value(line["share"], PERCENT),
            format_value(line["kwh"], KWH),
            format_value(line["kg_co2e"], KG_CO2E),
            line["source"],
        )
        for line in carbon.get("market_based_lines", [])
    ]
    head = ("Instrument", "Share", "Energy", "Emissions", "Source")
    return ReportTable("Market-based emissions by instrument", head, rows, frozenset({1, 2, 3}))


def _build_embodied_table(carbon: CarbonEmissions) -> ReportTable:
    rows = [
        (
            to_title(line["name"]),
            build_quantity_figure("kg_co2e", line["kg_co2e"], KG_CO2E).cell,
            line["source"],
        )
        for line in carbon.get("embodied_lines", [])
    ]
    return ReportTable(
        "Share of embodied emissions", ("Machines", "Emissions", "Source"), rows, frozenset({1})
    )


def _build_intensity_table(carbon: CarbonEmissions) -> ReportTable:
    rows = [
        (to_title(each["per"]), build_quantity_figure("kg_co2e", each["kg_co2e"], KG_CO2E).cell)
        for each in carbon.get("software_carbon_intensity", [])
    ]
    return ReportTable(
        "Software carbon intensity (ISO/IEC 21031)", ("Per", "Emissions"), rows, frozenset({1})
    )
