"""The chain over real rows: whatever is done to them behind the service's back is found."""

from contextvars import copy_context
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from service.audit import repository
from service.audit.chain import GENESIS, verify_chain
from service.audit.service import WriteContext, WriteOutcome, Writes
from service.kit.http.cancellation import NoLongerWantedError, unwanted
from service.kit.security.keyring import Keyring
from service.kit.security.principals import LOCAL
from tests.applications import KEYRING

TENANT = "audited"
SUBJECT = LOCAL._replace(tenant_id=TENANT)
EVENTS = 6


def record(database, writes, number, subject=SUBJECT, operation="create_grid"):
    call = WriteContext(subject, operation, "/v1/grids", f"request-{number}")
    with database.open_writer() as session:
        writes.record(session, call, WriteOutcome(resource=f"grids/{number}", after={"number": number}))


@pytest.fixture
def writes(database):
    writes = Writes(database, KEYRING)
    for number in range(EVENTS):
        record(database, writes, number)
    return writes


def verdict(database, writes, tenant=TENANT):
    with database.open_reader() as session:
        return writes.verify_chain(session, tenant)


def change(database, *statements):
    with database.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_a_chain_holds(database, writes):
    found = verdict(database, writes)
    assert (found.events, found.fault) == (EVENTS, None)
    assert found.head_hash != GENESIS


def test_a_verification_ends_once_its_caller_has_gone(database, writes):
    gone = Event()
    gone.set()
    context = copy_context()
    context.run(unwanted.set, gone)
    with pytest.raises(NoLongerWantedError):
        context.run(verdict, database, writes)


def test_chains_of_tenants_are_apart(database, writes):
    record(database, writes, 0, SUBJECT._replace(tenant_id="other"))
    assert verdict(database, writes, "other").events == 1
    change(database, "DELETE FROM audit_events WHERE tenant_id = 'other'")
    assert verdict(database, writes, "other").fault
    assert verdict(database, writes).fault is None


COLUMNS = {
    "occurred_at": "'2001-02-03 04:05:06+00:00'",
    "operation": "'delete_grid'",
    "resource": "'grids/9'",
    "subject_kind": "'token'",
    "subject_id": "'somebody'",
    "subject_salt": "NULL",
    "subject_digest": "'0'",
    "request_id": "'other'",
    "before_digest": "'0'",
    "after_digest": "NULL",
    "state_digest": "'0'",
    "previous_hash": "'0'",
    "hash": "'0'",
}


class TestAnyChangeIsFound:
    @pytest.mark.parametrize("sequence", [1, 3, EVENTS])
    @pytest.mark.parametrize("column", COLUMNS)
    def test_of_a_column(self, database, writes, column, sequence):
        where = f"WHERE tenant_id = '{TENANT}' AND sequence = {sequence}"
        change(database, f"UPDATE audit_events SET {column} = {COLUMNS[column]} {where}")
        fault = verdict(database, writes).fault
        assert fault
        assert fault.sequence in (sequence, sequence + 1)

    def test_every_column_is_tried(self):
        table = repository.AuditEventRow.__table__
        assert set(COLUMNS) | {"tenant_id", "sequence"} == {column.key for column in table.columns}

    @pytest.mark.parametrize("sequence", [1, 3, EVENTS])
    def test_a_dropped_event(self, database, writes, sequence):
        change(database, f"DELETE FROM audit_events WHERE tenant_id = '{TENANT}' AND sequence = {sequence}")
        assert verdict(database, writes).fault.sequence == sequence

    def test_two_that_changed_places(self, database, writes):
        swap = "UPDATE audit_events SET sequence = {} WHERE tenant_id = 'audited' AND sequence = {}"
        change(database, *(swap.format(*pair) for pair in ((99, 2), (2, 3), (3, 99))))
        assert verdict(database, writes).fault.sequence == 2

    def test_a_removed_subject(self, database, writes):
        change(
            database,
            "UPDATE audit_events SET subject_id = NULL, subject_salt = NULL "
            f"WHERE tenant_id = '{TENANT}' AND sequence = 2",
        )
        fault = verdict(database, writes).fault
        assert (fault.sequence, fault.code) == (2, "SUBJECT_REMOVED")

    def test_an_end_cut_off_with_its_head_moved_back(self, database, writes):
        """The head of the shorter chain can be computed by anybody, its seal cannot."""
        where = f"WHERE tenant_id = '{TENANT}'"
        last = f"(SELECT hash FROM audit_events {where} AND sequence = {EVENTS - 1})"
        change(
            database,
            f"UPDATE audit_heads SET sequence = {EVENTS - 1}, hash = {last} {where}",
            f"DELETE FROM audit_events {where} AND sequence = {EVENTS}",
        )
        assert verdict(database, writes).fault.code == "SEAL_BROKEN"

    def test_a_chain_without_its_head(self, database, writes):
        change(database, f"DELETE FROM audit_heads WHERE tenant_id = '{TENANT}'")
        assert verdict(database, writes).fault.code == "HEAD_MISSING"

    def test_a_head_without_its_chain(self, database, writes):
        change(database, f"DELETE FROM audit_events WHERE tenant_id = '{TENANT}'")
        assert verdict(database, writes).fault

    def test_the_whole_record_of_a_tenant_that_is_known(self, database, writes):
        where = f"WHERE tenant_id = '{TENANT}'"
        change(database, f"DELETE FROM audit_events {where}", f"DELETE FROM audit_heads {where}")
        with database.open_reader() as session:
            found = writes.verify_chain(session, TENANT)
        assert found.fault.code == "HEAD_MISSING"

    def test_a_chain_made_anew_without_the_secret(self, database):
        forger = Writes(database, Keyring(b"another secret of thirty-two bytes"))
        record(database, forger, 0)
        assert verdict(database, Writes(database, KEYRING)).fault.code == "SEAL_BROKEN"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("writes")
@given(order=st.permutations(range(1, EVENTS + 1)), kept=st.integers(0, EVENTS))
def test_only_the_whole_chain_in_order_holds(database, order, kept):
    with database.open_reader() as session, repository.stream_events(session, TENANT) as chain:
        events = {event.sequence: event for event in chain}
        shuffled = [events[sequence] for sequence in order[:kept]]
        found = verify_chain(
            TENANT, shuffled, repository.get_head(session, TENANT), KEYRING.derive_key("audit seal")
        )
    assert (found.fault is None) == ([event.sequence for event in shuffled] == list(range(1, EVENTS + 1)))


def test_many_writers_make_one_chain(database, writes):
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: record(database, writes, number), range(40)))
    found = verdict(database, writes)
    assert (found.events, found.fault) == (EVENTS + 40, None)
