"""The service as a process of its own, on a port that it chooses."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

IRONLAW = Path(sys.executable).with_name("ironlaw")
_READY_SECONDS = 60.0
_LOOK_SECONDS = 0.01


def build_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of this process with these settings of the service and no others."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("IRONLAW_")}
    return {**own, "IRONLAW_PORT": "0", "PYTHONUNBUFFERED": "1", **settings}


@contextlib.contextmanager
def start_server(
    environment: Mapping[str, str], log: Path
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Serves until the end of the block; yields the process and its port."""
    with log.open("wb") as lines:
        process = subprocess.Popen([IRONLAW, "serve"], env=environment, stdout=lines, stderr=lines)
    try:
        deadline = time.monotonic() + _READY_SECONDS
        while not (
            said := re.search(r"^serving on http://127\.0\.0\.1:(\d+)", log.read_text(), re.MULTILINE)
        ):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the service does not start: {log.read_text()[-2000:]}")
            time.sleep(_LOOK_SECONDS)
        yield process, int(said[1])
    finally:
        process.terminate()
        try:
            process.wait(_READY_SECONDS)
        finally:
            process.kill()
