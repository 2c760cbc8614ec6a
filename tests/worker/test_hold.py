"""A lease is held by this host's own clock, which nobody sets and which a suspended host does not stop."""

import time
from datetime import UTC, datetime

import pytest

from service.protocol.leases import BenchmarkLease
from service.worker import hold as module
from service.worker.client import ServiceClient
from service.worker.clock import ClockOffset, read_ticks
from service.worker.credential import WorkerCredentials
from service.worker.gate import RequestGate
from service.worker.hold import LeaseHolder
from service.worker.interrupt import Interrupted, InterruptSignal
from service.worker.retrying import Backoff
from service.worker.shared import WorkerParts
from service.worker.spool import ResultSpool
from service.worker.state_directory import Node, StateDirectory
from service.worker.status import WorkerStatus
from tests.worker.fake import ADDRESS, NODE_ID, FakeService, secret
from tests.worker.records import suite

LEASE = BenchmarkLease.model_validate_json(
    '{"id": "run-1", "fencing_token": 1, "nonce": "' + "0" * 32 + '", "attempt": 1, "lease_seconds": 90,'
    ' "renew_seconds": 30, "runtime_seconds": 3600, "seed": 1, "server_time": "2026-11-21T12:00:00Z",'
    f' "suite": {suite().model_dump_json()}}}'
)


@pytest.fixture
def service():
    made = FakeService(suite())
    made.held, made.token = ("x", "0" * 32), 1
    return made


@pytest.fixture
def shared(tmp_path, service):
    home, board = StateDirectory(tmp_path / "worker"), WorkerStatus()
    WorkerCredentials.store(home.credential, secret(1))
    credentials = WorkerCredentials(home.credential)
    return WorkerParts(
        node=Node(node_id=NODE_ID, service=ADDRESS, device="cpu"),
        home=home,
        client=ServiceClient(ADDRESS, credentials=credentials, transport=service.transport),
        credentials=credentials,
        spool=ResultSpool(home.spool, most_bytes=2**20, least_free_bytes=0),
        board=board,
        gate=RequestGate(board),
    )


@pytest.fixture
def interrupt():
    return InterruptSignal()


def until_interrupted(interrupt, seconds):
    with pytest.raises(Interrupted) as raised:
        interrupt.wait(seconds)
    return raised.value.reason


def test_after_a_long_sleep_the_lease_is_lost_at_once(shared, interrupt, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.05)
    asleep = 0.0
    monkeypatch.setattr(module, "read_ticks", lambda: read_ticks() + asleep)
    lease = LEASE.model_copy(update={"renew_seconds": 200.0})
    hold = LeaseHolder(shared, lease, read_ticks(), interrupt)
    interrupt.wait(0.2)
    asleep = 91.0
    assert until_interrupted(interrupt, 1.0) == "LEASE_EXPIRED"
    assert hold.lost == "LEASE_EXPIRED"


def test_it_is_renewed_again_and_again(shared, service, interrupt):
    hold = LeaseHolder(
        shared,
        LEASE.model_copy(update={"lease_seconds": 0.5, "renew_seconds": 0.05}),
        read_ticks(),
        interrupt,
    )
    service.lease_seconds = 0.5
    interrupt.wait(1.0)
    hold.stop_renewing()
    assert len(service.renewals) >= 5
    assert hold.lost is None
    count = len(service.renewals)
    time.sleep(0.2)
    assert len(service.renewals) <= count + 1


def test_a_lease_of_another_attempt_is_lost(shared, service, interrupt):
    service.token = 2
    hold = LeaseHolder(shared, LEASE.model_copy(update={"renew_seconds": 0.0}), read_ticks(), interrupt)
    assert until_interrupted(interrupt, 2.0) == "STALE_LEASE"
    assert hold.lost == "STALE_LEASE"


def test_waits_grow_to_a_limit_at_random_over_their_whole_length(monkeypatch):
    longest = []
    monkeypatch.setattr("random.uniform", lambda low, high: longest.append((low, high)) or high)
    backoff = Backoff(1.0, 60.0)
    waits = [backoff.compute_wait_seconds() for _ in range(2000)]
    assert waits[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert waits[-1] == 60
    assert {low for low, _ in longest} == {0.0}
    assert backoff.compute_wait_seconds(7.0) == 67
    backoff.reset_failures()
    assert backoff.compute_wait_seconds() == 1


def test_the_offset_is_that_of_the_quickest_answer():
    offset = ClockOffset()
    assert offset.seconds is None
    for round_trip, error in ((4.0, 1.5), (0.02, 0.001), (2.0, -0.9)):
        sent = 1_000_000.0
        at = datetime.fromtimestamp(sent + round_trip / 2 + 100.0 + error, UTC)
        offset.record_answer(at, sent, sent + round_trip)
    assert offset.seconds == pytest.approx(100.001, abs=1e-5)
