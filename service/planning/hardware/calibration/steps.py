"""Constants of training steps beside operators and links: overlap of communication, and host overhead.

Constants of a named framework are properties of its software: the collectives that it overlaps with work, and
the speed at which its host program launches kernels. Constants of any framework apply where none is named.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare, find_nearest_share, get_or_build
from service.planning.software.frameworks import Framework


class StepQuantity(StrEnum):
    """Constants of a training step."""

    GRADIENT_OVERLAP = "gradient_overlap"
    """Share of the exchange of gradients that is issued while the last backward pass runs."""
    GATHER_OVERLAP = "gather_overlap"
    """Share of gathering and scattering sharded weights that is issued while blocks compute."""
    TENSOR_OVERLAP = "tensor_overlap"
    """Share of tensor-parallel collectives that overlaps with multiplications."""
    CONTEXT_OVERLAP = "context_overlap"
    """Share of passing on keys and values that overlaps with attention."""
    EXPERT_OVERLAP = "expert_overlap"
    """Share of sending tokens to experts and back that overlaps with other work."""
    PIPELINE_OVERLAP = "pipeline_overlap"
    """Share of sending activations to the next stage that overlaps with other micro-batches."""
    CONTENTION = "contention"
    """Seconds that work loses for each second of overlapped communication: they share the memory and the

    multiprocessors.
    """
    ATTENTION_SHARE = "attention_share"
    """Rate of the framework's fused attention kernel over that of the generation's measured one."""
    LOST_SHARE = "lost_share"
    """Seconds between kernels and of kernels that are no operator, over the seconds of operators."""
    ROUTING_COPIES = "routing_copies"
    """Passes of the chosen copies of tokens through memory, in one direction of a block with experts, beside
    those of its operators: sorting, permuting and un-permuting."""
    ROUTING_SECONDS = "routing_seconds"
    """Seconds in which one direction of a block with experts waits for the counts of its tokens."""
    LAUNCH_SECONDS = "launch_seconds"
    """Seconds in which the host program launches one kernel; the device waits where kernels are shorter."""
    EAGER_LAUNCH_SECONDS = "eager_launch_seconds"
    """The same where eager PyTorch runs each operator by itself, with the Python of its modules between."""
    STEP_SECONDS = "step_seconds"
    """Seconds that a step adds once whatever the batch.

    The optimizer's loop, the norm of gradients, logging.
    """
    EXPERT_IMBALANCE = "expert_imbalance"
    """Tokens of the busiest device over the mean of all, where experts are spread over devices."""
    STRAGGLERS = "stragglers"
    """Share of a step that is lost for each doubling of the nodes, as all wait for the slowest."""
    HOST_MEMORY = "host_memory"
    """Share of the host memory's bandwidth that an optimizer on the host's processors reaches."""


class StepRates(NamedTuple):
    """Constants of one framework as numbers."""

    gradient_overlap: float
    gather_overlap: float
    tensor_overlap: float
    context_overlap: float
    expert_overlap: float
    pipeline_overlap: float
    contention: float
    attention_share: float
    lost_share: float
    routing_copies: float
    routing_seconds: float
    launch_seconds: float
    eager_launch_seconds: float
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
        """Returns the constant of the framework, else that of any."""
        return find_nearest_share(self.constants, ((quantity, framework), (quantity, None)), quantity)

    def get_rates(self, framework: Framework) -> StepRates:
        """Returns the constants of a framework."""
        return get_or_build(
            self._known,
            framework,
            lambda: StepRates(
                **{each.value: self.find_share(each, framework).value for each in StepQuantity}
            ),
        )

    def drop_software(self) -> "StepCalibration":
        """Returns the set without the constants of named frameworks."""
        pooled = {key: share for key, share in self.constants.items() if key[1] is None}
        return replace(self, constants=pooled, _known={})
