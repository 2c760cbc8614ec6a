"""A plan as tables, for people at a terminal."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from service.cli.terminal import format_figure, format_in_unit
from service.formats.launch import TABLE, render_toml

_DEGREES: Final = (("tensor", "TP"), ("pipeline", "PP"), ("data", "DP"), ("context", "CP"), ("expert", "EP"))
_FOLDED: Final = ("supply", "devices", "layout", "settings")
"""Columns of text, which may fold; figures stay on one line."""
_USUAL_SCHEDULE: Final = "one_f_one_b"
_COMMANDS: Final = {
    "torchrun": "torchrun",
    "megatron_lm": "Megatron-LM",
    "deepspeed": "DeepSpeed, ds_config.json",
    "torchtitan": "torchtitan, TOML",
    "vllm": "vllm serve",
    "sglang": "python -m sglang.launch_server",
}
"""Commands or files that a launch hint is for."""
_TIMES: Final = ("duration_seconds", "step_seconds")
_SERVED: Final = ("request_seconds", "time_to_first_token_seconds", "time_per_output_token_seconds")


def format_layout(row: Mapping[str, Any]) -> str:
    """Formats the layout of a row in the usual abbreviations."""
    layout = row["parallelism"]
    parts = [f"{short}{layout[name]}" for name, short in _DEGREES if layout[name] > 1]
    parts += ["SP"] if layout["sequence_parallel"] else []
    parts += [layout["sharding"]] if layout["sharding"] != "none" else []
    if layout["pipeline_schedule"] != _USUAL_SCHEDULE:
        chunks = f" x{layout['virtual_stages']}" if layout["virtual_stages"] > 1 else ""
        parts.append(f"{layout['pipeline_schedule']}{chunks}")
    return " ".join(parts) or "one device"


def _format_batch(row: Mapping[str, Any]) -> str:
    """Formats precision, batch and recomputation of a training row; formats and replicas of a served one."""
    if "micro_batch_size" in row:
        again = row.get("recomputation", "none")
        batch = f"{row['micro_batch_size']} x {row.get('gradient_accumulation_steps', 1)}"
        return f"{row.get('precision', '')} {batch}{'' if again == 'none' else f' recompute {again}'}".strip()
    cache = f"KV {row['kv_cache_precision']}" if "kv_cache_precision" in row else ""
    count = row.get("replicas", 1)
    parts = (row.get("weight_format", ""), cache, f"{count} replicas" if count > 1 else "")
    return " ".join(part for part in parts if part)


def _format_money(row: Mapping[str, Any]) -> str:
    cost = row.get("cost")
    return f"{Decimal(cost['amount']):,} {cost['currency_code']}" if cost else ""


def _format_quantity(row: Mapping[str, Any], name: str) -> str:
    return format_in_unit(name, row[name]["value"]) if name in row else ""


def _build_columns(row: Mapping[str, Any], *, served: bool) -> dict[str, str]:
    """Returns the columns of a row by their titles."""
    name = f"{row['name']}: " if "name" in row else ""
    titles = ("request", "first token", "next token") if served else ("run", "step")
    return {
        "#": str(row["rank"]) if row["rank"] else row.get("ruled_out_by", ""),
        "supply": f"{name}{row['supply']['name']}",
        "devices": f"{row['accelerator_count']:,} x {row['accelerator_id']}",
        "layout": format_layout(row),
        "settings": _format_batch(row),
        "start": row.get("starts_at", ""),
        **{
            title: _format_quantity(row, each)
            for title, each in zip(titles, _SERVED if served else _TIMES, strict=True)
        },
        "cost": _format_money(row),
        "emissions": _format_quantity(row, "location_based_kg_co2e"),
        "headroom": format_in_unit("headroom_bytes", row["headroom_bytes"])
        if "headroom_bytes" in row
        else "",
    }


def _build_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Builds a table of rows with the columns that any of them fills."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    served = any("request_seconds" in row for row in rows)
    shown = [_build_columns(row, served=served) for row in rows]
    names = [name for name in shown[0] if any(row[name] for row in shown)]
    for name in names:
        is_text = name in _FOLDED
        table.add_column(name, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    for row in shown:
        table.add_row(*(row[name] for name in names))
    return table


def _describe_counts(counts: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{counts['considered']:,} configurations: {counts['scored']:,} scored, {counts['feasible']:,} "
        f"feasible; {counts['priced']:,} priced on a supply, {counts['priced_feasible']:,} of them "
        "within all constraints"
    )
    for verb, name, members in (
        ("ruled out", "constraint", "ruled_out"),
        ("decided by a bound", "rule", "pruned"),
        ("ruled out once priced", "constraint", "priced_ruled_out"),
    ):
        parts = ", ".join(f"{each[name]} {each['candidates']:,}" for each in counts[members])
        if parts:
            yield f"{verb}: {parts}"


def _format_setting(name: str, value: object, unit: str) -> str:
    """Formats a figure or setting of a row; the unit is left out if the name contains it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    text = format_in_unit(f"_{unit}", value)
    is_bare = text == format_figure(value) and unit not in ("", "share") and unit not in name
    return f"{text} {unit}" if is_bare else text


def _render_separation(separation: Mapping[str, Any]) -> Group:
    title = "Differences between the first and the second"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("", "first", "second"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for each in (*separation["figures"], *separation["parts"], *separation["settings"]):
        name, unit = each["name"], each.get("unit", "")
        ends = (_format_setting(name, each.get(end), unit) for end in ("first", "second"))
        table.add_row(name.replace("_", " "), *ends)
    doubt = ("The first is better by less than the estimates' uncertainty.",) * separation["within_interval"]
    return Group(table, *doubt)


def _render_sensitivities(sensitivities: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="Sensitivity of the choice", title_justify="left", box=None, pad_edge=False)
    for name in ("assumption", "times", "then the first is"):
        table.add_column(name, justify="right" if name == "times" else "left")
    for each in sensitivities:
        name = each["assumption"].replace("_", " ") + (f" of {each['of']}" if "of" in each else "")
        if "factor" not in each:
            span = f"{format_figure(each['searched_low'])} to {format_figure(each['searched_high'])}"
            table.add_row(name, span, "the same")
            continue
        row = each.get("becomes")
        then = "nothing: no configuration is left"
        if row:
            place = f"{row['supply']['name']}, {row['accelerator_count']:,} x {row['accelerator_id']}"
            then = f"{place}, {format_layout(row)}"
        table.add_row(name, f"{each['factor']:.4g}", then)
    return table


def _render_hint(hint: Mapping[str, Any]) -> Iterator[str]:
    """Renders a hint as its program accepts it, and the settings that it lacks."""
    yield f"{_COMMANDS[hint['tool']]}:"
    if "arguments" in hint:
        yield f"  {shlex.join(hint['arguments'])}"
    else:
        document = hint["configuration"]
        is_toml = TABLE[hint["tool"]].file_format == "toml"
        text = render_toml(document) if is_toml else json.dumps(document, indent=2)
        yield from (f"  {line}" for line in text.splitlines())
    for gap in hint["missing"]:
        yield f"  no setting for {gap['pointer'].partition('/throughput')[2]}: {gap['detail']}"


def _describe_unknown(gaps: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Describes gaps; rows with the same gap share one line."""
    members: dict[str, dict[str, None]] = {}
    for gap in gaps:
        members.setdefault(gap["detail"], {})[gap["pointer"].rsplit("/", 1)[-1]] = None
    for detail, names in members.items():
        yield f"unknown {', '.join(names)}: {detail}"


def render_plan(answer: Mapping[str, Any]) -> Group:
    """Renders a plan: ranked rows, counts of the search, sensitivities, and the launch of the first row."""
    parts: list[Any] = []
    if answer["rows"]:
        parts.append(_build_table("Best configurations", answer["rows"]))
    else:
        parts.append(Text("No configuration satisfies the constraints."))
    if answer["given"]:
        parts += ["", _build_table("Configurations in use", answer["given"])]
    parts += ["", Text("\n".join(_describe_counts(answer["candidates"])))]
    if "separation" in answer:
        parts += ["", _render_separation(answer["separation"])]
    if answer["sensitivities"]:
        parts += ["", _render_sensitivities(answer["sensitivities"])]
    if answer["launch_hints"]:
        lines = [line for hint in answer["launch_hints"] for line in _render_hint(hint)]
        parts += ["", Text("Launch the first\n" + "\n".join(lines))]
    notes = [*_describe_unknown(answer["gaps"])]
    notes += [f"default {each['pointer']}: {each['value']}, {each['detail']}" for each in answer["defaults"]]
    notes += [f"note {warning['pointer']}: {warning['detail']}" for warning in answer["warnings"]]
    evidence = answer["evidence"]
    notes.append(f"catalog revision {evidence['catalog_revision']}, method {evidence['method_version']}")
    return Group(*parts, "", Text("\n".join(notes), style="dim"))


def print_plan(answer: Mapping[str, Any]) -> None:
    """Print a plan."""
    Console(highlight=False).print(render_plan(answer))
