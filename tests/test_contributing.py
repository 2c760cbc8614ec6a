"""CONTRIBUTING.md lists the files that typical changes touch, and no more of them than were agreed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MOST = {
    "webhook event": 4,
    "CUDA benchmark": 8,
    "field of the inference workload with one formula": 7,
    "accelerator": 1,
    "model": 1,
    "catalog resource": 8,
}
"""Files of a change at most."""


def read_table():
    text = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Files to touch\n")[1].split("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith("| ")][1:]
    return {change: (int(files), re.findall(r"`([^`]+)`", paths)) for change, _example, files, paths in rows}


def test_lists_every_change():
    assert read_table().keys() == MOST.keys()


@pytest.mark.parametrize("change", MOST)
def test_lists_as_many_files_as_it_says(change):
    files, paths = read_table()[change]
    assert files == len(paths) <= MOST[change]


@pytest.mark.parametrize("change", MOST)
def test_lists_files_that_exist(change):
    _, paths = read_table()[change]
    assert [path for path in paths if not (ROOT / path).is_file()] == []
