"""Operators of attention: over heads, over a latent cache, and over a compressed one."""

from collections.abc import Iterator

from service.planning.models.layers import Attention, CompressedAttention, LatentAttention
from service.planning.models.profile.layer_operators.kernels import KernelChoice
from service.planning.models.profile.layer_operators.matrices import (
    build_bias_gradients,
    build_matrices,
    join_matrices,
)
from service.planning.models.profile.layer_operators.templates import (
    AttentionTemplate,
    MovedElements,
    OperatorTemplate,
    StreamedTemplate,
)
from service.planning.models.profile.layer_operators.traffic import (
    SOFTMAX_FLOPS,
    build_activation,
    build_dropout,
    build_residual,
    build_rotary,
    compute_norm_traffic,
    split_traffic,
)


def list_attention_operators(layer: Attention, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields matrices, norms of the heads, the rotation, and scores with their weighted sum."""
    tensors = list(layer.list_tensors())
    cross = layer.cross_size is not None
    source = frozenset({"key", "value"}) if cross else frozenset()
    matrices = build_matrices(tensors, choice, least=layer.head_size, source=source)
    yield from join_matrices(matrices, choice)
    if choice.trained is None:
        yield from build_bias_gradients(tensors)
    if layer.query_rank is not None:
        yield StreamedTemplate("norm", *compute_norm_traffic(layer.query_rank, "rms", choice))
    yield from _list_head_norms(layer, choice)
    if layer.index_pool is not None:
        pooled = MovedElements(whole=2.0 * (layer.index_head_size or 0), kernels=1)
        yield StreamedTemplate("compression", pooled, pooled)
    if choice.rotary and layer.causal and not cross:
        yield build_rotary(_count_rotated_elements(layer), choice.fusion)
    yield _build_scores(layer, choice)
    if layer.gate != "none":
        yield build_activation(_count_result_elements(layer), choice, gated=True)
    if layer.dropout and not choice.serves:
        yield build_dropout(layer.hidden_size, choice.fusion)
    yield build_residual(layer.output_size or layer.hidden_size, choice.fusion)


def _count_rotated_elements(layer: Attention) -> int:
    """Counts elements of queries and of those keys that the layer itself computes."""
    heads = 0 if layer.key_value == "shared" else layer.key_value_heads
    return (layer.query_heads + heads) * layer.head_size


def _count_result_elements(layer: Attention) -> int:
    return layer.query_heads * (layer.value_head_size or layer.head_size)


def _list_head_norms(layer: Attention, choice: KernelChoice) -> Iterator[StreamedTemplate]:
    """Yields norms of queries and keys, and of the result."""
    if layer.query_key_norm != "none":
        yield StreamedTemplate(
            "norm", *split_traffic(compute_norm_traffic(_count_rotated_elements(layer), "rms", choice))
        )
    if layer.output_norm:
        yield StreamedTemplate(
            "norm", *split_traffic(compute_norm_traffic(_count_result_elements(layer), "rms", choice))
        )


def _build_scores(layer: Attention, choice: KernelChoice) -> AttentionTemplate:
    """Builds scores and weighted sum of all heads."""
    return AttentionTemplate(
        "attention",
        layer.query_heads,
        layer.key_value_heads,
        layer.head_size,
        layer.value_head_size or layer.head_size,
        layer.causal and layer.cross_size is None,
        float(layer.window_tokens or "inf"),
        float(layer.index_tokens or "inf"),
        choice.flash,
        choice.fused,
        index_flops=2.0 * (layer.index_heads or 0) * (layer.index_head_size or 0) * layer.index_share,
        fusion=choice.fusion,
        dropout=layer.dropout and not choice.serves,
        cross=layer.cross_size is not None,
    )


def list_latent_attention_operators(
    layer: LatentAttention, choice: KernelChoice
) -> Iterator[OperatorTemplate]:
    """Yields matrices, norms of the ranks, the rotation, and attention over the rebuilt keys and values."""
    tensors = list(layer.list_tensors())
    yield from join_matrices(build_matrices(tensors, choice), choice)
    ranks = layer.key_value_rank + (layer.query_rank or 0)
    yield StreamedTemplate("norm", *compute_norm_traffic(ranks, "rms", choice))
    if layer.rotary_head_size:
        rotated = (layer.query_heads + 1) * layer.rotary_head_size
        yield build_rotary(rotated, choice.fusion)
        # The rotary key is written after the rebuilt one of every head.
        keys = layer.query_heads * (layer.plain_head_size + layer.rotary_head_size)
        joined = MovedElements(split=2.0 * keys, kernels=2)
        yield StreamedTemplate("key_assembly", joined, joined)
    if layer.index_pool is not None:
        # Key and gate of each token, weighed by a softmax over its pool.
        weighed = 2.0 * (layer.index_head_size or 0)
        pooled = MovedElements(whole=2.0 * weighed, kernels=1, flops=SOFTMAX_FLOPS * weighed)
        yield StreamedTemplate("compression", pooled, pooled)
    yield AttentionTemplate(
        "attention",
        layer.query_heads,
        layer.query_heads,
        layer.plain_head_size + layer.rotary_head_size,
        layer.value_head_size,
        causal=True,
        window=float(layer.window_tokens or "inf"),
        attended=float(layer.index_tokens or "inf"),
        flash=choice.flash,
        fused=choice.fused,
        index_flops=2.0 * (layer.index_heads or 0) * (layer.index_head_size or 0) * layer.index_share,
        fusion=choice.fusion,
    )
    if layer.gate != "none":
        yield build_activation(layer.query_heads * layer.value_head_size, choice, gated=True)
    yield build_residual(layer.hidden_size, choice.fusion)


def list_compressed_attention_operators(
    layer: CompressedAttention, choice: KernelChoice
) -> Iterator[OperatorTemplate]:
    """Yields attention over a window and, with a compression, the pooling and attention over its entries."""
    tensors = list(layer.list_tensors())
    yield from join_matrices(build_matrices(tensors, choice), choice)
    query = layer.query_heads * layer.head_size
    yield StreamedTemplate("norm", *compute_norm_traffic(layer.query_rank + layer.head_size, "rms", choice))
    yield StreamedTemplate("norm", *split_traffic(compute_norm_traffic(query, "rms", choice)))
    # Positions are written into queries and key, and taken out of the result.
    yield build_rotary(2.0 * query + layer.head_size, choice.fusion)
    window = AttentionTemplate(
        "attention",
        layer.query_heads,
        1.0,
        layer.head_size,
        layer.head_size,
        causal=True,
        window=float(layer.window_tokens),
        attended=float("inf"),
        flash=choice.flash,
        fused=choice.fused,
        fusion=choice.fusion,
    )
    yield window
    if layer.compression is not None:
        each, scorer = 1.0 / layer.compression, layer.index_head_size or 0
        weighed = 2.0 * layer.series * (layer.head_size + scorer)
        moved = MovedElements(whole=2.0 * weighed, kernels=1 + bool(scorer), flops=SOFTMAX_FLOPS * weighed)
        yield StreamedTemplate("compression", moved, moved)
        yield window._replace(
            name="compressed_attention",
            window=float("inf"),
            attended=layer.compression * layer.index_entries if layer.index_entries else float("inf"),
            index_flops=2.0 * (layer.index_heads or 0) * scorer,
            times=each,
        )
    yield build_residual(layer.hidden_size, choice.fusion)
