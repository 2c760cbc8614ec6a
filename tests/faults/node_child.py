"""A process that measures next to nothing, and says so in a whole record.

It is started, given its task and killed as the one of the product is, but takes a thirtieth of its time.
"""

import ctypes
import json
import os
import random
import signal
import sys
import time
from datetime import UTC, datetime

from service.worker.ids import generate_uuid7

SECONDS = "FAULTS_CHILD_SECONDS"
"""Variable that says how long a repeat takes."""


def now():
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def measured(task):
    """The record of a task."""
    began, began_at = time.monotonic(), now()
    time.sleep(float(os.environ.get(SECONDS, "0.01")))
    samples = [random.randrange(10**6, 11 * 10**5) for _ in range(5)]  # noqa: S311
    measurement = {
        "library": "none", "data": "random", "timer": "host_clock", "warmup_seconds": 0.0,
        "warmup_iterations": 0, "samples_ns": samples, "stop_reason": "sample_limit",
    }  # fmt: skip
    return {
        **task, "result_id": generate_uuid7(), "started_at": began_at, "finished_at": now(),
        "started_monotonic_seconds": began, "finished_monotonic_seconds": time.monotonic(),
        "status": "ok", "measurement": measurement,
    }  # fmt: skip


def inventory():
    host = {
        "operating_system": "Linux", "kernel": "6.1", "architecture": "x86_64", "cpu_count": 2,
        "cpu_model": "Processor of the tests",
    }  # fmt: skip
    return {"device": "cpu", "host": host}


def main(job, parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # as the product's child, it dies with its worker
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGKILL)
    given = sys.stdin.buffer.read()
    answer = measured(json.loads(given)) if job == "measure" else inventory()
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:3])
