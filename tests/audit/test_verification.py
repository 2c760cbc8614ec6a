"""One verification for the API and the command: whatever decides who may do what and was edited is found."""

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import delete, insert, select, text, update

from service.app.background.service import list_kinds
from service.app.examples import EXAMPLES
from service.app.recorded import DECIDES_NOTHING, HELD
from service.app.tables import TABLES
from service.approvals.links.tables import ApprovalLinkRow
from service.approvals.tables import (
    ApprovalDecisionRow,
    ApprovalDelegationRow,
    ApprovalRow,
)
from service.audit.records import GAPS, to_audit_document
from service.audit.service import WriteOutcome, compute_document_digest, find_deviations
from service.audit.tables import AuditEventRow, AuditHeadRow
from service.audit.verification import ChainHead, Verifier, list_heads, parse_exported_heads
from service.auth.tables import ApiKeyRow, EndedSessionRow, TenantRow
from service.kit.clock import now
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.schedules import NoArguments
from service.kit.security.principals import SYSTEM_TENANT
from service.nodes.tables import EnrolmentTokenRow, NodeCredentialRow, NodeRow
from service.policies.tables import ApprovalPolicyRow
from service.webhooks.tables import WebhookRow
from tests.applications import MEANS, TENANT, attach, bearing
from tests.approvals.deciding import Actor, policy, step
from tests.approvals.reading import Reader
from tests.nodes.hosts import Host, token
from tests.working import do_all

DEFAULT = "default"


def test_every_table_is_verified_or_decides_nothing():
    verified = {table.__tablename__ for held in HELD for table in held.tables}
    assert verified | DECIDES_NOTHING.keys() == {table.name for table in TABLES}
    assert not verified & DECIDES_NOTHING.keys()
    assert all(DECIDES_NOTHING.values())


class Record:
    """The record of an application, as both verifications see it."""

    def __init__(self, callers):
        self.callers, self.app = callers, callers.client.app
        self.database, self.writes = self.app.state.database, self.app.state.means.writes
        self.reader = bearing(callers.key("audit-events:read"))

    def of_api(self, *expected):
        query = "&".join(f"expected_head={one}" for one in expected)
        return self.callers.client.get(f"/v1/audit-events:verify?{query}", headers=self.reader)

    def by_api(self, *expected):
        return self.of_api(*expected).json()

    def of_all(self, expected=()):
        """What the command reads, by tenant."""
        with self.database.open_reader() as session:
            tenants = list(session.scalars(select(TenantRow.tenant_id)))
            found = Verifier(self.writes, HELD).verify_all(session, tenants, expected)
        return {each.verdict.tenant_id: each for each in found}

    def edit(self, *statements):
        with self.database.engine.begin() as connection:
            for statement in statements:
                assert connection.execute(statement).rowcount

    def restart(self):
        attach(self.app, self.database, TENANT)
        self.app.state.held_keys.refresh()

    def heads(self):
        with self.database.open_reader() as session:
            return list_heads(session)


@pytest.fixture
def record(callers):
    return Record(callers)


@pytest.fixture
def filled(callers):
    """Something of all that decides who may do what."""
    asker, decider = Actor(callers), Actor(callers)
    assert Actor(callers).post("/v1/approval-policies", policy(step(decider))).status_code == 201
    assert decider.decide(asker.submit(asker.quote()).json()).status_code == 200
    ends = {"delegate": asker.name, "ends_at": "2100-01-01T00:00:00Z"}
    assert decider.post("/v1/approval-delegations", ends).status_code == 201
    key = asker.post("/v1/api-keys", {"name": "child", "scopes": ["models:read"]}).json()["key"]["id"]
    assert asker.post(f"/v1/api-keys/{key}:rotate", {"overlap_seconds": 60}).status_code == 200
    assert asker.post("/v1/webhooks", EXAMPLES["create_webhook"]).status_code == 201
    assert asker.post("/v1/sessions:end", {"subject_id": "somebody"}).status_code == 200
    assert asker.post("/v1/enrolment-tokens", {}).status_code == 201
    return asker


@pytest.mark.usefixtures("filled")
def test_what_the_service_writes_holds_without_a_gap(record):
    assert record.by_api()["valid"], record.by_api()
    for tenant, found in record.of_all().items():
        assert (found.is_valid, found.changed, found.gaps) == (True, (), ()), tenant


EDITS = {
    "scopes": update(ApiKeyRow).values(scopes=["*:*"]),
    "makers": update(ApiKeyRow).values(created_by="token:somebody"),
    "digests": update(ApiKeyRow).values(digest="0" * 64),
    "next digests": update(ApiKeyRow).values(next_digest="0" * 64),
    "expiries": update(ApiKeyRow).values(expires_at=ApiKeyRow.created_at),
    "revocations": update(ApiKeyRow).values(revoked_at=ApiKeyRow.created_at),
    "a removed key": delete(ApiKeyRow),
    "addresses": update(WebhookRow).values(url="https://elsewhere.example/"),
    "events": update(WebhookRow).values(event_types=["quote.expires_soon"]),
    "secrets": update(WebhookRow).values(secret=b"\xff\x00"),
    "a removed webhook": delete(WebhookRow),
    "approvals": update(ApprovalRow).values(barred=[]),
    "decisions": update(ApprovalDecisionRow).values(decided_by="token:somebody"),
    "delegations": update(ApprovalDelegationRow).values(delegate="token:somebody"),
    "policies": update(ApprovalPolicyRow).values(is_live=False),
    "ended sessions": update(EndedSessionRow).values(expires_at=EndedSessionRow.ended_at),
    "a session that has not ended": delete(EndedSessionRow),
    "enrolment": update(EnrolmentTokenRow).values(digest="0" * 64),
    "a tenant let in again": update(TenantRow).values(created_at=TenantRow.created_at, version=9),
}


# That PostgreSQL gives back what was written is held by the test above; these are its types of their own.
ON_POSTGRESQL = ("scopes", "secrets", "expiries", "ended sessions", "a removed key")


def assert_found_by_both(record, edit):
    record.edit(EDITS[edit])
    by_api = record.by_api()
    assert by_api["valid"] is False, edit
    assert by_api["changed_count"] == len(by_api["changed"]) >= 1, edit
    found = record.of_all()[DEFAULT]
    assert [{"resource": name, "code": code} for name, code in found.changed] == by_api["changed"], edit


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("filled")
def test_every_edit_is_found_by_both(record):
    database = record.database
    database.dispose()  # what is written is then all in one file
    file = Path(database.url.database)
    whole = file.read_bytes()
    for edit in EDITS:
        assert_found_by_both(record, edit)
        database.dispose()
        file.write_bytes(whole)
    assert record.by_api()["valid"]


@pytest.mark.parametrize(
    ("databases", "edit"), [("postgresql", edit) for edit in ON_POSTGRESQL], indirect=["databases"]
)
@pytest.mark.usefixtures("filled")
def test_an_edit_is_found_by_both(record, edit):
    assert_found_by_both(record, edit)


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("filled")
def test_a_row_that_nobody_can_read_is_found(record):
    record.edit(text("UPDATE api_keys SET scopes = '{'"), text("UPDATE webhooks SET url = 'x'"))
    found = {(each["resource"].split("/")[0], each["code"]) for each in record.by_api()["changed"]}
    assert found == {("api_keys", "UNREADABLE"), ("webhooks", "CHANGED")}
    record.edit(text("UPDATE audit_events SET occurred_at = 'x' WHERE sequence = 2"))
    assert record.by_api()["fault"]["code"] == "UNREADABLE"


@pytest.mark.usefixtures("filled")
def test_a_row_that_nobody_wrote_is_found(record):
    with record.database.open_reader() as session:
        row = session.scalars(select(ApiKeyRow).limit(1)).one()
        values = {column: getattr(row, column) for column in row.__table__.columns.keys()}  # noqa: SIM118
    record.edit(insert(ApiKeyRow).values({**values, "id": "forged"}))
    assert record.by_api()["changed"] == [{"resource": "api-keys/forged", "code": "NOT_RECORDED"}]


def test_nodes_with_their_credentials_are_held(client, database):
    host = Host(client).enrol(token(client))
    assert host.heartbeat().status_code == 200
    verify = "/v1/audit-events:verify"
    assert client.get(verify).json()["valid"], client.get(verify).json()
    assert client.post(f"/v1/nodes/{host.id}:quarantine").status_code == 200
    assert client.get(verify).json()["valid"]
    for edit in (
        update(NodeRow).values(state="active", reason=None),
        update(NodeCredentialRow).values(digest="0" * 64),
        delete(NodeCredentialRow),
    ):
        with database.engine.connect() as connection:
            kept = connection.execute(select(NodeCredentialRow.__table__)).mappings().all()
            nodes = connection.execute(select(NodeRow.__table__)).mappings().all()
        with database.engine.begin() as connection:
            connection.execute(edit)
        changed = client.get(verify).json()["changed"]
        assert changed == [{"resource": f"nodes/{host.id}", "code": "CHANGED"}]
        with database.engine.begin() as connection:
            connection.execute(delete(NodeCredentialRow))
            connection.execute(delete(NodeRow))
            connection.execute(insert(NodeRow.__table__), [dict(row) for row in nodes])
            connection.execute(insert(NodeCredentialRow.__table__), [dict(row) for row in kept])
        assert client.get(verify).json()["valid"]


def test_a_used_token_that_is_made_unused_is_found(client, database):
    Host(client).enrol(token(client))
    with database.engine.begin() as connection:
        connection.execute(update(EnrolmentTokenRow).values(used_at=None, node_id=None, installation_id=None))
    (changed,) = client.get("/v1/audit-events:verify").json()["changed"]
    assert (changed["resource"].split("/")[0], changed["code"]) == ("enrolment-tokens", "CHANGED")


class TestLinks:
    @pytest.fixture
    def linked(self, record):
        """A link of somebody for an approval."""
        attach(record.app, record.database, TENANT.model_copy(update={"public_url": "https://plan.example"}))
        asker, mailer = Actor(record.callers), Actor(record.callers, "approval-links:write")
        body = policy(step(SimpleNamespace(name="person:carol@example.org")))
        assert Actor(record.callers).post("/v1/approval-policies", body).status_code == 201
        approval = asker.submit(asker.quote()).json()
        body = {"approver": "person:carol@example.org"}
        assert mailer.post(f"/v1/approvals/{approval['id']}:link", body).status_code == 201

    @pytest.mark.usefixtures("linked")
    @pytest.mark.parametrize(
        ("edit", "code"),
        [
            (update(ApprovalLinkRow).values(approver="person:dave@example.org"), "CHANGED"),
            (update(ApprovalLinkRow).values(created_by="token:somebody"), "CHANGED"),
            (update(ApprovalLinkRow).values(digest="0" * 64), "CHANGED"),
            (delete(ApprovalLinkRow), "MISSING"),
        ],
    )
    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    def test_they_are_held(self, record, edit, code):
        record.restart()
        assert record.by_api()["valid"], record.by_api()
        record.edit(edit)
        (changed,) = record.by_api()["changed"]
        assert (changed["resource"].split("/")[::2], changed["code"]) == (["approvals", "links"], code)


def test_a_tenant_that_is_gone_with_its_chain_is_found(record):
    body = {"id": "gone", "name": "Gone"}
    operator = bearing(record.callers.key("*:*", "tenants:*"))
    made = record.callers.client.post("/v1/tenants", body, headers=operator)
    assert made.status_code == 201, made.text
    assert record.of_all()[SYSTEM_TENANT].is_valid
    record.edit(
        delete(TenantRow).where(TenantRow.tenant_id == "gone"),
        delete(AuditEventRow).where(AuditEventRow.tenant_id == "gone"),
        delete(AuditHeadRow).where(AuditHeadRow.tenant_id == "gone"),
    )
    found = record.of_all()
    assert "gone" not in found
    assert found[SYSTEM_TENANT].changed == (("registered-tenants/gone", "MISSING"),)
    record.restart()  # a start does not mend it
    assert record.of_all()[SYSTEM_TENANT].changed == (("registered-tenants/gone", "MISSING"),)


def test_a_tenant_that_nobody_made_is_found(record):
    made = {"tenant_id": "forged", "name": "", "version": 1, "keys_revision": 0}
    with record.database.open_reader() as session:
        created_at = session.get(TenantRow, DEFAULT).created_at
    record.edit(insert(TenantRow).values(**made, created_at=created_at))
    assert record.of_all()[SYSTEM_TENANT].changed == (("registered-tenants/forged", "NOT_RECORDED"),)


class TestExpectedHeads:
    @pytest.fixture
    def cut(self, record, filled):
        """The newest event cut off, and the head put back that it had before: its seal holds."""
        with record.database.open_reader() as session:
            earlier = session.get(AuditHeadRow, DEFAULT)
            values = {name: getattr(earlier, name) for name in ("sequence", "hash", "seal")}
        filled.post("/v1/grids", EXAMPLES["create_grid"])
        exported = record.heads()
        of_tenant = AuditEventRow.tenant_id == DEFAULT
        record.edit(
            delete(AuditEventRow).where(of_tenant, AuditEventRow.sequence > values["sequence"]),
            update(AuditHeadRow).where(AuditHeadRow.tenant_id == DEFAULT).values(**values),
        )
        return exported

    def test_a_chain_cut_off_behind_one_is_found(self, record, cut):
        assert record.by_api()["valid"]
        (head,) = (one for one in cut if one.tenant_id == DEFAULT)
        by_api = record.by_api(f"{head.sequence}:{head.hash}")
        assert (by_api["valid"], by_api["fault"]["code"]) == (False, "END_CUT_OFF")
        assert by_api["fault"]["sequence"] == head.sequence
        found = record.of_all(cut)
        assert found[DEFAULT].verdict.fault.code == "END_CUT_OFF"
        assert found[SYSTEM_TENANT].is_valid

    def test_a_chain_that_reaches_all_holds(self, record, filled):
        exported = record.heads()
        filled.post("/v1/grids", EXAMPLES["create_grid"])
        assert all(found.is_valid for found in record.of_all([*exported, *record.heads()]).values())
        (head,) = (one for one in exported if one.tenant_id == DEFAULT)
        assert record.by_api(f"{head.sequence}:{head.hash}")["valid"]

    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    @pytest.mark.usefixtures("filled")
    def test_a_chain_made_anew_is_found(self, record):
        found = record.of_all([ChainHead(DEFAULT, 1, "0" * 64)])
        assert found[DEFAULT].verdict.fault.code == "NOT_AS_EXPORTED"

    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    def test_a_tenant_that_is_gone_with_the_register_too_is_found(self, record):
        found = record.of_all([ChainHead("gone", 3, "0" * 64)])
        assert found["gone"].verdict.fault.code == "HEAD_MISSING"

    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    @pytest.mark.parametrize("head", ["", "0:" + "0" * 64, "1:x", f"1:{'0' * 63}", f"{10**19}:{'0' * 64}"])
    def test_what_is_no_head_is_refused(self, record, head):
        refused = record.of_api(head)
        assert (refused.status_code, refused.json()["code"]) == (422, "UNPROCESSABLE")

    def test_a_file_of_exports_is_read(self):
        line = json.dumps({"heads": [{"tenant_id": "a", "sequence": 1, "hash": "x"}]})
        assert parse_exported_heads([line, "\n", line]) == [ChainHead("a", 1, "x")]
        for broken in ("{", "[]", '{"heads": [1]}', '{"heads": [{}]}', "7"):
            with pytest.raises(ValueError, match="line 2 is not an export"):
                parse_exported_heads([line, broken])


class TestOlderDatabases:
    """Events of versions before this one hold less."""

    def rewrite(self, record, monkeypatch):
        """Write the chain as an earlier version would have: without states, and without a register."""
        with record.database.open_writer() as session:
            events = session.scalars(
                select(AuditEventRow)
                .where(AuditEventRow.tenant_id == DEFAULT)
                .order_by(AuditEventRow.sequence)
            ).all()
            kept = [(e.operation, e.resource, e.after_digest) for e in events]
            session.execute(delete(AuditEventRow))
            session.execute(delete(AuditHeadRow))
        monkeypatch.setattr("service.audit.service._digest", lambda value: value)
        for operation, resource, after in kept:
            with record.database.open_writer() as session:
                outcome = WriteOutcome(resource=resource, after=after)
                record.writes.record_own_change(session, DEFAULT, operation, outcome)
        monkeypatch.undo()

    @pytest.mark.usefixtures("filled")
    def test_what_they_do_not_hold_is_a_gap_and_no_fault(self, record, monkeypatch):
        self.rewrite(record, monkeypatch)
        record.restart()
        by_api = record.by_api()
        assert by_api["valid"], by_api
        gaps = {(gap["collection"], gap["code"]) for gap in by_api["gaps"]}
        assert ("api-keys", "RECORDED_IN_PART") in gaps
        assert ("webhooks", "RECORDED_IN_PART") in gaps
        assert all(gap["detail"] == GAPS[gap["code"]] for gap in by_api["gaps"])
        system = record.of_all()[SYSTEM_TENANT]
        assert (system.is_valid, system.gaps) == (True, (("registered-tenants/default", "REGISTERED_LATER"),))

    def test_what_is_written_since_is_held(self, record, filled, monkeypatch):
        self.rewrite(record, monkeypatch)
        record.restart()
        with record.database.open_reader() as session:
            key = session.scalars(select(ApiKeyRow.id).where(ApiKeyRow.next_digest.is_not(None))).one()
        assert filled.post(f"/v1/api-keys/{key}:retire", None).status_code == 200
        record.edit(update(ApiKeyRow).where(ApiKeyRow.id == key).values(scopes=["*:*"]))
        assert record.by_api()["changed"] == [{"resource": f"api-keys/{key}", "code": "CHANGED"}]

    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    def test_a_row_without_a_member_that_was_added_is_held_in_part(self, record):
        older = WriteOutcome(resource="things/1", after={"parts": [{"a": 1}]})
        newer = WriteOutcome(resource="things/2", after={"parts": [{"a": 1, "b": None}]})
        with record.database.open_writer() as session:
            for change in (older, newer):
                record.writes.record_own_change(session, DEFAULT, "make_thing", change)
        added = frozenset({"b"})
        both = [("1", {"parts": [{"a": 1, "b": None}]}), ("2", {"parts": [{"a": 1, "b": None}]})]
        edited = [("1", {"parts": [{"a": 2, "b": None}]}), ("2", {"parts": [{"a": 1, "b": 2}]})]
        with record.database.open_reader() as session:
            found = [list(find_deviations(session, DEFAULT, "things", of, added)) for of in (both, edited)]
        assert found == [
            [("things/1", "RECORDED_IN_PART")],
            [("things/1", "CHANGED"), ("things/2", "CHANGED")],
        ]


@pytest.mark.usefixtures("filled")
def test_what_has_reached_its_age_is_recorded_when_it_goes(record, callers, monkeypatch):
    reader = Reader(callers.client, "ada")
    assert reader.send("/logout", {"form_token": reader.form_token()}).status_code == 200
    of_sessions = select(EndedSessionRow.id).where(EndedSessionRow.generation.is_(None))
    with record.database.open_reader() as session:
        assert len(session.scalars(of_sessions).all()) == 1
    later = now() + timedelta(days=500)
    monkeypatch.setattr("service.auth.session_revocation.now", lambda: later)
    jobs = {kind.name: kind for kind in list_kinds(MEANS)}
    with record.database.open_writer() as session:
        enqueue_job(
            session, jobs["ended-sessions.expire"], NoArguments(), tenant_id="system", effect_key="now"
        )
    do_all(record.database, jobs["ended-sessions.expire"])
    with record.database.open_reader() as session:
        assert session.scalars(of_sessions).all() == []
    assert record.by_api()["valid"], record.by_api()


@pytest.mark.usefixtures("filled")
def test_times_and_bytes_are_recorded_alike_on_both_databases(record):
    with record.database.open_reader() as session:
        row = session.scalars(select(WebhookRow)).one()
        held = to_audit_document(row)
    assert held["secret"] == row.secret.hex()
    assert "description" not in held or row.description is not None
    assert compute_document_digest(held) == compute_document_digest(dict(reversed(held.items())))
