"""Conversion of form fields into a question of the API."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import to_json

from service.kit.http.html import Form
from service.planning.errors import PlanningError
from service.planning.tariff.calendar import compute_local_midnight
from service.quotes.form.fields import (
    ASKED,
    BOTH,
    FIELDS,
    GROUPS,
    PLACES,
    QUESTION,
    RENTED,
    SUPPLY,
    is_relevant_to,
    is_required_by,
)
from service.resolve.catalog import CatalogView, KnownAccelerator
from service.resolve.form_fields import CURRENCY, SERVING, TRAINING, WORKLOAD, FieldGroup, FormField
from service.resolve.forms import (
    FieldFault,
    check_number,
    check_option,
    find_row_id,
    parse_config,
    parse_number,
)
from service.resolve.summary import find_cheapest_offer
from service.schemas.estimates import ThroughputEstimateRequest

_CURRENCY = re.compile("[A-Z]{3}")
_START = re.compile(r"2[01][0-9]{2}-[0-9]{2}(-[0-9]{2})?")
_IN_PLACE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("config", "parameters_billions"),
    "parameters_billions": ("config",),
    "price_per_device_hour": ("offer",),
    "price_per_kwh": ("tariff",),
    "concurrency": ("requests_per_second",),
    "weight_precision": ("weight_format",),
}
"""Fields that other fields replace."""


class TypedForm(NamedTuple):
    """Content of a form."""

    name: str
    """Name of the question."""
    question: dict[str, Any]
    """The question as a request of the API."""
    wrong: dict[str, str]
    """Error texts by field. They never repeat the input."""
    unused: dict[str, str]
    """Reasons why filled fields are not used, by field."""
    chosen_offer: str = ""
    """Id of the offer that is rented because the form names neither an offer nor a price."""

    @property
    def places(self) -> dict[str, str]:
        """The field for each place of the question, or the field that replaces it."""
        return {pointer: self._find_taker(name) for pointer, name in PLACES.items()}

    def _find_taker(self, name: str) -> str:
        if name not in self.unused:
            return name
        said = self.unused[name]
        return next((other for other in _IN_PLACE_OF.get(name, ()) if said == _explain_taken(other)), name)


def _explain_taken(other: str) -> str:
    return f"“{FIELDS[other].label}” replaces it"


def parse_question(form: Form, catalog: CatalogView) -> TypedForm:
    """Returns the question of a form."""
    names = dict(ASKED)
    name = form.get(QUESTION, "")
    wrong = {} if name in names else {QUESTION: "choose a question"}
    reading = _FormReader(form, catalog, name if name in names else ASKED[0][0], wrong)
    question = reading.build_question()
    return TypedForm(reading.name, question, wrong, reading.unused, reading.chosen_offer)


class _FormReader:
    """Reader of one form."""

    def __init__(self, form: Form, catalog: CatalogView, name: str, wrong: dict[str, str]) -> None:
        self._form = form
        self._catalog = catalog
        self.name = name
        self._wrong = wrong
        self.unused: dict[str, str] = {}
        self.chosen_offer = ""

    def _get_text(self, name: str) -> str:
        return self._form.get(name, "").strip()

    def build_question(self) -> dict[str, Any]:
        """Returns the question without its erroneous fields."""
        kind = self._get_text(WORKLOAD)
        if kind not in (TRAINING, SERVING):
            self._wrong[WORKLOAD] = "choose a workload"
        question: dict[str, Any] = {}
        for group in GROUPS:
            for field in group.fields:
                self._put_value(question, group, field)
        if not any(self._get_text(name) for name in ("model", *_IN_PLACE_OF["model"])):
            self._wrong["model"] = "choose a model, give its number of parameters, or paste its config.json"
        question = _add_sources(question, kind)
        self._complete_hardware(question)
        return question

    def _complete_hardware(self, question: dict[str, Any]) -> None:
        """Counts the accelerators of instances, and rents the cheapest offer where the form has no price."""
        cluster = question.get("cluster", {})
        known = self._catalog.accelerators.get(cluster.get("accelerator", {}).get("id", ""))
        if known is None or "accelerator_count" not in cluster:
            return
        cluster["accelerator_count"] *= known.named_count
        is_rented = self._get_text(SUPPLY) in (RENTED, BOTH) and self._is_relevant(SUPPLY)
        if is_rented and "rental" not in question and not self._wrong:
            offer_id = self._find_offer(known, question)
            if offer_id is not None:
                self.chosen_offer = offer_id
                question["rental"] = {"offer_id": offer_id}

    def _find_offer(self, known: KnownAccelerator, question: dict[str, Any]) -> str | None:
        """Returns the id of the cheapest offer for the run of a question; None for a run that is refused."""
        members = {
            name: question[name] for name in ThroughputEstimateRequest.model_fields if name in question
        }
        try:
            run = ThroughputEstimateRequest.model_validate_json(to_json(members))
        except ValidationError:
            return None
        return find_cheapest_offer(known, run, self._catalog)

    def _put_value(self, question: dict[str, Any], group: FieldGroup, field: FormField) -> None:
        """Puts the value of a field into the question, or records the reason why it is not used."""
        text = self._get_text(field.name)
        reason = self._explain_unused(group, field)
        if reason:
            if text:
                self.unused[field.name] = reason
            return
        if not text and not is_required_by(field, self.name):
            return
        try:
            value = self._parse_value(field, text)
        except FieldFault as found:
            self._wrong[field.name] = str(found)
            return
        if field.pointer:
            *path, last = field.pointer[1:].split("/")
            place = question
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value

    def _explain_unused(self, group: FieldGroup, field: FormField) -> str:
        """Returns the reason why a field is not used, or an empty string."""
        if not is_relevant_to(field, self.name) or (group.of in FIELDS and not self._is_relevant(group.of)):
            return "the chosen question does not depend on it"
        chosen = self._get_text(group.of) if group.of else ""
        if group.of and chosen not in group.when:
            return f"it belongs to “{group.title}”"
        for other in _IN_PLACE_OF.get(field.name, ()):
            if self._get_text(other):
                return _explain_taken(other)
        if field.name == "accelerator_count" and not self._get_text("accelerator") and self.name == "memory":
            return "no accelerator is chosen"
        if field.name == "time_zone" and not (self._get_text("starts_on") or self._has_tariff()):
            return "it only applies with a tariff or a start"
        return ""

    def _is_relevant(self, name: str) -> bool:
        return is_relevant_to(FIELDS[name], self.name)

    def _has_tariff(self) -> bool:
        site = self._catalog.sites.get(self._get_text("site"))
        return bool(self._get_text("tariff")) or (site is not None and site.tariff_id is not None)

    def _parse_value(self, field: FormField, text: str) -> object:
        """Returns the text of a field as a value of the question."""
        if not text:
            raise FieldFault("is needed")
        readers: Mapping[str, Callable[[str], object]] = {
            "choice": partial(check_option, field),
            "name": lambda name: find_row_id(self._catalog, field, name),
            "config": parse_config,
            "start": self._parse_start,
            "money": self._parse_money,
            "code": lambda code: self._parse_currency() if field.name == CURRENCY else code,
        }
        return readers.get(field.kind, partial(parse_number, field))(text)

    def _parse_money(self, text: str) -> dict[str, str]:
        if not self._get_text(CURRENCY):
            self._wrong[CURRENCY] = "is needed with a price"
        return {"amount": check_number(text), "currency_code": self._get_text(CURRENCY).upper()}

    def _parse_currency(self) -> str:
        code = self._get_text(CURRENCY).upper()
        if not _CURRENCY.fullmatch(code):
            raise FieldFault("must be a code of three letters, such as EUR")
        return code

    def _parse_start(self, text: str) -> str:
        """Returns midnight on the site's clock. Another start could fall into the previous billing month."""
        try:
            day = date.fromisoformat(text if len(text) > len("2027-01") else f"{text}-01")
        except ValueError:
            day = None
        if day is None or not _START.fullmatch(text):
            raise FieldFault("must be a day such as 2027-01-25 or a month such as 2027-01")
        site = self._catalog.sites.get(self._get_text("site"))
        zone = self._get_text("time_zone") or (site.time_zone if site else None) or "UTC"
        try:
            return f"{compute_local_midnight(day, zone):%Y-%m-%dT%H:%M:%SZ}"
        except PlanningError:
            self._wrong["time_zone"] = "must be a time zone such as Europe/Berlin"
            return ""


def _add_sources(question: dict[str, Any], kind: str) -> dict[str, Any]:
    """Returns the question with its discriminators."""
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
