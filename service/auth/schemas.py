"""Requests and answers of tenants, API keys and session revocations."""

from typing import Annotated

from pydantic import MISSING, AwareDatetime, Field

from service.kit.http.pages import NextPageToken
from service.schemas.base import Instant, Integer, ResourceId, StrictModel, Text

Scope = Annotated[
    str,
    Field(max_length=80, pattern=r"^(\*|[a-z][a-z-]{0,38}):(\*|[a-z][a-z-]{0,38})$"),
]
"""`resource:action`. `*` stands for any, but never includes `tenants` and `metrics`."""

SubjectName = Annotated[
    str,
    Field(pattern=r"^(token|api_key|person):[\x21-\x7e]{1,255}$", max_length=270),
]
"""Kind and id of a subject: the `sub` of a token, the id of an API key, or a person who acts by links."""
KeyId = Annotated[str, Field(pattern=r"^[a-z0-9]{16}$", max_length=16)]
OverlapSeconds = Annotated[int, Field(ge=0, le=30 * 86400)]


class ApiKeyRequest(StrictModel):
    """A key to create."""

    name: Text
    """Purpose of the key."""
    scopes: Annotated[list[Scope], Field(max_length=50)]
    """Rights of the key. They cannot exceed the rights of its creator."""
    expires_at: Instant | MISSING = MISSING
    """Time at which the key expires. Defaults to the expiry of the key that creates it, and is never
    later."""
    tenant_id: ResourceId | MISSING = MISSING
    """Tenant of the key. A tenant other than the creator's needs `tenants:write`."""


class ApiKey(StrictModel):
    """An API key, without its secret."""

    id: KeyId
    tenant_id: ResourceId
    """Tenant that the key acts for."""
    name: Text
    scopes: Annotated[list[Scope], Field(max_length=50)]
    """Rights of the key."""
    version: Integer
    """Number of changes, the creation included."""
    created_at: AwareDatetime
    created_by: Text | MISSING = MISSING
    """Kind and id of the subject that created the key."""
    lineage: list[Text] = Field(default_factory=list)
    """Subjects that can act by the key, from its maker to the first. They and the key count as one
    subject."""
    expires_at: AwareDatetime | MISSING = MISSING
    """Time at which the key expires."""
    revoked_at: AwareDatetime | MISSING = MISSING
    """Time at which the key was revoked."""
    rotation_ends_at: AwareDatetime | MISSING = MISSING
    """Time until which the secret before the newest works."""
    last_used_at: AwareDatetime | MISSING = MISSING
    """Time of the last use of the key, to the minute."""


class IssuedApiKey(StrictModel):
    """A key and its secret. The secret is shown only in this answer and is not stored."""

    key: ApiKey
    secret: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """Secret that callers send as `Authorization: Bearer`. Absent from a repeated answer."""


class ApiKeyRotationRequest(StrictModel):
    """Overlap in which the old and the new secret both work."""

    overlap_seconds: OverlapSeconds = 86400
    """Seconds in which the old secret still works, to replace it in every caller."""


class ApiKeyPage(StrictModel):
    """A page of keys."""

    items: list[ApiKey]
    """Keys in order of id."""
    next_page_token: NextPageToken


class TenantRequest(StrictModel):
    """A tenant to create."""

    id: ResourceId
    name: Text


class Tenant(StrictModel):
    """A tenant."""

    id: ResourceId
    name: Text
    version: Integer
    """Number of changes, the creation included."""
    created_at: AwareDatetime
    disabled_at: AwareDatetime | MISSING = MISSING
    """Time from which the credentials of the tenant are refused."""


class TenantPage(StrictModel):
    """A page of tenants."""

    items: list[Tenant]
    """Tenants in order of id."""
    next_page_token: NextPageToken


class SessionRevocationRequest(StrictModel):
    """Person whose sessions, tokens and keys to end."""

    subject_id: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """The `sub` of the person at the issuer, or the verified identity that the service knows them by."""
    disabled: bool | MISSING = MISSING
    """Set to true to refuse the person until a request sends `false`. If left out, the present state
    stays."""


class SessionRevocation(StrictModel):
    """Result of ending every session, token and key of a person."""

    id: ResourceId
    """Id of the person's sessions in the audit, which does not name the person."""
    ended_at: AwareDatetime
    """Time up to which sessions that began and tokens that were issued have ended."""
    revoked_key_ids: list[KeyId] = Field(default_factory=list)
    """Keys that the person made or was handed, and keys that were made with them."""
