"""The house: who may import whom, and that planning stands on the standard library and NumPy alone."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SERVICE = ROOT / "service"

ORDER = (
    {"kit", "planning", "protocol"},
    {"formats"},
    {"schemas", "worker"},
    {"resolve"},
    {"audit"},
    {"auth"},
    {"catalog"},
    {"nodes"},
    {"benchmarks"},
    {"calibrations"},
    {"evidence"},
    {"fleet"},
    {"estimates"},
    {"plans"},
    {"cost_centers"},
    {"quotes"},
    {"policies"},
    {"budgets"},
    {"approvals"},
    {"webhooks"},
    {"app"},
    {"cli"},
)
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
FEATURES = {room for rooms in ORDER[4:-2] for room in rooms}
WIRING = {"app", "cli"}

PLANNING_ORDER = (
    {"errors", "figures", "notes", "units"},
    {"quantity", "precision"},
    {"parallelism"},
    {"software"},
    {"hardware"},
    {"models"},
    {"workload"},
    {"operators"},
    {"memory"},
    {"inference"},
    {"training"},
    {"reliability"},
    {"tariff"},
    {"energy"},
    {"cost", "scheduling", "search"},
    {"cases"},
    {"estimates"},
)
PLANNING_LEVEL = {room: level for level, rooms in enumerate(PLANNING_ORDER) for room in rooms}


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def imports(path):
    """Modules that a file imports, anywhere in it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            assert node.module
            for name in node.names:
                below = f"{node.module}.{name.name}"
                module = ROOT / below.replace(".", "/")
                yield below if module.is_dir() or module.with_suffix(".py").exists() else node.module


@cache
def edges():
    return [
        (path.relative_to(SERVICE), module.split("."))
        for path in SERVICE.rglob("*.py")
        for module in imports(path)
    ]


def room_of(path):
    return path.parts[0].removesuffix(".py")


def test_every_room_has_its_place():
    rooms = {room_of(path.relative_to(SERVICE)) for path in SERVICE.rglob("*.py")} - {"__init__", "__main__"}
    assert rooms <= LEVEL.keys()


def test_rooms_import_only_from_their_left():
    wrong = [
        f"{path} imports {'.'.join(module)}"
        for path, module in edges()
        if module[0] == "service" and len(module) > 1
        if room_of(path) != module[1]
        if not LEVEL[module[1]] < LEVEL[room_of(path)] and room_of(path) not in WIRING
    ]
    assert wrong == []


def test_a_feature_is_used_through_its_service():
    """Other rooms see a feature's service, its shapes, errors and records, how two compare, and people.

    The app also sees its router. Estimates are answered from the snapshot that evidence builds.
    Policies say how a change waits, and budgets what an approval commits, in a row that the approval extends.
    Plans score by the parts of estimates, so that a configuration and its single estimate are one figure.
    Calibrations are drawn from the stored results of benchmarks, in the transaction that accepts them.
    """
    open_to_all = {"service", "schemas", "errors", "records", "rows", "shipped", "snapshot"}
    open_to_all |= {"compare", "sessions", "people", "waiting", "commitments"}
    by_parts = {("plans", "estimates"), ("calibrations", "benchmarks")}
    extended = (Path("approvals/tables.py"), ["service", "budgets", "tables"])
    wrong = [
        f"{path} imports {'.'.join(module)}"
        for path, module in edges()
        if module[0] == "service" and len(module) > 2
        if module[1] in FEATURES and room_of(path) != module[1]
        if module[-1] not in open_to_all and room_of(path) not in WIRING
        if (room_of(path), module[1]) not in by_parts or module[2] == "router"
        if (path, module) != extended
    ]
    assert wrong == []


def test_the_service_knows_nothing_of_what_is_measured_offline():
    assert [path for path, module in edges() if module[0] == "accuracy"] == []


def test_kit_and_protocol_know_no_other_room():
    wrong = [
        f"{path} imports {'.'.join(module)}"
        for path, module in edges()
        if room_of(path) in ("kit", "protocol", "planning")
        if module[0] == "service" and len(module) > 1 and module[1] != room_of(path)
    ]
    assert wrong == []


def test_planning_and_formats_need_nothing_else():
    allowed = sys.stdlib_module_names | {"numpy", "service"}
    wrong = [
        f"{path} imports {module[0]}"
        for path, module in edges()
        if room_of(path) in ("planning", "formats") and module[0] not in allowed
    ]
    assert wrong == []


AWAITED = {
    "bus_bandwidth",
    "verdict",
    "bucket_bytes",
    "buckets",
    "build_uniform_lengths",
}
"""Held against formulas and measurements."""


def test_every_formula_serves_an_estimate():
    """No function of planning or of a format is there for a test or an example alone."""
    trees = [tree_of(path) for path in SERVICE.rglob("*.py")]
    used = {
        getattr(node, "id", None) or getattr(node, "attr", None)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    }
    formulas = {
        node.name
        for room in ("planning", "formats")
        for path in (SERVICE / room).rglob("*.py")
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef) and node.name != "_"
    }
    assert len(formulas) > 50
    assert formulas - used - AWAITED == set()


def test_planning_is_walked_through_once():
    places = {
        path.relative_to(SERVICE / "planning").parts[0].removesuffix(".py")
        for path in (SERVICE / "planning").rglob("*.py")
    } - {"__init__"}
    assert places <= PLANNING_LEVEL.keys()
    wrong = [
        f"{path} imports {'.'.join(module)}"
        for path, module in edges()
        if path.parts[0] == "planning" and module[:2] == ["service", "planning"] and len(module) > 2
        for own in [path.parts[1].removesuffix(".py")]
        if own not in ("__init__", module[2]) and not PLANNING_LEVEL[module[2]] < PLANNING_LEVEL[own]
    ]
    assert wrong == []


@pytest.mark.parametrize("module", ["service.planning.memory.layout", "service.formats", "service.resolve"])
def test_what_is_left_of_the_database_loads_none_of_the_server(module):
    script = (
        f"import sys, {module}\n"
        "print([name for name in ('sqlalchemy', 'fastapi', 'psycopg', 'alembic') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
