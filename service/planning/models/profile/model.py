"""Coefficients of an architecture per token, which every estimate multiplies.

They are derived once per architecture by :func:`build_profile`; a catalog model keeps its profile.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from service.planning.errors import PlanningError
from service.planning.hardware.traffic import ExpertChoice
from service.planning.models.architecture import (
    MODELLED_INPUTS,
    MODELLED_KINDS,
    Architecture,
    LayerBlock,
    ModelHead,
    ModelLayer,
)
from service.planning.models.layers import (
    Attention,
    LayerTensor,
    Linear,
    MixtureOfExperts,
    TensorSplit,
)
from service.planning.models.positions import BlockPositions, SampleShape
from service.planning.models.profile.activations import (
    ACTIVATION_KINDS,
    ActivationTerms,
    block_activations,
    inner_elements,
    selected_activations,
)
from service.planning.models.profile.attention import AttentionWork, attention_work
from service.planning.models.profile.iteration import IterationElements, iteration_elements
from service.planning.models.profile.layer_operators import OperatorCatalog
from service.planning.models.profile.limits import check_depth, check_layers, check_parameters, check_written
from service.planning.models.profile.runs import RunningSums, running_sums
from service.planning.models.profile.weights import (
    WeightInventory,
    list_lookup_tables,
    weight_inventory,
)


class BlockProfile(NamedTuple):
    """One block, counted once; the model has ``repeats`` of it in a row."""

    repeats: int
    split_parameters: int
    whole_parameters: int
    expert_parameters: int
    activations: ActivationTerms
    width_elements: float
    """Elements per token of the block's input, which recomputation saves."""
    selected: ActivationTerms
    """Tensors that selective recomputation by operator saves."""
    block: LayerBlock
    start: int
    """Number of single blocks before it."""
    positions: BlockPositions | None = None
    """Positions that the coefficients are summed over; None where they are per token."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Split, whole and expert parameters."""
        return self.split_parameters, self.whole_parameters, self.expert_parameters


class StageParameters(NamedTuple):
    """Parameters of a run of blocks, by how tensor and expert parallelism divide them.

    ``tables`` are embedding tables of the fullest replica, which no other replica holds.
    """

    split: float
    whole: float
    expert: float
    tables: float = 0.0


class ModelProfile(NamedTuple):
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
    """Running sums over single blocks: the activation terms, those that selective recomputation saves, and

    the width of the input.
    """
    deepest: BlockProfile | None
    """The block with the largest activations."""
    block_sizes: tuple[tuple[int, int, int], ...]
    """Distinct triples of split, whole and expert parameters of a block."""
    width_elements: float
    """Sum over all blocks of the elements per token of their input."""
    embedding: StageParameters
    head: StageParameters
    """Parameters of the heads, without tied tensors, and of the layers outside blocks."""
    table_tensors: tuple[LayerTensor, ...]
    head_tensors: tuple[tuple[LayerTensor, int], ...]
    """Tensors of the heads and of the layers outside blocks, each with its number of occurrences."""
    tied_tensors: tuple[LayerTensor, ...]
    tied_parameters: int
    vocabulary_size: int
    head_saved_elements: float
    """Elements per token that the backward pass needs after the last block: inputs of norm and head."""
    embedding_mask_bytes: float
    matmul_flops_per_token: float
    """Forward FLOPs per token of all matrix multiplications with weights: 2 per active weight."""
    head_flops_per_token: float
    """Part of ``matmul_flops_per_token`` in the language-model head."""
    attention: tuple[AttentionWork, ...]
    quantisable_parameters: int
    """Weights of matrices inside blocks, which quantised checkpoints store narrow."""
    expert_parameters: int
    """Weights of routed experts; quantised checkpoints store them narrow."""
    expert_count: int
    experts_per_token: int
    expert_choice: ExpertChoice
    """Experts of a token, and the groups that they lie in."""
    widest_elements: int
    """Largest width of a block's input."""
    generates: bool
    """True if the model decodes token by token and stores keys and values.

    Causal attention does, if a head yields tokens, or if blocks alone are described, without embeddings.
    """
    inner_elements: float
    """Largest live intermediate per token of any layer, divided by tensor parallelism."""
    unmodelled_kinds: frozenset[str]
    """Kinds of layers whose work and caches are not known."""
    unserved_kinds: frozenset[str]
    """Unmodelled kinds that a decoder of tokens needs, so that the model cannot be served."""
    weights: WeightInventory
    operators: OperatorCatalog
    """Matrix products and memory traffic of the blocks, in their order."""
    iteration_elements: IterationElements = IterationElements()
    """Largest intermediates per token under inference."""
    expert_blocks: int = 0
    """Blocks with routed experts."""
    encodes: bool = False
    """True if an encoder reads the input and a decoder only its own output, by cross-attention."""
    shapes_known: bool = True
    """False for a model of which only the number of parameters is known."""
    sampled: Architecture | None = None
    """Architecture of a model whose memory is estimated by the sample.

    None if per-token coefficients suffice.
    """
    sample: SampleShape | None = None
    """Sample that one token of the profile stands for; None if a token is a token."""
    passed: Architecture | None = None
    """Architecture of a model served by forward passes over whole requests; None for a model that decodes."""
    described: Architecture | None = None
    """Architecture of the model, before padding; None where only the number of parameters is known."""
    is_padded: bool = False
    """True if the coefficients are those of more heads or experts than the model has."""


def get_block_width(block: LayerBlock) -> int:
    """Returns the elements per position of the input of a block."""
    layer = block.layers[0]
    for name in ("hidden_size", "size", "input_size", "input_channels"):
        width = getattr(layer, name, None)
        if isinstance(width, int):
            return width
    return 0


def count_sizes(counted: Iterable[tuple[LayerTensor, int]]) -> tuple[int, int, int]:
    """Returns the elements of tensors that tensor parallelism splits, of the whole ones, and of experts."""
    split = whole = expert = 0
    for tensor, count in counted:
        if tensor.split is TensorSplit.EXPERT:
            expert += tensor.size * count
        elif tensor.split is TensorSplit.NONE:
            whole += tensor.size * count
        else:
            split += tensor.size * count
    return split, whole, expert


def _build_block_profile(block: LayerBlock) -> BlockProfile:
    width = get_block_width(block)
    return BlockProfile(
        block.count,
        *count_sizes(block.list_tensors()),
        activations=block_activations(block),
        width_elements=width,
        selected=selected_activations(block, width),
        block=block,
        start=0,
    )


def activation_sums(profiles: Iterable[BlockProfile]) -> RunningSums:
    """Returns running sums over single blocks: activation terms, selectively saved ones, and widths."""
    rows = (((*b.activations, *b.selected, b.width_elements), b.repeats) for b in profiles)
    return running_sums(rows, 2 * len(ActivationTerms._fields) + 1)


def _build_block_profiles(blocks: tuple[LayerBlock, ...], starts: Iterable[int]) -> tuple[BlockProfile, ...]:
    """Builds one profile per block in order; blocks of the same content are evaluated once."""
    known = {replace(block, count=1): _build_block_profile(block) for block in _merge_equal_blocks(blocks)}
    return tuple(
        known[replace(block, count=1)]._replace(repeats=block.count, block=block, start=start)
        for block, start in zip(blocks, starts, strict=False)
    )


def _merge_equal_blocks(blocks: tuple[LayerBlock, ...]) -> tuple[LayerBlock, ...]:
    """Merges blocks of the same content: a hybrid of a hundred layers has three or four of them."""
    counts: Counter[LayerBlock] = Counter()
    for block in blocks:
        counts[replace(block, count=1)] += block.count
    return tuple(replace(block, count=count) for block, count in counts.items())


def is_loose(layer: ModelLayer) -> bool:
    """Returns true if a layer is no unit of depth: a single matrix or less, outside blocks."""
    if isinstance(layer, LayerBlock):
        return not layer.unit
    return isinstance(layer, Linear) or not any(tensor.multiplied for tensor in layer.list_tensors())


@dataclass(frozen=True)
class _ModelParts:
    """An architecture split into its units of depth and the layers outside them."""

    architecture: Architecture
    in_order: tuple[LayerBlock, ...]
    """Units of depth, in order."""
    loose_in_order: tuple[LayerBlock, ...]
    """Layers outside the units of depth, in order."""
    blocks: tuple[LayerBlock, ...]
    """All blocks, equal ones together."""
    deep: tuple[LayerBlock, ...]
    """Blocks that are units of depth."""
    loose: tuple[LayerBlock, ...]
    """Blocks that are no units of depth."""

    @cached_property
    def experts(self) -> list[MixtureOfExperts]:
        """One of each of the layers with experts."""
        return [layer for layer in self.layers if isinstance(layer, MixtureOfExperts)]

    @cached_property
    def layers(self) -> list[ModelLayer]:
        """One of each of the layers."""
        return [layer for block in self.blocks for layer in block.layers]

    @cached_property
    def tensors(self) -> list[tuple[LayerTensor, int]]:
        """Tensors inside blocks, each with its number of occurrences."""
        return [(tensor, n * block.count) for block in self.blocks for tensor, n in block.list_tensors()]

    @cached_property
    def table_tensors(self) -> tuple[LayerTensor, ...]:
        """Tensors of the embeddings."""
        table = self.architecture.embeddings
        return tuple(table.list_tensors()) if table else ()

    @cached_property
    def head_tensors(self) -> list[tuple[LayerTensor, bool]]:
        """Tensors of the heads, each with a flag that is true if it is tied to the embeddings."""
        return [
            (tensor, head.kind in self.architecture.tied and tensor.name == "weight")
            for head in self.architecture.heads
            for tensor in head.list_tensors()
        ]

    @cached_property
    def tied_tensors(self) -> tuple[LayerTensor, ...]:
        """Tensors that the heads share with the embeddings."""
        return tuple(tensor for tensor, tied in self.head_tensors if tied)

    @cached_property
    def own_tensors(self) -> list[LayerTensor]:
        """Tensors of the heads that are not tied."""
        return [tensor for tensor, tied in self.head_tensors if not tied]

    @cached_property
    def tail_tensors(self) -> tuple[tuple[LayerTensor, int], ...]:
        """Tensors of the heads and of the layers outside blocks, each with its number of occurrences."""
        loose = [(tensor, n * block.count) for block in self.loose for tensor, n in block.list_tensors()]
        return (*loose, *((tensor, 1) for tensor in self.own_tensors))

    @cached_property
    def language_heads(self) -> list[ModelHead]:
        """Heads that yield tokens."""
        return [head for head in self.architecture.heads if head.kind == "language_model"]


def _split_architecture(architecture: Architecture) -> _ModelParts:
    """Splits an architecture into its parts; refuses one that is too deep."""
    blocks = tuple(architecture.list_blocks())
    placed = tuple(zip(architecture.layers, blocks, strict=True))
    check_depth([0 if is_loose(layer) else block.count for layer, block in placed])
    in_order = tuple(block for layer, block in placed if not is_loose(layer))
    loose = tuple(block for layer, block in placed if is_loose(layer))
    return _ModelParts(
        architecture=architecture,
        in_order=in_order,
        loose_in_order=loose,
        blocks=_merge_equal_blocks(blocks),
        deep=_merge_equal_blocks(in_order),
        loose=_merge_equal_blocks(loose),
    )


def _count_fixed_parameters(parts: _ModelParts) -> int:
    """Returns the parameters of embeddings and heads, a tied tensor once."""
    return sum(tensor.size for tensor in (*parts.table_tensors, *parts.own_tensors))


def _count_parameters(parts: _ModelParts) -> int:
    return _count_fixed_parameters(parts) + sum(tensor.size * n for tensor, n in parts.tensors)


def _count_active_parameters(parts: _ModelParts) -> int:
    active = round(sum(tensor.size * tensor.active * n for tensor, n in parts.tensors))
    return _count_fixed_parameters(parts) + active


def _count_quantisable_parameters(parts: _ModelParts) -> int:
    return sum(
        tensor.size * n * block.count
        for block in parts.deep
        for tensor, n in block.list_tensors()
        if tensor.multiplied and tensor.name != "router"
    )


def _get_vocabulary_size(parts: _ModelParts) -> int:
    return parts.language_heads[0].output_size if parts.language_heads else 0


def _compute_embedding_mask_bytes(architecture: Architecture) -> float:
    table = architecture.embeddings
    return float(table.size) if table and table.dropout else 0.0


def _reset_counts(blocks: Iterable[LayerBlock]) -> tuple[LayerBlock, ...]:
    """Returns each block with a count of one."""
    return tuple(replace(block, count=1) for block in blocks)


def _count_matmul_flops(parts: _ModelParts) -> float:
    """Returns the forward FLOPs per token of all matrix multiplications with weights."""
    heads = sum(2.0 * tensor.size * tensor.multiplied for tensor, _ in parts.head_tensors)
    return heads + sum(2.0 * tensor.elements * tensor.multiplied * n for tensor, n in parts.tensors)


def _count_head_saved_elements(parts: _ModelParts) -> float:
    """Returns the elements per token that the backward pass needs after the last block."""
    heads = parts.language_heads
    own = heads[0].input_size if heads else 0
    return own + sum(block_activations(block).whole_elements * block.count for block in parts.loose)


def _sum_activations(profiles: Iterable[BlockProfile]) -> ActivationTerms:
    """Returns the activation terms of all blocks together."""
    activations = ActivationTerms()
    for profile in profiles:
        activations = activations.add_scaled(profile.activations, profile.repeats)
    return activations


def _count_activation_elements(block: BlockProfile) -> float:
    return block.activations.whole_elements + block.activations.split_elements


def _build_attention_work(parts: _ModelParts) -> tuple[AttentionWork, ...]:
    """Returns the attention of all blocks.

    Cross-attention alone does not decode, as its text is read anew.
    """
    generates = bool(parts.language_heads) or not (parts.architecture.heads or parts.architecture.embeddings)
    attention = attention_work(parts.blocks, generates=generates)
    if any(work.caches and not work.cross for work in attention):
        return attention
    return tuple(work._replace(caches=False) for work in attention)


def _list_unmodelled_kinds(parts: _ModelParts) -> frozenset[str]:
    known = {layer for block in list_lookup_tables(parts.architecture, parts.loose) for layer in block.layers}
    unmodelled = {
        layer.kind for layer in parts.layers if layer.kind not in MODELLED_KINDS and layer not in known
    }
    inputs = parts.architecture.inputs
    return frozenset(unmodelled | {item.kind for item in inputs if item.kind not in MODELLED_INPUTS})


def _count_expert_blocks(parts: _ModelParts) -> int:
    return sum(
        block.count
        for block in parts.deep
        if any(isinstance(layer, MixtureOfExperts) for layer in block.layers)
    )


def build_profile(architecture: Architecture) -> ModelProfile:
    """Derives the coefficients of ``architecture``.

    Parameters are counted as PyTorch counts those of the model's class: a tied tensor once, buffers not at
    all. FLOPs are two per multiplication and addition. Norms and matrices outside blocks are no unit of
    depth: they count with the head. Raises :class:`PlanningError` above ``MOST_BLOCKS`` blocks,
    ``MOST_LAYERS`` layers or ``MOST_PARAMETERS`` parameters.
    """
    try:
        return _build_profile(architecture)
    except PlanningError as error:
        raise _locate_error(architecture, error) from error


def _locate_error(architecture: Architecture, error: PlanningError) -> PlanningError:
    """Returns the error of a layer with the layer's place in the architecture; another one as it is."""
    for place, layer in enumerate(architecture.layers):
        inner = layer.layers if isinstance(layer, LayerBlock) else (layer,)
        for number, each in enumerate(inner):
            try:
                list(each.list_tensors())
            except PlanningError as found:
                within = f"/layers/{number}" if isinstance(layer, LayerBlock) else ""
                return PlanningError(found.code, f"/layers/{place}{within}{found.pointer}", found.detail)
    return error


def _build_profile(architecture: Architecture) -> ModelProfile:
    check_written(architecture)
    parts = _split_architecture(architecture)
    starts = accumulate((block.count for block in parts.in_order), initial=0)
    profiles = _build_block_profiles(parts.in_order, starts)
    parameter_count = _count_parameters(parts)
    check_parameters(architecture, parameter_count)
    check_layers(architecture)
    attention = _build_attention_work(parts)
    generates = any(work.caches for work in attention)
    return ModelProfile(
        parameter_count=parameter_count,
        active_parameter_count=_count_active_parameters(parts),
        blocks=profiles,
        block_count=sum(profile.repeats for profile in profiles),
        prefixes=running_sums(((profile.sizes, profile.repeats) for profile in profiles), 3),
        activations=_sum_activations(profiles),
        activation_prefixes=activation_sums(profiles),
        deepest=max(profiles, key=_count_activation_elements, default=None),
        block_sizes=tuple({profile.sizes for profile in profiles}),
        width_elements=float(sum(profile.width_elements * profile.repeats for profile in profiles)),
        embedding=StageParameters(*count_sizes((tensor, 1) for tensor in parts.table_tensors)),
        head=StageParameters(*count_sizes(parts.tail_tensors)),
        table_tensors=parts.table_tensors,
        head_tensors=parts.tail_tensors,
        tied_tensors=parts.tied_tensors,
        tied_parameters=sum(tensor.size for tensor in parts.tied_tensors),
        vocabulary_size=_get_vocabulary_size(parts),
        head_saved_elements=_count_head_saved_elements(parts),
        embedding_mask_bytes=_compute_embedding_mask_bytes(architecture),
        matmul_flops_per_token=_count_matmul_flops(parts),
        head_flops_per_token=sum(2.0 * head.input_size * head.output_size for head in parts.language_heads),
        attention=attention,
        quantisable_parameters=_count_quantisable_parameters(parts),
        expert_parameters=sum(
            tensor.size * n for tensor, n in parts.tensors if tensor.split is TensorSplit.EXPERT
        ),
        expert_count=max((layer.expert_count for layer in parts.experts), default=0),
        experts_per_token=max((layer.experts_per_token for layer in parts.experts), default=0),
        expert_choice=max((layer.choice for layer in parts.experts), default=ExpertChoice(0.0)),
        widest_elements=max(map(get_block_width, parts.deep), default=0),
        generates=generates,
        inner_elements=max(map(inner_elements, parts.layers), default=0.0),
        unmodelled_kinds=_list_unmodelled_kinds(parts),
        unserved_kinds=_list_unserved_kinds(architecture, parts.blocks),
        weights=weight_inventory(architecture, parts.in_order, parts.loose_in_order),
        operators=OperatorCatalog(_reset_counts(parts.in_order), parts.loose, architecture.heads),
        iteration_elements=iteration_elements(parts.layers),
        expert_blocks=_count_expert_blocks(parts),
        encodes=any(item.kind == "source_tokens" for item in architecture.inputs),
        sampled=architecture if _is_sample_based(architecture, parts.blocks) else None,
        passed=None if generates else architecture,
        described=architecture,
    )


def _is_sample_based(architecture: Architecture, blocks: tuple[LayerBlock, ...]) -> bool:
    """Returns true if blocks run over other positions than tokens, or save more than a per-token count."""
    layers = [layer for block in blocks for layer in block.layers]
    return (
        any(item.kind not in MODELLED_INPUTS for item in architecture.inputs)
        or any(layer.kind not in ACTIVATION_KINDS for layer in layers)
        or any(isinstance(layer, Attention) and layer.score_bias for layer in layers)
    )


def _list_unserved_kinds(architecture: Architecture, blocks: tuple[LayerBlock, ...]) -> frozenset[str]:
    """Returns the kinds of layers and inputs that prevent serving the model's tokens.

    A tower beside the decoder, such as that of images, stores no cache; its weights are known.
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
_SHAPELESS = ModelProfile(
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
    expert_choice=ExpertChoice(0.0),
    widest_elements=0,
    generates=False,
    inner_elements=0.0,
    unmodelled_kinds=frozenset(),
    unserved_kinds=frozenset(),
    weights=WeightInventory(),
    operators=OperatorCatalog(),
    shapes_known=False,
)


def build_profile_from_count(parameter_count: int) -> ModelProfile:
    """Builds the profile of a model of which only the number of parameters is known.

    Dense, without shapes.
    """
    return _SHAPELESS._replace(
        parameter_count=parameter_count,
        active_parameter_count=parameter_count,
        matmul_flops_per_token=2.0 * parameter_count,
        quantisable_parameters=parameter_count,
        weights=WeightInventory(parameter_count=parameter_count),
    )
