"""Every command of the README is run, and every answer it shows is compared with what comes back."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from service.settings import Settings
from tests.serving import IRONLAW, environment, serving

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
ADDRESS = "http://127.0.0.1:8000"
MAKE = {"make run\n", "make test\n"}


class Example(NamedTuple):
    command: str
    shown: dict | None


def examples():
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert {language for language, _ in blocks} == {"sh", "json"}
    for position, (language, text) in enumerate(blocks):
        if language == "sh":
            following = blocks[position + 1] if position + 1 < len(blocks) else ("", "")
            yield Example(text, json.loads(following[1]) if following[0] == "json" else None)


EXAMPLES = list(examples())
CALLS = [example for example in EXAMPLES if "curl" in example.command]
SERVED = [example for example in EXAMPLES if "ironlaw serve" in example.command]
TERMINAL = [example for example in EXAMPLES if "ironlaw estimate" in example.command]


def contains(answer, shown, at=""):
    """Every member and item shown is in the answer; numbers agree to the digits shown."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert name in answer, f"{at}/{name} is not answered"
            contains(answer[name], value, f"{at}/{name}")
    elif isinstance(shown, list):
        assert bool(answer) == bool(shown), at
        rest = iter(answer)
        for position, value in enumerate(shown):
            for item in rest:
                try:
                    contains(item, value, f"{at}/{position}")
                except AssertionError:
                    continue
                break
            else:
                raise AssertionError(f"{at}/{position}: {value} is not answered")
    elif isinstance(shown, float) or (isinstance(shown, int) and isinstance(answer, float)):
        _, _, decimals = repr(shown).partition(".")
        digits = 0 if isinstance(shown, int) else len(decimals)
        same = answer == pytest.approx(shown, rel=1e-5) or round(answer, digits) == shown
        assert same, f"{at}: {answer} is not {shown}"
    else:
        assert answer == shown, f"{at}: {answer} is not {shown}"


def shell(command, directory, **variables):
    done = subprocess.run(
        ["/bin/sh", "-eu", "-c", command],
        cwd=directory,
        env=environment(directory / "data", **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def directory(tmp_path):
    """A place that looks to the commands like the checkout, and is not."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "ironlaw").symlink_to(IRONLAW)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def test_nothing_is_left_out():
    run = {example.command for example in (*CALLS, *SERVED, *TERMINAL)}
    assert {example.command for example in EXAMPLES} == run | MAKE
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{command.split()[1]}: " in makefile for command in MAKE)


@pytest.mark.skipif(
    not shutil.which("curl"), reason="left out: the README's curl commands (apt install curl)"
)
@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_calls(directory):
    with serving(directory / "data") as server:
        for command, shown in CALLS:
            assert shown
            assert ADDRESS in command
            answer = shell(command.replace(ADDRESS, server.address), directory, no_proxy="127.0.0.1")
            contains(json.loads(answer), shown)


def test_terminal(directory):
    (example,) = TERMINAL
    assert "Memory of a device" in shell(example.command, directory, COLUMNS="120")


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_postgresql(databases, directory):
    (example,) = SERVED
    set_address, migrate, serve = example.command.splitlines()
    assert set_address.startswith("export IRONLAW_DATABASE_URL=postgresql+psycopg://")
    assert shlex.split(serve)[1:] == ["serve"]
    url = databases.empty().url.render_as_string(hide_password=False)
    shell(migrate, directory, IRONLAW_DATABASE_URL=url)
    with serving(directory / "data", IRONLAW_DATABASE_URL=url) as server:
        assert server.client.get("/v1/models").json()["items"]
    assert not (directory / "data").exists()


def test_settings_are_listed():
    for name, field in Settings.model_fields.items():
        row = next(line for line in README.splitlines() if line.startswith(f"| `IRONLAW_{name.upper()}` |"))
        assert f"| `{field.default}` |" in row or not str(field.default)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert os.path.exists(ROOT / target), target  # noqa: PTH110
