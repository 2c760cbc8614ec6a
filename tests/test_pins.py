"""Images by digest, actions by commit, versions held against advisories: without a network, by stand-ins."""

import os
import re
import shutil
import subprocess

import pytest

from tests.image import ROOT

PINS, ADVISORIES = ROOT / "tools" / "pins", ROOT / "tools" / "advisories"
DIGEST, COMMIT = f"sha256:{'d' * 64}", "c" * 40
REFERENCES = re.compile(r"(?m)^(?:FROM|[ -]*(?:image|uses):) *(\S+)")


def stand_in(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)


def files():
    """Every file of the project that can name an image or an action; a chart leaves them to its values."""
    shapes = ("*Dockerfile", "*compose*.y*ml", "deploy/**/*Dockerfile", "deploy/**/*.y*ml", ".git*/**/*.y*ml")
    found = {path.relative_to(ROOT).as_posix() for shape in shapes for path in ROOT.glob(shape)}
    return sorted(name for name in found if not name.startswith("deploy/helm/"))


class TestPins:
    @pytest.fixture
    def tree(self, tmp_path):
        """The files that name images, and commands that answer for registries."""
        for name in files():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
        stand_in(tmp_path / "bin" / "docker", f'echo "$*" >>"$TOLD"; echo {DIGEST}')
        stand_in(
            tmp_path / "bin" / "git",
            f'echo "$*" >>"$TOLD"; printf "{"a" * 40}\\ttag\\n{COMMIT}\\ttag^{{}}\\n"',
        )
        return tmp_path

    def pins(self, tree, *words):
        path = f"{tree / 'bin'}:{os.environ['PATH']}"
        own = {"PATH": path, "TOLD": str(tree / "told")}
        return subprocess.run([PINS, *words], cwd=tree, env=own, capture_output=True, text=True, check=False)

    def test_every_reference_is_pinned(self):
        done = subprocess.run([PINS, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")

    def test_no_reference_is_looked_past(self):
        """What is not pinned is built here and has no tag."""
        found = {reference for name in files() for reference in REFERENCES.findall((ROOT / name).read_text())}
        own = {"ironlaw", "ironlaw-worker"}
        assert own <= found
        assert all(re.search(r"@(sha256:[0-9a-f]{64}|[0-9a-f]{40})$", each) for each in found - own)
        assert len(found - own) == 15

    @pytest.mark.parametrize(
        ("name", "pinned", "loose"),
        [
            ("Dockerfile", r"(slim-\w+)@sha256:\w+", r"\1"),
            ("docker-compose.yml", r"@sha256:\w+", ""),
            ("docker-compose.yml", r"@sha256:\w+", "@sha256:abc"),
            ("deploy/pull-request/gitlab.yml", r"@sha256:\w+", ""),
            ("deploy/pull-request/github.yml", r"@[0-9a-f]{40}", "@v4"),
            ("deploy/pull-request/github.yml", r"  # v\S+", ""),
        ],
    )
    def test_one_that_is_not_is_named(self, tree, name, pinned, loose):
        text = re.sub(pinned, loose, (tree / name).read_text(), count=1)
        (tree / name).write_text(text)
        done = self.pins(tree, "--check")
        assert done.returncode == 1
        assert done.stderr.startswith(f"{name}: ")

    def test_they_are_asked_for_by_tag_and_written_in_their_places(self, tree):
        before = {name: (tree / name).read_text() for name in files()}
        done = self.pins(tree)
        assert (done.returncode, done.stderr) == (0, "")
        assert self.pins(tree, "--check").returncode == 0
        asked = (tree / "told").read_text()
        assert re.search(r"buildx imagetools inspect postgres:\d+\.\d+-\w+ --format", asked)
        assert re.search(r"ls-remote \S+/actions/checkout refs/tags/v[\d.]+ ", asked)
        for name, text in before.items():
            wanted = re.sub(r"@sha256:\w+", f"@{DIGEST}", text)
            assert (tree / name).read_text() == re.sub(r"@[0-9a-f]{40}", f"@{COMMIT}", wanted)

    @pytest.mark.parametrize("command", ["docker", "git"])
    @pytest.mark.parametrize("says", ["echo no route to host >&2; exit 1", "echo nonsense"])
    def test_without_an_answer_nothing_is_written(self, tree, command, says):
        stand_in(tree / "bin" / command, says)
        before = {name: (tree / name).read_text() for name in files()}
        done = self.pins(tree)
        assert done.returncode == 1
        assert "network" in done.stderr or "nonsense" in done.stderr
        assert {name: (tree / name).read_text() for name in files()} == before


class TestAdvisories:
    """What each tool says decides: nothing found, something found, nobody asked."""

    @pytest.fixture
    def tree(self, tmp_path):
        (tmp_path / "tools").mkdir()
        shutil.copy(ADVISORIES, tmp_path / "tools")
        stand_in(tmp_path / "tools" / "setup", "exit 0")
        stand_in(tmp_path / ".venv" / "bin" / "python", f"echo {tmp_path / 'node'}")
        stand_in(tmp_path / "node" / "bin" / "node", 'echo "$*" >>told; echo found 0 vulnerabilities')
        stand_in(tmp_path / ".venv-advisories" / "bin" / "pip-audit", 'echo "$*" >>told; echo none >&2')
        return tmp_path

    def ask(self, tree):
        return subprocess.run([tree / "tools" / "advisories"], capture_output=True, text=True, check=False)

    def test_every_file_of_pins_is_held(self, tree):
        assert self.ask(tree).returncode == 0
        told = (tree / "told").read_text()
        pinned = [path.name for path in ROOT.glob("requirements*.txt")]
        assert len(pinned) == 6
        assert all(
            f"--require-hashes --disable-pip --strict --progress-spinner off --requirement {name}\n" in told
            for name in pinned
        )
        locks = list(ROOT.glob("[!.]*/*/*/package-lock.json"))
        assert len(locks) == 2
        for lock in locks:
            assert f"audit --package-lock-only --prefix {lock.parent.relative_to(ROOT)}\n" in told

    @pytest.mark.parametrize("tool", [".venv-advisories/bin/pip-audit", "node/bin/node"])
    @pytest.mark.parametrize(("says", "status"), [("echo PYSEC-1; exit 1", 1), ("echo away >&2; exit 1", 2)])
    def test_what_is_found_fails_and_so_does_no_answer(self, tree, tool, says, status):
        stand_in(tree / tool, says)
        done = self.ask(tree)
        assert done.returncode == status
        assert ("PYSEC-1" in done.stdout) == (status == 1)
        assert ("this needs a network" in done.stderr) == (status == 2)
