"""Answers as tables with bars, for people at a terminal."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

BAR_WIDTH = 24
_SCIENTIFIC_FROM = 1e12
_WHOLE_FROM = 1000.0


def render_bar(share: float, width: int = BAR_WIDTH) -> str:
    """Renders a bar that fills ``share`` of ``width`` characters, to an eighth of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def format_figure(value: float) -> str:
    """Formats a number with as many digits as a reader can use."""
    magnitude = abs(value)
    if magnitude >= _SCIENTIFIC_FROM and not isinstance(value, int):
        return f"{value:.4g}"
    return f"{value:,.0f}" if magnitude >= _WHOLE_FROM else f"{value:.4g}"


class _Unit(NamedTuple):
    """Unit of a displayed figure: the value is divided by ``size``."""

    name: str
    size: float = 1.0

    def format_value(self, value: float) -> str:
        return format_figure(value / self.size if self.size != 1.0 else value)

    def format_with_unit(self, value: float) -> str:
        return f"{self.format_value(value)} {self.name}".rstrip()


_TIMES = (_Unit("days", 86_400.0), _Unit("h", 3600.0), _Unit("s"), _Unit("ms", 1e-3))
_UNITS = {"bytes": _Unit("GB", 1e9), "kwh": _Unit("kWh"), "kw": _Unit("kW"), "liters": _Unit("l")}


def _find_unit(name: str, value: float) -> tuple[str, _Unit]:
    """Returns a member's name without its unit, and the unit in which to show ``value``."""
    if name == "seconds" or (name.endswith("_seconds") and not name.endswith("_per_second")):
        unit = next((time for time in _TIMES if abs(value) >= time.size), _TIMES[-1])
        return name.removesuffix("_seconds"), unit
    if name.endswith("_kg_co2e"):
        return name.removesuffix("_kg_co2e"), _Unit("kg CO2e")
    head, _, suffix = name.rpartition("_")
    return (head, _UNITS[suffix]) if suffix in _UNITS else (name, _Unit(""))


def format_in_unit(name: str, value: float) -> str:
    """Formats a figure in a unit that suits its size; ``name`` is its member, with the unit as suffix."""
    return _find_unit(name, value)[1].format_with_unit(value)


_WORDS = {"it": "IT", "flops": "FLOPs"}


def _format_title(*names: str) -> str:
    return " ".join(_WORDS.get(word, word) for name in names for word in name.split("_") if word)


def _format_interval(low: str, high: str) -> str:
    return "" if low == high else f"{low} to {high}"


def _list_rows(answer: Mapping[str, Any], *path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yields figures as label, value, interval and basis."""
    for name, value in answer.items():
        if isinstance(value, dict) and "amount" in value:
            amount, low, high = (f"{Decimal(value[end]):,}" for end in ("amount", "low", "high"))
            yield (
                _format_title(*path, name),
                f"{amount} {value['currency_code']}",
                _format_interval(low, high),
                value["basis"],
            )
        elif isinstance(value, dict) and "basis" in value:
            label, unit = _find_unit(name, value["value"])
            ends = _format_interval(unit.format_value(value["low"]), unit.format_value(value["high"]))
            yield _format_title(*path, label), unit.format_with_unit(value["value"]), ends, value["basis"]
        elif isinstance(value, bool):
            yield _format_title(*path, name), "yes" if value else "no", "", ""
        elif isinstance(value, int | float):
            label, unit = _find_unit(name, value)
            yield _format_title(*path, label), unit.format_with_unit(value), "", ""
        elif isinstance(value, dict) and name not in ("evidence", "parallelism"):
            yield from _list_rows(value, *path, name)


def _build_bars(title: str, parts: list[tuple[str, float, str]]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("part", no_wrap=True)
    table.add_column("", min_width=BAR_WIDTH)
    table.add_column("", justify="right", no_wrap=True)
    largest = max((size for _, size, _ in parts), default=0.0)
    for name, size, text in parts:
        table.add_row(_format_title(name), render_bar(size / largest if largest else 0.0), text)
    return table


def _build_charts(answer: Mapping[str, Any]) -> Iterator[Table]:
    components = answer.get("per_device", {}).get("components", [])
    if components:
        parts = [
            (c["name"], float(c["bytes"]), _UNITS["bytes"].format_with_unit(c["bytes"])) for c in components
        ]
        yield _build_bars("Memory of a device", parts)
    phases = answer.get("breakdown", [])
    if phases:
        values = [(p["phase"], p["seconds"]["value"]) for p in phases]
        parts = [
            (name, value, _find_unit("seconds", value)[1].format_with_unit(value)) for name, value in values
        ]
        yield _build_bars("Where the time goes", parts)
    energy = answer.get("energy", {}).get("lines", [])
    if energy:
        values = [(line["name"], line["it_kwh"]["value"]) for line in energy]
        yield _build_bars("IT energy", [(n, v, _UNITS["kwh"].format_with_unit(v)) for n, v in values])
    sides = [(n, answer[n]["total"]) for n in ("rent", "purchase") if answer.get(n, {}).get("total")]
    if sides:
        parts = [
            (name, float(total["amount"]), f"{Decimal(total['amount']):,} {total['currency_code']}")
            for name, total in sides
        ]
        yield _build_bars("Rent or buy", parts)


def render_answer(answer: Mapping[str, Any]) -> Group:
    """Renders the whole answer: figures, bars, gaps and warnings."""
    table = Table(box=None, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("80% interval", justify="right", no_wrap=True)
    table.add_column("basis", no_wrap=True)
    for row in _list_rows(answer):
        table.add_row(*row)
    notes = [f"unknown {gap['pointer']}: {gap['detail']}" for gap in answer["gaps"]]
    notes += [f"note {w['pointer']}: {w['detail']}" for w in answer["warnings"]]
    layout = answer["parallelism"]
    degrees = ", ".join(f"{n} {layout[n]}" for n in ("tensor", "pipeline", "data") if layout[n] > 1)
    chosen = "chosen" if layout["chosen"] else "given"
    notes.append(f"layout {chosen}: {degrees or 'one device'}, sharding {layout['sharding']}")
    revision = answer["evidence"]["catalog_revision"]
    method = answer["evidence"]["method_version"]
    notes.append(f"catalog revision {revision}, method {method}")
    pictures = (part for picture in _build_charts(answer) for part in ("", picture))
    return Group(table, *pictures, "", Text("\n".join(notes), style="dim"))


def print_answer(answer: Mapping[str, Any]) -> None:
    """Print an answer."""
    Console(width=None, highlight=False).print(render_answer(answer))
