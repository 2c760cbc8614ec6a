"""Report of a quote: a page without external resources, for phones and print."""

import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from pydantic_core import to_json

from service.kit.http.html import render_fragment, render_template
from service.quotes.report.headlines import (
    build_headline_rows,
    build_interval_chart,
    format_basis,
    format_total,
)
from service.quotes.report.memory import build_memory_section
from service.quotes.report.money import build_cost_section
from service.quotes.report.notes import build_notes_section, build_sources_section, list_first_notes
from service.quotes.report.question import build_settings_table, format_subject, get_broadest_question
from service.quotes.report.shapes import ReportSection, select_blocks
from service.quotes.report.speed import build_speed_section
from service.quotes.report.utility_bill.bill import build_bill_section
from service.quotes.report.utility_bill.emissions import build_emissions_section
from service.quotes.report.utility_bill.energy import build_energy_section

__all__ = ["render_estimate_section", "render_report", "render_report_section"]


def render_report(quote: Mapping[str, Any]) -> str:
    """Returns the report as a page."""
    return render_template("quotes/report/page.html", quote=quote, report=render_report_section(quote))


def render_report_section(quote: Mapping[str, Any]) -> Markup:
    """Returns the report as a part of another page.

    Its headings have levels 2 and 3, and its ids begin with `report-`.
    """
    return _render_template("quotes/report/report.html", quote)


def render_estimate_section(found: Mapping[str, Any]) -> Markup:
    """Returns headlines, answers and sources of an estimate without name and validity of a quote."""
    return _render_template("quotes/report/estimate.html", found)


def _render_template(template: str, given: Mapping[str, Any]) -> Markup:
    # In JSON form: questions as objects, times as text.
    quote = json.loads(to_json(given))
    question = get_broadest_question(quote["requests"])
    return render_fragment(
        template,
        quote=quote,
        subject=format_subject(question),
        headlines=build_headline_rows(quote),
        first_notes=list_first_notes(quote, question, format_total(quote)),
        certainty=build_interval_chart(quote["headlines"]),
        sections=[*_build_answer_sections(quote["answers"]), *_build_end_sections(quote, question)],
        basis_text=format_basis,
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
