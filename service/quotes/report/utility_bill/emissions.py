"""Emissions by method, which do not add up, and water."""

from collections.abc import Mapping
from typing import Any

from service.quotes.report.numbers import (
    KG_CO2E,
    KWH,
    PERCENT,
    digits,
    figures,
    quantity_figure,
    shown,
    words,
)
from service.quotes.report.shapes import Figures, Section, Table, shown_blocks
from service.schemas.bill_answers import UtilityBillAnswer
from service.schemas.energy_answers import CarbonAnswer


def emissions_section(answer: UtilityBillAnswer) -> Section:
    """Emissions by method, which do not add up, and water."""
    carbon = answer["carbon"]
    told = [
        f"{digits(each['value'])} {words(each['name']).lower()}" for each in answer.get("equivalents", [])
    ]
    lead = "Figures of different methods stand beside each other; they do not add up."
    if told:
        lead += f" The energy may be pictured as {', '.join(told)}: an illustration, no measure."
    return Section(
        "emissions",
        "Emissions and water",
        lead,
        shown_blocks(
            Figures("Emissions", figures(carbon)),
            _methods(carbon),
            _market(carbon),
            _embodied(carbon),
            _intensity(carbon),
            Figures("Water", [*figures(_only(answer, "water_liters")), *figures(answer.get("water", {}))]),
        ),
    )


def _only(answer: Mapping[str, Any], member: str) -> dict[str, Any]:
    return {member: answer[member]} if member in answer else {}


def _methods(carbon: Mapping[str, Any]) -> Table:
    rows = [
        (
            words(name.removesuffix("_method")),
            words(method["emission_rate"]),
            words(method.get("accounting", "not said")),
            "by interval" if method["in_time"] else "mean times energy",
        )
        for name, method in carbon.items()
        if name.endswith("_method")
    ]
    return Table("What the intensities count", ("Figure", "Rate", "Counted", "Summed"), rows)


def _market(carbon: CarbonAnswer) -> Table:
    rows = [
        (
            words(line["name"]),
            shown(line["share"], PERCENT),
            shown(line["kwh"], KWH),
            shown(line["kg_co2e"], KG_CO2E),
            line["source"],
        )
        for line in carbon.get("market_based_lines", [])
    ]
    head = ("Instrument", "Share", "Energy", "Emissions", "Source")
    return Table("Market-based emissions by instrument", head, rows, frozenset({1, 2, 3}))


def _embodied(carbon: CarbonAnswer) -> Table:
    rows = [
        (words(line["name"]), quantity_figure("kg_co2e", line["kg_co2e"], KG_CO2E).cell, line["source"])
        for line in carbon.get("embodied_lines", [])
    ]
    return Table("Share of making the machines", ("Machines", "Emissions", "Source"), rows, frozenset({1}))


def _intensity(carbon: CarbonAnswer) -> Table:
    rows = [
        (words(each["per"]), quantity_figure("kg_co2e", each["kg_co2e"], KG_CO2E).cell)
        for each in carbon.get("software_carbon_intensity", [])
    ]
    return Table("Software carbon intensity (ISO/IEC 21031)", ("Per", "Emissions"), rows, frozenset({1}))
