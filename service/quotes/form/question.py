"""From what is typed into the form to a question of the API, as that takes it."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from service.kit.http.html import Form
from service.kit.http.problems import Problem
from service.planning.errors import PlanningError
from service.planning.tariff.allocation import local_midnight
from service.quotes.form.fields import (
    ASKED,
    CURRENCY,
    FIELDS,
    GROUPS,
    PLACES,
    QUESTION,
    SERVING,
    TRAINING,
    WORKLOAD,
    Field,
    Group,
    is_asked_by,
    is_needed_by,
)
from service.resolve.catalog import CatalogView

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_CURRENCY = re.compile("[A-Z]{3}")
_START = re.compile(r"2[01][0-9]{2}-[0-9]{2}(-[0-9]{2})?")
_IN_PLACE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("config", "parameters_billions"),
    "parameters_billions": ("config",),
    "price_per_device_hour": ("offer",),
    "price_per_kwh": ("tariff",),
}
"""Fields that give way to others."""


class Typed(NamedTuple):
    """What a form says."""

    name: str
    """Which question is asked."""
    question: dict[str, Any]
    """That question, as the API takes it."""
    wrong: dict[str, str]
    """What is wrong with which field; nothing that was typed is repeated."""
    unused: dict[str, str]
    """Fields that are filled in and do not enter the question, and why."""

    @property
    def places(self) -> dict[str, str]:
        """The field behind each place of the question, none that gave way to another."""
        return {pointer: self._taken_by(name) for pointer, name in PLACES.items()}

    def _taken_by(self, name: str) -> str:
        if name not in self.unused:
            return name
        said = self.unused[name]
        return next((other for other in _IN_PLACE_OF.get(name, ()) if said == _taken_by(other)), name)


def _taken_by(other: str) -> str:
    return f"“{FIELDS[other].label}” takes its place"


class _Wrong(Exception):
    """What is wrong with a field."""


def question_from(form: Form, catalog: CatalogView) -> Typed:
    """The question that is typed."""
    names = dict(ASKED)
    name = form.get(QUESTION, "")
    wrong = {} if name in names else {QUESTION: "choose what is to be answered"}
    reading = _Reading(form, catalog, name if name in names else ASKED[0][0], wrong)
    return Typed(reading.name, reading.question(), wrong, reading.unused)


class _Reading:
    """A form being read."""

    def __init__(self, form: Form, catalog: CatalogView, name: str, wrong: dict[str, str]) -> None:
        self._form = form
        self._catalog = catalog
        self.name = name
        self._wrong = wrong
        self.unused: dict[str, str] = {}

    def _text(self, name: str) -> str:
        return self._form.get(name, "").strip()

    def question(self) -> dict[str, Any]:
        """The question, without what is wrong."""
        kind = self._text(WORKLOAD)
        if kind not in (TRAINING, SERVING):
            self._wrong[WORKLOAD] = "say what the devices are to do"
        question: dict[str, Any] = {}
        for group in GROUPS:
            for field in group.fields:
                self._put(question, group, field)
        if not any(self._text(name) for name in ("model", *_IN_PLACE_OF["model"])):
            self._wrong["model"] = "choose a model, give its number of parameters, or paste its config.json"
        return _with_sources(question, kind)

    def _put(self, question: dict[str, Any], group: Group, field: Field) -> None:
        """Put what is typed in a field into its place, or say why it has none."""
        text = self._text(field.name)
        reason = self._no_use(group, field)
        if reason:
            if text:
                self.unused[field.name] = reason
            return
        if not text and not is_needed_by(field, self.name):
            return
        try:
            value = self._value(field, text)
        except _Wrong as found:
            self._wrong[field.name] = str(found)
            return
        if field.pointer:
            *path, last = field.pointer[1:].split("/")
            place = question
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value

    def _no_use(self, group: Group, field: Field) -> str:
        """Why a field does not enter the question; empty if it does."""
        if not is_asked_by(field, self.name) or (group.of in FIELDS and not self._asks(group.of)):
            return "the question that is chosen does not depend on it"
        chosen = self._text(group.of) if group.of else ""
        if group.of and chosen not in group.when:
            return f"it belongs to “{group.title}”"
        for other in _IN_PLACE_OF.get(field.name, ()):
            if self._text(other):
                return _taken_by(other)
        if field.name == "accelerator_count" and not self._text("accelerator") and self.name == "memory":
            return "no accelerator is chosen"
        if field.name == "time_zone" and not (self._text("starts_on") or self._has_tariff()):
            return "it counts with a tariff or a start only"
        return ""

    def _asks(self, name: str) -> bool:
        return is_asked_by(FIELDS[name], self.name)

    def _has_tariff(self) -> bool:
        site = self._catalog.sites.get(self._text("site"))
        return bool(self._text("tariff")) or (site is not None and site.tariff_id is not None)

    def _value(self, field: Field, text: str) -> object:
        """What is typed as the question takes it."""
        if not text:
            raise _Wrong("is needed")
        readers: Mapping[str, Callable[[str], object]] = {
            "choice": partial(_chosen, field),
            "config": _config,
            "start": self._start,
            "money": self._money,
            "code": lambda code: self._currency() if field.name == CURRENCY else code,
        }
        return readers.get(field.kind, partial(_number, field))(text)

    def _money(self, text: str) -> dict[str, str]:
        if not self._text(CURRENCY):
            self._wrong[CURRENCY] = "is needed with a price"
        return {"amount": _checked(text), "currency_code": self._text(CURRENCY).upper()}

    def _currency(self) -> str:
        code = self._text(CURRENCY).upper()
        if not _CURRENCY.fullmatch(code):
            raise _Wrong("must be a code of three letters, such as EUR")
        return code

    def _start(self, text: str) -> str:
        """Midnight of the site's clock: begun elsewhere, a run would touch the billing month before."""
        try:
            day = date.fromisoformat(text if len(text) > len("2027-01") else f"{text}-01")
        except ValueError:
            day = None
        if day is None or not _START.fullmatch(text):
            raise _Wrong("must be a day such as 2027-01-25 or a month such as 2027-01")
        site = self._catalog.sites.get(self._text("site"))
        zone = self._text("time_zone") or (site.time_zone if site else None) or "UTC"
        try:
            return f"{local_midnight(day, zone):%Y-%m-%dT%H:%M:%SZ}"
        except PlanningError:
            self._wrong["time_zone"] = "is no time zone such as Europe/Berlin"
            return ""


def _with_sources(question: dict[str, Any], kind: str) -> dict[str, Any]:
    """The question with its discriminators."""
    if "model" in question:
        by = {"id": "catalog", "config": "huggingface_config", "parameter_count": "parameter_count"}
        (member,) = question["model"]
        question["model"] = {"source": by[member], **question["model"]}
    if "accelerator" in question.get("cluster", {}):
        accelerator = question["cluster"]["accelerator"]
        question["cluster"]["accelerator"] = {"source": "catalog", **accelerator}
    if "efficiency" in question:
        question["efficiency"] = {"source": "assumed", **question["efficiency"]}
    return {**question, "workload": {"kind": kind, **question.get("workload", {})}}


def _chosen(field: Field, text: str) -> str:
    if field.options and text not in dict(field.options):
        raise _Wrong("choose one of the list")
    return text


def _number(field: Field, text: str) -> float | int:
    number = Decimal(_checked(text)) * field.times
    if field.kind == "number":
        return float(number)
    if number != int(number):
        raise _Wrong("must be a whole number")
    return int(number)


def _checked(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise _Wrong("must be a number such as 1500 or 0.12, without separators")
    return text


def _config(text: str) -> dict[str, Any]:
    """The config.json that is pasted, read as a body of the API is."""
    try:
        config = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _Wrong(f"is not JSON: {error}") from None
    if not isinstance(config, dict) or not config:
        raise _Wrong('must be an object, such as {"model_type": "llama", ...}')
    return config


def in_own_units(problem: Problem) -> Problem:
    """A problem whose limits are in units of the question: of fields in other units, without the limit."""
    times = {field.pointer: field.times for field in FIELDS.values()}
    errors = [
        error._replace(detail="is too small or too large") if times.get(error.pointer, 1) != 1 else error
        for error in problem.errors
    ]
    return type(problem)(problem.detail, *errors)
