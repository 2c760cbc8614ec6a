"""Recommenders from an explicit description: DLRM in the words of its published options.

``arch_mlp_bot`` narrows the dense features, each row of ``arch_embedding_size`` is a table of
``arch_sparse_feature_size``, ``arch_interaction_op`` joins them, and ``arch_mlp_top`` scores (Naumov et al.
2019). Numbers stand between dashes, as on the command line of facebookresearch/dlrm, or in a list.
"""

from collections.abc import Mapping
from itertools import pairwise

from service.formats.huggingface.parts import linear, numbers, part, word
from service.formats.huggingface.reader import ConfigReader, Family, as_blocks, invalid
from service.planning.models.architecture import Architecture, Block, Input, Layer
from service.planning.models.layers import EmbeddingTable, Interaction, SimpleLayer

_MOST_TABLES = 2000


def _sizes(reader: ConfigReader, name: str) -> tuple[int, ...]:
    """Positive integers in a list or between dashes."""
    value = reader.config.get(name)
    if isinstance(value, str):
        parts = value.split("-")
        if not all(part.isdecimal() and len(part) < 12 for part in parts):  # noqa: PLR2004
            raise invalid(name, f"{name} must be positive integers between dashes")
        return numbers(ConfigReader({name: [int(part) for part in parts]}, {}), name)
    return numbers(reader, name)


def _multilayer(sizes: tuple[int, ...]) -> Block:
    """Matrices with a bias, each followed by an activation."""
    layers = tuple(linear(before, after) for before, after in pairwise(sizes))
    return Block(layers=layers, over=("dense",))


def _dlrm(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    width = reader.size("arch_sparse_feature_size")
    rows, bottom = _sizes(reader, "arch_embedding_size"), _sizes(reader, "arch_mlp_bot")
    top = _sizes(reader, "arch_mlp_top")
    if len(rows) > _MOST_TABLES:
        raise invalid("arch_embedding_size", f"arch_embedding_size must name at most {_MOST_TABLES} tables")
    if len(bottom) < 2 or bottom[-1] != width:  # noqa: PLR2004
        raise invalid("arch_mlp_bot", "arch_mlp_bot must end with arch_sparse_feature_size")
    lookups = reader.size_or("num_indices_per_lookup", 1)
    features = len(rows) + 1
    kind = word(reader, "arch_interaction_op", "dot", "dot", "cat")
    itself = int(reader.flag("arch_interaction_itself"))
    # The dense vector beside each pair of vectors once, or all of them side by side.
    pairs = features * (features - 1) // 2 + itself * features
    joined = width + pairs if kind == "dot" else features * width
    tables: list[tuple[SimpleLayer, ...]] = [
        (EmbeddingTable(rows=count, size=width, lookups_per_sample=float(lookups)),) for count in rows
    ]
    meeting: tuple[Layer, ...] = ()
    if kind == "dot":
        meeting = (part(Interaction(features=features, size=width), over="dense"),)
    placed = tuple(
        Block(layers=block.layers, count=block.count, over=("sparse",), unit=False)
        for block in as_blocks(tables)
        if isinstance(block, Block)
    )
    return Architecture(
        inputs=(Input(name="dense", kind="dense_features"), Input(name="sparse", kind="sparse_features")),
        layers=(_multilayer(bottom), *placed, *meeting, _multilayer((joined, *top))),
    )


FAMILIES: Mapping[str, Family] = {"dlrm": Family("DLRM", _dlrm, ("",), "", None, {})}
