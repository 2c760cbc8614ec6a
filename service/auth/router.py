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
"""Write after which every request is admitted by the changed credentials."""
KeyRules = Annotated[service.ApiKeys, from_state("keys")]
SessionEndings = Annotated[SessionRevocations, from_state("endings")]
KeyPath = Annotated[KeyId, Path(description="Id of the key.")]
TenantPath = Annotated[ResourceId, Path(description="Id of the tenant.")]


@keys.get("", summary="List API keys", response_model=ApiKeyPage)
def list_api_keys(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the tenant's API keys, without their secrets."""
    page = read.page(query, BY_ID, "api-keys")
    with read.session() as session:
        rows = repository.list_keys_after(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response([service.key_to_response(row) for row in rows]))


@keys.post("", summary="Create an API key", status_code=201, response_model=IssuedApiKey, responses=LOCATED)
def create_api_key(write: AuthWrite, rules: KeyRules, body: ApiKeyRequest) -> Response:
    """Creates a key with at most the rights of its creator. The secret is shown only in this answer."""
    return write.run(body, lambda session: rules.create(session, write.subject, body))


@keys.get("/{id:name}", summary="Get an API key", response_model=ApiKey)
def get_api_key(read: Read, id: KeyPath) -> Response:
    """Returns a key of the tenant, without its secret."""
    with read.session() as session:
        return json_response(service.get_key(session, read.tenant_id, id))


@keys.post("/{id:name}:rotate", summary="Rotate the secret of an API key", response_model=IssuedApiKey)
def rotate_api_key(write: AuthWrite, rules: KeyRules, id: KeyPath, body: ApiKeyRotationRequest) -> Response:
    """Issues the next secret of a key. The previous one works until the rotation ends or is retired.

    The caller must hold every scope of the key, and from then on counts as one person with it.
    """
    overlap = timedelta(seconds=body.overlap_seconds)
    return write.run(body, lambda session: rules.rotate(session, write.subject, id, overlap))


@keys.post("/{id:name}:retire", summary="Retire the previous secret of an API key", response_model=ApiKey)
def retire_api_key(write: AuthWrite, id: KeyPath) -> Response:
    """Ends the rotation of a key. Only its newest secret works from then on."""
    return write.run(None, lambda session: service.end_rotation(session, write.subject, id))


@keys.delete("/{id:name}", summary="Revoke an API key", status_code=204)
def revoke_api_key(write: AuthWrite, id: KeyPath) -> Response:
    """Revokes a key and the keys made or rotated by it. They stop working within two seconds, everywhere."""
    return write.run(None, lambda session: service.revoke_key(session, write.subject, id))


@tenants.get("", summary="List tenants", response_model=TenantPage)
def list_tenants(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the tenants of the service."""
    page = read.transactions.tokens.begin(query, BY_ID, "tenants", "")
    with read.session() as session:
        rows = repository.list_tenants_after(session, page.after, page.limit)
        return json_response(page.to_response([service.tenant_to_response(row) for row in rows]))


@tenants.post("", summary="Create a tenant", status_code=201, response_model=Tenant, responses=LOCATED)
def create_tenant(write: AuthWrite, body: TenantRequest) -> Response:
    """Creates a tenant. A key with its `tenant_id` gives access to it."""
    return write.run(body, lambda session: service.create_tenant(session, body))


@tenants.get("/{id:name}", summary="Get a tenant", response_model=Tenant)
def get_tenant(read: Read, id: TenantPath) -> Response:
    """Returns a tenant."""
    with read.session() as session:
        return json_response(service.get_tenant(session, id))


@tenants.post("/{id:name}:disable", summary="Disable a tenant", response_model=Tenant)
def disable_tenant(write: AuthWrite, id: TenantPath) -> Response:
    """Disables a tenant: every credential of it is refused. Nothing is deleted."""
    return write.run(None, lambda session: service.set_tenant_disabled(session, id, disabled=True))


@tenants.post("/{id:name}:enable", summary="Enable a tenant", response_model=Tenant)
def enable_tenant(write: AuthWrite, id: TenantPath) -> Response:
    """Enables a tenant: its credentials are accepted again."""
    return write.run(None, lambda session: service.set_tenant_disabled(session, id, disabled=False))


@sessions.post(":end", summary="End every session and key of a person", response_model=SessionRevocation)
def end_sessions(write: AuthWrite, endings: SessionEndings, body: SessionRevocationRequest) -> Response:
    """Ends every session, token and key of a person of the tenant, within two seconds, everywhere.

    A person who is still signed in at the issuer can begin another session, unless they are disabled here
    too.
    """
    disabled = None if body.disabled is MISSING else body.disabled
    return write.run(
        body,
        lambda session: endings.end_person(session, write.tenant_id, body.subject_id, disabled=disabled),
    )
