"""Table of the settings of a question, one per line and limited in length."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.kit.locales import format_count
from service.kit.reports.charts.drawing import truncate_name
from service.kit.reports.numbers import TIMES, format_money, format_number, to_plain_words
from service.kit.reports.shapes import ReportTable
from service.quotes.report.names import RowNames

_LONGEST = 160
_MOST_LISTED = 6
_MOST_SETTINGS = 80
_OPERATIONS = ("utility_bill", "cost", "throughput", "memory")


def get_broadest_question(requests: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the broadest question, which contains the questions of the other estimates."""
    return next((requests[name] for name in _OPERATIONS if name in requests), {})


def build_settings_table(question: Mapping[str, Any]) -> ReportTable:
    """Returns a table of every setting of a question."""
    settings = list(_list_settings(question, ()))
    rows: list[tuple[str, str]] = [
        (_format_path(path), truncate_name(text, _LONGEST)) for path, text in settings
    ]
    if len(rows) > _MOST_SETTINGS:
        rows = [
            *rows[:_MOST_SETTINGS],
            (f"and {format_count(len(settings) - _MOST_SETTINGS)} more in the JSON", ""),
        ]
    return ReportTable("Settings of the question", ("Setting", "Value"), rows)


def _format_path(path: Sequence[str]) -> str:
    text = " / ".join(to_plain_words(part) for part in path)
    return truncate_name(text[:1].upper() + text[1:], _LONGEST)


def _list_settings(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping) and value.keys() == {"amount", "currency_code"}:
        yield path, format_money(value["amount"], value["currency_code"])
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _list_settings(member, (*path, str(name)))
    elif isinstance(value, list) and (len(value) > _MOST_LISTED or _are_plain(value)):
        yield path, _format_list(value)
    elif isinstance(value, list):
        for position, member in enumerate(value, 1):
            yield from _list_settings(member, (*path, str(position)))
    else:
        yield path, _format_plain(value)


def _are_plain(values: Sequence[object]) -> bool:
    return not any(isinstance(value, Mapping | list) for value in values)


def _format_list(values: Sequence[object]) -> str:
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(values) <= _MOST_LISTED:
        return ", ".join(_format_plain(value) for value in values) or "none"
    if len(numbers) == len(values):
        span = f"{format_number(min(numbers))} to {format_number(max(numbers))}"
        return f"{format_count(len(values))} numbers from {span}"
    return f"{format_count(len(values))} entries"


def _format_plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_count(value) if isinstance(value, int | float) else str(value)


def format_subject(question: Mapping[str, Any], names: RowNames) -> str:
    """Returns model, workload and cluster in one line."""
    parts = [_format_model(question.get("model", {}), names)]
    workload = question.get("workload", {})
    if "kind" in workload:
        parts.append(str(workload["kind"]))
    cluster = question.get("cluster")
    if cluster:
        parts.append(
            f"on {format_count(cluster.get('accelerator_count', 1))} {TIMES} "
            f"{_format_accelerator(cluster['accelerator'], names)}"
        )
    return ", ".join(parts)


def _format_model(model: Mapping[str, Any], names: RowNames) -> str:
    if "parameter_count" in model:
        return f"a model of {format_count(model['parameter_count'])} parameters"
    if "id" in model:
        return names.get_name_at("model", "model", str(model["id"]))
    return "a model by its configuration" if "config" in model else "a model by its layers"


def _format_accelerator(accelerator: Mapping[str, Any], names: RowNames) -> str:
    if "id" in accelerator:
        return names.get_name_at("accelerator", "cluster/accelerator", str(accelerator["id"]))
    return str(accelerator["specification"].get("name", "accelerator by its figures"))
