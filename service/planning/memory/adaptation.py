"""Small trained parameters beside frozen weights, and the width of the frozen weights.

LoRA: Hu et al. 2021 (two matrices of the rank beside each target); DoRA: Liu et al. 2024 (a magnitude for
each output in addition); QLoRA: Dettmers et al. 2023 (NF4 weights, scales per 64 weights quantised to 8 bits
again with an FP32 scale per 256); adapters: Houlsby et al. 2019 (two bottlenecks a block); prefix tuning: Li
and Liang 2021 (keys and values of virtual tokens in each layer); prompt tuning: Lester et al. 2021; scale:
Gao et al. 2023, LLaMA-Adapter V2 (a factor and a shift for each output of every matrix, the norms and biases,
and virtual tokens in each layer).
"""

from collections.abc import Iterator

from service.planning.models.architecture import LayerBlock
from service.planning.models.layers import Attention, LayerTensor, TensorSplit
from service.planning.models.profile import ModelProfile
from service.planning.precision import ELEMENT_BYTES, NumberFormat, TrainingRecipe
from service.planning.workload import Adaptation, AdaptationKind, FrozenWeightFormat

BASE_BYTES = {
    FrozenWeightFormat.NF4: 0.5 + 4.0 / 64,
    FrozenWeightFormat.NF4_DOUBLE: 0.5 + 1.0 / 64 + 4.0 / (64 * 256),
}
"""Bytes of a frozen weight: 4 bits and an FP32 scale per 64 weights, or scales of 8 bits with an FP32 scale
per 256 of them."""

LOW_RANK = frozenset({AdaptationKind.LORA, AdaptationKind.QLORA, AdaptationKind.DORA})

PREFIXED = frozenset({AdaptationKind.PREFIX, AdaptationKind.SCALE})
"""Kinds with virtual tokens in each layer."""

TRAINS_NORMS = frozenset({AdaptationKind.FULL, AdaptationKind.SCALE})
"""Kinds under which the weights of norms have gradients."""

LINEAR_NAMES = frozenset(
    {
        "query",
        "key",
        "value",
        "output",
        "gate",
        "up",
        "down",
        "query_down",
        "query_up",
        "key_value_down",
        "key_value_up",
        "query_key_value_gate",
        "input",
        "shared_gate",
        "shared_up",
        "shared_down",
    }
)
"""Matrices of blocks that are separate linear modules, unlike those of routed experts."""


def _list_low_rank_tensors(tensor: LayerTensor, adaptation: Adaptation) -> Iterator[LayerTensor]:
    """Yields both low-rank matrices of a matrix, split by tensor parallelism like the matrix."""
    *leading, inputs, outputs = tensor.shape
    into = tensor.split if tensor.split is not TensorSplit.COLUMN else TensorSplit.NONE
    out = tensor.split if tensor.split is not TensorSplit.ROW else TensorSplit.NONE
    yield LayerTensor("low_rank_in", (*leading, inputs, adaptation.rank), into)
    yield LayerTensor("low_rank_out", (*leading, adaptation.rank, outputs), out)
    if adaptation.kind is AdaptationKind.DORA:
        yield LayerTensor("magnitude", (*leading, outputs), out)


def list_adapted_tensors(block: LayerBlock, adaptation: Adaptation) -> Iterator[tuple[LayerTensor, int]]:
    """Yields the trained tensors of one repetition of a block, each with its number of occurrences."""
    if adaptation.kind in LOW_RANK:
        for tensor, count in block.list_tensors():
            if tensor.name in adaptation.targets and tensor.multiplied:
                for matrix in _list_low_rank_tensors(tensor, adaptation):
                    yield matrix, count
    if adaptation.kind is AdaptationKind.SCALE:
        yield from _list_scaling_tensors(block, adaptation)
    for layer in block.layers:
        if adaptation.kind is AdaptationKind.PREFIX and isinstance(layer, Attention):
            width = 2 * layer.key_value_heads * layer.head_size
            yield LayerTensor("prefix", (adaptation.tokens, width), TensorSplit.COLUMN), layer.count
        if adaptation.kind is AdaptationKind.ADAPTER and layer.kind in ("attention", "feed_forward"):
            width = getattr(layer, "hidden_size", 0)
            for shape in ((width, adaptation.rank), (adaptation.rank, width)):
                yield LayerTensor("adapter", shape, TensorSplit.NONE), layer.count
                yield LayerTensor("adapter_bias", shape[1:], TensorSplit.NONE), layer.count


def _list_scaling_tensors(block: LayerBlock, adaptation: Adaptation) -> Iterator[tuple[LayerTensor, int]]:
    """Yields the tensors that LLaMA-Adapter V2 trains in a block: vectors, factors and shifts, tokens."""
    for tensor, count in block.list_tensors():
        if tensor.name in LINEAR_NAMES and tensor.multiplied:
            split = tensor.split if tensor.split is not TensorSplit.ROW else TensorSplit.NONE
            yield LayerTensor("scale_and_shift", (2, *tensor.shape[:-2], tensor.shape[-1]), split), count
        elif not tensor.multiplied:
            yield tensor, count
    for layer in block.layers:
        if isinstance(layer, Attention):
            yield LayerTensor("tokens", (adaptation.tokens, layer.hidden_size), TensorSplit.NONE), layer.count


def list_prompt_tensors(profile: ModelProfile, adaptation: Adaptation) -> Iterator[tuple[LayerTensor, int]]:
    """Yields the virtual tokens that prompt tuning puts before the first block."""
    if adaptation.kind is AdaptationKind.PROMPT:
        yield LayerTensor("prompt", (adaptation.tokens, profile.widest_elements), TensorSplit.NONE), 1


def frozen_bytes(
    profile: ModelProfile, adaptation: Adaptation, recipe: TrainingRecipe, *, packs_head: bool = False
) -> tuple[float, float]:
    """Returns the mean bytes of a frozen parameter inside blocks, and of one outside them.

    Frozen weights have the width of the activations, matrices of a quantised base 4 bits; ``packs_head`` is
    true if the head is among them.
    """
    wide = ELEMENT_BYTES[recipe.activations]
    if adaptation.base is FrozenWeightFormat.PLAIN:
        return wide, wide
    outer = ELEMENT_BYTES[NumberFormat.BF16]
    inside = sum(profile.prefixes[-1]) or profile.parameter_count
    narrow = min(1.0, profile.quantisable_parameters / max(inside, 1))
    mean = narrow * BASE_BYTES[adaptation.base] + (1.0 - narrow) * outer
    head = sum(tensor.size * count for tensor, count in profile.head_tensors if tensor.multiplied)
    outside = profile.parameter_count - inside
    packed = head / outside if packs_head and outside > 0 else 0.0
    return mean, packed * BASE_BYTES[adaptation.base] + (1.0 - packed) * outer


def count_trained_parameters(profile: ModelProfile, adaptation: Adaptation) -> int:
    """Returns the number of trained parameters."""
    if adaptation.kind is AdaptationKind.FULL:
        return profile.parameter_count
    inside = sum(
        tensor.size * count * block.repeats
        for block in profile.blocks
        for tensor, count in list_adapted_tensors(block.block, adaptation)
    )
    return inside + sum(tensor.size * count for tensor, count in list_prompt_tensors(profile, adaptation))
