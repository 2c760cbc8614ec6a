"""`ironlaw fit`, `speed`, `cost`, `models search` and `gpus`: in a pipe, with a service and without one."""

import json

import pytest
from typer.testing import CliRunner

from service.catalog.registry import KINDS
from service.cli.main import app
from tests.serving import serving

FIT = ["fit", "qwen3-32b", "2xl40s", "--context", "32k"]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONLAW_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("IRONLAW_DATABASE_URL", raising=False)
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


def test_what_fits_says_so_and_for_how_many(invoke):
    found = invoke(*FIT)
    assert found.exit_code == 0, found.output
    assert "qwen3-32b on 2 x l40s" in found.stdout
    assert "32,768" in found.stdout
    assert "filled in: " in found.stdout


def test_what_does_not_fit_has_an_exit_status_of_its_own(invoke):
    found = invoke("fit", "deepseek-v3", "h100-sxm")
    assert found.exit_code == 3
    assert json.loads(invoke("fit", "deepseek-v3", "h100-sxm", "--json").stdout)["fit"]["fits"] is False


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("fit", "qwen3-32b", "h100"), 1, "h100-nvl, h100-pcie, h100-sxm"),
        (("fit", "qwen3-32b", "l40s", "--context", "32q"), 2, "--context takes a number of tokens"),
        (("fit", "qwen3-32b", "l40s", "--context", "0.5"), 2, "--context takes a number of tokens"),
        (("fit", "qwen3-32b", "l40s", "--sequence", "4k"), 2, "--sequence: for training only: add --train"),
        (("speed", "qwen3-32b", "l40s", "--train", "lora", "--input", "1k"), 2, "--input: for serving only"),
        (("speed", "qwen3-32b", "l40s", "--train", "half"), 1, "adaptation"),
        (("cost", "qwen3-32b", "l40s", "--price", "two"), 1, "/rental/price_per_device_hour/amount"),
        (("models", "search", "no-such-model"), 1, ""),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(invoke, arguments, status, said):
    found = invoke(*arguments)
    assert found.exit_code == status, found.output
    assert said in " ".join(found.output.replace("│", " ").split())


def test_cost_takes_prices_and_a_building(invoke):
    arguments = ("cost", "llama-3.1-70b", "8xh100-sxm", "--price", "2.50", "--hours", "100")
    answer = json.loads(invoke(*arguments, "--electricity", "0.12", "--pue", "1.2", "--json").stdout)
    assert answer["price"]["total"]["amount"] == "2000.00"
    kwh, paid = answer["bill"]["facility_kwh"]["value"], answer["bill"]["electricity_total"]["amount"]
    assert float(paid) == pytest.approx(0.12 * kwh, abs=0.01)


def test_cost_names_the_offer_and_the_hours_that_it_fills_in(invoke):
    told = invoke("cost", "llama-3.1-70b", "p5.48xlarge", "--hours", "1").stdout
    assert "offer_id aws-p5-48xlarge-" in told
    assert "duration_seconds" not in told
    told = invoke("cost", "llama-3.1-70b", "p5.48xlarge", "--price", "3").stdout
    assert "offer_id" not in told
    assert "duration_seconds 2628000" in told


def test_speed_names_what_it_fills_in(invoke):
    """The layout and the engine of all four answers, and the usual request, but no offer."""
    told = " ".join(invoke("speed", "llama-3.3-70b", "4xmi300x", "--concurrency", "64").stdout.split())
    for said in ("input_tokens 1024", "output_tokens 256", "engine vllm", "parallelism tensor 2, data 2"):
        assert said in told
    assert "concurrency 1" not in told
    assert "offer_id" not in told


def test_tokens_of_a_run_are_decimal_and_lengths_binary(invoke):
    arguments = (
        "speed",
        "llama-3.1-8b",
        "8xh100-sxm",
        "--train",
        "full",
        "--tokens",
        "1.5T",
        "--sequence",
        "8k",
    )
    workload = json.loads(invoke(*arguments, "--json").stdout)["requests"]["throughput"]["workload"]
    assert (workload["total_tokens"], workload["sequence_length"]) == (1_500_000_000_000, 8192)


def test_rows_are_found_by_words_in_any_case(invoke):
    assert "qwen3-coder-30b-a3b" in invoke("models", "search", "CODER", "30b").stdout
    rows = json.loads(invoke("gpus", "mi300x", "--json").stdout)["items"]
    assert [row["id"] for row in rows] == ["mi300x"]
    assert len(json.loads(invoke("gpus", "--json").stdout)["items"]) > 150


def test_the_version_is_printed(invoke):
    assert invoke("--version").stdout.startswith("ironlaw ")


@pytest.mark.enable_socket
def test_a_service_answers_as_the_local_catalog_does(invoke, tmp_path):
    summaries = (
        FIT,
        ["speed", "gpt-oss-120b", "NVIDIA H100 80GB HBM3", "--concurrency", "8"],
        ["cost", "llama-3.1-8b", "rtx-4090", "--train", "lora", "--tokens", "100M"],
    )
    with serving(tmp_path / "served") as server:
        for arguments in summaries:
            local, asked = (
                json.loads(invoke(*arguments, "--json", *where).stdout)
                for where in ((), ("--url", server.address))
            )
            revisions = [answer["evidence"].pop("catalog_revision") for answer in (local, asked)]
            assert revisions[0] == 0 < revisions[1]
            assert local == asked
        for words in (["coder"], ["Qwen", "3"], ["no-such-model"]):
            rows = [
                json.loads(invoke("models", "search", *words, "--json", *where).stdout)["items"]
                for where in ((), ("--url", server.address))
            ]
            assert [row["id"] for row in rows[0]] == [row["id"] for row in rows[1]]
        refused = invoke("fit", "qwen3-32b", "h100", "--url", server.address)
        assert refused.exit_code == 1
        assert "AMBIGUOUS_REFERENCE" in refused.output


def test_rows_of_every_resource_are_searched_by_words():
    for resource in KINDS.values():
        example = {
            "id": "x-1",
            "name": "Some Name",
            "aliases": ["NVIDIA H100"],
            **dict.fromkeys(resource.searched, "A b"),
        }
        assert resource.has_words(example, "some h100")
        assert not resource.has_words(example, "some h200")


def test_accelerators_are_searched_by_the_names_of_their_systems():
    accelerators = KINDS["accelerator"]
    row = {"id": "x-1", "name": "Some Name", "systems": [{"name": "p5.48xlarge", "accelerators_per_node": 8}]}
    assert accelerators.has_words(row, "some P5.48")
    assert not accelerators.has_words(row, "accelerators_per_node")
