"""Configurations as a search keeps them, drawn at random and timed by the estimators."""

import json
import random
from typing import Any

from service.plans.runs import RunCache
from service.plans.space import NOTHING, KeptConfiguration, SearchOutcome, SearchSpace
from service.plans.supplies import build_space
from service.schemas.plans import PlanRequest
from tests.asking import shipped

BATCH = 256
QUESTION: dict[str, Any] = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 4096,
        "global_batch_size": BATCH,
        "total_tokens": 10_000_000_000,
    },
    "goal": "cheapest",
    "search": {"accelerators": ["h100-sxm", "a100-sxm-80gb"], "accelerator_counts": [8, 16, 32]},
}


def question(**members: Any) -> PlanRequest:
    """A question with some members in the place of its own."""
    return PlanRequest.model_validate_json(json.dumps({**QUESTION, **members}))


def space(**members: Any) -> SearchSpace:
    """The space of such a question over the shipped catalog."""
    return build_space(question(**members), shipped())


def outcome(of: SearchSpace, each: int = 4, seed: int = 1) -> SearchOutcome:
    """Configurations of every cluster, with the time and the draw that the estimators give."""
    rng, runs, found = random.Random(seed), RunCache(), []  # noqa: S311
    plain = of._replace(question=of.question.model_copy(update={"assumptions": []}))
    for place, cluster in enumerate(of.clusters):
        accelerator = next(supply.accelerator_id for supply in of.supplies if place in supply.clusters)
        for _ in range(each):
            tensor, pipeline = rng.choice([(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (1, 4)])
            data = cluster.accelerator_count // (tensor * pipeline)
            layout = {"tensor": tensor, "pipeline": pipeline, "data": data, "sharding": "zero_1"}
            size = rng.choice([1, 2])
            kept = KeptConfiguration(
                place,
                layout,
                {
                    "micro_batch_size": size,
                    "gradient_accumulation_steps": BATCH // (size * data),
                    "precision": "bf16",
                    "recomputation": {"strategy": rng.choice(["none", "selective", "full"])},
                },
                seconds=0.0,
            )
            worked = runs.get_run(plain, kept, accelerator)
            productive = worked.run.interruptions.productive or worked.run.duration_seconds
            assert productive is not None
            assert worked.draw is not None
            found.append(kept._replace(seconds=productive.value, watts=worked.draw.watts.value))
    return NOTHING._replace(kept=tuple(found))
