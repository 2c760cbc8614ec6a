"""Rules of tariffs, and their import from and export to other formats."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from pydantic import MISSING, ValidationError

from service.catalog.rows import RowDocument
from service.catalog.tariffs.schemas import (
    ExportedTariff,
    ImportedTariff,
    MarketTariffImportRequest,
    TariffRequest,
    UrdbTariffImportRequest,
)
from service.formats.grid.entsoe import read_entsoe_prices
from service.formats.urdb import ImportFinding, UrdbImport, tariff_from_urdb, urdb_from_tariff
from service.kit.http.problems import ERROR_LIMIT, FieldError, Unprocessable, build_pointer
from service.planning.errors import PlanningError
from service.planning.tariff.calendar import resolve_zone
from service.planning.tariff.charges import RealTimeCharge, Tariff, TariffRevision
from service.planning.tariff.effort import MOST_ORDINARY_STEPS, estimate_ordinary_effort
from service.schemas.base import AnswerWarning
from service.schemas.tariffs import MOST_VALUES, parse_day, parse_terms, to_document, to_planning

_URDB = "/urdb"
_NOTE_LENGTH = 2000
_UTILITY_LENGTH = 500
_ZONE_LENGTH = 40


def check_terms(document: RowDocument) -> RowDocument:
    """Returns no members. Raises :class:`PlanningError` for terms that contradict themselves.

    Terms with which an ordinary bill takes too much computation are refused too, because a caller who names a
    stored tariff cannot choose its cost.
    """
    tariff = to_planning(parse_terms(document))
    estimate_ordinary_effort(tariff).check(MOST_ORDINARY_STEPS, "/revisions", "TARIFF_TOO_COSTLY")
    return {}


class ReadTariff(NamedTuple):
    """A file of another format as a catalog row, with the outcome of its parts."""

    document: RowDocument
    refused: list[AnswerWarning]
    approximated: list[AnswerWarning]
    warnings: list[AnswerWarning]

    def to_response(self, stored: RowDocument) -> ImportedTariff:
        """Returns the stored row with the lists."""
        return {
            "tariff": stored,  # type: ignore[typeddict-item]
            "refused": self.refused,
            "approximated": self.approximated,
            "warnings": self.warnings,
        }


def read_tariff(body: UrdbTariffImportRequest | MarketTariffImportRequest) -> ReadTariff:
    """Returns the row that a file of another format describes."""
    return read_rate(body) if isinstance(body, UrdbTariffImportRequest) else read_market(body)


def read_market(body: MarketTariffImportRequest) -> ReadTariff:
    """Returns the row of a tariff with one charge at the prices of a market."""
    try:
        zone = resolve_zone(body.time_zone)
        series = read_entsoe_prices(body.content)
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The prices cannot be imported", field) from error
    if not np.isfinite(series.prices.values).all() or len(series.prices.values) > MOST_VALUES:
        detail = f"must have prices of consecutive intervals without a gap, at most {MOST_VALUES:,}"
        raise Unprocessable("The prices cannot be imported", FieldError("/content", "PRICE_FILE", detail))
    charge = RealTimeCharge(
        name="market", prices=series.prices, adder=Decimal(body.adder), factor=Decimal(body.factor)
    )
    starts_on = series.prices.start.astimezone(zone).date()
    tariff = Tariff(
        currency_code=series.currency_code,
        time_zone=body.time_zone,
        revisions=(TariffRevision(effective_from=starts_on, charges=(charge,)),),
    )
    document = body.model_dump(mode="json", exclude={"format", "content", "time_zone", "adder", "factor"})
    detail = f"the prices are those of bidding zone {_fold_text(series.zone, _ZONE_LENGTH)}"
    told: AnswerWarning = {"code": "BIDDING_ZONE", "pointer": "/content", "detail": detail}
    return ReadTariff(_check_document({**document, **to_document(tariff)}, "/content"), [], [], [told])


def read_rate(body: UrdbTariffImportRequest) -> ReadTariff:
    """Returns the row of a rate. Keys that a tariff cannot express are refused, unless they are excluded."""
    try:
        whole = tariff_from_urdb(body.urdb, time_zone=body.time_zone)
        _check_excluded(body)
        kept = tariff_from_urdb(body.urdb, time_zone=body.time_zone, excluded_keys=body.excluded_keys)
    except PlanningError as error:
        field = FieldError(f"{_URDB}{error.pointer}", error.code, error.detail)
        raise Unprocessable("The rate cannot be imported", field) from error
    if kept.refused:
        raise Unprocessable(
            "The rate has keys that a tariff cannot express; excluded_keys leaves keys out",
            *(_to_field_error(finding) for finding in kept.refused[:ERROR_LIMIT]),
        )
    return ReadTariff(
        _build_row(body, kept),
        _list_excluded_warnings(body.excluded_keys, whole),
        [_to_warning("URDB_APPROXIMATED", finding) for finding in kept.approximated],
        [*(_to_warning("URDB_NOTE", finding) for finding in kept.warnings), *_list_bill_warnings(kept)],
    )


def _to_field_error(finding: ImportFinding) -> FieldError:
    return FieldError(f"{_URDB}{finding.pointer}", "URDB_KEY_REFUSED", finding.detail)


def _to_warning(code: str, finding: ImportFinding) -> AnswerWarning:
    return {"code": code, "pointer": f"{_URDB}{finding.pointer}", "detail": finding.detail}


def _check_excluded(body: UrdbTariffImportRequest) -> None:
    items = body.urdb.get("items")
    rate = items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else body.urdb
    for place, key in enumerate(body.excluded_keys):
        if key not in rate:
            field = FieldError(f"/excluded_keys/{place}", "URDB_KEY_ABSENT", "the rate has no such key")
            raise Unprocessable("A key of excluded_keys does not exist", field)


def _list_excluded_warnings(excluded: Iterable[str], whole: UrdbImport) -> list[AnswerWarning]:
    """Returns every excluded key, with the reasons why it would have been refused."""
    listed: list[AnswerWarning] = []
    for key in dict.fromkeys(excluded):
        name = build_pointer([key]).removeprefix("/")
        reasons = [finding for finding in whole.refused if name in finding.pointer.split("/")]
        listed += [_to_warning("URDB_KEY_EXCLUDED", finding) for finding in reasons]
        if not reasons:
            at = f"{_URDB}{build_pointer([key])}"
            listed.append({"code": "URDB_KEY_EXCLUDED", "pointer": at, "detail": "left out as asked"})
    return listed


def _list_bill_warnings(imported: UrdbImport) -> Iterable[AnswerWarning]:
    """Yields warnings about facts of a rate that concern bills and that a tariff does not hold."""
    if imported.year_zero_peaks_kw is not None:
        detail = "peaks of the year before the load are of a customer: give them with a bill as monthly_peaks"
        yield {"code": "PEAKS_NOT_STORED", "pointer": f"{_URDB}/x_billing_demand", "detail": detail}


def _build_row(body: UrdbTariffImportRequest, imported: UrdbImport) -> RowDocument:
    apart = {"format", "urdb", "time_zone", "holidays", "effective_from", "excluded_keys"}
    document = body.model_dump(mode="json", exclude=apart)
    utility = _fold_text(imported.utility or "", _UTILITY_LENGTH)
    if utility:
        document["utility"] = utility
    terms = to_document(_apply_start_date(body, imported.tariff))
    notes = (_fold_text(note, _NOTE_LENGTH) for note in terms.get("notes", []))
    terms |= {"notes": [note for note in notes if note], "holidays": body.holidays}
    return _check_document({**document, **terms}, _URDB)


def _check_document(document: RowDocument, at: str) -> RowDocument:
    """Returns the document as a valid tariff row. Raises a problem that points at the file."""
    try:
        row = TariffRequest.model_validate(document).model_dump(mode="json")
        check_terms(row)
    except ValidationError as error:
        place = build_pointer(error.errors(include_url=False, include_input=False)[0]["loc"])
        field = FieldError(at, "OUT_OF_BOUNDS", f"the tariff would be out of bounds at {place}")
    except PlanningError as error:
        own = error.pointer.startswith(("/time_zone", "/holidays"))
        detail = error.detail if own else f"{error.detail}, at {error.pointer} of the tariff"
        field = FieldError(error.pointer if own else at, error.code, detail)
    else:
        return row
    raise Unprocessable("The file does not make a valid tariff", field)


def _apply_start_date(body: UrdbTariffImportRequest, tariff: Tariff) -> Tariff:
    if body.effective_from is MISSING:
        return tariff
    try:
        start = parse_day(body.effective_from, "/effective_from")
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The calendar has no such day", field) from error
    (revision,) = tariff.revisions
    return replace(tariff, revisions=(replace(revision, effective_from=start),))


def _fold_text(text: str, length: int) -> str:
    """Returns the text on one line, cut to ``length``."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= length else f"{line[: length - 3]}..."


def export_rate(document: RowDocument, on: str) -> ExportedTariff:
    """Returns a stored tariff as a rate of version 8, with the terms that such a rate lacks."""
    tariff = to_planning(parse_terms(document))
    try:
        wanted = parse_day(on, "/query/on") if on else None
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The calendar has no such day", field) from error
    rate = urdb_from_tariff(tariff, name=document["name"], utility=document.get("utility", ""), on=wanted)
    left_out: list[AnswerWarning] = [
        {"code": "NOT_IN_URDB", "pointer": finding.pointer, "detail": finding.detail}
        for finding in rate.left_out
    ]
    return {"urdb": rate.document, "left_out": left_out}  # type: ignore[typeddict-item]
