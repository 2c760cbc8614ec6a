"""Measures a search of training runs in process, on one core: candidates decided and scored a second.

``python -m bench.plans``. All candidates differ in layout or device: micro-batch and recomputation are one.
Times are of the processor, so that a busy machine does not count.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from service.evidence.snapshot import build_shipped_snapshot
from service.plans.search import merge_outcomes, search_space, split_search
from service.plans.space import SearchOutcome, SearchSpace
from service.plans.supplies import build_space
from service.schemas.plans import PlanRequest

ACCELERATORS = ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "mi300x")
COUNTS = (32, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1536)
RATE = {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}}


def _space(model: str, goal: str) -> SearchSpace:
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
    return build_space(PlanRequest.model_validate_json(json.dumps(question)), build_shipped_snapshot())


class SearchCost(NamedTuple):
    """Outcome of a space, and the processor time of its pieces and of merging them."""

    outcome: SearchOutcome
    pieces: list[float]
    merging: float

    @property
    def seconds(self) -> float:
        """Rates of the whole search."""
        return sum(self.pieces) + self.merging


def searched(model: str, goal: str) -> SearchCost:
    """A space, searched piece by piece."""
    space = _space(model, goal)
    outcomes, taken = [], []
    for piece in split_search(space):
        began = time.process_time()
        outcomes.append(search_space(space, piece))
        taken.append(time.process_time() - began)
    began = time.process_time()
    whole = merge_outcomes(outcomes, space.question.search.depth)
    return SearchCost(whole, taken, time.process_time() - began)


def report() -> Iterator[str]:
    """The section of the page, line by line."""
    yield "## Plans of training runs\n"
    yield (
        "`python -m bench.plans`. Mixtral-8x22B on five kinds of devices, 13 numbers of each: all\n"
        "candidates differ in layout or device, micro-batch and recomputation are one. Processor time in\n"
        "one process on one core, from the space to what is kept of it.\n"
    )
    yield "| | target | cheapest: time alone counts | pareto: power too |\n|---|---:|---:|---:|"
    cheapest, pareto = (searched("mixtral-8x22b", goal) for goal in ("cheapest", "pareto"))
    lines: dict[str, tuple[str, Callable[[SearchCost], str]]] = {
        "candidates": ("1,000,000", lambda one: f"{one.outcome.considered:,}"),
        "decided in": ("20 s", lambda one: f"{one.seconds:.1f} s"),
        "scored for memory and time": ("200,000", lambda one: f"{one.outcome.scored:,}"),
        "ruled out": ("", lambda one: f"{sum(one.outcome.ruled_out.values()):,}"),
        "proven not to matter": ("", lambda one: f"{sum(one.outcome.pruned.values()):,}"),
        "kept": ("", lambda one: f"{len(one.outcome.kept):,}"),
        "pieces": ("", lambda one: f"{len(one.pieces)}"),
        "longest piece": ("", lambda one: f"{max(one.pieces):.2f} s"),
    }
    for name, (target, of) in lines.items():
        yield f"| {name} | {target} | {of(cheapest)} | {of(pareto)} |"


if __name__ == "__main__":
    print("\n".join(report()))
