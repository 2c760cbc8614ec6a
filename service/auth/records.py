"""Audit records of tenants, keys and ended sessions, and the register of tenants."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy.orm import Session

from service.audit.records import (
    MISSING,
    NOT_RECORDED,
    REGISTERED_LATER,
    Deviation,
    RecordedTable,
    has_chain,
    list_operation_resources,
    list_recorded_resources,
)
from service.audit.service import WriteOutcome
from service.auth import repository
from service.auth.tables import ApiKeyRow, EndedSessionRow, IdentityRow, PastKeyRow, TenantRow
from service.kit.database.engine import Reader
from service.kit.security.principals import SYSTEM_TENANT

REGISTER: Final = "register_tenant"
"""Operation at the first start of a version with a register, for each tenant that exists."""
_REGISTERED: Final = "registered-tenants"
_MOVES_UNDER_KEYS: Final = "rises with every change of a key or a session, which is recorded itself"

TENANTS: Final = RecordedTable(
    table=TenantRow,
    resource=lambda row: f"tenants/{row.tenant_id}",
    moving={"keys_revision": _MOVES_UNDER_KEYS},
)
KEYS: Final = RecordedTable(
    table=ApiKeyRow,
    resource=lambda row: f"api-keys/{row.id}",
    moving={"last_used_at": "is noted every half minute and shown; nothing is allowed by it"},
)
PAST_KEYS: Final = RecordedTable(table=PastKeyRow, resource=lambda row: f"past-api-keys/{row.id}")
IDENTITIES: Final = RecordedTable(table=IdentityRow, resource=lambda row: f"identities/{row.id}")
SESSIONS: Final = RecordedTable(table=EndedSessionRow, resource=lambda row: f"sessions/{row.id}")


def build_registration(tenant_id: str) -> WriteOutcome:
    """Returns a tenant's entry in the service's own chain, which reveals if the tenant's chain is removed."""
    resource = f"{_REGISTERED}/{tenant_id}"
    return WriteOutcome(tenant_id=SYSTEM_TENANT, resource=resource, after={"id": tenant_id})


def find_register_deviations(session: Reader, tenant_id: str) -> Iterator[Deviation]:
    """Yields deviations of the register from the tenants that exist. Only the service's own chain has it."""
    if tenant_id != SYSTEM_TENANT:
        return
    registered = list_recorded_resources(session, SYSTEM_TENANT, _REGISTERED)
    there = {f"{_REGISTERED}/{state.tenant_id}" for state in repository.list_tenant_states(session)}
    yield from ((resource, MISSING) for resource in sorted(registered - there))
    yield from ((resource, NOT_RECORDED) for resource in sorted(there - registered))
    for resource in list_operation_resources(session, SYSTEM_TENANT, REGISTER):
        yield resource, REGISTERED_LATER


def is_registering(session: Session) -> bool:
    """Returns true if the register of tenants exists."""
    return has_chain(session, SYSTEM_TENANT)
