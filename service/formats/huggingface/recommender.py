"""Recommenders from an explicit description: DLRM in the words of its published options.

``arch_mlp_bot`` narrows the dense features, each row of ``arch_embedding_size`` is a table of
``arch_sparse_feature_size``, ``arch_interaction_op`` joins them, and ``arch_mlp_top`` scores (Naumov et al.
2019). Numbers stand between dashes, as on the command line of facebookresearch/dlrm, or in a list.
"""

from collections.abc import Mapping
from itertools import pairwise

from service.formats.huggingface.parts import build_linear, build_part, read_choice, read_numbers
from service.formats.huggingface.reader import ConfigReader, ModelFamily, build_blocks, build_invalid_error
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape, ModelLayer
from service.planning.models.layers import EmbeddingTable, Interaction, SimpleLayer

_MOST_TABLES = 2000


def _read_sizes(reader: ConfigReader, name: str) -> tuple[int, ...]:
    """Positive integers in a list or between dashes."""
    value = reader.config.get(name)
    if isinstance(value, str):
        parts = value.split("-")
        if not all(part.isdecimal() and len(part) < 12 for part in parts):  # noqa: PLR2004
            raise build_invalid_error(name, f"{name} must be positive integers between dashes")
        return read_numbers(ConfigReader({name: [int(part) for part in parts]}, {}), name)
    return read_numbers(reader, name)


def _build_multilayer(sizes: tuple[int, ...]) -> LayerBlock:
    """Matrices with a bias, each followed by an activation."""
    layers = tuple(build_linear(before, after) for before, after in pairwise(sizes))
    return LayerBlock(layers=layers, over=("dense",))


def _build_dlrm(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    width = reader.read_size("arch_sparse_feature_size")
    rows, bottom = _read_sizes(reader, "arch_embedding_size"), _read_sizes(reader, "arch_mlp_bot")
    top = _read_sizes(reader, "arch_mlp_top")
    if len(rows) > _MOST_TABLES:
        raise build_invalid_error(
            "arch_embedding_size", f"arch_embedding_size must name at most {_MOST_TABLES} tables"
        )
    if len(bottom) < 2 or bottom[-1] != width:  # noqa: PLR2004
        raise build_invalid_error("arch_mlp_bot", "arch_mlp_bot must end with arch_sparse_feature_size")
    lookups = reader.read_size_or("num_indices_per_lookup", 1)
    features = len(rows) + 1
    kind = read_choice(reader, "arch_interaction_op", "dot", "dot", "cat")
    itself = int(reader.read_flag("arch_interaction_itself"))
    # The dense vector beside each pair of vectors once, or all of them side by side.
    pairs = features * (features - 1) // 2 + itself * features
    joined = width + pairs if kind == "dot" else features * width
    tables: list[tuple[SimpleLayer, ...]] = [
        (EmbeddingTable(rows=count, size=width, lookups_per_sample=float(lookups)),) for count in rows
    ]
    meeting: tuple[ModelLayer, ...] = ()
    if kind == "dot":
        meeting = (build_part(Interaction(features=features, size=width), over="dense"),)
    placed = tuple(
        LayerBlock(layers=block.layers, count=block.count, over=("sparse",), unit=False)
        for block in build_blocks(tables)
    )
    return Architecture(
        inputs=(
            ModelInputShape(name="dense", kind="dense_features"),
            ModelInputShape(name="sparse", kind="sparse_features"),
        ),
        layers=(_build_multilayer(bottom), *placed, *meeting, _build_multilayer((joined, *top))),
    )


FAMILIES: Mapping[str, ModelFamily] = {"dlrm": ModelFamily("DLRM", _build_dlrm, ("",), "", None, {})}
