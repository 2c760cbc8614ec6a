"""Runs the `ironlaw` command as users do: in a process of its own, on loopback."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import httpx

from tests import forked
from tests.prepared import fill_directory

IRONLAW = Path(sys.executable).with_name("ironlaw")
START_SECONDS = 30


def environment(data_dir, **variables):
    """The environment of a command without the caller's own settings, with time for busy machines."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("IRONLAW_")}
    given = {"IRONLAW_DATA_DIR": str(data_dir), "IRONLAW_ANSWER_SECONDS": "600", "COLUMNS": "120"}
    return {**own, **given, **variables}


def run(*arguments, data_dir, given=None, **variables):
    """Output, errors and status of one command."""
    return forked.ironlaw(*map(str, arguments), environment=environment(data_dir, **variables), given=given)


class Server:
    """A served process and a client of it."""

    def __init__(self, process, address):
        self.process = process
        self.address = address
        self.client = httpx.Client(base_url=address, trust_env=False, timeout=60)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=60)


def serving(data_dir, *options, is_prepared=True, **variables):
    """A server that is ready; unless it is to begin with nothing, its directory has been migrated before."""
    if (
        is_prepared
        and data_dir
        and "IRONLAW_DATABASE_URL" not in variables
        and forked.DIRECTORY in os.environ
    ):
        fill_directory(Path(data_dir))
    own = environment(data_dir, **{"IRONLAW_PORT": "0", **variables})
    return served(forked.Staying("serve", *options, environment=own))


@contextlib.contextmanager
def served(process):
    """A server, once it is ready, of a process that has been started."""
    try:
        said = ""
        for line in process.stderr:
            said += line
            if line.startswith("serving on "):
                break
        else:
            raise AssertionError(f"did not start: {said}")
        server = Server(process, line.split()[2].rstrip(","))
        deadline = time.monotonic() + START_SECONDS
        with server.client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if server.client.get("/readyz").status_code == httpx.codes.OK:
                        break
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield server
    finally:
        process.terminate()
        process.communicate(timeout=60)
