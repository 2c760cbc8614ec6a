"""Workers and services of two versions: what an older worker sends and reads, and what a newer one does.

`tests/data/protocol` holds what the worker of the last release sent, in its order, to a service that it
enrolled at and measured for. What each conversation has of its own is in braces.
"""

import json
import re
from hashlib import sha256

import jsonschema_rs
import pytest

from service.protocol.leases import LeaseClaimRequest, LeaseCompletionRequest, LeaseRenewalRequest
from service.protocol.nodes import NodeEnrolmentRequest, NodeHeartbeatRequest, NodeInventory
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import SUITE_FORM, shipped_suites
from tests.applications import bearing, content_digest
from tests.contract.breaks import ROOT, read_last_release
from tests.worker.records import suite

SUITES = shipped_suites()
LAST_FORM = 1
"""Form of suites that the last release reads. The release after it reads `SUITE_FORM`."""


@pytest.fixture(scope="module")
def release():
    """The document of the last release."""
    return read_last_release()


@pytest.fixture(scope="module")
def sent(release):
    """What its worker sent."""
    version = release["info"]["version"]
    return json.loads((ROOT / "tests" / "data" / "protocol" / f"worker-{version}.json").read_text())


def reads(release, schema):
    """Whether the last release reads a document as one of its shapes."""
    return jsonschema_rs.validator_for({**schema, "components": release["components"]}).is_valid


def named(release, operation):
    """An operation of the last release."""
    found = (one for path in release["paths"].values() for one in path.values())
    return next(one for one in found if isinstance(one, dict) and one.get("operationId") == operation)


def shape(body):
    return body["content"]["application/json"]["schema"]


@pytest.fixture(scope="module")
def reads_suite(release):
    """Whether the worker of the last release, which refuses what it does not know, reads a suite."""
    return reads(release, {"$ref": "#/components/schemas/BenchmarkSuite"})


@pytest.mark.parametrize("suite_id", SUITES)
def test_it_reads_the_part_of_every_suite_that_it_is_sent(reads_suite, suite_id):
    """And no benchmark is left out that it would read."""
    suite = SUITES[suite_id]
    sent = suite.narrow_to_form(LAST_FORM)
    assert reads_suite(json.loads(sent.model_dump_json()))
    for benchmark in suite.benchmarks:
        alone = suite.model_copy(update={"benchmarks": [benchmark]})
        is_read = reads_suite(json.loads(alone.model_dump_json()))
        assert is_read == (benchmark in sent.benchmarks), benchmark.name
    assert suite.narrow_to_form(SUITE_FORM) == suite


def test_what_it_does_not_know_would_be_seen(reads_suite):
    suite = json.loads(SUITES["gpu-standard"].narrow_to_form(LAST_FORM).model_dump_json())
    assert reads_suite(suite)
    suite["benchmarks"][0]["new_member"] = 1
    assert not reads_suite(suite)
    del suite["benchmarks"][0]["new_member"]
    suite["benchmarks"][0]["work"] = {"kind": "grouped_products"}
    assert not reads_suite(suite)


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_worker_of_the_last_release_measures_for_this_service(client, release, sent):
    """Every message is taken as it is, and every answer is one that the release describes."""
    client.app.state.suites = {"tiny": suite(benchmarks=1, repeats=1)}
    run = client.post("/v1/benchmark-runs", {"suite_id": "tiny"}).json()["id"]
    known = {"token": client.post("/v1/enrolment-tokens", {}).json()["token"]}
    for message in sent:
        content = fill(message["body"], known).encode()
        headers = bearing(known["credential"]) if "credential" in known else {}
        if message["operation"] == "report_benchmark_result":
            headers["content-digest"] = content_digest(content)
            known["result_sha256"] = sha256(content).hexdigest()
        answer = client.request(
            message["method"],
            fill(message["path"], known),
            content=content,
            headers={**headers, "content-type": "application/json"},
        )
        assert answer.status_code == 200, (message["operation"], answer.text)
        said = answer.json()
        is_answer = reads(release, shape(named(release, message["operation"])["responses"]["200"]))
        assert is_answer(said), message["operation"]
        known |= {name: str(value) for name, value in said.items()}
        if message["operation"] == "claim_lease":
            known["run_id"] = said["id"]
    assert client.get(f"/v1/benchmark-runs/{run}").json()["state"] == "completed"
    (result,) = client.get("/v1/benchmark-results").json()["items"]
    assert (result["run_id"], result["lease"], result["is_counted"]) == (run, "current", True)


def fill(text, known):
    return re.sub(r"\{([a-z0-9_]+)\}", lambda found: known[found[1]], text)


SENT = {
    "enrol_node": NodeEnrolmentRequest,
    "heartbeat_node": NodeHeartbeatRequest,
    "put_node_inventory": NodeInventory,
    "claim_lease": LeaseClaimRequest,
    "renew_lease": LeaseRenewalRequest,
    "report_benchmark_result": BenchmarkResultReport,
    "complete_lease": LeaseCompletionRequest,
}


def test_a_service_of_the_last_release_refuses_a_claim_of_this_worker_alone(release, sent):
    """So what this worker has measured is handed in there, and services are upgraded first (decision 94)."""
    known = dict.fromkeys(("token", "node_id", "run_id", "seed"), "7")
    known |= {"nonce": "7" * 32, "result_sha256": "7" * 64}
    refused = set()
    for operation, model in SENT.items():
        body = next(message["body"] for message in sent if message["operation"] == operation)
        today = model.model_validate_json(fill(body, known))
        is_read = reads(release, shape(named(release, operation)["requestBody"]))
        assert is_read(json.loads(fill(body, known))), operation
        if not is_read(json.loads(today.model_dump_json())):
            refused.add(operation)
    assert refused == {"claim_lease"}
