"""What the Dockerfile does, without an engine: its steps, run in a folder instead of an image.

`make containers` runs all of them, with the pinned requirements installed by their hashes; tests run those
that install the package itself, on the requirements that are installed already.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests import serving

ROOT = Path(__file__).resolve().parent.parent
HOME = "/opt/ironlaw"


class Step(NamedTuple):
    """One instruction of the Dockerfile and the stage that it belongs to."""

    stage: int
    word: str
    rest: str


def steps(name="Dockerfile"):
    """Every instruction, in order."""
    text = re.sub(r"(?m)^#.*\n", "", (ROOT / name).read_text()).replace("\\\n", " ")
    stage = -1
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        yield Step(stage, word, " ".join(rest.split()))


def _matches(pattern, path):
    """Whether a pattern of .dockerignore names a path or a folder above it."""
    parts = (re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*"), "(/.*)?")
    return re.fullmatch("".join(parts), path) is not None


def is_sent(path):
    """Whether a path is sent to the engine: the last pattern that matches decides."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().split("\n") if line and line[0] != "#"]
    sent = True
    for pattern in patterns:
        if _matches(pattern.removeprefix("!"), path):
            sent = pattern.startswith("!")
    return sent


def copy_context(folder):
    """Copy exactly the files that .dockerignore lets through."""

    def left_out(directory, names):
        inside = Path(directory).relative_to(ROOT)
        return [name for name in names if not is_sent((inside / name).as_posix())]

    shutil.copytree(ROOT, folder, ignore=left_out)


def installing():
    """The commands that install into HOME."""
    return [step.rest for step in steps() if step.stage == 0 and step.word == "RUN"]


def install(folder, commands):
    """Run ``commands`` of the first stage in ``folder``; the folder that stands for HOME."""
    home = folder / "home"
    copy_context(folder / "source")
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**own, "PATH": f"{Path(sys.executable).parent}:{own['PATH']}"}
    for command in commands:
        here = command.replace(HOME, shlex.quote(str(home)))
        subprocess.run(["/bin/sh", "-euc", here], cwd=folder / "source", env=environment, check=True)
    return home


def try_out(home, data_dir):
    """Run the commands of the image as installed in ``home``: the service migrates, answers and is well."""
    ironlaw, own = home / "bin" / "ironlaw", serving.environment(data_dir, IRONLAW_PORT="0")
    own.pop("PYTHONPATH", None)

    def said(word):
        return subprocess.run([ironlaw, word], env=own, capture_output=True, text=True, check=True).stdout

    assert "Usage: ironlaw" in said("--help")
    assert "created the schema" in said("migrate")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with serving.served(subprocess.Popen([ironlaw, "serve"], env=own, **pipes)) as server:
        assert server.client.get("/v1/models").json()["items"]
        assert _is_well(home, server.address)
        server.kill()
        assert not _is_well(home, server.address)


def _is_well(home, address):
    """What the health check of the image says."""
    (check,) = (step.rest for step in steps() if step.word == "HEALTHCHECK")
    command = json.loads(check.partition(" CMD ")[2].replace("http://127.0.0.1:8000", address))
    command[0] = home / "bin" / command[0]
    environment = {"no_proxy": "127.0.0.1"}
    return not subprocess.run(command, env=environment, capture_output=True, check=False).returncode


def main():
    """Install as the image does, with the pinned requirements and nothing else, and try it out."""
    os.environ["PIP_QUIET"] = "1"
    with tempfile.TemporaryDirectory(prefix="ironlaw image ") as folder:
        home = install(Path(folder), installing())
        try_out(home, Path(folder) / "data")
        found = {path.name.partition("-")[0] for path in home.glob("lib/*/site-packages/*.dist-info")}
        built_with = found & {"editables", "hatchling", "pip", "pytest", "setuptools"}
        assert not built_with, built_with
        print(f"the image installs {len(found)} packages; the service migrates, answers and is well")


if __name__ == "__main__":
    main()
