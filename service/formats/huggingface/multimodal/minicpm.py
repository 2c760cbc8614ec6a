"""MiniCPM-V 4.6 and later: SigLIP whose patches are merged between its blocks and again behind them."""

from collections.abc import Mapping

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_unsupported_error,
    read_choice,
    read_nested,
    read_numbers,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_invalid_error
from service.formats.huggingface.vision.pairs import SIGLIP_IMAGE
from service.formats.huggingface.vision.transformers import build_image_input, compute_grid_side
from service.planning.models.architecture import Architecture, LayerBlock

_SIDE = 2
"""Patches along one side that each merge joins."""

_PROJECTOR: Mapping[str, ConfigDefault] = {"insert_layer_id": 6, "merger_times": 1}


def _require_pairs(reader: ConfigReader, name: str) -> None:
    if name in reader.config and read_numbers(reader, name) != (_SIDE, _SIDE):
        raise build_unsupported_error(name, f"only known where it is {_SIDE} by {_SIDE}")


def _build_tower(vision: ConfigReader, inserted: int, *, merges: bool) -> tuple[LayerBlock, ...]:
    """Blocks up to the layer ``inserted``, the merge behind it, and the blocks over merged patches."""
    hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_attention_heads")
    inner, depth = vision.read_size("intermediate_size"), vision.read_depth("num_hidden_layers")
    if inserted + 1 > depth:
        raise build_invalid_error("num_hidden_layers", "num_hidden_layers has to exceed insert_layer_id")
    stem = build_part(
        build_patch_embedding(
            vision.read_size_or("num_channels", 3), hidden, read_side(vision, "patch_size") or 1
        ),
        build_learned_vectors("positions", hidden, compute_grid_side(vision) ** 2),
        over="image",
    )
    norm = build_norm(hidden)
    layers = (norm, build_attention(hidden, heads), norm, build_mlp(hidden, inner))
    wide = hidden * _SIDE**2
    # A model that keeps all patches holds the merge without running it.
    merge = build_part(
        norm,
        build_attention(hidden, heads, window=_SIDE**2),
        *((build_merge(_SIDE),) if merges else ()),
        build_norm(wide),
        build_linear(wide, inner * _SIDE**2),
        build_linear(inner * _SIDE**2, hidden),
        over="image",
        once=not merges,
    )
    before = LayerBlock(layers=layers, count=inserted + 1, over=("image",))
    behind = depth - inserted - 1
    after = (LayerBlock(layers=layers, count=behind, over=("image",)),) if behind else ()
    return stem, before, merge, *after, build_part(norm, over="image")


def _build_mergers(hidden: int, width: int, times: int) -> LayerBlock:
    """Merges ``times`` over, the last one to the width of the decoder."""
    wide = hidden * _SIDE**2
    outputs = [hidden] * (times - 1) + [width]
    layers = [
        layer
        for output in outputs
        for layer in (
            build_merge(_SIDE),
            build_norm(wide),
            build_linear(wide, wide),
            build_linear(wide, output),
        )
    ]
    return build_part(*layers, over="image")


def _build_minicpm(reader: ConfigReader, suffix: str, *, mode: str, ties: bool) -> Architecture:
    """MiniCPM-V 4.6, 4.7 and MiniCPM-OCR; ``mode`` is the usual number of patches for a position."""
    reader.refuse_flags("drop_vision_last_layer")
    _require_pairs(reader, "merge_kernel_size")
    merges = read_choice(reader, "downsample_mode", mode, "4x", "16x") == "16x"
    with read_nested(reader, "vision_config", SIGLIP_IMAGE) as vision:
        _require_pairs(vision, "window_kernel_size")
        layers = _build_tower(vision, reader.read_count("insert_layer_id"), merges=merges)
        image, hidden = build_image_input(vision), vision.read_size("hidden_size")
    text = build_text_decoder(reader, suffix, "qwen3_5_text", ties=ties)
    times = reader.read_depth("merger_times")
    return join_vision_and_text(text, image, *layers, _build_mergers(hidden, text.width, times))


_CLASSES = ("ForConditionalGeneration", "Model")


def build_minicpm_family(prefix: str, *, mode: str = "16x", ties: bool = False) -> ModelFamily:
    """A family of this tower."""

    def build(reader: ConfigReader, suffix: str) -> Architecture:
        return _build_minicpm(reader, suffix, mode=mode, ties=ties)

    return ModelFamily(prefix, build, _CLASSES, _CLASSES[0], None, _PROJECTOR)
