"""Attention of an iteration over caches of decoding requests and over prompts, and recurrences."""

from typing import NamedTuple

from service.planning.figures import larger, smaller
from service.planning.inference.matrices import CountedTemplate
from service.planning.memory.caches import layer_cache_bytes
from service.planning.models.profile import AttentionWork, FusedAttention
from service.planning.models.profile.layer_operators import ScanTemplate
from service.planning.operators import DeviceMachine, OperatorKind, OperatorWork, operator_seconds
from service.planning.precision import NumberFormat
from service.planning.software.engines import EngineName
from service.planning.workload import InferenceWorkload

TILE_ROWS = 64.0
"""Rows of queries that a kernel of decode attention multiplies at a time, whether filled or not."""
GROWN_PASSES, REPEATED_PASSES = 3.0, 2.0
"""Passes of a step over a cache that is concatenated and repeated: it is read and written, then read and

written for every query head, and read there.
"""

_LEAST = 1e-9
_WIDE_BYTES = 2.0


class AttentionTime(NamedTuple):
    """Seconds of attention, the compute-bound part of them, FLOPs and bytes."""

    seconds: float
    bound: float
    flops: float
    moved_bytes: float


class CacheAttention(NamedTuple):
    """Attention over a cache in the layers of one kind on one device.

    All figures are sums over the layers.
    """

    window_tokens: float
    attended_tokens: float
    token_bytes: float
    """Cache bytes of a token, without the index of a sparse attention."""
    index_bytes: float
    decode_flops: float
    """FLOPs per position and token of context."""
    prefill_flops: float
    index_flops: float
    shared_heads: float
    """Query heads that share keys and values on a device."""
    head_elements: float
    query_elements: float
    """Elements of the queries and results of one position."""
    caches: bool
    fused: FusedAttention = FusedAttention.NATIVE
    """Release of the kernel of prompts."""
    source_tokens: float | None = None
    """Context tokens of every request in cross-attention; None in self-attention."""

    def compute_decode_work(
        self, decoding: float, cached: float, positions: float, stream: float, peak: float
    ) -> AttentionTime:
        """Returns the attention of decoding requests, at ``stream`` bytes and ``peak`` FLOPs per second."""
        own = self.source_tokens is None
        context = cached / larger(decoding, _LEAST) if own else self.source_tokens or 0.0
        reached = smaller(context, self.window_tokens)
        attended, seen = decoding * smaller(reached, self.attended_tokens), decoding * reached
        written = decoding * positions * own
        moved = (attended + written) * self.token_bytes + (seen + written) * self.index_bytes
        scores, index = positions * attended * self.decode_flops, positions * seen * self.index_flops
        filled = larger(1.0, TILE_ROWS / (self.shared_heads * positions))
        compute, memory = (scores * filled + index) / peak, moved / stream
        seconds = larger(compute, memory)
        return AttentionTime(seconds, seconds * (compute >= memory), scores + index, moved)

    def compute_prefill_work(
        self, tokens: float, mean_context: float, machine: DeviceMachine, wide: NumberFormat
    ) -> AttentionTime:
        """Returns the attention of chunks of prompts, as in a forward pass of training."""
        reached = smaller(mean_context, self.window_tokens)
        context = larger(smaller(reached, self.attended_tokens), _LEAST)
        flops = tokens * (context * self.prefill_flops + reached * self.index_flops)
        written = self.token_bytes + self.index_bytes + self.query_elements * _WIDE_BYTES
        operator = OperatorWork(
            "attention",
            OperatorKind.ATTENTION,
            wide,
            flops,
            tokens * written,
            columns=self.head_elements,
            context=context,
            fused=self.fused,
        )
        time = operator_seconds(operator, machine)
        seconds = larger(time.compute_seconds, time.memory_seconds)
        bound = seconds * (time.compute_seconds >= time.memory_seconds)
        return AttentionTime(seconds, bound, flops, operator.moved_bytes)


def build_attention(work: AttentionWork, workload: InferenceWorkload, tensor: int) -> CacheAttention:
    """Builds the attention of one kind.

    Transformers copies a cache that grows, and repeats it for every query head.
    """
    source = workload.input_tokens if workload.source_tokens is None else workload.source_tokens
    cached = layer_cache_bytes(work, workload.cache_format, tensor) if work.caches else 0.0
    elements = work.key_value_heads * work.key_value_head_elements + work.whole_cache_elements
    indexed = cached * work.index_elements / elements if elements else 0.0
    heads = max(work.query_heads / tensor, 1.0)
    shared = heads / max(work.key_value_heads / tensor, 1.0)
    if workload.rules.name is EngineName.TRANSFORMERS and work.key_value_heads:
        cached *= GROWN_PASSES + REPEATED_PASSES * shared
    layers = float(work.layers)
    size = work.head_size or work.score_flops / (4.0 * work.query_heads)
    return CacheAttention(
        window_tokens=work.window_tokens,
        attended_tokens=work.attended_tokens,
        token_bytes=layers * (cached - indexed),
        index_bytes=layers * indexed,
        decode_flops=layers * (work.decode_score_flops or work.score_flops) / tensor,
        prefill_flops=layers * work.score_flops / tensor,
        index_flops=layers * work.index_flops,
        shared_heads=shared,
        head_elements=size,
        query_elements=0.0 if work.joined else 2.0 * layers * heads * size,
        caches=work.caches,
        fused=workload.fused,
        source_tokens=source if work.cross else None,
    )


def build_scan_operator(templates: list[CountedTemplate], wide: NumberFormat, tensor: float) -> OperatorWork:
    """Builds the recurrences of all layers over one token of a prompt."""
    scans = [(each, count * each.times) for each, count in templates if isinstance(each, ScanTemplate)]
    return OperatorWork(
        "scan",
        OperatorKind.SCAN,
        wide,
        sum(each.flops * count for each, count in scans) / tensor,
        sum(each.elements * count for each, count in scans) / tensor * _WIDE_BYTES,
        4.0 * sum(count for _, count in scans),
    )


def compute_scan_work(one: OperatorWork, tokens: float, machine: DeviceMachine) -> AttentionTime:
    """Returns the recurrences over the tokens of prompts; ``one`` is the operator of one token."""
    operator = one._replace(flops=tokens * one.flops, moved_bytes=tokens * one.moved_bytes)
    time = operator_seconds(operator, machine)
    seconds = larger(time.compute_seconds, time.memory_seconds)
    bound = seconds * (time.compute_seconds >= time.memory_seconds)
    return AttentionTime(seconds, bound, operator.flops, operator.moved_bytes)
