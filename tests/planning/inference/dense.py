"""A small iteration model: one dense model on one device, by its roofline."""

from typing import NamedTuple

import numpy as np

from service.planning.inference.iteration import IterationBatch, IterationTime


class Dense(NamedTuple):
    """About Llama-3.1-8B on an H100; ``seconds`` and ``compute_time`` say the same."""

    weight_bytes: float = 16e9
    flops_per_token: float = 16e9
    cache_bytes_per_token: float = 131072.0
    bytes_per_second: float = 2.7e12
    flops_per_second: float = 6e14
    score_flops: float = 4.0 * 4096 * 32
    fixed_seconds: float = 2.5e-3

    def compute_time(self, batch: IterationBatch) -> IterationTime:
        flops = self.flops_per_token * (batch.decoding * batch.positions + batch.prefilled)
        matrices = np.maximum(self.weight_bytes / self.bytes_per_second, flops / self.flops_per_second)
        moved = batch.cached_tokens * self.cache_bytes_per_token
        scores = batch.prefilled * batch.prefill_context * self.score_flops
        attention = moved / self.bytes_per_second + scores / self.flops_per_second
        none = 0.0 * flops
        return IterationTime(
            matrices=matrices,
            experts=none,
            attention=attention,
            other=none,
            collectives=none,
            launch=none + self.fixed_seconds,
            host=none,
            flops=flops + scores,
            moved_bytes=moved + self.weight_bytes,
            compute_bound_seconds=none,
        )

    def seconds(  # noqa: PLR0917
        self, decoding, cached_tokens, prefilled, prefill_context, prompts, positions=1.0
    ):
        assert prompts >= 0.0
        flops = self.flops_per_token * (decoding * positions + prefilled)
        matrices = max(self.weight_bytes / self.bytes_per_second, flops / self.flops_per_second)
        scores = prefilled * prefill_context * self.score_flops
        cache = cached_tokens * self.cache_bytes_per_token / self.bytes_per_second
        return matrices + cache + scores / self.flops_per_second + self.fixed_seconds
