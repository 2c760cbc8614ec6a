"""The credential of a node: on disk for its owner alone; a crash at any step leaves one that works.

A rotation has two phases. The next credential is kept as ``pending`` beside the ``current`` one, then used;
the service retires the old one at that first use, and takes any later use of it for theft. So requests of
several threads carry a credential only while nobody changes it, and from the moment in which there is a
pending one, nothing else is carried until the service has refused that.
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
"""How long a request that was given up may still be on its way, and arrive with the old credential."""

_logger = logging.getLogger(__name__)


class StoredCredential(ProtocolMessage):
    """What the file holds."""

    current: NodeCredential
    pending: NodeCredential | MISSING = MISSING


class WorkerCredentials:
    """The credentials of one node, shared by every thread that sends."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            WorkerError: it is not there, not readable, or open to others.
        """
        self._path = path
        self._stored = _read_stored(path)
        self._pending_is_refused = False
        self._changed = threading.Condition()
        self._senders = 0
        self._is_changing = False
        self._given_up_at = time.monotonic()  # a request of the process before may still be on its way

    @staticmethod
    def store(path: Path, credential: str) -> None:
        """Keep the first credential of a node."""
        write_file(path, StoredCredential(current=credential).model_dump_json().encode())

    @contextmanager
    def acquire_credential(self) -> Iterator[str]:
        """The credential for one request, which stays the right one until the request has ended."""
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
        """The credential for the request that asks for the next one, while no other request is under way."""
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
        """Whether no request that was given up can still arrive."""
        return time.monotonic() - self._given_up_at >= SETTLED_SECONDS

    def record_abandoned_request(self) -> None:
        """A request ended without an answer: it may arrive later."""
        self._given_up_at = time.monotonic()

    def stage(self, credential: str) -> None:
        """Keep the next credential, inside :meth:`lock_for_rotation`; it is carried from then on."""
        self._write(StoredCredential(current=self._stored.current, pending=credential))

    def record_acceptance(self, secret: str) -> None:
        """Forget the other credential: the service took this one, inside :meth:`acquire_credential`."""
        with self._changed:
            if self._stored.pending is not MISSING:
                try:
                    self._write(StoredCredential(current=secret))
                except OSError:  # both stay on the disk, and the pending one goes on being tried first
                    _logger.warning("the credential file cannot be written: is the disk full?")

    def record_refusal(self, secret: str) -> bool:
        """The service refused this credential; whether there is another one to try."""
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
        raise WorkerError("this host is not enrolled: ironlaw worker enrol") from None
    except ValidationError:
        raise WorkerError(f"{path} holds no credential: enrol again") from None
