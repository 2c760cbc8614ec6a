"""Parts of an architecture: its units of depth, and the layers outside of them."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from service.planning.models.architecture import Architecture, LayerBlock, ModelHead, ModelLayer
from service.planning.models.layers import LayerTensor, Linear, MixtureOfExperts
from service.planning.models.profile.limits import check_depth


def get_block_width(block: LayerBlock) -> int:
    """Returns the elements per position of the input of a block."""
    layer = block.layers[0]
    for name in ("hidden_size", "size", "input_size", "input_channels"):
        width = getattr(layer, name, None)
        if isinstance(width, int):
            return width
    return 0


def is_loose(layer: ModelLayer) -> bool:
    """Returns true if a layer is no unit of depth: a single matrix or less, outside blocks."""
    if isinstance(layer, LayerBlock):
        return not layer.unit
    return isinstance(layer, Linear) or not any(tensor.multiplied for tensor in layer.list_tensors())


def merge_equal_blocks(blocks: tuple[LayerBlock, ...]) -> tuple[LayerBlock, ...]:
    """Merges blocks of the same content: a hybrid of a hundred layers has three or four of them."""
    counts: Counter[LayerBlock] = Counter()
    for block in blocks:
        counts[replace(block, count=1)] += block.count
    return tuple(replace(block, count=count) for block, count in counts.items())


@dataclass(frozen=True)
class ModelParts:
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


def split_architecture(architecture: Architecture) -> ModelParts:
    """Splits an architecture into its parts; refuses one that is too deep."""
    blocks = tuple(architecture.list_blocks())
    placed = tuple(zip(architecture.layers, blocks, strict=True))
    check_depth([0 if is_loose(layer) else block.count for layer, block in placed])
    in_order = tuple(block for layer, block in placed if not is_loose(layer))
    loose = tuple(block for layer, block in placed if is_loose(layer))
    return ModelParts(
        architecture=architecture,
        in_order=in_order,
        loose_in_order=loose,
        blocks=merge_equal_blocks(blocks),
        deep=merge_equal_blocks(in_order),
        loose=merge_equal_blocks(loose),
    )
