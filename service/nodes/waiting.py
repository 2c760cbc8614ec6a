"""Waiting claims. One query serves all of them, and they hold no database connection."""

import asyncio
import contextlib
import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastapi.concurrency import run_in_threadpool
from starlette.types import Message, Receive

from service.kit.database.engine import Database
from service.kit.jobs.notifier import JobNotifier
from service.kit.security.principals import Principal
from service.nodes import leases, repository
from service.nodes.errors import NodeNotFound
from service.protocol.leases import BenchmarkLease, LeaseClaimRequest

LOOK_SECONDS = 1.0
log = logging.getLogger(__name__)


class ClaimableWork(NamedTuple):
    """A node that claims work."""

    tenant_id: str
    device: str
    node_id: str


class ClaimOffer(NamedTuple):
    """Claimable work of a tenant, for a kind of device or one node."""

    tenant_id: str
    device: str
    target_node_id: str | None

    def matches_want(self, want: ClaimableWork) -> bool:
        """Returns true if the node may run it."""
        return self[:2] == want[:2] and self.target_node_id in (None, want.node_id)


@dataclass(eq=False, slots=True)
class _WaitingClaim:
    want: ClaimableWork
    called: asyncio.Event = field(default_factory=asyncio.Event)


class _LoopNotifier(JobNotifier):
    """Notifier that sets an event of an event loop from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rung: asyncio.Event) -> None:
        super().__init__()
        self._loop = loop
        self._rung = rung

    def set(self) -> None:
        """Sets the event."""
        with contextlib.suppress(RuntimeError):  # the loop may have ended before the notification
            self._loop.call_soon_threadsafe(self._rung.set)


class ClaimQueue:
    """Claims of one process, including waiting ones."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiters: list[_WaitingClaim] = []
        self._watch: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def __len__(self) -> int:
        """Returns the number of waiting claims."""
        return len(self._waiters)

    def close(self) -> None:
        """Ends all waits and refuses new ones. May be called from a signal handler."""
        self._closed = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._release_waiters)

    def _release_waiters(self) -> None:
        for waiter in self._waiters:
            waiter.called.set()

    async def claim(
        self, node: Principal, body: LeaseClaimRequest, receive: Receive
    ) -> BenchmarkLease | None:
        """Returns a lease, or None after a wait that ends when work becomes available."""
        until = asyncio.get_running_loop().time() + body.wait_seconds
        lease, want = await run_in_threadpool(self._claim, node, body)
        if lease is None and body.wait_seconds > 0:
            gone = asyncio.ensure_future(receive())
            try:
                while lease is None and await self.wait_for_offer(want, until, gone):
                    lease, want = await run_in_threadpool(self._claim, node, body)
            finally:
                gone.cancel()
        return lease

    def _claim(self, node: Principal, body: LeaseClaimRequest) -> tuple[BenchmarkLease | None, ClaimableWork]:
        with self._database.open_writer() as session:
            lease = leases.claim_lease(session, node, body)
            row = repository.get_node(session, node.tenant_id, node.id)
            if row is None:
                raise NodeNotFound
            return lease, ClaimableWork(row.tenant_id, row.device, row.id)

    def _look(self) -> Counter[ClaimOffer]:
        """Returns the claimable work."""
        with self._database.open_reader() as session:
            found = repository.count_offers(session)
        return Counter({ClaimOffer(tenant, device, target): count for tenant, device, target, count in found})

    async def wait_for_offer(self, want: ClaimableWork, until: float, gone: asyncio.Future[Message]) -> bool:
        """Returns true if the claim should be tried again, false after ``until``, a disconnect or a close."""
        self._loop = asyncio.get_running_loop()
        waiter = _WaitingClaim(want)
        self._waiters.append(waiter)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_offers())
        called = asyncio.create_task(waiter.called.wait())
        left = max(0.0, until - self._loop.time())
        try:
            if not self._closed:
                ends: set[asyncio.Future[Any]] = {called, gone}
                await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            return called.done() and not self._closed
        finally:
            called.cancel()
            self._waiters.remove(waiter)

    async def _watch_offers(self) -> None:
        """Polls for all waiting claims, every second and after transactions that create work."""
        rung = asyncio.Event()
        bell = _LoopNotifier(asyncio.get_running_loop(), rung)
        while self._waiters and not self._closed:
            rung.clear()
            try:
                offers = await run_in_threadpool(self._look)
            except Exception as error:  # noqa: BLE001  # the database may recover, this task would not
                log.warning("polling for claimable runs failed: %s", type(error).__name__)
            else:
                self._match_offers(offers)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(rung.wait(), LOOK_SECONDS)
        del bell

    def _match_offers(self, offers: Counter[ClaimOffer]) -> None:
        for waiter in self._waiters:
            for offer in offers:
                if offers[offer] > 0 and offer.matches_want(waiter.want) and not waiter.called.is_set():
                    offers[offer] -= 1
                    waiter.called.set()
