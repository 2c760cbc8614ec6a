"""The rules of cost centres."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from service.approvals.cost_centers import repository
from service.approvals.cost_centers.errors import CostCenterExists, CostCenterInUse, CostCenterNotFound
from service.approvals.cost_centers.schemas import CostCenterInput
from service.approvals.cost_centers.tables import CostCenterRow
from service.audit.service import Change, columns_of
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.kit.http.versions import check_match, etag

_MEMBERS = (*CostCenterInput.model_fields, "version", "created_at")


def shown(row: CostCenterRow) -> dict[str, Any]:
    """A cost centre as callers see it."""
    return {name: value for name in _MEMBERS if (value := getattr(row, name)) is not None}


def is_known(session: Reader | Writer, tenant_id: str, center_id: str) -> bool:
    """Whether a tenant has a cost centre of this id."""
    return repository.get(session, tenant_id, center_id) is not None


def get(session: Reader, tenant_id: str, center_id: str) -> dict[str, Any]:
    """One cost centre."""
    row = repository.get(session, tenant_id, center_id)
    if row is None:
        raise CostCenterNotFound
    return shown(row)


def create(session: Writer, tenant_id: str, body: CostCenterInput) -> Change:
    """Store a new cost centre."""
    if repository.get(session, tenant_id, body.id) is not None:
        raise CostCenterExists("", FieldError("/id", "TAKEN", "a cost centre of this id exists"))
    row = CostCenterRow(tenant_id=tenant_id, version=1, created_at=now(), **body.model_dump(mode="json"))
    _check_apart(session, row)
    session.add(row)
    session.flush()
    path, document = f"cost-centers/{row.id}", shown(row)
    headers = {"ETag": etag(row.version), "Location": f"/v1/{path}"}
    return Change(resource=path, status=201, body=document, headers=headers, after=columns_of(row))


def change(session: Writer, tenant_id: str, center_id: str, patch: dict[str, Any], if_match: str) -> Change:
    """Store members of ``patch``; charges that are imported already stay where they are."""
    row = _matched(session, tenant_id, center_id, if_match)
    before, known = columns_of(row), shown(row)
    sent = {name: known[name] for name in CostCenterInput.model_fields if name in known} | patch
    merged = {name: value for name, value in sent.items() if value is not None}
    body = CostCenterInput.model_validate_json(json.dumps(merged)).model_dump(mode="json")
    for name in CostCenterInput.model_fields:
        setattr(row, name, body.get(name))
    row.version += 1
    _check_apart(session, row)
    session.flush()
    return Change(
        resource=f"cost-centers/{row.id}",
        body=shown(row),
        headers={"ETag": etag(row.version)},
        before=before,
        after=columns_of(row),
    )


def delete(
    session: Writer, tenant_id: str, center_id: str, if_match: str, is_used: Callable[[str], bool]
) -> Change:
    """No such cost centre any more; ``is_used`` says whether something refers to it."""
    row = _matched(session, tenant_id, center_id, if_match)
    if is_used(center_id):
        raise CostCenterInUse
    before = columns_of(row)
    session.delete(row)
    return Change(resource=f"cost-centers/{center_id}", status=204, before=before)


def recorded(session: Reader, tenant_id: str) -> Iterator[tuple[str, object]]:
    """Every cost centre as its last event has to say it is, by id."""
    return ((row.id, columns_of(row)) for row in repository.every(session, tenant_id))


def _matched(session: Writer, tenant_id: str, center_id: str, if_match: str) -> CostCenterRow:
    row = repository.locked(session, tenant_id, center_id)
    if row is None:
        raise CostCenterNotFound
    check_match(if_match, etag(row.version))
    return row


def _check_apart(session: Writer, row: CostCenterRow) -> None:
    """An account or a tag is of one cost centre."""
    with session.no_autoflush:
        others = [other for other in repository.every(session, row.tenant_id) if other.id != row.id]
    for member in ("accounts", "tags"):
        taken = [entry for other in others for entry in getattr(other, member)]
        if any(entry in taken for entry in getattr(row, member)):
            raise CostCenterExists("", FieldError(f"/{member}", "TAKEN", "it belongs to another one"))
