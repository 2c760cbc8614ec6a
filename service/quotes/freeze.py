"""What a quote freezes: its question and those within it, answered under one view of the catalog."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import MISSING, ValidationError
from pydantic_core import to_jsonable_python

from service.estimates.service import (
    ESTIMATES,
    NoSoundAnswer,
    Payable,
    answer,
    charges_paid,
    total_paid,
)
from service.kit.http.problems import FieldError, Unprocessable
from service.kit.http.web import body_errors
from service.planning import METHOD_VERSION
from service.planning.cost.focus import Charge
from service.planning.cost.prices import last_day
from service.planning.notes import Notes
from service.planning.quantity import Quantity, scaled
from service.planning.units import HOUR_SECONDS
from service.quotes.errors import RequestOutdated
from service.quotes.schemas import QuotedCandidate, QuotedOperation, QuoteHeadlines
from service.resolve.catalog import CatalogView
from service.schemas.answer import FigureError, quantity
from service.schemas.base import AnswerWarning, Gap, Input, MoneyQuantity, Source
from service.schemas.bill_answers import UtilityBillAnswer
from service.schemas.cost_answers import CostAnswer
from service.schemas.estimates import (
    CostQuestion,
    MemoryQuestion,
    ThroughputQuestion,
    UtilityBillQuestion,
)

RowsOf = Callable[[Sequence[Source]], Sequence[Mapping[str, Any]]]
"""Gives the catalog rows that sources name."""

QUESTIONS: Final[Mapping[str, type[Input]]] = {
    "utility_bill": UtilityBillQuestion,
    "cost": CostQuestion,
    "throughput": ThroughputQuestion,
    "memory": MemoryQuestion,
}
"""By the names that a quote gives them, the broadest first: each asks for all that the next one does."""


class Asked(NamedTuple):
    """What is to be quoted; requests by name, those within the one that is asked for included."""

    operation: QuotedOperation
    name: str
    requests: Mapping[str, Input]
    owns_devices: bool
    """Whether the electricity of the run is paid beside its devices."""
    cost_center_id: str | None = None
    note: str | None = None
    plan: QuotedCandidate | None = None
    planned: Mapping[str, Any] | None = None
    """The row of the plan, as the plan shows it."""
    refused_at: str | None = ""
    """Where the caller said what is asked for; None where it did so for an earlier version."""
    version: int | None = None
    """That earlier version: what is frozen follows it and no other."""


class Frozen(NamedTuple):
    """All of a quote but its version and validity."""

    asked: Asked
    catalog_revision: int
    method_version: str
    summary: dict[str, Any]
    """What lists show."""
    document: dict[str, Any]
    """All else that is shown."""
    charges: Sequence[Charge] | None
    """What accountants read; None where a gap says why there is nothing."""
    prices_end_at: datetime | None
    """When the first of its prices ends."""


def projected(name: str, question: Input) -> dict[str, Input]:
    """A question of this name and those that it contains, the broadest first."""
    names = list(QUESTIONS)
    within = names[names.index(name) + 1 :]
    return {name: question} | {each: _projection(QUESTIONS[each], question) for each in within}


def _projection(narrow: type[Input], question: Input) -> Input:
    """The members of a broader question that a narrower one has too, those that were said."""
    said = {
        each: getattr(question, each) for each in narrow.model_fields if each in question.model_fields_set
    }
    return narrow.model_construct(**said)


def owns_devices(question: Input) -> bool:
    """Whether a question of cost says that its devices are bought and not rented."""
    if not isinstance(question, CostQuestion):
        return False
    return question.rental is MISSING and question.purchase is not MISSING


def freeze(asked: Asked, catalog: CatalogView, rows_of: RowsOf) -> Frozen:
    """Answer everything that is asked; what one of the questions within lacks is a gap."""
    found = _Freezing(asked, catalog)
    found.answer_all()
    headlines = found.headlines()
    charges = found.focus_charges()
    sources = found.sources()
    rows = zip(sources, rows_of(sources), strict=True)
    document: dict[str, Any] = {
        "owns_devices": asked.owns_devices,
        "requests": {name: asked.requests[name].model_dump(mode="json") for name in found.in_order()},
        "answers": {name: found.answers[name] for name in found.in_order() if name in found.answers},
        "inputs": [{**source, "row": to_jsonable_python(row)} for source, row in rows],
        "warnings": found.warnings,
        "gaps": found.gaps,
    }
    if asked.note is not None:
        document["note"] = asked.note
    if asked.plan is not None:
        document["plan"] = asked.plan
    summary = {"headlines": headlines, **found.devices(), "providers": found.providers()}
    start = getattr(found.broadest, "starts_at", MISSING)
    if start is not MISSING:
        summary["starts_at"] = f"{start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Frozen(asked, catalog.revision, METHOD_VERSION, summary, document, charges, found.prices_end_at())


class _Freezing:
    """A quote in the making."""

    def __init__(self, asked: Asked, catalog: CatalogView) -> None:
        self.asked = asked
        self.catalog = catalog
        self.answers: dict[str, Any] = {}
        self.warnings: list[AnswerWarning] = []
        self.gaps: list[Gap] = []
        self.exchange = Notes()
        """What the total says of exchange rates."""

    def in_order(self) -> Iterator[str]:
        """Names of the requests, the narrowest first."""
        return (name for name in reversed(list(QUESTIONS)) if name in self.asked.requests)

    @property
    def broadest(self) -> Input:
        """The request that contains the others."""
        return next(self.asked.requests[name] for name in QUESTIONS if name in self.asked.requests)

    def answer_all(self) -> None:
        """Answer every request; refuses what has no answer of what was asked for by itself."""
        for place, (name, request) in enumerate(self.asked.requests.items()):
            estimator = ESTIMATES[name.replace("_", "-")].estimator
            try:
                self.answers[name] = answer(estimator, request, self.catalog)
            except NoSoundAnswer as refused:
                if place == 0 or self.asked.plan is not None:
                    raise self._refused(refused, name) from refused
                for error in refused.errors:
                    self._gap(f"/answers/{name}", error.code, error.detail)
            else:
                self._take(name)

    def _refused(self, refused: NoSoundAnswer, name: str) -> Unprocessable:
        at = self.asked.refused_at
        if at is None:
            return NoSoundAnswer("", *(each._replace(pointer="") for each in refused.errors))
        if self.asked.plan is not None:
            detail = f"{name.replace('_', ' ')}: {refused.errors[0].detail}"
            return NoSoundAnswer("", FieldError(at, refused.errors[0].code, detail))
        return NoSoundAnswer("", *(each._replace(pointer=at + each.pointer) for each in refused.errors))

    def _take(self, name: str) -> None:
        """Say once what an answer says of its request, and of the figures that it lacks."""
        said = {(note["code"], note["detail"], _within(note["pointer"])) for note in self.warnings}
        for note in self.answers[name]["warnings"]:
            if (note["code"], note["detail"], note["pointer"]) not in said:
                self._warn(note["code"], f"/requests/{name}{note['pointer']}", note["detail"])
        known = {(gap["code"], gap["detail"], _within(gap["pointer"])) for gap in self.gaps}
        for gap in self.answers[name]["gaps"]:
            if (gap["code"], gap["detail"], gap["pointer"]) not in known:
                self._gap(f"/answers/{name}{gap['pointer']}", gap["code"], gap["detail"])

    def _gap(self, pointer: str, code: str, detail: str) -> None:
        self.gaps.append({"pointer": pointer, "code": code, "detail": detail})

    def _warn(self, code: str, pointer: str, detail: str) -> None:
        self.warnings.append({"code": code, "pointer": pointer, "detail": detail})

    def headlines(self) -> QuoteHeadlines:
        """What is decided about."""
        found: dict[str, Any] = {}
        total = self._total()
        if total is not None:
            found["total"] = total
        found |= self._times()
        memory, bill = self.answers.get("memory", {}), self.answers.get("utility_bill", {})
        places: tuple[tuple[str, Mapping[str, Any]], ...] = (
            ("total_bytes", memory.get("per_device", {})),
            ("fits", memory),
            ("facility_kwh", bill.get("energy", {})),
            ("peak_kw", bill.get("energy", {})),
            ("location_based_kg_co2e", bill.get("carbon", {})),
            ("water_liters", bill),
        )
        found |= {name: part[name] for name, part in places if name in part}
        headlines: QuoteHeadlines = found  # type: ignore[assignment]
        return headlines

    def _times(self) -> dict[str, Any]:
        """How long the run lasts, the interruptions of spot devices counted."""
        cost = self.answers.get("cost", {})
        duration = cost.get("rent", {}).get("interruptions", {}).get("duration_seconds")
        for name in ("cost", "utility_bill", "throughput"):
            duration = duration or self.answers.get(name, {}).get("duration_seconds")
        if duration is None:
            return {}
        devices: int = self.broadest.cluster.accelerator_count  # type: ignore[attr-defined]
        found = {"duration_seconds": duration}
        try:
            found["device_hours"] = quantity(scaled(Quantity(**duration), devices / HOUR_SECONDS))
        except FigureError:
            self._gap("/headlines/device_hours", "OUT_OF_RANGE", "the figure is too large to compute with")
        return found

    def _payable(self) -> Payable | None:
        """The questions of what is paid; None where a part of it is not asked for."""
        cost, bill = self.asked.requests.get("cost"), self.asked.requests.get("utility_bill")
        cost = cost if isinstance(cost, CostQuestion) else None
        if not self.asked.owns_devices:
            return None if cost is None else Payable(cost, None)
        if not isinstance(bill, UtilityBillQuestion):
            return None if self.asked.plan is not None or cost is None else Payable(cost, None)
        return Payable(cost, bill)

    def _total(self) -> Mapping[str, Any] | None:
        """What has to be paid, as a plan counts it."""
        if not {"cost", "utility_bill"} & self.asked.requests.keys():
            return None
        payable = self._payable()
        total = None
        if payable is None:
            detail = "the building of own devices is not given, so their electricity is not known"
            self._gap("/headlines/total", "SITE_REQUIRED", detail)
        else:
            answers = (self.answers.get("cost"), self.answers.get("utility_bill"))
            try:
                asked = partial(_total, payable, *answers, self.exchange)
                total = answer(asked, self.broadest, self.catalog)
            except NoSoundAnswer as refused:
                self._gap("/headlines/total", refused.errors[0].code, refused.errors[0].detail)
            if self.asked.owns_devices and payable.bill is None:
                detail = "the total has no electricity: the question of the utility bill asks for it"
                self._warn("ELECTRICITY_NOT_IN_TOTAL", "/headlines/total", detail)
        if self.asked.planned is not None:
            self._compare_with_plan(total, self.asked.planned.get("cost"))
        return total

    def _compare_with_plan(self, total: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> None:
        if total == planned:
            return
        now, then = (
            "not known" if each is None else f"{each['amount']} {each['currency_code']}"
            for each in (total, planned)
        )
        detail = f"the plan says {then}; its requests give {now} under the present catalog"
        self._warn("DIFFERS_FROM_PLAN", "/headlines/total", detail)

    def focus_charges(self) -> list[Charge] | None:
        """What is paid as charges of a period."""
        payable = self._payable()
        if payable is None or (payable.cost is None and payable.bill is None):
            self._gap("/focus_digest", "COST_NOT_ASKED", "nothing asks what the run costs in all")
            return None
        try:
            return answer(partial(_charges, payable), self.broadest, self.catalog)
        except NoSoundAnswer as refused:
            self._gap("/focus_digest", refused.errors[0].code, refused.errors[0].detail)
            return None

    def sources(self) -> list[Source]:
        """The catalog rows that the answers rest on, each once."""
        found: dict[tuple[str, str], Source] = {}
        cited: dict[str, list[Source]] = {
            name: given["evidence"]["sources"] for name, given in self.answers.items()
        }
        for name, sources in [*cited.items(), ("utility_bill", self.exchange.sources)]:
            for source in sources:
                if source["kind"] != "reference_curve":
                    placed = source.copy()
                    placed["pointer"] = f"/requests/{name}{source['pointer']}"
                    found.setdefault((source["kind"], source["id"]), placed)
        return list(found.values())

    def _named(self, kind: str) -> list[str]:
        return [source["id"] for source in self.sources() if source["kind"] == kind]

    def devices(self) -> dict[str, Any]:
        """Which devices, and how many."""
        cluster = getattr(self.broadest, "cluster", MISSING)
        if cluster is MISSING:
            return {}
        count = {"accelerator_count": cluster.accelerator_count}
        named = getattr(cluster.accelerator, "id", None)
        known = None if named is None else self.catalog.accelerators.get(named)
        return count if known is None else {"accelerator_id": known.accelerator.id, **count}

    def providers(self) -> list[str]:
        """Who rents devices out."""
        found = {self.catalog.offers[offer_id].provider for offer_id in self._named("offer")}
        supply = (self.asked.planned or {}).get("supply", {})
        return sorted(found | ({supply["provider"]} if "provider" in supply else set()))

    def prices_end_at(self) -> datetime | None:
        """When the first of the offers ends: with its last day."""
        ends = [self.catalog.offers[offer_id].valid_until for offer_id in self._named("offer")]
        days = [last_day(end) for end in ends if end is not None]
        return datetime.combine(min(days) + timedelta(days=1), time(), UTC) if days else None


def _within(pointer: str) -> str:
    """A pointer into a quote as one into its request or answer."""
    return "/".join(["", *pointer.split("/")[3:]])


def _total(
    payable: Payable,
    cost: CostAnswer | None,
    billed: UtilityBillAnswer | None,
    notes: Notes,
    _question: Input,
    catalog: CatalogView,
) -> MoneyQuantity:
    return total_paid(payable, cost, billed, catalog, notes)


def _charges(payable: Payable, _question: Input, catalog: CatalogView) -> list[Charge]:
    return charges_paid(payable, catalog)


def request_of(name: str, document: Mapping[str, Any]) -> Input:
    """A request as it was stored; refuses one that this version of the service does not take."""
    text = json.dumps(document).encode()
    try:
        return QUESTIONS[name].model_validate_json(text)
    except ValidationError as error:
        faults = body_errors(error, text).errors
        at = f"/requests/{name}"
        raise RequestOutdated("", *(each._replace(pointer=at + each.pointer) for each in faults)) from error
