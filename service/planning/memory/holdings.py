"""Parameters of a pipeline stage, and their training state on one device, wherever it is stored."""

from service.planning.figures import larger
from service.planning.memory.adaptation import (
    LINEAR_NAMES,
    frozen_bytes,
    list_adapted_tensors,
    list_prompt_tensors,
)
from service.planning.memory.stages import count_blocks_within, stage_start
from service.planning.memory.states import (
    StateBytes,
    optimizer_bytes,
    shard_parameters,
    state_bytes,
    state_bytes_per_parameter,
)
from service.planning.memory.tables import count_fullest_tables, count_table_parameters, is_table
from service.planning.models.layers import LayerTensor
from service.planning.models.profile import ModelProfile, StageParameters
from service.planning.models.profile.counts import count_sizes
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import ELEMENT_BYTES, OPTIMIZER_STATES
from service.planning.software.frameworks import TRAITS
from service.planning.workload import AdaptationKind, TrainingWorkload


def count_stage_parameters(profile: ModelProfile, layout: Parallelism, stage: int) -> StageParameters:
    """Returns the parameters of a stage, before they are divided or sharded."""
    if not profile.shapes_known:
        return StageParameters(profile.parameter_count / layout.pipeline, 0.0, 0.0)
    low = profile.prefixes[stage_start(profile, layout, stage)]
    high = profile.prefixes[stage_start(profile, layout, stage + 1)]
    table, head = (stage == 0) * 1.0, (stage == layout.pipeline - 1) * 1.0
    # A tied head on another stage than its table has a copy of it.
    copied = head * (1.0 - table) * profile.tied_parameters
    headed = profile.head.split - count_table_parameters(profile)
    return StageParameters(
        split=high[0] - low[0] + table * profile.embedding.split + head * headed + copied,
        whole=high[1] - low[1] + table * profile.embedding.whole + head * profile.head.whole,
        expert=high[2] - low[2],
        tables=head * count_fullest_tables(profile, layout.replicas),
    )


def count_adapted_parameters(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> StageParameters:
    """Returns the trained parameters of an adaptation, of the blocks of a stage and before the first."""
    start, end = stage_start(profile, layout, stage), stage_start(profile, layout, stage + 1)
    split = whole = expert = 0.0
    for block in profile.blocks:
        s, w, x = count_sizes(list_adapted_tensors(block.block, workload.adaptation))
        count = count_blocks_within(block, start, end)
        split, whole, expert = split + s * count, whole + w * count, expert + x * count
    first = (stage == 0) * 1.0
    whole += first * sum(tensor.size * n for tensor, n in list_prompt_tensors(profile, workload.adaptation))
    return StageParameters(split, whole, expert)


def count_outer_parameters(profile: ModelProfile, layout: Parallelism, stage: int) -> StageParameters:
    """Returns the parameters of a stage outside blocks."""
    table, head = (stage == 0) * 1.0, (stage == layout.pipeline - 1) * 1.0
    copied = head * (1.0 - table) * profile.tied_parameters
    headed = profile.head.split - count_table_parameters(profile)
    return StageParameters(
        table * profile.embedding.split + head * headed + copied,
        table * profile.embedding.whole + head * profile.head.whole,
        0.0,
        head * count_fullest_tables(profile, layout.replicas),
    )


def count_device_parameters(parameters: StageParameters, layout: Parallelism) -> float:
    """Returns the parameters of one device that replicas share, without sharding."""
    dense = parameters.split / layout.tensor + parameters.whole
    return dense + parameters.expert / (layout.tensor * layout.expert)


def find_largest_block(profile: ModelProfile, layout: Parallelism) -> float:
    """Returns the parameters of the largest block on one device without sharding."""
    largest = 0.0
    for split, whole, expert in profile.block_sizes:
        largest = larger(largest, count_device_parameters(StageParameters(split, whole, expert), layout))
    return largest


def find_largest_matrix(profile: ModelProfile, layout: Parallelism, *, with_head: bool) -> float:
    """Returns the elements of the largest matrix of a linear module on one device."""
    inside = (tensor for block in profile.blocks for tensor, _ in block.block.list_tensors())
    tensors = [tensor for tensor in inside if tensor.name in LINEAR_NAMES]
    tensors += [tensor for tensor, _ in profile.head_tensors] if with_head else ()
    return max((tensor.size for tensor in tensors if tensor.multiplied), default=0) / layout.tensor


def _compute_optimizer_bytes(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> float:
    """Returns the bytes of the optimizer's states on one device, for the trained parameters of a stage."""
    optimizer, width = workload.optimizer, ELEMENT_BYTES[workload.recipe.optimizer_states]
    if optimizer in OPTIMIZER_STATES or not profile.shapes_known:
        each = state_bytes_per_parameter(workload.recipe, optimizer).optimizer_states
        return shard_parameters(base, layout).states * each
    start, end = stage_start(profile, layout, stage), stage_start(profile, layout, stage + 1)
    adapted = workload.adaptation.kind is not AdaptationKind.FULL
    total = 0.0

    def compute_tensor_bytes(
        tensors: list[tuple[LayerTensor, float]], *, inside: bool, layout: Parallelism = layout
    ) -> float:
        return optimizer_bytes(
            tensors,
            optimizer,
            layout,
            element_bytes=width,
            rank=workload.optimizer_rank,
            inside=inside,
        )

    for block in profile.blocks:
        count = count_blocks_within(block, start, end)
        tensors = (
            list_adapted_tensors(block.block, workload.adaptation) if adapted else block.block.list_tensors()
        )
        total += compute_tensor_bytes([(tensor, n * count) for tensor, n in tensors], inside=True)
    table, head = (stage == 0) * 1.0, (stage == layout.pipeline - 1) * 1.0
    outside: list[tuple[LayerTensor, float]] = []
    if adapted:
        outside += [(tensor, n * table) for tensor, n in list_prompt_tensors(profile, workload.adaptation)]
    else:
        outside += [(tensor, table) for tensor in profile.table_tensors]
        outside += [(tensor, head * n) for tensor, n in profile.head_tensors if not is_table(tensor)]
        outside += [(tensor, head * (1.0 - table)) for tensor in profile.tied_tensors]
    share = base.tables / max(1.0, count_table_parameters(profile))
    tables = [(tensor, share * n) for tensor, n in profile.head_tensors if is_table(tensor)]
    total += compute_tensor_bytes(tables, inside=False, layout=layout._replace(sharding=Sharding.NONE))
    return total + compute_tensor_bytes(outside, inside=False)


def compute_stage_states(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> StateBytes:
    """Returns weights, gradients and optimizer states of one device, wherever they are stored."""
    if workload.adaptation.kind is AdaptationKind.FULL:
        states = _compute_optimizer_bytes(profile, workload, layout, stage, base)
        return state_bytes(shard_parameters(base, layout), workload.recipe, states)
    trained = count_adapted_parameters(profile, workload, layout, stage)
    states = _compute_optimizer_bytes(profile, workload, layout, stage, trained)
    state = state_bytes(shard_parameters(trained, layout), workload.recipe, states)
    return state._replace(
        weights=state.weights + _compute_frozen_bytes(profile, workload, layout, stage, base)
    )


def _compute_frozen_bytes(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> float:
    """Returns the weights that are not trained, on one device."""
    packs_head = TRAITS[workload.framework].packs_head
    inside, outside = frozen_bytes(profile, workload.adaptation, workload.recipe, packs_head=packs_head)
    outer = count_outer_parameters(profile, layout, stage)
    blocks = StageParameters(base.split - outer.split, base.whole - outer.whole, base.expert)
    return (
        shard_parameters(blocks, layout).weights * inside + shard_parameters(outer, layout).weights * outside
    )
