"""Builds both client packages, installs each in an empty folder, and runs the program of its README."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from clients.generator.__main__ import PYTHON, ROOT, TYPESCRIPT
from tests.contract.node import NODE
from tests.serving import serving

ADDRESS = "http://127.0.0.1:8000"
NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PROJECT = PYTHON.parents[1]


def output(*command, cwd):
    """What a command prints; one that fails ends the whole with it."""
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**own, "PATH": path, "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def program(readme, language, address):
    """The program of a README, and what its comments say that it prints."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", readme.read_text(), re.DOTALL | re.MULTILINE)
    return text.replace(ADDRESS, address), re.findall(r"\(.*\);?  ?(?:#|//) (.+)$", text, re.MULTILINE)


def check_python(folder, address):
    """The wheel has what is imported and the marker of its types; the command of the guide installs it."""
    output(sys.executable, "-m", "hatchling", "build", "--directory", folder / "dist", cwd=PROJECT)
    (wheel,) = (folder / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"ironlaw_client/{file.name}" for file in PYTHON.iterdir() if file.is_file()} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    venv.create(folder / ".venv", with_pip=True)
    (folder / "clients").symlink_to(ROOT / "clients")
    guide = (ROOT / "docs" / "guides" / "clients.md").read_text()
    (command,) = re.findall(r"^\.venv/bin/python -m pip install .*$", guide, re.MULTILINE)
    output(*command.split(), "--quiet", cwd=folder)
    text, shown = program(PROJECT / "README.md", "python", address)
    (folder / "program.py").write_text(text)
    printed = output(folder / ".venv" / "bin" / "python", "-I", "program.py", cwd=folder)
    assert shown
    assert printed.splitlines() == shown, printed


def check_typescript(folder, address):
    """The packed file installs where nothing else is, compiles strictly and runs."""
    package, user = folder / "package", folder / "user"
    shutil.copytree(TYPESCRIPT, package, ignore=shutil.ignore_patterns("node_modules", "dist"))
    user.mkdir()
    quiet = ("--no-audit", "--no-fund", "--silent")
    output(NODE, NPM, "ci", "--ignore-scripts", *quiet, cwd=package)
    output(NODE, NPM, "run", "build", "--silent", cwd=package)
    (packed,) = json.loads(output(NODE, NPM, "pack", "--json", cwd=package))
    assert {"LICENSE", "README.md", "dist/index.js", "dist/index.d.ts"} <= {
        file["path"] for file in packed["files"]
    }
    (user / "package.json").write_text('{"type": "module"}')
    output(NODE, NPM, "install", *quiet, package / packed["filename"], cwd=user)
    text, shown = program(TYPESCRIPT / "README.md", "ts", address)
    (user / "program.ts").write_text(text)
    tsc = package / "node_modules" / "typescript" / "bin" / "tsc"
    options = ("--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom")
    output(NODE, tsc, *options, "program.ts", cwd=user)
    printed = output(NODE, "program.js", cwd=user)
    assert shown
    assert printed.splitlines() == shown, printed


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with serving(folder / "data", is_prepared=False) as server:
            for check in (check_python, check_typescript):
                place = folder / check.__name__
                place.mkdir()
                check(place, server.address)
                print(
                    f"{check.__name__.removeprefix('check_')}: built, installed, gets its answers", flush=True
                )


if __name__ == "__main__":
    main()
