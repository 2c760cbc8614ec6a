"""Sensitivities of the choice of a plan, and differences between its first two candidates."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from service.formats.providers import get_provider_name
from service.kit.locales import localize_number
from service.kit.reports.numbers import (
    format_figure_title,
    format_money,
    format_number,
    format_value,
    select_ladder,
    to_title,
)
from service.kit.reports.shapes import ReportTable
from service.plans.words import describe_devices, describe_supply, name_supply
from service.resolve.catalog import CatalogView

_ASSUMPTIONS: Final[Mapping[str, str]] = {
    "price": "Price",
    "time": "Time",
    "electricity_price": "Price of electricity",
    "carbon_intensity": "Emissions of a kWh",
    "interruption_rate": "Interruptions",
    "budget": "Budget",
    "deadline": "Deadline",
    "work": "Amount of work",
}
_MEMBERS: Final = ("figures", "parts", "settings")
_OF_ALL: Final[Mapping[str, str]] = {
    "price": "All prices",
    "time": "All times",
    "electricity_price": "All prices of electricity",
    "carbon_intensity": "Emissions of a kWh everywhere",
    "interruption_rate": "All interruptions",
}
_DIFFERENCES: Final[Mapping[str, str]] = {
    "cost": "Price",
    "total_bytes": "Memory of a device",
    "accelerator_id": "Accelerator",
    "accelerator_count": "Devices",
    "tensor": "Tensor parallelism",
    "pipeline": "Pipeline stages",
    "data": "Data parallelism",
    "context": "Context parallelism",
    "expert": "Expert parallelism",
    "tokens_per_second": "Tokens per second",
}
_TWICE: Final = 2.0


def build_switch_table(sensitivities: Sequence[Mapping[str, Any]], catalog: CatalogView) -> ReportTable:
    """Returns the changes that make another candidate the first, the smallest first."""
    rows = [
        (
            _name_assumption(each, catalog),
            _format_change(each["factor"]),
            _describe_successor(each.get("becomes"), catalog),
        )
        for each in sensitivities
        if "factor" in each
    ]
    head = ("If this", "changes", "then the best is")
    return ReportTable("Smallest changes that make another candidate the best", head, rows)


def describe_firm(sensitivities: Sequence[Mapping[str, Any]], catalog: CatalogView) -> str:
    """Returns a sentence with the assumptions that change nothing within their range, or nothing."""
    firm = [each for each in sensitivities if "factor" not in each]
    if not firm:
        return ""
    named = (_name_assumption(each, catalog) for each in firm)
    names = list(dict.fromkeys(f"{name[0].lower()}{name[1:]}" for name in named))
    low = max(each["searched_low"] for each in firm)
    high = min(each["searched_high"] for each in firm)
    tried = localize_number(f"from {low:.3g} to {high:.3g} times")
    return f"Tried {tried} the value without another choice: {'; '.join(names)}."


def _name_assumption(each: Mapping[str, Any], catalog: CatalogView) -> str:
    name = _ASSUMPTIONS[each["assumption"]]
    if "of" in each:
        return f"{name} of {name_supply(each['of'], catalog)}"
    return _OF_ALL.get(each["assumption"], name)


def _format_change(factor: float) -> str:
    """Returns a factor as a change in percent, or as a multiple from twice on."""
    if factor >= _TWICE:
        return localize_number(f"is {factor:.3g} times as high")
    return localize_number(f"{'rises' if factor > 1 else 'falls'} by {abs(factor - 1) * 100:.2g}%")


def _describe_successor(row: Mapping[str, Any] | None, catalog: CatalogView) -> str:
    if row is None:
        return "nothing: no candidate keeps the limits"
    return f"{describe_devices(row, catalog)}, {describe_supply(row['supply'], catalog)}"


def build_separation_table(separation: Mapping[str, Any], catalog: CatalogView) -> ReportTable:
    """Returns the figures, parts and settings in which the first two candidates differ."""
    each_once = {each["name"]: each for member in _MEMBERS for each in separation[member]}
    rows = [(_name_difference(each), *_list_ends(each, catalog)) for each in each_once.values()]
    return ReportTable("The first and the second", ("Difference", "First", "Second"), rows, frozenset({1, 2}))


def _name_difference(each: Mapping[str, Any]) -> str:
    if each["name"] in _DIFFERENCES:
        return _DIFFERENCES[each["name"]]
    return to_title(each["name"]) if each.get("unit") is None else format_figure_title(each["name"])


def _list_ends(each: Mapping[str, Any], catalog: CatalogView) -> Iterator[str]:
    for end in ("first", "second"):
        value = each.get(end)
        if value is None:
            yield "none"
        elif isinstance(value, str):
            yield _read_text(each["name"], value, catalog)
        else:
            yield _format_measure(value, each.get("unit", ""))


def _read_text(name: str, value: str, catalog: CatalogView) -> str:
    if name in ("supply", "accelerator_id"):
        return name_supply(value, catalog)
    return get_provider_name(value) if name == "provider" else _read_word(value)


def _read_word(value: str) -> str:
    return {"true": "yes", "false": "no"}.get(value, value.replace("_", " "))


def _format_measure(value: float, unit: str) -> str:
    """Returns a figure in its unit. A unit of three capitals is a currency."""
    if re.fullmatch("[A-Z]{3}", unit):
        return format_money(f"{value:.2f}", unit)
    if unit in ("", "devices", "tokens_per_second"):
        return format_number(value)
    return format_value(value, select_ladder(unit))
