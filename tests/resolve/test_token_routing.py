"""Routing of tokens to experts that a training question states."""

import pytest

from tests.asking import ask, codes, question, refusal, shipped

_RUN = {
    "kind": "training",
    "sequence_length": 8192,
    "micro_batch_size": 1,
    "global_batch_size": 1024,
    "total_steps": 1,
    "framework": {"name": "megatron_core"},
    "recomputation": {"strategy": "none"},
}
# The recipe of DGXC benchmarking (grok1_314b.yaml) on 512 H100: its experts have the capacity of their mean.
_LAYOUT = {
    "tensor": 4,
    "pipeline": 8,
    "context": 2,
    "expert": 8,
    "virtual_stages": 8,
    "pipeline_schedule": "interleaved",
    "sequence_parallel": True,
    "sharding": "zero_1",
}


def _train(operation="throughput", model="grok-1", **members):
    asked = question(model, "h100-sxm", 512, **_RUN, **members) | {"parallelism": _LAYOUT}
    return ask(shipped(), operation, asked)


def test_grok_takes_its_published_step_with_the_capacity_of_its_recipe():
    """20.83 s a step of 1,024 sequences is what NVIDIA publishes for this recipe (NeMo 24.09)."""
    stated, open_ = _train(expert_capacity_factor=1.0), _train()
    assert stated["step_seconds"]["value"] == pytest.approx(20.83, rel=0.12)
    assert open_["step_seconds"]["value"] > 1.2 * stated["step_seconds"]["value"]


def test_dropped_and_padded_tokens_leave_the_flops_of_the_model():
    flops = [
        found["model_flops_utilization"]["value"] * found["step_seconds"]["value"]
        for found in (_train(), _train(expert_capacity_factor=1.5))
    ]
    assert flops[1] == pytest.approx(flops[0])


def test_padding_takes_memory():
    held = [
        _train("memory", expert_capacity_factor=factor)["per_device"]["total_bytes"]["value"]
        for factor in (1.0, 1.5)
    ]
    assert held[1] > 1.1 * held[0]


def test_a_forced_balance_is_faster_and_holds_the_same_memory():
    forced, trained = (
        {name: _train(name, expert_balance=balance) for name in ("throughput", "memory")}
        for balance in ("forced", "trained")
    )
    assert forced["throughput"]["step_seconds"]["value"] < trained["throughput"]["step_seconds"]["value"]
    assert forced["memory"]["per_device"] == trained["memory"]["per_device"]


def test_a_model_without_experts_warns():
    asked = question("llama-2-7b", "h100-sxm", 8, **_RUN, expert_capacity_factor=1.0, expert_balance="forced")
    notes = ask(shipped(), "throughput", asked)["warnings"]
    pointers = {note["pointer"] for note in notes if note["code"] == "NOT_USED"}
    assert pointers == {"/workload/expert_capacity_factor", "/workload/expert_balance"}
    assert "NOT_USED" not in codes(
        ask(shipped(), "throughput", question("llama-2-7b", "h100-sxm", 8, **_RUN))["warnings"]
    )


def test_no_expert_takes_more_than_every_token():
    asked = question("grok-1", "h100-sxm", 512, **_RUN, expert_capacity_factor=4.5)
    assert refusal(shipped(), "throughput", asked)[:2] == (
        "EXPERT_CAPACITY",
        "/workload/expert_capacity_factor",
    )
