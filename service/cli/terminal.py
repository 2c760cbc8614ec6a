"""Answers as tables with bars, for people at a terminal."""

from collections.abc import Collection, Iterable, Iterator, Mapping
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
    if name.endswith("_bytes_per_second"):
        return name.removesuffix("_bytes_per_second"), _Unit("GB/s", 1e9)
    if name.endswith("_watts"):
        return name.removesuffix("_watts"), _Unit("W")
    if name.endswith("_gb"):
        return name.removesuffix("_gb"), _Unit("GB")
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


def _build_figures(rows: Iterable[tuple[str, str, str, str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("80% interval", justify="right", no_wrap=True)
    table.add_column("basis", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def render_answer(answer: Mapping[str, Any]) -> Group:
    """Renders the whole answer: figures, bars, gaps and warnings."""
    table = _build_figures(_list_rows(answer))
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


_SECTIONS_OF_REQUESTS = {
    "full_context": ("users",),
    "cost": ("price", "bill"),
    "utility_bill": ("bill",),
}
"""Sections of a summary that a full request concerns, where it does not concern all of them.

A note on several requests points into the first of them.
"""


def print_summary(answer: Mapping[str, Any], sections: Iterable[str]) -> None:
    """Print some sections of a summary, with what was filled in and what is missing."""
    named = list(sections)
    table = _build_figures(
        row for name in named for row in _list_rows(answer.get(name, {}), *([] if name == "fit" else [name]))
    )
    title = f"{answer['model_id']} on {answer['accelerator_count']} x {answer['accelerator_id']}"
    notes = Text("\n".join(_list_summary_notes(answer, named)), style="dim")
    _open_console().print(Group(Text(title), table, "", notes))


def _list_summary_notes(answer: Mapping[str, Any], sections: Collection[str]) -> Iterator[str]:
    def concerns(note: Mapping[str, Any]) -> bool:
        of = _SECTIONS_OF_REQUESTS.get(note["pointer"].split("/")[2])
        return of is None or not set(of).isdisjoint(sections)

    for gap in answer["gaps"]:
        if gap["pointer"].split("/")[1] in sections:
            yield f"unknown {gap['pointer']}: {gap['detail']}"
    filled = [
        f"{default['pointer'].rpartition('/')[2]} {default['value']}"
        for default in answer["defaults"]
        if concerns(default)
    ]
    if filled:
        yield f"filled in: {', '.join(filled)}"
    if "fit" in sections:
        for advice in answer["fit"].get("advice", ()):
            yield f"advice {advice['detail']}"
    for warning in answer["warnings"]:
        if concerns(warning):
            yield f"note {warning['pointer']}: {warning['detail']}"
    evidence = answer["evidence"]
    yield f"catalog revision {evidence['catalog_revision']}, method {evidence['method_version']}"


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> None:
    """Print some members of rows of the catalog as a table."""
    table = Table(box=None, pad_edge=False)
    names = list(columns)
    for name in names:
        table.add_column(_format_title(_find_unit(name, 0.0)[0]), no_wrap=name == "id")
    for row in rows:
        table.add_row(*(_format_cell(name, row.get(name)) for name in names))
    _open_console().print(table)


def _format_cell(name: str, value: object) -> str:
    if isinstance(value, int | float):
        return format_in_unit(name, value)
    return "" if value is None else str(value)


_PIPE_WIDTH = 240


def _open_console() -> Console:
    """Opens standard output: as wide as the terminal, and in a pipe wide enough to cut nothing."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)
