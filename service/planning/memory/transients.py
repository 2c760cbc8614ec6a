"""What comes and goes within a training step beside activations: gathered weights, buffers, copies."""

from typing import NamedTuple

from service.planning.figures import larger, smaller
from service.planning.frameworks import TRAITS, State
from service.planning.memory.adaptation import frozen_bytes
from service.planning.memory.holdings import adapted_parameters, largest_block, on_device, outer_parameters
from service.planning.memory.states import held_parameters
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import ELEMENT_BYTES, LOW_PRECISION_BYTES, NumberFormat
from service.planning.profile import Profile, StageParameters
from service.planning.workload import AdaptationKind, Place, TrainingWorkload


class Transient(NamedTuple):
    """Bytes of gathered weights, of gradients all step long, and of those of the block at work."""

    gathered: float
    buckets: float
    block_gradients: float


def transients(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> Transient:
    """Weights gathered whole where they are sharded, and gradients beside the ones that are kept.

    Gathered are those of the block at work and of the next; token table and head stay gathered throughout
    (Zhao et al. 2023, section 3.1). Between the micro-batches of a pipeline the whole stage stays gathered
    and its gradients are summed whole.
    """
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    shards = layout.shards(layout.replicas)
    away = workload.offload.parameters is not Place.NONE
    sharded = 1.0 if away else (shards.weights > 1.0) * 1.0
    piped = (layout.pipeline > 1) * 1.0
    stage_parameters = on_device(base, layout)
    largest = largest_block(profile, layout)
    outer = on_device(outer_parameters(profile, layout, stage), layout)
    in_turn = smaller(2.0 * largest + outer, stage_parameters)
    adapted = workload.adaptation.kind is not AdaptationKind.FULL
    width = ELEMENT_BYTES[recipe.activations]
    if adapted:
        width = frozen_bytes(profile, workload.adaptation, recipe)[0]
    gathered = sharded * width * (piped * stage_parameters + (1.0 - piped) * in_turn)
    if workload.steps_in_backward:
        return Transient(gathered, 0.0, largest * ELEMENT_BYTES[recipe.gradients])
    if adapted:
        return Transient(gathered, 0.0, 0.0)
    gradient_bytes = ELEMENT_BYTES[recipe.gradients]
    apart = (shards.gradients > 1.0) * 1.0
    # FSDP copies the gradients of the compute format into FP32 to reduce them.
    wide = ELEMENT_BYTES[recipe.activations] if traits.state is State.WIDE else 0.0
    block = apart * (1.0 - piped) * largest * (gradient_bytes + wide)
    summed = sharded * apart * piped * stage_parameters * gradient_bytes
    many = (layout.replicas > 1) * 1.0
    if traits.gradient_buckets and layout.sharding is Sharding.NONE:
        summed += many * stage_parameters * gradient_bytes
    if workload.compression is not None and layout.sharding is Sharding.NONE:
        # What error feedback keeps of each gradient until the next step.
        kept = workload.compression.error_feedback * ELEMENT_BYTES[NumberFormat.FP32]
        summed += many * stage_parameters * kept
    elements = smaller(traits.bucket_elements, stage_parameters) if traits.bucket_elements else 0.0
    return Transient(gathered, summed + many * elements * ELEMENT_BYTES[recipe.activations], block)


def step_temporaries(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> float:
    """What the optimizer's step takes for a moment, or loading does where it needs more."""
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    adapted = workload.adaptation.kind is not AdaptationKind.FULL
    each = traits.step_copies * ELEMENT_BYTES[recipe.optimizer_states]
    if recipe.accumulated_gradients is None:
        each += traits.step_gradient_bytes
    if workload.offload.optimizer is not Place.NONE or not (each or traits.loads_whole):
        return 0.0
    trained = adapted_parameters(profile, workload, layout, stage) if adapted else base
    step = each * held_parameters(trained, layout).states
    if not (adapted and traits.loads_whole):
        return step
    sharded = (layout.shards(layout.replicas).weights > 1.0) * 1.0
    width = frozen_bytes(profile, workload.adaptation, recipe)[0]
    return larger(step, sharded * on_device(base, layout) * width)


def weight_copies(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, base: StageParameters
) -> float:
    """Narrow copies of weights that are kept wide: of autocast, or scaled for FP8 in both directions."""
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    each = 0.0
    if recipe.casts:
        each = ELEMENT_BYTES[recipe.activations]
    elif recipe.low and traits.scales_inputs:
        each = 2.0 * LOW_PRECISION_BYTES[recipe.low]
    if not each or workload.adaptation.kind is not AdaptationKind.FULL:
        return 0.0
    share = profile.quantisable_parameters / max(profile.parameter_count, 1)
    unsharded = (layout.shards(layout.replicas).weights == 1.0) * 1.0
    return unsharded * share * on_device(base, layout) * each
