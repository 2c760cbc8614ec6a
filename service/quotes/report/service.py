"""Report of a quote: a page without external resources, for phones and print."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from pydantic_core import to_json

from service.formats.providers import get_provider_name
from service.kit.http.html import render_fragment, render_template
from service.kit.reports.numbers import FormattedFigure
from service.kit.reports.shapes import ReportChart, ReportRemarks, ReportSection, select_blocks
from service.quotes.report.card import build_card
from service.quotes.report.headlines import (
    build_headline_rows,
    build_interval_chart,
    format_basis,
    format_total,
)
from service.quotes.report.memory import build_memory_section
from service.quotes.report.money import build_cost_section
from service.quotes.report.names import RowNames
from service.quotes.report.notes import build_notes_section, build_sources_section, list_first_notes
from service.quotes.report.question import build_settings_table, format_subject, get_broadest_question
from service.quotes.report.speed import build_speed_section
from service.quotes.report.utility_bill.bill import build_bill_section
from service.quotes.report.utility_bill.emissions import build_emissions_section
from service.quotes.report.utility_bill.energy import build_energy_section
from service.quotes.schemas import QuoteComparison

__all__ = [
    "ReportDecision",
    "ReportNames",
    "ReportParts",
    "build_card",
    "build_estimate_parts",
    "render_report",
    "render_report_section",
]


class ReportNames(NamedTuple):
    """Names of those whom a quote knows by their ids."""

    asked_by: str
    cost_center: str = ""


class ReportDecision(NamedTuple):
    """A decision about a quote, as its report names it."""

    decision: str
    name: str
    step: str
    decided_at: str


def render_report(
    quote: Mapping[str, Any],
    *,
    changes: QuoteComparison | None = None,
    names: ReportNames | None = None,
    decisions: Sequence[ReportDecision] = (),
) -> str:
    """Returns the report as a page, which begins with the card of the quote. Without names it has ids."""
    found = _as_json(quote)
    report = _render_section(
        "quotes/report/report.html",
        found,
        card=build_card(found, changes),
        names=names or _get_ids(quote),
        decisions=decisions,
    )
    return render_template("quotes/report/page.html", quote=quote, report=report)


def render_report_section(quote: Mapping[str, Any], names: ReportNames | None = None) -> Markup:
    """Returns the report as a part of another page, which has the card and the decisions itself.

    Its headings have levels 2 and 3, and its ids begin with `report-`.
    """
    found = _as_json(quote)
    return _render_section(
        "quotes/report/report.html", found, card=(), names=names or _get_ids(quote), decisions=()
    )


def _get_ids(quote: Mapping[str, Any]) -> ReportNames:
    return ReportNames(quote["created_by"], quote.get("cost_center_id", ""))


class ReportParts(NamedTuple):
    """Parts of a report that another page arranges itself."""

    catalog_revision: int
    method_version: str
    headlines: list[FormattedFigure]
    first_notes: list[ReportRemarks]
    certainty: ReportChart | None
    sections: list[ReportSection]
    basis_text: Callable[[str], str]


def build_estimate_parts(found: Mapping[str, Any]) -> ReportParts:
    """Returns headlines, answers and sources of an estimate, which is given in JSON form."""
    question = get_broadest_question(found["requests"])
    return ReportParts(
        found["catalog_revision"],
        found["method_version"],
        build_headline_rows(found),
        list_first_notes(found, question, format_total(found)),
        build_interval_chart(found["headlines"]),
        [*_build_answer_sections(found["answers"]), *_build_end_sections(found, question)],
        format_basis,
    )


def _as_json(quote: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a quote in JSON form: questions as objects, times as text."""
    read: dict[str, Any] = json.loads(to_json(quote))
    return read


def _render_section(template: str, quote: Mapping[str, Any], **values: Any) -> Markup:  # noqa: ANN401
    question = get_broadest_question(quote["requests"])
    return render_fragment(
        template,
        quote=quote,
        providers=", ".join(map(get_provider_name, quote["providers"])),
        subject=format_subject(question, RowNames(quote["inputs"])),
        headlines=build_headline_rows(quote),
        first_notes=list_first_notes(quote, question, format_total(quote)),
        certainty=build_interval_chart(quote["headlines"]),
        sections=[*_build_answer_sections(quote["answers"]), *_build_end_sections(quote, question)],
        basis_text=format_basis,
        **values,
    )


def _build_answer_sections(answers: Mapping[str, Any]) -> list[ReportSection]:
    """Returns the sections of the answers."""
    found: list[ReportSection] = []
    if "memory" in answers:
        found.append(build_memory_section(answers["memory"]))
    if "throughput" in answers:
        found.append(build_speed_section(answers["throughput"]))
    if "cost" in answers:
        found.append(build_cost_section(answers["cost"], is_alone="utility_bill" not in answers))
    if "utility_bill" in answers:
        bill = answers["utility_bill"]
        found += [build_energy_section(bill), build_bill_section(bill), build_emissions_section(bill)]
    return found


def _build_end_sections(quote: Mapping[str, Any], question: Mapping[str, Any]) -> list[ReportSection]:
    """Returns the sections of warnings, settings and sources."""
    return [
        build_notes_section(quote["warnings"], quote["gaps"]),
        ReportSection("asked", "Settings of the question", "", select_blocks(build_settings_table(question))),
        build_sources_section(quote["inputs"]),
    ]
