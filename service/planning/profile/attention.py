"""What attention does beside multiplying its weights: scores, and the cache of keys and values."""

from typing import NamedTuple

from service.planning.architecture import Block
from service.planning.layers import Attention


class AttentionWork(NamedTuple):
    """The attention of ``layers`` equal layers: what the projections' FLOPs do not contain."""

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


def attention_work(blocks: tuple[Block, ...], *, generates: bool) -> tuple[AttentionWork, ...]:
    """The attention of all blocks, equal layers together."""
    work: dict[tuple[object, ...], AttentionWork] = {}
    for block in blocks:
        for layer in block.layers:
            if not isinstance(layer, Attention):
                continue
            count = block.count * layer.count
            causal = layer.causal and layer.cross_size is None
            item = AttentionWork(
                layers=count,
                score_flops=4.0 * layer.query_heads * layer.head_size,
                query_heads=layer.query_heads,
                key_value_heads=layer.key_value_heads,
                key_value_head_elements=2 * layer.head_size,
                causal=causal,
                window_tokens=float(layer.window_tokens or "inf"),
                caches=causal and generates,
            )
            known = work.get(item[1:])
            work[item[1:]] = item._replace(layers=count + known.layers) if known else item
    return tuple(work.values())
