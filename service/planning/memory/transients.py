"""Transient memory of a training step beside activations: gathered weights, buffers, copies."""

from typing import NamedTuple

from service.planning.figures import larger, smaller
from service.planning.memory.adaptation import frozen_bytes
from service.planning.memory.holdings import (
    count_adapted_parameters,
    count_device_parameters,
    count_outer_parameters,
    find_largest_block,
    find_largest_matrix,
)
from service.planning.memory.states import shard_parameters
from service.planning.models.profile import ModelProfile, StageParameters
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import ELEMENT_BYTES, LOW_PRECISION_BYTES, NumberFormat
from service.planning.software.frameworks import TRAITS, FrameworkTraits, RecipeState
from service.planning.workload import (
    AdaptationKind,
    FrozenWeightFormat,
    TrainingStateLocation,
    TrainingWorkload,
)


class TransientBytes(NamedTuple):
    """Bytes of gathered weights, of gradients during the whole step, and of those of the block at work."""

    gathered: float
    buckets: float
    block_gradients: float


def compute_transients(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> TransientBytes:
    """Returns the weights gathered where they are sharded, and gradients in addition to the stored ones.

    Gathered are those of the block at work and of the next; token table and head stay gathered throughout
    (Zhao et al. 2023, section 3.1). Between the micro-batches of a pipeline the whole stage stays gathered
    and its gradients are summed whole; the same applies where gradients are accumulated under FSDP's
    ``no_sync``, as wide as the flat tensors, frozen weights included. A packed matrix is unpacked at work.
    """
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    shards = layout.compute_shards(layout.replicas)
    away = workload.offload.parameters is not TrainingStateLocation.NONE
    sharded = 1.0 if away else (shards.weights > 1.0) * 1.0
    piped = (layout.pipeline > 1) * 1.0
    stage_parameters = count_device_parameters(base, layout)
    largest = find_largest_block(profile, layout)
    outer = count_device_parameters(count_outer_parameters(profile, layout, stage), layout)
    in_turn = smaller(2.0 * largest + outer, stage_parameters)
    adapted = workload.adaptation.kind is not AdaptationKind.FULL
    width = ELEMENT_BYTES[recipe.activations]
    if adapted:
        width = frozen_bytes(profile, workload.adaptation, recipe)[0]
    gathered = sharded * width * (piped * stage_parameters + (1.0 - piped) * in_turn)
    if workload.adaptation.base is not FrozenWeightFormat.PLAIN:
        matrix = find_largest_matrix(profile, layout, with_head=traits.packs_head)
        gathered += matrix * traits.unpacked_bytes
    if workload.steps_in_backward:
        return TransientBytes(gathered, 0.0, largest * ELEMENT_BYTES[recipe.gradients])
    held = (shards.gradients > 1.0) * (workload.micro_batches > 1) * (1.0 - piped)
    unspread = traits.sums_unsharded * held * stage_parameters * ELEMENT_BYTES[recipe.activations]
    if adapted:
        return TransientBytes(gathered, unspread, 0.0)
    gradient_bytes = ELEMENT_BYTES[recipe.gradients]
    apart = (shards.gradients > 1.0) * 1.0
    # FSDP copies the gradients of the compute format into FP32 to reduce them.
    wide = ELEMENT_BYTES[recipe.activations] if traits.state is RecipeState.WIDE else 0.0
    block = apart * (1.0 - piped) * largest * (gradient_bytes + wide)
    if traits.frees_gradients:
        block += (layout.devices == 1) * (workload.micro_batches == 1) * largest * gradient_bytes
    summed = sharded * apart * piped * stage_parameters * gradient_bytes * _chunk_share(workload, layout)
    if traits.gradient_buckets and layout.sharding is Sharding.NONE:
        summed += (layout.replicas > 1) * stage_parameters * gradient_bytes
    if workload.compression is not None and layout.sharding is Sharding.NONE:
        # Residual that error feedback holds of each gradient until the next step.
        kept = workload.compression.error_feedback * ELEMENT_BYTES[NumberFormat.FP32]
        summed += (layout.replicas > 1) * stage_parameters * kept
    summed += unspread + (1.0 - piped) * _bucket_bytes(workload, layout, stage_parameters)
    return TransientBytes(gathered, summed, block)


def _chunk_share(workload: TrainingWorkload, layout: Parallelism) -> float:
    """Returns the share of a stage's gradients that are summed at a time.

    An interleaved stage has gradients of all its chunks at once; those of one where the step has no more
    micro-batches than stages, since a chunk is then done before the one before it begins.
    """
    if layout.pipeline_schedule is not PipelineSchedule.INTERLEAVED:
        return 1.0
    one = (workload.micro_batches <= layout.pipeline) * 1.0
    return one / layout.virtual_stages + (1.0 - one)


def _bucket_bytes(workload: TrainingWorkload, layout: Parallelism, stage_parameters: float) -> float:
    """Returns the buckets through which gradients are reduced and weights gathered."""
    most = TRAITS[workload.framework].bucket_elements
    elements = smaller(most, stage_parameters) if most else 0.0
    return (layout.replicas > 1) * elements * ELEMENT_BYTES[workload.recipe.activations]


def compute_step_temporaries(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> float:
    """Returns the temporary memory of the optimizer's step.

    After a pipeline, gradients are reduced just before it, so that their buckets exist then.
    """
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    adapted = workload.adaptation.kind is not AdaptationKind.FULL
    each = traits.step_copies * ELEMENT_BYTES[recipe.optimizer_states]
    if recipe.accumulated_gradients is None:
        each += traits.step_gradient_bytes
    if workload.offload.optimizer is not TrainingStateLocation.NONE:
        each = 0.0
    trained = count_adapted_parameters(profile, workload, layout, stage) if adapted else base
    buckets = (layout.pipeline > 1) * _bucket_bytes(
        workload, layout, count_device_parameters(trained, layout)
    )
    return larger(each * shard_parameters(trained, layout).states, buckets)


def compute_weight_copies(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, base: StageParameters
) -> float:
    """Returns narrow copies of wide weights: of autocast, or scaled for FP8 in both directions."""
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    each = 0.0
    if recipe.casts:
        each = ELEMENT_BYTES[recipe.activations]
    elif recipe.low and traits.scales_inputs:
        each = 2.0 * LOW_PRECISION_BYTES[recipe.low]
    if not each or workload.adaptation.kind is not AdaptationKind.FULL:
        return 0.0
    share = profile.quantisable_parameters / max(profile.parameter_count, 1)
    unsharded = (layout.compute_shards(layout.replicas).weights == 1.0) * 1.0
    return unsharded * share * count_device_parameters(base, layout) * each


def count_communicators(layout: Parallelism, traits: FrameworkTraits) -> float:
    """Returns the number of communicating groups, each with buffers on the device.

    One for each degree. Megatron-LM under DeepSpeed creates more: all devices, those of one replica, a second
    data-parallel group (both libraries average over their own), the second neighbour of a pipeline stage, and
    the two ends of a pipeline, which share the token table.
    """
    degrees = (layout.tensor, layout.pipeline, layout.data, layout.context, layout.expert)
    groups = sum(((degree > 1) * 1.0 for degree in degrees), 0.0)
    if not traits.own_groups:
        return groups
    replica = (layout.tensor * layout.pipeline > 1) * 1.0
    pairs = 2.0 * (layout.pipeline > 1)
    return groups + (layout.devices > 1) * 1.0 + replica + (layout.replicas > 1) * 1.0 + pairs
