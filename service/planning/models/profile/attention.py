"""Work of attention-like layers beside their weight matrices: scores, caches and states.

A layer of any of these kinds is one :class:`AttentionWork`: FLOPs that the projections do not contain, the
elements that it stores per token, and those that it stores per sequence whatever its length. FLOPs are two
per multiplication and addition, as PyTorch counts them for the plain formulas.

- attention: scores and weighted sum, 4 q d per token and token of context; two vectors a key-value head, and
  the key of a scorer where one picks the tokens, for each token or for each pool of them (Qwen3.8 2026).
  Keys and values of an earlier layer that are read again are cached there.
- latent attention (DeepSeek-V2 2024, section 2.1): keys are rebuilt with their rotary part, so a score
  costs 2 (nope + rope) and a weighted sum 2 v a head; the cache is one compressed vector and one rotary key
  for all heads, on every device of a tensor-parallel group; a scorer of sparse attention stores another key
  for each token, or for each pool of ``r`` tokens (GLM-5.3-Flash 2026), of which a token of context counts
  as ``1 / r``; keys and gates of tokens whose pool is not complete are kept beside them, and tokens behind
  the last complete pool, at most ``r - 1``, are read without a score, which is left out.
- compressed attention (DeepSeek-V4 2026, section 2.3): scores over a window and, in the same kernel, over an
  entry for each ``r`` tokens, so that a token of context counts as ``1 / r`` of an entry in FLOPs, cache and
  scorer; the vectors of tokens whose entry is not complete are kept in FP32, and read once an entry.
- linear attention (Yang et al. 2024): a state of key x value elements a value head, read, corrected and
  written for every token (three products of that size, 6 FLOPs an element); the convolution's last inputs.
- state space (Gu and Dao 2023; Dao and Gu 2024): a state of inner x state elements, decayed, added to and
  read (6 FLOPs an element); the last inputs of the convolution.
"""

from collections.abc import Iterator
from typing import NamedTuple

from service.planning.models.architecture import LayerBlock
from service.planning.models.layers import (
    Attention,
    CompressedAttention,
    LatentAttention,
    LinearAttention,
    StateSpace,
)


class AttentionWork(NamedTuple):
    """Attention of ``layers`` equal layers, without the FLOPs of projections."""

    layers: int
    score_flops: float
    """FLOPs of scores and weighted sum, per token and token of context."""
    query_heads: int
    key_value_heads: int
    key_value_head_elements: int
    """Elements of one key and one value of one head."""
    causal: bool
    window_tokens: float
    caches: bool
    token_flops: float = 0.0
    """FLOPs per token whatever the context: updates of a state, convolutions."""
    whole_cache_elements: float = 0.0
    """Elements per token that every device of a tensor-parallel group stores."""
    state_elements: int = 0
    """Elements of recurrent state of one sequence of a model that decodes."""
    convolution_elements: int = 0
    """Elements of the last inputs of a convolution that one sequence stores: its width less one."""
    convolution_channels: int = 0
    """Elements of one input of the convolution."""
    cross: bool = False
    """True if the keys and values are those of another sequence, the model's input."""
    decode_score_flops: float = 0.0
    """``score_flops`` where one token is generated from the cache itself; 0 if they are equal."""
    attended_tokens: float = float("inf")
    """Maximum tokens of context that count for a token, where a scorer picks them."""
    index_flops: float = 0.0
    """FLOPs of the scorer, per token and token of context."""
    index_elements: float = 0.0
    """Part of ``whole_cache_elements`` that the scorer reads of every token of context."""
    vectors: float = 2.0
    """Vectors per token, layer and head with separate scales in an integer cache."""
    joined: bool = False
    """True if it runs in the kernels of another attention of its layer, on the same queries."""
    bounded: bool = False
    """True if no engine keeps tokens beyond the window."""
    head_size: float = 0.0
    """Width of a key where ``score_flops`` are those of an entry for several tokens; 0 otherwise."""


_ELEMENT_FLOPS = 6.0
_WIDE_ELEMENTS = 2.0
"""Room of an FP32 element in elements of a cache of 16 bits."""


def _list_work(layer: object, count: int, *, generates: bool) -> Iterator[AttentionWork]:
    match layer:
        case Attention():
            yield from _list_head_work(layer, count, generates=generates)
        case LatentAttention():
            yield from _list_latent_work(layer, count, generates=generates)
        case CompressedAttention():
            yield from _list_compressed_work(layer, count, generates=generates)
        case LinearAttention():
            state = layer.value_heads * layer.key_head_size * layer.value_head_size
            convolved = 2 * layer.key_heads * layer.key_head_size + layer.value_heads * layer.value_head_size
            width = layer.convolution_width
            if layer.rule == "fixed":
                convolved, width = 0, 1
            yield _build_recurrent_work(
                count, layer.value_heads, state, convolved, width=width, generates=generates
            )
        case StateSpace():
            states = layer.groups * layer.state_size
            convolved = layer.inner_size + (2 * states if layer.heads else 0)
            state = layer.inner_size * layer.state_size
            # Mamba 1 has no heads: its channels are independent.
            heads = layer.heads or layer.inner_size
            yield _build_recurrent_work(
                count, heads, state, convolved, width=layer.convolution_width, generates=generates
            )
        case _:
            pass


def _list_head_work(layer: Attention, count: int, *, generates: bool) -> Iterator[AttentionWork]:
    cross = layer.cross_size is not None
    causal = layer.causal and not cross
    sizes = layer.head_size + (layer.value_head_size or layer.head_size)
    work = AttentionWork(
        layers=count,
        score_flops=2.0 * layer.query_heads * sizes,
        query_heads=layer.query_heads,
        key_value_heads=layer.key_value_heads,
        key_value_head_elements=sizes,
        causal=causal,
        window_tokens=float(layer.window_tokens or "inf"),
        caches=(causal or cross) and generates and layer.key_value != "shared",
        cross=cross,
    )
    yield _add_scorer(work, layer)
    if layer.index_pool is not None:
        yield _build_open_pool(work, layer.index_head_size or 0, layer.index_pool, layer.head_size)


def _list_latent_work(layer: LatentAttention, count: int, *, generates: bool) -> Iterator[AttentionWork]:
    per_head = layer.plain_head_size + layer.rotary_head_size + layer.value_head_size
    absorbed = 2 * layer.key_value_rank + layer.rotary_head_size
    work = AttentionWork(
        layers=count,
        score_flops=2.0 * layer.query_heads * per_head,
        query_heads=layer.query_heads,
        key_value_heads=0,
        key_value_head_elements=0,
        causal=True,
        window_tokens=float(layer.window_tokens or "inf"),
        caches=generates,
        whole_cache_elements=layer.key_value_rank + layer.rotary_head_size,
        # The up-projections are multiplied into query and output: scores run over the latent.
        decode_score_flops=2.0 * layer.query_heads * absorbed,
        vectors=1,
    )
    yield _add_scorer(work, layer)
    if layer.index_pool is not None:
        # Key and gate.
        kept = 2.0 * (layer.index_head_size or 0)
        yield _build_open_pool(work, kept, layer.index_pool, layer.key_value_rank)


def _build_open_pool(work: AttentionWork, elements: float, tokens: int, head_size: int) -> AttentionWork:
    """Returns the elements that a scorer keeps of each of the ``tokens`` whose pool is not complete."""
    return work._replace(
        score_flops=0.0,
        key_value_heads=0,
        key_value_head_elements=0,
        window_tokens=float(tokens),
        whole_cache_elements=elements,
        decode_score_flops=0.0,
        attended_tokens=0.0,
        vectors=1.0,
        joined=True,
        bounded=True,
        head_size=head_size,
    )


def _add_scorer(work: AttentionWork, layer: Attention | LatentAttention) -> AttentionWork:
    key = (layer.index_head_size or 0) * layer.index_share
    return work._replace(
        whole_cache_elements=work.whole_cache_elements + key,
        attended_tokens=float(layer.index_tokens or "inf"),
        index_flops=2.0 * (layer.index_heads or 0) * key,
        index_elements=key,
    )


def _list_compressed_work(
    layer: CompressedAttention, count: int, *, generates: bool
) -> Iterator[AttentionWork]:
    window = AttentionWork(
        layers=count,
        score_flops=4.0 * layer.query_heads * layer.head_size,
        query_heads=layer.query_heads,
        key_value_heads=0,
        key_value_head_elements=0,
        causal=True,
        window_tokens=float(layer.window_tokens),
        caches=generates,
        whole_cache_elements=layer.head_size,
        vectors=1,
        bounded=True,
    )
    yield window
    if layer.compression is None:
        return
    each, scorer = 1.0 / layer.compression, layer.index_head_size or 0
    picked = layer.compression * layer.index_entries if layer.index_entries else float("inf")
    yield window._replace(
        score_flops=window.score_flops * each,
        window_tokens=float("inf"),
        whole_cache_elements=(layer.head_size + scorer) * each,
        vectors=each,
        attended_tokens=float(picked),
        index_flops=2.0 * (layer.index_heads or 0) * scorer * each,
        index_elements=scorer * each,
        joined=True,
        bounded=False,
        head_size=layer.head_size,
    )
    kept = 2.0 * layer.series * (layer.head_size + scorer)
    yield window._replace(
        score_flops=0.0,
        window_tokens=float(layer.compression),
        whole_cache_elements=kept * _WIDE_ELEMENTS,
        attended_tokens=0.0,
        joined=True,
        head_size=layer.head_size,
    )


def _build_recurrent_work(
    count: int, heads: int, state: int, convolved: int, *, width: int, generates: bool
) -> AttentionWork:
    return AttentionWork(
        layers=count,
        score_flops=0.0,
        query_heads=heads,
        key_value_heads=0,
        key_value_head_elements=0,
        causal=True,
        window_tokens=0.0,
        caches=generates,
        token_flops=_ELEMENT_FLOPS * state + 2.0 * convolved * width,
        state_elements=state,
        convolution_elements=convolved * (width - 1),
        convolution_channels=convolved,
    )


def attention_work(blocks: tuple[LayerBlock, ...], *, generates: bool) -> tuple[AttentionWork, ...]:
    """Returns the attention-like layers of all blocks, equal layers together."""
    work: dict[AttentionWork, AttentionWork] = {}
    for block in blocks:
        for layer in block.layers:
            for item in _list_work(layer, block.count * layer.count, generates=generates):
                kind = item._replace(layers=1)
                known = work.get(kind)
                work[kind] = item._replace(layers=item.layers + known.layers) if known else item
    return tuple(work.values())
