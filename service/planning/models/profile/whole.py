"""What an architecture costs per token: the coefficients that every estimate multiplies.

Derived once per architecture by :func:`profile_of`; a catalog model keeps its profile.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from service.planning.models.architecture import MODELLED_INPUTS, MODELLED_KINDS, Architecture, Block, Layer
from service.planning.models.layers import (
    Attention,
    Linear,
    MixtureOfExperts,
    Split,
    Tensor,
)
from service.planning.models.positions import BlockPositions, Sample
from service.planning.models.profile.activations import (
    ACTIVATION_KINDS,
    ActivationTerms,
    block_activations,
    inner_elements,
    selected_activations,
)
from service.planning.models.profile.attention import AttentionWork, attention_work
from service.planning.models.profile.iteration import IterationElements, iteration_elements
from service.planning.models.profile.layer_operators import OperatorBook
from service.planning.models.profile.limits import check_depth, check_layers, check_parameters, check_written
from service.planning.models.profile.runs import RunningSums, running_sums
from service.planning.models.profile.weights import WeightInventory, weight_inventory


class BlockProfile(NamedTuple):
    """One block, taken once; the model has ``repeats`` of it in a row."""

    repeats: int
    split_parameters: int
    whole_parameters: int
    expert_parameters: int
    activations: ActivationTerms
    width_elements: float
    """Elements per token of the block's input, which recomputation keeps."""
    selected: ActivationTerms
    """What selective recomputation by operator keeps."""
    block: Block
    start: int
    """How many single blocks stand before it."""
    positions: BlockPositions | None = None
    """Over which the coefficients are summed; None where they are per token."""


class StageParameters(NamedTuple):
    """Parameters of a run of blocks, by how tensor and expert parallelism divide them."""

    split: float
    whole: float
    expert: float


class Profile(NamedTuple):
    """Coefficients of a whole model."""

    parameter_count: int
    active_parameter_count: int
    blocks: tuple[BlockProfile, ...]
    block_count: int
    prefixes: RunningSums
    """Running sums over single blocks: split, whole and expert parameters."""
    activations: ActivationTerms
    """Sum over all blocks."""
    activation_prefixes: RunningSums
    """Running sums over single blocks: the activation terms, those that selective recomputation keeps, and
    the width of the input."""
    deepest: BlockProfile | None
    """The block with the largest activations."""
    block_sizes: tuple[tuple[int, int, int], ...]
    """Split, whole and expert parameters of a block, different ones once."""
    width_elements: float
    """Sum over all blocks of the elements per token of their input."""
    embedding: StageParameters
    head: StageParameters
    """Parameters of the heads, without tied tensors, and of what stands outside blocks."""
    table_tensors: tuple[Tensor, ...]
    head_tensors: tuple[tuple[Tensor, int], ...]
    """Each with how often it occurs."""
    tied_tensors: tuple[Tensor, ...]
    tied_parameters: int
    vocabulary_size: int
    head_saved_elements: float
    """Elements per token that the backward pass needs behind the last block: inputs of norm and head."""
    embedding_mask_bytes: float
    matmul_flops_per_token: float
    """Forward FLOPs per token of all matrix multiplications with weights: 2 per active weight."""
    head_flops_per_token: float
    """The part of them in the language-model head."""
    attention: tuple[AttentionWork, ...]
    quantisable_parameters: int
    """Weights of matrices inside blocks, which quantised checkpoints store narrow."""
    expert_parameters: int
    """Weights of routed experts; quantised checkpoints store them narrow."""
    expert_count: int
    experts_per_token: int
    widest_elements: int
    """Largest width of a block's input."""
    generates: bool
    """Whether the model decodes token by token, keeping keys and values.

    Causal attention does, unless the only heads are such as give no token.
    """
    inner_elements: float
    """Largest live intermediate per token of any layer, divided by tensor parallelism."""
    unmodelled_kinds: frozenset[str]
    """Kinds of layers whose work and caches are not known."""
    unserved_kinds: frozenset[str]
    """Those of them that a decoder of tokens meets: what it is served with is not known."""
    weights: WeightInventory
    operators: OperatorBook
    """What the blocks multiply and move, in their order."""
    iteration_elements: IterationElements = IterationElements()
    """Largest intermediates per token under inference."""
    expert_blocks: int = 0
    """Blocks with routed experts."""
    encodes: bool = False
    """Whether an encoder reads the input and a decoder only its own output, by cross-attention."""
    shapes_known: bool = True
    """False for a model of which only the number of parameters is known."""
    sampled: Architecture | None = None
    """What memory is asked of by the sample (``sampled``); None where coefficients per token say it all."""
    sample: Sample | None = None
    """Of a profile whose one token is one sample: which."""
    passed: Architecture | None = None
    """What is served by forward passes over whole requests; None of a model that decodes."""


def width_of(block: Block) -> int:
    """Elements per position of the input of a block."""
    layer = block.layers[0]
    for name in ("hidden_size", "size", "input_size", "input_channels"):
        width = getattr(layer, name, None)
        if isinstance(width, int):
            return width
    return 0


def sizes_of(counted: Iterable[tuple[Tensor, int]]) -> tuple[int, int, int]:
    """Elements of tensors that tensor parallelism splits, of those it does not, and of experts."""
    split = whole = expert = 0
    for tensor, count in counted:
        if tensor.split is Split.EXPERT:
            expert += tensor.size * count
        elif tensor.split is Split.NONE:
            whole += tensor.size * count
        else:
            split += tensor.size * count
    return split, whole, expert


def _block_profile(block: Block) -> BlockProfile:
    width = width_of(block)
    return BlockProfile(
        block.count,
        *sizes_of(block.tensors()),
        activations=block_activations(block),
        width_elements=width,
        selected=selected_activations(block, width),
        block=block,
        start=0,
    )


def activation_sums(profiles: Iterable[BlockProfile]) -> RunningSums:
    """Running sums over single blocks: activation terms, those that selective recomputation keeps, widths."""
    rows = (((*b.activations, *b.selected, b.width_elements), b.repeats) for b in profiles)
    return running_sums(rows, 2 * len(ActivationTerms._fields) + 1)


def _block_profiles(blocks: tuple[Block, ...], starts: Iterable[int]) -> tuple[BlockProfile, ...]:
    """One profile a block in order; blocks of the same content are worked out once."""
    known = {replace(block, count=1): _block_profile(block) for block in _distinct(blocks)}
    return tuple(
        known[replace(block, count=1)]._replace(repeats=block.count, block=block, start=start)
        for block, start in zip(blocks, starts, strict=False)
    )


def _distinct(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Blocks of the same content as one: a hybrid of a hundred layers has three or four of them."""
    counts: Counter[Block] = Counter()
    for block in blocks:
        counts[replace(block, count=1)] += block.count
    return tuple(replace(block, count=count) for block, count in counts.items())


def is_loose(layer: Layer) -> bool:
    """Whether this is no unit of depth: what stands outside blocks and is a matrix or less."""
    if isinstance(layer, Block):
        return not layer.unit
    return isinstance(layer, Linear) or not any(tensor.multiplied for tensor in layer.tensors())


def profile_of(architecture: Architecture) -> Profile:
    """The coefficients of ``architecture``.

    Parameters are counted as PyTorch counts those of the model's class: a tied tensor once, buffers
    not at all. FLOPs are two per multiplication and addition. Norms and matrices outside blocks are no
    unit of depth: they stand with the head. Raises :class:`PlanningError` above ``MOST_BLOCKS`` blocks,
    ``MOST_LAYERS`` layers or ``MOST_PARAMETERS`` parameters.
    """
    check_written(architecture)
    blocks = tuple(architecture.blocks())
    placed = tuple(zip(architecture.layers, blocks, strict=True))
    loose = tuple(block for layer, block in placed if is_loose(layer))
    deep = tuple(block for layer, block in placed if not is_loose(layer))
    check_depth([0 if is_loose(layer) else block.count for layer, block in placed])
    starts = accumulate((block.count for block in deep), initial=0)
    profiles = _block_profiles(deep, starts)
    weights = weight_inventory(architecture, deep, loose)
    blocks_in_order = deep
    blocks, deep, loose = _distinct(blocks), _distinct(deep), _distinct(loose)
    tensors = [(tensor, n * block.count) for block in blocks for tensor, n in block.tensors()]
    table = architecture.embeddings
    table_tensors = list(table.tensors()) if table else []
    head_tensors = [
        (tensor, head.kind in architecture.tied and tensor.name == "weight")
        for head in architecture.heads
        for tensor in head.tensors()
    ]
    language_heads = [head for head in architecture.heads if head.kind == "language_model"]
    experts = [layer for block in blocks for layer in block.layers if isinstance(layer, MixtureOfExperts)]
    owned = [tensor for tensor, tied in head_tensors if not tied]
    fixed_parameters = sum(tensor.size for tensor in (*table_tensors, *owned))
    head_flops = sum(2.0 * tensor.size * tensor.multiplied for tensor, _ in head_tensors)
    attention = attention_work(blocks, generates=bool(language_heads) or not architecture.heads)
    if not any(work.caches and not work.cross for work in attention):
        # Cross-attention alone decodes nothing: a diffusion model reads its text anew.
        attention = tuple(work._replace(caches=False) for work in attention)
    behind = [(tensor, n * block.count) for block in loose for tensor, n in block.tensors()]
    parameter_count = fixed_parameters + sum(tensor.size * n for tensor, n in tensors)
    check_parameters(architecture, parameter_count)
    check_layers(architecture)
    activations = ActivationTerms()
    for profile in profiles:
        activations = activations.plus(profile.activations, profile.repeats)
    return Profile(
        parameter_count=parameter_count,
        active_parameter_count=fixed_parameters
        + round(sum(tensor.size * tensor.active * n for tensor, n in tensors)),
        blocks=profiles,
        block_count=sum(profile.repeats for profile in profiles),
        prefixes=running_sums(((profile[1:4], profile.repeats) for profile in profiles), 3),
        activations=activations,
        activation_prefixes=activation_sums(profiles),
        deepest=max(
            profiles,
            key=lambda block: block.activations.whole_elements + block.activations.split_elements,
            default=None,
        ),
        block_sizes=tuple({b[1:4] for b in profiles}),
        width_elements=float(sum(profile.width_elements * profile.repeats for profile in profiles)),
        embedding=StageParameters(*sizes_of((tensor, 1) for tensor in table_tensors)),
        head=StageParameters(*sizes_of([*behind, *((tensor, 1) for tensor in owned)])),
        table_tensors=tuple(table_tensors),
        head_tensors=(*behind, *((tensor, 1) for tensor in owned)),
        tied_tensors=tuple(tensor for tensor, tied in head_tensors if tied),
        tied_parameters=sum(tensor.size for tensor, tied in head_tensors if tied),
        vocabulary_size=language_heads[0].output_size if language_heads else 0,
        head_saved_elements=(language_heads[0].input_size if language_heads else 0)
        + sum(block_activations(block).whole_elements * block.count for block in loose),
        embedding_mask_bytes=float(table.size) if table and table.dropout else 0.0,
        matmul_flops_per_token=head_flops
        + sum(2.0 * tensor.elements * tensor.multiplied * n for tensor, n in tensors),
        head_flops_per_token=sum(2.0 * head.input_size * head.output_size for head in language_heads),
        attention=attention,
        quantisable_parameters=sum(
            tensor.size * n * block.count
            for block in deep
            for tensor, n in block.tensors()
            if tensor.multiplied and tensor.name != "router"
        ),
        expert_parameters=sum(tensor.size * n for tensor, n in tensors if tensor.split is Split.EXPERT),
        expert_count=max((layer.expert_count for layer in experts), default=0),
        experts_per_token=max((layer.experts_per_token for layer in experts), default=0),
        widest_elements=max((width_of(block) for block in deep), default=0),
        generates=any(work.caches for work in attention),
        inner_elements=max(
            (inner_elements(layer) for block in blocks for layer in block.layers), default=0.0
        ),
        unmodelled_kinds=frozenset(
            layer.kind for block in blocks for layer in block.layers if layer.kind not in MODELLED_KINDS
        )
        | {item.kind for item in architecture.inputs if item.kind not in MODELLED_INPUTS},
        unserved_kinds=_unserved_kinds(architecture, blocks),
        weights=weights,
        operators=OperatorBook(
            tuple(replace(block, count=1) for block in blocks_in_order), loose, architecture.heads
        ),
        iteration_elements=iteration_elements(layer for block in blocks for layer in block.layers),
        expert_blocks=sum(
            block.count
            for block in deep
            if any(isinstance(layer, MixtureOfExperts) for layer in block.layers)
        ),
        encodes=any(item.kind == "source_tokens" for item in architecture.inputs),
        sampled=architecture if _by_sample(architecture, blocks) else None,
        passed=None if any(work.caches for work in attention) else architecture,
    )


def _by_sample(architecture: Architecture, blocks: tuple[Block, ...]) -> bool:
    """Whether blocks run over other positions than tokens, or keep what no count per token says."""
    layers = [layer for block in blocks for layer in block.layers]
    return (
        any(item.kind not in MODELLED_INPUTS for item in architecture.inputs)
        or any(layer.kind not in ACTIVATION_KINDS for layer in layers)
        or any(isinstance(layer, Attention) and layer.score_bias for layer in layers)
    )


def _unserved_kinds(architecture: Architecture, blocks: tuple[Block, ...]) -> frozenset[str]:
    """What stands in the way of serving the model's tokens: kinds of layers and of inputs.

    A tower beside the decoder, such as that of images, keeps nothing; its weights are known.
    """
    kinds = {item.name: item.kind for item in architecture.inputs}
    first = architecture.inputs[0].name if architecture.inputs else ""
    if "tokens" not in kinds.values():
        found = {layer.kind for block in blocks for layer in block.layers if layer.kind not in MODELLED_KINDS}
        return frozenset(found | set(kinds.values()))
    read = {"tokens", "source_tokens"}
    unknown: set[str] = set()
    for block in blocks:
        if not read.intersection(kinds[name] for name in block.over or (first,)):
            continue
        unknown.update(layer.kind for layer in block.layers if layer.kind not in MODELLED_KINDS)
        unknown.update(kinds[name] for name in block.reads if kinds[name] not in read)
    return frozenset(unknown)


_NO_PARAMETERS = StageParameters(0.0, 0.0, 0.0)
_SHAPELESS = Profile(
    parameter_count=0,
    active_parameter_count=0,
    blocks=(),
    block_count=0,
    prefixes=running_sums((), 3),
    activations=ActivationTerms(),
    activation_prefixes=running_sums((), 0),
    deepest=None,
    block_sizes=(),
    width_elements=0.0,
    embedding=_NO_PARAMETERS,
    head=_NO_PARAMETERS,
    table_tensors=(),
    head_tensors=(),
    tied_tensors=(),
    tied_parameters=0,
    vocabulary_size=0,
    head_saved_elements=0.0,
    embedding_mask_bytes=0.0,
    matmul_flops_per_token=0.0,
    head_flops_per_token=0.0,
    attention=(),
    quantisable_parameters=0,
    expert_parameters=0,
    expert_count=0,
    experts_per_token=0,
    widest_elements=0,
    generates=False,
    inner_elements=0.0,
    unmodelled_kinds=frozenset(),
    unserved_kinds=frozenset(),
    weights=WeightInventory(),
    operators=OperatorBook(),
    shapes_known=False,
)


def profile_of_count(parameter_count: int) -> Profile:
    """A model of which only the number of parameters is known: all dense, no attention, no shapes."""
    return _SHAPELESS._replace(
        parameter_count=parameter_count,
        active_parameter_count=parameter_count,
        matmul_flops_per_token=2.0 * parameter_count,
        quantisable_parameters=parameter_count,
        weights=WeightInventory(parameter_count=parameter_count),
    )
