"""`tools/catalog/add_accelerator`: the file of CONTRIBUTING becomes a row, and what is wrong is refused."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools/catalog/add_accelerator"
ACCELERATORS = "service/catalog/accelerators/shipped.json"
LINKS = "service/catalog/links/shipped.json"
CURVES = "service/evidence/reference_curves.json"
FILES = (ACCELERATORS, LINKS, CURVES)


def shown():
    """The file that CONTRIBUTING shows."""
    part = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Add an accelerator\n")[1]
    return json.loads(re.search(r"```json\n(.*?)```", part, re.DOTALL)[1])


@pytest.fixture
def tree(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def write(tree, row):
    file = tree / "row.json"
    file.write_text(row if isinstance(row, str) else json.dumps(row))
    return file


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("add_accelerator", f"{TOOL}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(tree, row):
    return subprocess.run(
        [TOOL, "--root", tree, write(tree, row)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"},
    )


def read(tree, name):
    return json.loads((tree / name).read_text(encoding="utf-8"))


def test_the_row_of_the_guide_is_added_in_its_place(tree):
    row = shown()
    link, machine = row["links"], row["machine"]
    before = {name: (tree / name).read_text(encoding="utf-8") for name in FILES}
    done = run(tree, row)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == list(FILES)
    rows = read(tree, ACCELERATORS)
    assert [each["id"] for each in rows] == sorted(each["id"] for each in rows)
    added = next(each for each in rows if each["id"] == row["id"])
    assert added == {name: value for name, value in row.items() if name not in {"links", "machine"}}
    assert [each for each in rows if each["id"] != row["id"]] == json.loads(before[ACCELERATORS])
    assert [each for each in read(tree, LINKS) if each not in json.loads(before[LINKS])] == link
    machines = read(tree, CURVES)["calibration"]["operators"]["machines"]
    assert machines[-1] == {"name": row["id"], "tile": [128, 128], **machine}
    assert machines[:-1] == json.loads(before[CURVES])["calibration"]["operators"]["machines"]


def test_only_the_lines_of_the_row_change(tree, tool):
    before = {name: (tree / name).read_text(encoding="utf-8").splitlines() for name in FILES}
    tool.add_accelerator(write(tree, shown()), tree)
    for name, lines in before.items():
        kept = iter((tree / name).read_text(encoding="utf-8").splitlines())
        missing = [line for line in lines if not any(each in {line, f"{line},"} for each in kept)]
        assert missing == [], name


def test_a_row_alone_is_one_file(tree, tool):
    row = {name: value for name, value in shown().items() if name not in {"links", "machine"}}
    row["intra_node_link_id"] = "pcie-5-x16"
    assert tool.add_accelerator(write(tree, row), tree) == [ACCELERATORS]


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: "{", "row.json"),
        (lambda _: "[]", "one object is expected"),
        (lambda row: {**row, "vendr": "x"}, "/vendr"),
        (lambda row: without(row, "sources"), "/sources"),
        (lambda row: {**row, "memory_kind": "HBM9"}, "/memory_kind: no source names this value"),
        (lambda row: without(row, "power_limit_watts"), "/power_limit_watts: a source names it"),
        (lambda row: {**row, "id": "h100-sxm"}, "h100-sxm: a name of h100-sxm"),
        (lambda row: {**row, "aliases": ["nvidia l4"]}, "nvidia l4: a name of l4"),
        (lambda row: {**row, "aliases": ["Twice", "twice"]}, "twice: a name of"),
        (lambda row: without(row, "links"), "/intra_node_link_id: there is no link"),
        (lambda row: {**row, "links": row["links"] * 2}, "a name of"),
        (
            lambda row: {**row, "peak_flops_per_second": {"bf16": 4e14, "fp8": 2e14}},
            "/peak_flops_per_second/fp8: below the rate of bf16",
        ),
        (lambda row: {**row, "memory_reported_bytes": 10**12}, "/memory_reported_bytes"),
        (lambda row: {**row, "systems": row["systems"] * 2}, "/systems/1/name: another system"),
        (lambda row: {**row, "machine": {"multiprocessors": 0, "source": "x"}}, "/machine/multiprocessors"),
        (lambda row: {**row, "machine": {"multiprocessors": 10}}, "/machine/source"),
        (lambda row: {**row, "machine": {"cores": 10}}, "/machine/cores: not known"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tree, tool, change, said):
    row = shown()
    row["sources"][0]["pointers"] += ["/memory_reported_bytes"] if said == "/memory_reported_bytes" else []
    before = {name: (tree / name).read_bytes() for name in FILES}
    with pytest.raises(tool.Refusal) as refused:
        tool.add_accelerator(write(tree, change(row)), tree)
    assert said in str(refused.value)
    assert {name: (tree / name).read_bytes() for name in FILES} == before


def test_adding_twice_is_refused(tree):
    assert run(tree, shown()).returncode == 0
    again = run(tree, without(shown(), "links"))
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"{shown()['id']}: a name of {shown()['id']}\n"
