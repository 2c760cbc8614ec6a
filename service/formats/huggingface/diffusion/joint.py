"""Transformers with a joint attention over text and latents (Esser et al. 2024)."""

from functools import partial

from service.formats.huggingface.diffusion.parts import (
    FREQUENCIES,
    build_embedding_layers,
    build_latent_input,
    build_modulation,
    build_sample_part,
    build_text_input,
    check_supported_value,
    compute_width,
)
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_plain_norm,
    build_unsupported_error,
    read_choice,
)
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Architecture, LayerBlock, ModelLayer
from service.planning.models.layers import Attention, SimpleLayer


def _build_stream(
    hidden: int, attention: Attention, *, over: str, joins: str, count: int, vectors: int = 6
) -> LayerBlock:
    """One of the two streams of a joint block, modulated by the same condition."""
    return LayerBlock(
        layers=(
            build_plain_norm(hidden),
            build_modulation(hidden, hidden, vectors),
            attention,
            build_plain_norm(hidden),
            build_mlp(hidden, 4 * hidden),
        ),
        count=count,
        over=(over,),
        joins=(joins,),
    )


def build_sd3(reader: ConfigReader, suffix: str) -> Architecture:
    """Stable Diffusion 3: two streams, the text's last block cut short."""
    del suffix
    hidden, heads, depth = (
        compute_width(reader),
        reader.read_size("num_attention_heads"),
        reader.read_depth("num_layers"),
    )
    channels, step = reader.read_size_or("in_channels", 16), reader.read_size_or("patch_size", 2)
    if reader.read_size_or("caption_projection_dim", hidden) != hidden:
        raise build_unsupported_error(
            "caption_projection_dim", "caption_projection_dim must be the width of the model"
        )
    normed = read_choice(reader, "qk_norm", "", "rms_norm") == "rms_norm"
    attention = build_attention(hidden, heads, query_key_norm="head" if normed else "none")
    dual = reader.read_indexes("dual_attention_layers")
    streams: list[ModelLayer] = []
    for twice in (False, True):
        count = sum((index in dual) is twice for index in range(depth))
        if count:
            vectors = 9 if twice else 6
            streams.append(
                _build_stream(hidden, attention, over="latent", joins="text", count=count, vectors=vectors)
            )
    if dual:
        # The second attention of these layers sees the latents alone.
        streams.append(build_part(attention, over="latent", count=len(dual)))
    if depth > 1:
        streams.append(_build_stream(hidden, attention, over="text", joins="latent", count=depth - 1))
    # The last block gives the text's queries, keys and values, and nothing behind them.
    last: tuple[SimpleLayer, ...] = (
        build_plain_norm(hidden),
        build_modulation(hidden, hidden, 2),
        build_linear(hidden, 3 * hidden),
    )
    if normed:
        last = (*last, build_learned_vectors("scale", hidden // heads, 2))
    return Architecture(
        inputs=(build_latent_input(reader, channels), build_text_input(333)),
        layers=(
            build_part(build_patch_embedding(channels, hidden, step), over="latent"),
            build_sample_part(
                *build_embedding_layers(FREQUENCIES, hidden),
                *build_embedding_layers(reader.read_size("pooled_projection_dim"), hidden),
            ),
            build_part(build_linear(reader.read_size("joint_attention_dim"), hidden), over="text"),
            *streams,
            build_part(*last, over="text"),
            build_part(
                build_plain_norm(hidden),
                build_modulation(hidden, hidden, 2),
                build_linear(hidden, step**2 * reader.read_size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )


def _build_joint_blocks(reader: ConfigReader, hidden: int, heads: int) -> tuple[ModelLayer, ...]:
    """Blocks of two streams, then blocks of one over text and latents in a row (Flux)."""
    attention = build_attention(hidden, heads, query_key_norm="head")
    depth, single = reader.read_depth("num_layers"), reader.read_depth("num_single_layers")
    alone = (
        build_plain_norm(hidden),
        build_modulation(hidden, hidden, 3),
        # One matrix is the output of attention and of the feed-forward beside it, with one bias.
        build_attention(hidden, heads, output_bias=False, query_key_norm="head"),
        build_mlp(hidden, 4 * hidden),
    )
    return (
        _build_stream(hidden, attention, over="latent", joins="text", count=depth),
        _build_stream(hidden, attention, over="text", joins="latent", count=depth),
        LayerBlock(layers=alone, count=single, over=("text", "latent")),
    )


def _build_pooled_condition(reader: ConfigReader, hidden: int) -> LayerBlock:
    layers = [
        *build_embedding_layers(FREQUENCIES, hidden),
        *build_embedding_layers(reader.read_size("pooled_projection_dim"), hidden),
    ]
    if reader.read_flag("guidance_embeds"):
        layers += build_embedding_layers(FREQUENCIES, hidden)
    return build_sample_part(*layers)


def build_flux(reader: ConfigReader, suffix: str) -> Architecture:
    """Flux: blocks of two streams, then of one."""
    del suffix
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    channels = reader.read_size_or("in_channels", 64)
    out = reader.read_size_or("patch_size", 1) ** 2 * reader.read_size_or("out_channels", channels)
    return Architecture(
        # Two by two latents are packed into one position before the model.
        inputs=(build_latent_input(reader, channels, downsampling=16), build_text_input(512)),
        layers=(
            build_part(build_linear(channels, hidden), over="latent"),
            _build_pooled_condition(reader, hidden),
            build_part(build_linear(reader.read_size("joint_attention_dim"), hidden), over="text"),
            *_build_joint_blocks(reader, hidden, heads),
            build_part(
                build_plain_norm(hidden),
                build_modulation(hidden, hidden, 2),
                build_linear(hidden, out),
                over="latent",
            ),
        ),
    )


def build_qwen_image(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen-Image: blocks of two streams alone, over a text whose norm stands in front."""
    del suffix
    reader.refuse_flags("zero_cond_t", "use_additional_t_cond")
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    channels, depth = reader.read_size_or("in_channels", 64), reader.read_depth("num_layers")
    text = reader.read_size("joint_attention_dim")
    attention = build_attention(hidden, heads, query_key_norm="head")
    out = reader.read_size_or("patch_size", 2) ** 2 * reader.read_size_or("out_channels", 16)
    return Architecture(
        inputs=(build_latent_input(reader, channels, downsampling=16), build_text_input(512)),
        layers=(
            build_part(build_linear(channels, hidden), over="latent"),
            build_sample_part(*build_embedding_layers(FREQUENCIES, hidden)),
            build_part(build_norm(text, "rms"), build_linear(text, hidden), over="text"),
            _build_stream(hidden, attention, over="latent", joins="text", count=depth),
            _build_stream(hidden, attention, over="text", joins="latent", count=depth),
            build_part(
                build_plain_norm(hidden),
                build_modulation(hidden, hidden, 2),
                build_linear(hidden, out),
                over="latent",
            ),
        ),
    )


def _build_flux_2_condition(reader: ConfigReader, hidden: int) -> LayerBlock:
    """Embeddings of time and guidance, and the three modulations that all blocks share."""
    frequencies = reader.read_size_or("timestep_guidance_channels", FREQUENCIES)
    embeddings = 2 if reader.read_flag("guidance_embeds", default=True) else 1
    embedding = build_embedding_layers(frequencies, hidden, bias=False)
    modulations = [build_linear(hidden, vectors * hidden, bias=False) for vectors in (6, 6, 3)]
    return build_sample_part(*embeddings * embedding, *modulations)


def _build_flux_2_blocks(reader: ConfigReader, hidden: int) -> tuple[ModelLayer, ...]:
    """The blocks of Flux without biases, gated, and modulated by the vectors that they share."""
    heads = reader.read_size("num_attention_heads")
    attention = build_attention(hidden, heads, bias=False, output_bias=False, query_key_norm="head")
    ratio = reader.read_factor("mlp_ratio") if reader.has_value("mlp_ratio") else 3.0
    feed_forward = build_mlp(hidden, int(hidden * ratio), gated=True, bias=False)
    norm = build_plain_norm(hidden)
    stream = (
        norm,
        build_modulation(hidden, hidden, 6, shared=True),
        attention,
        norm,
        feed_forward,
    )
    alone = (norm, build_modulation(hidden, hidden, 3, shared=True), attention, feed_forward)
    depth, single = reader.read_depth("num_layers"), reader.read_depth("num_single_layers")
    return (
        LayerBlock(layers=stream, count=depth, over=("latent",), joins=("text",)),
        LayerBlock(layers=stream, count=depth, over=("text",), joins=("latent",)),
        LayerBlock(layers=alone, count=single, over=("text", "latent")),
    )


def build_flux_2(reader: ConfigReader, suffix: str) -> Architecture:
    """Flux 2: the blocks of Flux, whose modulations are computed once for all of them."""
    del suffix
    hidden, channels = compute_width(reader), reader.read_size_or("in_channels", 128)
    out = reader.read_size_or("patch_size", 1) ** 2 * reader.read_size_or("out_channels", channels)
    text = reader.read_size("joint_attention_dim")
    return Architecture(
        inputs=(build_latent_input(reader, channels, downsampling=16), build_text_input(512)),
        layers=(
            build_part(build_linear(channels, hidden, bias=False), over="latent"),
            _build_flux_2_condition(reader, hidden),
            build_part(build_linear(text, hidden, bias=False), over="text"),
            *_build_flux_2_blocks(reader, hidden),
            build_part(
                build_plain_norm(hidden),
                build_modulation(hidden, hidden, 2, bias=False),
                build_linear(hidden, out, bias=False),
                over="latent",
            ),
        ),
    )


def build_hunyuan_video(reader: ConfigReader, suffix: str) -> Architecture:
    """HunyuanVideo: Flux over video, behind a refiner of the text."""
    del suffix
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    channels, text = reader.read_size_or("in_channels", 16), reader.read_size("text_embed_dim")
    step, frames = reader.read_size_or("patch_size", 2), reader.read_size_or("patch_size_t", 1)
    check_supported_value(reader, "qk_norm", ("rms_norm",))
    check_supported_value(
        reader,
        "image_condition_type",
        (
            None,
            "latent_concat",
        ),
    )
    check_supported_value(
        reader,
        "mlp_ratio",
        (
            4.0,
            4,
        ),
    )
    refiner = LayerBlock(
        layers=(
            build_norm(hidden),
            build_attention(hidden, heads),
            build_norm(hidden),
            build_mlp(hidden, 4 * hidden),
            build_modulation(hidden, hidden, 2),
        ),
        count=reader.read_depth("num_refiner_layers"),
        over=("text",),
    )
    out = step**2 * frames * reader.read_size_or("out_channels", 16)
    return Architecture(
        inputs=(build_latent_input(reader, channels, frames=4), build_text_input(256)),
        layers=(
            build_part(
                build_patch_embedding(channels, hidden, step, frames=frames, frame_stride=frames),
                over="latent",
            ),
            build_sample_part(
                *build_embedding_layers(FREQUENCIES, hidden),
                *build_embedding_layers(text, hidden),
                over="text",
            ),
            build_part(build_linear(text, hidden), over="text"),
            refiner,
            _build_pooled_condition(reader, hidden),
            *_build_joint_blocks(reader, hidden, heads),
            build_part(
                build_plain_norm(hidden),
                build_modulation(hidden, hidden, 2),
                build_linear(hidden, out),
                over="latent",
            ),
        ),
    )


def build_cogvideox(reader: ConfigReader, suffix: str) -> Architecture:
    """CogVideoX: text and video in one sequence."""
    del suffix
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    channels, step = reader.read_size_or("in_channels", 16), reader.read_size_or("patch_size", 2)
    time, text = reader.read_size("time_embed_dim"), reader.read_size("text_embed_dim")
    frames = reader.read_size_or("patch_size_t", 1)
    check_supported_value(reader, "use_learned_positional_embeddings", (False,))
    check_supported_value(reader, "norm_elementwise_affine", (True,))
    reader_bias = reader.read_flag("attention_bias", default=True)
    attention = build_attention(
        hidden, heads, bias=reader_bias, query_key_norm="head", query_key_norm_shift=True
    )
    block = LayerBlock(
        layers=(
            build_modulation(time, hidden, 6, streams=2),
            build_norm(hidden),
            attention,
            build_modulation(time, hidden, 6, streams=2),
            build_norm(hidden),
            build_mlp(hidden, 4 * hidden),
        ),
        count=reader.read_depth("num_layers"),
        over=("text", "latent"),
    )
    # Patches of several frames are made by a matrix, which always has a bias.
    bias = reader.read_flag("patch_bias", default=True) or reader.has_value("patch_size_t")
    condition = [build_linear(hidden, time), build_linear(time, time)]
    if reader.has_value("ofs_embed_dim"):
        condition += build_embedding_layers(
            reader.read_size("ofs_embed_dim"), reader.read_size("ofs_embed_dim")
        )  # type: ignore[arg-type]
    out = step**2 * frames * reader.read_size_or("out_channels", 16)
    return Architecture(
        inputs=(build_latent_input(reader, channels, frames=4), build_text_input(226)),
        layers=(
            build_part(
                build_patch_embedding(channels, hidden, step, bias=bias, frames=frames, frame_stride=frames),
                over="latent",
            ),
            build_part(build_linear(text, hidden), over="text"),
            build_sample_part(*condition),
            block,
            build_part(build_norm(hidden), over="latent"),
            build_part(
                build_norm(hidden),
                build_modulation(time, hidden, 2),
                build_linear(hidden, out),
                over="latent",
            ),
        ),
    )


def build_mochi(reader: ConfigReader, suffix: str) -> Architecture:
    """Mochi: two streams of different width."""
    del suffix
    hidden, heads, size = (
        compute_width(reader),
        reader.read_size("num_attention_heads"),
        reader.read_size("attention_head_dim"),
    )
    pooled, text = reader.read_size("pooled_projection_dim"), reader.read_size("text_embed_dim")
    channels, step, depth = (
        reader.read_size_or("in_channels", 12),
        reader.read_size_or("patch_size", 2),
        reader.read_depth("num_layers"),
    )
    check_supported_value(reader, "activation_fn", ("swiglu",))
    check_supported_value(reader, "qk_norm", ("rms_norm",))
    attention = partial(build_attention, heads=heads, head_size=size, bias=False, query_key_norm="head")

    def build_stream(width: int, over: str, joins: str, count: int) -> LayerBlock:
        layers = (
            build_plain_norm(width),
            build_modulation(hidden, width, 4),
            attention(width),
            build_plain_norm(width),
            build_mlp(width, 4 * width * 2 // 3, gated=True, bias=False),
        )
        return LayerBlock(layers=layers, count=count, over=(over,), joins=(joins,))

    texts = (build_stream(pooled, "text", "latent", depth - 1),) if depth > 1 else ()
    last = build_part(
        build_plain_norm(pooled),
        build_modulation(hidden, pooled, 1),
        build_linear(pooled, 3 * hidden, bias=False),
        build_learned_vectors("scale", size, 2),
        over="text",
    )
    return Architecture(
        inputs=(build_latent_input(reader, channels, frames=6), build_text_input(256)),
        layers=(
            build_part(
                build_patch_embedding(channels, hidden, step),
                build_learned_vectors("positions", heads * (size // 2), 3),
                over="latent",
            ),
            build_sample_part(
                build_linear(reader.read_size("time_embed_dim"), hidden), build_linear(hidden, hidden)
            ),
            # One query gathers the text into the condition; every token is narrowed beside it.
            build_part(build_linear(text, 2 * text), build_linear(text, pooled), over="text"),
            build_sample_part(build_linear(text, text), build_linear(text, hidden), over="text"),
            build_stream(hidden, "latent", "text", depth),
            *texts,
            last,
            build_part(
                build_plain_norm(hidden),
                build_modulation(hidden, hidden, 2),
                build_linear(hidden, step**2 * reader.read_size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )
