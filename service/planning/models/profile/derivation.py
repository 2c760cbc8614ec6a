"""Profile of a model, derived from its architecture."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from service.planning.errors import PlanningError
from service.planning.hardware.traffic import ExpertChoice
from service.planning.models.architecture import MODELLED_INPUTS, MODELLED_KINDS, Architecture, LayerBlock
from service.planning.models.layers import Attention, TensorSplit
from service.planning.models.profile.activations import (
    ACTIVATION_KINDS,
    ActivationTerms,
    block_activations,
    inner_elements,
    selected_activations,
)
from service.planning.models.profile.attention import AttentionWork, attention_work
from service.planning.models.profile.counts import (
    compute_embedding_mask_bytes,
    compute_image_expert_share,
    count_active_parameters,
    count_expert_blocks,
    count_head_saved_elements,
    count_matmul_flops,
    count_parameters,
    count_quantisable_parameters,
    count_sizes,
    get_vocabulary_size,
)
from service.planning.models.profile.iteration import iteration_elements
from service.planning.models.profile.layer_operators import OperatorCatalog
from service.planning.models.profile.limits import check_layers, check_parameters, check_written
from service.planning.models.profile.model import BlockProfile, ModelProfile, StageParameters
from service.planning.models.profile.parts import (
    ModelParts,
    get_block_width,
    merge_equal_blocks,
    split_architecture,
)
from service.planning.models.profile.runs import RunningSums, running_sums
from service.planning.models.profile.weights import list_lookup_tables, weight_inventory


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
    parts = split_architecture(architecture)
    starts = accumulate((block.count for block in parts.in_order), initial=0)
    profiles = _build_block_profiles(parts.in_order, starts)
    parameter_count = count_parameters(parts)
    check_parameters(architecture, parameter_count)
    check_layers(architecture)
    attention = _build_attention_work(parts)
    generates = any(work.caches for work in attention)
    return ModelProfile(
        parameter_count=parameter_count,
        active_parameter_count=count_active_parameters(parts),
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
        vocabulary_size=get_vocabulary_size(parts),
        head_saved_elements=count_head_saved_elements(parts),
        embedding_mask_bytes=compute_embedding_mask_bytes(architecture),
        matmul_flops_per_token=count_matmul_flops(parts),
        head_flops_per_token=sum(2.0 * head.input_size * head.output_size for head in parts.language_heads),
        attention=attention,
        quantisable_parameters=count_quantisable_parameters(parts),
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
        expert_blocks=count_expert_blocks(parts),
        encodes=any(item.kind == "source_tokens" for item in architecture.inputs),
        sampled=architecture if _is_sample_based(architecture, parts.blocks) else None,
        passed=None if generates else architecture,
        described=architecture,
        image_expert_share=compute_image_expert_share(parts),
    )


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
    known = {replace(block, count=1): _build_block_profile(block) for block in merge_equal_blocks(blocks)}
    return tuple(
        known[replace(block, count=1)]._replace(repeats=block.count, block=block, start=start)
        for block, start in zip(blocks, starts, strict=False)
    )


def _reset_counts(blocks: Iterable[LayerBlock]) -> tuple[LayerBlock, ...]:
    """Returns each block with a count of one."""
    return tuple(replace(block, count=1) for block in blocks)


def _sum_activations(profiles: Iterable[BlockProfile]) -> ActivationTerms:
    """Returns the activation terms of all blocks together."""
    activations = ActivationTerms()
    for profile in profiles:
        activations = activations.add_scaled(profile.activations, profile.repeats)
    return activations


def _count_activation_elements(block: BlockProfile) -> float:
    return block.activations.whole_elements + block.activations.split_elements


def _build_attention_work(parts: ModelParts) -> tuple[AttentionWork, ...]:
    """Returns the attention of all blocks.

    Cross-attention alone does not decode, as its text is read anew.
    """
    generates = bool(parts.language_heads) or not (parts.architecture.heads or parts.architecture.embeddings)
    attention = attention_work(parts.blocks, generates=generates)
    if any(work.caches and not work.cross for work in attention):
        return attention
    return tuple(work._replace(caches=False) for work in attention)


def _list_unmodelled_kinds(parts: ModelParts) -> frozenset[str]:
    known = {layer for block in list_lookup_tables(parts.architecture, parts.loose) for layer in block.layers}
    unmodelled = {
        layer.kind for layer in parts.layers if layer.kind not in MODELLED_KINDS and layer not in known
    }
    inputs = parts.architecture.inputs
    return frozenset(unmodelled | {item.kind for item in inputs if item.kind not in MODELLED_INPUTS})


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
