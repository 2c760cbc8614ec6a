"""Image-text pairs and their towers: CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023)."""

from dataclasses import replace
from math import isqrt

from service.formats.huggingface.parts import (
    build_attention,
    build_classifier,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    read_activation_function,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.formats.huggingface.vision.transformers import (
    CLASSIFICATION,
    CLIP_VISION,
    SIGLIP_VISION,
    build_image_input,
    build_vision_transformer,
)
from service.planning.models.architecture import (
    Architecture,
    LayerBlock,
    ModelEmbeddings,
    ModelInputShape,
    ModelLayer,
)


def build_text_tower(reader: ConfigReader, *, function: str = "gelu") -> tuple[ModelLayer, ...]:
    """The text side of an image-text pair: norms first, learned positions in the embeddings."""
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    block = LayerBlock(
        layers=(
            build_norm(hidden),
            build_attention(hidden, heads, dropout=reader.has_dropout("attention_dropout")),
            build_norm(hidden),
            build_mlp(
                hidden,
                reader.read_size("intermediate_size"),
                function=read_activation_function(reader, "hidden_act", function),
            ),
        ),
        count=reader.read_depth("num_hidden_layers"),
        over=("text",),
    )
    return (block, build_part(build_norm(hidden), over="text"))


def _build_text_embeddings(reader: ConfigReader) -> ModelEmbeddings:
    return ModelEmbeddings(
        size=reader.read_size("hidden_size"),
        vocabulary_size=reader.read_size("vocab_size"),
        position_count=reader.read_size("max_position_embeddings"),
    )


def build_text_input(reader: ConfigReader) -> ModelInputShape:
    """Prompts are padded to the positions that there are."""
    return ModelInputShape(name="text", kind="tokens", length=reader.read_size("max_position_embeddings"))


def build_attention_pool(reader: ConfigReader) -> LayerBlock:
    """One learned query that attends to all patches, and a feed-forward behind it (SigLIP)."""
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    return LayerBlock(
        layers=(
            build_learned_vectors("query_tokens", hidden),
            build_attention(hidden, heads, cross=hidden),
            build_norm(hidden),
            build_mlp(hidden, reader.read_size("intermediate_size")),
        ),
        over=("image",),
        reads=("image",),
        per="sample",
        unit=False,
    )


CLIP_TEXT = {
    "vocab_size": 49_408,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "max_position_embeddings": 77,
    "projection_dim": 512,
}


CLIP_IMAGE = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 32,
    "projection_dim": 512,
}


SIGLIP_TEXT = {
    "vocab_size": 32_000,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 64,
}


SIGLIP_IMAGE = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 16,
}


SIGLIP_2_IMAGE = {**SIGLIP_IMAGE, "num_patches": 256}


def _build_projection(columns: int, rows: int, over: str, *, bias: bool = False) -> LayerBlock:
    return build_part(build_linear(columns, rows, bias=bias), over=over, once=True)


def build_clip_text(reader: ConfigReader, suffix: str) -> Architecture:
    """The text tower of CLIP."""
    hidden = reader.read_size("hidden_size")
    projected = (
        (_build_projection(hidden, reader.read_size("projection_dim"), "text"),)
        if "Projection" in suffix
        else ()
    )
    return Architecture(
        inputs=(build_text_input(reader),),
        embeddings=_build_text_embeddings(reader),
        layers=(*build_text_tower(reader, function="quick_gelu"), *projected),
    )


def build_clip_vision(reader: ConfigReader, suffix: str) -> Architecture:
    """The vision tower of CLIP."""
    hidden = reader.read_size("hidden_size")
    projected = (
        (_build_projection(hidden, reader.read_size("projection_dim"), "image"),)
        if "Projection" in suffix
        else ()
    )
    return Architecture(
        inputs=(build_image_input(reader),),
        layers=(*build_vision_transformer(reader, CLIP_VISION), *projected),
    )


def build_clip(reader: ConfigReader, suffix: str) -> Architecture:
    """Both towers of CLIP and their projections."""
    del suffix
    width = reader.read_size("projection_dim")
    with read_nested(reader, "text_config", CLIP_TEXT) as text:
        tower = build_text_tower(text, function="quick_gelu")
        table, prompt = _build_text_embeddings(text), build_text_input(text)
        text_size = text.read_size("hidden_size")
    with read_nested(reader, "vision_config", CLIP_IMAGE) as vision:
        image, picture = build_vision_transformer(vision, CLIP_VISION), build_image_input(vision)
        image_size = vision.read_size("hidden_size")
    joint = (
        _build_projection(text_size, width, "text"),
        _build_projection(image_size, width, "image"),
        build_part(build_learned_vectors("scale", 1), over="text", once=True),
    )
    return Architecture(inputs=(prompt, picture), embeddings=table, layers=(*tower, *image, *joint))


def build_siglip_tower(reader: ConfigReader) -> tuple[ModelLayer, ...]:
    """A vision transformer without a class token, and its pooling by attention where there is one."""
    tower = build_vision_transformer(reader, SIGLIP_VISION)
    if reader.read_flag("vision_use_head", default=True):
        return (*tower, build_attention_pool(reader))
    return tower


def build_siglip_vision(reader: ConfigReader, suffix: str) -> Architecture:
    """The vision tower of SigLIP."""
    heads = (
        (build_classifier(reader.read_size("hidden_size"), reader.count_labels()),)
        if suffix == CLASSIFICATION
        else ()
    )
    return Architecture(inputs=(build_image_input(reader),), layers=build_siglip_tower(reader), heads=heads)


def fix_patches(reader: ConfigReader) -> ConfigReader:
    """A reader of SigLIP 2, which states the patches of its learned positions in place of an image."""
    patches = reader.read_size("num_patches")
    if isqrt(patches) ** 2 != patches:
        raise build_invalid_error("num_patches", "num_patches must be a square")
    pixels = isqrt(patches) * (read_side(reader, "patch_size") or 1)
    return replace(reader, config={**reader.config, "image_size": pixels})


def _build_siglip_head(reader: ConfigReader) -> LayerBlock:
    hidden = reader.read_size("hidden_size")
    return _build_projection(hidden, reader.read_size_or("projection_size", hidden), "text", bias=True)


def build_siglip_text(reader: ConfigReader, suffix: str) -> Architecture:
    """The text tower of SigLIP."""
    del suffix
    return Architecture(
        inputs=(build_text_input(reader),),
        embeddings=_build_text_embeddings(reader),
        layers=(*build_text_tower(reader), _build_siglip_head(reader)),
    )


def build_siglip(reader: ConfigReader, suffix: str) -> Architecture:
    """Both towers of SigLIP."""
    del suffix
    with read_nested(reader, "text_config", SIGLIP_TEXT) as text:
        tower, table = (*build_text_tower(text), _build_siglip_head(text)), _build_text_embeddings(text)
        prompt = build_text_input(text)
    with read_nested(reader, "vision_config", SIGLIP_IMAGE) as vision:
        image, picture = build_siglip_tower(vision), build_image_input(vision)
    # The temperature and the bias of the sigmoid loss.
    joint = build_part(
        build_learned_vectors("scale", 1), build_learned_vectors("bias", 1), over="text", once=True
    )
    return Architecture(inputs=(prompt, picture), embeddings=table, layers=(*tower, *image, joint))
