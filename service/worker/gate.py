"""Gate that stops all requests while the service refuses the credential of this node."""

import logging
import threading

from service.worker.status import WorkerStatus

ADVICE = (
    "the service refuses this node's credential: ask its operator; if the node was revoked or the "
    "credential has expired, enrol again with a new token: ironlaw worker enrol --again"
)
_logger = logging.getLogger(__name__)


class RequestGate:
    """A gate that a refused request shuts, and that the first accepted heartbeat opens."""

    def __init__(self, board: WorkerStatus) -> None:
        self.stopping = threading.Event()
        """Set once the worker is asked to stop."""
        self.ended = threading.Event()
        """Set once nothing more is to be sent."""
        self._board = board
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Returns true if requests may be sent."""
        return self._open.is_set()

    def wait_open(self, seconds: float) -> bool:
        """Waits until requests may be sent or the time is over; returns true if they may."""
        return self._open.wait(seconds)

    def shut(self, detail: str) -> None:
        """Shuts the gate because the service refused the credential; results stay in the spool."""
        with self._lock:  # several requests may be refused at once; one of them says so
            if self._open.is_set():
                _logger.error("%s (%s)", ADVICE, detail)
            self._open.clear()
            self._board.update_status(notice=ADVICE)

    def open(self) -> None:
        """Opens the gate because the service accepts the credential."""
        with self._lock:
            if not self._open.is_set():
                _logger.info("the service accepts the credential again")
                self._board.update_status(notice="")
            self._open.set()
