"""The page of Python versions and systems is about the pins as they are."""

import subprocess

from tests.image import ROOT


def test_the_page_was_written_for_these_pins():
    done = subprocess.run(
        [ROOT / "tools" / "platforms", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_supported_python_is_resolved_and_classified():
    page, project = (ROOT / "docs" / "platforms.md").read_text(), (ROOT / "pyproject.toml").read_text()
    for minor in range(11, 16):
        # The tools that render the chart, and the wheels for GPU machines, come for one Python alone.
        assert page.count(f"| 3.{minor} | ") == len(list(ROOT.glob("requirements*.txt"))) - 2
        assert f'"Programming Language :: Python :: 3.{minor}"' in project


def test_server_and_tests_have_wheels_on_linux_and_on_macos_on_arm():
    page = (ROOT / "docs" / "platforms.md").read_text()
    for purpose in ("## The server and `make run`", "## The tests, `make test`"):
        section = page.partition(purpose)[2].partition("\n## ")[0]
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| 3.")]
        assert len(rows) == 5
        assert all(row[1:4] == ["yes", "yes", "yes"] for row in rows)
