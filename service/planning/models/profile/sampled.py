"""Memory of a whole sample: coefficients of a profile over positions that differ by block.

A decoder's blocks all run over the tokens of a sequence, so its coefficients are per token. Blocks of a
vision tower, a U-Net or an encoder-decoder each run over their own positions (``positions``), so theirs are
summed over one sample: :func:`training_profile` gives a profile whose one "token" is one sample, to be used
with a sequence length of 1; :func:`forward_pass` gives the memory of inference over one sample. Checked
against PyTorch by ``tests/oracles/tower_memory.py``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import (
    Activation,
    Attention,
    Convolution,
    EmbeddingTable,
    FeedForward,
    Interaction,
    Linear,
    Modulation,
    Normalization,
    Resampling,
    SimpleLayer,
)
from service.planning.models.positions import BlockPositions, LayerPositions, SampleShape, block_positions
from service.planning.models.profile.activations import (
    ActivationTerms,
    activation_terms,
    inner_elements,
    selected_terms,
)
from service.planning.models.profile.derivation import activation_sums
from service.planning.models.profile.iteration import STREAM_COPIES, live_elements
from service.planning.models.profile.model import BlockProfile, ModelProfile
from service.planning.models.profile.parts import get_block_width, is_loose
from service.planning.models.profile.saved import NO_TERMS, sampled_terms, scale_to_positions


def _count_passing_elements(  # noqa: PLR0911 - one kind a case
    layer: SimpleLayer, places: LayerPositions
) -> tuple[float, float]:
    """Returns the elements that enter and leave one instance of a layer."""
    entering, leaving, _ = places
    match layer:
        case Convolution():
            return layer.input_channels * entering, layer.output_channels * leaving
        case Linear():
            return layer.input_size * entering, layer.output_size * leaving
        case Normalization() | Activation():
            return layer.size * entering, layer.size * entering
        case Attention() | FeedForward() | Modulation():
            return layer.hidden_size * entering, layer.hidden_size * entering
        case Interaction():
            return layer.features * layer.size * entering, layer.features**2 * entering
        case EmbeddingTable():
            return 0.0, layer.size * entering
        case Resampling(channels=int(channels)):
            return channels * entering, channels * leaving
        case _:
            return 0.0, 0.0


WRITTEN_OUT = {"quick_gelu": 1, "gelu_new": 2}
"""Tensors that a function of several operators holds in a forward pass, beside input and result."""


class _SampledBlock(NamedTuple):
    """Terms of one repetition of a block over one sample."""

    terms: ActivationTerms
    selected: ActivationTerms
    width: float
    passing: float
    """Largest input or output of a layer."""
    inner: float
    live: float
    """Maximum elements that a forward pass alone holds."""


def _count_live_elements(layer: SimpleLayer, places: LayerPositions, stream: float) -> float:
    """Returns the elements that a forward pass holds within a layer.

    The stream, the inputs and the outputs.
    """
    enters, leaves = _count_passing_elements(layer, places)
    inside = live_elements(layer).count_device_elements(1) * places.entering
    if isinstance(layer, Attention) and layer.score_bias:
        seen = min(places.context, layer.window_tokens or places.context)
        inside += 2.0 * layer.query_heads * places.entering * seen
    if isinstance(layer, FeedForward):
        # A function written as several operators holds intermediates.
        inside += layer.inner_size * WRITTEN_OUT.get(layer.activation, 0) * places.entering
    if inside:
        return STREAM_COPIES * max(stream, enters) + inside
    return stream + enters + leaves


def _build_sampled_block(block: LayerBlock, positions: BlockPositions) -> _SampledBlock:
    terms = NO_TERMS
    width = float(get_block_width(block) * positions.layers[0].entering) if block.layers else 0.0
    selected = ActivationTerms(whole_elements=width)
    passing = inner = live = 0.0
    beside = width if len(block.layers) > 1 else 0.0
    for layer, places in positions.list_passes(block):
        found = sampled_terms(layer, places)
        terms = terms.add_scaled(found, layer.count)
        selected = selected.add_scaled(_select_saved_terms(layer, places, found), layer.count)
        passing = max(passing, *_count_passing_elements(layer, places))
        inner = max(inner, inner_elements(layer) * places.entering)
        if isinstance(layer, Convolution) and layer.shortcut:
            # The output of the other layers is held beside the shortcut and its input.
            beside = width + layer.output_channels * places.leaving
        live = max(live, _count_live_elements(layer, places, beside))
    times = positions.instances
    return _SampledBlock(
        NO_TERMS.add_scaled(terms, times),
        NO_TERMS.add_scaled(selected, times),
        *(figure * times for figure in (width, passing, inner, live)),
    )


def _select_saved_terms(
    layer: SimpleLayer, places: LayerPositions, terms: ActivationTerms
) -> ActivationTerms:
    """Returns the terms that selective recomputation saves; half of those of convolutions and the like."""
    match layer:
        case Attention() | FeedForward() | Normalization():
            return scale_to_positions(selected_terms(layer, activation_terms(layer)), places.entering)
        case Activation():
            return NO_TERMS
        case _:
            return selected_terms(layer, terms)


def _count_output_elements(
    architecture: Architecture, found: Sequence[BlockPositions]
) -> tuple[float, float]:
    """Returns the elements that the heads give for one sample, and those that enter them.

    Without a head, the output of the last block counts: a noise or a picture that is compared with another.
    """
    kinds = {item.name: item.kind for item in architecture.inputs}
    first = architecture.inputs[0].name
    tokens = found[-1].leaving if found else 0
    for block, positions in zip(architecture.list_blocks(), found, strict=True):
        if kinds[(block.over or (first,))[0]] == "tokens" and block.per == "position":
            tokens = positions.leaving
    given = entered = 0.0
    for head in architecture.heads:
        places = tokens if head.per == "token" else 1
        given += float(head.output_size * places)
        entered += float(head.input_size * places)
    if architecture.heads or not found:
        return given, entered
    *_, last = architecture.list_blocks()
    places_of_last = found[-1].layers[-1]
    return _count_passing_elements(last.layers[-1], places_of_last)[1] * found[-1].instances, 0.0


def _count_skip_elements(architecture: Architecture, found: Sequence[BlockPositions]) -> list[float]:
    """Returns the elements of earlier blocks that are held beside each block until a later block reads them.

    A block that reads more channels than the block before it outputs takes the others from a block on the
    same grid on the way down.
    """
    width: dict[tuple[str, ...], float] = {}
    taken: list[tuple[int, int, float]] = []
    for index, (block, positions) in enumerate(zip(architecture.list_blocks(), found, strict=True)):
        first = block.layers[0]
        before = width.get(block.over, 0.0)
        if isinstance(first, Normalization) and first.norm == "group" and 0.0 < before < first.size:
            entering = positions.layers[0].entering
            taken.append((index, entering, (first.size - before) * entering * positions.instances))
        after = _count_output_channels(block)
        if block.per == "position" and after:
            width[block.over] = after
    waiting = []
    for index, positions in enumerate(found):
        cells = positions.layers[0].entering
        waiting.append(
            sum(
                size
                for later, grid, size in taken
                if later >= index and (grid >= cells or index > taken[0][0])
            )
        )
    return waiting


def _count_output_channels(block: LayerBlock) -> float:
    """Returns the output channels of a block, or 0 where its layers do not define them."""
    for layer in reversed(block.layers):
        match layer:
            case Convolution(shortcut=False):
                return float(layer.output_channels)
            case Linear():
                return float(layer.output_size)
            case FeedForward() | Attention():
                return float(layer.hidden_size)
            case _:
                continue
    return 0.0


class _SampledModel(NamedTuple):
    """Every block of a model over one sample."""

    blocks: tuple[_SampledBlock, ...]
    positions: tuple[BlockPositions, ...]
    waiting: tuple[float, ...]
    answered: float
    entered: float


@lru_cache(maxsize=256)
def _profile_sample(architecture: Architecture, sample: SampleShape) -> _SampledModel:
    positions = block_positions(architecture, sample)
    known: dict[tuple[LayerBlock, BlockPositions], _SampledBlock] = {}
    blocks = []
    for block, places in zip(architecture.list_blocks(), positions, strict=True):
        key = (replace(block, count=1), places)
        if key not in known:
            known[key] = _build_sampled_block(*key)
        blocks.append(known[key])
    waiting = tuple(_count_skip_elements(architecture, positions))
    return _SampledModel(tuple(blocks), positions, waiting, *_count_output_elements(architecture, positions))


def _compute_cross_terms(block: LayerBlock, positions: BlockPositions) -> ActivationTerms:
    """Returns the tensors that a block's cross-attention reads."""
    size = sum(
        (layer.cross_size or 0) * places.context * positions.instances
        for layer, places in zip(block.layers, positions.layers, strict=True)
        if isinstance(layer, Attention) and layer.cross_size is not None
    )
    return ActivationTerms(whole_elements=float(size), whole_inputs=float(size))


def _build_runs(
    profile: ModelProfile, architecture: Architecture, whole: _SampledModel
) -> list[BlockProfile]:
    """Builds one profile for each run of equal blocks, in order.

    Layers between blocks (stems, projectors, resamplings) are saved with the block before them, or with the
    first, whatever is recomputed: that block is a separate run.
    """
    deep = iter(profile.blocks)
    runs: list[BlockProfile] = []
    ahead, read = NO_TERMS, set[tuple[str, ...]]()
    rows = zip(architecture.layers, architecture.list_blocks(), whole.blocks, whole.positions, strict=True)
    for layer, block, found, positions in rows:
        if not is_loose(layer):
            known = next(deep)._replace(
                activations=found.terms,
                width_elements=found.width,
                selected=found.selected,
                positions=positions,
            )
            if block.reads not in read and block.per == "position":
                read.add(block.reads)
                ahead = ahead.add_scaled(_compute_cross_terms(block, positions))
            if ahead is not NO_TERMS:
                first, known = _split_run(known, 1)
                runs.append(_add_terms(first, ahead))
                ahead = NO_TERMS
            runs += [known] * (known.repeats > 0)
        elif runs:
            others, last = _split_run(runs[-1], runs[-1].repeats - 1)
            runs[-1:] = [others] * (others.repeats > 0)
            runs.append(_add_terms(last, NO_TERMS.add_scaled(found.terms, block.count)))
        else:
            ahead = ahead.add_scaled(found.terms, block.count)
    return runs


def _split_run(run: BlockProfile, count: int) -> tuple[BlockProfile, BlockProfile]:
    """Returns the first blocks of a run, and the rest."""
    return run._replace(repeats=count), run._replace(repeats=run.repeats - count, start=run.start + count)


def _add_terms(block: BlockProfile, terms: ActivationTerms) -> BlockProfile:
    return block._replace(
        activations=block.activations.add_scaled(terms),
        selected=block.selected.add_scaled(terms),
        width_elements=block.width_elements + terms.whole_elements + terms.split_elements,
    )


def training_profile(profile: ModelProfile, architecture: Architecture, sample: SampleShape) -> ModelProfile:
    """Returns ``profile`` with the activations of one sample in place of those of one token.

    Raises :class:`PlanningError` as :func:`block_positions` does.
    """
    whole = _profile_sample(architecture, sample)
    runs = _build_runs(profile, architecture, whole)
    # The first repetition includes the layers before the model, the last those after it.
    starts = [run.start for run in runs]
    blocks = [
        runs[bisect_right(starts, known.start + known.repeats // 2) - 1]._replace(
            repeats=known.repeats, start=known.start
        )
        for known in profile.blocks
    ]
    activations = NO_TERMS
    for run in runs:
        activations = activations.add_scaled(run.activations, run.repeats)
    table = architecture.embeddings
    masks = float(table.size * _count_table_tokens(architecture, whole)) if table and table.dropout else 0.0
    return profile._replace(
        sample=sample,
        blocks=tuple(blocks),
        activations=activations,
        activation_prefixes=activation_sums(runs),
        deepest=max(
            runs,
            key=lambda block: block.activations.whole_elements + block.activations.split_elements,
            default=None,
        ),
        width_elements=float(sum(run.width_elements * run.repeats for run in runs)),
        vocabulary_size=round(whole.answered),
        head_saved_elements=whole.entered,
        embedding_mask_bytes=masks,
        widest_elements=round(max((found.passing for found in whole.blocks), default=0.0)),
        inner_elements=max((found.inner for found in whole.blocks), default=0.0),
    )


def _count_table_tokens(architecture: Architecture, whole: _SampledModel) -> int:
    """Returns the positions of the inputs that are looked up in the token table."""
    kinds = {item.name: item.kind for item in architecture.inputs}
    first = architecture.inputs[0].name
    found: dict[tuple[str, ...], int] = {}
    for block, positions in zip(architecture.list_blocks(), whole.positions, strict=True):
        names = block.over or (first,)
        if all(kinds[name] in ("tokens", "source_tokens") for name in names):
            found[names] = positions.entering
    return sum(found.values())


class ForwardPass(NamedTuple):
    """A forward pass over one request, without gradients."""

    elements: float
    """Maximum elements held at a time; for a model that decodes, by the blocks before its decoder."""
    positions: int
    """Positions of pictures and the like in the decoder's sequence."""
    read: int | None
    """Positions that the decoder's cross-attention reads, if they are no text."""


def forward_pass(architecture: Architecture, sample: SampleShape, *, decodes: bool) -> ForwardPass:
    """Returns the elements that a forward pass over ``sample`` holds, and the positions in a decoder's cache.

    Raises :class:`PlanningError` as :func:`block_positions` does.
    """
    whole = _profile_sample(architecture, sample)
    kinds = {item.name: item.kind for item in architecture.inputs}
    first = architecture.inputs[0].name
    live, left, read = 0.0, dict[str, int](), None
    rows = zip(architecture.list_blocks(), whole.blocks, whole.positions, whole.waiting, strict=True)
    for block, found, positions, waiting in rows:
        names = block.over or (first,)
        if decodes and kinds[names[0]] == "tokens":
            others = [name for name in block.reads if kinds[name] != "source_tokens"]
            if others:
                read = sum(left.pop(name, 0) for name in others) or read
            continue
        live = max(live, found.live + waiting)
        if block.per == "position" and len(names) == 1 and kinds[names[0]] != "source_tokens":
            left[names[0]] = positions.leaving
    if not decodes:
        live = max(live, whole.answered + whole.entered)
    return ForwardPass(live, sum(left.values()) if decodes else 0, read)


@lru_cache(maxsize=64)
def count_pooled_elements(architecture: Architecture) -> int:
    """Returns the elements that a sample looks up in the embedding tables of a recommender and sums."""
    layers = ((layer, block) for block in architecture.list_blocks() for layer in block.layers)
    tables = ((layer, block) for layer, block in layers if isinstance(layer, EmbeddingTable))
    return sum(layer.size * layer.count * block.count for layer, block in tables)
