"""A type checker accepts what users write, and finds what they mistype."""

import os
import re
import subprocess
import sys

from clients.generator.__main__ import PYTHON
from tests.contract.test_document import ROOT

PROGRAMS = ROOT / "tests" / "clients" / "programs"


def test_mypy_accepts_sound_programs_and_finds_each_mistake(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}"]
    programs = [PROGRAMS / "sound.py", PROGRAMS / "wrong.py"]
    environment = {**os.environ, "MYPYPATH": str(PYTHON.parent)}
    done = subprocess.run(
        [*command, *programs],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = {(name, int(line)) for name, line in re.findall(r"(\w+\.py):(\d+): error", done.stdout)}
    lines = (PROGRAMS / "wrong.py").read_text().splitlines()
    assert errors == {("wrong.py", at) for at, line in enumerate(lines, 1) if "# wrong" in line}, done.stdout
