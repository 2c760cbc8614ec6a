"""Plans, as examples."""

from typing import Any, Final

from service.examples.catalog import WRITTEN_AT

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
        "cancel_plan": {**listed, "state": "cancelled", "finished_at": WRITTEN_AT},
    }
