"""Content of a quote: its question and the narrower ones, answered under one catalog view."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import MISSING, ValidationError
from pydantic_core import to_jsonable_python

from service.estimates.service import (
    ESTIMATES,
    NoSoundEstimate,
    PaymentQuestions,
    answer_question,
    compute_paid_total,
    list_paid_charges,
)
from service.kit.http.problems import FieldError, Unprocessable
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem
from service.planning import METHOD_VERSION
from service.planning.cost.focus import FocusCharge
from service.planning.cost.prices import parse_last_day
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity, scaled
from service.planning.units import HOUR_SECONDS
from service.quotes.alternatives import list_alternatives
from service.quotes.errors import RequestOutdated
from service.quotes.schemas import QuotedCandidate, QuotedOperation, QuoteHeadlines
from service.resolve.catalog import CatalogView
from service.resolve.configuration import share_searches
from service.schemas.answer import FigureError, to_quantity
from service.schemas.base import AnswerWarning, EstimateGap, EstimateSource, MoneyQuantity, StrictModel
from service.schemas.bill_answers import UtilityBill
from service.schemas.cost_answers import CostEstimate
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)

RowReader = Callable[[Sequence[EstimateSource]], Sequence[Mapping[str, Any]]]
"""Returns the catalog rows of sources."""

QUESTIONS: Final[Mapping[str, type[StrictModel]]] = {
    "utility_bill": UtilityBillRequest,
    "cost": CostEstimateRequest,
    "throughput": ThroughputEstimateRequest,
    "memory": MemoryEstimateRequest,
}
"""Requests by their names in a quote, the broadest first: each includes the questions after it."""


class QuoteSubject(NamedTuple):
    """Subject of a quote, with the requests by name, including the narrower ones."""

    operation: QuotedOperation
    name: str
    requests: Mapping[str, StrictModel]
    owns_devices: bool
    """True if the electricity of the run is paid in addition to its devices."""
    cost_center_id: str | None = None
    note: str | None = None
    plan: QuotedCandidate | None = None
    planned: Mapping[str, Any] | None = None
    """Row of the plan, as the plan represents it."""
    refused_at: str | None = ""
    """Pointer of the request in the caller's body. None if it comes from an earlier version."""
    version: int | None = None
    """Number of that earlier version. The new version must follow it directly."""


class QuoteSnapshot(NamedTuple):
    """Content of a quote without version and validity."""

    asked: QuoteSubject
    catalog_revision: int
    method_version: str
    summary: dict[str, Any]
    """Members of the list representation."""
    document: dict[str, Any]
    """All other members of the representation."""
    charges: Sequence[FocusCharge] | None
    """Charges for export. None if there are none, with the reason in a gap."""
    prices_end_at: datetime | None
    """End of validity of the first price that expires."""


def project_questions(name: str, question: StrictModel) -> dict[str, StrictModel]:
    """Returns a question and the narrower ones that it contains, the broadest first."""
    names = list(QUESTIONS)
    within = names[names.index(name) + 1 :]
    return {name: question} | {each: _project_question(QUESTIONS[each], question) for each in within}


def _project_question(narrow: type[StrictModel], question: StrictModel) -> StrictModel:
    """Returns the narrower question from the members of a broader one that were set."""
    said = {
        each: getattr(question, each) for each in narrow.model_fields if each in question.model_fields_set
    }
    return narrow.model_construct(**said)


def is_owning_devices(question: StrictModel) -> bool:
    """Returns true if a cost question has bought devices and no rented ones."""
    if not isinstance(question, CostEstimateRequest):
        return False
    return question.rental is MISSING and question.purchase is not MISSING


@share_searches()
def build_quote(asked: QuoteSubject, catalog: CatalogView, rows_of: RowReader) -> QuoteSnapshot:
    """Answers all requests of a subject. Missing answers of narrower questions are gaps."""
    found = _SnapshotBuilder(asked, catalog)
    found.answer_all()
    headlines = found.build_headlines()
    charges = found.build_focus_charges()
    sources = found.list_sources()
    rows = zip(sources, rows_of(sources), strict=True)
    document: dict[str, Any] = {
        "owns_devices": asked.owns_devices,
        "requests": {
            name: asked.requests[name].model_dump(mode="json") for name in found.list_request_names()
        },
        "answers": {
            name: found.answers[name] for name in found.list_request_names() if name in found.answers
        },
        "alternatives": list_alternatives(
            asked.requests,
            found.answers,
            headlines.get("total"),
            catalog,
            partial(_price_requests, asked, catalog),
        ),
        "inputs": [{**source, "row": to_jsonable_python(row)} for source, row in rows],
        "warnings": found.warnings,
        "gaps": found.gaps,
    }
    if asked.note is not None:
        document["note"] = asked.note
    if asked.plan is not None:
        document["plan"] = asked.plan
    summary = {"headlines": headlines, **found.build_devices(), "providers": found.list_providers()}
    start = getattr(found.broadest, "starts_at", MISSING)
    if start is not MISSING:
        summary["starts_at"] = f"{start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return QuoteSnapshot(
        asked, catalog.revision, METHOD_VERSION, summary, document, charges, found.compute_prices_end_at()
    )


def _price_requests(
    asked: QuoteSubject, catalog: CatalogView, requests: Mapping[str, StrictModel]
) -> MoneyQuantity | None:
    """Returns the total of a subject with other requests, or None if it is unknown."""
    # Electricity is no part of the total of rented devices, and its bill is the slowest answer.
    needed = {
        name: request for name, request in requests.items() if asked.owns_devices or name != "utility_bill"
    }
    found = _SnapshotBuilder(asked._replace(requests=needed, plan=None, planned=None), catalog)
    try:
        found.answer_all()
    except NoSoundEstimate:
        return None
    return found.build_headlines().get("total")


class _SnapshotBuilder:
    """Builder of a quote."""

    def __init__(self, asked: QuoteSubject, catalog: CatalogView) -> None:
        self.asked = asked
        self.catalog = catalog
        self.answers: dict[str, Any] = {}
        self.warnings: list[AnswerWarning] = []
        self.gaps: list[EstimateGap] = []
        self.exchange = AnswerNotes()
        """Notes on exchange rates of the total."""

    def list_request_names(self) -> Iterator[str]:
        """Returns the names of the requests, the narrowest first."""
        return (name for name in reversed(list(QUESTIONS)) if name in self.asked.requests)

    @property
    def broadest(self) -> StrictModel:
        """The request that contains the others."""
        return next(self.asked.requests[name] for name in QUESTIONS if name in self.asked.requests)

    def answer_all(self) -> None:
        """Answers every request. Refuses if the requested question itself has no answer."""
        for place, (name, request) in enumerate(self.asked.requests.items()):
            estimator = ESTIMATES[name.replace("_", "-")].estimator
            try:
                self.answers[name] = answer_question(estimator, request, self.catalog)
            except NoSoundEstimate as refused:
                if place == 0 or self.asked.plan is not None:
                    raise self._build_refusal(refused, name) from refused
                for error in refused.errors:
                    self._add_gap(f"/answers/{name}", error.code, error.detail)
            else:
                self._record_notes(name)

    def _build_refusal(self, refused: NoSoundEstimate, name: str) -> Unprocessable:
        at = self.asked.refused_at
        if at is None:
            return NoSoundEstimate("", *(each._replace(pointer="") for each in refused.errors))
        if self.asked.plan is not None:
            detail = f"{name.replace('_', ' ')}: {refused.errors[0].detail}"
            return NoSoundEstimate("", FieldError(at, refused.errors[0].code, detail))
        return NoSoundEstimate("", *(each._replace(pointer=at + each.pointer) for each in refused.errors))

    def _record_notes(self, name: str) -> None:
        """Records warnings and gaps of an answer, each once."""
        said = {(note["code"], note["detail"], _strip_pointer(note["pointer"])) for note in self.warnings}
        for note in self.answers[name]["warnings"]:
            if (note["code"], note["detail"], note["pointer"]) not in said:
                self._add_warning(note["code"], f"/requests/{name}{note['pointer']}", note["detail"])
        known = {(gap["code"], gap["detail"], _strip_pointer(gap["pointer"])) for gap in self.gaps}
        for gap in self.answers[name]["gaps"]:
            if (gap["code"], gap["detail"], gap["pointer"]) not in known:
                self._add_gap(f"/answers/{name}{gap['pointer']}", gap["code"], gap["detail"])

    def _add_gap(self, pointer: str, code: str, detail: str) -> None:
        self.gaps.append({"pointer": pointer, "code": code, "detail": detail})

    def _add_warning(self, code: str, pointer: str, detail: str) -> None:
        self.warnings.append({"code": code, "pointer": pointer, "detail": detail})

    def build_headlines(self) -> QuoteHeadlines:
        """Returns the headlines of the quote."""
        found: dict[str, Any] = {}
        total = self._build_total()
        if total is not None:
            found["total"] = total
        found |= self._build_times()
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

    def _build_times(self) -> dict[str, Any]:
        """Returns the duration of the run, including interruptions of spot devices."""
        cost = self.answers.get("cost", {})
        duration = cost.get("rent", {}).get("interruptions", {}).get("duration_seconds")
        for name in ("cost", "utility_bill", "throughput"):
            duration = duration or self.answers.get(name, {}).get("duration_seconds")
        if duration is None:
            return {}
        devices: int = self.broadest.cluster.accelerator_count  # type: ignore[attr-defined]
        found = {"duration_seconds": duration}
        try:
            found["device_hours"] = to_quantity(scaled(Quantity(**duration), devices / HOUR_SECONDS))
        except FigureError:
            self._add_gap("/headlines/device_hours", "OUT_OF_RANGE", "the figure is out of the numeric range")
        return found

    def _build_payable(self) -> PaymentQuestions | None:
        """Returns the questions of all payments, or None if one of them was not requested."""
        cost, bill = self.asked.requests.get("cost"), self.asked.requests.get("utility_bill")
        cost = cost if isinstance(cost, CostEstimateRequest) else None
        if not self.asked.owns_devices:
            return None if cost is None else PaymentQuestions(cost, None)
        if not isinstance(bill, UtilityBillRequest):
            return None if self.asked.plan is not None or cost is None else PaymentQuestions(cost, None)
        return PaymentQuestions(cost, bill)

    def _build_total(self) -> Mapping[str, Any] | None:
        """Returns the total to pay, by the rules of a plan."""
        if not {"cost", "utility_bill"} & self.asked.requests.keys():
            return None
        payable = self._build_payable()
        total = None
        if payable is None:
            detail = "the site of owned devices is not given, so their electricity is unknown"
            self._add_gap("/headlines/total", "SITE_REQUIRED", detail)
        else:
            answers = (self.answers.get("cost"), self.answers.get("utility_bill"))
            try:
                asked = partial(_compute_total, payable, *answers, self.exchange)
                total = answer_question(asked, self.broadest, self.catalog)
            except NoSoundEstimate as refused:
                self._add_gap("/headlines/total", refused.errors[0].code, refused.errors[0].detail)
            if self.asked.owns_devices and payable.bill is None:
                detail = "the total excludes electricity, since the utility bill was not requested"
                self._add_warning("ELECTRICITY_NOT_IN_TOTAL", "/headlines/total", detail)
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
        detail = f"the cost in the plan is {then}; its requests give {now} under the current catalog"
        self._add_warning("DIFFERS_FROM_PLAN", "/headlines/total", detail)

    def build_focus_charges(self) -> list[FocusCharge] | None:
        """Returns the payments as charges of billing periods."""
        payable = self._build_payable()
        if payable is None or (payable.cost is None and payable.bill is None):
            self._add_gap(
                "/focus_digest", "COST_NOT_ASKED", "the request does not ask for the cost of the run"
            )
            return None
        try:
            return answer_question(partial(_build_charges, payable), self.broadest, self.catalog)
        except NoSoundEstimate as refused:
            self._add_gap("/focus_digest", refused.errors[0].code, refused.errors[0].detail)
            return None

    def list_sources(self) -> list[EstimateSource]:
        """Returns the catalog rows that the answers cite, each once."""
        found: dict[tuple[str, str], EstimateSource] = {}
        cited: dict[str, list[EstimateSource]] = {
            name: given["evidence"]["sources"] for name, given in self.answers.items()
        }
        for name, sources in [*cited.items(), ("utility_bill", self.exchange.sources)]:
            for source in sources:
                if source["kind"] != "reference_curve":
                    placed = source.copy()
                    placed["pointer"] = f"/requests/{name}{source['pointer']}"
                    found.setdefault((source["kind"], source["id"]), placed)
        return list(found.values())

    def _list_source_ids(self, kind: str) -> list[str]:
        return [source["id"] for source in self.list_sources() if source["kind"] == kind]

    def build_devices(self) -> dict[str, Any]:
        """Returns accelerator and number of the devices."""
        cluster = getattr(self.broadest, "cluster", MISSING)
        if cluster is MISSING:
            return {}
        count = {"accelerator_count": cluster.accelerator_count}
        named = getattr(cluster.accelerator, "id", None)
        known = None if named is None else self.catalog.accelerators.get(named)
        return count if known is None else {"accelerator_id": known.accelerator.id, **count}

    def list_providers(self) -> list[str]:
        """Returns the providers of rented devices."""
        found = {self.catalog.offers[offer_id].provider for offer_id in self._list_source_ids("offer")}
        supply = (self.asked.planned or {}).get("supply", {})
        return sorted(found | ({supply["provider"]} if "provider" in supply else set()))

    def compute_prices_end_at(self) -> datetime | None:
        """Returns the end of the first offer that expires, after its last day."""
        ends = [self.catalog.offers[offer_id].valid_until for offer_id in self._list_source_ids("offer")]
        days = [parse_last_day(end) for end in ends if end is not None]
        return datetime.combine(min(days) + timedelta(days=1), time(), UTC) if days else None


def _strip_pointer(pointer: str) -> str:
    """Converts a pointer into a quote to one into its request or answer."""
    return "/".join(["", *pointer.split("/")[3:]])


def _compute_total(
    payable: PaymentQuestions,
    cost: CostEstimate | None,
    billed: UtilityBill | None,
    notes: AnswerNotes,
    _question: StrictModel,
    catalog: CatalogView,
) -> MoneyQuantity:
    return compute_paid_total(payable, cost, billed, catalog, notes)


def _build_charges(
    payable: PaymentQuestions, _question: StrictModel, catalog: CatalogView
) -> list[FocusCharge]:
    return list_paid_charges(payable, catalog)


def parse_request(name: str, document: Mapping[str, Any]) -> StrictModel:
    """Parses a stored request. Refuses one that this version of the service does not accept."""
    text = json.dumps(document).encode()
    try:
        return QUESTIONS[name].model_validate_json(text)
    except ValidationError as error:
        faults = build_body_problem(error, text, load_shape(QUESTIONS[name])).errors
        at = f"/requests/{name}"
        raise RequestOutdated("", *(each._replace(pointer=at + each.pointer) for each in faults)) from error
