"""The folder of a worker: its identity, its lease, and the lock that keeps others from measuring.

Everything in it is for its owner alone, and each file is written so that a crash leaves it complete.
"""

import fcntl
import hashlib
import os
import stat
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from service.protocol.base import FencingToken, Hex128, Name, ProtocolMessage, SingleLine
from service.protocol.leases import LeaseCompletionRequest
from service.protocol.nodes import DeviceKind
from service.worker.errors import WorkerError
from service.worker.files import create_private_folder, read_private_file, remove_file, write_file

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_FOR_ALL, _FOR_OWNER = 0o644, 0o600

M = TypeVar("M", bound=ProtocolMessage)


class Installation(ProtocolMessage):
    """Identity that is created before the first enrolment; enrolled again, the host is the same node."""

    installation_id: Hex128


class Node(ProtocolMessage):
    """Identity of this host at its service."""

    node_id: Name
    service: SingleLine
    """Address of the service; the credential is sent nowhere else."""
    device: DeviceKind


class HeldLease(ProtocolMessage):
    """The lease that this host holds, so that a restarted worker can end it."""

    id: Name
    fencing_token: FencingToken


class FinishedRun(ProtocolMessage):
    """Completion of the held lease, once its suite has ended, for a worker that is restarted."""

    id: Name
    completion: LeaseCompletionRequest
    """Completion that names every result of the run, acknowledged or not."""


class ClaimRequest(ProtocolMessage):
    """The request under which the next lease is claimed, so that a lost answer is harmless."""

    request_id: Hex128


class StateDirectory:
    """The folder of one worker."""

    def __init__(self, folder: Path) -> None:
        """Creates the folder, unless it exists.

        Raises:
            WorkerError: It is open to others.
        """
        self.folder = create_private_folder(folder.expanduser())
        self.credential = self.folder / "credential.json"
        self.spool = self.folder / "spool"

    def load_state(self, shape: type[M]) -> M | None:
        """Loads the state of a schema from its file; None if there is none.

        Raises:
            WorkerError: The file is open to others, or not in the format of this version.
        """
        path = self._build_path(shape)
        try:
            return shape.model_validate_json(read_private_file(path))
        except FileNotFoundError:
            return None
        except ValidationError:
            raise WorkerError(f"{path} cannot be read by this version; move it away") from None

    def save_state(self, message: ProtocolMessage) -> None:
        """Writes the file of a schema."""
        write_file(self._build_path(type(message)), message.model_dump_json().encode())

    def delete_state(self, shape: type[ProtocolMessage]) -> None:
        """Removes the file of a schema."""
        remove_file(self._build_path(shape))

    def _build_path(self, shape: type[ProtocolMessage]) -> Path:
        return self.folder / f"{shape.__name__.lower()}.json"


def boot_id_sha256() -> str:
    """Returns the digest of the id of this boot of the host."""
    return hashlib.sha256(BOOT_ID.read_bytes().strip()).hexdigest()


def lock_host(path: Path) -> int:
    """Locks this host for one worker, whichever user runs it.

    Child processes inherit the lock: one that hangs in a driver after its worker was killed keeps the next
    worker from measuring beside it.

    Raises:
        WorkerError: Another worker holds it, or it is not a file.
    """
    return _lock_file(path, _FOR_ALL)


def lock_home(home: StateDirectory) -> int:
    """Locks a worker's folder for a change of its content.

    Raises:
        WorkerError: Another process holds it.
    """
    return _lock_file(home.folder / "lock", _FOR_OWNER)


def is_locked(path: Path) -> bool:
    """Returns true if a worker of this host runs."""
    try:
        os.close(lock_host(path))
    except WorkerError:
        return True
    return False


def _lock_file(path: Path, mode: int) -> int:
    """Returns a descriptor that holds the lock until every process that has it has ended."""
    descriptor = _open_lock_file(path, mode)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise WorkerError(f"another worker of this host holds {path}: two would disturb each other") from None
    return descriptor


def _open_lock_file(path: Path, mode: int) -> int:
    """Opens the file, created if it does not exist; read access is enough to lock it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
        os.fchmod(descriptor, mode)
    except FileExistsError:
        descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WorkerError(f"{path} is not a regular file")
    return descriptor
