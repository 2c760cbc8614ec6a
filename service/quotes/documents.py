"""Versions of quotes as rows and documents, and the digest of their frozen content."""

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from pydantic_core import from_json, to_json

from service.estimates.service import NoSoundEstimate
from service.kit.clock import now
from service.kit.http.csv_tables import render_csv
from service.kit.http.idempotency import digest_json
from service.kit.http.problems import FieldError
from service.planning.cost.focus import COLUMNS, BillingAccount, build_focus_rows
from service.quotes.errors import QuoteTooLarge
from service.quotes.snapshot import QuoteSnapshot
from service.quotes.tables import DRAFT, QuoteRow

MOST_CHARACTERS: Final = 8 * 1024 * 1024
"""Size limit of a version with its charges; ten years of an hourly load take a tenth of it."""
_MOVING: Final = ("state", "content_digest")
_MEMBERS: Final = ("id", "version", "state", "name", "operation")
_TERMS: Final = ("cost_center_id", "created_at", "created_by", "valid_until", "content_digest")


def build_row(
    frozen: QuoteSnapshot, tenant_id: str, created_by: str, *, days: int, quote_id: str = "", version: int = 1
) -> QuoteRow:
    """Returns the row of a version with its validity, its charges and its digest."""
    created_at = now()
    row = QuoteRow(
        tenant_id=tenant_id,
        id=quote_id or uuid4().hex,
        version=version,
        state=DRAFT,
        operation=frozen.asked.operation,
        name=frozen.asked.name,
        cost_center_id=frozen.asked.cost_center_id,
        created_at=created_at,
        created_by=created_by,
        valid_until=_compute_valid_until(created_at, days, frozen.prices_end_at),
        catalog_revision=frozen.catalog_revision,
        method_version=frozen.method_version,
        summary=to_json(frozen.summary).decode(),
        focus=None,
    )
    document = dict(frozen.document)
    if frozen.charges is not None:
        row.focus = render_csv(COLUMNS, build_focus_rows(frozen.charges, _build_account(row)))
        document["focus_digest"] = _compute_text_digest(row.focus)
    row.document = to_json(document).decode()
    if len(row.document) + len(row.focus or "") > MOST_CHARACTERS:
        raise QuoteTooLarge(f"A quote has at most {MOST_CHARACTERS:,} characters: request fewer details")
    row.content_digest = compute_digest(row)
    return row


def _compute_valid_until(created_at: datetime, days: int, prices_end_at: datetime | None) -> datetime:
    """Returns the end of a quote's validity: after a number of days, or earlier with its prices."""
    ends_at = created_at + timedelta(days=days)
    if prices_end_at is None:
        return ends_at
    if prices_end_at <= created_at:
        detail = "an offer of the quote has expired, so the quote could not be approved"
        raise NoSoundEstimate("", FieldError("", "OFFER_EXPIRED", detail))
    return min(ends_at, prices_end_at)


def _build_account(row: QuoteRow) -> BillingAccount:
    """Returns the account and tags of the charges."""
    tags = {"estimate": "true", "quote_id": row.id, "quote_version": str(row.version)}
    tags["method_version"] = row.method_version
    if row.cost_center_id is not None:
        tags["cost_center_id"] = row.cost_center_id
    return BillingAccount(row.tenant_id, row.tenant_id, tags)


def _compute_text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def to_summary(row: QuoteRow) -> dict[str, Any]:
    """Returns the representation of a version in lists."""
    shown: dict[str, Any] = {name: getattr(row, name) for name in _MEMBERS} | from_json(row.summary)
    terms = {name: getattr(row, name) for name in _TERMS}
    return shown | {name: value for name, value in terms.items() if value is not None}


def to_detail(row: QuoteRow) -> dict[str, Any]:
    """Returns the full representation of a version."""
    under = {name: getattr(row, name) for name in ("tenant_id", "catalog_revision", "method_version")}
    document: dict[str, Any] = from_json(row.document)
    return to_summary(row) | document | under


def build_resource_id(row: QuoteRow) -> str:
    """Returns the audit id of a version. Each version is a resource of its own in the audit."""
    return f"{row.id}?version={row.version}"


def to_audit_columns(row: QuoteRow) -> dict[str, Any]:
    """Returns the columns of a version without its state, exactly as stored."""
    names = (column.key for column in row.__table__.columns)
    return {name: getattr(row, name) for name in names if name != "state"}


def compute_digest(row: QuoteRow) -> str:
    """Returns the SHA-256 of the canonical JSON of a version's frozen members.

    Canonical JSON has sorted members, no spaces and escaped non-ASCII characters, so that a reader of the
    document can verify the digest.
    """
    return digest_json({name: value for name, value in to_detail(row).items() if name not in _MOVING})


def is_intact(row: QuoteRow) -> bool:
    """Returns true if a version and its charges are unchanged since it was frozen."""
    known = from_json(row.document).get("focus_digest", "")
    found = "" if row.focus is None else _compute_text_digest(row.focus)
    return hmac.compare_digest(row.content_digest, compute_digest(row)) and hmac.compare_digest(known, found)
