"""Shared parts of diffusion models: latents, the embedding of time, and settings with one known value."""

from service.formats.huggingface.parts import build_linear, build_part, build_unsupported_error
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import LayerBlock, ModelInputShape
from service.planning.models.layers import Modulation, SimpleLayer

FREQUENCIES = 256
"""Sines and cosines that a time step is spread over."""


def build_text_input(length: int) -> ModelInputShape:
    """A text, padded to ``length`` as the pipelines of diffusers do unless they are told otherwise."""
    return ModelInputShape(name="text", kind="source_tokens", length=length)


def build_latent_input(
    reader: ConfigReader, channels: int, *, downsampling: int = 8, frames: int = 1
) -> ModelInputShape:
    """Latents of the autoencoder that these models are published with, in pixels of the sample."""
    cells = reader.config.get("sample_size")
    known = isinstance(cells, int) and not isinstance(cells, bool) and cells > 0
    return ModelInputShape(
        name="latent",
        kind="latent",
        channels=channels,
        height=int(cells) * downsampling if known and isinstance(cells, int) else None,
        downsampling=downsampling,
        frame_downsampling=frames,
    )


def build_modulation(
    condition: int, hidden: int, vectors: int, *, streams: int = 1, bias: bool = True, shared: bool = False
) -> Modulation:
    """Shifts, scales and gates, for each of ``streams`` sequences; ``shared`` ones come from elsewhere."""
    return Modulation(
        condition_size=condition,
        hidden_size=hidden,
        vectors=vectors,
        streams=streams,
        bias=bias,
        shared=shared,
    )


def build_embedding_layers(
    columns: int, hidden: int, *, bias: bool = True
) -> tuple[SimpleLayer, SimpleLayer]:
    """Two matrices with an activation between them, on one vector a sample."""
    return build_linear(columns, hidden, bias=bias), build_linear(hidden, hidden, bias=bias)


def build_sample_part(*layers: SimpleLayer, over: str = "latent", count: int = 1) -> LayerBlock:
    """Layers that run once a sample."""
    return build_part(*layers, over=over, once=True, count=count)


def compute_width(reader: ConfigReader) -> int:
    """Width of the model: heads by their size."""
    return reader.read_size("num_attention_heads") * reader.read_size("attention_head_dim")


def check_supported_value(reader: ConfigReader, name: str, allowed: tuple[object, ...]) -> None:
    """Refuses a setting other than those that are known to leave the tensors unchanged."""
    if name in reader.config and reader.config[name] not in allowed:
        raise build_unsupported_error(
            name, f"{name} is known as {' or '.join(str(value) for value in allowed)} only"
        )


def build_caption_projection(columns: int, hidden: int) -> LayerBlock:
    """Two matrices that widen the text."""
    return build_part(*build_embedding_layers(columns, hidden), over="text")
