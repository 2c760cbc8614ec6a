"""Shapes of tenants, API keys and ended sessions."""

from typing import Annotated

from pydantic import MISSING, AwareDatetime, Field

from service.kit.http.pages import NextPageToken
from service.schemas.base import Instant, Integer, ResourceId, StrictModel, Text

Scope = Annotated[
    str,
    Field(max_length=80, pattern=r"^(\*|[a-z][a-z-]{0,38}):(\*|[a-z][a-z-]{0,38})$"),
]
"""`resource:action`; `*` stands for any, but never reaches `tenants` and `metrics`."""

KeyId = Annotated[str, Field(pattern=r"^[a-z0-9]{16}$", max_length=16)]
OverlapSeconds = Annotated[int, Field(ge=0, le=30 * 86400)]


class ApiKeyRequest(StrictModel):
    """A key to create."""

    name: Text
    """What the key is for."""
    scopes: Annotated[list[Scope], Field(max_length=50)]
    """What the key may do; no more than its creator may."""
    expires_at: Instant | MISSING = MISSING
    """When the key stops working: with the key that it is made with if it is left out, and never later."""
    tenant_id: ResourceId | MISSING = MISSING
    """Tenant of the key; another than the creator's needs `tenants:write`."""


class ApiKey(StrictModel):
    """A key, without its secret."""

    id: KeyId
    tenant_id: ResourceId
    """Tenant that the key acts for."""
    name: Text
    scopes: Annotated[list[Scope], Field(max_length=50)]
    """What the key may do."""
    version: Integer
    """Number of changes, the creation included."""
    created_at: AwareDatetime
    created_by: Text | MISSING = MISSING
    """Kind and id of the subject that made it."""
    lineage: list[Text] = Field(default_factory=list)
    """Subjects that can make or made its makers, from its maker to the first: with it they count as one."""
    expires_at: AwareDatetime | MISSING = MISSING
    """When the key stops working."""
    revoked_at: AwareDatetime | MISSING = MISSING
    """Since when the key does not work."""
    rotation_ends_at: AwareDatetime | MISSING = MISSING
    """Until when the secret before the newest works."""
    last_used_at: AwareDatetime | MISSING = MISSING
    """When the key was last used, to the minute."""


class IssuedApiKey(StrictModel):
    """A key and its secret, which is shown this once and kept nowhere."""

    key: ApiKey
    secret: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """What callers send as `Authorization: Bearer`; absent from a repeated answer."""


class ApiKeyRotationRequest(StrictModel):
    """How long the old and the new secret both work."""

    overlap_seconds: OverlapSeconds = 86400
    """Time to bring the new secret to every caller."""


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
    """Since when the credentials of the tenant are refused."""


class TenantPage(StrictModel):
    """A page of tenants."""

    items: list[Tenant]
    """Tenants in order of id."""
    next_page_token: NextPageToken


class SessionRevocationRequest(StrictModel):
    """Whose sessions, tokens and keys are to end."""

    subject_id: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """The `sub` of the person at the issuer, or the verified identity that the service knows them by."""
    disabled: bool | MISSING = MISSING
    """`true` refuses the person until it is asked again with `false`; left out, that stays as it is."""


class SessionRevocation(StrictModel):
    """That everything that a person could act by has ended."""

    id: ResourceId
    """What the audit calls the person's sessions, without naming the person."""
    ended_at: AwareDatetime
    """Sessions that began and tokens that were issued until then have ended."""
    revoked_key_ids: list[KeyId] = Field(default_factory=list)
    """Keys that the person made or was handed, and those that were made with them."""
