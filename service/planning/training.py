"""Time of training by the Iron Law: T = O / (R_peak x utilization x devices).

O counts every operation that is executed, recomputation included; R_peak is the dense rate of the
compute format; utilization is the achieved share of it. Model FLOPs utilization leaves recomputation
out (Chowdhery et al. 2022, appendix B), hardware FLOPs utilization counts it.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from service.planning.curves import Efficiency
from service.planning.memory import StateBytes
from service.planning.operators import Bound, StepFlops, forward_flops_per_token, step_flops
from service.planning.profile import Profile
from service.planning.quantity import Quantity, combine, inverted, scaled
from service.planning.workload import Recomputation, TrainingWorkload


def iron_law_seconds(
    operations: float, *, peak_flops_per_second: float, utilization: float, devices: float = 1.0
) -> float:
    """Seconds that ``operations`` FLOPs take on ``devices`` devices."""
    return operations / (peak_flops_per_second * utilization * devices)


def utilization_of(flops_per_second: float, *, peak_flops_per_second: float, devices: float = 1.0) -> float:
    """Achieved share of the peak rate: the Iron Law solved for utilization."""
    return flops_per_second / (peak_flops_per_second * devices)


def flops_per_token(profile: Profile, workload: TrainingWorkload) -> StepFlops:
    """Training FLOPs of one token by phase, counted from the operators of the model."""
    forward = forward_flops_per_token(profile, workload.sequence_length, workload.kernel)
    recomputed = 0.0
    if workload.recomputation is Recomputation.FULL:
        # The head is outside the recomputed blocks.
        recomputed = forward - profile.head_flops_per_token
    return step_flops(forward, recomputed=recomputed)


def weight_traffic_bytes(state: StateBytes, micro_batches: int) -> float:
    """Least bytes that a device moves in a step for its training state.

    Each micro-batch reads the weights forward and backward and adds to the gradients; the optimizer
    reads gradients and reads and writes master weights, states and weights once.
    """
    per_micro_batch = 2.0 * state.weights + 2.0 * state.gradients
    update = state.gradients + 2.0 * (state.master_weights + state.optimizer_states + state.weights)
    return micro_batches * per_micro_batch + update


class Phase(NamedTuple):
    """A part of a step or of a request, and the limit that sets its time."""

    name: str
    seconds: Quantity
    bound: Bound


class TrainingTime(NamedTuple):
    """Rates of a training run on the whole cluster."""

    flops: StepFlops
    seconds_per_token: Quantity
    model_flops_utilization: Quantity
    hardware_flops_utilization: Quantity
    bound: Bound

    def phases(self, tokens: float) -> Iterator[Phase]:
        """Forward, backward and recomputation of a step, in proportion to their FLOPs."""
        parts = {
            "forward": self.flops.forward,
            "backward": self.flops.backward,
            "recomputation": self.flops.recomputation,
        }
        for name, flops in parts.items():
            if flops:
                seconds = scaled(self.seconds_per_token, flops / self.flops.hardware * tokens)
                yield Phase(name, seconds, self.bound)


def training_time(
    flops: StepFlops,
    *,
    peak_flops_per_second: float,
    devices: int,
    efficiency: Efficiency,
    memory_seconds_per_token: float = 0.0,
) -> TrainingTime:
    """Seconds per token of the whole cluster and the utilizations that they amount to.

    ``memory_seconds_per_token`` is what moving the training state takes at full bandwidth; a step
    is no faster than that at the achieved share of the bandwidth.
    """

    def compute(utilization: float) -> float:
        return iron_law_seconds(
            flops.hardware,
            peak_flops_per_second=peak_flops_per_second,
            utilization=utilization,
            devices=devices,
        )

    seconds = combine(compute, inverted(efficiency.utilization))
    bound = Bound.COMPUTE
    if memory_seconds_per_token / efficiency.bandwidth_utilization.value > seconds.value:
        moving = inverted(efficiency.bandwidth_utilization)
        seconds = combine(lambda share: memory_seconds_per_token / share, moving)
        bound = Bound.MEMORY

    def utilization(flops_of_token: float) -> Quantity:
        return combine(
            lambda per_token: utilization_of(
                flops_of_token / per_token,
                peak_flops_per_second=peak_flops_per_second,
                devices=devices,
            ),
            seconds,
        )

    hardware = utilization(flops.hardware)
    model = hardware if not flops.recomputation else utilization(flops.model)
    return TrainingTime(flops, seconds, model, hardware, bound)


class Technique(StrEnum):
    """Changes that move a term of the Iron Law."""

    MIXED_PRECISION = "mixed_precision"
    PREFETCH = "prefetch"
    RECOMPUTATION = "recomputation"
    GRADIENT_ACCUMULATION = "gradient_accumulation"
    OPERATOR_FUSION = "operator_fusion"
    FLASH_ATTENTION = "flash_attention"


IRON_LAW_TERMS: dict[Technique, tuple[tuple[str, str], ...]] = {
    Technique.MIXED_PRECISION: (("peak_rate", "up"),),
    Technique.PREFETCH: (("utilization", "up"),),
    Technique.RECOMPUTATION: (("operations", "up"),),
    Technique.GRADIENT_ACCUMULATION: (("utilization", "up"),),
    Technique.OPERATOR_FUSION: (("utilization", "up"),),
    Technique.FLASH_ATTENTION: (("operations", "up"), ("utilization", "up"), ("bytes", "down")),
}
"""Term and direction by technique. FlashAttention computes scores again in the backward pass (more
operations) and wins by the bytes that it does not move."""
