"""Plans of the shipped catalog, asked without HTTP and read as a caller reads them."""

import copy
import json
from functools import cache
from unittest.mock import patch

from pydantic import TypeAdapter

from service.estimates.service import answer_question
from service.plans.service import estimate_plan
from service.schemas.plan_answers import PlanResult
from service.schemas.plans import PlanRequest
from tests.asking import shipped, usd

_WRITE = TypeAdapter(PlanResult).serializer.to_json

TRAINING = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 4096,
        "global_batch_size": 64,
        "total_tokens": 2_000_000_000,
    },
    "goal": "cheapest",
    "search": {
        "offers": False,
        "accelerator_counts": [8, 16],
        "training": {
            "tensor": [1, 2],
            "pipeline": [1, 2],
            "shardings": ["zero_1", "zero_3"],
            "pipeline_schedules": ["one_f_one_b"],
            "micro_batch_sizes": [1, 2],
            "recomputations": [{"strategy": "none"}, {"strategy": "selective"}],
        },
    },
    "rented": [
        {
            "name": "dear and fast",
            "provider": "one",
            "region": "north",
            "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
            "rental": {"price_per_device_hour": usd("3")},
        },
        {
            "name": "cheap and slow",
            "provider": "two",
            "region": "south",
            "cluster": {"accelerator": {"source": "catalog", "id": "a100-sxm-80gb"}, "accelerator_count": 16},
            "rental": {"price_per_device_hour": usd("1")},
        },
    ],
    "site": {
        "pue": 1.2,
        "electricity": {"price_per_kwh": usd("0.1")},
        "carbon_intensity_kg_co2e_per_kwh": 0.4,
    },
}
"""A training run on two kinds of devices to rent: the cheap ones take three times as long."""

SERVING = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "inference",
        "input_tokens": 1000,
        "output_tokens": 200,
        "request_rate_per_second": 20.0,
        "service_levels": {"time_to_first_token_seconds": 1.0, "time_per_output_token_seconds": 0.03},
        "horizon": {"duration_seconds": 2_592_000},
    },
    "goal": "cheapest",
    "search": {"offers": False, "serving": {"tensor": [1, 2]}},
    "rented": TRAINING["rented"],
    "site": TRAINING["site"],
}
"""A month of a service on the same devices."""


def with_members(question, changes):
    """A question with some of its members changed, by pointer; None takes one away."""
    changed = copy.deepcopy(question)
    for pointer, value in changes.items():
        *path, last = (int(part) if part.isdigit() else part for part in pointer.strip("/").split("/"))
        at = changed
        for part in path:
            at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
        if value is None:
            del at[last]
        else:
            at[last] = copy.deepcopy(value)
    return changed


@cache
def _planned(body):
    question = PlanRequest.model_validate_json(body)
    # What the choice hangs on takes most of the time, and is looked at elsewhere.
    with patch("service.plans.answer.list_sensitivities", return_value=[]):
        return _WRITE(answer_question(estimate_plan, question, shipped()))


def planned(question, **changes):
    """The answer to a question, without its sensitivities."""
    return json.loads(_planned(json.dumps(with_members(question, changes))))
