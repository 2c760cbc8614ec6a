"""What a step loses beside operators and links: how far communication hides, what the host adds.

Constants of a named framework are habits of software: which collectives it issues behind which work, and
how fast its host program launches kernels. Those of any framework are what is known where it is not named.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare, find_nearest_share, get_or_build
from service.planning.software.frameworks import Framework


class StepQuantity(StrEnum):
    """The constants of a training step."""

    GRADIENT_OVERLAP = "gradient_overlap"
    """Share of the exchange of gradients that is issued while the last backward pass runs."""
    GATHER_OVERLAP = "gather_overlap"
    """Share of gathering and spreading sharded weights that is issued while blocks compute."""
    TENSOR_OVERLAP = "tensor_overlap"
    """Share of tensor-parallel collectives that runs behind the multiplications beside them."""
    CONTEXT_OVERLAP = "context_overlap"
    """Share of passing keys and values on that runs behind attention."""
    EXPERT_OVERLAP = "expert_overlap"
    """Share of sending tokens to experts and back that runs behind other work."""
    PIPELINE_OVERLAP = "pipeline_overlap"
    """Share of sending activations to the next stage that runs behind other micro-batches."""
    CONTENTION = "contention"
    """Seconds that work loses for each second of communication behind it: they share the memory and the
    multiprocessors."""
    ATTENTION_SHARE = "attention_share"
    """Rate of the framework's fused attention kernel over that of the generation's measured one."""
    LOST_SHARE = "lost_share"
    """Seconds between kernels and of kernels that are no operator, over the seconds of operators."""
    ROUTING_SHARE = "routing_share"
    """Seconds in which a block with experts sorts and permutes its tokens and waits for their counts, over
    the seconds of its operators."""
    LAUNCH_SECONDS = "launch_seconds"
    """Time in which the host program launches one kernel: it waits where kernels are shorter."""
    STEP_SECONDS = "step_seconds"
    """What a step adds once whatever the batch: the optimizer's loop, the norm of gradients, logging."""
    EXPERT_IMBALANCE = "expert_imbalance"
    """Tokens of the device with most over the mean of all, where experts are spread over devices."""
    STRAGGLERS = "stragglers"
    """Share of a step that is lost for each doubling of the nodes: all wait for the slowest."""
    HOST_MEMORY = "host_memory"
    """Share of the bandwidth of the host's memory that an optimizer on its processors reaches."""


class StepRates(NamedTuple):
    """The constants of one framework as numbers."""

    gradient_overlap: float
    gather_overlap: float
    tensor_overlap: float
    context_overlap: float
    expert_overlap: float
    pipeline_overlap: float
    contention: float
    attention_share: float
    lost_share: float
    routing_share: float
    launch_seconds: float
    step_seconds: float
    expert_imbalance: float
    stragglers: float
    host_memory: float


StepKey = tuple[StepQuantity, Framework | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCalibration:
    """Constants by quantity and framework; None stands for any of them."""

    constants: Mapping[StepKey, AchievedShare]
    _known: dict[Framework, StepRates] = field(default_factory=dict, repr=False, compare=False)

    def find_share(self, quantity: StepQuantity, framework: Framework) -> AchievedShare:
        """The constant of the framework, else that of any."""
        return find_nearest_share(self.constants, ((quantity, framework), (quantity, None)), quantity)

    def get_rates(self, framework: Framework) -> StepRates:
        """The constants of a framework."""
        return get_or_build(
            self._known,
            framework,
            lambda: StepRates(
                **{each.value: self.find_share(each, framework).value for each in StepQuantity}
            ),
        )

    def drop_software(self) -> "StepCalibration":
        """The set without the constants of named frameworks."""
        pooled = {key: share for key, share in self.constants.items() if key[1] is None}
        return replace(self, constants=pooled, _known={})
