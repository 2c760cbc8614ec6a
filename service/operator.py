"""What an operator does at the command line, with access to the database and the secret."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.audit.chain import REDACTION, Verdict
from service.audit.service import Call, Change, Writes
from service.auth import repository
from service.auth import service as auth
from service.auth.errors import TenantNotFound
from service.auth.schemas import ApiKeyInput, TenantInput
from service.auth.service import Keys, Write
from service.backup import new_file
from service.catalog.offers import importing
from service.catalog.offers.schemas import ImportedOffers, PriceList
from service.kit.database import Database, Writer
from service.kit.subjects import ADMIN_SCOPES, LOCAL, OPERATOR_SCOPES
from service.settings import Settings
from service.storage import check
from service.tenants import lines, redact

if TYPE_CHECKING:
    from service.evidence.imports.schemas import EvidenceImport

_REQUEST = "command line"
NOTICED_SECONDS = 2.0
"""After which every process refuses the credentials of a tenant that was disabled."""


class Operator:
    """The operator of one database, whose schema must be current."""

    def __init__(self, settings: Settings) -> None:
        self._database = Database(settings.database)
        check(self._database)
        keyring = settings.keyring
        self._writes = Writes(self._database, keyring)
        self._keys = Keys.of(keyring)
        auth.settle(self._database, keyring, self._writes)

    def has_keys(self) -> bool:
        """Whether there is a key that is not revoked."""
        with self._database.reading() as session:
            return repository.has_keys(session)

    def create_key(self, name: str, tenant_id: str, scopes: list[str], *, admin: bool) -> str:
        """A new key, as text."""
        granted = sorted(ADMIN_SCOPES | OPERATOR_SCOPES) if admin else scopes
        asked = {"name": name, "tenant_id": tenant_id, "scopes": granted}
        body = ApiKeyInput.model_validate_json(json.dumps(asked))
        answer = self._run("create_api_key", lambda session: self._keys.create(session, LOCAL, body))
        secret: str = answer["secret"]
        return secret

    def revoke_key(self, key_id: str, tenant_id: str) -> None:
        """Let a key work no more."""
        self._run("revoke_api_key", lambda session: auth.revoke(session, tenant_id, key_id))

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
        from service.snapshot.service import SnapshotStore  # noqa: PLC0415

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

    def verify_audit(self) -> list[Verdict]:
        """Whether the chain of each tenant holds."""
        with self._database.reading() as session:
            tenants = [state.tenant_id for state in repository.tenant_states(session)]
            return self._writes.verify_all(session, tenants)

    def changed_beside_us(self) -> list[tuple[str, str, str]]:
        """Tenant, resource and fault of every decision, budget, bill and quote that is not as recorded."""
        from service.approvals.service import unlike_recorded  # noqa: PLC0415  # other commands start faster

        with self._database.reading() as session:
            tenants = [state.tenant_id for state in repository.tenant_states(session)]
            return [(name, *fault) for name in tenants for fault in unlike_recorded(session, name)]

    def _run(self, operation: str, do: Write, *, validate_only: bool = False) -> dict[str, Any]:
        subject = LOCAL._replace(id="operator")
        call = Call(subject, operation, "", _REQUEST, validate_only=validate_only)
        body = self._writes.run(call, None, do).body
        answer: dict[str, Any] = json.loads(bytes(body)) if body else {}
        return answer
