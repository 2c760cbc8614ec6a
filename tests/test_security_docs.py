"""What the pages about security name is there, and every item of the standards is told."""

import ast
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from service.app.settings import Settings
from service.kit.security.principals import OPERATOR_RESOURCES

ROOT = Path(__file__).resolve().parent.parent
PAGES = {name: (ROOT / name).read_text() for name in ("SECURITY.md", "docs/security.md", "docs/asvs.md")}
SECURITY, ASVS = PAGES["docs/security.md"], PAGES["docs/asvs.md"]
DOCUMENT = json.loads((ROOT / "docs/openapi.json").read_text())
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STATES = {"met", "in part", "not met", "n/a"}
LAST_ITEMS = {
    1: (2, 9, 11, 3, 2),
    2: (3, 3, 4, 1),
    3: (0, 2, 4, 6, 5, 0, 2),
    4: (3, 1, 2, 4),
    5: (1, 3, 2, 3),
    6: (3, 12, 4, 4, 5, 3, 0, 4),
    7: (3, 4, 2, 5, 2, 2),
    8: (2, 3, 1, 1),
    9: (3, 4),
    10: (2, 2, 4, 11, 5, 2, 3),
    11: (2, 3, 3, 4, 1, 1, 0),
    12: (3, 2, 4),
    13: (1, 5, 2, 5),
    14: (2, 4, 3),
    15: (3, 3, 7, 0),
    16: (1, 5, 4, 3, 3),
    17: (1, 4, 2),
}
"""The last item of levels 1 and 2 in each section of each chapter of ASVS 5.0.0; those of level 3 follow."""


def quoted(page):
    """What a page quotes as code."""
    return re.findall(r"`([^`\n]+)`", PAGES[page])


@cache
def defined_in(path):
    """Names of the tests of a file, those of a class behind its name."""
    names = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        before = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        names |= {before + each.name for each in members if isinstance(each, FUNCTIONS)}
    return {name for name in names if name.rpartition("::")[2].startswith("test_")}


def rows(text):
    """Cells of the rows of tables, without their heads."""
    found = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip(" |") for cell in row] for row in found]


def items(written):
    """The single items behind `6.2.1-6.2.12`."""
    first, _, last = written.partition("-")
    section, _, number = first.rpartition(".")
    assert not last or last.rpartition(".")[0] == section, written
    end = int(last.rpartition(".")[2]) if last else int(number)
    return [f"{section}.{each}" for each in range(int(number), end + 1)]


@pytest.mark.parametrize("page", PAGES)
class TestWhatIsNamed:
    def test_tests_are_there(self, page):
        named = [each for each in quoted(page) if each.startswith("tests/")]
        missing = [
            each for each in named if each.partition("::")[2] not in defined_in(each.partition("::")[0])
        ]
        assert missing == []
        assert named or page == "SECURITY.md"

    def test_links_lead_somewhere(self, page):
        for target in re.findall(r"\]\((?!http)([^)]+)\)", PAGES[page]):
            path, _, anchor = target.partition("#")
            file = (ROOT / page).parent / path if path else ROOT / page
            assert file.exists(), target
            titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE) if anchor else []
            anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
            assert not anchor or anchor in anchors, target

    def test_commands_are_there(self, page):
        targets = re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {each.split()[1] for each in quoted(page) if each.startswith("make ")} <= set(targets)

    def test_settings_are_there(self, page):
        settings = {f"IRONLAW_{name.upper()}" for name in Settings.model_fields}
        assert set(re.findall(r"IRONLAW_[A-Z_]+", PAGES[page])) <= settings

    def test_operations_are_there(self, page):
        for each in quoted(page):
            if found := re.fullmatch(r"(GET|POST|PUT|PATCH|DELETE) (/v1\S+)", each):
                assert found[1].lower() in DOCUMENT["paths"][found[2]], each


def test_scopes_are_those_of_operations():
    asked = [
        scope
        for path in DOCUMENT["paths"].values()
        for operation in path.values()
        for requirement in operation["security"]
        for (scope,) in [requirement["bearer"]]
    ]
    known = {each.split(":")[0] for each in asked} | OPERATOR_RESOURCES | {"*"}
    scopes = [each for each in quoted("docs/security.md") if re.fullmatch(r"[a-z*-]+:[a-z*]+", each)]
    scopes.remove("resource:action")
    assert {each.split(":")[0] for each in scopes} <= known
    exact = {each for each in scopes if "*" not in each and not each.startswith("metrics:")}
    assert exact <= set(asked)
    assert len(exact) > 10


@pytest.mark.parametrize("chapter", LAST_ITEMS)
def test_every_item_of_a_chapter_is_told_once(chapter):
    (text,) = re.findall(rf"^## V{chapter} .*?(?=^## |\Z)", ASVS, re.MULTILINE | re.DOTALL)
    told = [each for row in rows(text)[1:] for each in items(row[0])]
    wanted = {
        f"{chapter}.{section}.{number}"
        for section, last in enumerate(LAST_ITEMS[chapter], 1)
        for number in range(1, last + 1)
    }
    assert Counter(told) == Counter(wanted)


def test_every_item_has_a_state_and_says_why():
    told = [row for row in rows(ASVS) if row[0] != "item"]
    for item, about, state, why, *_ in told:
        assert about, item
        assert state in STATES, item
        assert why, item


def test_there_are_as_many_items_as_the_standard_has():
    assert sum(map(sum, LAST_ITEMS.values())) == 253


def test_the_ten_risks_of_an_api_are_told_with_a_test_each():
    _, _, text = SECURITY.partition("## OWASP API Security Top 10 2023")
    told = {row[0].split()[0]: row[-1] for row in rows(text)[1:]}
    assert list(told) == [f"API{number}" for number in range(1, 11)]
    assert all("tests/" in held for held in told.values())
