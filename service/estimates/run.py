"""The run behind throughput, cost and utility bill: rates of the whole cluster, and how long it lasts."""

from typing import NamedTuple

from service.estimates.data_pipeline import DataTime
from service.estimates.passes import Passing
from service.estimates.reliability import Interruptions
from service.estimates.serving import Serving
from service.planning.hardware.cluster import Cluster
from service.planning.inference import ServingTime
from service.planning.quantity import Quantity
from service.planning.training import (
    Known,
    ModelledTime,
    TrainingTime,
)
from service.planning.training.rollout import Generation
from service.planning.units import GIGABYTE_BYTES
from service.planning.workload import (
    TrainingWorkload,
)
from service.resolve import Resolved
from service.schemas.notes import Notes


class Run(NamedTuple):
    """A resolved question with its rates; ``training`` or ``serving`` is set, or neither is known."""

    resolved: Resolved
    cluster: Cluster
    notes: Notes
    peak_flops_per_second: float
    training: TrainingTime | ModelledTime | None = None
    serving: Serving | ServingTime | None = None
    passing: Passing | None = None
    duration_seconds: Quantity | None = None
    tokens: Quantity | None = None
    """Tokens trained on, or generated, over the whole run."""
    requests: Quantity | None = None
    """Requests that a service answers over the whole run."""
    total_flops: float | None = None
    working: TrainingTime | ModelledTime | None = None
    """``training`` without waiting for data."""
    data: DataTime | None = None
    """What the devices wait for data; ``training`` counts it."""
    known: Known | None = None
    """What the step of ``training`` shares with changed ones."""
    generated: Generation | None = None
    """A rollout of a policy; ``training`` counts a step's share of it."""
    interruptions: Interruptions = Interruptions()
    """Checkpoints and failures; ``duration_seconds`` counts them."""


def tokens_of_sample(resolved: Resolved) -> float | None:
    """Tokens of what a rate counts: 1, or those of a sample; None for a model that takes no tokens."""
    profile = resolved.model.profile
    if profile.sampled is None or profile.sample is None:
        return 1.0
    takes = any(item.kind == "tokens" for item in profile.sampled.inputs)
    return float(profile.sample.tokens or 0) or None if takes else None


def step_tokens(resolved: Resolved, workload: TrainingWorkload) -> float:
    """Tokens of one optimizer step over all replicas."""
    samples = workload.micro_batch_size * workload.micro_batches * resolved.layout.data
    return float(samples * workload.sample_tokens)


def unmodelled(kinds: frozenset[str]) -> tuple[str, str]:
    """Why a model with layers of ``kinds`` has no rate: code and detail of a gap."""
    names = ", ".join(sorted(kinds))
    return "LAYER_KIND_NOT_MODELLED", f"the work of layers of kind {names} is not modelled"


def warn_too_large(notes: Notes, total: float, usable: float) -> None:
    """The rates are answered, of devices that hold it."""
    notes.warn(
        "DOES_NOT_FIT",
        "/cluster",
        f"a device needs {total / GIGABYTE_BYTES:.1f} GB and may use {usable / GIGABYTE_BYTES:.1f} GB; "
        "the rates are those of devices with enough memory",
    )
