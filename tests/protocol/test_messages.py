"""What is sent is what is read: digests, bytes, versions and bounds."""

import hashlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import MISSING, ValidationError

from service.protocol import leases, nodes, results, suites, work
from service.protocol.base import ProtocolMessage, ProtocolReply
from service.protocol.canonical import compute_digest
from service.protocol.leases import BenchmarkLease, LeaseClaimRequest
from service.protocol.nodes import NodeAccelerator, NodeHost, NodeInstructions, NodeInventory, NodeSoftware
from service.protocol.results import (
    MOST_RESULT_BYTES,
    MOST_RESULT_VALUES,
    MOST_SAMPLES,
    BenchmarkMeasurement,
    BenchmarkResultReceipt,
    BenchmarkResultReport,
    content_sha256,
)
from service.protocol.suites import BenchmarkSuite, shipped_suites
from tests.protocol.records import RESULTS

MODULES = (leases, nodes, results, suites, work)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def subclasses(base):
    found = {value for module in MODULES for value in vars(module).values() if isinstance(value, type)}
    return sorted(
        (one for one in found if issubclass(one, base) and one is not base), key=lambda one: one.__name__
    )


def shuffled(value, order):
    """The same document with the members of every object in another order."""
    if isinstance(value, dict):
        members = list(value.items())
        order.shuffle(members)
        return {name: shuffled(member, order) for name, member in members}
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    return value


def has_nulls(value):
    if isinstance(value, dict):
        return any(map(has_nulls, value.values()))
    return any(map(has_nulls, value)) if isinstance(value, list) else value is None


def inventory(**changes):
    host = NodeHost(operating_system="Linux", kernel="6.1", architecture="x86_64", cpu_count=8)
    accelerator = NodeAccelerator(index=0, uuid_sha256="0" * 64, name="GPU é", memory_bytes=2**37)
    return NodeInventory(**{"device": "cuda", "host": host, "accelerators": [accelerator], **changes})


def lease_document(**changes):
    document = {
        "id": "run-1",
        "fencing_token": 3,
        "nonce": "0" * 32,
        "attempt": 1,
        "lease_seconds": 90.0,
        "renew_seconds": 30.0,
        "runtime_seconds": 600.0,
        "seed": 5,
        "suite": json.loads(shipped_suites()["cpu-quick"].model_dump_json()),
        "server_time": "2026-11-21T12:00:00Z",
    }
    return {**document, **changes}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(RESULTS)
def test_a_record_read_back_is_the_same_bytes(result):
    content = result.to_json()
    read = BenchmarkResultReport.model_validate_json(content)
    assert read == result
    assert read.to_json() == content
    assert not has_nulls(json.loads(content))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(RESULTS, st.randoms(use_true_random=False))
def test_a_digest_does_not_depend_on_the_order_of_members(result, order):
    document = json.loads(result.to_json())
    other = BenchmarkResultReport.model_validate_json(json.dumps(shuffled(document, order)))
    assert compute_digest(other) == compute_digest(result)


def test_a_digest_is_that_of_the_sorted_document_without_spaces():
    """Written out by hand: sorted, nothing between the members, letters as they are, nothing absent."""
    written = (
        '{"accelerators":[{"index":0,"memory_bytes":137438953472,"name":"GPU é","uuid_sha256":"'
        + "0" * 64
        + '"}],"device":"cuda","gaps":[],"host":{"architecture":"x86_64","cpu_count":8,"kernel":"6.1",'
        '"operating_system":"Linux"},"software":[]}'
    )
    assert compute_digest(inventory()) == hashlib.sha256(written.encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cpu"},
        {"accelerators": []},
        {"software": [NodeSoftware(name="driver", version="580")]},
        {"host": NodeHost(operating_system="Linux", kernel="6.2", architecture="x86_64", cpu_count=8)},
    ],
)
def test_a_digest_changes_with_what_it_names(change):
    assert compute_digest(inventory(**change)) != compute_digest(inventory())


def test_the_order_of_software_is_part_of_what_is_named():
    parts = [NodeSoftware(name="driver", version="1"), NodeSoftware(name="nvrtc", version="2")]
    assert compute_digest(inventory(software=parts)) != compute_digest(inventory(software=parts[::-1]))


def test_bytes_are_named_by_their_sha256():
    assert content_sha256(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("reply", subclasses(ProtocolReply), ids=lambda one: one.__name__)
def test_a_node_passes_over_what_a_newer_service_adds(reply):
    assert reply.model_config["extra"] == "ignore"


@pytest.mark.parametrize("message", subclasses(ProtocolMessage), ids=lambda one: one.__name__)
def test_the_service_refuses_members_that_it_does_not_know(message):
    assert message.model_config["extra"] == "forbid"
    with pytest.raises(ValidationError) as caught:
        message.model_validate({"surprise": 1})
    assert "extra_forbidden" in [error["type"] for error in caught.value.errors()]


def test_replies_of_a_newer_service_are_read():
    receipt = {
        "result_id": "0" * 8 + "-0000-7000-8000-" + "0" * 12,
        "content_sha256": "0" * 64,
        "lease": "late",
    }
    read = BenchmarkResultReceipt.model_validate_json(
        json.dumps({**receipt, "validation": {"state": "accepted"}})
    )
    assert json.loads(read.model_dump_json()) == receipt
    answer = {
        "state": "active",
        "rotate": False,
        "send_inventory": True,
        "heartbeat_seconds": 30.0,
        "server_time": "2026-11-21T12:00:00Z",
        "maintenance": True,
    }
    assert NodeInstructions.model_validate_json(json.dumps(answer)).heartbeat_seconds == 30


def test_a_suite_that_a_node_does_not_understand_is_refused_whole():
    """Members of a lease may be new; what is to be measured may not."""
    document = lease_document(priority=3)
    lease = BenchmarkLease.model_validate_json(json.dumps(document))
    assert lease.suite == shipped_suites()["cpu-quick"]
    document["suite"]["benchmarks"][0]["sampling"]["outliers"] = "dropped"
    with pytest.raises(ValidationError, match="outliers"):
        BenchmarkLease.model_validate_json(json.dumps(document))


def test_a_time_is_given_or_read():
    assert BenchmarkLease.model_validate_json(json.dumps(lease_document())).server_time == NOW
    given = lease_document(server_time=NOW, suite=shipped_suites()["cpu-quick"])
    assert BenchmarkLease(**given).server_time == NOW


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-21T12:00:00",
        "2026-11-21 12:00:00Z",
        "2026-11-21",
        "1700000000",
        "2026-13-01T00:00:00Z",
        1700000000,
        None,
    ],
)
def test_a_time_has_a_date_and_a_zone(time):
    with pytest.raises(ValidationError):
        BenchmarkLease.model_validate_json(json.dumps(lease_document(server_time=time)))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("fencing_token", 0),
        ("fencing_token", 2**53),
        ("fencing_token", "3"),
        ("fencing_token", 3.0),
        ("nonce", "0" * 31),
        ("nonce", "G" * 32),
        ("lease_seconds", "NaN"),
        ("lease_seconds", -1.0),
        ("id", "Run 1"),
        ("attempt", None),
    ],
)
def test_scalars_are_strict(member, value):
    with pytest.raises(ValidationError):
        BenchmarkLease.model_validate_json(json.dumps(lease_document(**{member: value})))


def test_numbers_that_are_none_are_refused():
    claim = '{"request_id": "%s", "wait_seconds": %s, "inventory_sha256": "%s"}'
    for number in ("NaN", "Infinity", "1e999", "null"):
        with pytest.raises(ValidationError):
            LeaseClaimRequest.model_validate_json(claim % ("0" * 32, number, "0" * 64))


def result_document(**changes):
    document = {
        "result_id": "0" * 8 + "-0000-7000-8000-" + "0" * 12,
        "run_id": "run-1",
        "fencing_token": 1,
        "attempt": 1,
        "nonce": "0" * 32,
        "node_id": "node-1",
        "boot_id_sha256": "0" * 64,
        "inventory_sha256": "0" * 64,
        "worker_version": "0.1.0",
        "suite_id": "cpu-quick",
        "suite_version": 1,
        "seed": 1,
        "repeat": 1,
        "benchmark": shipped_suites()["cpu-quick"].benchmarks[0],
        "device": "cpu",
        "started_at": NOW,
        "finished_at": NOW,
        "started_monotonic_seconds": 1.0,
        "finished_monotonic_seconds": 2.0,
        "status": "ok",
        "measurement": measurement(samples_ns=[1_000_000]),
    }
    return {name: value for name, value in {**document, **changes}.items() if value is not MISSING}


def measurement(**changes):
    document = {
        "library": "numpy",
        "data": "normal(0, 1)",
        "timer": "host_clock",
        "warmup_seconds": 1.0,
        "warmup_iterations": 10,
        "stop_reason": "spread",
    }
    return {**document, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"measurement": MISSING},
        {"status": "failed"},
        {"status": "failed", "measurement": MISSING},
        {"failure": {"reason": "X"}},
        {"status": "timeout", "failure": {"reason": "X"}},
    ],
)
def test_a_result_is_a_measurement_or_a_failure(changes):
    assert BenchmarkResultReport(**result_document()).status == "ok"
    with pytest.raises(ValidationError):
        BenchmarkResultReport(**result_document(**changes))


@pytest.mark.parametrize(
    "changes",
    [{}, {"samples_ns": [1], "readings": [1.0]}, {"samples_ns": [0]}, {"readings": [-1.0]}],
)
def test_a_measurement_has_samples_or_readings(changes):
    with pytest.raises(ValidationError):
        BenchmarkMeasurement(**measurement(**changes))


def test_samples_are_read_in_seconds_and_readings_as_they_are():
    assert BenchmarkMeasurement(**measurement(samples_ns=[1_500_000_000, 2])).values == [1.5, 2e-9]
    assert BenchmarkMeasurement(**measurement(readings=[70.5])).values == [70.5]


def test_the_largest_record_fits_into_an_upload():
    samples = [2**40 - 1] * MOST_SAMPLES
    record = BenchmarkResultReport(**result_document(measurement=measurement(samples_ns=samples)))
    assert len(record.to_json()) < MOST_RESULT_BYTES / 2
    with pytest.raises(ValidationError):
        BenchmarkMeasurement(**measurement(samples_ns=[1] * (MOST_SAMPLES + 1)))


def count_values(schema, definitions):
    """Members and elements of the largest value of a schema whose lists all have a length."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    values = max(
        (count_values(one, definitions) for key in ("anyOf", "oneOf") for one in schema.get(key, ())),
        default=0,
    )
    values += sum(1 + count_values(one, definitions) for one in schema.get("properties", {}).values())
    if isinstance(named := schema.get("additionalProperties"), dict):
        values += schema["maxProperties"] * (1 + count_values(named, definitions))
    if schema.get("type") == "array":
        values += schema["maxItems"] * (1 + count_values(schema["items"], definitions))
    return values


def test_the_largest_record_has_no_more_values_than_an_upload_may_have():
    """Samples or readings: a record has one of them."""
    schema = BenchmarkResultReport.model_json_schema()
    assert count_values(schema, schema["$defs"]) - MOST_SAMPLES < MOST_RESULT_VALUES


def test_a_suite_read_back_is_the_same_bytes():
    for suite in shipped_suites().values():
        content = suite.model_dump_json()
        assert BenchmarkSuite.model_validate_json(content).model_dump_json() == content
