"""The report of a quote: a page that stands alone, reads on a phone and prints."""

import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from pydantic_core import to_json

from service.kit.http.html import fragment, render
from service.quotes.report.asked import asked_table, question_of, subject_of
from service.quotes.report.headlines import basis_text, certainty, headline_rows, total_text
from service.quotes.report.memory import memory_section
from service.quotes.report.money import cost_section
from service.quotes.report.notes import first_notes, notes_section, sources_section
from service.quotes.report.shapes import Section, shown_blocks
from service.quotes.report.speed import speed_section
from service.quotes.report.utility_bill.bill import bill_section
from service.quotes.report.utility_bill.emissions import emissions_section
from service.quotes.report.utility_bill.energy import energy_section

__all__ = ["estimate_section", "report_html", "report_section"]


def report_html(quote: Mapping[str, Any]) -> str:
    """The report as a page."""
    return render("quotes/report/page.html", quote=quote, report=report_section(quote))


def report_section(quote: Mapping[str, Any]) -> Markup:
    """The report as a part of another page: headings of level 2 and 3, ids that begin with `report-`."""
    return _shown("quotes/report/report.html", quote)


def estimate_section(found: Mapping[str, Any]) -> Markup:
    """The same of what is no quote: headlines, answers and what they rest on, without name and validity."""
    return _shown("quotes/report/estimate.html", found)


def _shown(template: str, given: Mapping[str, Any]) -> Markup:
    # As the document says it: questions as objects, times as text.
    quote = json.loads(to_json(given))
    question = question_of(quote["requests"])
    return fragment(
        template,
        quote=quote,
        subject=subject_of(question),
        headlines=headline_rows(quote),
        first_notes=first_notes(quote, question, total_text(quote)),
        certainty=certainty(quote["headlines"]),
        sections=[*_answers(quote["answers"]), *_ends(quote, question)],
        basis_text=basis_text,
    )


def _answers(answers: Mapping[str, Any]) -> list[Section]:
    """Sections of each answer that there is."""
    found: list[Section] = []
    if "memory" in answers:
        found.append(memory_section(answers["memory"]))
    if "throughput" in answers:
        found.append(speed_section(answers["throughput"]))
    if "cost" in answers:
        found.append(cost_section(answers["cost"], is_alone="utility_bill" not in answers))
    if "utility_bill" in answers:
        bill = answers["utility_bill"]
        found += [energy_section(bill), bill_section(bill), emissions_section(bill)]
    return found


def _ends(quote: Mapping[str, Any], question: Mapping[str, Any]) -> list[Section]:
    """What the answers rest on."""
    return [
        notes_section(quote["warnings"], quote["gaps"]),
        Section("asked", "What was asked", "", shown_blocks(asked_table(question))),
        sources_section(quote["inputs"]),
    ]
