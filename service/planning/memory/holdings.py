"""Parameters that a pipeline stage holds, and their training state on one device, wherever it lies."""

from service.planning.figures import larger
from service.planning.memory.adaptation import LINEAR_NAMES, adapted_tensors, frozen_bytes, prompt_tensors
from service.planning.memory.stages import blocks_within, stage_start
from service.planning.memory.states import (
    Held,
    StateBytes,
    held_parameters,
    optimizer_bytes,
    state_bytes,
    state_bytes_per_parameter,
)
from service.planning.models.layers import Tensor
from service.planning.models.profile import Profile, StageParameters
from service.planning.models.profile.whole import sizes_of
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, OPTIMIZER_STATES
from service.planning.software.frameworks import TRAITS
from service.planning.workload import AdaptationKind, TrainingWorkload


def stage_parameters(profile: Profile, layout: Parallelism, stage: int) -> StageParameters:
    """Parameters of a stage, before they are divided or spread."""
    if not profile.shapes_known:
        return StageParameters(profile.parameter_count / layout.pipeline, 0.0, 0.0)
    low = profile.prefixes[stage_start(profile, layout, stage)]
    high = profile.prefixes[stage_start(profile, layout, stage + 1)]
    table, head = (stage == 0) * 1.0, (stage == layout.pipeline - 1) * 1.0
    # A tied head on another stage than its table keeps a copy of it.
    copied = head * (1.0 - table) * profile.tied_parameters
    return StageParameters(
        split=high[0] - low[0] + table * profile.embedding.split + head * profile.head.split + copied,
        whole=high[1] - low[1] + table * profile.embedding.whole + head * profile.head.whole,
        expert=high[2] - low[2],
    )


def adapted_parameters(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> StageParameters:
    """Trained parameters of an adaptation, of the blocks of a stage and before the first."""
    start, end = stage_start(profile, layout, stage), stage_start(profile, layout, stage + 1)
    split = whole = expert = 0.0
    for block in profile.blocks:
        s, w, x = sizes_of(adapted_tensors(block.block, workload.adaptation))
        count = blocks_within(block, start, end)
        split, whole, expert = split + s * count, whole + w * count, expert + x * count
    first = (stage == 0) * 1.0
    whole += first * sum(tensor.size * n for tensor, n in prompt_tensors(profile, workload.adaptation))
    return StageParameters(split, whole, expert)


def outer_parameters(profile: Profile, layout: Parallelism, stage: int) -> StageParameters:
    """Parameters of a stage outside blocks."""
    table, head = (stage == 0) * 1.0, (stage == layout.pipeline - 1) * 1.0
    copied = head * (1.0 - table) * profile.tied_parameters
    return StageParameters(
        table * profile.embedding.split + head * profile.head.split + copied,
        table * profile.embedding.whole + head * profile.head.whole,
        0.0,
    )


def on_device(parameters: StageParameters, layout: Parallelism) -> float:
    """Parameters of one device without sharding."""
    dense = parameters.split / layout.tensor + parameters.whole
    return dense + parameters.expert / (layout.tensor * layout.expert)


def largest_block(profile: Profile, layout: Parallelism) -> float:
    """Parameters of the largest block on one device without sharding."""
    largest = 0.0
    for split, whole, expert in profile.block_sizes:
        largest = larger(largest, on_device(StageParameters(split, whole, expert), layout))
    return largest


def largest_matrix(profile: Profile, layout: Parallelism, *, with_head: bool) -> float:
    """Elements of the largest matrix of a linear module on one device."""
    inside = (tensor for block in profile.blocks for tensor, _ in block.block.tensors())
    tensors = [tensor for tensor in inside if tensor.name in LINEAR_NAMES]
    tensors += [tensor for tensor, _ in profile.head_tensors] if with_head else ()
    return max((tensor.size for tensor in tensors if tensor.multiplied), default=0) / layout.tensor


def _optimizer_states(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: int, held: Held
) -> float:
    """Bytes of the optimizer's states on one device."""
    optimizer, width = workload.optimizer, ELEMENT_BYTES[workload.recipe.optimizer_states]
    if optimizer in OPTIMIZER_STATES or not profile.shapes_known:
        return held.states * state_bytes_per_parameter(workload.recipe, optimizer).optimizer_states
    start, end = stage_start(profile, layout, stage), stage_start(profile, layout, stage + 1)
    adapted = workload.adaptation.kind is not AdaptationKind.FULL
    total = 0.0

    def kept(tensors: list[tuple[Tensor, float]], *, inside: bool) -> float:
        return optimizer_bytes(
            tensors,
            optimizer,
            layout,
            element_bytes=width,
            rank=workload.optimizer_rank,
            inside=inside,
        )

    for block in profile.blocks:
        count = blocks_within(block, start, end)
        tensors = adapted_tensors(block.block, workload.adaptation) if adapted else block.block.tensors()
        total += kept([(tensor, n * count) for tensor, n in tensors], inside=True)
    table, head = (stage == 0) * 1.0, (stage == layout.pipeline - 1) * 1.0
    outside: list[tuple[Tensor, float]] = []
    if adapted:
        outside += [(tensor, n * table) for tensor, n in prompt_tensors(profile, workload.adaptation)]
    else:
        outside += [(tensor, table) for tensor in profile.table_tensors]
        outside += [(tensor, head * n) for tensor, n in profile.head_tensors]
        outside += [(tensor, head * (1.0 - table)) for tensor in profile.tied_tensors]
    return total + kept(outside, inside=False)


def stage_states(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> StateBytes:
    """Weights, gradients and optimizer states of one device, wherever they lie."""
    if workload.adaptation.kind is AdaptationKind.FULL:
        held = held_parameters(base, layout)
        return state_bytes(held, workload.recipe, _optimizer_states(profile, workload, layout, stage, held))
    trained = held_parameters(adapted_parameters(profile, workload, layout, stage), layout)
    state = state_bytes(
        trained, workload.recipe, _optimizer_states(profile, workload, layout, stage, trained)
    )
    return state._replace(weights=state.weights + _frozen(profile, workload, layout, stage, base))


def _frozen(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    base: StageParameters,
) -> float:
    """Weights that are not trained, on one device."""
    packs_head = TRAITS[workload.framework].packs_head
    inside, outside = frozen_bytes(profile, workload.adaptation, workload.recipe, packs_head=packs_head)
    outer = outer_parameters(profile, layout, stage)
    blocks = StageParameters(base.split - outer.split, base.whole - outer.whole, base.expert)
    return held_parameters(blocks, layout).weights * inside + held_parameters(outer, layout).weights * outside
