"""Positions that each block of an architecture runs over: text tokens, patches, latents, pixels.

A block runs over the positions of the inputs that it names. An input enters as a grid of frames, rows and
columns (a sequence is one row); strides and resamplings change the grid along the way, class tokens lengthen
it. Blocks stand in the order in which data passes through them, so that one pass over them gives every
number. Sizes of convolutions: Dumoulin and Visin 2016; patches: Dosovitskiy et al. 2020; frames of causal
video autoencoders, 1 + (F - 1) / factor: Yu et al. 2023.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import (
    Attention,
    CompressedAttention,
    Convolution,
    Interaction,
    LatentAttention,
    LearnedVectors,
    LinearAttention,
    MixtureOfExperts,
    Modulation,
    Resampling,
    SimpleLayer,
    StateSpace,
)

MOST_POSITIONS = 2**40
"""Maximum positions, far beyond the largest sample: an hour of video in pixels."""


MOST_RESAMPLINGS = 1000
"""Maximum layers in a row that change a grid; no model has as many."""

MOST_REPEATED = 10_000
"""Maximum repetitions of such layers in a whole model, each of which is a separate step."""


class SampleShape(NamedTuple):
    """Size of one sample. A field left out takes the value of the input itself.

    ``height`` and ``width`` are pixels, ``frames`` those of a video, ``audio_frames`` those of a spectrogram,
    ``images`` the number of images or videos in a sample, each encoded separately.
    """

    tokens: int | None = None
    source_tokens: int | None = None
    height: int | None = None
    width: int | None = None
    frames: int | None = None
    audio_frames: int | None = None
    images: int = 1


class LayerPositions(NamedTuple):
    """Positions that enter and leave one layer, and those that each query of an attention sees.

    Figures are of one instance: an image of a sample, or the whole sample. ``context`` leaves windows and
    causal masks to the attention's own formula, and is 0 for other kinds. A convolution multiplies its kernel
    at each position that leaves it.
    """

    entering: int
    leaving: int
    context: int


class BlockPositions(NamedTuple):
    """Positions of one repetition of a block: ``instances`` per sample, each with these layers."""

    instances: int
    layers: tuple[LayerPositions, ...]
    images: int = 0
    """Positions of images among those that enter an instance, where experts tell them apart."""

    def list_passes(self, block: LayerBlock) -> Iterator[tuple[SimpleLayer, LayerPositions]]:
        """Yields the layers of ``block`` as positions pass them.

        Experts are passed by tokens of text and by positions of images apart where they tell them apart.
        """
        for layer, places in zip(block.layers, self.layers, strict=True):
            if not isinstance(layer, MixtureOfExperts) or layer.image_expert_inner_size is None:
                yield layer, places
                continue
            for each, count in (
                (layer.for_text, places.entering - self.images),
                (layer.for_images, self.images),
            ):
                if count:
                    yield each, LayerPositions(count, count, places.context)

    @property
    def entering(self) -> int:
        """Positions of a whole sample that enter the block."""
        return self.instances * self.layers[0].entering

    @property
    def leaving(self) -> int:
        """Positions of a whole sample that leave the block."""
        return self.instances * self.layers[-1].leaving


class _PositionGrid(NamedTuple):
    frames: int
    height: int
    width: int
    extra: int = 0
    instances: int = 1

    @property
    def positions(self) -> int:
        return self.frames * self.height * self.width + self.extra

    @property
    def of_sample(self) -> int:
        return self.positions * self.instances


def _resolve_sample_field(name: str, *values: int | None) -> int:
    for value in values:
        if value is not None:
            return value
    raise PlanningError("SAMPLE_FIELD_MISSING", f"/{name}", f"{name} of a sample is not known")


def _build_sequence_grid(length: int) -> _PositionGrid:
    return _PositionGrid(1, 1, length)


def _build_picture_grid(item: ModelInputShape, sample: SampleShape, *, moves: bool) -> _PositionGrid:
    height = _resolve_sample_field("height", sample.height, item.height)
    # A single side is that of a square.
    width = _resolve_sample_field("width", sample.width, sample.height or item.width, height)
    frames = 1
    if moves:
        shown = _resolve_sample_field("frames", sample.frames, item.frames, 1)
        frames = 1 + (shown - 1) // item.frame_downsampling
    grid = _PositionGrid(frames, height // item.downsampling, width // item.downsampling)
    return grid._replace(instances=1 if item.kind == "latent" else sample.images)


def _build_input_grid(item: ModelInputShape, sample: SampleShape) -> _PositionGrid:
    match item.kind:
        case "tokens":
            return _build_sequence_grid(_resolve_sample_field("tokens", sample.tokens, item.length))
        case "source_tokens":
            return _build_sequence_grid(
                _resolve_sample_field("source_tokens", sample.source_tokens, item.length)
            )
        case "queries":
            return _build_sequence_grid(_resolve_sample_field("length", item.length))
        case "audio":
            heard = _resolve_sample_field("audio_frames", sample.audio_frames, item.length)
            # Frequencies are rows where convolutions run over them as well, channels elsewhere.
            return _PositionGrid(1, item.height or 1, heard)
        case "image" | "video" | "latent":
            return _build_picture_grid(item, sample, moves=item.kind != "image")
        case _:
            return _build_sequence_grid(1)


def _compute_output_size(size: int, stride: int, kernel: int, layer: Convolution) -> int:
    if layer.upsamples:
        return size * stride
    return ceil(size / stride) if layer.padded else (size - kernel) // stride + 1


def _convolve_grid(grid: _PositionGrid, layer: Convolution) -> _PositionGrid:
    grown = layer.upsamples
    return grid._replace(
        frames=grid.frames * layer.frame_stride if grown else ceil(grid.frames / layer.frame_stride),
        height=_compute_output_size(grid.height, layer.stride, layer.kernel_height, layer),
        width=_compute_output_size(grid.width, layer.stride, layer.kernel_width, layer),
    )


def _resample_grid(grid: _PositionGrid, layer: Resampling) -> _PositionGrid:
    return grid._replace(
        frames=max(1, int(grid.frames / layer.frame_factor)),
        height=max(1, int(grid.height / layer.factor)),
        width=max(1, int(grid.width / layer.factor)),
        extra=0 if layer.drops_extra_tokens else grid.extra,
    )


class _RepetitionLimit:
    """Counter of the repetitions of grid-changing layers that may still be evaluated."""

    def __init__(self) -> None:
        self.left = MOST_REPEATED

    def count_repeat(self, repeated: int) -> None:
        """Counts one repetition of a layer that was repeated ``repeated`` times before."""
        self.left -= repeated > 0
        if repeated == MOST_RESAMPLINGS or self.left < 0:
            detail = f"more than {MOST_RESAMPLINGS} layers in a row that change the grid"
            if self.left < 0:
                detail = f"layers that change the grid are repeated more than {MOST_REPEATED} times"
            raise PlanningError("REPEATED_RESAMPLING", "", detail)


def _apply_layer(grid: _PositionGrid, layer: SimpleLayer, steps: _RepetitionLimit) -> _PositionGrid:
    """Returns the grid after one layer with all of its repetitions."""
    if isinstance(layer, LearnedVectors):
        rows = layer.rows * layer.count if layer.purpose == "class_tokens" else 0
        return grid._replace(extra=grid.extra + rows)
    after = grid
    for repeated in range(layer.count):
        before = after
        steps.count_repeat(repeated)
        match layer:
            case Convolution(shortcut=False):
                after = _convolve_grid(after, layer)
            case Resampling():
                after = _resample_grid(after, layer)
            case _:
                return after
        if after.positions < 1:
            raise PlanningError("SAMPLE_TOO_SMALL", "/height", "a layer leaves no position of the sample")
        if after.of_sample > MOST_POSITIONS:
            raise PlanningError("SAMPLE_TOO_LARGE", "/height", f"more than {MOST_POSITIONS} positions")
        if after == before:
            break
    return after


def _resolve_entry_grid(block: LayerBlock, grids: Mapping[str, _PositionGrid]) -> _PositionGrid:
    named = [grids[name] for name in block.over] or [next(iter(grids.values()))]
    if block.per == "sample":
        return named[0]._replace(frames=1, height=1, width=1, extra=0)
    if len(named) == 1:
        return named[0]
    return _build_sequence_grid(sum(grid.of_sample for grid in named))


def _walk_block(
    block: LayerBlock, grids: Mapping[str, _PositionGrid], steps: _RepetitionLimit
) -> tuple[BlockPositions, _PositionGrid]:
    start = grid = _resolve_entry_grid(block, grids)
    read = sum(grids[name].of_sample for name in block.reads)
    joined = sum(grids[name].of_sample for name in block.joins)
    layers = []
    for layer in block.layers:
        behind = _apply_layer(grid, layer, steps)
        context = 0
        if isinstance(layer, Attention):
            crosses = layer.cross_size is not None
            context = read if crosses and block.reads else grid.positions + joined
        if isinstance(layer, Convolution) and layer.shortcut:
            layers.append(LayerPositions(start.positions, _convolve_grid(start, layer).positions, 0))
        else:
            layers.append(LayerPositions(grid.positions, behind.positions, context))
        grid = behind
    return BlockPositions(grid.instances, tuple(layers)), grid


def _count_images(
    block: LayerBlock, architecture: Architecture, grids: Mapping[str, _PositionGrid], entering: int
) -> int:
    """Returns the positions of images in the sequence that experts tell apart from text."""
    if not any(
        isinstance(layer, MixtureOfExperts) and layer.image_expert_inner_size for layer in block.layers
    ):
        return 0
    seen = (item.name for item in architecture.inputs if item.kind in ("image", "video"))
    return min(entering, sum(grids[name].of_sample for name in seen))


def block_positions(architecture: Architecture, sample: SampleShape) -> tuple[BlockPositions, ...]:
    """Returns the positions of every block of ``architecture`` for ``sample``, one entry per layer or block.

    A layer outside a block is a separate block, as :meth:`Architecture.list_blocks` gives them. Repetitions
    of a block have the same positions; one that changes the grid is refused with ``REPEATED_RESAMPLING``.
    Raises :class:`PlanningError` whose pointer names the field of the sample that is missing or too small.
    """
    grids = {item.name: _build_input_grid(item, sample) for item in architecture.inputs}
    found, steps = [], _RepetitionLimit()
    for index, block in enumerate(architecture.list_blocks()):
        entered = _resolve_entry_grid(block, grids)
        positions, behind = _walk_block(block, grids, steps)
        positions = positions._replace(images=_count_images(block, architecture, grids, entered.positions))
        if block.count > 1 and behind != entered:
            raise PlanningError(
                "REPEATED_RESAMPLING", f"/layers/{index}", "a block that changes the grid cannot repeat"
            )
        if block.per == "position" and len(block.over) < 2:  # noqa: PLR2004
            grids[block.over[0] if block.over else next(iter(grids))] = behind
        found.append(positions)
    return tuple(found)


_SCORED_ELSEWHERE = (LatentAttention, CompressedAttention, LinearAttention, StateSpace)


def _count_multiply_adds(layer: SimpleLayer, positions: LayerPositions) -> float:
    """Returns the multiply-adds of one layer on one instance: weights, scores and pairs of vectors."""
    entering, leaving, context = positions
    if isinstance(layer, Attention):
        # Keys and values of a cross-attention are computed from the sequence that it reads.
        source = context if layer.cross_size is not None else entering
        places = {"key": source, "value": source}
        weights = sum(
            tensor.elements * tensor.multiplied * places.get(tensor.name, entering)
            for tensor in layer.list_tensors()
        )
        seen = min(context, layer.window_tokens or context)
        return weights + 2.0 * layer.query_heads * layer.head_size * entering * seen
    if isinstance(layer, Interaction):
        return float(layer.features**2 * layer.size)
    places_of = {Convolution: leaving, Modulation: 1}
    place = places_of.get(type(layer), entering)
    return sum(tensor.elements * tensor.multiplied * place for tensor in layer.list_tensors())


@lru_cache(maxsize=256)
def forward_flops_of_sample(architecture: Architecture, sample: SampleShape) -> float:
    """Returns the FLOPs of one sample's forward pass, two for each multiplication and addition.

    Matrices and convolutions count at the positions that they run over, and attention over all positions in
    its window, masked or not. Raises :class:`PlanningError` for kinds of attention whose scores are counted
    elsewhere, and as :func:`block_positions` does.
    """
    total = 0.0
    found = block_positions(architecture, sample)
    for block, positions in zip(architecture.list_blocks(), found, strict=True):
        for layer, places in positions.list_passes(block):
            if isinstance(layer, _SCORED_ELSEWHERE):
                detail = f"the work of {layer.kind} on a sample is not counted here"
                raise PlanningError("LAYER_KIND_NOT_MODELLED", "", detail)
            total += (
                2.0 * _count_multiply_adds(layer, places) * layer.count * block.count * positions.instances
            )
    tokens = _build_input_grid(architecture.inputs[0], sample).positions
    for head in architecture.heads:
        places_of_head = tokens if head.per == "token" else 1
        total += 2.0 * head.input_size * head.output_size * places_of_head
    return total
