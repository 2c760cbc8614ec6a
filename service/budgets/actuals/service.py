"""Rules of actuals: a bill counts completely or not at all, until a later one replaces it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal, localcontext
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import uuid4

from pydantic import MISSING
from sqlalchemy.orm import Session

from service.audit.service import WriteOutcome
from service.budgets.actuals import repository
from service.budgets.actuals.errors import ActualsNotFound, ActualsRefused, ActualsWithdrawn, ImportedBefore
from service.budgets.actuals.matching import (
    MOST_DAYS,
    ChargeAmounts,
    ChargeKey,
    ChargeOwner,
    ChargeOwners,
    TooManyDaysError,
    drop_double_commitments,
    get_own_tag,
    list_quote_ids,
    sum_by_day,
)
from service.budgets.actuals.records import compute_charges_digest, to_audit_document
from service.budgets.actuals.schemas import ActualsImportRequest
from service.budgets.actuals.tables import ActualsImportRow
from service.budgets.money import MOST_MICROS
from service.budgets.thresholds import emit_center_events
from service.cost_centers import service as cost_centers
from service.formats.focus import USAGE_BASED, BilledRow, LineFault, ReadBill, read_focus
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.quotes import service as quotes
from service.resolve.catalog import CatalogView
from service.schemas.base import MoneyAmount

_MOST_PERIODS: Final = 120
_DIGITS: Final = 80
_NOTES: Final = {
    "NO_TAGS": "the bill has no column Tags, so no row names a quote",
    "COMMITMENT_COUNTED": "the purchase of a commitment that other rows use: its effective cost counts there",
    "QUOTE_UNKNOWN": "the tag quote_id names a quote that does not exist",
    "ESTIMATED": "the tag estimate marks the charge as an estimate",
    "UNMATCHED": "the row belongs to no quote and no cost centre: it is counted here but not stored",
}


class MatchedBill(NamedTuple):
    """A bill with the owners of its rows and the sums of its charges."""

    bill: ReadBill
    owners: Sequence[ChargeOwner]
    charges: dict[ChargeKey, ChargeAmounts]
    counted_commitments: int = 0
    """Number of purchases whose cost counts at their use."""


def parse_bill(body: ActualsImportRequest) -> ReadBill:
    """Parses a bill. Raises ActualsRefused if a row is invalid."""
    bill = read_focus(body.content)
    if bill.faults:
        raise ActualsRefused("", *map(_to_field_error, bill.faults))
    if len({row.billing_start for row in bill.rows}) > _MOST_PERIODS:
        detail = f"a bill may have at most {_MOST_PERIODS} billing periods"
        raise ActualsRefused("", FieldError("/content", "TOO_MANY_PERIODS", detail))
    return bill


def _to_field_error(fault: LineFault) -> FieldError:
    place = f"line {fault.line}" + (f", {fault.column}" if fault.column else "")
    return FieldError("/content", fault.code, f"{place}: {fault.detail}")


def match_bill(session: Reader, tenant_id: str, bill: ReadBill) -> MatchedBill:
    """Returns a bill with the owners of its rows."""
    named = quotes.list_summaries(session, tenant_id, list_quote_ids(bill.rows))
    # The last version of a quote defines the cost centre.
    known = {summary["id"]: summary.get("cost_center_id") for summary in named}
    owners = ChargeOwners(cost_centers.list_cost_centers(session, tenant_id), known)
    found = [owners.find_owner(row) for row in bill.rows]
    rows, counted_commitments = drop_double_commitments(bill.rows)
    pairs = ((row, owner) for row, owner in zip(rows, found, strict=True) if owner != _NOBODY)
    try:
        charges = sum_by_day(pairs)
    except TooManyDaysError as error:
        detail = f"the charges of a bill may cover at most {MOST_DAYS:,} days in total"
        raise ActualsRefused("", FieldError("/content", "TOO_MANY_DAYS", detail)) from error
    if any(abs(amount) >= MOST_MICROS for amounts in charges.values() for amount in amounts):
        detail = "the sum of a day must be below a million millions"
        raise ActualsRefused("", FieldError("/content", "NUMBER", detail))
    return MatchedBill(bill._replace(rows=rows), found, charges, counted_commitments)


_NOBODY: Final = ChargeOwner(None, None)


def store_bill(
    session: Writer, tenant_id: str, body: ActualsImportRequest, matched: MatchedBill, catalog: CatalogView
) -> WriteOutcome:
    """Stores the charges of a bill. Earlier bills of the source no longer count in its billing periods."""
    row = ActualsImportRow(
        tenant_id=tenant_id,
        id=uuid4().hex,
        source=body.source,
        note=None if body.note is MISSING else body.note,
        content_sha256=sha256(body.content.encode()).hexdigest(),
        row_count=len(matched.bill.rows),
        matched_row_count=sum(owner != _NOBODY for owner in matched.owners),
        notes=list(_build_notes(matched)),
        created_at=now(),
    )
    row.periods = list(_build_periods(matched, row.created_at))
    charges = list(_build_charge_rows(row, matched.charges))
    gone, superseded = _replace_periods(
        session, row, charges, None if body.replaces is MISSING else body.replaces
    )
    repository.insert_charges(session, charges)
    centers = (gone | {charge["cost_center_id"] for charge in charges}) - {None}
    told = emit_center_events(session, tenant_id, centers, catalog.exchange_rates)
    path = f"actuals/{row.id}"
    return WriteOutcome(
        resource=path,
        status=201,
        body=to_response(row, {row.id}),
        headers={"Location": f"/v1/{path}"},
        after=to_audit_document(session, row),
        also=(*superseded, *told),
    )


def _replace_periods(
    session: Writer, row: ActualsImportRow, charges: Sequence[dict[str, Any]], replaces: str | None
) -> tuple[set[str], list[WriteOutcome]]:
    """Makes an import count in its billing periods.

    Returns affected cost centres and changes of earlier imports.
    """
    starts = {datetime.fromisoformat(period["starts_at"]): period for period in row.periods}
    places = [repository.lock_period(session, row.tenant_id, row.source, each) for each in sorted(starts)]
    _check_not_imported(session, row, replaces)
    session.add(row)
    earlier = repository.lock_imports(session, row.tenant_id, {place.import_id for place in places})
    before = [to_audit_document(session, each) for each in earlier]
    centers: set[str] = set()
    of_period: dict[datetime, list[dict[str, Any]]] = defaultdict(list)
    for charge in charges:
        of_period[charge["billing_starts_at"]].append(charge)
    for place in places:
        centers |= repository.delete_charges(session, row.tenant_id, place.import_id, place.starts_at)
        place.import_id = row.id
        place.covered_until = datetime.fromisoformat(starts[place.starts_at]["covered_until"])
        place.charges_sha256 = compute_charges_digest(of_period[place.starts_at])
    session.flush()
    changes = [
        WriteOutcome(resource=f"actuals/{each.id}", before=known, after=to_audit_document(session, each))
        for each, known in zip(earlier, before, strict=True)
    ]
    return centers, changes


def _check_not_imported(session: Writer, row: ActualsImportRow, replaces: str | None) -> None:
    """Refuses a bill that was imported before, unless it replaces that import."""
    known = repository.find_by_content(session, row.tenant_id, row.content_sha256)
    if known is not None and (replaces, row.source) != (known.id, known.source):
        detail = f"as import {known.id} of {known.source}: withdraw that import or name it in replaces"
        raise ImportedBefore("", FieldError("/content", "IMPORTED_BEFORE", detail))
    if known is None and replaces is not None:
        detail = "no import with this id has the same table"
        raise ActualsRefused("", FieldError("/replaces", "UNKNOWN_REFERENCE", detail))


def _build_charge_rows(
    row: ActualsImportRow, charges: dict[ChargeKey, ChargeAmounts]
) -> Iterator[dict[str, Any]]:
    for number, (key, amounts) in enumerate(charges.items()):
        yield {
            "tenant_id": row.tenant_id,
            "import_id": row.id,
            "number": number,
            **key.owner._asdict(),
            **{name: value for name, value in key._asdict().items() if name != "owner"},
            "billed_micros": amounts.billed,
            "effective_micros": amounts.effective,
        }


def _build_notes(matched: MatchedBill) -> Iterator[dict[str, Any]]:
    rows, owners = matched.bill.rows, matched.owners
    counts = Counter[str]()
    counts["COMMITMENT_COUNTED"] = matched.counted_commitments
    counts["NO_TAGS"] = 0 if matched.bill.has_tags else len(rows)
    for row, owner in zip(rows, owners, strict=True):
        counts["QUOTE_UNKNOWN"] += get_own_tag(row, "quote_id") is not None and owner.quote_id is None
        counts["ESTIMATED"] += row.tags.get("estimate") == "true"
        counts["UNMATCHED"] += owner == _NOBODY
    for code, detail in _NOTES.items():
        if counts[code]:
            yield {"code": code, "row_count": counts[code], "detail": detail}


def _build_periods(matched: MatchedBill, at: datetime) -> Iterator[dict[str, Any]]:
    rows: dict[datetime, list[tuple[BilledRow, ChargeOwner]]] = defaultdict(list)
    for row, owner in zip(matched.bill.rows, matched.owners, strict=True):
        rows[row.billing_start].append((row, owner))
    for starts_at, of_period in sorted(rows.items()):
        ends_at = max(row.billing_end for row, _ in of_period)
        # Monthly and one-time charges do not show how far the usage of a month is known.
        used = [row.charge_end for row, _ in of_period if row.frequency in (None, USAGE_BASED)]
        last = max(used or (row.charge_end for row, _ in of_period))
        covered = ends_at if ends_at <= at else max(starts_at, min(ends_at, last))
        yield {
            "starts_at": starts_at.isoformat(),
            "ends_at": ends_at.isoformat(),
            "covered_until": covered.isoformat(),
            "row_count": len(of_period),
            "matched_row_count": sum(owner != _NOBODY for _, owner in of_period),
            "billed": _sum_amounts((row.currency_code, row.billed) for row, _ in of_period),
            "effective": _sum_amounts((row.currency_code, row.effective) for row, _ in of_period),
        }


def _sum_amounts(amounts: Iterable[tuple[str, Decimal]]) -> list[MoneyAmount]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    with localcontext(prec=_DIGITS):
        for currency_code, amount in amounts:
            sums[currency_code] += amount
        return [
            {"amount": f"{amount.normalize():f}", "currency_code": currency_code}
            for currency_code, amount in sorted(sums.items())
        ]


_MEMBERS: Final = (
    *("id", "source", "note", "content_sha256", "row_count", "matched_row_count", "periods", "notes"),
    *("created_at", "withdrawn_at", "reason"),
)


def to_response(row: ActualsImportRow, counting: set[str]) -> dict[str, Any]:
    """Returns the representation of an import.

    ``counting`` are the imports that count in a billing period.
    """
    state = "active" if row.id in counting else "superseded"
    document = {name: value for name in _MEMBERS if (value := getattr(row, name)) is not None}
    return document | {"state": state if row.withdrawn_at is None else "withdrawn"}


def list_imports(session: Reader, tenant_id: str, rows: Sequence[ActualsImportRow]) -> list[dict[str, Any]]:
    """Returns the representations of imports in lists."""
    counting = repository.list_counting_ids(session, tenant_id, [row.id for row in rows])
    return [to_response(row, counting) for row in rows]


def get_import(session: Reader, tenant_id: str, import_id: str) -> dict[str, Any]:
    """Returns one import."""
    return list_imports(session, tenant_id, [_get_import_row(session, tenant_id, import_id)])[0]


def _get_import_row(session: Session, tenant_id: str, import_id: str) -> ActualsImportRow:
    row = repository.get_import(session, tenant_id, import_id)
    if row is None:
        raise ActualsNotFound
    return row


def withdraw_import(session: Writer, tenant_id: str, import_id: str, reason: str) -> WriteOutcome:
    """Withdraws an import. Earlier imports of its billing periods do not count again."""
    _get_import_row(session, tenant_id, import_id)
    periods = repository.lock_import_periods(session, tenant_id, import_id)
    (row,) = repository.lock_imports(session, tenant_id, [import_id])
    if row.withdrawn_at is not None:
        raise ActualsWithdrawn
    before = to_audit_document(session, row)
    for period in periods:
        repository.delete_charges(session, tenant_id, import_id, period.starts_at)
        # Kept, since another import may wait for the row; a period without an import has no charges.
        period.import_id, period.charges_sha256, period.covered_until = "", "", period.starts_at
    row.withdrawn_at, row.reason = now(), reason
    session.flush()
    after = to_audit_document(session, row)
    return WriteOutcome(
        resource=f"actuals/{import_id}", body=to_response(row, set()), before=before, after=after
    )
