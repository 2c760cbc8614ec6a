"""Plans, as examples."""

import json
from typing import Any, Final

from service.examples.catalog import WRITTEN_AT
from service.plans.fleet import estimate_fleet
from service.questions.fleet_plans import FleetQuestion
from service.snapshot.service import shipped_snapshot

_ID: Final = "a4c1d7e29f3b4860b5d2c8e17f6a9031"
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "create_plan": {
        "model": {"source": "catalog", "id": "llama-3.1-8b"},
        "workload": {
            "kind": "training",
            "sequence_length": 8192,
            "global_batch_size": 128,
            "total_tokens": 10_000_000_000,
        },
        "goal": "cheapest",
        "constraints": {"duration_seconds": 604800, "accelerator_count": 64},
        "search": {"accelerators": ["h100-sxm"], "accelerator_counts": [32, 64]},
    },
}
_FLEET: Final[dict[str, Any]] = {
    "workloads": [
        {
            "name": "summaries",
            "model": {"source": "catalog", "id": "llama-3.1-8b"},
            "workload": {
                "kind": "training",
                "sequence_length": 4096,
                "global_batch_size": 128,
                "total_tokens": 10_000_000_000,
            },
            "finish_by": "2026-12-05T00:00:00Z",
            "training": {"tensor": [1], "pipeline": [1], "shardings": ["zero_3"], "micro_batch_sizes": [1]},
        },
        {
            "name": "chat",
            "model": {"source": "catalog", "id": "llama-3.1-8b"},
            "workload": {
                "kind": "inference",
                "input_tokens": 1000,
                "output_tokens": 300,
                "request_rate_per_second": 2.0,
                "service_levels": {"time_to_first_token_seconds": 1.0},
            },
            "priority": 2,
            "serving": {"tensor": [1]},
        },
    ],
    "owned": [
        {
            "name": "hall",
            "cluster": {
                "accelerator": {"source": "catalog", "id": "h100-sxm"},
                "accelerator_count": 8,
            },
            "site": {
                "pue": 1.2,
                "electricity": {"price_per_kwh": {"amount": "0.12", "currency_code": "USD"}},
            },
        },
    ],
    "starts_at": "2026-12-01T00:00:00Z",
    "ends_at": "2027-01-01T00:00:00Z",
    "budget": {"amount": "1000", "currency_code": "USD"},
}
EXAMPLES["plan_fleet"] = _FLEET
IDS: Final = {"plans": _ID}


def answers() -> dict[str, Any]:
    """A plan whose search is under way."""
    progress = {"pieces": 40, "pieces_done": 12, "candidates": 1_200_000, "candidates_decided": 360_000}
    listed = {
        "id": _ID,
        "state": "running",
        "goal": EXAMPLES["create_plan"]["goal"],
        "created_at": WRITTEN_AT,
        "progress": progress,
    }
    plan = {**listed, "question": EXAMPLES["create_plan"]}
    return {
        "list_plans": {"items": [listed], "next_page_token": None},
        "create_plan": plan,
        "get_plan": plan,
        "plan_fleet": estimate_fleet(
            FleetQuestion.model_validate_json(json.dumps(_FLEET)), shipped_snapshot(1)
        ),
        "cancel_plan": {**listed, "state": "cancelled", "finished_at": WRITTEN_AT},
    }
