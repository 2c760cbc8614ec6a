"""Scripts of the documentation that use planning without the service."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = [
    pytest.param(script, printed, id=path.stem)
    for path in sorted((ROOT / "docs").rglob("*.md"))
    for script, printed in re.findall(r"```python\n(.*?)```\n+```\n(.*?)```", path.read_text(), re.DOTALL)
]
SERVER = ("pydantic", "fastapi", "sqlalchemy")


def printed_by(script):
    run = subprocess.run(
        [sys.executable, "-"], input=script, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize(("script", "printed"), SCRIPTS)
def test_a_script_prints_what_its_page_shows(script, printed):
    assert printed_by(script) == printed


@pytest.mark.parametrize(("script", "printed"), SCRIPTS)
def test_a_script_loads_nothing_of_the_server(script, printed):
    loaded = f"\nimport sys\nprint([name for name in {SERVER} if name in sys.modules])"
    assert printed_by(script + loaded) == f"{printed}[]\n"
