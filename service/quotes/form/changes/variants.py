"""Questions that differ from that of a form in one place, answered by the estimates of the API."""

import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import to_json

from service.estimates.service import ESTIMATES, answer_question
from service.kit.http.cancellation import check_cancelled
from service.kit.http.html import Form
from service.kit.http.problems import Problem
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem
from service.kit.reports.numbers import format_number
from service.quotes.form.fields import FIELDS
from service.quotes.form.question import parse_question
from service.quotes.snapshot import QUESTIONS
from service.resolve.catalog import CatalogView

MOST_POINTS: Final = 7
"""Most points of a curve, each of which asks one or two estimates."""
MOST_HALVES: Final = 3
"""Most points of a curve below the value that was asked."""

OUT_OF_TIME: Final = "the estimates take too long"
"""Reason of what is left out so that the rest comes in time."""

Answers = Mapping[str, Mapping[str, Any]]
"""Answers by the name of the estimate."""


class CurvePoint(NamedTuple):
    """An answer with another value in one field of the form."""

    value: float
    devices: int
    answers: Answers


class AnsweredCurve(NamedTuple):
    """Points by their values, the value that was asked, and reasons of the values without an answer."""

    asked: float
    points: Sequence[CurvePoint]
    refusals: Sequence[str]


class VariedField(NamedTuple):
    """A field of the form that is varied, and what its number counts."""

    name: str
    noun: str


class WorkTime:
    """Time in which questions may be begun, so that charts come before their request is given up."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def is_over(self) -> bool:
        """Returns true if no further question may begin."""
        return time.monotonic() >= self._ends_at


def ask_estimate(name: str, question: Mapping[str, Any], catalog: CatalogView) -> Mapping[str, Any]:
    """Returns the answer of an estimate to those members of a question that it takes.

    Raises a problem if there is none. Advice is left out, which takes most of the time of a speed.
    """
    check_cancelled()
    given = {member: value for member, value in question.items() if member in QUESTIONS[name].model_fields}
    if name == "throughput":
        given["explain"] = False
    raw = to_json(given)
    try:
        request = QUESTIONS[name].model_validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(QUESTIONS[name])) from None
    answer: Mapping[str, Any] = answer_question(ESTIMATES[name.replace("_", "-")].estimator, request, catalog)
    return answer


def explain_refusal(problem: Problem) -> str:
    """Returns the first reason of a problem."""
    return (problem.errors[0].detail if problem.errors else problem.title).removesuffix(".")


def answer_curve(
    form: Form, axis: VariedField, names: Sequence[str], catalog: CatalogView, left: WorkTime
) -> AnsweredCurve | None:
    """Answers a form with halves and doubles of the number in a field; None if the field has no number.

    Values are asked outwards from that of the form, as long as there is time.
    """
    field = FIELDS[axis.name]
    asked = _read_number(form.get(field.name, ""))
    if asked is None:
        return None
    points: list[CurvePoint] = []
    refusals: list[tuple[Decimal, str]] = []
    for value in _list_doublings(asked, is_whole=field.kind == "whole"):
        told = f"{format_number(float(value))} {axis.noun}"
        if left.is_over():
            refusals.append((value, f"{told}: {OUT_OF_TIME}."))
            continue
        typed = parse_question({**form, field.name: f"{value:f}"}, catalog)
        try:
            answers = {name: ask_estimate(name, typed.question, catalog) for name in names}
        except Problem as problem:
            refusals.append((value, f"{told}: {explain_refusal(problem)}."))
        else:
            devices = typed.question.get("cluster", {}).get("accelerator_count", 1)
            points.append(CurvePoint(float(value), devices, answers))
    points.sort(key=lambda point: point.value)
    return AnsweredCurve(float(asked), points, [text for _, text in sorted(refusals)])


def _read_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and number > 0 else None


def _list_doublings(asked: Decimal, *, is_whole: bool) -> list[Decimal]:
    """Returns a value with its halves and doubles, the nearest first, up to the most points of a curve."""
    halves = [asked / (1 << power) for power in range(1, MOST_HALVES + 1)]
    halves = [half for half in halves if not is_whole or half == int(half)]
    doubles = [asked * (1 << power) for power in range(1, MOST_POINTS - len(halves))]
    return sorted([asked, *halves, *doubles], key=lambda value: abs((value / asked).ln()))


def list_quantities(curve: AnsweredCurve, estimate: str, member: str) -> Iterator[tuple[CurvePoint, Any]]:
    """Yields the points that have a figure, with it."""
    for point in curve.points:
        if member in point.answers.get(estimate, {}):
            yield point, point.answers[estimate][member]
