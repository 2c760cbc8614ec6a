"""Small trained parameters beside frozen weights, and how wide the frozen weights are kept.

LoRA: Hu et al. 2021 (two matrices of the rank beside each target); DoRA: Liu et al. 2024 (a magnitude for
each output beside them); QLoRA: Dettmers et al. 2023 (NF4 weights, scales per 64 weights quantised to 8 bits
again with an FP32 scale per 256); adapters: Houlsby et al. 2019 (two bottlenecks a block); prefix tuning:
Li and Liang 2021 (keys and values of virtual tokens in each layer); prompt tuning: Lester et al. 2021;
scale: Gao et al. 2023, LLaMA-Adapter V2 (a factor and a shift for each output of every matrix, the norms and
biases, and virtual tokens in each layer).
"""

from collections.abc import Iterator

from service.planning.models.architecture import Block
from service.planning.models.layers import Attention, Split, Tensor
from service.planning.models.profile import Profile
from service.planning.precision import ELEMENT_BYTES, NumberFormat, TrainingRecipe
from service.planning.workload import Adaptation, AdaptationKind, BaseWeights

BASE_BYTES = {
    BaseWeights.NF4: 0.5 + 4.0 / 64,
    BaseWeights.NF4_DOUBLE: 0.5 + 1.0 / 64 + 4.0 / (64 * 256),
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
"""Matrices of blocks that are linear modules of their own, which routed experts are not."""


def _low_rank(tensor: Tensor, adaptation: Adaptation) -> Iterator[Tensor]:
    """Both low-rank matrices beside a matrix, cut by tensor parallelism where the matrix is."""
    *leading, inputs, outputs = tensor.shape
    into = tensor.split if tensor.split is not Split.COLUMN else Split.NONE
    out = tensor.split if tensor.split is not Split.ROW else Split.NONE
    yield Tensor("low_rank_in", (*leading, inputs, adaptation.rank), into)
    yield Tensor("low_rank_out", (*leading, adaptation.rank, outputs), out)
    if adaptation.kind is AdaptationKind.DORA:
        yield Tensor("magnitude", (*leading, outputs), out)


def adapted_tensors(block: Block, adaptation: Adaptation) -> Iterator[tuple[Tensor, int]]:
    """The trained tensors of one repetition of a block, each with how often it occurs there."""
    if adaptation.kind in LOW_RANK:
        for tensor, count in block.tensors():
            if tensor.name in adaptation.targets and tensor.multiplied:
                for matrix in _low_rank(tensor, adaptation):
                    yield matrix, count
    if adaptation.kind is AdaptationKind.SCALE:
        yield from _scaled(block, adaptation)
    for layer in block.layers:
        if adaptation.kind is AdaptationKind.PREFIX and isinstance(layer, Attention):
            width = 2 * layer.key_value_heads * layer.head_size
            yield Tensor("prefix", (adaptation.tokens, width), Split.COLUMN), layer.count
        if adaptation.kind is AdaptationKind.ADAPTER and layer.kind in ("attention", "feed_forward"):
            width = getattr(layer, "hidden_size", 0)
            for shape in ((width, adaptation.rank), (adaptation.rank, width)):
                yield Tensor("adapter", shape, Split.NONE), layer.count
                yield Tensor("adapter_bias", shape[1:], Split.NONE), layer.count


def _scaled(block: Block, adaptation: Adaptation) -> Iterator[tuple[Tensor, int]]:
    """What LLaMA-Adapter V2 trains in a block: vectors, a factor and a shift behind matrices, tokens."""
    for tensor, count in block.tensors():
        if tensor.name in LINEAR_NAMES and tensor.multiplied:
            split = tensor.split if tensor.split is not Split.ROW else Split.NONE
            yield Tensor("scale_and_shift", (2, *tensor.shape[:-2], tensor.shape[-1]), split), count
        elif not tensor.multiplied:
            yield tensor, count
    for layer in block.layers:
        if isinstance(layer, Attention):
            yield Tensor("tokens", (adaptation.tokens, layer.hidden_size), Split.NONE), layer.count


def prompt_tensors(profile: Profile, adaptation: Adaptation) -> Iterator[tuple[Tensor, int]]:
    """The virtual tokens that prompt tuning puts before the first block."""
    if adaptation.kind is AdaptationKind.PROMPT:
        yield Tensor("prompt", (adaptation.tokens, profile.widest_elements), Split.NONE), 1


def frozen_bytes(
    profile: Profile, adaptation: Adaptation, recipe: TrainingRecipe, *, packs_head: bool = False
) -> tuple[float, float]:
    """Mean bytes of a frozen parameter inside blocks, and of one outside them.

    Frozen weights are kept at the width of the activations, matrices of a quantised base in 4 bits;
    ``packs_head`` says whether that of the head is among them.
    """
    wide = ELEMENT_BYTES[recipe.activations]
    if adaptation.base is BaseWeights.PLAIN:
        return wide, wide
    outer = ELEMENT_BYTES[NumberFormat.BF16]
    inside = sum(profile.prefixes[-1]) or profile.parameter_count
    narrow = min(1.0, profile.quantisable_parameters / max(inside, 1))
    mean = narrow * BASE_BYTES[adaptation.base] + (1.0 - narrow) * outer
    head = sum(tensor.size * count for tensor, count in profile.head_tensors if tensor.multiplied)
    outside = profile.parameter_count - inside
    packed = head / outside if packs_head and outside > 0 else 0.0
    return mean, packed * BASE_BYTES[adaptation.base] + (1.0 - packed) * outer


def trained_parameters(profile: Profile, adaptation: Adaptation) -> int:
    """How many parameters are trained."""
    if adaptation.kind is AdaptationKind.FULL:
        return profile.parameter_count
    inside = sum(
        tensor.size * count * block.repeats
        for block in profile.blocks
        for tensor, count in adapted_tensors(block.block, adaptation)
    )
    return inside + sum(tensor.size * count for tensor, count in prompt_tensors(profile, adaptation))
