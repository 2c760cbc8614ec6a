"""Reports of GuideLLM about an engine of the host: what is sent of them, and that it counts as evidence."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from service.protocol.nodes import NodeAccelerator
from service.worker import anchor, inventory
from service.worker.anchor import build_import, find_engine, send_anchor, shorten_report
from service.worker.cli import app
from service.worker.client import ImportedReport, ServiceClient
from service.worker.errors import WorkerError
from service.worker.state_directory import Node, StateDirectory
from tests.worker.fake import API_KEY
from tests.worker.records import INVENTORY

NODE = Node(node_id="aaaaaaaaaaaaaaaa", service="https://ironlaw.test", device="cuda")
H100 = [
    NodeAccelerator(index=number, uuid_sha256=f"{number}" * 64, name="NVIDIA H100 80GB HBM3")
    for number in range(3)
]


def summary(mean, count=64):
    return {"successful": {"mean": mean, "std_dev": 0.0, "count": count, "percentiles": {"p50": mean}}}


def report(**metrics):
    """A report as GuideLLM's documentation describes its file, of 16 streams, with single requests."""
    given = {
        "request_totals": {"successful": 64, "errored": 0, "incomplete": 0, "total": 64},
        "requests_per_second": summary(4.0),
        "output_tokens_per_second": summary(1024.0),
        "time_to_first_token_ms": summary(120.0),
        "inter_token_latency_ms": summary(12.0),
        "request_latency": summary(3.2),
        "prompt_token_count": summary(2048.0),
        "output_token_count": summary(256.0),
        **metrics,
    }
    benchmark = {
        "config": {
            "strategy": {"type_": "concurrent", "streams": 16},
            "backend": {"kind": "openai_http", "model": "meta-llama/Llama-3.1-8B-Instruct"},
        },
        "metrics": given,
        "requests": {"successful": [{"output": "x" * 1000}] * 64},
    }
    return json.dumps({"metadata": {"version": 2}, "benchmarks": [benchmark]})


def answering(**answers):
    """Servers of which each answers at some paths: their JSON by host and port, and path."""

    def answer(request):
        said = answers.get(f"{request.url.port}{request.url.path}")
        return httpx.Response(404 if said is None else 200, json=said)

    return httpx.MockTransport(answer)


def built(**changes):
    asked = {"accelerator": 0, "accelerator_count": 1, "stated": {"weight_precision": "bf16"}, **changes}
    engine = find_engine(None, answering(**{"8000/version": {"version": "0.11.0"}}))
    whole = INVENTORY.model_copy(update={"accelerators": H100})
    return build_import(shorten_report(report()), engine, NODE, whole, **asked)


@pytest.mark.parametrize(("address", "answers", "engine"), [
    (None, {"8000/version": {"version": "0.11.0"}}, ("vllm", "0.11.0")),
    (None, {"30000/get_server_info": {"version": "0.5.3", "tp_size": 2}}, ("sglang", "0.5.3")),
    ("http://gpu:9000/", {"9000/server_info": {"version": "0.5.9"}}, ("sglang", "0.5.9")),
])  # fmt: skip
def test_an_engine_says_what_it_is(address, answers, engine):
    assert find_engine(address, answering(**answers)) == engine


@pytest.mark.parametrize("answers", [{}, {"8000/version": ["0.11.0"]}, {"8000/version": {"version": 11}}])
def test_a_server_that_does_not_say_what_it_is_is_not_guessed(answers):
    with pytest.raises(
        WorkerError, match=r"neither vLLM nor SGLang says its version at http://127.0.0.1:8000 or"
    ):
        find_engine(None, answering(**answers))


def test_single_requests_stay_on_the_host():
    short = json.loads(shorten_report(report()))
    assert "requests" not in short["benchmarks"][0]
    assert short["benchmarks"][0]["metrics"]["request_latency"]["successful"]["mean"] == 3.2


@pytest.mark.parametrize(("content", "reason"), [
    ("no JSON", "not a report of GuideLLM"),
    ("[1]", "not a report of GuideLLM"),
    ('{"benchmarks": [1]}', "not a report of GuideLLM"),
    ('{"benchmarks": []}', "no figures"),
    (json.dumps({"benchmarks": [{"metrics": {}}]}), "no figures"),
])  # fmt: skip
def test_a_file_without_figures_is_refused_before_it_is_sent(content, reason):
    with pytest.raises(WorkerError, match=reason):
        shorten_report(content)


def test_the_node_says_what_the_engine_runs_on():
    body = built(accelerator=1, accelerator_count=2)
    assert body["cluster"] == {
        "accelerator": {"source": "catalog", "id": "NVIDIA H100 80GB HBM3"},
        "accelerator_count": 2,
        "node_id": NODE.node_id,
    }
    assert body["parallelism"] == {"tensor": 2}
    assert body["workload"]["engine"] == {"name": "vllm", "version": "0.11.0"}
    with pytest.raises(WorkerError, match="no 3 equal accelerators from index 1"):
        built(accelerator=1, accelerator_count=3)


def test_what_the_service_refuses_is_said():
    refusal = httpx.Response(409, json={"code": "EVIDENCE_COUNTED", "detail": "it counts already"})
    client = ServiceClient(NODE.service, transport=httpx.MockTransport(lambda _: refusal))
    with pytest.raises(WorkerError, match="not imported: 409 EVIDENCE_COUNTED: it counts already"):
        send_anchor(client, API_KEY, built())


def test_the_command_prints_each_figure_beside_its_estimate(tmp_path, monkeypatch):
    (tmp_path / "report.json").write_text(report())
    (tmp_path / "key").write_text(API_KEY)
    home = StateDirectory(tmp_path / "home")
    home.save_state(NODE)
    monkeypatch.setattr(anchor, "find_engine", lambda _: anchor.ServingEngine("vllm", "0.11.0"))
    whole = INVENTORY.model_copy(update={"accelerators": H100})
    monkeypatch.setattr(inventory, "collect_inventory", lambda _: whole)
    figure = {"family": "serving_tpot", "measured": 0.012, "estimated": 0.0108}
    sent = []

    def import_evidence(_, key, body):
        sent.append((key, json.loads(body)))
        return ImportedReport.model_validate({"calibration_id": "calibration-1", "answers": [figure]})

    monkeypatch.setattr(ServiceClient, "import_evidence", import_evidence)
    words = ["anchor", "--dir", tmp_path / "home", "--report", tmp_path / "report.json"]
    words += ["--key-file", tmp_path / "key", "--weight-precision", "bf16", "--accelerators", "2"]
    ended = CliRunner().invoke(app, [str(word) for word in words])
    assert ended.exit_code == 0, ended.output
    assert "serving_tpot: measured 0.012, estimated 0.0108" in ended.output
    ((key, body),) = sent
    assert key == API_KEY
    assert body == built(accelerator_count=2)
