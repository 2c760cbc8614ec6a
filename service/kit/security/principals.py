"""Who a request acts for, and what it may do.

A scope is ``resource:action``; either side may be ``*``. What belongs to the operator of the service and
not to one tenant must be granted by name: ``*`` does not reach it.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

SHIPPED_TENANT = "shipped"
"""Owner of the rows that come with the service; nobody can act for it."""
DEFAULT_TENANT = "default"
SYSTEM_TENANT = "system"
"""Owner of the service's own jobs; nobody can act for it."""
RESERVED_TENANTS = frozenset({SHIPPED_TENANT, SYSTEM_TENANT})

ADMIN_SCOPES = frozenset({"*:*"})
OPERATOR_RESOURCES = frozenset({"tenants", "metrics"})
OPERATOR_SCOPES = frozenset({"tenants:*", "metrics:*"})
NODE_SCOPES = frozenset({"leases:claim", "benchmark-results:report"})
"""All that a GPU node may ever do."""


class PrincipalKind(StrEnum):
    """How a subject proves who it is."""

    LOCAL = "local"
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105  # a kind, not a secret
    NODE = "node"
    PERSON = "person"
    """Somebody named in an approval policy, who acts by a link that was made for them."""
    SERVICE = "service"
    """The service itself, when a deadline passes."""


class Principal(NamedTuple):
    """Who a request acts for."""

    kind: PrincipalKind
    id: str
    tenant_id: str
    scopes: frozenset[str]
    person: str = ""
    """Who the issuer has verified it to be, in one spelling; empty where that is not known."""

    @property
    def name(self) -> str:
        """Kind and id, as policies and approvals name subjects."""
        return f"{self.kind}:{self.id}"

    def has_permission(self, permission: "Permission") -> bool:
        """Whether one of the subject's scopes grants ``permission``."""
        return not permission.granted_by.isdisjoint(self.scopes)


class Permission(NamedTuple):
    """What an operation asks for, and the scopes that grant it."""

    scope: str
    granted_by: frozenset[str]


def build_permission(resource: str, action: str) -> Permission:
    """The permission to do ``action`` on ``resource``."""
    scope = f"{resource}:{action}"
    granting = {scope, f"{resource}:*"}
    if resource not in OPERATOR_RESOURCES:
        granting |= {f"*:{action}", "*:*"}
    return Permission(scope, frozenset(granting))


def can_grant(held: frozenset[str], scope: str) -> bool:
    """Whether holders of ``held`` may hand ``scope`` on."""
    resource, _, action = scope.partition(":")
    return not build_permission(resource, action).granted_by.isdisjoint(held)


LOCAL = Principal(PrincipalKind.LOCAL, "local", DEFAULT_TENANT, ADMIN_SCOPES | OPERATOR_SCOPES)
"""Everybody who calls in open mode, and the command line."""


def list_ungrantable_scopes(held: frozenset[str], scopes: Iterable[str]) -> list[str]:
    """The scopes that holders of ``held`` may not hand on."""
    return [scope for scope in scopes if not can_grant(held, scope)]


def build_service_subject(tenant_id: str) -> Principal:
    """The service itself, acting for a tenant."""
    return Principal(PrincipalKind.SERVICE, "service", tenant_id, frozenset())
