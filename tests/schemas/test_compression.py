"""Gradient compression of a question: defaults, what does not apply, and its memory."""

import json

import pytest

from service.estimates.memory import estimate_memory
from service.estimates.throughput import estimate_throughput
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.notes import AnswerNotes
from service.planning.workload import Compression, GradientCompressionKind
from service.resolve import resolve_memory
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest

CATALOG = build_shipped_snapshot()


def question(compression, **workload):
    body = {
        "model": {"source": "catalog", "id": "gpt2-xl"},
        "workload": {"kind": "training", "sequence_length": 1024, **workload},
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
        "parallelism": {"data": 16, "sharding": workload.pop("sharding", "none")},
    }
    if compression:
        body["workload"]["gradient_compression"] = compression
    body["workload"].pop("sharding", None)
    return MemoryEstimateRequest.model_validate_json(json.dumps(body))


def resolved(compression, **workload):
    notes = AnswerNotes()
    asked = question(compression, **workload)
    found = resolve_memory(asked, CATALOG, notes)
    return found.workload.compression, [warning["pointer"] for warning in notes.warnings]


@pytest.mark.parametrize("kind", list(GradientCompressionKind))
def test_defaults(kind):
    assert resolved({"kind": kind.value}) == (Compression(kind), [])
    assert resolved(None) == (None, [])


def test_members_of_another_kind_are_not_used():
    found, said = resolved({"kind": "int8", "rank": 2, "kept_share": 0.1})
    assert found.kind is GradientCompressionKind.INT8
    assert said == [f"/workload/gradient_compression/{name}" for name in ("kept_share", "rank")]


@pytest.mark.parametrize("workload", [{"sharding": "zero_3"}, {"adaptation": {"kind": "lora", "rank": 8}}])
def test_gradients_that_no_replica_holds_whole_are_not_compressed(workload):
    assert resolved({"kind": "fp16"}, **workload) == (None, ["/workload/gradient_compression"])


def throughput(compression, link="infiniband-ndr", **workload):
    body = json.loads(question(compression, **workload).model_dump_json(exclude_unset=True))
    body["cluster"]["inter_node_link"] = {"source": "catalog", "id": link}
    return estimate_throughput(ThroughputEstimateRequest.model_validate_json(json.dumps(body)), CATALOG)


def test_compression_pays_where_it_saves_more_than_it_costs():
    """Claim C31 in an answer, 16 H100 with 1.5e9 gradients.

    Thin matrices pay on 10 Gbit/s a device; a tenth of the elements with their places, sent by each to all,
    does not on 400.
    """
    slow = throughput({"kind": "power_sgd", "rank": 4}, "ethernet-10g")
    fast = throughput({"kind": "top_k", "kept_share": 0.1}, "infiniband-ndr")
    found = slow["gradient_compression"]
    assert found["pays"]
    assert found["ratio"] > 5
    assert slow["step_seconds"]["value"] < found["step_seconds_without"]["value"]
    assert slow["step_seconds"]["value"] > found["compression_seconds"]["value"] > 0
    assert not fast["gradient_compression"]["pays"]
    assert [w["code"] for w in fast["warnings"]] == ["COMPRESSION_DOES_NOT_PAY"]


def test_without_compression_there_is_no_verdict():
    plain = throughput(None, "ethernet-10g")
    assert "gradient_compression" not in plain
    again = throughput({"kind": "fp16"}, "ethernet-10g")["gradient_compression"]["step_seconds_without"]
    assert again["value"] == pytest.approx(plain["step_seconds"]["value"])


def test_error_feedback_keeps_a_residual_of_every_gradient():
    def total(compression):
        return estimate_memory(question(compression), CATALOG)["per_device"]["total_bytes"]["value"]

    plain = total(None)
    assert total({"kind": "top_k", "error_feedback": False}) == plain
    kept = total({"kind": "top_k"}) - plain
    assert kept >= 4 * 1_557_611_200 * 0.99
