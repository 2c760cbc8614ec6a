"""The worker's own measurement of a suite, for `make gpu-suite`: no service, no terminal, an end in time."""

import logging
import os
import sys
import threading
from pathlib import Path

from service.protocol.suites import BenchmarkSuite
from service.worker.errors import WorkerError
from service.worker.files import LOCK_FILE
from service.worker.interrupt import Interrupted, InterruptSignal
from service.worker.local import measure_locally
from service.worker.process import ChildProcesses
from service.worker.signals import handle_stop_signals
from service.worker.state_directory import lock_host
from service.worker.status import WorkerStatus


def measure(suite: BenchmarkSuite, folder: Path, seconds: float) -> str | None:
    """Writes records, `summary.json` and `log.txt` to a folder, each record once it is measured.

    Returns what ended the measurement before its last benchmark, or None. A signal to stop ends it too.
    """
    interrupt = InterruptSignal()
    handle_stop_signals(lambda: interrupt.set("stopped by a signal"))
    limit = threading.Timer(max(seconds, 0.0), interrupt.set, [f"stopped after {seconds:.0f} s"])
    limit.daemon = True
    limit.start()
    logger = logging.getLogger("service.worker")
    logger.setLevel(logging.INFO)
    handlers: list[logging.Handler] = [
        logging.StreamHandler(sys.stderr),
        logging.FileHandler(folder / "log.txt"),
    ]
    try:
        for handler in handlers:
            handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
            logger.addHandler(handler)
        lock = lock_host(Path(os.environ.get("IRONLAW_WORKER_LOCK_FILE", LOCK_FILE)))
        children = ChildProcesses(kept_open=[lock])
        try:
            measure_locally(suite, folder, children, interrupt, WorkerStatus(), seed=None, accelerator=0)
        finally:
            os.close(lock)
    except Interrupted as ended:
        return ended.reason
    except WorkerError as error:
        logger.error("%s", error)  # noqa: TRY400  # the message is enough
        return str(error)
    finally:
        limit.cancel()
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
    return None
