"""The main loop of a node: claim a suite, measure it, upload its results and complete the lease."""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from service.protocol.canonical import compute_digest
from service.protocol.leases import (
    BenchmarkLease,
    LeaseClaimRequest,
)
from service.protocol.nodes import NodeInventory
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import SUITE_FORM
from service.worker.availability import Availability
from service.worker.client import NoAnswer, RequestRefused, Unauthorized
from service.worker.completing import RunCompletion, RunEnding
from service.worker.errors import WorkerError
from service.worker.heartbeat import HeartbeatSender
from service.worker.hold import CANCELLED, LEASE_EXPIRED, LOST, STALE_LEASE, LeaseHolder
from service.worker.ids import generate_hex_128
from service.worker.interrupt import Interrupted, InterruptSignal
from service.worker.process import ChildProcesses
from service.worker.retrying import Backoff
from service.worker.running import STUCK, SuiteRun, request_inventory, resolve_accelerator_index, run_suite
from service.worker.shared import WorkerParts
from service.worker.spool import SpoolEntry
from service.worker.state_directory import ClaimRequest, HeldLease, boot_id_sha256
from service.worker.uploader import ResultUploader

WORKER_STOPPED = "WORKER_STOPPED"
INVENTORY_UNKNOWN = "INVENTORY_UNKNOWN"
"""Problem code of the service that requires an action of the worker."""
REFUSED = "stopped: the service refuses this node's credential; results that it lacks stay in the spool"
WITHOUT_WORK = "stopped: the service gives this node no work, because it is {}; its results stay in the spool"
TOO_NEW = "the service does not read this worker's claims; it may be older than the worker: upgrade it first"
RELEASE_SECONDS = 3.0
"""Seconds of the grace period that are reserved for releasing the lease."""
LOOK_SECONDS = 5.0
_SHORTEST_POLL_SECONDS = 1.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options that the operator of a worker can choose."""

    grace_seconds: float
    accelerator_index: int
    availability: Availability | None = None
    """Rules of the operator; None if the host may be measured at any time."""
    is_once: bool = False
    """True if the worker ends after the first run that it settles."""


class Agent:
    """One worker of one node. Only :meth:`run` starts processes, and waits for them."""

    def __init__(self, shared: WorkerParts, children: ChildProcesses, options: WorkerOptions) -> None:
        self._shared = shared
        self._node = shared.node
        self._home = shared.home
        self._client = shared.client
        self._spool = shared.spool
        self._board = shared.board
        self._gate = shared.gate
        self._children = children
        self._options = options
        self._boot_id_sha256 = boot_id_sha256()
        self._uploader = ResultUploader(shared)
        self._completion = RunCompletion(shared, self._uploader, self._handle_settled_run)
        self._stopping = self._gate.stopping
        self._stop_by = float("inf")
        self._interrupt = InterruptSignal()
        self._claimed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._backoff = Backoff()
        self._unsaved: list[tuple[str, bytes]] = []

    def run(self) -> None:
        """Works until asked to stop.

        Raises:
            WorkerError: The devices of this host cannot be listed, or the service refuses the credential of a
                worker that ends after one run, or gives its node no work.
        """
        self._board.update_status(node=f"{self._node.node_id} ({self._node.device})")
        left = self._spool.recover()
        if left:
            _logger.warning("%d files that a crash left incomplete are set aside", left)
        self._uploader.start()
        self._uploader.wake()
        try:
            listed = request_inventory(self._node.device, self._children, self._interrupt)
        except Interrupted:
            return
        heart = HeartbeatSender(self._shared, self._uploader, listed, boot_id_sha256=self._boot_id_sha256)
        heart.start()
        try:
            while not self._stopping.is_set():
                self._poll_once(heart)
                if self._options.is_once:
                    self._check_prospect(heart)
        finally:
            self._gate.ended.set()
            heart.trigger_heartbeat()
            self._uploader.wake()
        if self._unsaved and not self._save_results():
            _logger.error("%d results are lost, because the disk had no room for them", len(self._unsaved))

    def _check_prospect(self, heart: HeartbeatSender) -> None:
        """Refuses to wait for a run that does not come before an operator acts."""
        if not self._gate.is_open:
            raise WorkerError(REFUSED)
        if heart.state != "active" and not self._stopping.is_set():
            raise WorkerError(WITHOUT_WORK.format(heart.state))

    def stop(self, *, at_once: bool = False) -> None:
        """Ends within the grace period; a running repeat may finish by itself for most of it."""
        seconds = 0.0 if at_once else max(self._options.grace_seconds - RELEASE_SECONDS, 0.0)
        self._stop_by = min(self._stop_by, time.monotonic() + seconds)
        self._stopping.set()
        self._claimed.put(None)
        self._board.set_activity("draining")
        self._interrupt.end_soon(WORKER_STOPPED)
        killer = threading.Timer(seconds, self._interrupt.set, args=(WORKER_STOPPED,))
        killer.daemon = True
        killer.start()

    def _handle_settled_run(self, outcome: str) -> None:
        if self._options.is_once and outcome != "released":
            self.stop(at_once=True)

    def _poll_once(self, heart: HeartbeatSender) -> None:
        """Polls for work once, and does the work if there is some."""
        self._board.set_activity("idle")
        try:
            why = self._completion.settle_earlier_lease() or self._find_claim_obstacle(heart)
            if self._stopping.is_set():
                return
            if why is not None:
                self._board.update_status(notice=why)
                self._stopping.wait(LOOK_SECONDS)
                return
            granted = self._claim_lease(heart)
        except Unauthorized as error:
            self._gate.shut(str(error))
        except NoAnswer as error:
            _logger.warning("%s", error)
            self._stopping.wait(self._backoff.compute_wait_seconds(error.retry_after_seconds))
        except RequestRefused as error:
            self._handle_refusal(heart, error)
        except OSError as error:
            _logger.warning("the disk refuses to store results: %s", error.strerror)
            self._stopping.wait(self._backoff.compute_wait_seconds())
        else:
            self._backoff.reset_failures()
            if granted:
                self._run_lease(heart, *granted)

    def _find_claim_obstacle(self, heart: HeartbeatSender) -> str | None:
        """Returns the reason why no work may be claimed now, or None."""
        self._spool.prune()
        if not self._gate.is_open:
            return self._board.view.notice
        if self._unsaved and not self._save_results():
            return "the disk has no room for results: free space; nothing is dropped, nothing measured"
        if self._spool.compute_state().is_full:
            heart.trigger_heartbeat()
            return "the spool is full; nothing new is measured until results are uploaded or space is freed"
        if self._children.is_stuck:
            return STUCK
        if heart.state != "active":
            return f"the service gives this node no work, because it is {heart.state}"
        obstacle = self._options.availability and self._options.availability.find_obstacle()
        return obstacle.text if obstacle else None

    def _handle_refusal(self, heart: HeartbeatSender, error: RequestRefused) -> None:
        if error.code == INVENTORY_UNKNOWN:
            try:
                self._client.send_inventory(self._node.node_id, heart.inventory)
            except (RequestRefused, NoAnswer, Unauthorized) as again:
                _logger.warning("the inventory was not accepted: %s", again)
            else:
                return
        if error.status == httpx.codes.UNPROCESSABLE_ENTITY:
            self._board.update_status(notice=TOO_NEW)
        _logger.warning("no work was claimed: %s", error)
        self._stopping.wait(self._backoff.compute_wait_seconds(error.retry_after_seconds))

    def _claim_lease(self, heart: HeartbeatSender) -> tuple[BenchmarkLease, float] | None:
        """Claims work, waiting as long as the service allows; a stop ends the wait at once.

        The request continues in its own thread then. If it is still granted a lease, the next process claims
        under the same id and receives it.
        """
        self._board.update_status(notice="")
        request = self._home.load_state(ClaimRequest)
        if request is None:
            request = ClaimRequest(request_id=generate_hex_128())
            self._home.save_state(request)
        claim = LeaseClaimRequest(
            request_id=request.request_id,
            inventory_sha256=compute_digest(heart.inventory),
            suite_form=SUITE_FORM,
        )
        claimed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._claimed = claimed
        began = time.monotonic()
        asking = (claimed, lambda: self._client.claim_lease(claim))
        threading.Thread(target=_put_answer, args=asking, daemon=True).start()
        if self._stopping.is_set():
            return None
        granted: tuple[BenchmarkLease, float] | Exception | None = claimed.get()
        if isinstance(granted, Exception):
            raise granted
        if granted is None and time.monotonic() - began < _SHORTEST_POLL_SECONDS:
            self._stopping.wait(self._backoff.compute_wait_seconds())
        return granted

    def _run_lease(self, heart: HeartbeatSender, lease: BenchmarkLease, sent_at: float) -> None:
        """Runs the suite of a lease, whatever its outcome."""
        self._interrupt = interrupt = InterruptSignal()
        if self._stopping.is_set():
            interrupt.set(WORKER_STOPPED)
        hold = LeaseHolder(self._shared, lease, sent_at, interrupt)
        _logger.info("run %s, attempt %d: %s", lease.id, lease.attempt, lease.suite.id)
        self._board.start_suite(lease.suite, lease.attempt)
        kept: list[SpoolEntry] = []
        try:
            self._home.save_state(HeldLease(id=lease.id, fencing_token=lease.fencing_token))
            self._home.delete_state(ClaimRequest)
            self._board.set_activity("measuring")
            heart.trigger_heartbeat()
            ending = self._measure_suite(heart, lease, interrupt, kept)
            self._completion.save_ending(lease, ending, kept)
            self._complete_lease(hold, ending, kept)
        except Interrupted as error:
            _logger.warning("run %s is abandoned: %s", lease.id, error.reason)
            if error.reason == STALE_LEASE:
                self._completion.forget_lease("released")
        except RequestRefused as error:
            _logger.warning("run %s had already ended: %s", lease.id, error)
            self._completion.forget_lease("released")
        except OSError as error:
            _logger.error("run %s is released, the disk refuses: %s", lease.id, error.strerror)  # noqa: TRY400
            with contextlib.suppress(RequestRefused):
                self._completion.complete_run(
                    lease, RunEnding("released", "DISK_REFUSES"), kept, self._backoff
                )
        finally:
            hold.stop_renewing()
            self._interrupt = InterruptSignal()
            heart.trigger_heartbeat()

    def _measure_suite(
        self,
        heart: HeartbeatSender,
        lease: BenchmarkLease,
        interrupt: InterruptSignal,
        kept: list[SpoolEntry],
    ) -> RunEnding:
        """Measures the suite and returns its outcome.

        Raises:
            Interrupted: The lease is lost.
        """

        def save_result(result: BenchmarkResultReport) -> None:
            self._unsaved.append((result.result_id, result.to_json()))
            while not self._save_results(kept):
                self._board.update_status(
                    notice="the disk has no room for results: free space; the suite waits"
                )
                interrupt.wait(self._backoff.compute_wait_seconds())

        try:
            self._refresh_inventory(heart, interrupt)
            run = self._build_run(lease, heart.inventory)
            with self._guard_device(interrupt):
                measured = run_suite(run, self._children, interrupt, self._board, save_result)
        except WorkerError as error:
            return RunEnding("failed", "DEVICE_NOT_USABLE", str(error))
        except Interrupted as error:
            if error.reason in LOST:
                raise
            return RunEnding("cancelled" if error.reason == CANCELLED else "released", error.reason)
        return RunEnding("completed") if measured else RunEnding("failed", "NOTHING_MEASURED")

    def _guard_device(self, interrupt: InterruptSignal) -> contextlib.AbstractContextManager[None]:
        """Gives the device back during the block once the operator's rules ask for it."""
        rules = self._options.availability
        if rules is None:
            return contextlib.nullcontext()
        return rules.guard(interrupt, lambda: self._children.running_ids)

    def _refresh_inventory(self, heart: HeartbeatSender, interrupt: InterruptSignal) -> None:
        """Updates the inventory: a driver or a power limit may have changed."""
        listed = request_inventory(self._node.device, self._children, interrupt)
        if listed == heart.inventory:
            return
        heart.inventory = listed
        try:
            self._client.send_inventory(self._node.node_id, listed)
        except (RequestRefused, NoAnswer, Unauthorized) as error:
            _logger.warning("the inventory was not sent; the next heartbeat names it: %s", error)

    def _build_run(self, lease: BenchmarkLease, listed: NodeInventory) -> SuiteRun:
        return SuiteRun(
            run_id=lease.id,
            suite=lease.suite,
            seed=lease.seed,
            fencing_token=lease.fencing_token,
            attempt=lease.attempt,
            nonce=lease.nonce,
            node_id=self._node.node_id,
            boot_id_sha256=self._boot_id_sha256,
            inventory_sha256=compute_digest(listed),
            accelerator_index=resolve_accelerator_index(listed, self._options.accelerator_index),
            accelerators=tuple(accelerator.index for accelerator in listed.accelerators),
            clock_offset_seconds=self._client.offset.seconds,
        )

    def _save_results(self, kept: list[SpoolEntry] | None = None) -> bool:
        """Writes pending results to disk; returns true if all of them are written."""
        while self._unsaved:
            try:
                entry = self._spool.add(*self._unsaved[0])
            except OSError as error:
                _logger.error("a result could not be written to disk: %s", error.strerror)  # noqa: TRY400
                return False
            del self._unsaved[0]
            if kept is not None:
                kept.append(entry)
            self._uploader.wake()
        return True

    def _may_complete_late(self) -> bool:
        return self._gate.is_open and not self._spool.compute_state().is_full

    def _complete_lease(self, hold: LeaseHolder, ending: RunEnding, kept: list[SpoolEntry]) -> None:
        """Reports the outcome, once the service has all results of the run or the grace period is over.

        A suite that was finished in time completes its run even if the service comes back too late for the
        lease, unless the spool is full by then: the node says so instead of waiting.
        """
        backoff = Backoff()
        while hold.lost is None or (hold.lost == LEASE_EXPIRED and self._may_complete_late()):
            is_last = time.monotonic() >= self._stop_by
            if not self._save_results(kept):
                time.sleep(self._limit_wait(backoff.compute_wait_seconds()))
            is_handed_over = not self._unsaved and self._uploader.wait(
                lambda: not self._completion.has_waiting_results(kept), self._limit_wait(LOOK_SECONDS)
            )
            if is_last and not is_handed_over:
                ending = RunEnding("released", WORKER_STOPPED)
            elif not is_handed_over:
                continue
            seconds = self._completion.complete_run(hold.lease, ending, kept, backoff)
            if seconds is None or is_last:
                return
            time.sleep(self._limit_wait(seconds))
        raise Interrupted(hold.lost)

    def _limit_wait(self, seconds: float) -> float:
        """Limits a wait to the time that is left to stop."""
        return max(min(seconds, self._stop_by - time.monotonic()), 0.0)


def _put_answer(answers: "queue.SimpleQueue[Any]", ask: Callable[[], Any]) -> None:
    """Puts the result or the error of a call into a queue."""
    try:
        answers.put(ask())
    except Exception as error:  # noqa: BLE001  # raised again by the reader of the queue
        answers.put(error)
