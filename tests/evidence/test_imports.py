"""Measurements of others over HTTP: what is asked for by name, what counts, and how it is taken back."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.app.examples import EXAMPLES
from service.cli.main import app as cli
from service.estimates.service import ESTIMATES
from service.evidence.imports import service
from service.evidence.imports.errors import EvidenceRefused
from service.evidence.imports.schemas import EvidenceImportRequest
from tests.applications import bearing
from tests.asking import shipped
from tests.prepared import ON_SQLITE
from tests.worker.test_anchor import built

DATA = Path(__file__).parents[1] / "data" / "measurements"
EXAMPLE = EXAMPLES["import_evidence"]
SERVED = {
    "format": "vllm_bench",
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
    "parallelism": {"tensor": 8},
    "workload": {"kind": "inference", "engine": {"name": "vllm"}, "weight_precision": "fp4"},
}


def text(name):
    return (DATA / name).read_text()


SERVED["content"] = text("vllm-bench-serve-gpt-oss-120b-c128.json")


def sent(client, body, **query):
    return client.post("/v1/evidence:import", body, params=query)


def refusals(response):
    assert response.status_code == 422, response.text
    return {error["pointer"]: error["code"] for error in response.json()["errors"]}


def without(body, *path):
    copy = json.loads(json.dumps(body))
    place = copy
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return copy


def test_a_benchmark_becomes_figures_beside_their_estimates(client):
    made = sent(client, SERVED)
    assert made.status_code == 201, made.text
    told = made.json()
    figures = {one["family"]: one for one in told["answers"]}
    assert figures["serving_ttft"]["measured"] == pytest.approx(0.49867, rel=1e-4)
    assert figures["serving_throughput"]["measured"] == pytest.approx(8774.64, rel=1e-6)
    assert 0.5 < figures["serving_tpot"]["measured"] / figures["serving_tpot"]["estimated"] < 2.0
    assert client.get(made.headers["location"]).json() == told
    assert int(made.headers["catalog-revision"]) > 1
    (listed,) = client.get("/v1/evidence").json()["items"]
    assert listed == without(told, "readings")
    assert client.get("/v1/evidence?format=guidellm").json()["items"] == []


def test_a_dry_run_says_the_same_and_stores_nothing(client):
    told = sent(client, SERVED, validate_only="true")
    assert told.status_code == 201
    assert len(told.json()["answers"]) == 3
    assert client.get("/v1/evidence").json()["items"] == []
    events = client.get("/v1/audit-events").json()["items"]
    assert "import_evidence" not in {event["operation"] for event in events}


def test_the_same_evidence_counts_once_until_it_is_withdrawn(client):
    place = sent(client, EXAMPLE).headers["location"]
    again = sent(client, EXAMPLE)
    assert (again.status_code, again.json()["code"]) == (409, "EVIDENCE_COUNTED")
    gone = client.post(f"{place}:withdraw", {"reason": "The client was the bottleneck"}).json()
    assert (gone["state"], gone["reason"]) == ("withdrawn", "The client was the bottleneck")
    assert client.get(place).json() == gone
    assert client.post(f"{place}:withdraw", {"reason": "again"}).status_code == 409
    assert sent(client, EXAMPLE).status_code == 201
    operations = [event["operation"] for event in client.get("/v1/audit-events").json()["items"]]
    written = sorted(name for name in operations if name.endswith("_evidence"))
    assert written == ["import_evidence", "import_evidence", "withdraw_evidence"]


def test_evidence_is_that_of_its_tenant(callers):
    mine, other = (
        {"headers": bearing(callers.key("evidence:*", tenant=callers.tenant(name)))}
        for name in ("mine", "other")
    )
    client = callers.client
    place = client.post("/v1/evidence:import", EXAMPLE, **mine).headers["location"]
    assert client.get(place, **other).status_code == 404
    assert client.post(f"{place}:withdraw", {"reason": "not mine"}, **other).status_code == 404
    assert client.get("/v1/evidence", **other).json()["items"] == []
    assert client.get(place, **mine).json()["state"] == "active"


@pytest.mark.parametrize(
    ("path", "pointer", "code"),
    [
        (("cluster",), "/cluster", "ACCELERATOR_REQUIRED"),
        (("cluster", "accelerator_count"), "/cluster/accelerator_count", "ACCELERATOR_COUNT_REQUIRED"),
        (("parallelism",), "/parallelism", "LAYOUT_REQUIRED"),
        (("workload", "engine"), "/workload/engine/name", "ENGINE_REQUIRED"),
        (("workload", "weight_precision"), "/workload/weight_precision", "PRECISION_REQUIRED"),
    ],
)
@ON_SQLITE
def test_what_neither_file_nor_request_states_is_asked_for_by_name(reader, path, pointer, code):
    assert refusals(sent(reader, without(SERVED, *path)))[pointer] == code


@ON_SQLITE
def test_a_file_that_names_no_model_needs_one(reader):
    body = {**SERVED, "content": text("vllm-bench-throughput-llama405b-fp8-8xh100.json")}
    asked = refusals(sent(reader, body))
    assert asked == {
        "/model": "MODEL_REQUIRED",
        "/workload/input_tokens": "LENGTHS_REQUIRED",
        "/workload/output_tokens": "LENGTHS_REQUIRED",
    }


@ON_SQLITE
def test_a_request_must_not_contradict_its_file(reader):
    workload = {**SERVED["workload"], "concurrency": 64}
    assert refusals(sent(reader, {**SERVED, "workload": workload})) == {"/content": "CONTRADICTS_FILE"}
    workload = {"kind": "training"}
    assert refusals(sent(reader, {**SERVED, "workload": workload})) == {"/content": "ANOTHER_WORKLOAD"}


@ON_SQLITE
def test_a_unit_that_is_another_one_shows_beside_the_estimate(reader):
    row = json.loads(SERVED["content"])
    wrong = {name: value / 1000.0 if name.endswith("_ms") else value for name, value in row.items()}
    told = sent(reader, {**SERVED, "content": json.dumps(wrong)}, validate_only="true").json()
    assert [one["family"] for one in told["answers"]] == ["serving_throughput"]
    assert {one["code"] for one in told["refused"]} == {"IMPLAUSIBLE"}


@ON_SQLITE
def test_tokens_of_prompts_and_answers_become_those_of_answers(reader):
    body = {
        **SERVED,
        "content": text("vllm-bench-throughput-llama405b-fp8-8xh100.json"),
        "model": {"source": "catalog", "id": "llama-3.1-405b"},
        "workload": {**SERVED["workload"], "input_tokens": 2048, "output_tokens": 2048},
    }
    body["workload"]["weight_precision"] = "fp8"
    (figure,) = sent(reader, body, validate_only="true").json()["answers"]
    assert figure["measured"] == pytest.approx(1105.487 / 2)


TRAINED = {
    "format": "training_log",
    "content": text("torchtitan-b200-and-h100-steps.log"),
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
    "parallelism": {"sharding": "zero_3"},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "micro_batch_size": 1,
        "global_batch_size": 8,
        "precision": "bf16",
        "recomputation": {"strategy": "selective"},
    },
}


@ON_SQLITE
def test_rates_of_one_device_become_seconds_of_a_step(reader):
    told = sent(reader, TRAINED, validate_only="true").json()
    steps = [one["measured"] for one in told["answers"] if one["family"] == "training_step"]
    assert steps[1] == pytest.approx(8192 * 8 / (5856 * 8))
    memory = [one["measured"] for one in told["answers"] if one["family"] == "training_memory"]
    assert 49.66 * 2**30 < memory[1] < 52.0 * 2**30
    asked = refusals(sent(reader, without(TRAINED, "workload", "micro_batch_size")))
    assert asked == {"/workload/micro_batch_size": "BATCH_REQUIRED"}


STARTED = {
    "format": "engine_log",
    "content": text("vllm-v0-startup.log"),
    "model": {"source": "catalog", "id": "llama-2-7b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "a100-sxm-80gb"}, "accelerator_count": 1},
    "workload": {
        "kind": "inference",
        "weight_precision": "fp16",
        "input_tokens": 1024,
        "output_tokens": 256,
        "concurrency": 1,
        "engine": {"name": "vllm", "version": "0.8 V0", "cuda_graphs": False},
    },
}


@ON_SQLITE
def test_a_start_of_an_engine_is_memory_without_the_rest_of_its_cache(reader):
    (figure,) = sent(reader, STARTED, validate_only="true").json()["answers"]
    assert figure["family"] == "inference_memory"
    cache = 56.18 * 2**30 / 115056 * 1280
    assert figure["measured"] == pytest.approx((12.55 + 0.16 + 2.38) * 2**30 + cache)
    several = {**STARTED, "content": text("vllm-v1-startup.log")}
    assert refusals(sent(reader, several)) == {"/content": "SEVERAL_RUNS"}


@pytest.mark.parametrize(
    ("file_format", "name", "beside", "figures"),
    [
        ("nccl_tests", "all_reduce-a100-40g-8gpu.txt", {}, ["rate", "hop_seconds", "launch_seconds"]),
        ("nvbandwidth", "nvbandwidth-h100-8gpu-memcpy-sm.txt", {"cluster": SERVED["cluster"]}, None),
    ],
)
@ON_SQLITE
def test_transfers_become_figures_of_the_device(client, file_format, name, beside, figures):
    told = sent(client, {"format": file_format, "content": text(name), **beside}).json()
    links = [f"links.nvlink.{part}" for part in figures or ()]
    assert told["figures"] == (links or ["host_link_bytes_per_second"])
    assert told["answers"] == []


@ON_SQLITE
def test_a_collective_that_the_file_does_not_name_is_asked_for(reader):
    body = {"format": "nccl_tests", "content": text("alltoall-a100-40g-8gpu.txt")}
    assert refusals(sent(reader, body)) == {"/collective": "COLLECTIVE_REQUIRED"}
    transfers = {"format": "nvbandwidth", "content": text("nvbandwidth-v0.8-6xa6000.txt")}
    assert refusals(sent(reader, transfers)) == {"/cluster": "ACCELERATOR_REQUIRED"}


@ON_SQLITE
def test_a_rate_above_the_data_sheet_is_another_unit(reader):
    content = text("nvbandwidth-h100-8gpu-memcpy-sm.txt").replace(" 35.", " 351.")
    body = {"format": "nvbandwidth", "content": content, "cluster": SERVED["cluster"]}
    assert refusals(sent(reader, body)) == {"/content": "ABOVE_LIMIT"}


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("workload.concurrency.more", "1"),
        ("cluster.accelerator_count", "eight"),
        ("workload.engine", "vllm"),
        ("workload.prefix_cache_hit_rate", "2"),
        ("model.source", "anywhere"),
        ("workload.input_tokens", "many"),
    ],
)
@ON_SQLITE
def test_a_column_that_makes_no_question_refuses_its_row(reader, column, cell):
    table = f"metric,value,workload.concurrency,{column}\ntime_to_first_token_seconds,0.08,16,{cell}\n"
    workload = {**EXAMPLE["workload"], "output_tokens": 256}
    if column != "workload.input_tokens":
        workload["input_tokens"] = 1024
    if column == "workload.engine":
        del workload["engine"]
    body = {**EXAMPLE, "content": table, "workload": workload}
    if column == "cluster.accelerator_count":
        body["cluster"] = {"accelerator": EXAMPLE["cluster"]["accelerator"]}
        body["parallelism"] = {"tensor": 8}
    assert set(refusals(sent(reader, body)).values()) <= {
        "QUESTION_INVALID",
        "CONTRADICTS_FILE",
        "ENGINE_REQUIRED",
    }


def test_what_is_only_observed_does_not_count(reader):
    body = {"format": "dcgm_dmon", "content": text("dcgmi-dmon-prof.txt")}
    assert refusals(sent(reader, body)) == {"/content": "NO_FIGURE"}
    assert refusals(sent(reader, {**body, "content": "nothing"})) == {"/content": "FORMAT"}


def test_a_file_at_the_command_line(database, tmp_path, monkeypatch):
    monkeypatch.setattr("service.app.operator.Database", lambda _: database)
    monkeypatch.setenv("IRONLAW_SECRET_KEY", "a secret of the tests, nowhere else")
    file, context = tmp_path / "table.csv", tmp_path / "context.json"
    file.write_text(EXAMPLE["content"])
    context.write_text(json.dumps({name: EXAMPLE[name] for name in ("model", "cluster", "workload")}))
    command = ["evidence", "import", str(file), "--format", "own_csv", "--context", str(context)]
    dry = CliRunner().invoke(cli, [*command, "--dry-run"])
    assert "2 answers would count" in dry.output
    assert "2 answers count as" in CliRunner().invoke(cli, command).output


ASKED = {
    **{name: EXAMPLE[name] for name in ("model", "cluster")},
    "workload": {**EXAMPLE["workload"], "concurrency": 24, "input_tokens": 1000, "output_tokens": 300},
    "explain": False,
}


def estimate(client, caller, **workload):
    body = {**ASKED, "workload": {**ASKED["workload"], **workload}}
    answer = client.post("/v1/estimates/throughput", body, **caller).json()
    answer["evidence"].pop("catalog_revision")
    return answer


def test_ten_rows_move_the_estimates_of_their_tenant_until_they_are_withdrawn(callers):
    mine, other = (
        {"headers": bearing(callers.key("*:*", tenant=callers.tenant(name)))} for name in ("mine", "other")
    )
    client, figure = callers.client, "time_per_output_token_seconds"
    before = estimate(client, mine)
    table = ["metric,value,workload.concurrency,workload.input_tokens,workload.output_tokens"]
    for concurrency in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96):
        expected = estimate(client, mine, concurrency=concurrency)[figure]["value"]
        table.append(f"{figure},{1.4 * expected},{concurrency},1000,300")
    body = {**EXAMPLE, "content": "\n".join(table)}
    made = client.post("/v1/evidence:import", body, **mine)
    moved = estimate(client, mine)
    assert moved[figure]["value"] == pytest.approx(1.4 * before[figure]["value"], rel=0.05)
    assert moved["evidence"]["calibration_ids"] == [made.json()["calibration_id"]]
    assert estimate(client, other) == before
    client.post(f"{made.headers['location']}:withdraw", {"reason": "another engine"}, **mine)
    assert estimate(client, mine) == before


def test_an_import_asks_a_bounded_number_of_questions(monkeypatch):
    """Each is an estimate, also where its figure is then refused."""
    asked = []

    def estimator(question, catalog):
        asked.append(question)
        return ESTIMATES["throughput"].estimator(question, catalog)

    monkeypatch.setattr(service, "MOST_QUESTIONS", 2)
    names = "metric,value,model_name,workload.concurrency,workload.input_tokens,workload.output_tokens\n"
    row = "time_per_output_token_seconds,1e9,openai/gpt-oss-120b,{},128,128\n"
    body = {**SERVED, "format": "own_csv", "content": names + "".join(map(row.format, (1, 2, 4, 8)))}
    with pytest.raises(EvidenceRefused) as refused:
        service.read_evidence(
            EvidenceImportRequest.model_validate_json(json.dumps(body)), shipped(), {"throughput": estimator}
        )
    assert [error.code for error in refused.value.errors] == ["IMPLAUSIBLE", "TOO_MANY"]
    assert len(asked) == 2


def test_the_report_of_a_worker_anchors_estimates(client):
    """By the calibration that an import makes: the next estimate of the question is the measured figure."""
    body = without(built(), "cluster", "node_id")
    made = sent(client, body)
    assert made.status_code == 201, made.text
    told = made.json()
    figures = {one["family"]: one for one in told["answers"]}
    assert figures["serving_tpot"]["measured"] == pytest.approx(0.012)
    calibration = client.get(f"/v1/calibrations/{told['calibration_id']}").json()
    assert {answer["family"] for answer in calibration["answers"]} == figures.keys()
    question = next(answer for answer in calibration["answers"] if answer["family"] == "serving_tpot")[
        "question"
    ]
    after = client.post("/v1/estimates/throughput", question).json()
    assert after["time_per_output_token_seconds"]["value"] == pytest.approx(0.012, rel=0.05)
    assert told["calibration_id"] in after["evidence"]["calibration_ids"]
