"""The release workflow: what it runs is there, and only what publishes may."""

import re
import shlex

import pytest
import yaml

from tests.image import ROOT
from tests.release import find_faults

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
JOBS = WORKFLOW["jobs"]
CHANGELOG = "# Changelog\n\n## [Unreleased]\n{}\n## [1.2.0] - 2026-12-01\n\n### Added\n\n- This.\n"


def commands():
    """Every command that the jobs run."""
    return [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]


def targets():
    """Targets of the Makefile, each with the commands and targets that it needs."""
    return set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))


def test_every_command_is_a_target_or_a_script():
    assert len(commands()) == 3
    for command in commands():
        program, *words = shlex.split(command)
        if program == "make":
            assert words[0] in targets()
        else:
            assert (ROOT / program).stat().st_mode & 0o100


def test_it_runs_for_tags_and_checks_before_it_publishes():
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # `on` is true to YAML
    assert JOBS["image"]["needs"] == "check"
    assert JOBS["publish"]["needs"] == ["check", "image"]
    assert '"$GITHUB_REF_NAME"' in next(each for each in commands() if "release-check" in each)


def test_only_jobs_that_publish_may_write_or_sign():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in JOBS["check"]
    assert JOBS["publish"]["permissions"] == {
        "contents": "read",
        "id-token": "write",
        "attestations": "write",
    }
    assert not any("secrets." in str(job) for job in JOBS.values())
    assert JOBS["publish"]["environment"] == "pypi"
    assert not any("run" in step for step in JOBS["publish"]["steps"])


def test_what_is_published_is_what_was_tried():
    uploads = {
        step["with"]["name"]: step["with"]["path"] for step in JOBS["check"]["steps"] if "upload" in str(step)
    }
    assert uploads == {"packages": "dist/", "sbom": "build/ironlaw.cdx.json"}
    makefile = (ROOT / "Makefile").read_text()
    assert "-m tests.package dist\n" in makefile
    assert "--output-file build/ironlaw.cdx.json" in makefile
    (publish,) = (step for step in JOBS["publish"]["steps"] if "pypi-publish" in step["uses"])
    assert publish["with"] == {"packages-dir": "packages/"}


@pytest.mark.parametrize(
    ("tag", "changes", "faults"),
    [
        ("v1.2.0", "", []),
        ("v1.2.1", "", ["the tag is v1.2.1 and the package is 1.2.0"]),
        ("v1.2.0", "\n- Something new.\n", ["the changelog has changes that are not released"]),
    ],
)
def test_a_tag_is_released_as_the_changelog_says(tag, changes, faults):
    assert list(find_faults(tag, "1.2.0", CHANGELOG.format(changes))) == faults


def test_a_version_without_a_section_is_refused():
    assert list(find_faults("v1.3.0", "1.3.0", CHANGELOG.format(""))) == [
        "the changelog has no dated section of 1.3.0"
    ]
