"""What an operator does at the command line, with access to the database and the secret."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.app.backup import new_file
from service.app.key_file import KeyFile, KeyFileRefused
from service.app.settings import Settings
from service.app.storage import check
from service.app.tenants import lines, redact
from service.audit.chain import REDACTION
from service.audit.service import Call, Change, Writes
from service.audit.verification import Head, Verification, Verifier
from service.auth import repository
from service.auth import service as auth
from service.auth.errors import TenantNotFound
from service.auth.schemas import ApiKeyInput, TenantInput
from service.auth.service import Keys, Write
from service.catalog.offers import importing
from service.catalog.offers.schemas import ImportedOffers, PriceList
from service.kit.database.engine import Database, Writer
from service.kit.security.credentials import digest_of, id_of
from service.kit.security.subjects import ADMIN_SCOPES, DEFAULT_TENANT, LOCAL, OPERATOR_SCOPES

if TYPE_CHECKING:
    from service.evidence.imports.schemas import EvidenceImport

_REQUEST = "command line"
NOTICED_SECONDS = 2.0
"""After which every process refuses the credentials of a tenant that was disabled."""


class KeyExists(Exception):  # an answer, not an error
    """There is a key already, where only the first was asked for."""


class _Drafted(Exception):  # an answer, not an error
    """The key that was asked for was made by a run that was interrupted."""


class Operator:
    """The operator of one database, whose schema must be current."""

    def __init__(self, settings: Settings) -> None:
        self._database = Database(settings.database)
        check(self._database)
        keyring = settings.keyring
        self._writes = Writes(self._database, keyring)
        self._keys = Keys.of(keyring)
        auth.settle(self._database, keyring, self._writes)

    def create_key(
        self, name: str, tenant_id: str, scopes: list[str], *, admin: bool, first_only: bool = False
    ) -> str:
        """A new key, as text; with ``first_only`` there must be none yet."""
        body = _asked_key(name, tenant_id, scopes, admin=admin)

        def do(session: Writer) -> Change:
            self._lock_keys(session, first_only=first_only)
            return self._keys.create(session, LOCAL, body)

        return str(self._run("create_api_key", do)["secret"])

    def create_key_file(
        self,
        file: KeyFile,
        name: str,
        tenant_id: str,
        scopes: list[str],
        *,
        admin: bool,
        first_only: bool = False,
    ) -> None:
        """Write a new key to a new file; what an interrupted run has begun is finished."""
        body = _asked_key(name, tenant_id, scopes, admin=admin)

        def do(session: Writer) -> Change:
            self._lock_keys(session, first_only=first_only, drafted=(file, body))
            change = self._keys.create(session, LOCAL, body)
            file.draft(change.once["secret"])
            return change

        with suppress(_Drafted):
            self._run("create_api_key", do)
        file.finish()

    def _lock_keys(
        self, session: Writer, *, first_only: bool, drafted: tuple[KeyFile, ApiKeyInput] | None = None
    ) -> None:
        """Have others wait who make keys at the command line, and see what those before have made."""
        repository.locked_tenant(session, DEFAULT_TENANT)
        if drafted is not None and self._lives(session, *drafted):
            raise _Drafted
        if first_only and repository.has_keys(session):
            raise KeyExists

    def _lives(self, session: Writer, file: KeyFile, body: ApiKeyInput) -> bool:
        """Whether the draft of a file holds a key that works; it must be the one that is asked for."""
        secret = file.drafted()
        row = repository.live_key(session, id_of(secret) or "")
        if row is None or row.digest != digest_of(secret, self._keys.digest_key):
            return False
        if (row.tenant_id, row.scopes) != (body.tenant_id, sorted(set(body.scopes))):
            raise KeyFileRefused(f"an interrupted run left another key beside {file.path}: revoke {row.id}")
        return True

    def revoke_key(self, key_id: str, tenant_id: str) -> None:
        """Let a key work no more."""
        caller = LOCAL._replace(tenant_id=tenant_id)
        self._run("revoke_api_key", lambda session: auth.revoke(session, caller, key_id))

    def create_tenant(self, tenant_id: str, name: str) -> None:
        """A new tenant."""
        body = TenantInput(id=tenant_id, name=name)
        self._run("create_tenant", lambda session: auth.create_tenant(session, body))

    def export_tenant(self, tenant_id: str, path: Path) -> None:
        """Write every row of a tenant to a new file, as it is at one instant."""
        with self._database.reading() as session:
            if repository.tenant(session, tenant_id) is None:
                raise TenantNotFound
            with new_file(path) as unfinished, unfinished.open("wb") as file:
                file.writelines(lines(session, tenant_id))

    def redact_tenant(self, tenant_id: str) -> None:
        """Close a tenant, wait until nobody writes for it any more, and delete what it has."""
        self._run(
            "disable_tenant", lambda session: auth.set_tenant_disabled(session, tenant_id, disabled=True)
        )
        time.sleep(NOTICED_SECONDS)
        self._run(REDACTION, lambda session: redact(session, tenant_id))

    def import_offers(self, body: PriceList, content: str, tenant_id: str) -> ImportedOffers:
        """Create or version the offers of a price list."""
        with self._database.reading() as session:
            if repository.tenant(session, tenant_id) is None:
                raise TenantNotFound
            accelerators = importing.known_accelerators(session, tenant_id)
        listed = importing.read_list(body, content, accelerators)

        def do(session: Writer) -> Change:
            imported = importing.store_list(session, tenant_id, body, listed)
            told = importing.answer(listed, imported)
            return Change(resource="offers", body=told, after=told, tenant_id=tenant_id)

        told: ImportedOffers = self._run("import_offers", do)  # type: ignore[assignment]
        return told

    def import_evidence(
        self, body: "EvidenceImport", tenant_id: str, *, validate_only: bool
    ) -> dict[str, Any]:
        """Count the measurements of a file, or say only what would count."""
        from service.estimates.service import ESTIMATES  # noqa: PLC0415  # other commands start faster
        from service.evidence.imports import service as evidence  # noqa: PLC0415
        from service.evidence.snapshot import SnapshotStore  # noqa: PLC0415

        with self._database.reading() as session:
            if repository.tenant(session, tenant_id) is None:
                raise TenantNotFound
        snapshots = SnapshotStore(self._database)
        snapshots.refresh()
        estimators = {name: estimate.estimator for name, estimate in ESTIMATES.items()}
        outcome = evidence.read(body, snapshots.current(tenant_id), estimators)

        def do(session: Writer) -> Change:
            return replace(evidence.store(session, tenant_id, body, outcome), tenant_id=tenant_id)

        return self._run("import_evidence", do, validate_only=validate_only)

    def verify_audit(self, expected: Sequence[Head] = ()) -> list[Verification]:
        """Whether the record of each tenant holds, and reaches the heads that were exported."""
        from service.app.recorded import HELD  # noqa: PLC0415  # other commands start faster

        with self._database.reading() as session:
            tenants = [state.tenant_id for state in repository.tenant_states(session)]
            return Verifier(self._writes, HELD).all(session, tenants, expected)

    def _run(self, operation: str, do: Write, *, validate_only: bool = False) -> dict[str, Any]:
        subject = LOCAL._replace(id="operator")
        call = Call(subject, operation, "", _REQUEST, validate_only=validate_only)
        body = self._writes.run(call, None, do).body
        answer: dict[str, Any] = json.loads(bytes(body)) if body else {}
        return answer


def _asked_key(name: str, tenant_id: str, scopes: list[str], *, admin: bool) -> ApiKeyInput:
    """A key as it is asked for, by an administrator with every scope."""
    granted = sorted(ADMIN_SCOPES | OPERATOR_SCOPES) if admin else scopes
    asked = {"name": name, "tenant_id": tenant_id, "scopes": granted}
    return ApiKeyInput.model_validate_json(json.dumps(asked))
