"""What the audit holds of bills.

Of a bill it holds the digest of its row and of the billing periods in which it counts; each period has the
digest of the charges that are kept of it, so that nobody has to read them again when a later bill takes its
place.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from typing import Any, Final

from sqlalchemy.orm import Session

from service.approvals.actuals import repository
from service.approvals.actuals.tables import ActualChargeRow, ActualsImportRow
from service.audit import service as audit
from service.audit.service import columns_of
from service.kit.database.engine import Reader

_COLUMNS: Final = tuple(ActualChargeRow.__table__.columns.keys())


def charges_digest(charges: Iterable[dict[str, Any]]) -> str:
    """Digest of charges, in the order of their numbers."""
    digest = sha256()
    for charge in charges:
        values = [_plain(charge[name]) for name in _COLUMNS]
        digest.update(json.dumps(values).encode() + b"\n")
    return digest.hexdigest()


def _plain(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def recorded(session: Session, row: ActualsImportRow) -> dict[str, Any]:
    """All that is stored of a bill, its charges as their digests."""
    periods = repository.periods_of(session, row.tenant_id, row.id)
    return {"import": columns_of(row), "periods": [columns_of(period) for period in periods]}


def unlike_recorded(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Bills that are not as they were recorded, or whose charges are not."""
    rows = repository.every(session, tenant_id)
    documents = ((row.id, recorded(session, row)) for row in rows)
    yield from audit.unlike_recorded(session, tenant_id, "actuals", documents)
    yield from ((f"actuals/{import_id}", "CHARGES_CHANGED") for import_id in _edited(session, tenant_id))


def _edited(session: Reader, tenant_id: str) -> list[str]:
    """Imports whose charges are others than their billing periods say."""
    said = {
        (period.import_id, period.starts_at): period.charges_sha256
        for period in repository.periods(session, tenant_id)
        if period.import_id
    }
    charges = repository.kept_charges(session, tenant_id)
    kept = dict.fromkeys(said, charges_digest([]))
    for place, rows in groupby(charges, lambda row: (row.import_id, row.billing_starts_at)):
        kept[place] = charges_digest(map(columns_of, rows))
    return sorted({import_id for import_id, _ in kept if _differs(import_id, said, kept)})


def _differs(
    import_id: str, said: dict[tuple[str, datetime], str], kept: dict[tuple[str, datetime], str]
) -> bool:
    return any(said.get(place) != digest for place, digest in kept.items() if place[0] == import_id)
