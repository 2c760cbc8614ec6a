"""What docs/architecture.md says of the code is so, and every path in the documentation is there."""

import ast
import re
from pathlib import Path

from tests.test_imports import ORDER, PLANNING_ORDER

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FUNCTIONS = re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)
# docs/house.md lists the house of an earlier commit too. CONTRIBUTING.md has NAME and KIND to be filled in.
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "house.md"})]
PATHS = {
    (str(page.relative_to(ROOT)), path)
    for page in PAGES
    for path in re.findall(r"`((?:service|tests|accuracy|bench)/[\w/.-]*)`", page.read_text())
}


def defined_in(path):
    """Dotted names of the functions and methods of a file."""
    names = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if hasattr(each, "name")}
    return names


def rooms_of(title):
    """The first column of the table below a title, line by line."""
    section = PAGE.partition(f"{title}\n")[2].partition("\n#")[0]
    return [
        set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in section.splitlines() if line[:3] == "| `"
    ]


def test_every_function_of_the_walks_is_there():
    assert len(FUNCTIONS) > 15
    assert [(path, name) for path, name in FUNCTIONS if name not in defined_in(path)] == []


def is_there(path):
    """True for a file, and for a folder that has more than compiled code of files that went."""
    found = ROOT / path
    return found.is_file() or any(each.is_file() and each.suffix != ".pyc" for each in found.rglob("*"))


def test_every_path_is_there():
    assert len(PATHS) > 150
    assert sorted((page, path) for page, path in PATHS if not is_there(path)) == []


def test_a_workload_reaches_the_physics_in_eight_hops():
    walk = PAGE.partition("## The walk of a workload")[2].partition("\n## ")[0]
    steps = re.findall(r"^(\d+)\. `([\w/]+)\.py", walk, re.MULTILINE)
    assert int(steps[-1][0]) <= 8
    assert steps[-1][1].startswith("service/planning/")


def test_rooms_are_told_in_the_order_of_their_imports():
    told = [room for line in rooms_of("## Rooms") for room in line]
    level = {room: place for place, rooms in enumerate(ORDER) for room in rooms}
    assert set(told) == level.keys()
    assert [level[room] for room in told] == sorted(level.values())


def test_rooms_of_planning_are_told_in_the_order_of_their_imports():
    assert rooms_of("### Inside planning")[: len(PLANNING_ORDER)] == list(PLANNING_ORDER)
