"""Run of a case: rates of the whole cluster, and its duration."""

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
    """A model in training; without ``time`` its rate is not known, and ``notes`` give the reason."""

    case: TrainingCase
    notes: AnswerNotes
    peak_flops_per_second: float
    time: TrainingTime | ModelledTime | None = None
    duration_seconds: Quantity | None = None
    """Duration with checkpoints and failures."""
    tokens: Quantity | None = None
    """Tokens trained on over the whole run."""
    total_flops: float | None = None
    working_time: TrainingTime | ModelledTime | None = None
    """``time`` without waiting for data; None where the run does not wait."""
    data: DataPipelineTime | None = None
    """Time that the devices wait for data; ``time`` includes it."""
    known: StepContext | None = None
    """Part of the step of ``time`` that changed steps share with it."""
    generated: RolloutGeneration | None = None
    """A rollout of a policy; ``time`` includes a step's share of it."""
    interruptions: RunInterruptions = RunInterruptions()
    """Checkpoints and failures; ``duration_seconds`` includes them."""

    @property
    def computing(self) -> TrainingTime | ModelledTime | None:
        """Time without waiting for data."""
        return self.working_time or self.time

    @property
    def tokens_of_sample(self) -> float | None:
        """Tokens of the unit that a rate counts: 1, or those of a sample; None for a model without tokens."""
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
    """Tokens generated over the whole run."""
    requests: Quantity | None = None
    """Requests answered over the whole run."""


class ForwardPassRun(NamedTuple):
    """A model whose requests are forward passes; ``passing`` is None where its rate is not known."""

    case: ForwardPassCase
    notes: AnswerNotes
    peak_flops_per_second: float
    passing: PassServing | None = None
    duration_seconds: Quantity | None = None
    tokens: Quantity | None = None
    requests: Quantity | None = None
    """Requests answered over the whole run."""


Run = TrainingRun | ServingRun | ForwardPassRun


def describe_unmodelled(kinds: frozenset[str]) -> tuple[str, str]:
    """Returns code and detail of the gap that replaces the rate of a model with layers of ``kinds``."""
    names = ", ".join(sorted(kinds))
    return "LAYER_KIND_NOT_MODELLED", f"the work of layers of kind {names} is not modelled"


def warn_too_large(notes: AnswerNotes, total: float, usable: float) -> None:
    """Warns that a device does not hold the case; the rates assume devices that do."""
    notes.warn(
        "DOES_NOT_FIT",
        "/cluster",
        f"a device needs {total / GIGABYTE_BYTES:.1f} GB and may use {usable / GIGABYTE_BYTES:.1f} GB; "
        "the rates assume devices with enough memory",
    )
