"""Whether the service takes the credential of this node: nobody sends while it does not."""

import logging
import threading

from service.worker.status import WorkerStatus

ADVICE = (
    "the service refuses this node's credential: ask its operator; where the node was revoked or the "
    "credential has expired, enrol again with a new token: ironlaw worker enrol --again"
)
_logger = logging.getLogger(__name__)


class RequestGate:
    """Shut by whoever is refused, opened by the first heartbeat that is taken."""

    def __init__(self, board: WorkerStatus) -> None:
        self.stopping = threading.Event()
        """Whether the worker was asked to stop."""
        self.ended = threading.Event()
        """Whether nothing is to be sent any more."""
        self._board = board
        self._open = threading.Event()
        self._open.set()

    @property
    def is_open(self) -> bool:
        """Whether requests are to be sent."""
        return self._open.is_set()

    def wait_open(self, seconds: float) -> bool:
        """Wait until requests may be sent, or the time is over; whether they may."""
        return self._open.wait(seconds)

    def shut(self, detail: str) -> None:
        """The service refused the credential: results stay where they are."""
        if self._open.is_set():
            _logger.error("%s (%s)", ADVICE, detail)
        self._open.clear()
        self._board.update_status(notice=ADVICE)

    def open(self) -> None:
        """The service takes the credential."""
        if not self._open.is_set():
            _logger.info("the service takes the credential again")
            self._board.update_status(notice="")
        self._open.set()
