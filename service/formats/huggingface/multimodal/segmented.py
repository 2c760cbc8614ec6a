"""GOT-OCR 2 and DeepSeek-OCR: the tower of Segment Anything, whose output convolutions compress."""

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
    build_unsupported_error,
    read_choice,
    read_nested,
    read_numbers,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily
from service.formats.huggingface.vision.segment import SAM_VISION, build_downsampling, build_sam_tower
from service.formats.huggingface.vision.transformers import build_image_input, compute_grid_side
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape


def build_got_ocr(reader: ConfigReader, suffix: str) -> Architecture:
    """GOT-OCR 2: two convolutions and a matrix in front of a decoder of Qwen2."""
    if not reader.has_value("text_config"):
        raise PlanningError("CONFIG_FIELD_MISSING", "/text_config", "text_config is missing")
    with read_nested(reader, "vision_config", SAM_VISION) as vision:
        layers, image = build_sam_tower(vision), build_image_input(vision)
        out = vision.read_size("output_channels")
    text = build_text_decoder(reader, suffix, "qwen2", ties=True)
    projector = build_part(
        *build_downsampling(out, 2 * out, text.width), build_linear(text.width, text.width), over="image"
    )
    return join_vision_and_text(text, image, *layers, projector)


_TOWER_NAMES = {
    "hidden_size": ("width", "hidden_size"),
    "num_hidden_layers": ("layers", "num_hidden_layers"),
    "num_attention_heads": ("heads", "num_attention_heads"),
}
_CLIP: Mapping[str, ConfigDefault] = {
    "width": 1024,
    "layers": 24,
    "heads": 16,
    "image_size": 224,
    "patch_size": 14,
}
_SAM: Mapping[str, ConfigDefault] = {**SAM_VISION, "width": 768, "layers": 12, "heads": 12}
_INNER = 4
"""Inner width of a feed-forward over its outer one, in the code beside the weights."""


def _build_compressor(reader: ConfigReader) -> tuple[tuple[LayerBlock, ...], int, ModelInputShape]:
    """Segment Anything, and convolutions down to a sixteenth of its patches."""
    reader.names = _TOWER_NAMES
    reader.defaults = {**_SAM, "mlp_dim": _INNER * reader.read_size("hidden_size")}
    channels = read_numbers(reader, "downsample_channels", (512, 1024))
    halving = build_downsampling(reader.read_size("output_channels"), *channels)
    layers = (*build_sam_tower(reader), build_part(*halving, over="image"))
    return layers, channels[-1], build_image_input(reader)


def _build_reader(reader: ConfigReader, entering: int) -> tuple[tuple[LayerBlock, ...], int]:
    """CLIP over what is compressed; its own patches are held and not made."""
    reader.names = _TOWER_NAMES
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    if entering != hidden:
        raise build_unsupported_error(
            "width", f"only known where it is that of the compressed image, {entering}"
        )
    across, step = compute_grid_side(reader), reader.read_size("patch_size")
    norm = build_norm(hidden)
    stem = build_part(
        build_learned_vectors("class_tokens", hidden),
        build_learned_vectors("positions", hidden, across**2 + 1),
        norm,
        over="image",
    )
    inner = build_mlp(hidden, _INNER * hidden, function="quick_gelu")
    block = LayerBlock(
        layers=(norm, build_attention(hidden, heads), norm, inner),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    unused = build_part(build_linear(3 * step**2, hidden, bias=False), over="image", once=True)
    return (unused, stem, block), hidden


def _build_deepseek_ocr(reader: ConfigReader, suffix: str) -> Architecture:
    """DeepSeek-OCR: both towers side by side into one matrix, and the first DeepSeek with experts."""
    del suffix
    with read_nested(reader, "vision_config", {}) as vision:
        read_choice(vision, "model_name", "deeplip_b_l", "deeplip_b_l")
        with read_nested(vision, "width", {}) as widths:
            with read_nested(widths, "sam_vit_b", _SAM) as sam:
                compressor, entering, image = _build_compressor(sam)
            with read_nested(widths, "clip-l-14-224", _CLIP) as clip:
                clipped, hidden = _build_reader(clip, entering)
    with read_nested(reader, "projector_config", {"input_dim": entering + hidden}) as joined:
        read_choice(joined, "projector_type", "linear", "linear")
        if joined.read_size("input_dim") != entering + hidden:
            raise build_unsupported_error("input_dim", f"only known where it is {entering + hidden}")
    with read_nested(reader, "language_config", {}) as language:
        if language.read_flag("use_mla", default=True):
            raise build_unsupported_error("use_mla", "only known where it is false")
    text = build_text_decoder(
        reader, "ForConditionalGeneration", "deepseek", own_tie=True, field="language_config"
    )
    projector = build_part(
        build_merge(1, drops=True),
        build_linear(entering + hidden, text.width),
        # The ends of rows and of views.
        build_learned_vectors("tokens", text.width, 2),
        over="image",
    )
    return join_vision_and_text(text, image, *compressor, *clipped, projector)


DEEPSEEK_OCR = ModelFamily("DeepseekOCR", _build_deepseek_ocr, ("ForCausalLM",), "ForCausalLM", None, {})
