"""A model is added to the rows that ship by one command, from its config.json."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from service.catalog.models.service import add_architecture
from tests.asking import ask, shipped
from tests.image import ROOT

COMMAND = ROOT / "tools/catalog/add_model"
CONFIGS = Path(__file__).parents[1] / "data/configs"
QWEN, LLAMA_4 = CONFIGS / "Qwen--Qwen3-8B.json", CONFIGS / "meta-llama--Llama-4-Scout-17B-16E-Instruct.json"
GIVEN = {
    "--hub-id": "Qwen/Qwen3-8B-Poet",
    "--license": "apache-2.0",
    "--source": "config.json of Qwen/Qwen3-8B-Poet",
    "--as-of": "2026-11-28",
}


@pytest.fixture
def rows(tmp_path):
    """A file of rows that ship, with one before and one after the row that is added."""
    path = tmp_path / "shipped.json"
    path.write_text(json.dumps([{"id": "phi-9"}, {"id": "zamba-7b", "aliases": ["Zyphra/Zamba"]}]))
    return path


def arguments(rows, config=QWEN, *more, **changed):
    given = {**GIVEN, **{f"--{name.replace('_', '-')}": value for name, value in changed.items()}}
    words = [word for name, value in given.items() for word in (name, value)]
    return [str(config), "--shipped", str(rows), *words, *more]


@pytest.fixture
def add(monkeypatch, capsys):
    """What the command does in this process; a process of its own imports the service each time."""
    spec = importlib.util.spec_from_file_location("add_model", f"{COMMAND}.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    def run(*words, **changed):
        monkeypatch.setattr(sys, "argv", [str(COMMAND), *arguments(*words, **changed)])
        status = tool.main()
        return subprocess.CompletedProcess([], status, *capsys.readouterr())

    return run


def changed_config(tmp_path, **members):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(QWEN.read_text()), **members}))
    return path


def test_the_row_stands_in_its_place_of_the_alphabet_and_says_what_it_is(rows):
    words = arguments(rows, QWEN, "--alias", "Qwen/Qwen3-8B-Poet-Base", parameters="8190735360")
    environment = {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    said = subprocess.run([COMMAND, *words], env=environment, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")
    before, row, after = json.loads(rows.read_text())
    assert (before["id"], after["id"]) == ("phi-9", "zamba-7b")
    assert (row["id"], row["name"]) == ("qwen3-8b-poet", "Qwen3 8B Poet")
    assert row["aliases"] == ["Qwen/Qwen3-8B-Poet", "Qwen/Qwen3-8B-Poet-Base"]
    assert (row["hub_id"], row["license"]) == ("Qwen/Qwen3-8B-Poet", "apache-2.0")
    assert row["sources"] == [
        {"pointers": [""], "citation": "config.json of Qwen/Qwen3-8B-Poet", "as_of": "2026-11-28"}
    ]


def test_the_row_answers_as_its_whole_configuration(add, rows):
    assert add(rows, LLAMA_4, hub_id="meta-llama/Llama-4-Poet").returncode == 0
    (row,) = [row for row in json.loads(rows.read_text()) if row["id"] == "llama-4-poet"]
    published = json.loads(LLAMA_4.read_text())
    whole = add_architecture({"config": published})
    assert add_architecture({"config": row["config"]}) == whole
    assert len(json.dumps(row["config"])) < 0.7 * len(json.dumps(published))


def test_labels_are_kept_whole(add, rows, tmp_path):
    labels = {"architectures": ["Qwen3ForSequenceClassification"], "id2label": {"0": "relevant"}}
    assert add(rows, changed_config(tmp_path, **labels)).returncode == 0
    (row,) = [row for row in json.loads(rows.read_text()) if row["id"] == "qwen3-8b-poet"]
    assert row["config"]["id2label"] == {"0": "relevant"}


def test_a_quantization_is_kept_and_loaded(add, rows, tmp_path):
    quantized = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    assert add(rows, changed_config(tmp_path, **quantized)).returncode == 0
    (row,) = [row for row in json.loads(rows.read_text()) if row["id"] == "qwen3-8b-poet"]
    assert add_architecture(dict(row))["quantization_config"] == quantized["quantization_config"]


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"model_type": "diffllama"}, "/model_type: this model_type is not imported, because it has"),
        ({"model_type": "martian"}, "/model_type: this model_type is not known"),
        ({"num_key_value_heads": 5}, "/num_key_value_heads"),
        ({"quantization_config": {"quant_method": "runes"}}, "/quantization_config"),
    ],
)
def test_what_the_reader_cannot_read_is_named(add, rows, tmp_path, members, named):
    before = rows.read_text()
    said = add(rows, changed_config(tmp_path, **members))
    assert (said.returncode, said.stdout) == (1, "")
    assert named in said.stderr
    assert rows.read_text() == before


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"parameters": "8190735361"}, "counts 8,190,735,360 parameters, 8,190,735,361 are published"),
        ({"id": "phi-9"}, "phi-9 names the row phi-9"),
        ({"alias": "Zyphra/Zamba"}, "Zyphra/Zamba names the row zamba-7b"),
        ({"alias": "zyphra/ZAMBA"}, "zyphra/ZAMBA names the row zamba-7b"),
        ({"id": "Qwen 3"}, "/id: "),
        ({"as_of": "yesterday"}, "/sources/0/as_of: "),
    ],
)
def test_a_row_that_contradicts_its_publisher_or_another_row_is_refused(add, rows, changed, named):
    before = rows.read_text()
    said = add(rows, **changed)
    assert said.returncode == 1
    assert named in said.stderr
    assert rows.read_text() == before


def test_a_file_that_is_no_configuration_is_refused(add, rows, tmp_path):
    for content in ("[1]", "{"):
        (tmp_path / "config.json").write_text(content)
        said = add(rows, tmp_path / "config.json")
        assert (said.returncode, said.stderr.startswith("add_model: ")) == (1, True)
    assert "cannot be read" in add(rows, tmp_path / "nothing.json").stderr


def test_a_model_that_was_added_this_way_answers_by_the_name_of_its_repository():
    asked = {
        "model": {"source": "catalog", "id": "Qwen/QwQ-32B"},
        "workload": {"kind": "inference", "input_tokens": 1024, "output_tokens": 512, "concurrency": 1},
    }
    assert ask(shipped(), "memory", asked)["parameter_count"] == 32_763_876_352
