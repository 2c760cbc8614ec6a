"""The loop of a node against a service in this process: what is measured, kept and handed over."""

import contextlib
import logging
import threading
import time

import httpx
import pytest

from service.protocol.results import content_sha256
from service.worker import agent as module
from service.worker import availability, client, heartbeat, hold
from service.worker.agent import Agent, WorkerOptions
from service.worker.availability import Availability
from service.worker.client import ServiceClient
from service.worker.credential import WorkerCredentials
from service.worker.gate import RequestGate
from service.worker.ids import generate_hex_128
from service.worker.process import EndedProcess
from service.worker.shared import WorkerParts
from service.worker.spool import ResultSpool
from service.worker.state_directory import ClaimRequest, FinishedRun, HeldLease, Node, StateDirectory
from service.worker.status import WorkerStatus
from service.worker.task import RepeatTask
from tests.waiting import until
from tests.worker.fake import ADDRESS, NODE_ID, FakeService, problem, secret
from tests.worker.records import INVENTORY, failed, measured, suite, task


class Stand:
    """In place of child processes: answers at once, or as ``behave`` says."""

    is_stuck = False
    running_ids = frozenset()

    def __init__(self):
        self.tasks, self.behave, self.inventory = [], None, INVENTORY
        self.is_measuring = threading.Event()
        self.killed = 0

    def run(self, words, given, interrupt, **_):
        if words[0] == "inventory":
            return EndedProcess(self.inventory.model_dump_json().encode(), "", 0)
        task = RepeatTask.model_validate_json(given)
        self.tasks.append(task)
        self.is_measuring.set()
        try:
            return (self.behave or self.measure)(task, interrupt)
        except BaseException:
            self.killed += 1
            raise

    @staticmethod
    def measure(task, _=None):
        return EndedProcess(measured(task).to_json(), "", 0)

    @staticmethod
    def hang(_, interrupt):
        interrupt.wait(30.0)
        raise AssertionError("nobody killed it")


class Host:
    """A host with its folder, on which workers start and stop."""

    def __init__(self, folder, service):
        self.service = service
        self.home = StateDirectory(folder)
        self.children = Stand()
        WorkerCredentials.store(self.home.credential, secret(1))
        self.home.save_state(Node(node_id=NODE_ID, service=ADDRESS, device="cpu"))
        self.limits = {"most_bytes": 2**20, "least_free_bytes": 0}
        self.grace_seconds = 4.0
        self.availability = None

    @contextlib.contextmanager
    def works(self):
        credentials, board = WorkerCredentials(self.home.credential), WorkerStatus()
        self.spool = ResultSpool(self.home.spool, **self.limits)
        self.board = board
        shared = WorkerParts(
            node=self.home.load_state(Node),
            home=self.home,
            client=ServiceClient(ADDRESS, credentials=credentials, transport=self.service.transport),
            credentials=credentials,
            spool=self.spool,
            board=board,
            gate=RequestGate(board),
        )
        self.agent = Agent(shared, self.children, WorkerOptions(self.grace_seconds, 0, self.availability))
        failures = []

        def run():
            try:
                self.agent.run()
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        try:
            yield self
        finally:
            self.agent.stop()
            self.thread.join(timeout=60)
            assert not self.thread.is_alive()
            assert failures == []

    def waiting(self):
        return len(self.spool.list_waiting())


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Waits of a test: a tenth of a second for what are seconds."""
    monkeypatch.setattr("service.worker.retrying.BASE_SECONDS", 0.02)
    monkeypatch.setattr("service.worker.retrying.Backoff.__init__.__defaults__", (0.02, 0.2), raising=False)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(module, "RELEASE_SECONDS", 0.5)
    monkeypatch.setattr("service.worker.uploader.LOOK_SECONDS", 0.1)
    monkeypatch.setattr(heartbeat, "HOLD_SECONDS", 0.1)
    monkeypatch.setattr(heartbeat, "SHORTEST_SECONDS", 0.05)
    monkeypatch.setattr(heartbeat, "_MOST_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(hold, "_LOOK_SECONDS", 0.05)


@pytest.fixture
def service():
    return FakeService(suite())


@pytest.fixture
def host(tmp_path, service):
    return Host(tmp_path / "worker", service)


class TestAvailability:
    """What the operator of a host allows holds before a lease is claimed and while it is measured."""

    def test_nothing_is_claimed_while_others_use_the_device(self, host, service):
        others = {77}
        host.availability = Availability(host.home, list_processes=lambda: frozenset(others))
        service.waiting = 1
        with host.works():
            until(lambda: host.board.view.notice == "processes of others on the accelerators of this host: 1")
            assert not service.request_ids
            others.clear()
            until(lambda: service.completions)
        assert service.completions[0].outcome == "completed"

    def test_a_run_is_released_once_they_come_and_goes_on_when_they_have_gone(
        self, host, service, monkeypatch
    ):
        monkeypatch.setattr(availability, "POLL_SECONDS", 0.02)
        others = set()
        host.availability = Availability(host.home, list_processes=lambda: frozenset(others))
        host.children.behave = host.children.hang
        service.waiting = 1
        with host.works():
            assert host.children.is_measuring.wait(30)
            host.children.behave = None
            others.add(77)
            until(lambda: service.completions)
            assert (service.completions[0].outcome, service.completions[0].reason) == (
                "released",
                "DEVICE_IN_USE",
            )
            assert host.children.killed == 1
            others.clear()
            until(lambda: len(service.completions) == 2)
        assert service.completions[1].outcome == "completed"


class TestRun:
    def test_a_suite_from_claim_to_completion(self, host, service):
        service.clock_offset_seconds = 100.0
        service.waiting = 1
        with host.works():
            until(lambda: service.completions)
        (completion,) = service.completions
        assert completion.outcome == "completed"
        assert len(completion.results) == 4
        stored = [result for _, result in service.results.values()]
        assert sorted((r.benchmark.name, r.repeat) for r in stored) == [
            ("gemm.0", 1), ("gemm.0", 2), ("gemm.1", 1), ("gemm.1", 2),
        ]  # fmt: skip
        for result in stored:
            assert (result.run_id, result.fencing_token, result.attempt) == ("run-1", 1, 1)
            assert result.inventory_sha256 in service.inventories
            assert result.clock_offset_seconds == pytest.approx(100.0, abs=1.0)
        assert [step.state for step in completion.progress.steps] == ["done", "done"]
        assert "FLOP/s" in completion.progress.steps[0].detail
        assert host.waiting() == 0
        assert len(host.spool.list_acknowledged()) == 4
        assert host.home.load_state(HeldLease) is None

    def test_one_run_after_the_other_each_under_a_request_of_its_own(self, host, service):
        service.waiting = 3
        with host.works():
            until(lambda: len(service.completions) == 3)
        assert len(set(service.request_ids)) >= 3
        assert len(service.results) == 12

    def test_a_lost_answer_to_a_claim_is_asked_for_again_under_the_same_id(self, host, service):
        def lost(request):
            service.answer(request)
            return httpx.ReadTimeout("lost")

        service.waiting = 1
        service.faults["leases:claim"] = [problem(409, "INVENTORY_UNKNOWN"), lost]
        with host.works():
            until(lambda: service.completions)
        assert service.token == 1
        assert len(set(service.request_ids[: service.request_ids.index(service.request_ids[0]) + 2])) == 1

    def test_a_benchmark_that_fails_is_a_record_and_the_run_goes_on(self, host, service):
        def behave(task, _):
            if task.benchmark.name == "gemm.0":
                return EndedProcess(failed(task, reason="OUT_OF_MEMORY").to_json(), "the end of it", 0)
            return Stand.measure(task)

        host.children.behave = behave
        service.waiting = 1
        with host.works():
            until(lambda: service.completions)
        assert service.completions[0].outcome == "completed"
        assert [step.state for step in service.completions[0].progress.steps] == ["failed", "done"]
        broken = [r for _, r in service.results.values() if r.status == "failed"]
        assert [(r.failure.reason, r.failure.error_output) for r in broken] == [
            ("OUT_OF_MEMORY", "the end of it")
        ] * 2

    def test_a_run_without_any_measurement_has_failed(self, host, service):
        host.children.behave = lambda *_: EndedProcess(b"", "segmentation fault", -11)
        service.waiting = 1
        with host.works():
            until(lambda: service.completions)
        completion = service.completions[0]
        assert (completion.outcome, completion.reason) == ("failed", "NOTHING_MEASURED")
        assert len(completion.results) == 4

    @pytest.mark.parametrize("status", ["unsupported", "timeout"])
    def test_what_would_only_end_in_the_same_way_is_not_repeated(self, host, service, status):
        def behave(task, _):
            if status == "timeout":
                return EndedProcess(b"", "", -9, is_timeout=True)
            return EndedProcess(failed(task, "unsupported").to_json(), "", 0)

        host.children.behave = behave
        service.waiting = 1
        with host.works():
            until(lambda: service.completions)
        assert [(task.benchmark.name, task.repeat) for task in host.children.tasks] == [
            ("gemm.0", 1), ("gemm.1", 1),
        ]  # fmt: skip

    def test_a_process_that_cannot_be_killed_ends_the_run_and_nothing_is_measured_beside_it(
        self, host, service
    ):
        def behave(*_):
            host.children.is_stuck = True
            return EndedProcess(b"", "", None, is_timeout=True)

        host.children.behave = behave
        service.waiting = 2
        with host.works():
            until(lambda: service.completions)
            until(lambda: "hangs in its driver" in host.board.view.notice)
            assert len(host.children.tasks) == 1
            (record,) = [result for _, result in service.results.values()]
            assert record.failure.detail == "after 60 s: it cannot be killed: the driver holds it"
            host.children.is_stuck, host.children.behave = False, None
            until(lambda: len(service.completions) == 2)
        assert [(c.outcome, c.reason) for c in service.completions[:1]] == [("failed", "DEVICE_NOT_USABLE")]
        assert service.completions[1].outcome == "completed"


class TestLease:
    def test_progress_goes_with_renewals(self, host, service):
        service.renew_seconds, service.waiting = 0.05, 1
        host.children.behave = host.children.hang
        with host.works():
            until(lambda: len(service.renewals) >= 3)
            host.agent.stop(at_once=True)
        assert service.renewals[-1].progress.steps[0].state == "running"

    def test_a_stale_lease_kills_what_runs_and_its_results_are_kept_and_uploaded(self, host, service):
        def behave(task, interrupt):
            if (task.benchmark.name, task.repeat) == ("gemm.1", 1) and task.attempt == 1:
                service.held, service.token = None, 5
                return Stand.hang(task, interrupt)
            return Stand.measure(task)

        service.renew_seconds, service.waiting = 0.1, 1
        host.children.behave = behave
        with host.works():
            until(lambda: host.children.killed == 1)
            until(lambda: host.home.load_state(HeldLease) is None)
            until(lambda: len(service.results) == 2)
        assert service.completions == []

    def test_a_lease_that_cannot_be_renewed_ends_by_this_hosts_own_clock(self, host, service):
        """The service counts from a later moment, so a lease that ends here has not ended there."""
        service.lease_seconds, service.renew_seconds, service.waiting = 0.6, 0.1, 1
        host.children.behave = host.children.hang
        service.faults["run-1:renew"] = [httpx.ConnectError("cut")] * 200
        with host.works():
            until(host.children.is_measuring.is_set)
            began = time.monotonic()
            until(lambda: host.children.killed == 1)
            assert time.monotonic() - began < 10.0
            until(lambda: service.completions)
        assert service.completions[0].outcome == "released"

    def test_it_counts_from_when_the_request_was_sent(self, host, service, monkeypatch):
        """Counted from the answer, it would end ten minutes later."""
        slept = []

        def slowly(request):
            answer = service.answer(request)
            slept.append(600.0)
            return answer

        for place in (client, hold):
            monkeypatch.setattr(place, "read_ticks", lambda: time.monotonic() + sum(slept))
        service.lease_seconds, service.renew_seconds, service.waiting = 600.5, 600.4, 1
        service.faults["leases:claim"] = [problem(409, "INVENTORY_UNKNOWN"), slowly]
        service.faults["run-1:renew"] = [httpx.ConnectError("cut")] * 200
        host.children.behave = host.children.hang
        with host.works():
            until(lambda: host.children.killed == 1)

    def test_a_cancelled_run_ends(self, host, service):
        service.renew_seconds, service.waiting, service.cancel = 0.05, 1, True
        host.children.behave = host.children.hang
        with host.works():
            until(lambda: service.completions)
        assert service.completions[0].outcome == "cancelled"

    def test_a_lease_of_an_earlier_process_is_given_back_before_anything_is_claimed(self, host, service):
        service.held, service.token = ("earlier", generate_hex_128()), 3
        host.home.save_state(HeldLease(id="run-1", fencing_token=3))
        with host.works():
            until(lambda: service.completions)
            until(lambda: len(service.completions) == 2)
        assert (service.completions[0].outcome, service.completions[0].reason) == (
            "released",
            "WORKER_RESTARTED",
        )
        assert service.completions[1].outcome == "completed"
        assert service.completions[1].fencing_token == 4

    def test_a_claim_of_an_earlier_process_is_asked_for_again(self, host, service):
        service.held, service.token = ("a" * 32, generate_hex_128()), 1
        host.home.save_state(ClaimRequest(request_id="a" * 32))
        with host.works():
            until(lambda: service.completions)
        assert service.completions[0].fencing_token == 1

    def test_an_answer_to_a_completion_that_is_lost_costs_nothing(self, host, service):
        def lost(request):
            service.answer(request)
            return httpx.ReadTimeout("lost")

        service.waiting = 1
        service.faults["run-1:complete"] = [lost]
        with host.works():
            until(lambda: service.completions)
            until(lambda: host.home.load_state(HeldLease) is None)
        assert len(service.completions) == 1

    def test_results_that_the_service_has_lost_are_sent_again_before_the_run_ends(self, host, service):
        def forgets(_):
            service.results.clear()

        service.waiting = 1
        service.faults["run-1:complete"] = [forgets]
        with host.works():
            until(lambda: service.completions)
        assert len(service.results) == 4


class TestNetwork:
    def test_results_wait_for_as_long_as_it_takes(self, host, service):
        service.waiting = 1
        service.faults["results"] = [
            httpx.ConnectError("cut"), problem(503, "LATER", retry_after="0"), problem(429, "LATER"),
            httpx.ReadTimeout("late"), problem(403, "SCOPE_REQUIRED"), problem(500, "INTERNAL_ERROR"),
        ]  # fmt: skip
        with host.works():
            until(lambda: service.completions)
        assert len(service.results) == 4
        assert len(service.completions[0].results) == 4

    def test_a_suite_that_ended_in_time_completes_its_run_once_the_service_is_back(
        self, host, service, caplog
    ):
        service.waiting, service.lease_seconds, service.renew_seconds = 1, 0.3, 0.1
        operations = ("results", "run-1:renew", "run-1:complete", f"{NODE_ID}:heartbeat")

        def go_away(task, _):
            service.faults |= {name: [httpx.ConnectError("away")] * 10_000 for name in operations}
            return host.children.measure(task)

        host.children.behave = go_away
        with host.works():
            until(lambda: "the lease has expired" in caplog.text)
            service.faults.clear()
            until(lambda: service.completions and not service.waiting)
        assert [(one.outcome, one.fencing_token) for one in service.completions] == [("completed", 1)]
        assert (len(service.results), len(host.children.tasks)) == (4, 4)

    @pytest.mark.parametrize("status", [413, 422])
    def test_a_result_that_is_refused_is_kept_and_the_run_ends_without_it(self, host, service, status):
        service.waiting = 1
        service.faults["results"] = [problem(status, "NOT_AS_ASKED")]
        with host.works():
            until(lambda: service.completions)
            until(lambda: service.heartbeats[-1].spool.rejected_count == 1)
        assert len(service.completions[0].results) == 3
        reasons = list((host.home.spool / "rejected").glob("*.reason.txt"))
        assert [path.read_text().split(":")[0] for path in reasons] == [f"{status} NOT_AS_ASKED"]

    def test_a_receipt_for_something_else_is_none(self, host, service):
        other = httpx.Response(
            200,
            json={
                "result_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12,
                "content_sha256": "0" * 64,
                "lease": "current",
            },
        )
        service.waiting = 1
        service.faults["results"] = [other]
        with host.works():
            until(lambda: service.completions)
        assert len(service.results) == 4

    def test_acknowledged_results_are_offered_at_the_start_and_missing_ones_sent_again(self, host, service):
        service.waiting = 1
        with host.works():
            until(lambda: service.completions)
            offered = set(host.spool.list_acknowledged())
        # The last heartbeat of a worker may come after it has ended.
        until(lambda: not any(isinstance(each, heartbeat.HeartbeatSender) for each in threading.enumerate()))
        lost = service.results.pop(next(iter(service.results)))[0]
        service.missing, service.heartbeats = [lost], []
        with host.works():
            until(lambda: lost in {digest for digest, _ in service.results.values()})
            until(lambda: len(service.heartbeats) > 1)
        assert set(service.heartbeats[0].acknowledged) == offered
        assert service.heartbeats[1].acknowledged == []

    def test_they_are_offered_again_after_a_reconnect(self, host, service):
        service.waiting = 1
        with host.works():
            until(lambda: service.completions)
            until(lambda: service.heartbeats[-1].acknowledged == [])
            service.faults[f"{NODE_ID}:heartbeat"] = [httpx.ConnectError("cut")]
            count = len(service.heartbeats)
            until(lambda: any(len(beat.acknowledged) == 4 for beat in service.heartbeats[count:]))

    def test_a_thousand_digests_fit_one_heartbeat(self, host, service):
        ResultSpool(host.home.spool, **host.limits)
        for number in range(1001):
            content = b"%d" % number
            name = f"{number:08x}-0000-7000-8000-{0:012}.{content_sha256(content)}.json"
            (host.home.spool / "acknowledged" / name).write_bytes(content)
        with host.works():
            until(lambda: len(service.heartbeats) >= 2)
        assert [len(beat.acknowledged) for beat in service.heartbeats[:2]] == [1000, 1]


class TestCredential:
    def test_it_is_rotated_when_the_service_asks(self, host, service, monkeypatch):
        monkeypatch.setattr("service.worker.credential.SETTLED_SECONDS", 0.1)
        service.rotate, service.waiting = True, 2
        with host.works():
            until(lambda: service.generation == 2)
            until(lambda: len(service.completions) == 2)
            until(lambda: secret(1) not in host.home.credential.read_text())
        assert not service.is_quarantined

    def test_a_refused_credential_holds_everything_and_says_what_to_do(self, host, service, caplog):
        service.waiting = 1
        service.faults["results"] = [problem(401, "CREDENTIALS_REQUIRED")] * 2
        with caplog.at_level(logging.INFO, logger="service.worker"), host.works():
            until(host.children.is_measuring.is_set)
            until(lambda: service.completions)
        assert "ironlaw worker enrol --again" in caplog.text

    def test_a_revoked_node_keeps_its_results_and_asks_seldom(self, host, service, caplog):
        def behave(task, _):
            service.is_revoked = True
            return Stand.measure(task)

        host.children.behave = behave
        service.lease_seconds, service.renew_seconds, service.waiting = 0.5, 0.1, 1
        with caplog.at_level(logging.INFO, logger="service.worker"), host.works():
            until(lambda: host.waiting() == 4)
            until(lambda: "enrol" in host.board.view.notice)
            time.sleep(0.6)
            sent = [path for _, path, _ in service.log]
            assert sent.count("/v1/leases:claim") <= 2
            service.is_revoked = False
            until(lambda: service.completions)
        assert [done.outcome for done in service.completions] == ["completed"]
        assert (len(service.results), len(host.children.tasks)) == (4, 4)
        assert secret(1) not in caplog.text


class TestRoom:
    def test_a_full_spool_stops_claiming_and_says_so(self, host, service):
        host.limits["most_bytes"] = 2000
        service.waiting = 2
        service.faults["results"] = [problem(503, "LATER")] * 10_000
        service.lease_seconds = 0.5
        with host.works():
            until(lambda: host.waiting() == 4)
            until(lambda: service.heartbeats[-1].spool.is_full)
            until(lambda: "spool is full" in host.board.view.notice)
            claims = len(service.request_ids)
            time.sleep(0.3)
            assert len(service.request_ids) == claims
            service.faults["results"].clear()
            until(lambda: len(service.results) >= 4)
            until(lambda: len(service.request_ids) > claims)
            until(lambda: not service.heartbeats[-1].spool.is_full)

    def test_a_full_disk_drops_nothing(self, host, service, monkeypatch):
        from service.worker import spool as spool_module  # noqa: PLC0415

        write, is_full = spool_module.write_file, threading.Event()

        def refuse(path, content):
            if is_full.is_set():
                raise OSError(28, "No space left on device")
            write(path, content)

        monkeypatch.setattr(spool_module, "write_file", refuse)
        is_full.set()
        service.waiting = 1
        with host.works():
            until(lambda: "no room" in host.board.view.notice)
            time.sleep(0.2)
            assert len(host.children.tasks) == 1
            is_full.clear()
            until(lambda: service.completions)
        assert len(service.completions[0].results) == 4
        assert len(host.children.tasks) == 4

    def test_a_lease_that_cannot_be_noted_is_given_back(self, host, service, monkeypatch):
        keep = StateDirectory.save_state

        def refuse(home, message):
            if isinstance(message, HeldLease):
                raise OSError(28, "No space left on device")
            keep(home, message)

        monkeypatch.setattr(StateDirectory, "save_state", refuse)
        service.waiting = 1
        with host.works():
            until(lambda: service.completions)
            monkeypatch.undo()
        assert (service.completions[0].outcome, service.completions[0].reason) == ("released", "DISK_REFUSES")
        assert host.children.tasks == [] or host.children.tasks[0].fencing_token > 1


class TestStop:
    def test_between_repeats_it_is_at_once(self, host, service):
        def behave(task, _):
            host.agent.stop()
            return Stand.measure(task)

        service.waiting = 1
        host.children.behave = behave
        with host.works():
            host.thread.join(timeout=60)
            assert not host.thread.is_alive()
        (completion,) = service.completions
        assert (completion.outcome, completion.reason) == ("released", "WORKER_STOPPED")
        assert len(completion.results) == 1
        assert host.home.load_state(HeldLease) is None

    def test_a_repeat_that_does_not_end_in_time_is_killed_and_the_lease_given_back(self, host, service):
        host.grace_seconds = 1.0
        service.waiting = 1
        host.children.behave = host.children.hang
        with host.works():
            until(host.children.is_measuring.is_set)
            began = time.monotonic()
            host.agent.stop()
            host.thread.join(timeout=30)
            assert 0.4 < time.monotonic() - began < 20
        assert service.completions[0].outcome == "released"

    def test_without_a_network_the_lease_is_given_back_by_the_next_process(self, host, service):
        host.grace_seconds = 1.0
        service.waiting = 1
        host.children.behave = host.children.hang
        with host.works():
            until(host.children.is_measuring.is_set)
            service.faults["run-1:complete"] = [httpx.ConnectError("cut")] * 100
            host.agent.stop(at_once=True)
        assert host.home.load_state(HeldLease) is not None
        service.faults.clear()
        host.children.behave = None
        with host.works():
            until(lambda: len(service.completions) == 2)
        assert [done.outcome for done in service.completions] == ["released", "completed"]

    @pytest.mark.parametrize("cut", [("run-1:complete",), ("run-1:complete", "results")], ids=" ".join)
    def test_a_finished_run_is_completed_by_the_next_process_and_not_measured_again(self, host, service, cut):
        host.grace_seconds = 1.0
        service.waiting = 1
        service.faults = {path: [httpx.ConnectError("cut")] * 1000 for path in cut}
        with host.works():
            until(lambda: len(host.children.tasks) == 4 and host.home.load_state(FinishedRun))
            host.agent.stop(at_once=True)
        service.faults.clear()
        with host.works():
            until(lambda: service.completions)
            until(lambda: host.home.load_state(HeldLease) is None)
        (completion,) = service.completions
        assert (completion.outcome, len(completion.results)) == ("completed", 4)
        assert [step.state for step in completion.progress.steps] == ["done", "done"]
        assert len(host.children.tasks) == 4
        assert host.home.load_state(FinishedRun) is None

    def test_a_long_poll_does_not_hold_it(self, host, service):
        asked, done = threading.Event(), threading.Event()

        def long_poll(_):
            asked.set()
            done.wait(60)
            return httpx.Response(204)

        service.faults["leases:claim"] = [problem(409, "INVENTORY_UNKNOWN"), long_poll]
        with host.works():
            until(asked.is_set)
            began = time.monotonic()
            host.agent.stop()
            host.thread.join(timeout=30)
            assert time.monotonic() - began < 20
        done.set()


@pytest.mark.parametrize("state", ["draining", "quarantined"])
def test_a_node_that_is_to_run_nothing_claims_nothing(host, service, state):
    service.state, service.waiting = state, 1
    with host.works():
        until(lambda: state in host.board.view.notice)
        claims = len(service.request_ids)
        time.sleep(0.2)
        assert len(service.request_ids) == claims
        service.state = "active"
        until(lambda: service.completions)


def test_a_service_that_is_older_gets_the_results_and_its_operator_is_told(host, service):
    """It refuses the claim of a newer worker, whose results it reads."""
    service.faults["leases:claim"] = [problem(422, "REQUEST_INVALID")] * 10_000
    spool = ResultSpool(host.home.spool, **host.limits)
    result = measured(task())
    spool.add(result.result_id, result.to_json())
    with host.works():
        until(lambda: service.results and host.board.view.notice == module.TOO_NEW)
        service.faults.clear()
        service.waiting = 1
        until(lambda: service.completions)
    assert host.board.view.notice == ""


def test_heartbeats_say_what_the_node_does(host, service):
    service.waiting, service.renew_seconds = 1, 0.1
    host.children.behave = host.children.hang
    with host.works():
        until(lambda: service.heartbeats and service.heartbeats[-1].activity == "measuring")
        service.state = "draining"
        until(lambda: service.heartbeats[-1].activity == "draining")
        host.agent.stop(at_once=True)


def test_a_node_whose_inventory_is_not_taken_today_is_alive(host, service):
    """Else it would say nothing for as long as it is told to wait with its inventory."""
    service.faults["inventory"] = [problem(429, "NODE_QUOTA_SPENT", retry_after="3600")] * 10_000
    with host.works():
        until(lambda: len(service.heartbeats) > 3)
    assert not service.inventories


def test_an_inventory_that_has_changed_is_sent_and_named(host, service):
    with host.works():
        until(lambda: len(service.inventories) == 1)
        changed = INVENTORY.host.model_copy(update={"kernel": "6.2"})
        host.children.inventory = INVENTORY.model_copy(update={"host": changed})
        service.waiting = 1
        until(lambda: service.completions)
    assert len(service.inventories) == 2
    names = {result.inventory_sha256 for _, result in service.results.values()}
    (name,) = names
    assert service.inventories[name].host.kernel == "6.2"
