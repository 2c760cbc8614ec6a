"""Time of training by the Iron Law: T = O / (R_peak x utilization x devices).

O counts every operation that is executed, recomputation included; R_peak is the dense rate of the
compute format; utilization is the achieved share of it. Model FLOPs utilization leaves recomputation
out (Chowdhery et al. 2022, appendix B), hardware FLOPs utilization counts it.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.curves import Efficiency
from service.planning.memory.states import StateBytes
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import ModelProfile
from service.planning.operators import StepFlops, TimeBound, TimedPhase, forward_flops_per_token, step_flops
from service.planning.quantity import Quantity, combine, inverted, scaled
from service.planning.software.frameworks import TRAITS
from service.planning.training.objectives import generated_share, list_further_passes
from service.planning.workload import WHOLE_BLOCKS, AdaptationKind, Recomputation, TrainingWorkload


def iron_law_seconds(
    operations: float, *, peak_flops_per_second: float, utilization: float, devices: float = 1.0
) -> float:
    """Returns the seconds that ``operations`` FLOPs take on ``devices`` devices."""
    return operations / (peak_flops_per_second * utilization * devices)


def compute_utilization(
    flops_per_second: float, *, peak_flops_per_second: float, devices: float = 1.0
) -> float:
    """Returns the achieved share of the peak rate: the Iron Law solved for utilization."""
    return flops_per_second / (peak_flops_per_second * devices)


def count_flops_per_token(profile: ModelProfile, workload: TrainingWorkload) -> StepFlops:
    """Returns the training FLOPs of one token by phase, counted from the operators of the model.

    Attention counts the whole score matrix whatever the kernel, as published utilizations do. Further passes
    of an objective are in proportion to parameters; a critic is recomputed like the model.
    """
    if profile.sampled is not None and profile.sample is not None:
        own = _count_sample_flops(profile.sampled, profile.sample, workload)
    else:
        own = _count_model_flops(profile, workload)
    trained = own.forward + own.backward
    passes = list_further_passes(profile, workload)
    further = [
        (each.name, each.times * each.size * (trained if each.trained else own.forward)) for each in passes
    ]
    if generated := generated_share(workload):
        further.insert(0, ("generation", generated * own.forward))
    again = 1.0 + sum(each.size for each in passes if each.trained)
    return own._replace(recomputation=again * own.recomputation, further=tuple(further))


def _count_model_flops(profile: ModelProfile, workload: TrainingWorkload) -> StepFlops:
    forward = forward_flops_per_token(profile, workload.sequence_length)
    # The head is outside the recomputed blocks.
    inside = forward - profile.head_flops_per_token
    recomputed = 0.0
    if workload.recomputation in WHOLE_BLOCKS:
        recomputed = inside
    elif workload.recomputation is Recomputation.SELECTIVE:
        scores = forward - profile.matmul_flops_per_token
        attention_only = TRAITS[workload.framework].recomputes_attention
        # By operator, every second matrix multiplication runs again; attention does not.
        recomputed = scores if attention_only else (inside - scores) / 2.0
    flops = step_flops(forward, recomputed=recomputed)
    if workload.adaptation.kind is AdaptationKind.FULL:
        return flops
    # Frozen weights have no gradient: the backward pass multiplies once for each input, not twice.
    return flops._replace(backward=forward)


def _count_sample_flops(
    architecture: Architecture, sample: SampleShape, workload: TrainingWorkload
) -> StepFlops:
    """Returns the FLOPs of one sample of a model with positions by block; all but heads are recomputed."""
    forward = forward_flops_of_sample(architecture, sample)
    tokens = sample.tokens or 1
    heads = sum(
        2.0 * head.input_size * head.output_size * (tokens if head.per == "token" else 1)
        for head in architecture.heads
    )
    recomputed = forward - heads if workload.recomputation in WHOLE_BLOCKS else 0.0
    flops = step_flops(forward, recomputed=recomputed)
    return flops if workload.adaptation.kind is AdaptationKind.FULL else flops._replace(backward=forward)


def unmasked_flops_per_token(profile: ModelProfile, workload: TrainingWorkload) -> float:
    """Returns the model FLOPs of one token without causally masked scores (as Megatron-Core counts them)."""
    if profile.sample is not None:
        return count_flops_per_token(profile, workload).model
    flops = count_flops_per_token(profile, workload)
    unmasked = forward_flops_per_token(profile, workload.sequence_length, skips_masked=True)
    return flops.model * unmasked / flops.forward


def weight_traffic_bytes(held: StateBytes, unsharded: StateBytes, micro_batches: int) -> float:
    """Returns the least bytes that a device moves in a step for its training state.

    Each micro-batch reads the weights forward and backward and adds to the gradients, gathered whole where
    they are sharded. The optimizer reads the gradients of the device, reads and writes master weights and
    states, and writes the weights, which it reads only where there is no master copy.
    """
    per_micro_batch = 2.0 * unsharded.weights + 2.0 * unsharded.gradients
    updated = held.master_weights or held.weights
    update = held.gradients + held.weights + updated + held.master_weights + 2.0 * held.optimizer_states
    return micro_batches * per_micro_batch + update


class TrainingTime(NamedTuple):
    """Rates of a training run on the whole cluster."""

    flops: StepFlops
    seconds_per_token: Quantity
    model_flops_utilization: Quantity
    hardware_flops_utilization: Quantity
    bound: TimeBound
    bubble_share: float

    def slow_to(self, seconds_per_token: Quantity, *, peak_flops_per_second: float) -> "TrainingTime":
        """Returns the same work in a longer time; rates add up to ``peak_flops_per_second``."""

        def combine_utilization(flops: float) -> Quantity:
            return combine(
                lambda s: compute_utilization(flops / s, peak_flops_per_second=peak_flops_per_second),
                seconds_per_token,
            )

        return self._replace(
            seconds_per_token=seconds_per_token,
            model_flops_utilization=combine_utilization(self.flops.model),
            hardware_flops_utilization=combine_utilization(self.flops.hardware),
        )

    def list_phases(self, tokens: float) -> Iterator[TimedPhase]:
        """Yields forward, backward and recomputation of a step by their FLOPs, and the bubble."""
        working = (1.0 - self.bubble_share) / self.flops.hardware
        shares = {
            **{name: flops * working for name, flops in self.flops.further},
            "forward": self.flops.forward * working,
            "backward": self.flops.backward * working,
            "recomputation": self.flops.recomputation * working,
            "bubble": self.bubble_share,
        }
        for name, share in shares.items():
            if share:
                yield TimedPhase(name, scaled(self.seconds_per_token, share * tokens), self.bound)


def estimate_training_time(
    flops: StepFlops,
    *,
    peak_flops_per_second: float,
    devices: int,
    efficiency: Efficiency,
    bubble_share: float = 0.0,
) -> TrainingTime:
    """Returns the seconds per token of the whole cluster and the corresponding utilizations.

    ``bubble_share`` is the share of the step in which stages wait.
    """
    seconds = combine(
        lambda share: (
            iron_law_seconds(
                flops.hardware,
                peak_flops_per_second=peak_flops_per_second,
                utilization=share,
                devices=devices,
            )
            / (1.0 - bubble_share)
        ),
        inverted(efficiency.utilization),
    )

    def combine_utilization(flops_of_token: float) -> Quantity:
        return combine(
            lambda per_token: compute_utilization(
                flops_of_token / per_token,
                peak_flops_per_second=peak_flops_per_second,
                devices=devices,
            ),
            seconds,
        )

    hardware = combine_utilization(flops.hardware)
    model = hardware if not flops.recomputation else combine_utilization(flops.model)
    return TrainingTime(flops, seconds, model, hardware, TimeBound.COMPUTE, bubble_share)


class IronLawTechnique(StrEnum):
    """Changes that affect a term of the Iron Law."""

    MIXED_PRECISION = "mixed_precision"
    PREFETCH = "prefetch"
    RECOMPUTATION = "recomputation"
    GRADIENT_ACCUMULATION = "gradient_accumulation"
    OPERATOR_FUSION = "operator_fusion"
    FLASH_ATTENTION = "flash_attention"
    PIPELINE = "pipeline"
    LARGER_BATCH = "larger_batch"
    LESS_COMMUNICATION = "less_communication"


IRON_LAW_TERMS: dict[IronLawTechnique, tuple[tuple[str, str], ...]] = {
    IronLawTechnique.MIXED_PRECISION: (("peak_rate", "up"),),
    IronLawTechnique.PREFETCH: (("utilization", "up"),),
    IronLawTechnique.RECOMPUTATION: (("operations", "up"),),
    IronLawTechnique.GRADIENT_ACCUMULATION: (("utilization", "up"),),
    IronLawTechnique.OPERATOR_FUSION: (("utilization", "up"),),
    IronLawTechnique.PIPELINE: (("utilization", "up"),),
    IronLawTechnique.LARGER_BATCH: (("utilization", "up"),),
    IronLawTechnique.LESS_COMMUNICATION: (("utilization", "up"), ("bytes", "down")),
    IronLawTechnique.FLASH_ATTENTION: (("operations", "up"), ("utilization", "up"), ("bytes", "down")),
}
"""Term and direction by technique. FlashAttention recomputes scores in the backward pass (more

operations) and gains by the bytes that it does not move.
"""
