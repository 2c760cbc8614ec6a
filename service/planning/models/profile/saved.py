"""Saved tensors of a layer for one instance of its block, over the block's own positions.

Elements are counted where PyTorch's autograd saves them, as in ``activations``; :func:`sampled_terms` covers
convolutions, pooling, lookups and adaptive norms. Checked against PyTorch by
``tests/oracles/tower_memory.py``.
"""

from service.planning.models.architecture import LayerBlock
from service.planning.models.layers import (
    Activation,
    Attention,
    Convolution,
    EmbeddingTable,
    Interaction,
    LearnedVectors,
    Modulation,
    Resampling,
    SimpleLayer,
)
from service.planning.models.positions import BlockPositions, LayerPositions
from service.planning.models.profile.activations import (
    ActivationTerms,
    TrainedMatrices,
    activation_terms,
    count_saved_inputs,
)

INDEX_BYTES = 8.0
"""Bytes of an index into a table, or into the cells that a maximum was taken of (64 bit)."""

NO_TERMS = ActivationTerms()


def scale_to_positions(terms: ActivationTerms, positions: float, seen: float = 0.0) -> ActivationTerms:
    """Scales terms per position to all positions, and scores to all pairs of positions."""
    pairs = positions * seen
    scaled = ActivationTerms(*[term * positions for term in terms])
    return scaled._replace(score_elements=terms.score_elements * pairs, score_bytes=terms.score_bytes * pairs)


def _compute_attention_terms(
    layer: Attention, places: LayerPositions, trained: TrainedMatrices | None
) -> ActivationTerms:
    """Returns queries and results of each position, and keys and values of each position that is read."""
    entering, _, context = places
    terms = activation_terms(layer, trained)
    seen = min(context, layer.window_tokens or context)
    crosses = layer.cross_size is not None
    found = scale_to_positions(terms, entering, seen)
    if crosses:
        heads = 0 if layer.key_value == "shared" else layer.key_value_heads
        key = heads * layer.head_size
        read = key + heads * (layer.value_head_size or layer.head_size)
        normed = key if layer.query_key_norm != "none" else 0
        source = (layer.cross_size or 0) * count_saved_inputs(trained, "key", "value")
        elsewhere = context - entering
        found = found._replace(
            # The source is one tensor for all blocks that read it.
            whole_elements=found.whole_elements - source * entering,
            whole_inputs=found.whole_inputs - source * entering,
            split_elements=found.split_elements + (read + normed) * elsewhere,
            split_normed=found.split_normed + (normed if terms.split_normed else 0) * elsewhere,
            expanded_elements=terms.expanded_elements * context,
        )
    if not layer.score_bias:
        return found
    # A kernel that does not store scores gives no gradient of a bias that is added to them.
    return found._replace(
        split_elements=found.split_elements + found.score_elements + found.expanded_elements,
        whole_bytes=found.whole_bytes + found.score_bytes,
        statistics_bytes=0.0,
        score_elements=0.0,
        score_bytes=0.0,
        expanded_elements=0.0,
    )


def _count_modulation_tensors(vectors: int) -> int:
    """Returns the saved tensors of a norm's output or a layer's result, for the gradient of factors.

    Shift, scale and gate stand in this order; four are two scales and two gates, nine share one norm.
    """
    return {4: 4, 9: 5}.get(vectors, (vectors + 1) // 3 + vectors // 3)


def sampled_terms(
    layer: SimpleLayer, places: LayerPositions, trained: TrainedMatrices | None = None
) -> ActivationTerms:
    """Returns the tensors that the backward pass of a layer needs, for one instance of its block.

    A convolution saves its input (that of a shortcut is the block's, which its first layer saves), a maximum
    its input and an index for each output cell, a lookup its indices and offsets, an adaptive norm the
    tensors that it multiplies.
    """
    entering, leaving, _ = places
    match layer:
        case Attention():
            found = _compute_attention_terms(layer, places, trained)
        case Convolution():
            kept = (
                0.0
                if layer.shortcut
                else layer.input_channels * entering * count_saved_inputs(trained, "kernel")
            )
            found = ActivationTerms(whole_elements=kept, whole_inputs=kept)
        case Activation():
            found = ActivationTerms(whole_elements=float(layer.size * entering))
        case Resampling(channels=int(channels)):
            found = ActivationTerms(
                whole_elements=float(channels * entering), whole_bytes=INDEX_BYTES * channels * leaving
            )
        case EmbeddingTable():
            found = ActivationTerms(whole_bytes=INDEX_BYTES * (layer.lookups_per_sample + 1.0) * entering)
        case Interaction():
            found = ActivationTerms(whole_elements=float(layer.features * layer.size * entering))
        case Modulation():
            kept = _count_modulation_tensors(layer.vectors // layer.streams) * layer.hidden_size * entering
            condition = 0 if layer.shared else layer.condition_size
            found = ActivationTerms(whole_elements=float(kept + condition))
        case LearnedVectors():
            multiplied = {"layer_scale": 1, "modulation": _count_modulation_tensors(layer.rows)}.get(
                layer.purpose, 0
            )
            found = ActivationTerms(whole_elements=float(multiplied * layer.size * entering))
        case _:
            found = scale_to_positions(activation_terms(layer, trained), entering, entering)
    return found


def sampled_activations(
    block: LayerBlock, positions: BlockPositions, trained: TrainedMatrices | None
) -> ActivationTerms:
    """Returns the saved activations of one repetition of a block over its positions of one sample."""
    terms = NO_TERMS
    for layer, places in positions.list_passes(block):
        terms = terms.add_scaled(sampled_terms(layer, places, trained), layer.count * positions.instances)
    return terms
