"""Commands in processes forked from one that has imported the service: most of a cold start is imports.

Cold starts are tested by what the README runs, by the containers and by every server of a test.
"""

import atexit
import json
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FIRST = """
import gc, json, os, signal, sys
import service.app, service.cli, service.evidence.service, service.operator, service.storage
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    process = os.fork()
    if process:
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
        continue
    signal.alarm(60)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for descriptor, name in enumerate(("in", "out", "err")):
        os.dup2(os.open(os.path.join(asked["files"], name), os.O_RDWR), descriptor)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)
    sys.argv = ["ironlaw", *asked["arguments"]]
    sys.exit(service.cli.main())
"""
_LOCK = threading.Lock()


class Done(NamedTuple):
    """What a command said, and its status."""

    out: str
    errors: str
    status: int


@cache
def _first() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _FIRST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)
    return process


def ironlaw(*arguments: str, environment: dict[str, str], given: str | None) -> Done:
    """One `ironlaw` command."""
    with tempfile.TemporaryDirectory() as name, _LOCK:
        files = [Path(name, each) for each in ("in", "out", "err")]
        for file in files:
            file.write_text("")
        files[0].write_text(given or "")
        asked = {
            "arguments": arguments,
            "environment": environment,
            "directory": str(Path.cwd()),
            "files": name,
        }
        first = _first()
        assert first.stdin is not None
        assert first.stdout is not None
        first.stdin.write(json.dumps(asked) + "\n")
        first.stdin.flush()
        status = int(first.stdout.readline())
        return Done(files[1].read_text(), files[2].read_text(), status)
