"""A tenant leaves: its rows in a file, then gone, and the audit still holds."""

import base64
import json
import warnings
from datetime import UTC, datetime

import pytest
from sqlalchemy import (
    JSON,
    Boolean,
    DateTime,
    Float,
    LargeBinary,
    MetaData,
    String,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.exc import SAWarning

from service.app import operator
from service.app.backup import BackupRefused
from service.app.operator import Operator
from service.app.settings import Settings
from service.app.tables import TABLES
from service.app.tenants import _KEPT
from service.audit.repository import redact_subjects
from service.audit.service import WriteContext, WriteOutcome
from service.audit.tables import AuditEventRow
from service.auth.errors import TenantExists, TenantNotFound
from service.auth.schemas import TenantRequest
from service.auth.service import create_tenant
from service.auth.tables import TenantRow
from service.evidence.snapshot import SnapshotStore
from service.kit.database.engine import SECRET
from service.kit.security.principals import Principal, PrincipalKind
from tests.applications import KEYRING, bearing
from tests.prepared import ON_SQLITE
from tests.serving import run

MARKER = "Marker-4f1c"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def operating(database, monkeypatch):
    """The operator of the database, under the secret of the tests; waits for nobody."""
    monkeypatch.setattr(operator, "NOTICED_SECONDS", 0)
    monkeypatch.setattr(Settings, "keyring", KEYRING)
    made = Operator(Settings(database_url=database.url.render_as_string(hide_password=False)))
    yield made
    made._database.dispose()


def filling(column):
    """A value of the type of a column, with the marker in it where it can hold one."""
    match column.type:
        case JSON():
            return {"marker": [MARKER]}
        case LargeBinary():
            return MARKER.encode()
        case Boolean():
            return False
        case Float():
            return 1
    is_time = isinstance(getattr(column.type, "impl", None), DateTime)
    return NOW if is_time else 1 if column.type.python_type is int else MARKER[: column.type.length]


def filled(operating, tenant_id, subject_id):
    """A tenant that has a row in every table, and has written as somebody."""
    operating.create_tenant(tenant_id, MARKER)
    operating.create_key(MARKER, tenant_id, ["models:read"], admin=False)
    subject = Principal(PrincipalKind.TOKEN, subject_id, tenant_id, frozenset())
    change = WriteOutcome(resource="offers/one", before={"name": MARKER}, after={})
    operating._writes.run(WriteContext(subject, "change_offer", "", "test", MARKER), None, lambda _: change)
    with operating._database.open_writer() as session:
        for table in TABLES:
            if table not in _KEPT:
                values = {column.name: filling(column) for column in table.columns}
                session.execute(insert(table).values({**values, "tenant_id": tenant_id, **own(table)}))


def own(table):
    """What must be unique for all tenants together."""
    keys = [column for column in table.primary_key.columns if isinstance(column.type, String)]
    if "tenant_id" in table.primary_key.columns:
        return {}
    return {keys[0].name: f"{MARKER}-{datetime.now(UTC).timestamp()}"}


def found(database, text):
    """The tables that hold a text anywhere."""
    metadata = MetaData()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*expression-based index", SAWarning)
        metadata.reflect(database.engine)
    with database.engine.connect() as connection:
        return {
            table.name
            for table in metadata.sorted_tables
            if any(text in repr(tuple(row)) for row in connection.execute(select(table)))
        }


def rows_of(database, tenant_id):
    """How many rows a tenant has, by table."""
    with database.open_reader() as session:
        counted = {
            table.name: len(session.execute(select(literal(1)).where(table.c.tenant_id == tenant_id)).all())
            for table in TABLES
        }
    return {name: count for name, count in counted.items() if count}


def faults(operating):
    verdicts = (found.verdict for found in operating.verify_audit())
    return {v.tenant_id: v.fault and v.fault.code for v in verdicts}


class TestExport:
    def test_every_row_and_no_secret(self, database, operating, tmp_path):
        filled(operating, "leaving", MARKER)
        file = tmp_path / "leaving.jsonl"
        operating.export_tenant("leaving", file)
        assert file.stat().st_mode & 0o777 == 0o600
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        exported = {}
        for line in lines:
            exported[line["table"]] = exported.get(line["table"], 0) + 1
            assert line["row"]["tenant_id"] == "leaving"
            table = next(table for table in TABLES if table.name == line["table"])
            assert line["row"].keys() == {c.name for c in table.columns if c.info != SECRET}
        assert exported == rows_of(database, "leaving")
        kept = next(line["row"] for line in lines if line["table"] == "idempotency_keys")
        assert base64.b64decode(kept["body"]) in (b"", MARKER.encode())

    def test_what_opens_or_hides_stays(self):
        secret = {f"{table.name}.{c.name}" for table in TABLES for c in table.columns if c.info == SECRET}
        assert secret == {
            "api_keys.digest",
            "api_keys.next_digest",
            "approval_links.digest",
            "audit_events.subject_salt",
            "enrolment_tokens.digest",
            "node_credentials.digest",
            "webhooks.previous_secret",
            "webhooks.secret",
        }

    def test_a_file_that_exists_stays(self, operating, tmp_path):
        file = tmp_path / "there"
        file.write_text("there")
        with pytest.raises(BackupRefused):
            operating.export_tenant("default", file)
        assert file.read_text() == "there"

    def test_an_export_that_fails_leaves_no_file(self, operating, tmp_path, monkeypatch):
        def broken(*_):
            yield b"{}\n"
            raise OSError("no space")

        monkeypatch.setattr(operator, "export_lines", broken)
        with pytest.raises(OSError, match="no space"):
            operating.export_tenant("default", tmp_path / "file")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("tenant_id", ["shipped", "system", "unknown"])
    @ON_SQLITE
    def test_who_is_no_tenant(self, operating, tmp_path, tenant_id):
        with pytest.raises(TenantNotFound):
            operating.export_tenant(tenant_id, tmp_path / "file")
        assert list(tmp_path.iterdir()) == []


class TestRedaction:
    def test_no_byte_is_left(self, database, operating, tmp_path):
        filled(operating, "leaving", MARKER)
        operating.export_tenant("leaving", tmp_path / "file")
        textless = {"approval_settings", "audit_heads", "catalog_state", "installation"}
        everywhere = {table.name for table in TABLES} - textless
        assert found(database, MARKER) >= everywhere
        operating.redact_tenant("leaving")
        assert found(database, MARKER) == set()
        assert rows_of(database, "leaving").keys() == {"tenants", "audit_events", "audit_heads"}

    def test_the_audit_holds_and_says_so(self, database, operating):
        filled(operating, "leaving", MARKER)
        operating.redact_tenant("leaving")
        assert set(faults(operating).values()) == {None}
        with database.open_reader() as session:
            events = session.scalars(
                select(AuditEventRow)
                .where(AuditEventRow.tenant_id == "leaving")
                .order_by(AuditEventRow.sequence)
            )
            told = [(event.operation, event.subject_id) for event in events]
            tenant = session.get(TenantRow, "leaving")
        named = {operation for operation, subject in told if subject}
        assert told[-2:] == [("disable_tenant", None), ("redact_tenant", "operator")]
        assert named == {"redact_tenant"}
        assert (tenant.name, tenant.disabled_at is not None) == ("Redacted", True)

    def test_it_can_be_said_twice(self, operating):
        operating.create_tenant("leaving", "Leaving")
        operating.redact_tenant("leaving")
        operating.redact_tenant("leaving")
        assert set(faults(operating).values()) == {None}

    def test_others_keep_what_they_have(self, database, operating):
        filled(operating, "leaving", MARKER)
        filled(operating, "staying", "Staying")
        before = [rows_of(database, name) for name in ("staying", "shipped", "default")]
        operating.redact_tenant("leaving")
        assert [rows_of(database, name) for name in ("staying", "shipped", "default")] == before

    @pytest.mark.parametrize("when", ["never redacted", "with the redaction", "after"])
    def test_a_subject_that_was_removed_otherwise_is_found(self, database, operating, when):
        filled(operating, "leaving", MARKER)
        if when != "never redacted":
            operating.redact_tenant("leaving")
        if when == "after":
            operating.create_key("again", "leaving", ["models:read"], admin=False)
        last = select(AuditEventRow.sequence).where(AuditEventRow.tenant_id == "leaving")
        with database.open_writer() as session:
            if when == "with the redaction":
                redact_subjects(session, "leaving")
            else:
                newest = session.scalars(last.order_by(AuditEventRow.sequence.desc())).first()
                statement = update(AuditEventRow).where(
                    AuditEventRow.tenant_id == "leaving", AuditEventRow.sequence == newest
                )
                session.execute(statement.values(subject_id=None, subject_salt=None))
        assert faults(operating)["leaving"] == "SUBJECT_REMOVED"

    @pytest.mark.parametrize("tenant_id", ["shipped", "system", "unknown"])
    @ON_SQLITE
    def test_who_is_no_tenant(self, database, operating, tenant_id):
        before = rows_of(database, tenant_id)
        with pytest.raises(TenantNotFound):
            operating.redact_tenant(tenant_id)
        assert rows_of(database, tenant_id) == before

    def test_running_processes_drop_the_tenant(self, callers, database, operating):
        """By what they poll each second: the keys, and the snapshot of its rows."""
        callers.tenant("leaving")
        key = bearing(callers.key("accelerators:*", tenant="leaving"))
        copied = callers.client.post("/v1/accelerators/h100-sxm:copy", {}, headers=key)
        other = SnapshotStore(database)
        other.refresh()
        assert (copied.status_code, other.get_current("leaving").revision) == (201, 2)
        operating.redact_tenant("leaving")
        callers.client.app.state.held_keys.refresh()
        other.refresh()
        assert callers.client.get("/v1/accelerators", headers=key).status_code == 401
        assert not callers.client.app.state.held_keys.has_tenant("leaving")
        assert other.get_current("leaving") is other.get_current("nobody")


@ON_SQLITE
@pytest.mark.parametrize("tenant_id", ["shipped", "system", "default"])
def test_reserved_ids(database, operating, tenant_id):
    with database.open_writer() as session, pytest.raises(TenantExists):
        create_tenant(session, TenantRequest(id=tenant_id, name="Mine"))
    assert operating.verify_audit()


def test_at_the_command_line(tmp_path):
    data = tmp_path / "data"
    file = tmp_path / "physics.jsonl"

    def told(*arguments):
        return run(*arguments, data_dir=data)

    assert told("migrate")[2] == 0
    assert told("tenants", "create", "physics", "--name", "Physics") == ("created physics\n", "", 0)
    _, errors, status = told("tenants", "create", "Physics!", "--name", "Physics")
    assert (status, errors.count("\n"), "Physics!" in errors) == (1, 1, False)
    assert told("tenants", "export", "physics", file) == ("exported physics\n", "", 0)
    assert '"name":"Physics"' in file.read_text()
    assert told("tenants", "export", "physics", file)[2] == 1
    _, errors, status = told("tenants", "redact", "physics")
    assert (status, "--yes" in errors) == (2, True)
    assert told("tenants", "redact", "physics", "--yes") == ("redacted physics\n", "", 0)
    out, errors, status = told("audit", "verify")
    assert (errors, status) == ("", 0)
    assert "physics: 3 events, valid" in out
