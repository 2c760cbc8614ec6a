"""The main loop of a node: claim a suite, measure it, hand its results over, give the lease back."""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from service.protocol.base import Code
from service.protocol.canonical import digest
from service.protocol.leases import Claim, Completion, Lease, StoredResult
from service.protocol.nodes import Inventory
from service.protocol.results import Result
from service.worker.client import Refused, Unanswered, Unauthorized
from service.worker.errors import WorkerError
from service.worker.heart import Heart
from service.worker.hold import CANCELLED, LOST, STALE_LEASE, Hold
from service.worker.home import ClaimRequest, HeldLease, boot_id_sha256
from service.worker.ids import hex_128
from service.worker.interrupt import Interrupt, Interrupted
from service.worker.process import Children
from service.worker.redaction import one_line
from service.worker.retrying import Backoff
from service.worker.running import STUCK, Run, accelerator_index, inventory, run_suite
from service.worker.shared import Shared
from service.worker.spool import Entry
from service.worker.uploader import Uploader

WORKER_STOPPED, WORKER_RESTARTED = "WORKER_STOPPED", "WORKER_RESTARTED"
RESULTS_MISSING, INVENTORY_UNKNOWN = "RESULTS_MISSING", "INVENTORY_UNKNOWN"
"""Codes of the service that ask for something."""
RELEASE_SECONDS = 3.0
"""Of the time to stop, kept for giving the lease back."""
LOOK_SECONDS = 5.0
_MOST_NAMED = 1000
"""Results that a completion can name."""
_SHORTEST_POLL_SECONDS = 1.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What whoever runs a worker can choose."""

    grace_seconds: float
    accelerator_index: int
    is_once: bool = False
    """Whether it ends after the first run that it settles."""


class Ending(NamedTuple):
    """How a run ends, for the service."""

    outcome: Literal["completed", "failed", "released", "cancelled"]
    reason: Code | None = None
    detail: str = ""


class Agent:
    """One worker of one node. Only :meth:`run` starts processes, and waits for them."""

    def __init__(self, shared: Shared, children: Children, options: Options) -> None:
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
        self._uploader = Uploader(shared)
        self._stopping = self._gate.stopping
        self._stop_by = float("inf")
        self._interrupt = Interrupt()
        self._claimed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._backoff = Backoff()
        self._unsaved: list[tuple[str, bytes]] = []

    def run(self) -> None:
        """Work until asked to stop.

        Raises:
            WorkerError: the devices of this host cannot be listed.
        """
        self._board.say(node=f"{self._node.node_id} ({self._node.device})")
        left = self._spool.recover()
        if left:
            _logger.warning("%d files that a crash left half-written are set aside", left)
        self._uploader.start()
        self._uploader.wake()
        try:
            listed = inventory(self._node.device, self._children, self._interrupt)
        except Interrupted:
            return
        heart = Heart(self._shared, self._uploader, listed, boot_id_sha256=self._boot_id_sha256)
        heart.start()
        try:
            while not self._stopping.is_set():
                self._turn(heart)
        finally:
            self._gate.ended.set()
            heart.beat_now()
            self._uploader.wake()
        if self._unsaved and not self._save():
            _logger.error("%d results are lost: there was no room for them", len(self._unsaved))

    def stop(self, *, at_once: bool = False) -> None:
        """End within the time of grace: a repeat that runs may end by itself for most of it."""
        seconds = 0.0 if at_once else max(self._options.grace_seconds - RELEASE_SECONDS, 0.0)
        self._stop_by = min(self._stop_by, time.monotonic() + seconds)
        self._stopping.set()
        self._claimed.put(None)
        self._board.set_activity("draining")
        self._interrupt.end_soon(WORKER_STOPPED)
        killer = threading.Timer(seconds, self._interrupt.set, args=(WORKER_STOPPED,))
        killer.daemon = True
        killer.start()

    def _turn(self, heart: Heart) -> None:
        """One look for work, and the work if there is some."""
        self._board.set_activity("idle")
        try:
            self._give_back()
            why = self._why_not(heart)
            if why is not None:
                self._board.say(notice=why)
                self._stopping.wait(LOOK_SECONDS)
                return
            granted = self._claim(heart)
        except Unauthorized as error:
            self._gate.shut(str(error))
        except Unanswered as error:
            _logger.warning("%s", error)
            self._stopping.wait(self._backoff.wait_seconds(error.retry_after_seconds))
        except Refused as error:
            self._refused(heart, error)
        except OSError as error:
            _logger.warning("the disk refuses: %s", error.strerror)
            self._stopping.wait(self._backoff.wait_seconds())
        else:
            self._backoff.succeeded()
            if granted:
                self._work(heart, *granted)

    def _give_back(self) -> None:
        """Release the lease that an earlier process held, or that could not be ended in time."""
        held = self._home.load(HeldLease)
        if held is None or not self._gate.is_open:
            return
        completion = Completion(fencing_token=held.fencing_token, outcome="released", reason=WORKER_RESTARTED)
        try:
            self._client.complete(held.id, completion)
        except Refused as error:
            _logger.info("the lease held before has ended: %s", error)
        else:
            _logger.info("the lease held before is given back")
        self._home.forget(ClaimRequest)
        self._home.forget(HeldLease)

    def _why_not(self, heart: Heart) -> str | None:
        """Why nothing is claimed now; None if something is."""
        self._spool.prune()
        if not self._gate.is_open:
            return self._board.view.notice
        if self._unsaved and not self._save():
            return "the disk has no room for results: make some; nothing is dropped, nothing new is measured"
        if self._spool.state().is_full:
            heart.beat_now()
            return (
                "the spool is full: nothing new is measured until its results are uploaded, or there is room"
            )
        if self._children.is_stuck:
            return STUCK
        if heart.state != "active":
            return f"the service gives this node nothing to run: it is {heart.state}"
        return None

    def _refused(self, heart: Heart, error: Refused) -> None:
        if error.code == INVENTORY_UNKNOWN:
            try:
                self._client.send_inventory(self._node.node_id, heart.inventory)
            except (Refused, Unanswered, Unauthorized) as again:
                _logger.warning("the inventory was not taken: %s", again)
            else:
                return
        _logger.warning("nothing to run: %s", error)
        self._stopping.wait(self._backoff.wait_seconds(error.retry_after_seconds))

    def _claim(self, heart: Heart) -> tuple[Lease, float] | None:
        """Ask for work, for as long as the service lets us wait; a stop ends it at once.

        The request goes on in its own thread then. Should it still be granted something, the next process
        asks under the same id and gets it.
        """
        self._board.say(notice="")
        request = self._home.load(ClaimRequest)
        if request is None:
            request = ClaimRequest(request_id=hex_128())
            self._home.keep(request)
        claim = Claim(request_id=request.request_id, inventory_sha256=digest(heart.inventory))
        claimed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._claimed = claimed
        began = time.monotonic()
        asking = (claimed, lambda: self._client.claim(claim))
        threading.Thread(target=_answered, args=asking, daemon=True).start()
        if self._stopping.is_set():
            return None
        granted: tuple[Lease, float] | Exception | None = claimed.get()
        if isinstance(granted, Exception):
            raise granted
        if granted is None and time.monotonic() - began < _SHORTEST_POLL_SECONDS:
            self._stopping.wait(self._backoff.wait_seconds())
        return granted

    def _work(self, heart: Heart, lease: Lease, sent_at: float) -> None:
        """Run the suite of a lease to whatever end."""
        self._interrupt = interrupt = Interrupt()
        if self._stopping.is_set():
            interrupt.set(WORKER_STOPPED)
        hold = Hold(self._shared, lease, sent_at, interrupt)
        _logger.info("run %s, attempt %d: %s", lease.id, lease.attempt, lease.suite.id)
        self._board.begin(lease.suite, lease.attempt)
        kept: list[Entry] = []
        try:
            self._home.keep(HeldLease(id=lease.id, fencing_token=lease.fencing_token))
            self._home.forget(ClaimRequest)
            self._board.set_activity("measuring")
            heart.beat_now()
            ending = self._measure(heart, lease, interrupt, kept)
            self._complete(hold, ending, kept)
        except Interrupted as error:
            _logger.warning("run %s is given up: %s", lease.id, error.reason)
            if error.reason == STALE_LEASE:
                self._home.forget(HeldLease)
        except Refused as error:
            _logger.warning("run %s had ended: %s", lease.id, error)
            self._home.forget(HeldLease)
        except OSError as error:
            _logger.error("run %s is given back, the disk refuses: %s", lease.id, error.strerror)  # noqa: TRY400
            with contextlib.suppress(Refused):
                self._tell(lease, Ending("released", "DISK_REFUSES"), kept, self._backoff)
        finally:
            hold.let_go()
            self._interrupt = Interrupt()
            heart.beat_now()

    def _measure(self, heart: Heart, lease: Lease, interrupt: Interrupt, kept: list[Entry]) -> Ending:
        """Measure the suite; how the run ends.

        Raises:
            Interrupted: the lease is lost.
        """

        def keep(result: Result) -> None:
            self._unsaved.append((result.result_id, result.to_json()))
            while not self._save(kept):
                self._board.say(notice="the disk has no room for results: make some; the suite waits")
                interrupt.wait(self._backoff.wait_seconds())

        try:
            self._list_devices(heart, interrupt)
            run = self._run_of(lease, heart.inventory)
            measured = run_suite(run, self._children, interrupt, self._board, keep)
        except WorkerError as error:
            return Ending("failed", "DEVICE_NOT_USABLE", str(error))
        except Interrupted as error:
            if error.reason in LOST:
                raise
            return Ending("cancelled" if error.reason == CANCELLED else "released", error.reason)
        return Ending("completed") if measured else Ending("failed", "NOTHING_MEASURED")

    def _list_devices(self, heart: Heart, interrupt: Interrupt) -> None:
        """Let the inventory be that of now: a driver or a power limit may have changed."""
        listed = inventory(self._node.device, self._children, interrupt)
        if listed == heart.inventory:
            return
        heart.inventory = listed
        try:
            self._client.send_inventory(self._node.node_id, listed)
        except (Refused, Unanswered, Unauthorized) as error:
            _logger.warning("the inventory was not sent, the next heartbeat names it: %s", error)

    def _run_of(self, lease: Lease, listed: Inventory) -> Run:
        return Run(
            run_id=lease.id,
            suite=lease.suite,
            seed=lease.seed,
            fencing_token=lease.fencing_token,
            attempt=lease.attempt,
            nonce=lease.nonce,
            node_id=self._node.node_id,
            boot_id_sha256=self._boot_id_sha256,
            inventory_sha256=digest(listed),
            accelerator_index=accelerator_index(listed, self._options.accelerator_index),
            accelerators=tuple(accelerator.index for accelerator in listed.accelerators),
            clock_offset_seconds=self._client.offset.seconds,
        )

    def _save(self, kept: list[Entry] | None = None) -> bool:
        """Bring to the disk what is not there yet; whether all of it is."""
        while self._unsaved:
            try:
                entry = self._spool.add(*self._unsaved[0])
            except OSError as error:
                _logger.error("a result is not on the disk: %s", error.strerror)  # noqa: TRY400
                return False
            del self._unsaved[0]
            if kept is not None:
                kept.append(entry)
            self._uploader.wake()
        return True

    def _complete(self, hold: Hold, ending: Ending, kept: list[Entry]) -> None:
        """Say how the run ended, once the service has every result of it, or the time to stop is over."""
        backoff = Backoff()
        while hold.lost is None:
            is_last = time.monotonic() >= self._stop_by
            if not self._save(kept):
                time.sleep(self._until_stop(backoff.wait_seconds()))
            is_handed_over = not self._unsaved and self._uploader.wait(
                lambda: not self._waiting(kept), self._until_stop(LOOK_SECONDS)
            )
            if is_last and not is_handed_over:
                ending = Ending("released", WORKER_STOPPED)
            elif not is_handed_over:
                continue
            seconds = self._tell(hold.lease, ending, kept, backoff)
            if seconds is None or is_last:
                return
            time.sleep(self._until_stop(seconds))
        raise Interrupted(hold.lost)

    def _tell(self, lease: Lease, ending: Ending, kept: list[Entry], backoff: Backoff) -> float | None:
        """Give the lease back; None once that is settled, or after how many seconds to try again."""
        try:
            answer = self._client.complete(lease.id, self._completion(lease, ending, kept))
        except Refused as error:
            if error.code != RESULTS_MISSING:
                raise
            self._spool.bring_back([entry.content_sha256 for entry in kept])
            self._uploader.wake()
            return backoff.wait_seconds(error.retry_after_seconds)
        except Unauthorized as error:
            self._gate.shut(str(error))
            return backoff.wait_seconds()
        except Unanswered as error:
            _logger.warning("the run is not ended yet: %s", error)
            return backoff.wait_seconds(error.retry_after_seconds)
        _logger.info("run %s: %s, now %s", lease.id, ending.outcome, answer.state)
        self._home.forget(HeldLease)
        if self._options.is_once and ending.outcome != "released":
            self.stop(at_once=True)
        return None

    def _completion(self, lease: Lease, ending: Ending, kept: list[Entry]) -> Completion:
        stored = [entry for entry in kept if self._spool.state_of(entry.result_id) == "acknowledged"]
        optional: dict[str, Any] = {}
        if ending.reason is not None:
            optional["reason"] = ending.reason
        if ending.detail:
            optional["detail"] = one_line(ending.detail)
        return Completion(
            fencing_token=lease.fencing_token,
            outcome=ending.outcome,
            results=[
                StoredResult(result_id=entry.result_id, content_sha256=entry.content_sha256)
                for entry in stored[:_MOST_NAMED]
            ],
            progress=self._board.progress,
            **optional,
        )

    def _waiting(self, kept: list[Entry]) -> bool:
        """Whether a result of this run has not been taken or refused yet."""
        return any(self._spool.state_of(entry.result_id) == "waiting" for entry in kept)

    def _until_stop(self, seconds: float) -> float:
        """At most so many seconds, and no longer than there is time to stop."""
        return max(min(seconds, self._stop_by - time.monotonic()), 0.0)


def _answered(answers: "queue.SimpleQueue[Any]", ask: Callable[[], Any]) -> None:
    """Put what comes of a call where somebody waits for it."""
    try:
        answers.put(ask())
    except Exception as error:  # noqa: BLE001  # raised again by whoever waits
        answers.put(error)
