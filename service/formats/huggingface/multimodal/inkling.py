"""Inkling: patches that matrices join step by step, a table of levels of sound, and the decoder."""

from collections.abc import Mapping
from itertools import pairwise
from math import ceil, log, prod
from typing import NamedTuple

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_senses_and_text
from service.formats.huggingface.parts import (
    build_learned_vectors,
    build_linear,
    build_norm,
    build_part,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_invalid_error
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import Resampling, SimpleLayer

_VISION: Mapping[str, ConfigDefault] = {
    "patch_size": 40,
    "temporal_patch_size": 2,
    "num_channels": 3,
    "num_hidden_layers": 24,
}
_AUDIO: Mapping[str, ConfigDefault] = {"n_mel_bins": 80, "mel_vocab_size": 256}
_NAMES = {
    "num_hidden_layers": ("n_layers", "num_hidden_layers"),
    "num_channels": ("n_channels", "num_channels"),
    "n_mel_bins": ("n_mel_bins", "num_codebooks"),
    "mel_vocab_size": ("mel_vocab_size", "codebook_size"),
}
_ROUNDED = 64
"""Multiple that widths between the matrices are rounded up to."""


class _Scale(NamedTuple):
    """Frames and pixels along a side that one vector stands for, and its width."""

    frames: int
    side: int
    width: int


def _multiply_factors(number: int) -> list[int]:
    """Products of the prime factors, the largest ones first."""
    factors, rest, candidate = list[int](), number, 2
    while candidate * candidate <= rest:
        while not rest % candidate:
            factors.append(candidate)
            rest //= candidate
        candidate += 1
    if rest > 1:
        factors.append(rest)
    largest_first = factors[::-1]
    return [prod(largest_first[: place + 1]) for place in range(len(largest_first))]


def _list_scales(frames: int, side: int, channels: int) -> list[_Scale]:
    """Scales from a pixel to a patch: first along its sides, then over frames."""
    sides = _multiply_factors(side)
    scales = [_Scale(1, 1, channels)]
    scales += [_Scale(1, step, ceil(step**2 * channels / _ROUNDED) * _ROUNDED) for step in sides]
    scales += [_Scale(step, side, side**2 * channels * step * _ROUNDED) for step in _multiply_factors(frames)]
    return scales


def _match_scales(costs: list[list[float]]) -> list[int]:
    """A scale of its own for each row, in order and cheapest together."""
    columns = len(costs[0])
    best: list[tuple[float, tuple[int, ...]]] = [(costs[0][place], (place,)) for place in range(columns)]
    for row in costs[1:]:
        best = [
            min(
                ((cost + row[place], (*taken, place)) for cost, taken in best if taken[-1] < place),
                default=(float("inf"), (place,)),
            )
            for place in range(columns)
        ]
    return list(min(best)[1])


def _choose_scales(scales: list[_Scale], depth: int, total: int) -> list[_Scale]:
    """The scales behind each layer: those nearest to even steps, each once where there are fewer layers."""
    steps = [log(total) * place / depth for place in range(depth + 1)]
    costs = [[abs(step - log(scale.frames * scale.side**2)) for scale in scales] for step in steps]
    enough = depth >= len(scales)
    chosen = [row.index(min(row)) for row in costs] if enough else _match_scales(costs)
    chosen[0], chosen[-1] = 0, len(scales) - 1
    return [scales[place] for place in chosen]


def _build_seeing(vision: ConfigReader, width: int) -> LayerBlock:
    vision.names = _NAMES
    frames, side = vision.read_size("temporal_patch_size"), read_side(vision, "patch_size") or 1
    channels, depth = vision.read_size("num_channels"), vision.read_depth("num_hidden_layers")
    if side * frames == 1:
        raise build_invalid_error("patch_size", "patch_size must join pixels")
    scales = _choose_scales(_list_scales(frames, side, channels), depth, side**2 * frames * channels)
    layers: list[SimpleLayer] = []
    for place, (before, behind) in enumerate(pairwise(scales)):
        folded, joined = behind.side // before.side, behind.frames // before.frames
        if folded * joined > 1:
            layers.append(Resampling(factor=float(folded), frame_factor=float(joined)))
        last = place == depth - 1
        output = width if last else behind.width
        layers.append(build_linear(before.width * folded**2 * joined, output, bias=False))
        layers += () if last else (build_norm(output, "rms"),)
    return build_part(*layers, build_norm(width, "rms"), over="image")


def _build_inkling(reader: ConfigReader, suffix: str) -> Architecture:
    """Inkling."""
    text = build_text_decoder(reader, suffix, "inkling_text")
    with read_nested(reader, "vision_config", _VISION) as vision:
        seen, channels = _build_seeing(vision, text.width), vision.read_size("num_channels")
    with read_nested(reader, "audio_config", _AUDIO) as audio:
        audio.names = _NAMES
        rows = audio.read_size("n_mel_bins") * audio.read_size("mel_vocab_size")
    heard = build_part(
        build_learned_vectors("tokens", text.width, rows), build_norm(text.width, "rms"), over="audio"
    )
    senses = (
        ModelInputShape(name="image", kind="video", channels=channels, frames=1),
        ModelInputShape(name="audio", kind="audio", channels=1),
    )
    return join_senses_and_text(text, senses, (seen, heard))


_CLASSES = ("ForConditionalGeneration", "Model")
INKLING = ModelFamily("Inkling", _build_inkling, _CLASSES, _CLASSES[0], None, {})
