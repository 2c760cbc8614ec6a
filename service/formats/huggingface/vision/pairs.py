"""Image-text pairs and their towers: CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023)."""

from service.formats.huggingface.parts import (
    attend,
    classifier,
    function_named,
    learned,
    linear,
    mlp,
    nested,
    norm,
    part,
)
from service.formats.huggingface.reader import ConfigReader
from service.formats.huggingface.vision.transformers import (
    CLASSIFICATION,
    CLIP_VISION,
    SIGLIP_VISION,
    image_input,
    vision_transformer,
)
from service.planning.models.architecture import Architecture, Block, Embeddings, Input, Layer


def text_tower(reader: ConfigReader, *, function: str = "gelu") -> tuple[Layer, ...]:
    """The text side of an image-text pair: norms first, learned positions in the embeddings."""
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    block = Block(
        layers=(
            norm(hidden),
            attend(hidden, heads, dropout=reader.drops("attention_dropout")),
            norm(hidden),
            mlp(
                hidden,
                reader.size("intermediate_size"),
                function=function_named(reader, "hidden_act", function),
            ),
        ),
        count=reader.depth("num_hidden_layers"),
        over=("text",),
    )
    return (block, part(norm(hidden), over="text"))


def _text_embeddings(reader: ConfigReader) -> Embeddings:
    return Embeddings(
        size=reader.size("hidden_size"),
        vocabulary_size=reader.size("vocab_size"),
        position_count=reader.size("max_position_embeddings"),
    )


def text_input(reader: ConfigReader) -> Input:
    """Prompts are padded to the positions that there are."""
    return Input(name="text", kind="tokens", length=reader.size("max_position_embeddings"))


def attention_pool(reader: ConfigReader) -> Block:
    """One learned query that attends to all patches, and a feed-forward behind it (SigLIP)."""
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    return Block(
        layers=(
            learned("query_tokens", hidden),
            attend(hidden, heads, cross=hidden),
            norm(hidden),
            mlp(hidden, reader.size("intermediate_size")),
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


def _once(columns: int, rows: int, over: str, *, bias: bool = False) -> Block:
    return part(linear(columns, rows, bias=bias), over=over, once=True)


def clip_text(reader: ConfigReader, suffix: str) -> Architecture:
    """The text tower of CLIP."""
    hidden = reader.size("hidden_size")
    projected = (_once(hidden, reader.size("projection_dim"), "text"),) if "Projection" in suffix else ()
    return Architecture(
        inputs=(text_input(reader),),
        embeddings=_text_embeddings(reader),
        layers=(*text_tower(reader, function="quick_gelu"), *projected),
    )


def clip_vision(reader: ConfigReader, suffix: str) -> Architecture:
    """The vision tower of CLIP."""
    hidden = reader.size("hidden_size")
    projected = (_once(hidden, reader.size("projection_dim"), "image"),) if "Projection" in suffix else ()
    return Architecture(
        inputs=(image_input(reader),), layers=(*vision_transformer(reader, CLIP_VISION), *projected)
    )


def clip(reader: ConfigReader, suffix: str) -> Architecture:
    """Both towers of CLIP and their projections."""
    del suffix
    width = reader.size("projection_dim")
    with nested(reader, "text_config", CLIP_TEXT) as text:
        tower = text_tower(text, function="quick_gelu")
        table, prompt = _text_embeddings(text), text_input(text)
        text_size = text.size("hidden_size")
    with nested(reader, "vision_config", CLIP_IMAGE) as vision:
        image, picture = vision_transformer(vision, CLIP_VISION), image_input(vision)
        image_size = vision.size("hidden_size")
    joint = (
        _once(text_size, width, "text"),
        _once(image_size, width, "image"),
        part(learned("scale", 1), over="text", once=True),
    )
    return Architecture(inputs=(prompt, picture), embeddings=table, layers=(*tower, *image, *joint))


def siglip_tower(reader: ConfigReader) -> tuple[Layer, ...]:
    """A vision transformer without a class token, and its pooling by attention where there is one."""
    tower = vision_transformer(reader, SIGLIP_VISION)
    if reader.flag("vision_use_head", default=True):
        return (*tower, attention_pool(reader))
    return tower


def siglip_vision(reader: ConfigReader, suffix: str) -> Architecture:
    """The vision tower of SigLIP."""
    heads = (classifier(reader.size("hidden_size"), reader.labels()),) if suffix == CLASSIFICATION else ()
    return Architecture(inputs=(image_input(reader),), layers=siglip_tower(reader), heads=heads)


def _siglip_head(reader: ConfigReader) -> Block:
    hidden = reader.size("hidden_size")
    return _once(hidden, reader.size_or("projection_size", hidden), "text", bias=True)


def siglip_text(reader: ConfigReader, suffix: str) -> Architecture:
    """The text tower of SigLIP."""
    del suffix
    return Architecture(
        inputs=(text_input(reader),),
        embeddings=_text_embeddings(reader),
        layers=(*text_tower(reader), _siglip_head(reader)),
    )


def siglip(reader: ConfigReader, suffix: str) -> Architecture:
    """Both towers of SigLIP."""
    del suffix
    with nested(reader, "text_config", SIGLIP_TEXT) as text:
        tower, table = (*text_tower(text), _siglip_head(text)), _text_embeddings(text)
        prompt = text_input(text)
    with nested(reader, "vision_config", SIGLIP_IMAGE) as vision:
        image, picture = siglip_tower(vision), image_input(vision)
    # The temperature and the bias of the sigmoid loss.
    joint = part(learned("scale", 1), learned("bias", 1), over="text", once=True)
    return Architecture(inputs=(prompt, picture), embeddings=table, layers=(*tower, *image, joint))
