"""Subjects of requests, their scopes and the permissions of operations.

A scope is ``resource:action``; either side may be ``*``. Resources that belong to the operator of the service
and not to one tenant must be granted by name: ``*`` does not include them.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

SHIPPED_TENANT = "shipped"
"""Owner of the rows that ship with the service; nobody can act for it."""
DEFAULT_TENANT = "default"
SYSTEM_TENANT = "system"
"""Owner of the service's own jobs; nobody can act for it."""
RESERVED_TENANTS = frozenset({SHIPPED_TENANT, SYSTEM_TENANT})

ADMIN_SCOPES = frozenset({"*:*"})
OPERATOR_RESOURCES = frozenset({"tenants", "metrics"})
OPERATOR_SCOPES = frozenset({"tenants:*", "metrics:*"})
NODE_SCOPES = frozenset({"leases:claim", "benchmark-results:report"})
"""The only scopes that a GPU node may have."""


class PrincipalKind(StrEnum):
    """Kind of a subject, by the way in which it proves its identity."""

    LOCAL = "local"
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105  # a kind, not a secret
    NODE = "node"
    PERSON = "person"
    """A person named in an approval policy, who acts by a link that was made for them."""
    SERVICE = "service"
    """The service itself, when a deadline passes."""


class Principal(NamedTuple):
    """The subject that a request acts for."""

    kind: PrincipalKind
    id: str
    tenant_id: str
    scopes: frozenset[str]
    person: str = ""
    """Identity that the issuer has verified, in one spelling; empty if it is not known."""

    @property
    def name(self) -> str:
        """Kind and id, as policies and approvals name subjects."""
        return f"{self.kind}:{self.id}"

    def has_permission(self, permission: "Permission") -> bool:
        """Returns true if one of the subject's scopes grants ``permission``."""
        return not permission.granted_by.isdisjoint(self.scopes)


class Permission(NamedTuple):
    """The scope that an operation needs, and the scopes that grant it."""

    scope: str
    granted_by: frozenset[str]


def build_permission(resource: str, action: str) -> Permission:
    """Returns the permission to do ``action`` on ``resource``."""
    scope = f"{resource}:{action}"
    granting = {scope, f"{resource}:*"}
    if resource not in OPERATOR_RESOURCES:
        granting |= {f"*:{action}", "*:*"}
    return Permission(scope, frozenset(granting))


def can_grant(held: frozenset[str], scope: str) -> bool:
    """Returns true if holders of ``held`` may grant ``scope`` to others."""
    resource, _, action = scope.partition(":")
    return not build_permission(resource, action).granted_by.isdisjoint(held)


LOCAL = Principal(PrincipalKind.LOCAL, "local", DEFAULT_TENANT, ADMIN_SCOPES | OPERATOR_SCOPES)
"""Every caller in open mode, and the command line."""


def list_ungrantable_scopes(held: frozenset[str], scopes: Iterable[str]) -> list[str]:
    """Returns the scopes that holders of ``held`` may not grant to others."""
    return [scope for scope in scopes if not can_grant(held, scope)]


def build_service_subject(tenant_id: str) -> Principal:
    """Returns the service itself as a subject that acts for a tenant."""
    return Principal(PrincipalKind.SERVICE, "service", tenant_id, frozenset())
