"""docs/formulas.md leads from the name of a formula to a function and to a page that are there."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PLANNING = "service/planning"
HEADER = ["formula", "computes", "where", "page"]
ROOMS = (
    "models",
    "hardware",
    "operators",
    "memory",
    "inference",
    "training",
    "reliability",
    "tariff",
    "energy",
    "cost",
    "scheduling",
    "search",
)
WHERE = re.compile(r"`((?:service/planning|service/formats)/[\w/]+\.py):([\w.]+)`")
LINK = re.compile(r"\[[\w-]+\]\((methods/[\w-]+\.md)\)")


class Row(NamedTuple):
    room: str
    formula: str
    computes: str
    where: str
    page: str


def tables_of(text):
    """Cells of every line of the table below each title of a room, the header's among them."""
    tables = {}
    for section in text.split("\n## ")[1:]:
        title, *below = section.splitlines()
        lines = [line for line in below if line.startswith("|")]
        tables[title.lower()] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return tables


def rows_of(text):
    """Every row of every table; ValueError for one that has more or fewer cells than the header."""
    found = []
    for room, lines in tables_of(text).items():
        for cells in lines[2:]:
            if len(cells) != len(HEADER):
                raise ValueError(f"{room}: {len(cells)} cells in a row of {len(HEADER)}: {cells}")
            found.append(Row(room, *cells))
    return found


@cache
def names_in(path):
    """Dotted names of the classes, functions and methods that a file defines; it is read, not executed."""

    def defined(nodes, before):
        for node in nodes:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{before}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from defined(node.body, f"{before}{node.name}.")

    return frozenset(defined(ast.parse(path.read_text()).body, ""))


def faults_of(row):
    """What is wrong with a row, in words."""
    where, link = WHERE.fullmatch(row.where), LINK.fullmatch(row.page)
    if not (row.formula and row.computes):
        yield "has no name or does not say what it computes"
    if where is None:
        yield f"{row.where} is no path and function"
    elif not (ROOT / where[1]).is_file():
        yield f"{where[1]} is not there"
    elif where[2] not in names_in(ROOT / where[1]):
        yield f"{where[1]} does not define {where[2]}"
    if link is None:
        yield f"{row.page} is no link to a page of methods"
    elif not (DOCS / link[1]).is_file():
        yield f"{link[1]} is not there"


PAGE = (DOCS / "formulas.md").read_text()


def listed_twice(cells):
    return [cell for cell, times in Counter(cells).items() if times > 1]


def test_the_index_is_long_enough_to_be_one():
    assert len(rows_of(PAGE)) >= 60


def test_every_room_of_planning_has_a_table():
    tables = tables_of(PAGE)
    assert tuple(tables) == ROOMS
    assert all(header == HEADER and rows for header, _, *rows in tables.values())


def test_every_formula_is_where_the_index_says():
    assert [(row.formula, fault) for row in rows_of(PAGE) for fault in faults_of(row)] == []


def test_a_file_of_a_room_stands_in_the_table_of_that_room():
    rooms = ((row, row.where.removeprefix(f"`{PLANNING}/").partition("/")[0]) for row in rows_of(PAGE))
    assert [row.formula for row, room in rooms if room in ROOMS and room != row.room] == []


def test_no_formula_is_listed_twice():
    rows = rows_of(PAGE)
    assert listed_twice(row.where for row in rows) == []
    assert listed_twice(row.formula for row in rows) == []


def index_of(where, page="[cost](methods/cost.md)", *, room="Cost"):
    lines = ["| formula | computes | where | page |", "|---|---|---|---|", f"| A | b | {where} | {page} |"]
    return "\n".join(["# Formulas", "", f"## {room}", "", *lines, ""])


BREAK_EVEN = "service/planning/cost/break_even.py"


def test_a_row_with_all_that_it_names_has_no_fault():
    (row,) = rows_of(index_of(f"`{BREAK_EVEN}:break_even_runs`"))
    assert row == Row("cost", "A", "b", f"`{BREAK_EVEN}:break_even_runs`", "[cost](methods/cost.md)")
    assert list(faults_of(row)) == []


@pytest.mark.parametrize(
    ("where", "page", "fault"),
    [
        (f"`{BREAK_EVEN}:break_even_days`", "cost", f"{BREAK_EVEN} does not define break_even_days"),
        (
            f"`{BREAK_EVEN}:Saving.runs_per_month`",
            "cost",
            f"{BREAK_EVEN} does not define Saving.runs_per_month",
        ),
        (f"`{BREAK_EVEN}:Saving.rent`", "cost", f"{BREAK_EVEN} does not define Saving.rent"),
        ("`service/planning/cost/lease.py:annuity`", "cost", "service/planning/cost/lease.py is not there"),
        (f"`{BREAK_EVEN}`", "cost", f"`{BREAK_EVEN}` is no path and function"),
        (f"`{BREAK_EVEN}:break_even_runs`", "leases", "methods/leases.md is not there"),
    ],
)
def test_a_row_that_leads_nowhere_is_told(where, page, fault):
    (row,) = rows_of(index_of(where, f"[{page}](methods/{page}.md)"))
    assert list(faults_of(row)) == [fault]


def test_a_row_with_another_number_of_cells_is_refused():
    with pytest.raises(ValueError, match="5 cells in a row of 4"):
        rows_of(index_of(f"`{BREAK_EVEN}:break_even_runs` | more"))
