"""Upload of results, oldest first, for as long as it takes, independent of leases."""

import logging
import threading
from collections.abc import Callable

from service.worker.client import NoAnswer, RequestRefused, Unauthorized
from service.worker.retrying import Backoff
from service.worker.shared import WorkerParts
from service.worker.spool import SpoolEntry

LOOK_SECONDS = 30.0
_NEVER = frozenset({413, 422})
"""Statuses with which the service refuses a result for good."""
_logger = logging.getLogger(__name__)


class ResultUploader(threading.Thread):
    """Uploads the waiting results. A result leaves the spool only with a receipt for exactly its bytes."""

    def __init__(self, shared: WorkerParts) -> None:
        super().__init__(name="uploader", daemon=True)
        self._client = shared.client
        self._spool = shared.spool
        self._gate = shared.gate
        self._backoff = Backoff()
        self._wake = threading.Event()
        self._settled = threading.Condition()

    def run(self) -> None:
        """Uploads until the worker ends."""
        while not self._gate.ended.is_set():
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
            try:
                self._upload_waiting()
            except Exception:  # whatever the error, uploads continue
                _logger.exception("the uploader failed and continues")
                self._wait_before_retry(0.0)

    def wake(self) -> None:
        """Wakes the uploader."""
        self._wake.set()

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Waits until a condition on settled results holds; returns true if it does in time."""
        with self._settled:
            return self._settled.wait_for(until, seconds)

    def _upload_waiting(self) -> None:
        """Tries each waiting result once, oldest first; stops if the service cannot be reached."""
        for entry in self._spool.list_waiting():
            while not self._gate.wait_open(LOOK_SECONDS):
                if self._gate.ended.is_set():
                    return
            try:
                self._upload_entry(entry)
            except Unauthorized as error:
                self._gate.shut(str(error))
                self._wake.set()
            except NoAnswer as error:
                _logger.warning("result %s waits: %s", entry.result_id, error)
                self._wait_before_retry(error.retry_after_seconds)
                if not error.is_reached:
                    return
            except OSError as error:
                _logger.error("result %s waits: %s", entry.result_id, error.strerror)  # noqa: TRY400
                self._wait_before_retry(0.0)
            else:
                self._backoff.reset_failures()

    def _upload_entry(self, entry: SpoolEntry) -> None:
        content = self._spool.read(entry)
        if content is None:
            _logger.error("result %s is damaged on the disk and set aside", entry.result_id)
            return
        try:
            receipt = self._client.upload_result(entry.result_id, content)
        except RequestRefused as error:
            if error.status not in _NEVER:
                raise NoAnswer(str(error), error.retry_after_seconds) from None
            self._spool.reject(entry, str(error))
            _logger.error("result %s is rejected and kept: %s", entry.result_id, error)  # noqa: TRY400
        else:
            if (receipt.result_id, receipt.content_sha256) != (entry.result_id, entry.content_sha256):
                raise NoAnswer("the receipt is for another result")
            self._spool.acknowledge(entry)
            if receipt.lease != "current":
                _logger.warning("result %s came after its lease had ended; it is stored", entry.result_id)
        with self._settled:
            self._settled.notify_all()

    def _wait_before_retry(self, retry_after_seconds: float) -> None:
        self._wake.set()
        self._gate.ended.wait(self._backoff.compute_wait_seconds(retry_after_seconds))
