"""The part of a page that shows how an answer changes, with a bounded number of estimates."""

import time
from contextlib import suppress
from functools import partial
from typing import Final

from service.kit.http.html import Form
from service.kit.http.problems import Problem
from service.kit.reports.shapes import ReportChart, ReportRemarks, ReportSection, select_blocks
from service.quotes.form.answers import FormRefusal, answer_typed
from service.quotes.form.changes.load import build_load_charts
from service.quotes.form.changes.scale import build_scale_charts
from service.quotes.form.changes.sensitivity import build_sensitivity_charts
from service.quotes.form.changes.variants import OUT_OF_TIME, AnsweredCurve, Answers, WorkTime, ask_estimate
from service.quotes.form.question import TypedForm, parse_question
from service.quotes.report.utility_bill.load_profile import build_power_picture
from service.quotes.snapshot import QUESTIONS
from service.resolve.catalog import CatalogView
from service.resolve.configuration import share_searches
from service.resolve.form_fields import TRAINING

CURVE_SECONDS: Final = 2.5
TORNADO_SECONDS: Final = 3.5
"""Times by which questions of a curve, and after it of tornadoes, should end; requests end after five."""
TITLE: Final = "How it changes"
_LEAD: Final = "Every point and bar is an answer of the same estimates to the question with one change."


def answer_changes(form: Form, catalog: CatalogView) -> ReportSection | FormRefusal:
    """Returns charts of the answer to a form under changes, or the reasons why it has no answer."""
    typed = parse_question(form, catalog)
    return answer_typed(typed, partial(_build_section, form, typed, catalog))


@share_searches()
def _build_section(form: Form, typed: TypedForm, catalog: CatalogView) -> ReportSection:
    began = time.monotonic()
    answers = _answer_question(typed, catalog)
    # The time so far, and that of a last question, which takes about as long.
    spent = 2 * (time.monotonic() - began)
    curve_time, tornado_time = WorkTime(CURVE_SECONDS - spent), WorkTime(TORNADO_SECONDS - spent)
    curve: AnsweredCurve | None = None
    charts: list[ReportChart] = []
    if "throughput" in answers:
        if typed.question["workload"]["kind"] == TRAINING:
            charts, curve = build_scale_charts(form, typed.name, catalog, curve_time)
        else:
            charts, curve = build_load_charts(form, typed.question, answers, catalog, curve_time)
    charts += _build_time_charts(answers)
    moved = build_sensitivity_charts(typed.question, answers, catalog, tornado_time)
    refusals = [] if curve is None else list(curve.refusals)
    if not moved and tornado_time.is_over():
        refusals.append(f"What moves the answer most: {OUT_OF_TIME}.")
    remarks = ReportRemarks("Left out", refusals)
    return ReportSection("changes", TITLE, _LEAD, select_blocks(*charts, *moved, remarks))


def _answer_question(typed: TypedForm, catalog: CatalogView) -> Answers:
    """Answers a question and the narrower ones in it, of which those without an answer are left out."""
    question = {**typed.question, "load_profile": {"include_intervals": True}}
    answers = {typed.name: ask_estimate(typed.name, question, catalog)}
    for name in list(QUESTIONS)[list(QUESTIONS).index(typed.name) + 1 :]:
        with suppress(Problem):
            answers[name] = ask_estimate(name, typed.question, catalog)
    return answers


def _build_time_charts(answers: Answers) -> list[ReportChart]:
    """Returns the power at the meter over the time of a run that has a start, as its tariff is billed."""
    profile = answers.get("utility_bill", {}).get("energy", {}).get("load_profile")
    chart = profile and build_power_picture(profile)
    return [chart] if chart else []
