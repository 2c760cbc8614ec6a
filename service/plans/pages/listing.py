"""Plans as the pages name them: model, work and goal in words, limits, and the best candidate in a line."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from service.formats.providers import get_provider_name
from service.kit.http.html import format_moment, format_money
from service.kit.locales import format_count
from service.kit.reports.numbers import TIMES, format_number
from service.plans.pages.figures import get_figure, is_training
from service.plans.tables import FLEET
from service.plans.words import (
    GOALS,
    PURCHASE_OPTIONS,
    describe_devices,
    describe_model,
    describe_supply,
    describe_work,
    format_time,
)
from service.resolve.catalog import CatalogView
from service.resolve.titles import get_title

_AWARDS: Final[Mapping[str, str]] = {
    "cheapest": "Lowest cost",
    "fastest": "Shortest time",
    "cleanest": "Lowest emissions",
    "fewest_devices": "Fewest devices",
    "pareto": "Cheapest of the trade-offs",
}
"""Names of the first candidate by goal."""
_LEVELS: Final[Mapping[str, str]] = {
    "time_to_first_token_seconds": "first token within {}",
    "time_per_output_token_seconds": "a token every {}",
    "request_seconds": "a request within {}",
}


def describe_plan(plan: Mapping[str, Any], catalog: CatalogView) -> dict[str, Any]:
    """Returns a plan with its names, its progress, and its best candidate in words."""
    question, progress = plan["question"], plan["progress"]
    rows = plan["answer"]["rows"] if "answer" in plan else []
    candidates = progress["candidates"]
    return {
        **plan,
        "title": describe_model(question["model"], catalog),
        "work": describe_work(question["workload"]),
        "goal": GOALS[plan["goal"]],
        "award": _AWARDS[plan["goal"]],
        "last_step": "ranking" if progress["pieces_done"] == progress["pieces"] else "",
        "last_words": "The best are being ranked.",
        "done_share": progress["candidates_decided"] / candidates if candidates else 0.0,
        "nothing": "" if rows else "Nothing keeps the limits",
        "best": _describe_best(rows[0], catalog) if rows else "",
        "headline": _format_headline(question, rows[0]) if rows else "",
    }


def describe_long_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a plan without its question, which is too long for a list, with its progress and its price."""
    progress, cost = plan["progress"], plan.get("best_cost")
    candidates = progress["candidates"]
    return {
        **plan,
        "title": "A long question",
        "work": "schedule a fleet" if plan["kind"] == FLEET else "find a configuration",
        "goal": GOALS.get(plan["goal"], "the earliest ends"),
        "last_step": "",
        "done_share": progress["candidates_decided"] / candidates if candidates else 0.0,
        "nothing": "",
        "best": format_money(**cost) if cost else "",
        "headline": "",
    }


def _describe_best(row: Mapping[str, Any], catalog: CatalogView) -> str:
    return f"{describe_devices(row, catalog)}, {describe_supply(row['supply'], catalog)}"


def _format_headline(question: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Returns the figure of the goal, and the price beside it."""
    words = {"cost": "{}", "location_based_kg_co2e": "{}"}
    time, said = ("duration_seconds", "{}") if is_training(question) else ("request_seconds", "{} a request")
    names = {"cleanest": ("location_based_kg_co2e", "cost"), "fastest": (time, "cost")}
    wanted = names.get(question["goal"], ("cost", time))
    figures = ((words.get(name, said), get_figure(row, name)) for name in wanted)
    return ", ".join(text.format(figure.shown) for text, figure in figures if figure)


def list_facts(question: Mapping[str, Any], catalog: CatalogView) -> list[tuple[str, Any]]:
    """Returns the hardware and the limits of a question by their names."""
    limits = question.get("constraints", {})
    facts: list[tuple[str, Any]] = [("Hardware", "; ".join(_list_hardware(question, catalog)))]
    if "duration_seconds" in limits:
        facts.append(("Deadline", f"{format_time(limits['duration_seconds'])} from the start"))
    if "finish_by" in limits:
        facts.append(("Finished by", format_moment(limits["finish_by"])))
    if "budget" in limits:
        facts.append(("Budget", format_money(**limits["budget"])))
    levels = question["workload"].get("service_levels", {})
    asked = [text.format(format_time(levels[name])) for name, text in _LEVELS.items() if name in levels]
    if asked:
        facts.append(("Service levels", ", ".join(asked)))
    others = list(_list_limits(limits))
    facts += [("Other limits", ", ".join(others))] if others else []
    # A time is markup, and begins with a number.
    return [
        (name, f"{value[:1].upper()}{value[1:]}" if type(value) is str else value) for name, value in facts
    ]


def _list_hardware(question: Mapping[str, Any], catalog: CatalogView) -> Iterator[str]:
    search = question.get("search", {})
    if search.get("offers", True):
        ids = search.get("accelerators", ())
        names = " or ".join(get_title(catalog, "accelerators", each) for each in ids)
        yield f"offers of {names}" if names else "any offer of the catalog"
    for supply in (*question.get("owned", ()), *question.get("rented", ())):
        cluster = supply["cluster"]
        accelerator = cluster["accelerator"]
        named = accelerator.get("id") or accelerator["specification"].get("name", "accelerators")
        title = get_title(catalog, "accelerators", named)
        yield f"{supply['name']} ({format_count(cluster.get('accelerator_count', 1))} {TIMES} {title})"


def _list_limits(limits: Mapping[str, Any]) -> Iterator[str]:
    if "accelerator_count" in limits:
        yield f"at most {format_count(limits['accelerator_count'])} accelerators"
    if "providers" in limits:
        yield f"{' or '.join(map(get_provider_name, limits['providers']))} only"
    if "regions" in limits:
        yield f"{' or '.join(limits['regions'])} only"
    if "purchase_options" in limits:
        names = (PURCHASE_OPTIONS.get(each, each) for each in limits["purchase_options"])
        yield f"{' or '.join(names)} only"
    if "headroom_share" in limits:
        yield f"{limits['headroom_share']:.0%} of the memory free"
    if "facility_kw" in limits:
        yield f"at most {format_number(limits['facility_kw'])} kW"
    if "location_based_kg_co2e" in limits:
        yield f"at most {format_number(limits['location_based_kg_co2e'])} kg CO₂e"
