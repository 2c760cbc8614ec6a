"""The run of a case: rates of the whole cluster, and how long it lasts."""

from typing import NamedTuple

from service.planning.cases import ForwardPassCase, ServingCase, TrainingCase
from service.planning.estimates.data_pipeline import DataPipelineTime
from service.planning.estimates.passes import PassServing
from service.planning.estimates.reliability import RunInterruptions
from service.planning.estimates.serving import ServingEstimate
from service.planning.inference import ServingTime
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity
from service.planning.training import ModelledTime, StepContext, TrainingTime
from service.planning.training.rollout import RolloutGeneration
from service.planning.units import GIGABYTE_BYTES


class TrainingRun(NamedTuple):
    """A model in training; without ``time`` its rate is not known, and ``notes`` say why."""

    case: TrainingCase
    notes: AnswerNotes
    peak_flops_per_second: float
    time: TrainingTime | ModelledTime | None = None
    duration_seconds: Quantity | None = None
    """With checkpoints and failures."""
    tokens: Quantity | None = None
    """Trained on over the whole run."""
    total_flops: float | None = None
    working_time: TrainingTime | ModelledTime | None = None
    """``time`` without waiting for data; None where nothing is waited for."""
    data: DataPipelineTime | None = None
    """What the devices wait for data; ``time`` counts it."""
    known: StepContext | None = None
    """What the step of ``time`` shares with changed ones."""
    generated: RolloutGeneration | None = None
    """A rollout of a policy; ``time`` counts a step's share of it."""
    interruptions: RunInterruptions = RunInterruptions()
    """Checkpoints and failures; ``duration_seconds`` counts them."""

    @property
    def computing(self) -> TrainingTime | ModelledTime | None:
        """The time without waiting for data."""
        return self.working_time or self.time

    @property
    def tokens_of_sample(self) -> float | None:
        """Tokens of what a rate counts: 1, or those of a sample; None for a model that takes no tokens."""
        profile = self.case.profile
        if profile.sampled is None or profile.sample is None:
            return 1.0
        takes = any(item.kind == "tokens" for item in profile.sampled.inputs)
        return float(profile.sample.tokens or 0) or None if takes else None


class ServingRun(NamedTuple):
    """A model that generates tokens; ``serving`` is None where its rate is not known."""

    case: ServingCase
    notes: AnswerNotes
    peak_flops_per_second: float
    serving: ServingEstimate | ServingTime | None = None
    duration_seconds: Quantity | None = None
    tokens: Quantity | None = None
    """Generated over the whole run."""
    requests: Quantity | None = None
    """Answered over the whole run."""


class ForwardPassRun(NamedTuple):
    """A model whose requests are forward passes; ``passing`` is None where its rate is not known."""

    case: ForwardPassCase
    notes: AnswerNotes
    peak_flops_per_second: float
    passing: PassServing | None = None
    duration_seconds: Quantity | None = None
    tokens: Quantity | None = None
    requests: Quantity | None = None
    """Answered over the whole run."""


Run = TrainingRun | ServingRun | ForwardPassRun


def describe_unmodelled(kinds: frozenset[str]) -> tuple[str, str]:
    """Code and detail of the gap that a model with layers of ``kinds`` has in place of a rate."""
    names = ", ".join(sorted(kinds))
    return "LAYER_KIND_NOT_MODELLED", f"the work of layers of kind {names} is not modelled"


def warn_too_large(notes: AnswerNotes, total: float, usable: float) -> None:
    """The rates are answered, of devices that hold it."""
    notes.warn(
        "DOES_NOT_FIT",
        "/cluster",
        f"a device needs {total / GIGABYTE_BYTES:.1f} GB and may use {usable / GIGABYTE_BYTES:.1f} GB; "
        "the rates are those of devices with enough memory",
    )
