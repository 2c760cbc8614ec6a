"""Cases that cannot fit: the weights alone exceed the device. No interval may leave that open."""

import json

import pytest

from service.estimates.service import ESTIMATES
from service.evidence.snapshot import build_shipped_snapshot
from service.schemas.estimates import MemoryEstimateRequest

CATALOG = build_shipped_snapshot()
ESTIMATE = ESTIMATES["memory"].estimator

SERVED = [
    ("llama-2-70b", "bf16", "h100-sxm"),
    ("llama-2-70b", "bf16", "a100-sxm-40gb"),
    ("llama-3.1-70b", "bf16", "l40s"),
    ("qwen3-32b", "bf16", "rtx-4090"),
    ("llama-3.1-8b", "fp32", "rtx-4090"),
    ("llama-3.1-405b", "fp8", "h200-sxm"),
    ("mixtral-8x7b", "bf16", "a100-sxm-80gb"),
]
TRAINED = [("llama-2-7b", "a100-sxm-80gb"), ("llama-2-13b", "b200-sxm"), ("qwen3-8b", "h100-sxm")]


def answered(model, device, workload):
    question = {
        "model": {"source": "catalog", "id": model},
        "cluster": {"accelerator": {"source": "catalog", "id": device}},
        "workload": workload,
    }
    return ESTIMATE(MemoryEstimateRequest.model_validate_json(json.dumps(question)), CATALOG)


@pytest.mark.parametrize(("model", "weights", "device"), SERVED)
def test_what_is_larger_than_the_device_is_not_served(model, weights, device):
    answer = answered(model, device, {"kind": "inference", "weight_precision": weights})
    held = next(part["bytes"] for part in answer["per_device"]["components"] if part["name"] == "weights")
    assert held > answer["capacity_bytes"]
    assert answer["fits"] is False
    assert answer["fit_probability"] < 0.1


@pytest.mark.parametrize(("model", "device"), TRAINED)
def test_sixteen_bytes_a_parameter_beyond_the_device_are_not_trained(model, device):
    answer = answered(model, device, {"kind": "training", "precision": "bf16"})
    assert 16 * answer["parameter_count"] > answer["capacity_bytes"]
    assert answer["fits"] is False
    assert answer["fit_probability"] < 0.1
