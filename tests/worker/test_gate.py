"""The gate that a refused request shuts."""

import logging
import threading

from service.worker.gate import ADVICE, RequestGate
from service.worker.status import WorkerStatus


class TestRequestGate:
    def test_of_requests_that_are_refused_at_once_one_says_so(self):
        board, lines, others = WorkerStatus(), [], []
        gate = RequestGate(board)

        class Handler(logging.Handler):
            def emit(self, record):
                lines.append((record.getMessage(), gate.is_open))
                if not others:  # a second request is refused while the first one writes its line
                    others.append(threading.Thread(target=gate.shut, args=("heartbeat",)))
                    others[0].start()
                    others[0].join(timeout=0.2)

        handler = Handler()
        logger = logging.getLogger("service.worker.gate")
        logger.addHandler(handler)
        try:
            gate.shut("claim")
            others[0].join(timeout=30)
        finally:
            logger.removeHandler(handler)
        assert lines == [(f"{ADVICE} (claim)", True)]
        assert (gate.is_open, board.view.notice) == (False, ADVICE)
        gate.open()
        assert (gate.is_open, board.view.notice) == (True, "")
