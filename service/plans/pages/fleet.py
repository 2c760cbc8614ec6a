"""Fleets as the pages show them: what runs where and when, what does not fit, and what would place it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from service.kit.http.html import escape_invisible, format_moment, format_money
from service.kit.locales import format_count, localize_number
from service.kit.reports.charts.bars import ChartBar, render_bars
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.numbers import NOT_KNOWN, SECONDS, TIMES, select_scale
from service.kit.reports.rounded import round_amount
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import ReportBlock, ReportChart, ReportTable, TableCell, select_blocks
from service.plans.pages.figures import CardFigure, get_figure
from service.plans.pages.reasons import CONSTRAINTS, RULES, list_unknown, list_warnings, name_place
from service.plans.words import describe_devices, describe_layout, describe_settings, format_time
from service.resolve.catalog import CatalogView
from service.resolve.titles import get_title

_GOALS: Final[Mapping[str, str]] = {"cheapest": "the lowest cost", "earliest": "the earliest ends"}
_REASONS: Final[Mapping[str, str]] = {
    "configuration": "No configuration fits the devices and does the work",
    "price": "No configuration has a known price",
    "deadline": "No configuration ends in time, even alone",
    "devices": "Other workloads have the devices",
    "budget": "The budget does not cover it beside the others",
}
_MOST_NAMED: Final = 3
"""Most pools that a title names."""
_SPACE: Final = "\N{NO-BREAK SPACE}"


class UnplacedCard(NamedTuple):
    """A workload that is not placed: why, by pool, and what would place it."""

    title: str
    reason: str
    pools: ReportTable
    remedies: Sequence[Markup]


class ScheduleParts(NamedTuple):
    """Parts of the page of a scheduled fleet."""

    figures: Sequence[CardFigure]
    certainty: str
    """Sentence about schedules that could be better."""
    runs: ReportChart | None
    placed: ReportTable
    unplaced: Sequence[UnplacedCard]
    blocks: Sequence[ReportBlock]
    """Tables of pools and of months."""
    spans: Sequence[ReportBlock]
    defaults: ReportTable
    warnings: Sequence[Markup]
    unknown: Sequence[Markup]
    catalog_revision: int
    method_version: str


def describe_fleet(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a fleet with its names, its progress, and what its schedule places."""
    question, progress = plan["fleet_question"], plan["progress"]
    answer, whole = plan.get("fleet_answer"), len(question["workloads"])
    names = [pool["name"] for pool in _list_pools(question)]
    named = " and ".join(names) if len(names) <= _MOST_NAMED else f"{format_count(len(names))} pools"
    placed = len(answer["assignments"]) if answer else 0
    candidates = progress["candidates"]
    return {
        **plan,
        "title": f"Fleet of {format_count(whole)} workloads" if whole != 1 else "Fleet of one workload",
        "work": f"schedule {'them' if whole != 1 else 'it'} on {named}",
        "goal": _GOALS[plan["goal"]],
        "last_step": "scheduling" if progress["pieces_done"] == progress["pieces"] else "",
        "last_words": "The workloads are being scheduled.",
        "done_share": progress["candidates_decided"] / candidates if candidates else 0.0,
        "nothing": "" if placed else "No workload fits",
        "best": f"{_count_placed(answer)} workloads placed" if answer and placed else "",
        "headline": _format_cost(answer["cost"]) if answer and "cost" in answer else "",
    }


def _list_pools(question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the pools of a question, owned ones first, as answers have them."""
    return [*question.get("owned", ()), *question.get("rented", ())]


def _count_placed(answer: Mapping[str, Any]) -> str:
    placed, unplaced = len(answer["assignments"]), len(answer["unplaced"])
    return f"{format_count(placed)} of {format_count(placed + unplaced)}"


def _format_cost(money: Mapping[str, str]) -> str:
    return f"{round_amount(money['amount'])}{_SPACE}{money['currency_code']}"


def list_fleet_facts(question: Mapping[str, Any], catalog: CatalogView) -> list[tuple[str, Any]]:
    """Returns the pools and the limits of a question by their names."""
    owned = question.get("owned", ())
    pools = (
        f"{pool['name']} ({_describe_pool(pool, catalog)}, {'owned' if place < len(owned) else 'rented'})"
        for place, pool in enumerate(_list_pools(question))
    )
    facts: list[tuple[str, Any]] = [
        ("Pools", "; ".join(pools)),
        ("Free from", format_moment(question["starts_at"])),
        ("Until", format_moment(question["ends_at"])),
    ]
    if "budget" in question:
        facts.append(("Budget", format_money(**question["budget"])))
    if question.get("share_nodes"):
        facts.append(("Nodes", "Workloads share them"))
    return facts


def _describe_pool(pool: Mapping[str, Any], catalog: CatalogView) -> str:
    cluster = pool["cluster"]
    accelerator = cluster["accelerator"]
    named = accelerator.get("id") or accelerator["specification"].get("name", "accelerators")
    title = get_title(catalog, "accelerators", named)
    return f"{format_count(cluster.get('accelerator_count', 1))} {TIMES} {title}"


def build_schedule(plan: Mapping[str, Any], catalog: CatalogView) -> ScheduleParts:
    """Returns the parts of the page of a scheduled fleet, which is given in JSON form."""
    question, answer = plan["fleet_question"], plan["fleet_answer"]
    names = [workload["name"] for workload in question["workloads"]]
    defaults = [
        (_name_setting(each["pointer"], names), each["value"], each["detail"]) for each in answer["defaults"]
    ]
    caption = "What the question leaves open, and what the search takes for it"
    warnings = [{"detail": _add_name(each, names)} for each in answer["warnings"]]
    return ScheduleParts(
        figures=list(_list_figures(question, answer)),
        certainty=_describe_certainty(answer),
        runs=_draw_runs(question, answer),
        placed=_build_placed(answer, catalog),
        unplaced=[_build_unplaced(each) for each in answer["unplaced"]],
        blocks=select_blocks(_build_pools(question, answer, catalog), _build_months(answer)),
        spans=select_blocks(_build_spans(answer)),
        defaults=ReportTable(caption, ("Setting", "Value", "Reason"), defaults),
        warnings=list_warnings(warnings),
        unknown=list_unknown(answer["gaps"]),
        catalog_revision=answer["evidence"]["catalog_revision"],
        method_version=answer["evidence"]["method_version"],
    )


def _split_pointer(pointer: str, names: Sequence[str]) -> tuple[str, str]:
    """Returns the name of the workload that a pointer leads to, or none, and the rest of the pointer."""
    _, noun, place, *rest = [*pointer.split("/"), "", ""]
    if noun != "workloads" or not place.isdigit() or int(place) >= len(names):
        return "", pointer
    return names[int(place)], f"/{'/'.join(filter(None, rest))}"


def _name_setting(pointer: str, names: Sequence[str]) -> str:
    name, rest = _split_pointer(pointer, names)
    return f"{name}: {name_place(rest)}" if name else name_place(pointer)


def _add_name(warning: Mapping[str, Any], names: Sequence[str]) -> str:
    name, _ = _split_pointer(warning["pointer"], names)
    return f"For “{name}”: {warning['detail']}" if name else str(warning["detail"])


def _list_figures(question: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[CardFigure]:
    late = sum(each["may_end_late"] for each in answer["assignments"])
    note, tone = (f"{format_count(late)} may end late", "warn-text") if late else ("", "")
    yield CardFigure("Workloads placed", _count_placed(answer), note=note, tone=tone)
    cost, budget = answer.get("cost"), question.get("budget")
    shown = _format_cost(cost) if cost else NOT_KNOWN
    note = ""
    if cost and budget and budget["currency_code"] == cost["currency_code"] and Decimal(budget["amount"]):
        share = Decimal(cost["amount"]) / Decimal(budget["amount"])
        note = f"{localize_number(f'{share:.0%}')} of the budget of {round_amount(budget['amount'])}"
    yield CardFigure("Price", shown, note=note)
    if answer["assignments"]:
        yield CardFigure("Last end", format_moment(max(each["ends_at"] for each in answer["assignments"])))


def _describe_certainty(answer: Mapping[str, Any]) -> str:
    if answer["is_optimal"]:
        return "No other schedule of these configurations is better."
    bound = answer["bound"]
    said = f"at most {format_count(bound['most_in_all'])} workloads fit"
    if "least_cost" in bound and answer["assignments"]:
        said += f", and those that are placed cost at least {_format_cost(bound['least_cost'])}"
    return f"A better schedule may exist: {said}."


def _draw_runs(question: Mapping[str, Any], answer: Mapping[str, Any]) -> ReportChart | None:
    """Returns when each workload runs, from the start of the fleet."""
    if not answer["assignments"]:
        return None
    begin = datetime.fromisoformat(question["starts_at"])
    bars, rows = [], []
    for each in answer["assignments"]:
        start, end = (datetime.fromisoformat(each[name]) - begin for name in ("starts_at", "ends_at"))
        taken = f"{each['pool']}, {format_count(each['devices_taken'])} devices"
        bars.append(ChartBar(each["workload"], taken, start.total_seconds(), end.total_seconds()))
        lasting = format_time((end - start).total_seconds())
        rows.append((each["workload"], format_time(max(0.0, start.total_seconds())), lasting))
    last = max(bar.end for bar in bars)
    scale = select_scale(SECONDS, last)
    about = ChartLabel(
        "runs",
        "When each workload runs",
        f"{len(bars)} workloads from the start of the fleet to the last end.",
    )
    chart = render_bars(about, bars, build_linear_axis(last, unit=scale.factor), scale)
    table = ReportTable(
        "Start and time of each workload", ("Workload", "Starts after", "Runs for"), rows, frozenset({1, 2})
    )
    return ReportChart(about.title, chart, table, "Time counts from the start of the fleet.")


def _build_placed(answer: Mapping[str, Any], catalog: CatalogView) -> ReportTable:
    head = ("Workload", "Pool", "Start", "End", "Price")
    rows = [
        (
            _format_workload(each, catalog),
            _add_hints(each["pool"], f"{format_count(each['devices_taken'])} devices taken"),
            format_moment(each["starts_at"]),
            format_moment(each["ends_at"]),
            _format_price(each["row"]),
        )
        for each in answer["assignments"]
    ]
    return ReportTable("Placed workloads", head, rows, frozenset({4}))


def _format_workload(assignment: Mapping[str, Any], catalog: CatalogView) -> Markup:
    row = assignment["row"]
    late = "May end after its deadline." if assignment["may_end_late"] else ""
    settings = f"{describe_layout(row)}; {describe_settings(row)}"
    return _add_hints(assignment["workload"], describe_devices(row, catalog), settings, late)


def _add_hints(name: str, *hints: str) -> Markup:
    """Returns a name with smaller lines under it."""
    lines = (Markup('<span class="hint">{}</span>').format(escape_invisible(hint)) for hint in hints if hint)
    return Markup("<strong>{}</strong>").format(escape_invisible(name)) + Markup("").join(lines)


def _format_price(row: Mapping[str, Any]) -> TableCell:
    figure = get_figure(row, "cost")
    if figure is None:
        return NOT_KNOWN
    hint = figure.likely.removeprefix("likely ")
    return Markup('{}<span class="hint">{}</span>').format(figure.shown, hint) if hint else figure.shown


def _build_unplaced(workload: Mapping[str, Any]) -> UnplacedCard:
    head = ("Pool", "Reason", "Shortest time", "Least price", "Could end")
    rows = [
        (
            pool["pool"],
            _explain_pool(pool),
            _format_duration(pool),
            _format_cost(pool["least_cost"]) if "least_cost" in pool else "",
            format_moment(pool["could_end_at"]) if "could_end_at" in pool else "",
        )
        for pool in workload["pools"]
    ]
    table = ReportTable(f"Pools for {workload['workload']}", head, rows, frozenset({2, 3}))
    remedies = [_write_remedy(each) for each in workload["remedies"]]
    return UnplacedCard(workload["workload"], f"{_REASONS[workload['reason']]}.", table, remedies)


def _format_duration(pool: Mapping[str, Any]) -> str:
    seconds = pool.get("least_duration_seconds")
    return "" if seconds is None else format_time(seconds)


def _explain_pool(pool: Mapping[str, Any]) -> TableCell:
    """Returns the reason of a pool, and how many configurations each constraint rules out."""
    counted = [
        *((CONSTRAINTS[each["constraint"]], each["candidates"]) for each in pool.get("ruled_out", ())),
        *((RULES[each["rule"]], each["candidates"]) for each in pool.get("pruned", ())),
    ]
    hints = (f"{words} ({format_count(count)})" for words, count in counted)
    lines = (Markup('<span class="hint">{}</span>').format(hint) for hint in hints)
    return Markup("{}").format(_REASONS[pool["reason"]]) + Markup("").join(lines)


def _write_remedy(remedy: Mapping[str, Any]) -> Markup:
    """Returns a change as a sentence, with what follows from it."""
    pool = escape_invisible(remedy["pool"])
    if remedy["change"] == "devices":
        change = Markup("{} more devices for {}").format(format_count(remedy["added_devices"]), pool)
    elif remedy["change"] == "deadline":
        change = Markup("a deadline of {}").format(format_moment(remedy["finish_by"]))
    else:
        change = Markup("a budget of {}").format(_format_cost(remedy["budget"]))
    price = f", for {_format_cost(remedy['cost'])}" if "cost" in remedy else ""
    return Markup("With {}, it runs on {} devices of {} from {} to {}{}.").format(
        change,
        format_count(remedy["accelerator_count"]),
        pool,
        format_moment(remedy["starts_at"]),
        format_moment(remedy["ends_at"]),
        price,
    )


def _build_pools(question: Mapping[str, Any], answer: Mapping[str, Any], catalog: CatalogView) -> ReportTable:
    rows = [
        (
            _add_hints(found["pool"], _describe_pool(pool, catalog)),
            localize_number(f"{found['share_taken']:.0%}"),
        )
        for pool, found in zip(_list_pools(question), answer["pools"], strict=True)
    ]
    return ReportTable("Use of the pools", ("Pool", "Device-hours taken"), rows, frozenset({1}))


def _build_months(answer: Mapping[str, Any]) -> ReportTable:
    has_budget = any("budget_left" in month for month in answer["months"])
    members = ("spend", "spend_so_far", *(("budget_left",) if has_budget else ()))
    rows = [(month["month"], *(_format_cost(month[name]) for name in members)) for month in answer["months"]]
    head = ("Month", "Price", "Since the start", *(("Budget left",) if has_budget else ()))
    return ReportTable("Price by month", head, rows, frozenset({1, 2, 3}))


def _build_spans(answer: Mapping[str, Any]) -> ReportTable:
    rows = [
        (
            pool["pool"],
            format_moment(span["starts_at"]),
            format_moment(span["ends_at"]),
            f"{format_count(span['devices_taken'])} of {format_count(pool['accelerator_count'])}",
            ", ".join(span["workloads"]),
        )
        for pool in answer["pools"]
        for span in pool["spans"]
    ]
    head = ("Pool", "From", "To", "Devices taken", "Workloads")
    return ReportTable("Devices in use over time", head, rows, frozenset({3}))
