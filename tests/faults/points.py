"""Named points of a process, reached through its own functions; what is armed happens there.

Nothing of this is in the product: functions of the process under test are wrapped where it is started. What
a process has seen is written to a ledger outside of its simulated disk, a line at a time, so that it outlives
the kill.
"""

import functools
import json
import os
import signal
import threading
import time
from pathlib import Path


class Ledger:
    """What happened, one line of JSON each, in the order in which it happened."""

    def __init__(self, path):
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note(self, what, **members):
        line = json.dumps({"what": what, "at": time.time(), "process": os.getpid(), **members})
        os.write(self._descriptor, f"{line}\n".encode())


def read_ledger(path):
    """Every line of a ledger; none if there is none."""
    path = Path(path)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Points:
    """Counts how often each point is reached, and does what is armed for one of them."""

    def __init__(self, hits, *, point=None, hit=1, action="kill"):
        self._hits, self._point, self._hit = Ledger(hits), point, hit
        self._act = ACTIONS[action]
        self._count = 0
        self._lock = threading.Lock()

    def reached(self, name, **about):
        if name != self._point:
            return
        with self._lock:
            self._count += 1
            if self._count != self._hit:
                return
            self._hits.note("hit", point=name)
        self._act(**about)

    def is_reached(self, name, calls):
        """Whether this is one of ``calls`` calls from the armed one on, for what goes wrong for a while."""
        if name != self._point:
            return False
        with self._lock:
            self._count += 1
            if self._count == self._hit:
                self._hits.note("hit", point=name)
            return self._hit <= self._count < self._hit + calls


def _kill(**_):
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # for a thread that the kernel lets run on for a moment


def _freeze(**_):
    os.kill(os.getpid(), signal.SIGSTOP)


def _kill_child(child, **_):
    os.kill(child.pid, signal.SIGKILL)


ACTIONS = {"kill": _kill, "freeze": _freeze, "kill the child": _kill_child, "none": lambda **_: None}


def around(owner, name, *, before=None, after=None):
    """Wrap a function of a module or class: ``before(*args)``, then it, then ``after(result, *args)``."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args, **options):
        if before is not None:
            before(*args, **options)
        result = original(*args, **options)
        if after is not None:
            after(result, *args, **options)
        return result

    setattr(owner, name, wrapped)
