"""Delivery of messages by one thread of a process, which waits for many receivers at once.

A delivery is claimed under a lease and sent, and its outcome is written under the token of that lease. If the
process is killed in between, the lease ends by itself; then the message is sent again, under the same id.
"""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy.exc import SQLAlchemyError

from service import __version__
from service.audit.service import Writes
from service.kit.clock import now
from service.kit.database.engine import Database
from service.kit.database.failures import warn_of_error
from service.kit.http.outbound import OutboundRefused
from service.kit.jobs import leases
from service.kit.jobs.leases import LeaseLost
from service.kit.jobs.notifier import JobNotifier
from service.kit.metrics import DELIVERY_ATTEMPTS
from service.kit.tracing import TRACEPARENT, SpanRole, get_traceparent, mark_failed, open_span
from service.webhooks import attempts, repository, signing
from service.webhooks.attempts import LEASE_SECONDS, SUCCESSES, AttemptResult, OutboundMessage
from service.webhooks.fair_scheduling import FairScheduler, ReadyWebhook
from service.webhooks.repository import DeliveryQueueState
from service.webhooks.service import Webhooks
from service.webhooks.tables import DeliveryRow

POLL_SECONDS: Final = 5.0
"""Longest wait. A new delivery ends it at once: one of this process, or on PostgreSQL one of any process."""
_SHORTEST_WAIT_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 0.5
_GIVING_BACK_SECONDS: Final = 1.0
_CLAIMED_AT_ONCE: Final = 16
_REDIRECTS = range(300, 400)
_USER_AGENT = f"Ironlaw/{__version__}"
log = logging.getLogger(__name__)


class Dispatcher:
    """Delivers to every webhook of one database."""

    def __init__(self, database: Database, writes: Writes, webhooks: Webhooks) -> None:
        self._database = database
        self._writes = writes
        self._webhooks = webhooks
        self._bell = JobNotifier()
        self._stopping = threading.Event()
        self._ends_at = math.inf
        self._latest: datetime | None = None
        self._turns = FairScheduler()
        self._sending: dict[asyncio.Task[None], OutboundMessage] = {}
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run_dispatch_loop()), name="webhooks", daemon=True
        )

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def ask_to_stop(self, grace_seconds: float) -> None:
        """Stops claiming deliveries, and waits ``grace_seconds`` for the answers to sent messages."""
        self._ends_at = time.monotonic() + grace_seconds
        self._stopping.set()
        self._bell.set()

    def join(self) -> None:
        """Waits for the end. Deliveries that have no answer by then are released."""
        self._thread.join(max(0.0, self._ends_at - time.monotonic()) + _GIVING_BACK_SECONDS)

    async def _run_dispatch_loop(self) -> None:
        while not self._stopping.is_set():
            self._bell.clear()
            try:
                wait = await self._send_due()
            except Exception as error:  # noqa: BLE001  # the database comes back, and this thread has to be there
                warn_of_error(log, "not looking for deliveries", error)
                wait = _PAUSE_SECONDS
            if wait and not self._stopping.is_set():
                await asyncio.to_thread(self._bell.wait, wait)
        if self._sending:
            left = max(0.0, self._ends_at - time.monotonic())
            _, late = await asyncio.wait(self._sending, timeout=left)
            await asyncio.gather(*map(self._release_task, late))

    async def _send_due(self) -> float:
        """Begins to send deliveries that are due, and returns the seconds to wait before the next look."""
        if not self._turns.room:
            return POLL_SECONDS
        found = await asyncio.to_thread(self._read_queue)
        begun = self._turns.begin_sends(found.ready, _CLAIMED_AT_ONCE)
        if not begun:
            ahead = math.inf if found.next_at is None else (found.next_at - found.now).total_seconds()
            return max(_SHORTEST_WAIT_SECONDS, min(POLL_SECONDS, ahead))
        messages: list[OutboundMessage | None] = [None] * len(begun)
        try:
            messages = await asyncio.to_thread(self._claim_messages, begun)
        finally:
            for turn, message in zip(begun, messages, strict=True):
                self._start_send(turn, message)
        return 0.0 if any(messages) else _SHORTEST_WAIT_SECONDS

    def _start_send(self, turn: ReadyWebhook, message: OutboundMessage | None) -> None:
        if message is None:  # another process was faster
            self._turns.end_send(turn)
            return

        def remove_task(task: asyncio.Task[None]) -> None:
            del self._sending[task]
            self._turns.end_send(turn)
            self._bell.set()  # there is room now, with this receiver too

        task = asyncio.create_task(self._deliver_message(message))
        self._sending[task] = message
        task.add_done_callback(remove_task)

    def _read_queue(self) -> DeliveryQueueState:
        """Returns the state of the queue, after repairing the times of leases if the clock was set back."""
        with self._database.open_reader() as session:
            found = repository.read_queue(session)
        if self._latest is None or found.now < self._latest:
            with self._database.open_writer() as session:
                leases.repair_spans(session, DeliveryRow)
        self._latest = found.now
        return found

    def _claim_messages(self, begun: Sequence[ReadyWebhook]) -> list[OutboundMessage | None]:
        with self._database.open_writer() as session:
            return [
                attempts.claim_delivery(session, self._webhooks, turn.tenant_id, turn.webhook_id)
                for turn in begun
            ]

    async def _deliver_message(self, message: OutboundMessage) -> None:
        ends_at = time.monotonic() + LEASE_SECONDS
        result = await _send_traced(self._webhooks, message)
        while time.monotonic() < ends_at:
            try:
                await asyncio.to_thread(self._record, message, result)
            except LeaseLost:
                log.warning("delivery %s: lease lost", message.lease.id)
            except Exception as error:  # noqa: BLE001  # tried again while the lease lasts
                warn_of_error(log, f"delivery {message.lease.id} not recorded", error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            return

    def _record(self, message: OutboundMessage, result: AttemptResult) -> None:
        with self._database.open_writer() as session:
            attempts.record_attempt(session, self._writes, message, result)
        DELIVERY_ATTEMPTS.labels(result.outcome).inc()

    async def _release_task(self, task: asyncio.Task[None]) -> None:
        message = self._sending[task]
        task.cancel()
        await asyncio.to_thread(self._release_lease, message)

    def _release_lease(self, message: OutboundMessage) -> None:
        # Where this fails, the lease ends by itself.
        with contextlib.suppress(LeaseLost, SQLAlchemyError), self._database.open_writer() as session:
            leases.release_row(session, DeliveryRow, message.lease, delay=0.0)


async def _send_traced(webhooks: Webhooks, message: OutboundMessage) -> AttemptResult:
    """Makes one attempt as a span of the trace of the event's cause."""
    with open_span(
        f"webhook {message.event_type}",
        role=SpanRole.CLIENT,
        parent=message.traceparent,
        ironlaw__tenant_id=message.tenant_id,
        ironlaw__webhook_id=message.webhook_id,
        ironlaw__event_id=message.event_id,
    ) as span:
        result = await send_message(webhooks, message)
        if span is not None:
            if result.status_code is not None:
                span.set_attribute("http.response.status_code", result.status_code)
            if not result.is_success:
                mark_failed(span, result.error_code or str(result.status_code))
        return result


async def send_message(webhooks: Webhooks, message: OutboundMessage) -> AttemptResult:
    """Makes one attempt."""
    started_at, began = now(), time.monotonic()
    timestamp, scheme = int(started_at.timestamp()), message.signature_scheme
    signed = signing.build_headers(message.secrets, message.event_id, timestamp, message.body, scheme)
    headers = {"content-type": "application/json", "user-agent": _USER_AGENT, **signed}
    if traceparent := get_traceparent():
        headers[TRACEPARENT] = traceparent

    def build_result(**members: Any) -> AttemptResult:  # noqa: ANN401
        milliseconds = round((time.monotonic() - began) * 1000)
        return AttemptResult(started_at=started_at, milliseconds=milliseconds, **members)

    try:
        answer = await webhooks.outbound.post(message.url, headers=headers, content=message.body)
    except OutboundRefused as refused:
        return build_result(error_code=refused.code)
    return build_result(
        status_code=answer.status,
        error_code=_get_error_code(answer.status),
        answer_excerpt=answer.excerpt or None,
        retry_after_seconds=answer.retry_after_seconds,
    )


def _get_error_code(status: int) -> str | None:
    if status in SUCCESSES:
        return None
    return "REDIRECTED" if status in _REDIRECTS else "REFUSED_BY_RECEIVER"
