"""Rules of cost centres."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy.orm import Session

from service.audit.service import WriteOutcome, to_audit_columns
from service.cost_centers import repository
from service.cost_centers.errors import CostCenterExists, CostCenterInUse, CostCenterNotFound
from service.cost_centers.schemas import CostCenterRequest
from service.cost_centers.tables import CostCenterRow
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.kit.http.versions import build_etag, check_version_match

UsageCheck = Callable[[Writer, str, str], bool]
"""Returns true if a tenant's cost centre, by its id, may not be deleted."""
_MEMBERS = (*CostCenterRequest.model_fields, "version", "created_at")


def to_response(row: CostCenterRow) -> dict[str, Any]:
    """Returns the representation of a cost centre."""
    return {name: value for name in _MEMBERS if (value := getattr(row, name)) is not None}


def is_known(session: Session, tenant_id: str, center_id: str) -> bool:
    """Returns true if a tenant has a cost centre with this id."""
    return repository.get_cost_center(session, tenant_id, center_id) is not None


def find_name(session: Session, tenant_id: str, center_id: str) -> str | None:
    """Returns the name of a cost centre, or None if there is none with this id."""
    row = repository.get_cost_center(session, tenant_id, center_id)
    return None if row is None else row.name


def lock_cost_center(session: Writer, tenant_id: str, center_id: str) -> bool:
    """Locks a cost centre until the transaction ends. Returns false if there is none with this id."""
    return repository.lock_cost_center(session, tenant_id, center_id) is not None


def list_cost_centers(session: Reader, tenant_id: str) -> list[dict[str, Any]]:
    """Returns all cost centres of a tenant, in order of id."""
    return [to_response(row) for row in repository.list_all_cost_centers(session, tenant_id)]


def get_cost_center(session: Reader, tenant_id: str, center_id: str) -> dict[str, Any]:
    """Returns one cost centre."""
    row = repository.get_cost_center(session, tenant_id, center_id)
    if row is None:
        raise CostCenterNotFound
    return to_response(row)


def create_cost_center(session: Writer, tenant_id: str, body: CostCenterRequest) -> WriteOutcome:
    """Stores a new cost centre."""
    if repository.get_cost_center(session, tenant_id, body.id) is not None:
        raise CostCenterExists("", FieldError("/id", "TAKEN", "a cost centre with this id exists"))
    row = CostCenterRow(tenant_id=tenant_id, version=1, created_at=now(), **body.model_dump(mode="json"))
    _check_unique_matches(session, row)
    session.add(row)
    session.flush()
    path, document = f"cost-centers/{row.id}", to_response(row)
    headers = {"ETag": build_etag(row.version), "Location": f"/v1/{path}"}
    return WriteOutcome(
        resource=path, status=201, body=document, headers=headers, after=to_audit_columns(row)
    )


def change_cost_center(
    session: Writer, tenant_id: str, center_id: str, patch: dict[str, Any], if_match: str
) -> WriteOutcome:
    """Stores members of ``patch``. Imported charges keep their cost centre."""
    row = _lock_matching_row(session, tenant_id, center_id, if_match)
    before, known = to_audit_columns(row), to_response(row)
    sent = {name: known[name] for name in CostCenterRequest.model_fields if name in known} | patch
    merged = {name: value for name, value in sent.items() if value is not None}
    body = CostCenterRequest.model_validate_json(json.dumps(merged)).model_dump(mode="json")
    for name in CostCenterRequest.model_fields:
        setattr(row, name, body.get(name))
    row.version += 1
    _check_unique_matches(session, row)
    session.flush()
    return WriteOutcome(
        resource=f"cost-centers/{row.id}",
        body=to_response(row),
        headers={"ETag": build_etag(row.version)},
        before=before,
        after=to_audit_columns(row),
    )


def delete_cost_center(
    session: Writer, tenant_id: str, center_id: str, if_match: str, is_used: UsageCheck
) -> WriteOutcome:
    """Deletes a cost centre, unless ``is_used`` returns true for it."""
    row = _lock_matching_row(session, tenant_id, center_id, if_match)
    if is_used(session, tenant_id, center_id):
        raise CostCenterInUse
    before = to_audit_columns(row)
    session.delete(row)
    return WriteOutcome(resource=f"cost-centers/{center_id}", status=204, before=before)


def list_audit_documents(session: Reader, tenant_id: str) -> Iterator[tuple[str, object]]:
    """Yields the state of every cost centre for comparison with its last audit event, by id."""
    return ((row.id, to_audit_columns(row)) for row in repository.list_all_cost_centers(session, tenant_id))


def _lock_matching_row(session: Writer, tenant_id: str, center_id: str, if_match: str) -> CostCenterRow:
    row = repository.lock_cost_center(session, tenant_id, center_id)
    if row is None:
        raise CostCenterNotFound
    check_version_match(if_match, build_etag(row.version))
    return row


def _check_unique_matches(session: Writer, row: CostCenterRow) -> None:
    """Refuses an account or tag of another cost centre."""
    with session.no_autoflush:
        others = [
            other for other in repository.list_all_cost_centers(session, row.tenant_id) if other.id != row.id
        ]
    for member in ("accounts", "tags"):
        taken = [entry for other in others for entry in getattr(other, member)]
        if any(entry in taken for entry in getattr(row, member)):
            raise CostCenterExists("", FieldError(f"/{member}", "TAKEN", "it belongs to another cost centre"))
