"""Measures a search of training runs in process, on one core: candidates decided and scored a second.

``python -m bench.plans``. All candidates differ in layout or device: micro-batch and recomputation are one.
Times are of the processor, so that a busy machine does not count.
"""

import json
import time
from typing import Any

from service.plans.search import merged, pieces, search
from service.plans.space import Outcome, Space
from service.plans.supplies import space_of
from service.questions.plans import PlanQuestion
from service.snapshot.service import shipped_snapshot

ACCELERATORS = ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "mi300x")
COUNTS = (32, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1536)
RATE = {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}}


def _space(model: str, goal: str) -> Space:
    rented = [
        {
            "name": accelerator,
            "cluster": {
                "accelerator": {"source": "catalog", "id": accelerator},
                "accelerator_count": max(COUNTS),
            },
            "rental": RATE,
        }
        for accelerator in ACCELERATORS
    ]
    varied: dict[str, Any] = {
        "context": [1, 2, 4],
        "shardings": ["none", "zero_1", "zero_2", "zero_3"],
        "pipeline_schedules": ["gpipe", "one_f_one_b", "interleaved", "zero_bubble"],
        "virtual_stages": [2, 4, 5, 8],
        "sequence_parallel": [True, False],
        "micro_batch_sizes": [1],
        "recomputations": [{"strategy": "selective"}],
    }
    question = {
        "model": {"source": "catalog", "id": model},
        "workload": {
            "kind": "training",
            "sequence_length": 8192,
            "global_batch_size": 3072,
            "total_tokens": 1_000_000_000_000,
        },
        "goal": goal,
        "search": {"offers": False, "accelerator_counts": COUNTS, "training": varied},
        "rented": rented,
    }
    return space_of(PlanQuestion.model_validate_json(json.dumps(question)), shipped_snapshot())


def _told(outcome: Outcome, seconds: float) -> str:
    decided = (
        f"{outcome.considered:,} decided in {seconds:.1f} s ({outcome.considered / seconds:,.0f} a second)"
    )
    ruled_out, pruned = sum(outcome.ruled_out.values()), sum(outcome.pruned.values())
    rest = f"{ruled_out:,} ruled out, {pruned:,} pruned, {len(outcome.kept):,} kept"
    return f"{decided}; {outcome.scored:,} scored for memory and time; {rest}"


def measure(model: str, goal: str) -> None:
    """Print what became of the candidates of a space, and how long its pieces take."""
    space = _space(model, goal)
    parts = pieces(space)
    outcomes, taken = [], []
    for piece in parts:
        began = time.process_time()
        outcomes.append(search(space, piece))
        taken.append(time.process_time() - began)
    began = time.process_time()
    whole = merged(outcomes, space.question.search.depth)
    seconds = sum(taken) + time.process_time() - began
    print(f"{model}, {goal}: {_told(whole, seconds)}")
    print(f"  {len(parts)} pieces of {min(taken):.2f} to {max(taken):.2f} s")


if __name__ == "__main__":
    for asked in ("cheapest", "pareto"):
        measure("mixtral-8x22b", asked)
