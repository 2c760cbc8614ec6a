"""Examples of plans."""

import json
from typing import Any, Final

from service.app.examples.catalog import WRITTEN_AT
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.security.principals import DEFAULT_TENANT
from service.plans import stored
from service.plans.fleet import estimate_fleet
from service.plans.service import prepare_plan
from service.plans.tables import CONFIGURATION, FLEET
from service.schemas.fleet_plans import FleetPlanRequest
from service.schemas.plans import PlanRequest

_ID: Final = "a4c1d7e29f3b4860b5d2c8e17f6a9031"
# Terms of its own: those of the catalog's offers end some day, and the answer would be another one.
_TERMS: Final = {
    "name": "cloud",
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64},
    "rental": {"price_per_device_hour": {"amount": "2.49", "currency_code": "USD"}},
}
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
        "constraints": {"duration_seconds": 604_800.0},
        "rented": [_TERMS],
        "search": {"offers": False, "accelerator_counts": [32, 64], "rows": 2},
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


def build_answers() -> dict[str, Any]:
    """Returns the answers of a plan that is answered at once, of one in the background, and of a fleet."""
    asked = EXAMPLES["create_plan"]
    question = PlanRequest.model_validate_json(json.dumps(asked))
    catalog = build_shipped_snapshot(1)
    prepared = prepare_plan(question, catalog)
    fleet = FleetPlanRequest.model_validate_json(json.dumps(_FLEET))
    made = {"id": _ID, "created_at": WRITTEN_AT}
    done = stored.to_detail(stored.build_draft(DEFAULT_TENANT, prepared)) | made | {"finished_at": WRITTEN_AT}
    progress = {"pieces": 34, "pieces_done": 12, "candidates": 850_476, "candidates_decided": 291_816}
    begun = {**made, "state": "running", "kind": CONFIGURATION, "goal": asked["goal"], "progress": progress}
    pieces = {"pieces": 2, "pieces_done": 0, "candidates": 6, "candidates_decided": 0}
    begun_fleet = {**begun, "kind": FLEET, "fleet_question": _FLEET, "progress": pieces}
    listed = {name: value for name, value in done.items() if name not in ("question", "answer")}
    cancelled = {**listed, "state": "cancelled", "progress": progress}
    del cancelled["best_cost"]
    return {
        "list_plans": {"items": [listed], "next_page_token": None},
        "create_plan": done,
        "create_plan 202": {**begun, "question": asked},
        "get_plan": done,
        "cancel_plan": cancelled,
        "plan_fleet": estimate_fleet(fleet, catalog),
        "plan_fleet 202": begun_fleet,
    }
