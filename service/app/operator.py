"""Operations of the command line with access to the database and the secret."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.app import price_folder
from service.app.backup import create_new_file
from service.app.key_file import KeyFile, KeyFileRefused
from service.app.settings import Settings
from service.app.storage import check_schema
from service.app.tenants import erase_tenant, export_lines
from service.audit.chain import REDACTION
from service.audit.service import WriteContext, WriteOutcome, Writes
from service.audit.verification import ChainHead, Verification, Verifier
from service.auth import repository
from service.auth import service as auth
from service.auth.errors import TenantNotFound
from service.auth.schemas import ApiKeyRequest, TenantRequest
from service.auth.service import ApiKeys, KeyWrite
from service.catalog.imports import store_import
from service.catalog.offers import importing
from service.catalog.offers.schemas import ImportedOffers, PriceList
from service.kit.database.engine import Database, Writer
from service.kit.security.credentials import digest_credential, parse_id
from service.kit.security.principals import ADMIN_SCOPES, DEFAULT_TENANT, LOCAL, OPERATOR_SCOPES

if TYPE_CHECKING:
    from service.evidence.imports.schemas import EvidenceImportRequest

_REQUEST = "command line"
NOTICED_SECONDS = 2.0
"""Seconds after which every process refuses the credentials of a disabled tenant."""


class KeyExists(Exception):  # an answer, not an error
    """A key exists already, and only a first key was requested."""


class _KeyDraftedError(Exception):  # an answer, not an error
    """The requested key was created by a run that was interrupted."""


class Operator:
    """The operator of one database, whose schema must be current."""

    def __init__(self, settings: Settings) -> None:
        self._database = Database(settings.database)
        check_schema(self._database)
        keyring = settings.keyring
        self._writes = Writes(self._database, keyring)
        self._keys = ApiKeys.from_keyring(keyring)
        auth.initialize_installation(self._database, keyring, self._writes)

    def create_key(
        self, name: str, tenant_id: str, scopes: list[str], *, admin: bool, first_only: bool = False
    ) -> str:
        """Creates a key and returns it as text; with ``first_only`` no key may exist yet."""
        body = _build_key_input(name, tenant_id, scopes, admin=admin)

        def create_in_session(session: Writer) -> WriteOutcome:
            self._lock_keys(session, first_only=first_only)
            return self._keys.create(session, LOCAL, body)

        return str(self._run_operation("create_api_key", create_in_session)["secret"])

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
        """Writes a new key to a new file, or finishes an interrupted run."""
        body = _build_key_input(name, tenant_id, scopes, admin=admin)

        def create_with_draft(session: Writer) -> WriteOutcome:
            self._lock_keys(session, first_only=first_only, drafted=(file, body))
            change = self._keys.create(session, LOCAL, body)
            file.write_draft(change.once["secret"])
            return change

        with suppress(_KeyDraftedError):
            self._run_operation("create_api_key", create_with_draft)
        file.finish()

    def _lock_keys(
        self, session: Writer, *, first_only: bool, drafted: tuple[KeyFile, ApiKeyRequest] | None = None
    ) -> None:
        """Serializes the creation of keys at the command line, and sees those of earlier runs."""
        repository.lock_tenant(session, DEFAULT_TENANT)
        if drafted is not None and self._is_live_draft(session, *drafted):
            raise _KeyDraftedError
        if first_only and repository.has_keys(session):
            raise KeyExists

    def _is_live_draft(self, session: Writer, file: KeyFile, body: ApiKeyRequest) -> bool:
        """Returns true if the draft of a file holds a live key; it must be the requested one."""
        secret = file.read_draft()
        row = repository.get_live_key(session, parse_id(secret) or "")
        if row is None or row.digest != digest_credential(secret, self._keys.digest_key):
            return False
        if (row.tenant_id, row.scopes) != (body.tenant_id, sorted(set(body.scopes))):
            raise KeyFileRefused(f"an interrupted run left another key beside {file.path}; revoke {row.id}")
        return True

    def revoke_key(self, key_id: str, tenant_id: str) -> None:
        """Revokes a key."""
        caller = LOCAL._replace(tenant_id=tenant_id)
        self._run_operation("revoke_api_key", lambda session: auth.revoke_key(session, caller, key_id))

    def create_tenant(self, tenant_id: str, name: str) -> None:
        """Creates a tenant."""
        body = TenantRequest(id=tenant_id, name=name)
        self._run_operation("create_tenant", lambda session: auth.create_tenant(session, body))

    def export_tenant(self, tenant_id: str, path: Path) -> None:
        """Writes every row of a tenant to a new file, as of one instant."""
        with self._database.open_reader() as session:
            if repository.get_tenant(session, tenant_id) is None:
                raise TenantNotFound
            with create_new_file(path) as unfinished, unfinished.open("wb") as file:
                file.writelines(export_lines(session, tenant_id))

    def redact_tenant(self, tenant_id: str) -> None:
        """Disables a tenant, waits until nobody writes for it any more, and deletes its data."""
        self._run_operation(
            "disable_tenant", lambda session: auth.set_tenant_disabled(session, tenant_id, disabled=True)
        )
        time.sleep(NOTICED_SECONDS)
        self._run_operation(REDACTION, lambda session: erase_tenant(session, tenant_id))

    def import_offers(self, body: PriceList, content: str, tenant_id: str) -> ImportedOffers:
        """Creates or versions the offers of a price list."""
        with self._database.open_reader() as session:
            if repository.get_tenant(session, tenant_id) is None:
                raise TenantNotFound
            accelerators = importing.list_known_accelerators(session, tenant_id)
        listed = importing.read_list(body, content, accelerators)

        def store_offers(session: Writer) -> WriteOutcome:
            imported = store_import(session, importing.list_rows(tenant_id, body, listed))
            told = importing.to_response(listed, imported)
            return WriteOutcome(resource="offers", body=told, after=told, tenant_id=tenant_id)

        told: ImportedOffers = self._run_operation("import_offers", store_offers)  # type: ignore[assignment]
        return told

    def refresh_prices(self, folder: Path, tenant_id: str, *, validate_only: bool) -> dict[str, Any]:
        """Creates or versions the offers and token prices of a folder, or only reports the outcome."""
        files = price_folder.load_files(folder)
        with self._database.open_reader() as session:
            if repository.get_tenant(session, tenant_id) is None:
                raise TenantNotFound
            read = price_folder.read_prices(session, tenant_id, files)

        def store_prices(session: Writer) -> WriteOutcome:
            told = price_folder.store_prices(session, tenant_id, read)
            return WriteOutcome(resource="offers", body=told, after=told, tenant_id=tenant_id)

        return self._run_operation("refresh_prices", store_prices, validate_only=validate_only)

    def import_evidence(
        self, body: "EvidenceImportRequest", tenant_id: str, *, validate_only: bool
    ) -> dict[str, Any]:
        """Imports the measurements of a file as evidence, or only reports the outcome."""
        from service.estimates.service import ESTIMATES  # noqa: PLC0415  # other commands start faster
        from service.evidence.imports import service as evidence  # noqa: PLC0415
        from service.evidence.snapshot import SnapshotStore  # noqa: PLC0415

        with self._database.open_reader() as session:
            if repository.get_tenant(session, tenant_id) is None:
                raise TenantNotFound
        snapshots = SnapshotStore(self._database)
        snapshots.refresh()
        estimators = {name: estimate.estimator for name, estimate in ESTIMATES.items()}
        outcome = evidence.read_evidence(body, snapshots.load(tenant_id), estimators)

        def store_evidence(session: Writer) -> WriteOutcome:
            return replace(evidence.store_evidence(session, tenant_id, body, outcome), tenant_id=tenant_id)

        return self._run_operation("import_evidence", store_evidence, validate_only=validate_only)

    def verify_audit(self, expected: Sequence[ChainHead] = ()) -> list[Verification]:
        """Verifies the audit chain of each tenant, and that it contains the exported heads."""
        from service.app.recorded import HELD  # noqa: PLC0415  # other commands start faster

        with self._database.open_reader() as session:
            tenants = [state.tenant_id for state in repository.list_tenant_states(session)]
            return Verifier(self._writes, HELD).verify_all(session, tenants, expected)

    def _run_operation(self, operation: str, do: KeyWrite, *, validate_only: bool = False) -> dict[str, Any]:
        subject = LOCAL._replace(id="operator")
        call = WriteContext(subject, operation, "", _REQUEST, validate_only=validate_only)
        body = self._writes.run(call, None, do).body
        answer: dict[str, Any] = json.loads(bytes(body)) if body else {}
        return answer


def _build_key_input(name: str, tenant_id: str, scopes: list[str], *, admin: bool) -> ApiKeyRequest:
    """Builds the request for a key; an administrator gets every scope."""
    granted = sorted(ADMIN_SCOPES | OPERATOR_SCOPES) if admin else scopes
    asked = {"name": name, "tenant_id": tenant_id, "scopes": granted}
    return ApiKeyRequest.model_validate_json(json.dumps(asked))
