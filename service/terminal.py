"""Answers as tables with bars, for people at a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

BAR_WIDTH = 24
_BYTES_PER_GIGABYTE = 1e9
_SECONDS_PER_DAY = 86_400.0
_SECONDS_PER_HOUR = 3600.0


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """A bar that fills ``share`` of ``width`` characters, to an eighth of one."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def figure(value: float) -> str:
    """A number with as many digits as a reader can use."""
    magnitude = abs(value)
    if magnitude >= 1e15:  # noqa: PLR2004
        return f"{value:.3g}"
    if magnitude >= 1000:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _quantity(value: float, unit: str) -> str:
    if unit == "seconds":
        if abs(value) >= _SECONDS_PER_DAY:
            return f"{value / _SECONDS_PER_DAY:,.2f} days"
        if abs(value) >= _SECONDS_PER_HOUR:
            return f"{value / _SECONDS_PER_HOUR:,.2f} h"
        return f"{value:.4g} s" if value >= 1 else f"{value * 1000:.4g} ms"
    if unit == "bytes":
        return f"{value / _BYTES_PER_GIGABYTE:,.2f} GB"
    return f"{figure(value)} {unit}".rstrip()


_UNITS = {
    "seconds": "seconds",
    "bytes": "bytes",
    "kwh": "kWh",
    "kw": "kW",
    "kg_co2e": "kg CO2e",
    "liters": "l",
    "hours": "h",
    "per_second": "/s",
    "flops": "FLOP",
    "per_second_per_device": "/s each",
}


def _unit(name: str) -> tuple[str, str]:
    """A member's name without its unit, and the unit."""
    for suffix in sorted(_UNITS, key=len, reverse=True):
        if name == suffix or name.endswith(f"_{suffix}"):
            return name.removesuffix(suffix).rstrip("_") or name, _UNITS[suffix]
    return name, ""


def _rows(answer: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Headline figures as label, value, interval and basis."""
    for name, value in answer.items():
        label, unit = _unit(name)
        title = f"{path} {label}".strip().replace("_", " ")
        if isinstance(value, dict) and "basis" in value and "amount" in value:
            currency = value["currency_code"]
            ends = _interval(f"{float(value['low']):,.2f}", f"{float(value['high']):,.2f}")
            yield title, f"{float(value['amount']):,.2f} {currency}", ends, value["basis"]
        elif isinstance(value, dict) and "basis" in value:
            ends = _interval(_quantity(value["low"], unit), _quantity(value["high"], unit))
            yield title, _quantity(value["value"], unit), ends, value["basis"]
        elif isinstance(value, bool):
            yield title, "yes" if value else "no", "", ""
        elif isinstance(value, int | float):
            yield title, _quantity(value, unit), "", ""
        elif isinstance(value, dict) and name not in ("evidence", "parallelism"):
            yield from _rows(value, f"{path} {name}".strip())


def _interval(low: str, high: str) -> str:
    return "" if low == high else f"{low} to {high}"


def _bars(title: str, parts: list[tuple[str, float, str]]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("part")
    table.add_column("", min_width=BAR_WIDTH)
    table.add_column("", justify="right")
    largest = max((size for _, size, _ in parts), default=0.0)
    for name, size, text in parts:
        table.add_row(name.replace("_", " "), bar(size / largest if largest else 0.0), text)
    return table


def _pictures(answer: Mapping[str, Any]) -> Iterator[Table]:
    components = answer.get("per_device", {}).get("components", [])
    if components:
        parts = [(c["name"], float(c["bytes"]), _quantity(c["bytes"], "bytes")) for c in components]
        yield _bars("Memory of a device", parts)
    phases = answer.get("breakdown", [])
    if phases:
        values = [(p["phase"], p["seconds"]["value"]) for p in phases]
        parts = [(name, value, _quantity(value, "seconds")) for name, value in values]
        yield _bars("Where the time goes", parts)
    energy = answer.get("energy", {}).get("lines", [])
    if energy:
        values = [(line["name"], line["it_kwh"]["value"]) for line in energy]
        yield _bars("IT energy", [(n, v, _quantity(v, "kWh")) for n, v in values])
    sides = [(n, answer[n]["total"]) for n in ("rent", "purchase") if answer.get(n, {}).get("total")]
    if sides:
        parts = [
            (name, float(total["amount"]), f"{float(total['amount']):,.2f} {total['currency_code']}")
            for name, total in sides
        ]
        yield _bars("Rent or buy", parts)


def render(answer: Mapping[str, Any]) -> Group:
    """The whole answer: figures, bars, what is unknown and what to mind."""
    table = Table(box=None, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("80% interval", justify="right")
    table.add_column("basis")
    for row in _rows(answer):
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
    return Group(table, *_pictures(answer), Text("\n".join(notes), style="dim"))


def show(answer: Mapping[str, Any]) -> None:
    """Print an answer."""
    Console(width=None, highlight=False).print(render(answer))
