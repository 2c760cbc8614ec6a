"""Heads of chains leave the database by themselves: by webhooks, the log, a file, and under time stamps."""

import base64
import contextlib
import json
import logging
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
from rfc3161_client import decode_timestamp_response
from sqlalchemy import delete, select, update

from service.app.background.audit import build_audit_export, build_audit_verification
from service.app.background.service import JobDependencies, list_schedules
from service.app.examples import EXAMPLES
from service.app.settings import Settings
from service.audit.exports import HeadExports, TimeStampFailed, append_line, build_stamped_bytes
from service.audit.stamping import MOST_BYTES, TimeStampAuthority
from service.audit.tables import AuditEventRow, AuditHeadRow
from service.audit.verification import ChainHead, list_heads, parse_exported_heads
from service.auth.tables import ApiKeyRow
from service.kit.http.outbound import OutboundClient, parse_networks
from service.kit.jobs.events import EventRow
from service.kit.jobs.repository import enqueue_job, get_last_done
from service.kit.jobs.schedules import NoArguments
from tests.applications import MEANS
from tests.audit import authority
from tests.webhooks.receiving import answer, receiver
from tests.working import do_all

SOCKETS = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
LOOPBACK = parse_networks("127.0.0.0/8")
HEADS = [ChainHead("default", 3, "a" * 64), ChainHead("system", 1, "b" * 64)]


def do(database, schedule, effect="now"):
    with database.open_writer() as session:
        enqueue_job(session, schedule.job, NoArguments(), tenant_id="system", effect_key=effect)
    do_all(database, schedule.job)
    with database.open_reader() as session:
        return get_last_done(session, schedule.job.name).result


def events(database):
    with database.open_reader() as session:
        rows = session.scalars(select(EventRow).where(EventRow.type == "audit.head"))
        return [(row.tenant_id, row.data) for row in rows]


def test_heads_go_to_the_file_the_log_and_webhooks(client, database, tmp_path, caplog):
    file = tmp_path / "heads"
    schedule = build_audit_export(HeadExports(file=file))
    assert client.post("/v1/webhooks", EXAMPLES["create_webhook"] | {"event_types": ["audit.head"]})
    with caplog.at_level(logging.INFO):
        assert do(database, schedule) == {"heads": 2}
    with database.open_reader() as session:
        found = list_heads(session)
    assert {head.tenant_id for head in found} == {"default", "system"}
    assert parse_exported_heads(file.read_text().splitlines()) == found
    told = [record.getMessage() for record in caplog.records if "audit head" in record.getMessage()]
    assert told == [f"audit head of {one.tenant_id}: {one.sequence}:{one.hash}" for one in found]
    (own,) = (head for head in found if head.tenant_id == "default")
    assert events(database) == [("default", {"sequence": own.sequence, "hash": own.hash})]
    do(database, schedule, "again")
    assert len(events(database)) == 1
    client.post("/v1/grids", EXAMPLES["create_grid"])
    do(database, schedule, "later")
    assert [data["sequence"] for _, data in events(database)] in ([2, 3], [3, 2])
    assert len(file.read_text().splitlines()) == 3


def test_what_nobody_wants_to_be_told_of_is_no_event(client, database):
    client.post("/v1/webhooks", EXAMPLES["create_webhook"])
    do(database, build_audit_export(HeadExports()))
    assert events(database) == []


def test_a_chain_that_is_cut_off_is_found_by_what_was_exported(client, database, tmp_path):
    file = tmp_path / "heads"
    client.post("/v1/grids", EXAMPLES["create_grid"])
    with database.open_reader() as session:
        row = session.get(AuditHeadRow, "default")
        kept = {name: getattr(row, name) for name in ("sequence", "hash", "seal")}
    client.post("/v1/sites", EXAMPLES["create_site"] | {"grid_id": EXAMPLES["create_grid"]["id"]})
    do(database, build_audit_export(HeadExports(file=file)))
    with database.engine.begin() as connection:
        later = AuditEventRow.sequence > kept["sequence"]
        connection.execute(delete(AuditEventRow).where(AuditEventRow.tenant_id == "default", later))
        connection.execute(update(AuditHeadRow).where(AuditHeadRow.tenant_id == "default").values(**kept))
    assert client.get("/v1/audit-events:verify").json()["valid"]
    (head,) = (
        one for one in parse_exported_heads(file.read_text().splitlines()) if one.tenant_id == "default"
    )
    verdict = client.get(f"/v1/audit-events:verify?expected_head={head.sequence}:{head.hash}").json()
    assert (verdict["valid"], verdict["fault"]["code"]) == (False, "END_CUT_OFF")


class TestFile:
    def test_it_is_for_its_owner_alone_and_grows_by_whole_lines(self, tmp_path):
        file = tmp_path / "heads"
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: HeadExports(file=file).write(HEADS), range(40)))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        lines = file.read_text().splitlines()
        assert len(lines) == 40
        assert parse_exported_heads(lines) == HEADS

    def test_a_line_after_one_that_was_cut_can_be_read(self, tmp_path):
        file = tmp_path / "heads"
        file.write_bytes(b'{"heads": [')
        append_line(file, b"{}\n")
        assert file.read_bytes() == b'{"heads": [\n{}\n'

    def test_what_does_not_fit_leaves_nothing(self, tmp_path, monkeypatch):
        file = tmp_path / "heads"
        append_line(file, b"{}\n")
        write = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:1]))
        with pytest.raises(OSError, match="no space"):
            append_line(file, b"{}\n")
        assert file.read_bytes() == b"{}\n"


@contextlib.contextmanager
def stamping(reply):
    """An authority at an address of this host, and who asks it; ``reply`` makes an answer of a question."""
    with receiver() as standing:

        def say(connection, _):
            content = reply(*authority.asked(standing.received[-1][2]))
            connection.sendall(answer(200, body=content))

        standing.script["/stamp"] = say
        outbound = OutboundClient(LOOPBACK, timeout_seconds=5.0)
        yield standing, TimeStampAuthority(standing.url("/stamp"), outbound)


class TestTimeStamps:
    pytestmark = SOCKETS

    def test_a_line_has_one_of_its_heads(self, tmp_path):
        file = tmp_path / "heads"
        with stamping(authority.answer) as (standing, tsa):
            HeadExports(file=file, stamp=tsa.stamp).write(HEADS)
        ((headers, _),) = standing.at("/stamp")
        assert headers["content-type"] == "application/timestamp-query"
        (line,) = map(json.loads, file.read_text().splitlines())
        told = decode_timestamp_response(base64.b64decode(line["time_stamp"])).tst_info
        assert told.message_imprint.message == sha256(build_stamped_bytes(line["heads"])).digest()
        assert parse_exported_heads(file.read_text().splitlines()) == HEADS

    @pytest.mark.parametrize(
        ("reply", "code"),
        [
            (lambda digest, nonce: authority.answer(digest, nonce, status=2), "NOT_GRANTED"),
            (lambda digest, nonce: authority.answer(digest, nonce + 1), "OF_SOMETHING_ELSE"),
            (lambda _, nonce: authority.answer(bytes(32), nonce), "OF_SOMETHING_ELSE"),
            (lambda digest, nonce: authority.answer(digest, nonce)[:-3], "NO_TIME_STAMP"),
            (lambda *_: b"", "NO_TIME_STAMP"),
            (lambda *_: b"\x30" * (MOST_BYTES + 1), "NO_TIME_STAMP"),
        ],
    )
    def test_another_answer_is_none(self, reply, code):
        with stamping(reply) as (_, tsa), pytest.raises(TimeStampFailed, match=code):
            tsa.stamp(b"data")

    @pytest.mark.usefixtures("client")
    def test_heads_are_written_without_one_and_the_job_fails(self, database, tmp_path):
        file = tmp_path / "heads"
        tsa = TimeStampAuthority("https://127.0.0.1/stamp", OutboundClient())
        schedule = build_audit_export(HeadExports(file=file, stamp=tsa.stamp))
        with pytest.raises(AssertionError, match="TIME_STAMP_FAILED"):
            do(database, schedule)
        (line,) = map(json.loads, file.read_text().splitlines())
        assert line["heads"]
        assert "time_stamp" not in line

    def test_an_address_of_this_network_is_not_called(self):
        with pytest.raises(TimeStampFailed, match="REFUSED"):
            TimeStampAuthority("https://127.0.0.1/stamp", OutboundClient()).stamp(b"data")


class TestSettings:
    def test_they_say_where_heads_go(self, tmp_path):
        given = Settings(audit_heads_file=tmp_path / "heads", audit_time_stamp_url="https://tsa.example/")
        assert given.audit_exports.file == tmp_path / "heads"
        assert given.audit_exports.stamp is not None
        assert Settings().audit_exports == HeadExports()

    def test_a_time_stamp_needs_a_file(self):
        with pytest.raises(ValueError, match="IRONLAW_AUDIT_HEADS_FILE"):
            Settings(audit_time_stamp_url="https://tsa.example/")

    def test_jobs_are_given_them(self):
        exports = HeadExports(file=Path("somewhere"))
        means = JobDependencies(writes=MEANS.writes, webhooks=MEANS.webhooks, exports=exports)
        assert {"audit.heads", "audit.verify"} <= {one.name for one in list_schedules((), means)}


class TestVerifying:
    def test_faults_are_counted_told_and_gone_when_they_are_mended(self, callers, database, caplog):
        callers.key("models:read")
        schedule = build_audit_verification(callers.client.app.state.means.writes)
        assert do(database, schedule) == {"tenants": 2, "faults": 0, "gaps": 0}
        with database.engine.begin() as connection:
            (scopes,) = connection.execute(select(ApiKeyRow.scopes)).scalars()
            connection.execute(update(ApiKeyRow).values(scopes=["*:*"]))
        assert do(database, schedule, "tomorrow") == {"tenants": 2, "faults": 1, "gaps": 0}
        (told,) = (record for record in caplog.records if record.levelno == logging.ERROR)
        assert "api-keys/" in told.getMessage()
        with database.engine.begin() as connection:
            connection.execute(update(ApiKeyRow).values(scopes=scopes))
        assert do(database, schedule, "later")["faults"] == 0

    def test_the_metrics_say_what_the_last_one_found(self, client, database):
        def metric(name):
            text = client.get("/metrics").text
            (line,) = (line for line in text.splitlines() if line.startswith(f"{name} "))
            return float(line.split()[1])

        assert metric("ironlaw_audit_verified_timestamp_seconds") == 0
        writes = client.app.state.means.writes
        client.post("/v1/api-keys", EXAMPLES["create_api_key"])
        do(database, build_audit_verification(writes))
        assert metric("ironlaw_audit_verified_timestamp_seconds") > 1e9
        assert metric("ironlaw_audit_faults") == 0
        with database.engine.begin() as connection:
            connection.execute(update(ApiKeyRow).values(created_by="token:somebody"))
        do(database, build_audit_verification(writes), "tomorrow")
        assert metric("ironlaw_audit_faults") == 1
