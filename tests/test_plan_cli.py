"""`ironlaw plan`: the table, the exit status, a running service, configurations in use, and interrupts."""

import json
import signal
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import httpx
import pytest
from pydantic_core import from_json, to_json
from typer.testing import CliRunner

from service.cli import plan as plan_cli
from service.cli.main import app
from service.cli.plan_answer import format_layout
from service.plans.configuration import read_configuration
from service.plans.service import estimate_plan
from service.schemas.plans import PlanRequest
from tests import forked
from tests.asking import shipped
from tests.serving import environment, run

SAMPLES = Path(__file__).parent / "data" / "launch"

QUESTION = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "global_batch_size": 64,
        "precision": "bf16",
        "total_tokens": 1_000_000_000,
    },
    "goal": "fastest",
    "search": {
        "offers": False,
        "accelerator_counts": [8, 16],
        "training": {
            "tensor": [1, 2],
            "pipeline": [1, 2],
            "shardings": ["zero_1", "zero_3"],
            "pipeline_schedules": ["one_f_one_b"],
            "micro_batch_sizes": [1],
            "recomputations": [{"strategy": "none"}],
        },
    },
    "owned": [
        {
            "name": "our nodes",
            "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
            "site": {"pue": 1.2, "electricity": {"price_per_kwh": {"amount": "0.1", "currency_code": "USD"}}},
        }
    ],
}


@pytest.fixture
def asked(tmp_path):
    def write(**members):
        path = tmp_path / "a question.json"
        path.write_text(json.dumps({**QUESTION, **members}))
        return path

    return write


@pytest.fixture(scope="module")
def answer():
    question = PlanRequest.model_validate_json(json.dumps(QUESTION))
    return from_json(to_json(estimate_plan(question, shipped())))


@pytest.fixture
def here(monkeypatch, tmp_path):
    """The command in this process, on the shipped catalog."""
    monkeypatch.setenv("IRONLAW_DATA_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("COLUMNS", "160")
    return lambda *arguments: CliRunner().invoke(app, ["plan", *map(str, arguments)])


def test_a_plan_at_the_terminal(asked, answer, tmp_path):
    out, errors, status = run("plan", asked(), data_dir=tmp_path / "none", COLUMNS="160")
    assert (errors, status) == ("", 0)
    first = answer["rows"][0]
    assert f"1  our nodes  {first['accelerator_count']} x h100-sxm  {format_layout(first)}" in out
    for part in ("Best configurations", "Differences between the first and the second", "Launch the first"):
        assert part in out
    assert f"{answer['candidates']['considered']} configurations" in out
    assert "--nnodes 2 --nproc-per-node 8" in out
    assert "[parallelism]" in out


def test_json_is_the_answer(here, asked, answer):
    told = here(asked(), "--json")
    assert told.exit_code == 0
    assert json.loads(told.stdout) == answer


def test_processes_find_the_same(here, asked, monkeypatch):
    """Two kinds of devices are two pieces, each of which another process may search."""
    older = {"accelerator": {"source": "catalog", "id": "a100-sxm-80gb"}, "accelerator_count": 16}
    question = asked(owned=[*QUESTION["owned"], {"name": "older nodes", "cluster": older}])
    alone = here(question, "--json")
    monkeypatch.setattr(plan_cli, "_FEW_CANDIDATES", 0)
    monkeypatch.setattr(plan_cli._SearchProcess, "question", None)
    together = here(question, "--json", "--processes", "2")
    assert alone.exit_code == together.exit_code == 0, together.stderr
    assert plan_cli._SearchProcess.question is None  # this process searched none of it
    assert json.loads(together.stdout) == json.loads(alone.stdout)
    assert len(json.loads(alone.stdout)["rows"]) > 3


@pytest.mark.usefixtures("here")
def test_a_question_on_standard_input_that_is_refused():
    asked = json.dumps({**QUESTION, "workload": {"kind": "training", "global_batch_size": 64}})
    told = CliRunner().invoke(app, ["plan", "-"], input=asked)
    assert told.exit_code == 1
    assert "/workload/total_tokens" in told.stderr
    told = CliRunner().invoke(app, ["plan", "-"], input=json.dumps({**QUESTION, "goal": "sturdiest"}))
    assert told.exit_code == 1
    assert "/goal" in told.stderr


def test_nothing_is_left(here, asked):
    told = here(asked(constraints={"duration_seconds": 1}))
    assert told.exit_code == 3
    assert "No configuration satisfies the constraints." in told.stdout
    assert "deadline" in told.stdout


class TestConfigurations:
    def test_a_configuration_in_use_is_ranked(self, here, asked):
        used = f"torchtitan={SAMPLES / 'torchtitan-llama3-70b.toml'}"
        told = here(asked(), "--json", "--configuration", used)
        assert told.exit_code == 0, told.stderr
        (row,) = json.loads(told.stdout)["given"]
        assert row["name"] == "torchtitan-llama3-70b.toml"
        assert (row["parallelism"]["tensor"], row["parallelism"]["data"]) == (8, 2)
        assert row["parallelism"]["sharding"] == "zero_3"
        assert (row["micro_batch_size"], row["recomputation"]) == (8, "full")
        assert row["rank"] > 1

    def test_what_the_file_leaves_open_is_said(self, here, asked):
        used = f"deepspeed={SAMPLES / 'ds-zero3-offload-auto.json'}"
        told = here(asked(), "--configuration", used)
        assert "/workload/micro_batch_size" in told.stderr

    def test_steps_are_the_same_work_in_another_batch(self):
        workload = {"kind": "training", "sequence_length": 4096, "global_batch_size": 64, "total_steps": 1000}
        cluster = {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16}
        text = (SAMPLES / "torchtitan-llama3-70b.toml").read_text()
        read = read_configuration("ours", "torchtitan", text, workload, cluster)
        assert read.given["workload"]["total_samples"] == 64_000
        assert "total_steps" not in read.given["workload"]
        assert read.given["workload"]["global_batch_size"] == 16
        assert read.given["workload"]["sequence_length"] == 4096
        assert [note.partition(":")[0] for note in read.notes] == ["/workload/sequence_length"]

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--configuration", "slurm=job.sh"),
            ("--configuration", "torchtitan"),
            ("--configuration", "torchtitan=a.toml", "--on", "h100-sxm"),
        ],
    )
    def test_how_one_is_given(self, here, asked, arguments):
        assert here(asked(), *arguments).exit_code == 2

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"workload": "training", "owned": [1]}', "null"])
    @pytest.mark.usefixtures("here")
    def test_of_no_question(self, text):
        used = f"torchtitan={SAMPLES / 'torchtitan-llama3-70b.toml'}"
        told = CliRunner().invoke(app, ["plan", "-", "--configuration", used], input=text)
        assert told.exit_code == 1
        assert told.stderr.startswith("ironlaw: ")

    def test_a_server_in_use(self, here, tmp_path):
        """Flags of SGLang beside a question for vLLM, whose limits are no limits of SGLang."""
        workload = {
            "kind": "inference",
            "input_tokens": 1000,
            "output_tokens": 200,
            "concurrency": 16,
            "memory_fraction": 0.95,
            "engine": {"name": "vllm", "max_num_seqs": 8},
            "horizon": {"duration_seconds": 3600},
        }
        question, flags = tmp_path / "question.json", tmp_path / "flags.txt"
        question.write_text(json.dumps({**QUESTION, "workload": workload, "search": {"offers": False}}))
        flags.write_text("--tp 2 --kv-cache-dtype fp8_e4m3 \\\n  --max-running-requests 64  # as it runs\n")
        told = here(question, "--json", "--configuration", f"sglang={flags}", "--on", "h100-sxm:2")
        assert told.exit_code == 0, told.stderr
        (row,) = json.loads(told.stdout)["given"]
        asked = row["requests"]["throughput"]
        assert asked["workload"]["engine"]["name"] == "sglang"
        assert asked["workload"]["engine"]["max_num_seqs"] == 64
        assert "memory_fraction" not in asked["workload"]
        assert (asked["parallelism"]["tensor"], row["kv_cache_precision"]) == (2, "fp8")

    def test_another_program_than_the_workload_has(self, here, asked):
        told = here(asked(), "--configuration", f"vllm={SAMPLES / 'ds-zero2.json'}")
        assert told.exit_code == 1
        assert "does not run this kind of workload" in told.stderr


class Service:
    """A service that answers as it is told, and what it was asked."""

    def __init__(self, monkeypatch, *states):
        self.asked = []
        self.states = list(states)
        transport = httpx.MockTransport(self.respond)
        monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=transport))

    def respond(self, request):
        self.asked.append((request.method, request.url.path, request.headers.get("authorization")))
        status, body = self.states.pop(0)
        return httpx.Response(status, json=body)


def _plan(state, **members):
    progress = {"pieces": 2, "pieces_done": 1, "candidates": 10, "candidates_decided": 5}
    return {"id": "0" * 32, "state": state, "progress": progress, **members}


class TestService:
    @pytest.fixture(autouse=True)
    def _no_waiting(self, monkeypatch):
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setenv("IRONLAW_API_KEY", "a-key")

    def test_a_running_search_is_followed(self, here, asked, answer, monkeypatch):
        running, done = _plan("running"), _plan("done", answer=answer)
        service = Service(monkeypatch, (202, running), (200, running), (200, done))
        told = here(asked(), "--url", "https://ironlaw.test", "--json")
        assert told.exit_code == 0
        assert json.loads(told.stdout) == answer
        assert service.asked[0] == ("POST", "/v1/plans", "Bearer a-key")
        assert service.asked[1:] == 2 * [("GET", f"/v1/plans/{'0' * 32}", "Bearer a-key")]
        assert "a-key" not in told.stdout + told.stderr

    def test_an_interrupt_cancels_the_search(self, here, asked, monkeypatch):
        service = Service(monkeypatch, (202, _plan("running")), (200, _plan("cancelled")))

        def interrupt(_):
            raise KeyboardInterrupt

        monkeypatch.setattr(time, "sleep", interrupt)
        told = here(asked(), "--url", "https://ironlaw.test")
        assert told.exit_code == 130
        assert service.asked[-1][:2] == ("POST", f"/v1/plans/{'0' * 32}:cancel")

    def test_what_the_service_refuses_is_told(self, here, asked, monkeypatch):
        errors = [{"pointer": "/goal", "code": "NO_GOAL", "detail": "there is no such goal"}]
        Service(monkeypatch, (422, {"detail": "The question has no sound answer", "errors": errors}))
        told = here(asked(), "--url", "https://ironlaw.test")
        assert told.exit_code == 1
        assert told.stderr == (
            "ironlaw: The question has no sound answer\n  /goal: there is no such goal (NO_GOAL)\n"
        )

    def test_a_search_that_fails(self, here, asked, monkeypatch):
        failed = _plan("failed", error_code="CATALOG_MOVED", error_summary="the catalog changed too often")
        Service(monkeypatch, (202, failed))
        told = here(asked(), "--url", "https://ironlaw.test")
        assert told.exit_code == 1
        assert "failed the catalog changed too often" in told.stderr

    def test_what_is_no_service(self, here, asked, monkeypatch):
        Service(monkeypatch, (502, "a gateway"))
        told = here(asked(), "--url", "https://ironlaw.test")
        assert told.exit_code == 1
        assert "HTTP status 502" in told.stderr


def test_a_service_answers_the_same(here, asked, answer, client, monkeypatch):
    def connected(*, headers, **_):
        client.headers = headers
        return nullcontext(client)

    monkeypatch.setattr(httpx, "Client", connected)
    told = here(asked(), "--url", "https://ironlaw.test", "--json")
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["rows"] == answer["rows"]
    assert json.loads(told.stdout)["launch_hints"] == answer["launch_hints"]
    assert client.get("/v1/plans").json()["items"][0]["state"] == "done"


def test_a_process_that_dies_is_told(here, asked, monkeypatch):
    def dies(*_):
        raise BrokenProcessPool
        yield

    monkeypatch.setattr(plan_cli, "_iterate_outcomes", dies)
    told = here(asked())
    assert told.exit_code == 1
    assert "a search process died" in told.stderr


def _children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_an_interrupt_leaves_no_process(tmp_path):
    """All offers and all layouts: a search that several processes share for a while."""
    path = tmp_path / "question.json"
    path.write_text(json.dumps({**QUESTION, "owned": [], "search": {}}))
    command = forked.Staying(
        "plan", str(path), "--processes", "2", environment=environment(tmp_path / "none")
    )
    deadline = time.monotonic() + 60
    while len(working := _children(command.pid)) < 3:  # two that search, and the keeper of their locks
        assert command.poll() is None, command.errors()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    command.send_signal(signal.SIGINT)
    assert command.wait(60) == 130
    assert command.communicate(20) == ("", "ironlaw: cancelled\n")
    while any(Path(f"/proc/{pid}").exists() for pid in working):
        assert time.monotonic() < deadline
        time.sleep(0.02)
