"""Questions of a training run on other numbers of accelerators."""

from typing import Any

from pydantic import MISSING

from service.planning.estimates.scaling import RunVariant
from service.planning.parallelism import Parallelism
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.references import ParallelismInput


def vary_question(question: ThroughputEstimateRequest, variant: RunVariant) -> ThroughputEstimateRequest:
    """Returns the question of a variant of a run, without its scaling."""
    workload: dict[str, Any] = {
        "gradient_accumulation_steps": MISSING,
        "global_batch_size": variant.global_batch_size,
    }
    if variant.micro_batch_size is not None:
        workload["micro_batch_size"] = variant.micro_batch_size
    if not variant.has_interruptions:
        workload |= {"checkpointing": MISSING, "reliability": MISSING}
    count = variant.accelerator_count
    return question.model_copy(
        update={
            "cluster": question.cluster.model_copy(update={"accelerator_count": count}),
            "workload": question.workload.model_copy(update=workload),
            "parallelism": MISSING if variant.layout is None else _to_parallelism_input(variant.layout),
            "scaling": MISSING,
        }
    )


def _to_parallelism_input(layout: Parallelism) -> ParallelismInput:
    known = {name: value for name, value in layout._asdict().items() if value is not None}
    return ParallelismInput(**{name: known[name] for name in ParallelismInput.model_fields if name in known})
