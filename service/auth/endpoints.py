"""Operations on API keys, tenants and sessions."""

from typing import Annotated

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.auth.face import Face, KeyPath, TenantPath
from service.auth.schemas import (
    ApiKey,
    ApiKeyInput,
    ApiKeyPage,
    ApiKeyRotation,
    EndedSessions,
    IssuedApiKey,
    SessionsOfPerson,
    Tenant,
    TenantInput,
    TenantPage,
)
from service.kit.http.pages import PageQuery
from service.kit.http.web import LOCATED, api_router

keys = api_router("/v1/api-keys", tag="api-keys")
tenants = api_router("/v1/tenants", tag="tenants")
sessions = api_router("/v1/sessions", tag="sessions")


@keys.get("", response_model=ApiKeyPage)
def list_api_keys(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's keys, without their secrets."""
    return face.list_keys(caller.tenant_id, query)


@keys.post("", status_code=201, response_model=IssuedApiKey, responses=LOCATED)
def create_api_key(face: Face, call: WriteCall, body: ApiKeyInput) -> Response:
    """Create a key that may do no more than its creator; its secret is shown this once."""
    return face.create_key(call, body)


@keys.get("/{id:name}", response_model=ApiKey)
def get_api_key(face: Face, caller: Caller, id: KeyPath) -> Response:
    """A key of the tenant, without its secret."""
    return face.get_key(caller.tenant_id, id)


@keys.post("/{id:name}:rotate", response_model=IssuedApiKey)
def rotate_api_key(face: Face, call: WriteCall, id: KeyPath, body: ApiKeyRotation) -> Response:
    """Give a key its next secret; the one before works on until the rotation ends or is retired.

    The caller must hold every scope of the key, and counts as one person with it from now on.
    """
    return face.rotate_key(call, id, body)


@keys.post("/{id:name}:retire", response_model=ApiKey)
def retire_api_key(face: Face, call: WriteCall, id: KeyPath) -> Response:
    """End the rotation of a key: only its newest secret works from now on."""
    return face.retire_key(call, id)


@keys.delete("/{id:name}", status_code=204)
def revoke_api_key(face: Face, call: WriteCall, id: KeyPath) -> Response:
    """Revoke a key and those made or rotated by it: they stop working within two seconds, everywhere."""
    return face.revoke_key(call, id)


@tenants.get("", response_model=TenantPage)
def list_tenants(face: Face, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenants of the service."""
    return face.list_tenants(query)


@tenants.post("", status_code=201, response_model=Tenant, responses=LOCATED)
def create_tenant(face: Face, call: WriteCall, body: TenantInput) -> Response:
    """Create a tenant; a key with its `tenant_id` is the way in."""
    return face.create_tenant(call, body)


@tenants.get("/{id:name}", response_model=Tenant)
def get_tenant(face: Face, id: TenantPath) -> Response:
    """A tenant."""
    return face.get_tenant(id)


@tenants.post("/{id:name}:disable", response_model=Tenant)
def disable_tenant(face: Face, call: WriteCall, id: TenantPath) -> Response:
    """Refuse every credential of a tenant from now on; nothing is deleted."""
    return face.set_tenant_disabled(call, id, disabled=True)


@tenants.post("/{id:name}:enable", response_model=Tenant)
def enable_tenant(face: Face, call: WriteCall, id: TenantPath) -> Response:
    """Take the credentials of a tenant again."""
    return face.set_tenant_disabled(call, id, disabled=False)


@sessions.post(":end", response_model=EndedSessions)
def end_sessions(face: Face, call: WriteCall, body: SessionsOfPerson) -> Response:
    """End every session, token and key of a person of the tenant, within two seconds, everywhere.

    Whoever is still signed in at the issuer can begin another session, unless they are disabled here too.
    """
    return face.end_person(call, body)
