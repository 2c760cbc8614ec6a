"""Comparison of questions as a comment of a pull request."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from service.cli.diff_figures import MOST_CAUSES, is_moved
from service.cli.terminal import format_in_unit

MARKER: Final = "<!-- ironlaw diff -->"
"""Mark by which the comment is found again, to be updated in place."""
MOST_CHARACTERS: Final = 60_000
"""Longest comment, in characters; GitHub accepts 65,536."""
_NAMES: Final = {
    "total": "cost",
    "duration_seconds": "time",
    "facility_kwh": "energy",
    "peak_kw": "peak power",
    "location_based_kg_co2e": "emissions",
    "water_liters": "water",
    "total_bytes": "memory of a device",
    "step_seconds": "step",
    "time_to_first_token_seconds": "first token",
    "time_per_output_token_seconds": "next token",
}
_MOST_TEXT: Final = 100
_MONEY: Final = {"amount", "currency_code"}
_PLAIN: Final = re.compile(r"[^A-Za-z0-9 .,/+()'-]")


def render_markdown(found: Mapping[str, Any]) -> str:
    """Renders the whole comment; details of the last files are left out if there are too many."""
    files: Sequence[Mapping[str, Any]] = found["files"]
    text = "\n".join([MARKER, *_render_summary(found)])
    for place, file in enumerate(files):
        details = "\n".join(_render_details(file))
        if len(text) + len(details) > MOST_CHARACTERS:
            return (
                f"{text}\n\nDetails of {len(files) - place} more files are left out."[:MOST_CHARACTERS] + "\n"
            )
        text += f"\n\n{details}"
    return text + "\n"


def _render_summary(found: Mapping[str, Any]) -> Iterator[str]:
    files = found["files"]
    if not files:
        yield "### Capacity: no question changed"
        return
    moved = [
        f"{_format_signed(each['difference'])} {each['currency_code']}"
        f"{_format_share(each['before'], each['after'])}"
        for each in found["totals"]
    ]
    if found["unknown"]:
        moved.append(f"{len(found['unknown'])} unknown")
    yield f"### Capacity: {', '.join(moved) if moved else 'no cost to compare'}"
    yield ""
    yield "| question | cost before | cost after | difference | time |"
    yield "|---|--:|--:|--:|--:|"
    for file in files:
        figures = {each["name"]: each for each in file["figures"]}
        total, time = figures.get("total", {}), figures.get("duration_seconds", {})
        sides = [_format_side(total, "total", side) for side in ("before", "after")]
        change = "" if file["change"] == "changed" else f" ({file['change']})"
        yield (
            f"| {format_code(file['file'])}{change} | {' | '.join(sides)} | {_format_movement(total)} "
            f"| {_format_movement(time) or _format_side(time, 'duration_seconds', 'after')} |"
        )
    if found["unknown"]:
        yield ""
        names = ", ".join(format_code(name) for name in found["unknown"])
        yield f"The cost after the change is unknown for {names}."
    if "limit" in found:
        yield ""
        yield f"**{format_plain(found['limit'])}**" if found["exceeds"] else format_plain(found["limit"])


def _render_details(file: Mapping[str, Any]) -> Iterator[str]:
    yield f"<details><summary>{format_code(file['file'])}</summary>"
    yield ""
    for side, lines in file.get("refused", {}).items():
        yield f"No answer {side} the change: {' '.join(format_plain(line) for line in lines)}"
        yield ""
    moved = [each for each in file["figures"] if is_moved(each)]
    if moved:
        yield "| figure | before | after | difference |"
        yield "|---|--:|--:|--:|"
        for each in moved:
            sides = [_format_side(each, each["name"], side, interval=True) for side in ("before", "after")]
            change = f"{_format_movement(each)}{_format_doubt(each)}"
            yield f"| {_format_title(each['name'])} | {' | '.join(sides)} | {change} |"
        yield ""
    elif file["figures"]:
        yield "No figure changes."
        yield ""
    yield from _render_settings(file)
    for title, name in (("New warnings", "new_warnings"), ("New gaps", "new_gaps")):
        if file.get(name):
            yield f"{title}:"
            yield from (
                f"- {format_code(each['pointer'])} {format_plain(each['detail'])}" for each in file[name]
            )
            yield ""
    if "catalog_revision" in file:
        yield f"Catalog revision {file['catalog_revision']}, method {format_plain(file['method_version'])}."
        yield ""
    yield "</details>"


def _render_settings(file: Mapping[str, Any]) -> Iterator[str]:
    """Renders the settings that changed in the file, with the effect of each alone."""
    changed = {each["pointer"]: each for each in file.get("settings", [])}
    if not changed:
        return
    causes = {pointer: cause for cause in file.get("causes", []) for pointer in cause["pointers"]}
    only = file["figures"] if len(changed) == 1 else []
    yield "| setting | before | after | cost alone | time alone |"
    yield "|---|---|---|--:|--:|"
    for pointer, each in changed.items():
        sides = [_format_value(each[side]) if side in each else "left out" for side in ("before", "after")]
        alone = only or causes.get(pointer, {}).get("figures", [])
        figures = {figure["name"]: figure for figure in alone}
        effects = [_format_effect(figures, name, known=bool(only) or pointer in causes) for name in _EFFECTS]
        yield f"| {format_code(pointer)} | {' | '.join([*sides, *effects])} |"
    yield ""
    for cause in file.get("causes", []):
        if len(cause["pointers"]) > 1:
            names = ", ".join(format_code(pointer) for pointer in cause["pointers"])
            yield f"{names} have an answer only together: the effect is that of all of them."
            yield ""
    for rest in file.get("interplay", []):
        if rest["name"] in _EFFECTS:
            yield f"Together they change the {_format_title(rest['name'])} by another {_format_amount(rest)}."
            yield ""
    if file.get("untried"):
        names = ", ".join(format_code(pointer) for pointer in file["untried"][:MOST_CAUSES])
        yield f"Not tried alone, or without an answer alone: {names}."
        yield ""


_EFFECTS: Final = ("total", "duration_seconds")


def _format_effect(figures: Mapping[str, Any], name: str, *, known: bool) -> str:
    if name in figures and "difference" in figures[name]:
        return _format_amount(figures[name])
    return "" if not known or name in figures else "0"


def format_code(text: str) -> str:
    """Escapes text of other people as code: nothing in it is a link, a mention or markup."""
    shown = text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."
    return f"<code>{_escape_text(shown)}</code>"


def format_plain(text: str) -> str:
    """Escapes a sentence of the service."""
    return _escape_text(text.replace("@", "@ "))


def _escape_text(text: str) -> str:
    return _PLAIN.sub(lambda found: f"&#{ord(found[0])};" if found[0] >= " " else " ", text)


def _format_value(value: object) -> str:
    if isinstance(value, dict) and value.keys() == _MONEY:
        return format_code(f"{value['amount']} {value['currency_code']}")
    return format_code(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _format_title(name: str) -> str:
    return _NAMES.get(name, name.replace("_", " "))


def _format_side(figure: Mapping[str, Any], name: str, side: str, *, interval: bool = False) -> str:
    if side not in figure:
        return ""
    value = figure[side]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, dict):
        return format_code(value)
    if "amount" in value:
        told = f"{_format_money(value['amount'])} {value['currency_code']}"
        ends = [_format_money(value[end]) for end in ("low", "high")]
    else:
        told = format_in_unit(name, value["value"])
        ends = [format_in_unit(name, value[end]) for end in ("low", "high")]
    return f"{told} ({' to '.join(ends)})" if interval and ends[0] != ends[1] else told


def _format_money(amount: str) -> str:
    return f"{Decimal(amount):,}"


def _format_signed(amount: str) -> str:
    return f"{Decimal(amount):+,}"


def _format_amount(figure: Mapping[str, Any]) -> str:
    moved = figure["difference"]
    if "currency_code" in figure:
        return f"{_format_signed(moved)} {figure['currency_code']}"
    told = format_in_unit(figure["name"], moved)
    return told if moved < 0 else f"+{told}"


def _format_movement(figure: Mapping[str, Any]) -> str:
    if "difference" not in figure:
        return ""
    share = f" ({figure['ratio'] - 1.0:+.1%})" if "ratio" in figure else ""
    return f"{_format_amount(figure)}{share}"


def _format_doubt(figure: Mapping[str, Any]) -> str:
    return ", within the intervals" if figure.get("is_beyond_intervals") is False else ""


def _format_share(before: str, after: str) -> str:
    old = Decimal(before)
    return f" ({float((Decimal(after) - old) / old):+.1%})" if old else ""
