"""Parts of the page of an answered plan: the card, the candidates, the chart and the reasons."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from operator import not_
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from service.formats.launch import TABLE, render_toml
from service.kit.http.html import escape_invisible
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.charts.series import ChartSeries, PlotAxis, SeriesPoint, render_series
from service.kit.reports.numbers import NOT_KNOWN, SECONDS, UnitScale, select_scale
from service.kit.reports.scaling import build_point_axis
from service.kit.reports.shapes import ReportChart, ReportTable
from service.plans.pages.choice import build_separation_table, build_switch_table, describe_firm
from service.plans.pages.figures import (
    SERVING_TIMES,
    TRAINING_TIMES,
    CardFigure,
    format_chance,
    get_figure,
    is_training,
    list_card_figures,
)
from service.plans.pages.reasons import (
    CONSTRAINTS,
    build_default_table,
    build_refusal_table,
    describe_counts,
    explain_nothing,
    list_missing,
    list_unknown,
    list_warnings,
)
from service.plans.words import describe_devices, describe_layout, describe_settings, describe_supply
from service.resolve.catalog import CatalogView
from service.schemas.plans import PlanSearch

_PROGRAMS: Final[Mapping[str, str]] = {
    "torchrun": "Arguments of torchrun",
    "megatron_lm": "Arguments of Megatron-LM",
    "deepspeed": "DeepSpeed, ds_config.json",
    "torchtitan": "torchtitan, TOML file",
    "vllm": "Arguments of vllm serve",
    "sglang": "Arguments of sglang.launch_server",
}
_FIGURES: Final = ("headroom_bytes", "location_based_kg_co2e")
_SHORT: Final[Mapping[str, str]] = {
    "cost": "Price",
    "duration_seconds": "Time of the run",
    "time_to_first_token_seconds": "First token",
    "time_per_output_token_seconds": "Per token",
    "request_seconds": "Request",
    "headroom_bytes": "Memory free",
    "location_based_kg_co2e": "Emissions",
}


class WinnerCard(NamedTuple):
    """The first candidate: what, whose, how it is laid out, and its figures."""

    title: str
    supply: str
    layout: str
    settings: str
    starts_at: str
    figures: Sequence[CardFigure]
    is_close: bool
    """True if it is better than the second by less than the estimates can tell apart."""


class LaunchProgram(NamedTuple):
    """Arguments or a file of a program that runs the first candidate, and what it has no setting for."""

    title: str
    text: str
    missing: Sequence[Markup]


class AnswerParts(NamedTuple):
    """Parts of the page of an answer."""

    winner: WinnerCard | None
    ranks: str
    """Sentence about the order of the candidates."""
    candidates: ReportTable
    tradeoff: ReportChart | None
    switches: ReportTable
    firm: str
    separation: ReportTable | None
    counts: str
    refusals: ReportTable
    programs: Sequence[LaunchProgram]
    defaults: ReportTable
    nothing: str
    """Reason why there is no candidate, or empty."""
    warnings: Sequence[Markup]
    unknown: Sequence[Markup]
    catalog_revision: int
    method_version: str


def build_parts(plan: Mapping[str, Any], catalog: CatalogView, *, may_quote: bool) -> AnswerParts:
    """Returns the parts of the page of an answered plan, which is given in JSON form."""
    question, answer = plan["question"], plan["answer"]
    separation = answer.get("separation")
    ranks = {row["rank"] for row in answer["rows"]}
    rows = [*answer["rows"], *(row for row in answer["given"] if row["rank"] not in ranks)]
    return AnswerParts(
        winner=_build_winner(question, answer, catalog),
        ranks=_explain_ranks(question),
        candidates=_build_candidates(plan, rows, catalog, may_quote=may_quote),
        tradeoff=_build_tradeoff(question, rows, catalog),
        switches=build_switch_table(answer["sensitivities"], catalog),
        firm=describe_firm(answer["sensitivities"], catalog),
        separation=build_separation_table(separation, catalog) if separation else None,
        counts=describe_counts(answer["candidates"]),
        refusals=build_refusal_table(answer["candidates"]),
        programs=[_build_program(hint) for hint in answer["launch_hints"]],
        defaults=build_default_table(answer["defaults"]),
        nothing="" if answer["rows"] else explain_nothing(answer["candidates"]),
        warnings=list_warnings(answer["warnings"]),
        unknown=list_unknown(_list_gaps(answer)),
        catalog_revision=answer["evidence"]["catalog_revision"],
        method_version=answer["evidence"]["method_version"],
    )


def _list_gaps(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the figures that the candidates lack."""
    return [gap for gap in answer["gaps"] if gap["pointer"] != "/rows"] if answer["rows"] else []


def _build_winner(
    question: Mapping[str, Any], answer: Mapping[str, Any], catalog: CatalogView
) -> WinnerCard | None:
    if not answer["rows"]:
        return None
    row = answer["rows"][0]
    return WinnerCard(
        describe_devices(row, catalog),
        describe_supply(row["supply"], catalog),
        describe_layout(row),
        describe_settings(row),
        row.get("starts_at", ""),
        list_card_figures(question, answer),
        # The second of a trade-off is no rival of the first.
        question["goal"] != "pareto" and answer.get("separation", {}).get("within_interval", False),
    )


def _build_candidates(
    plan: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], catalog: CatalogView, *, may_quote: bool
) -> ReportTable:
    names = [*_list_compared(plan["question"]), *_FIGURES]
    shown = [name for name in names if any(name in row for row in rows)]
    head = ["Candidate", *(_SHORT[name] for name in shown), "Fits"]
    found = []
    for row in rows:
        figures = (_format_cell(row, name) for name in shown)
        found.append([_format_candidate(row, catalog), *figures, format_chance(row)])
        if may_quote:
            found[-1].append(_link_quote(plan["id"], row))
    # The last columns are narrow.
    numbers = frozenset(range(1, len(head) + 1))
    return ReportTable("The best by rank", [*head, "Quote"] if may_quote else head, found, numbers)


def _explain_ranks(question: Mapping[str, Any]) -> str:
    """Returns a sentence about the order of the candidates, and the gaps between their numbers."""
    if question["goal"] == "pareto":
        return "No configuration beats one of these in price, time and emissions. The cheapest is first."
    most = question.get("search", {}).get("rows_per_supply", PlanSearch().rows_per_supply)
    return f"At most {most:,} configurations of one offer or supply are listed, so that others have a place."


def _list_compared(question: Mapping[str, Any]) -> tuple[str, ...]:
    return ("cost", *(TRAINING_TIMES if is_training(question) else SERVING_TIMES))


def _format_candidate(row: Mapping[str, Any], catalog: CatalogView) -> Markup:
    """Returns place, devices, supply, layout and settings of a candidate."""
    place = f"{row['rank']}. " if row["rank"] else ""
    name = f"{row['name']}: " if "name" in row else ""
    lines = [
        describe_supply(row["supply"], catalog),
        f"{describe_layout(row)}; {describe_settings(row)}",
        f"Ruled out. {CONSTRAINTS[row['ruled_out_by']]}." if "ruled_out_by" in row else "",
    ]
    hints = (_format_hint(line) for line in lines if line)
    title = escape_invisible(f"{place}{name}{describe_devices(row, catalog)}")
    return Markup("<strong>{}</strong>").format(title) + Markup("").join(hints)


def _format_hint(text: str) -> Markup:
    return Markup('<span class="hint">{}</span>').format(escape_invisible(text))


def _format_cell(row: Mapping[str, Any], name: str) -> str | Markup:
    figure = get_figure(row, name)
    if figure is None:
        return NOT_KNOWN
    hint = _format_hint(figure.likely.removeprefix("likely ")) if figure.likely else Markup("")
    return Markup("{}{}").format(figure.shown, hint)


def _link_quote(plan_id: str, row: Mapping[str, Any]) -> str | Markup:
    if not row["rank"]:
        return ""
    link = Markup('<a href="/plans/{}/quote?candidate={}" aria-label="Quote candidate {}">Quote</a>')
    return link.format(plan_id, row["rank"], row["rank"])


def _build_tradeoff(
    question: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], catalog: CatalogView
) -> ReportChart | None:
    """Returns cost against time, where at least two candidates have both."""
    time = "duration_seconds" if is_training(question) else "request_seconds"
    plotted = [row for row in rows if row["rank"] and "cost" in row and time in row]
    if len({(row["cost"]["amount"], row[time]["value"]) for row in plotted}) <= 1:
        return None
    places = [(row[time]["value"], float(row["cost"]["amount"])) for row in plotted]
    is_best = [_is_best(place, places) for place in places]
    code = plotted[0]["cost"]["currency_code"]
    about = ChartLabel(
        "tradeoff",
        f"Price against the time of {'the run' if is_training(question) else 'a request'}",
        f"{len(places)} candidates by their number; {sum(is_best)} of them are beaten by no other in both "
        "price and time, and are joined by a line.",
    )
    points = [SeriesPoint(*place, name=str(row["rank"])) for row, place in zip(plotted, places, strict=True)]
    chart = _draw_tradeoff(about, points, is_best, code)
    table_rows = [
        (
            f"{row['rank']}. {describe_devices(row, catalog)}",
            *(figure.shown for name in ("cost", time) if (figure := get_figure(row, name))),
            "yes" if best else "no",
        )
        for row, best in zip(plotted, is_best, strict=True)
    ]
    head = ("Candidate", "Price", _SHORT[time], "Best")
    table = ReportTable("Price and time of the candidates", head, table_rows, frozenset({1, 2, 3}))
    note = "Numbers beside points are candidates."
    if question["goal"] == "pareto":
        note += " One that is beaten in both is listed for its emissions."
    return ReportChart(about.title, chart, table, note)


def _draw_tradeoff(
    about: ChartLabel, points: Sequence[SeriesPoint], is_best: Sequence[bool], code: str
) -> Markup:
    best = sorted(compress(points, is_best), key=lambda point: point.x)
    others = list(compress(points, map(not_, is_best)))
    series = [ChartSeries("No other is both cheaper and faster", best)]
    if others:
        series.append(ChartSeries("Another is both cheaper and faster", others, "points"))
    times, amounts = [point.x for point in points], [point.y for point in points]
    scale = select_scale(SECONDS, max(times))
    return render_series(
        about,
        series,
        PlotAxis("Time", build_point_axis(*times, unit=scale.factor), scale),
        PlotAxis("Price", build_point_axis(*amounts), UnitScale(1.0, code)),
    )


def _is_best(place: tuple[float, float], places: Sequence[tuple[float, float]]) -> bool:
    across, up = place
    return not any(
        x <= across and y <= up and (x, y) != place  # better in one figure and no worse in the other
        for x, y in places
    )


def _build_program(hint: Mapping[str, Any]) -> LaunchProgram:
    if "arguments" in hint:
        text = " \\\n".join(_join_flags(hint["arguments"]))
    elif TABLE[hint["tool"]].file_format == "toml":
        text = render_toml(hint["configuration"]).strip()
    else:
        text = json.dumps(hint["configuration"], indent=2)
    return LaunchProgram(_PROGRAMS[hint["tool"]], text, list(list_missing(hint)))


def _join_flags(arguments: Sequence[str]) -> Iterator[str]:
    """Yields each flag with its values, quoted for a shell."""
    flag: list[str] = []
    for part in arguments:
        if part.startswith("--") and flag:
            yield shlex.join(flag)
            flag = []
        flag.append(part)
    if flag:
        yield shlex.join(flag)
