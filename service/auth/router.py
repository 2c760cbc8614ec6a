"""Operations on API keys, tenants and sessions."""

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import MISSING

from service.audit.service import Read, WriteRequest, write_from
from service.auth import repository, service
from service.auth.schemas import (
    ApiKey,
    ApiKeyPage,
    ApiKeyRequest,
    ApiKeyRotationRequest,
    IssuedApiKey,
    KeyId,
    SessionRevocation,
    SessionRevocationRequest,
    Tenant,
    TenantPage,
    TenantRequest,
)
from service.auth.session_revocation import SessionRevocations
from service.kit.http.pages import BY_ID, PageQuery
from service.kit.http.web import LOCATED, api_router, from_state, json_response
from service.schemas.base import ResourceId

keys = api_router("/v1/api-keys", tag="api-keys")
tenants = api_router("/v1/tenants", tag="tenants")
sessions = api_router("/v1/sessions", tag="sessions")
AuthWrite = Annotated[WriteRequest, write_from("auth_transactions")]
"""After it every request is admitted by what it has changed."""
KeyRules = Annotated[service.ApiKeys, from_state("keys")]
SessionEndings = Annotated[SessionRevocations, from_state("endings")]
KeyPath = Annotated[KeyId, Path(description="Id of the key.")]
TenantPath = Annotated[ResourceId, Path(description="Id of the tenant.")]


@keys.get("", response_model=ApiKeyPage)
def list_api_keys(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's keys, without their secrets."""
    page = read.page(query, BY_ID, "api-keys")
    with read.session() as session:
        rows = repository.list_keys_after(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response([service.key_to_response(row) for row in rows]))


@keys.post("", status_code=201, response_model=IssuedApiKey, responses=LOCATED)
def create_api_key(write: AuthWrite, rules: KeyRules, body: ApiKeyRequest) -> Response:
    """Create a key that may do no more than its creator; its secret is shown this once."""
    return write.run(body, lambda session: rules.create(session, write.subject, body))


@keys.get("/{id:name}", response_model=ApiKey)
def get_api_key(read: Read, id: KeyPath) -> Response:
    """A key of the tenant, without its secret."""
    with read.session() as session:
        return json_response(service.get_key(session, read.tenant_id, id))


@keys.post("/{id:name}:rotate", response_model=IssuedApiKey)
def rotate_api_key(write: AuthWrite, rules: KeyRules, id: KeyPath, body: ApiKeyRotationRequest) -> Response:
    """Give a key its next secret; the one before works on until the rotation ends or is retired.

    The caller must hold every scope of the key, and counts as one person with it from now on.
    """
    overlap = timedelta(seconds=body.overlap_seconds)
    return write.run(body, lambda session: rules.rotate(session, write.subject, id, overlap))


@keys.post("/{id:name}:retire", response_model=ApiKey)
def retire_api_key(write: AuthWrite, id: KeyPath) -> Response:
    """End the rotation of a key: only its newest secret works from now on."""
    return write.run(None, lambda session: service.end_rotation(session, write.subject, id))


@keys.delete("/{id:name}", status_code=204)
def revoke_api_key(write: AuthWrite, id: KeyPath) -> Response:
    """Revoke a key and those made or rotated by it: they stop working within two seconds, everywhere."""
    return write.run(None, lambda session: service.revoke_key(session, write.subject, id))


@tenants.get("", response_model=TenantPage)
def list_tenants(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenants of the service."""
    page = read.transactions.tokens.begin(query, BY_ID, "tenants", "")
    with read.session() as session:
        rows = repository.list_tenants_after(session, page.after, page.limit)
        return json_response(page.to_response([service.tenant_to_response(row) for row in rows]))


@tenants.post("", status_code=201, response_model=Tenant, responses=LOCATED)
def create_tenant(write: AuthWrite, body: TenantRequest) -> Response:
    """Create a tenant; a key with its `tenant_id` is the way in."""
    return write.run(body, lambda session: service.create_tenant(session, body))


@tenants.get("/{id:name}", response_model=Tenant)
def get_tenant(read: Read, id: TenantPath) -> Response:
    """A tenant."""
    with read.session() as session:
        return json_response(service.get_tenant(session, id))


@tenants.post("/{id:name}:disable", response_model=Tenant)
def disable_tenant(write: AuthWrite, id: TenantPath) -> Response:
    """Refuse every credential of a tenant from now on; nothing is deleted."""
    return write.run(None, lambda session: service.set_tenant_disabled(session, id, disabled=True))


@tenants.post("/{id:name}:enable", response_model=Tenant)
def enable_tenant(write: AuthWrite, id: TenantPath) -> Response:
    """Take the credentials of a tenant again."""
    return write.run(None, lambda session: service.set_tenant_disabled(session, id, disabled=False))


@sessions.post(":end", response_model=SessionRevocation)
def end_sessions(write: AuthWrite, endings: SessionEndings, body: SessionRevocationRequest) -> Response:
    """End every session, token and key of a person of the tenant, within two seconds, everywhere.

    Whoever is still signed in at the issuer can begin another session, unless they are disabled here too.
    """
    disabled = None if body.disabled is MISSING else body.disabled
    return write.run(
        body,
        lambda session: endings.end_person(session, write.tenant_id, body.subject_id, disabled=disabled),
    )
