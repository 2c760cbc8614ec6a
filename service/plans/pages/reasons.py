"""Reasons of a plan in words: what ruled candidates out, what was filled in, what is not known."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from service.kit.http.html import escape_invisible
from service.kit.locales import format_count
from service.kit.reports.numbers import format_figure_title, to_title
from service.kit.reports.shapes import ReportTable

CONSTRAINTS: Final[Mapping[str, str]] = {
    "precision": "The device has no rate for the precision",
    "devices": "The layout does not suit the number of devices",
    "heads": "The heads of the model do not divide among the devices",
    "blocks": "The blocks of the model do not divide among the stages",
    "experts": "The experts of the model do not divide among the devices",
    "sequence": "The sequence does not divide among the devices",
    "batch": "The batch does not divide among the devices",
    "link": "Tensor parallelism would leave the fast link",
    "memory": "The memory of a device is too small, with the part that stays free",
    "engine": "The engine does not allow it",
    "service_level": "It does not meet the service levels",
    "deadline": "It misses the deadline",
    "power": "It exceeds the power of the building",
    "carbon": "It exceeds the emissions",
    "budget": "It exceeds the budget",
    "price": "Its price in this currency is not known",
    "emissions": "Its emissions are not known",
}
"""Sentences about candidates that a constraint rules out."""
RULES: Final[Mapping[str, str]] = {
    "state": "Weights and optimizer states alone exceed the memory of a device",
    "deadline": "It misses the deadline even at the peak of all devices",
    "roofline": "Enough others are faster even if it ran at its peak",
    "work": "It needs more memory than one that does not fit",
    "levels": "One token takes longer than the service levels allow, whatever the load",
}
"""Sentences about candidates that a bound decides."""


def build_refusal_table(counts: Mapping[str, Any]) -> ReportTable:
    """Returns the reasons why configurations are not among the candidates, the most frequent first."""
    reasons: dict[str, int] = {}
    for member, name, words in (
        ("ruled_out", "constraint", CONSTRAINTS),
        ("pruned", "rule", RULES),
        ("priced_ruled_out", "constraint", CONSTRAINTS),
    ):
        for each in counts.get(member, ()):
            reason = words[each[name]]
            reasons[reason] = reasons.get(reason, 0) + each["candidates"]
    ordered = sorted(reasons.items(), key=lambda one: -one[1])
    rows = [(reason, format_count(count)) for reason, count in ordered]
    return ReportTable(
        "Configurations by the first reason against them", ("Reason", "Configurations"), rows, frozenset({1})
    )


def describe_counts(counts: Mapping[str, Any]) -> str:
    """Returns a sentence with the counts of a search."""
    considered, scored, priced, kept = (
        format_count(counts[name]) for name in ("considered", "scored", "priced", "priced_feasible")
    )
    return (
        f"The search considered {considered} configurations and computed the memory and time of {scored}. "
        f"It priced {priced} on a supply; {kept} of these keep all limits."
    )


def explain_nothing(counts: Mapping[str, Any]) -> str:
    """Returns how far the search came that has no candidate, and the reasons at its last step."""
    if not counts["feasible"]:
        return "No configuration fits the devices and does the work. The table below has the reasons."
    reasons = sorted(counts["priced_ruled_out"], key=lambda each: -each["candidates"])
    words = (CONSTRAINTS[each["constraint"]] for each in reasons)
    said = "; ".join(f"{word[0].lower()}{word[1:]}" for word in words)
    count = format_count(counts["feasible"])
    return f"{count} configurations do the work, and none is within the limits: {said}."


def build_default_table(defaults: Iterable[Mapping[str, Any]]) -> ReportTable:
    """Returns what the question leaves open, and what the search takes for it."""
    rows = [(name_place(each["pointer"]), each["value"], each["detail"]) for each in defaults]
    caption = "What the question leaves open, and what the search takes for it"
    return ReportTable(caption, ("Setting", "Value", "Reason"), rows)


def list_warnings(warnings: Iterable[Mapping[str, Any]]) -> list[Markup]:
    """Returns the warnings of an answer as sentences, each once."""
    return list(dict.fromkeys(_write_sentence(each["detail"]) for each in warnings))


def list_unknown(gaps: Iterable[Mapping[str, Any]]) -> list[Markup]:
    """Returns the figures that are absent, with the reason. Rows with the same gap share a sentence."""
    members: dict[str, dict[str, None]] = {}
    for gap in gaps:
        name = format_figure_title(gap["pointer"].rpartition("/")[2])
        members.setdefault(gap["detail"], {})[name] = None
    return [_write_sentence(f"{', '.join(names)}: {detail}") for detail, names in members.items()]


def list_missing(hint: Mapping[str, Any]) -> Iterator[Markup]:
    """Yields the settings that a program lacks."""
    for gap in hint["missing"]:
        yield _write_sentence(f"{name_place(gap['pointer'].partition('/throughput')[2])}: {gap['detail']}")


def name_place(pointer: str) -> str:
    """Returns a place of a request in words."""
    parts = [part for part in pointer.split("/") if part and not part.isdigit()]
    shown = parts[1:] if parts[:1] in (["workload"], ["constraints"]) and len(parts) > 1 else parts
    return to_title(", ".join(part.replace("_", " ") for part in shown)) or "The question"


def _write_sentence(detail: str) -> Markup:
    """Returns a detail as a sentence, with what it has in backticks as code."""
    text = f"{detail[:1].upper()}{detail[1:]}"
    ended = text if text.endswith((".", "?")) else f"{text}."
    code = Markup("<code>{}</code>")
    parts = (escape_invisible(part) for part in ended.split("`"))
    return Markup("").join(code.format(part) if place % 2 else part for place, part in enumerate(parts))
