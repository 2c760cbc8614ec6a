"""What diffusion models share: latents, the embedding of time, settings that are known in one value only."""

from service.formats.huggingface.parts import linear, part, unsupported
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Block, Input
from service.planning.models.layers import Modulation, SimpleLayer

FREQUENCIES = 256
"""Sines and cosines that a time step is spread over."""


def text_input(length: int) -> Input:
    """A text, padded to ``length`` as the pipelines of diffusers do unless they are told otherwise."""
    return Input(name="text", kind="source_tokens", length=length)


def latent_input(
    reader: ConfigReader, channels: int, *, downsampling: int = 8, frames: int = 1, size: str = "sample_size"
) -> Input:
    """Latents of the autoencoder that these models are published with, in pixels of the sample."""
    cells = reader.config.get(size)
    known = isinstance(cells, int) and not isinstance(cells, bool) and cells > 0
    return Input(
        name="latent",
        kind="latent",
        channels=channels,
        height=int(cells) * downsampling if known and isinstance(cells, int) else None,
        downsampling=downsampling,
        frame_downsampling=frames,
    )


def modulate(condition: int, hidden: int, vectors: int, *, streams: int = 1) -> Modulation:
    """Shifts, scales and gates, for each of ``streams`` sequences."""
    return Modulation(condition_size=condition, hidden_size=hidden, vectors=vectors, streams=streams)


def embed(columns: int, hidden: int) -> tuple[SimpleLayer, SimpleLayer]:
    """Two matrices with an activation between them, on one vector a sample."""
    return linear(columns, hidden), linear(hidden, hidden)


def once(*layers: SimpleLayer, over: str = "latent", count: int = 1) -> Block:
    """Layers that run once a sample."""
    return part(*layers, over=over, once=True, count=count)


def width_of(reader: ConfigReader) -> int:
    """Width of the model: heads by their size."""
    return reader.size("num_attention_heads") * reader.size("attention_head_dim")


def only(reader: ConfigReader, name: str, allowed: tuple[object, ...]) -> None:
    """Refuse a setting other than those that are known to leave the tensors as they are."""
    if name in reader.config and reader.config[name] not in allowed:
        raise unsupported(name, f"{name} is known as {' or '.join(str(value) for value in allowed)} only")


def caption_projection(columns: int, hidden: int) -> Block:
    """Two matrices that widen the text."""
    return part(*embed(columns, hidden), over="text")
