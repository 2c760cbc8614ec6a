"""Renewal of a lease while its suite runs, and detection of its loss."""

import logging
import threading

from service.protocol.leases import BenchmarkLease, LeaseRenewalRequest
from service.worker.client import NoAnswer, RequestRefused, Unauthorized
from service.worker.clock import read_ticks
from service.worker.interrupt import InterruptSignal
from service.worker.retrying import Backoff
from service.worker.shared import WorkerParts

STALE_LEASE, LEASE_EXPIRED, CANCELLED = "STALE_LEASE", "LEASE_EXPIRED", "CANCELLED"
LOST = frozenset({STALE_LEASE, LEASE_EXPIRED})
_GONE = frozenset({404, 409})
_MOST_WAIT_SECONDS = 10.0
_LOOK_SECONDS = 5.0
_logger = logging.getLogger(__name__)


class LeaseHolder:
    """One lease, renewed in time by a thread of its own.

    The remaining time counts from the sending of the request that granted or renewed the lease, on a clock
    that is never set: the service counts from a later moment. A second thread watches that clock, because a
    request may hang.
    """

    def __init__(
        self, shared: WorkerParts, lease: BenchmarkLease, sent_at: float, interrupt: InterruptSignal
    ) -> None:
        self.lease = lease
        self._shared = shared
        self._interrupt = interrupt
        self._changed = threading.Condition()
        self._ends_at = sent_at + lease.lease_seconds
        self._renew_at = sent_at + lease.renew_seconds
        self._is_over = False
        self.lost: str | None = None
        """Reason for the loss of the lease; None while it is held."""
        for work in (self._renew_in_time, self._watch_expiry):
            threading.Thread(target=work, name=work.__name__.strip("_"), daemon=True).start()

    def stop_renewing(self) -> None:
        """Stops renewing the lease."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _mark_lost(self, reason: str) -> None:
        self.lost = self.lost or reason
        self._interrupt.set(reason)
        self.stop_renewing()

    def _wait_until(self, at: float) -> bool:
        """Waits for a moment; returns true if the lease is still to be held then."""
        with self._changed:
            while not self._is_over and (left := at - read_ticks()) > 0:
                self._changed.wait(min(left, _LOOK_SECONDS))  # wait() stops with the host
            return not self._is_over

    def _watch_expiry(self) -> None:
        while self._wait_until(self._ends_at):
            if read_ticks() >= self._ends_at:
                _logger.error("the lease has expired: the service was not reached in time")
                self._mark_lost(LEASE_EXPIRED)

    def _renew_in_time(self) -> None:
        backoff = Backoff(most_seconds=_MOST_WAIT_SECONDS)
        while self._wait_until(self._renew_at):
            try:
                self._renew_lease()
            except RequestRefused as error:
                if self._is_over:  # it was released while this request was under way
                    return
                if error.status in _GONE:
                    _logger.error("the lease is lost: %s", error)  # noqa: TRY400  # the message is enough
                    self._mark_lost(STALE_LEASE)
                    return
                _logger.warning("the lease was not renewed: %s", error)
                self._renew_at = read_ticks() + backoff.compute_wait_seconds(error.retry_after_seconds)
            except Unauthorized as error:
                self._shared.gate.shut(str(error))
                self._renew_at = read_ticks() + backoff.compute_wait_seconds()
            except NoAnswer as error:
                _logger.warning("the lease was not renewed: %s", error)
                self._renew_at = read_ticks() + backoff.compute_wait_seconds(error.retry_after_seconds)
            else:
                backoff.reset_failures()

    def _renew_lease(self) -> None:
        renewal = LeaseRenewalRequest(
            fencing_token=self.lease.fencing_token, progress=self._shared.board.progress
        )
        answer, sent_at = self._shared.client.renew_lease(self.lease.id, renewal)
        self._ends_at = sent_at + answer.lease_seconds
        self._renew_at = sent_at + self.lease.renew_seconds
        if answer.cancel:
            self._interrupt.set(CANCELLED)
