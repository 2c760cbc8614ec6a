"""Spaces of training runs for tests, over devices that are rented at a price."""

import json

from service.plans.supplies import build_space
from service.schemas.plans import PlanRequest
from tests.asking import shipped, usd

WORK = {
    "kind": "training",
    "sequence_length": 4096,
    "global_batch_size": 64,
    "total_tokens": 10_000_000_000,
}


def rented(accelerator, count, **cluster):
    """Devices of the catalog at 2 USD an hour."""
    reference = {"source": "catalog", "id": accelerator}
    return {
        "name": f"{accelerator}-{count}",
        "cluster": {"accelerator": reference, "accelerator_count": count, **cluster},
        "rental": {"price_per_device_hour": usd("2")},
    }


def space(
    *devices,
    model="llama-3.1-8b",
    catalog=None,
    counts=None,
    goal="cheapest",
    work=(),
    replaced=False,
    most=None,
    **training,
):
    """The space of a question; ``training`` is what is varied."""
    search = {"offers": False, "training": training}
    if counts:
        search["accelerator_counts"] = counts
    if "depth" in training:
        search["depth"] = training.pop("depth")
    reference = {"source": "catalog", "id": model} if isinstance(model, str) else model
    question = {
        "model": reference,
        "workload": dict(work) if replaced else WORK | dict(work),
        "goal": goal,
        "search": search,
        "rented": [rented(*each) if isinstance(each, tuple) else each for each in devices],
    }
    if most:
        question["most_candidates"] = most
    asked = PlanRequest.model_validate_json(json.dumps(question))
    return build_space(asked, catalog or shipped())
