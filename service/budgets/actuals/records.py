"""Audit documents of bills.

The document of a bill has the digest of its row and of the billing periods in which it counts. Each period
has the digest of its charges, so that they need not be read again when a later bill replaces them.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from typing import Any, Final

from sqlalchemy.orm import Session

from service.audit import service as audit
from service.audit.service import to_audit_columns
from service.budgets.actuals import repository
from service.budgets.actuals.tables import ActualChargeRow, ActualsImportRow
from service.kit.database.engine import Reader

_COLUMNS: Final = tuple(ActualChargeRow.__table__.columns.keys())


def compute_charges_digest(charges: Iterable[dict[str, Any]]) -> str:
    """Returns the digest of charges in the order of their numbers."""
    digest = sha256()
    for charge in charges:
        values = [_to_plain_value(charge[name]) for name in _COLUMNS]
        digest.update(json.dumps(values).encode() + b"\n")
    return digest.hexdigest()


def _to_plain_value(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def to_audit_document(session: Session, row: ActualsImportRow) -> dict[str, Any]:
    """Returns all stored columns of a bill, with digests of its charges."""
    periods = repository.list_import_periods(session, row.tenant_id, row.id)
    return {"import": to_audit_columns(row), "periods": [to_audit_columns(period) for period in periods]}


def find_deviations(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Yields bills that differ from the audit, or whose charges do."""
    rows = repository.list_all_imports(session, tenant_id)
    documents = ((row.id, to_audit_document(session, row)) for row in rows)
    yield from audit.find_deviations(session, tenant_id, "actuals", documents)
    yield from (
        (f"actuals/{import_id}", "CHARGES_CHANGED") for import_id in _find_edited_imports(session, tenant_id)
    )


def _find_edited_imports(session: Reader, tenant_id: str) -> list[str]:
    """Returns the imports whose charges differ from the digests of their billing periods."""
    said = {
        (period.import_id, period.starts_at): period.charges_sha256
        for period in repository.list_periods(session, tenant_id)
        if period.import_id
    }
    charges = repository.list_all_charges(session, tenant_id)
    kept = dict.fromkeys(said, compute_charges_digest([]))
    for place, rows in groupby(charges, lambda row: (row.import_id, row.billing_starts_at)):
        kept[place] = compute_charges_digest(map(to_audit_columns, rows))
    return sorted({import_id for import_id, _ in kept if _is_different(import_id, said, kept)})


def _is_different(
    import_id: str, said: dict[tuple[str, datetime], str], kept: dict[tuple[str, datetime], str]
) -> bool:
    return any(said.get(place) != digest for place, digest in kept.items() if place[0] == import_id)
