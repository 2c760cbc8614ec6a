"""Processes that do what a benchmark should not, started as the worker starts those that measure."""

import os
import subprocess
import sys
import time

from service.worker.child import main
from service.worker.task import RepeatTask
from tests.worker.records import INVENTORY, measured

SECRET = "ironlawnode_k3v9x2m4c7b1n5q8_" + "Z" * 49


def measure(given, _):
    print("a library prints what it likes")
    return measured(RepeatTask.model_validate_json(given)).to_json()


def other_record(given, _):
    return measured(RepeatTask.model_validate_json(given).model_copy(update={"nonce": "f" * 32})).to_json()


def inventory(*_):
    return INVENTORY.model_dump_json().encode()


def echo(given, words):
    return given + b" ".join(word.encode() for word in words)


def die(*_):
    print("x" * 100_000, file=sys.stderr)
    print(f"cannot open the device\x1b[31m as {SECRET}", file=sys.stderr, flush=True)
    os.abort()


def hang(_, words):
    """Hang with a child of its own, and say who both are."""
    inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(words[0], "w") as file:  # noqa: PTH123
        file.write(f"{os.getpid()} {inner.pid}\n")
    time.sleep(600)


def flood(*_):
    return b"x" * 10_000_000


def variables(*_):
    return repr(sorted(name for name in os.environ if name.startswith(("IRONLAW_E", "IRONLAW_W")))).encode()


def held(_, words):
    """Whether a descriptor is open here."""
    os.fstat(int(words[0]))
    return b"open"


JOBS = {
    job.__name__: job for job in (measure, other_record, inventory, echo, die, hang, flood, variables, held)
}

if __name__ == "__main__":
    main(sys.argv[1:], JOBS)
