"""Bounds of the size of a model, far beyond any that is built, so that sums over it stay exact."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock, ModelLayer
from service.planning.models.layers import EmbeddingTable, SimpleLayer

MOST_BLOCKS = 10_000
"""Maximum units of depth, each with its repetitions: far beyond the deepest models."""

MOST_LAYERS = 1_000_000
"""Maximum layers inside and outside blocks, with all repetitions; also tables of a recommender."""

MOST_WRITTEN = 10_000
"""Maximum written layers, each once whatever its repetitions: some thirty times those of any model."""

MOST_DIFFERENT = 1000
"""Maximum different layers, tables of a recommender aside: some fifteen times those of any model."""

MOST_PARAMETERS = 2**53
"""Maximum parameters; larger counts are not exact as a JSON number."""


def layer_count(layer: ModelLayer) -> int:
    """Returns the number of layers with all repetitions."""
    if isinstance(layer, LayerBlock):
        return layer.count * sum(inner.count for inner in layer.layers)
    return layer.count


def check_written(architecture: Architecture) -> None:
    """Refuses more layers than are evaluated one by one."""
    written = [layer.layers if isinstance(layer, LayerBlock) else (layer,) for layer in architecture.layers]
    _check_total([len(layers) for layers in written], MOST_WRITTEN, "layers, repetitions aside", member="")
    seen: set[SimpleLayer] = set()
    before = 0
    different = []
    for layers in written:
        seen.update(replace(layer, count=1) for layer in layers if not isinstance(layer, EmbeddingTable))
        different.append(len(seen) - before)
        before = len(seen)
    _check_total(different, MOST_DIFFERENT, "different layers", member="")


def check_depth(depths: list[int]) -> None:
    """Refuses more than ``MOST_BLOCKS`` units of depth; ``depths`` has those of each layer."""
    _check_total(depths, MOST_BLOCKS, "blocks", code="TOO_MANY_BLOCKS")


def check_layers(architecture: Architecture) -> None:
    """Refuses more than ``MOST_LAYERS`` layers."""
    counts = [layer_count(layer) for layer in architecture.layers]
    _check_total(counts, MOST_LAYERS, "layers with their repetitions")


def _check_total(
    counts: list[int], most: int, what: str, *, code: str = "TOO_MANY_LAYERS", member: str = "/count"
) -> None:
    """Refuses counts that sum to more than ``most``, with a pointer to the layer that exceeds it."""
    if sum(counts) > most:
        place = next(place for place, total in enumerate(accumulate(counts)) if total > most)
        raise PlanningError(code, f"/layers/{place}{member}", f"more than {most} {what}")


def check_parameters(architecture: Architecture, parameter_count: int) -> None:
    """Refuses more than ``MOST_PARAMETERS``, with a pointer to the member that exceeds them."""
    if parameter_count <= MOST_PARAMETERS:
        return
    pointers, sizes = zip(*_list_sizes(architecture), strict=True)
    totals = zip(pointers, accumulate(sizes), strict=True)
    pointer = next((pointer for pointer, total in totals if total > MOST_PARAMETERS), "")
    raise PlanningError("TOO_MANY_PARAMETERS", pointer, f"more than {MOST_PARAMETERS} parameters")


def _list_sizes(architecture: Architecture) -> Iterator[tuple[str, int]]:
    if architecture.embeddings:
        yield "/embeddings", sum(tensor.size for tensor in architecture.embeddings.list_tensors())
    for place, block in enumerate(architecture.list_blocks()):
        yield f"/layers/{place}", block.count * sum(tensor.size * n for tensor, n in block.list_tensors())
    for place, head in enumerate(architecture.heads):
        yield f"/heads/{place}", sum(tensor.size for tensor in head.list_tensors())
