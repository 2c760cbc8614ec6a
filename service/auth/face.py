"""Tenants, keys and ended sessions over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Path, Request, Response
from pydantic import MISSING

from service.audit.service import Call, Writes
from service.auth import repository, service
from service.auth.ending import Endings
from service.auth.errors import KeyNotFound, TenantNotFound
from service.auth.schemas import (
    ApiKeyInput,
    ApiKeyRotation,
    KeyId,
    SessionsOfPerson,
    TenantInput,
)
from service.auth.service import Keys
from service.kit.database.engine import Database
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.web import json_response
from service.schemas.base import ResourceId


class AuthFace:
    """Reads and writes of one database, as responses. ``on_change`` is called after each write."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        keys: Keys,
        tokens: PageTokens,
        endings: Endings,
        on_change: Callable[[], None],
    ) -> None:
        self._database = database
        self._writes = writes
        self._keys = keys
        self._tokens = tokens
        self._endings = endings
        self._on_change = on_change

    def list_keys(self, tenant_id: str, query: PageQuery) -> Response:
        """A page of the keys of a tenant."""
        after, filters = self._after(query, "api-keys", tenant_id)
        with self._database.reading() as session:
            rows = repository.keys_after(session, tenant_id, after, query.limit + 1)
            shown = [service.shown_key(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get_key(self, tenant_id: str, key_id: str) -> Response:
        """One key of a tenant."""
        with self._database.reading() as session:
            row = repository.key(session, tenant_id, key_id)
            if row is None:
                raise KeyNotFound
            return json_response(service.shown_key(row))

    def create_key(self, call: Call, body: ApiKeyInput) -> Response:
        """A new key."""
        sent = body.model_dump(mode="json")
        return self._write(call, sent, lambda session: self._keys.create(session, call.subject, body))

    def rotate_key(self, call: Call, key_id: str, body: ApiKeyRotation) -> Response:
        """The next secret of a key."""
        overlap, caller = timedelta(seconds=body.overlap_seconds), call.subject
        sent = body.model_dump(mode="json")
        return self._write(call, sent, lambda session: self._keys.rotate(session, caller, key_id, overlap))

    def retire_key(self, call: Call, key_id: str) -> Response:
        """The key with its newest secret only."""
        return self._write(call, None, lambda session: service.retire(session, call.subject, key_id))

    def revoke_key(self, call: Call, key_id: str) -> Response:
        """No working key any more."""
        return self._write(call, None, lambda session: service.revoke(session, call.subject, key_id))

    def list_tenants(self, query: PageQuery) -> Response:
        """A page of tenants."""
        after, filters = self._after(query, "tenants", "")
        with self._database.reading() as session:
            rows = repository.tenants_after(session, after, query.limit + 1)
            shown = [service.shown_tenant(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get_tenant(self, tenant_id: str) -> Response:
        """One tenant."""
        with self._database.reading() as session:
            row = repository.tenant(session, tenant_id)
            if row is None:
                raise TenantNotFound
            return json_response(service.shown_tenant(row))

    def create_tenant(self, call: Call, body: TenantInput) -> Response:
        """A new tenant."""
        sent = body.model_dump(mode="json")
        return self._write(call, sent, lambda session: service.create_tenant(session, body))

    def set_tenant_disabled(self, call: Call, tenant_id: str, *, disabled: bool) -> Response:
        """The tenant, shut out or let in again."""
        return self._write(
            call,
            None,
            lambda session: service.set_tenant_disabled(session, tenant_id, disabled=disabled),
        )

    def end_session(self, call: Call, session_id: str) -> Response:
        """The end of one session."""
        tenant_id = call.subject.tenant_id
        return self._write(call, None, lambda session: self._endings.end(session, tenant_id, session_id))

    def end_own_sessions(self, call: Call) -> Response:
        """The end of all sessions and tokens of the caller."""
        own = call.subject
        return self._write(
            call, own.id, lambda session: self._endings.end_sessions(session, own.tenant_id, own.id)
        )

    def end_person(self, call: Call, body: SessionsOfPerson) -> Response:
        """The end of all that a person of the caller's tenant acts by."""
        tenant_id = call.subject.tenant_id
        disabled = None if body.disabled is MISSING else body.disabled
        return self._write(
            call,
            body.model_dump(mode="json"),
            lambda session: self._endings.end_person(session, tenant_id, body.subject_id, disabled=disabled),
        )

    def _write(self, call: Call, sent: object, do: service.Write) -> Response:
        response = self._writes.run(call, sent, do)
        self._on_change()
        return response

    def _after(self, query: PageQuery, *filters: str) -> tuple[str, str]:
        canonical = json.dumps(filters)
        if not query.page_token:
            return "", canonical
        return self._tokens.decode(query.page_token, canonical)[0], canonical


def _face(request: Request) -> AuthFace:
    face: AuthFace = request.app.state.auth
    return face


Face = Annotated[AuthFace, Depends(_face)]
KeyPath = Annotated[KeyId, Path(description="Id of the key.")]
TenantPath = Annotated[ResourceId, Path(description="Id of the tenant.")]
