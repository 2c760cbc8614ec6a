"""The credential of a node: on disk for its owner alone; a crash at any step leaves one that works.

A rotation has two phases. The next credential is stored as ``pending`` beside the ``current`` one, then used;
the service retires the old one at that first use, and treats any later use of it as theft. So requests of
several threads use a credential only while nobody changes it, and once there is a pending one, no other is
used until the service has refused that.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import MISSING, ValidationError

from service.protocol.base import ProtocolMessage
from service.protocol.nodes import NodeCredential
from service.worker.errors import WorkerError
from service.worker.files import read_private_file, write_file

SETTLED_SECONDS = 60.0
"""Seconds during which an abandoned request may still arrive with the old credential."""

_logger = logging.getLogger(__name__)


class StoredCredential(ProtocolMessage):
    """Content of the credential file."""

    current: NodeCredential
    pending: NodeCredential | MISSING = MISSING


class WorkerCredentials:
    """Credentials of one node, shared by every thread that sends."""

    def __init__(self, path: Path) -> None:
        """Reads the file.

        Raises:
            WorkerError: It does not exist, is not readable, or is open to others.
        """
        self._path = path
        self._stored = _read_stored(path)
        self._pending_is_refused = False
        self._changed = threading.Condition()
        self._senders = 0
        self._is_changing = False
        self._given_up_at = time.monotonic()  # a request of the previous process may still be under way

    @staticmethod
    def store(path: Path, credential: str) -> None:
        """Stores the first credential of a node."""
        write_file(path, StoredCredential(current=credential).model_dump_json().encode())

    @contextmanager
    def acquire_credential(self) -> Iterator[str]:
        """Yields the credential for one request; it stays valid until the request has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_changing)
            self._senders += 1
            secret = self._secret
        try:
            yield secret
        finally:
            with self._changed:
                self._senders -= 1
                self._changed.notify_all()

    @contextmanager
    def lock_for_rotation(self) -> Iterator[str]:
        """Yields the credential for a rotation request, while no other request is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_changing)
            self._is_changing = True
            self._changed.wait_for(lambda: not self._senders)
        try:
            yield self._secret
        finally:
            with self._changed:
                self._is_changing = False
                self._changed.notify_all()

    @property
    def _secret(self) -> str:
        pending = self._stored.pending
        return self._stored.current if pending is MISSING or self._pending_is_refused else pending

    @property
    def is_settled(self) -> bool:
        """Returns true if no abandoned request can still arrive."""
        return time.monotonic() - self._given_up_at >= SETTLED_SECONDS

    def record_abandoned_request(self) -> None:
        """Records a request that ended without an answer and may arrive later."""
        self._given_up_at = time.monotonic()

    def stage(self, credential: str) -> None:
        """Stores the next credential, inside :meth:`lock_for_rotation`; it is used from then on."""
        self._write(StoredCredential(current=self._stored.current, pending=credential))

    def record_acceptance(self, secret: str) -> None:
        """Drops the other credential once this one is accepted, inside :meth:`acquire_credential`."""
        with self._changed:
            if self._stored.pending is not MISSING:
                try:
                    self._write(StoredCredential(current=secret))
                except OSError:  # both stay on disk, and the pending one is still tried first
                    _logger.warning("the credential file cannot be written; the disk may be full")

    def record_refusal(self, secret: str) -> bool:
        """Records that the service refused this credential; returns true if there is another one to try."""
        with self._changed:
            if secret == self._stored.pending:
                self._pending_is_refused = True
            return secret != self._secret

    def _write(self, stored: StoredCredential) -> None:
        write_file(self._path, stored.model_dump_json().encode())
        self._stored = stored
        self._pending_is_refused = False


def _read_stored(path: Path) -> StoredCredential:
    try:
        return StoredCredential.model_validate_json(read_private_file(path))
    except FileNotFoundError:
        raise WorkerError("this host is not enrolled; run: ironlaw worker enrol") from None
    except ValidationError:
        raise WorkerError(f"{path} contains no credential; enrol again") from None
