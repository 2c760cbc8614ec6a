"""Tables of seconds of an iteration, for a simulation that evaluates very many of them."""

from bisect import bisect_right
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.iteration import IterationBatch
from service.planning.inference.load import ReplicaLoad
from service.planning.inference.speculation import IterationSource

_ROWS = 256
_COLUMNS = 40


class IterationTable:
    """Seconds of an iteration as numbers in lists, from a few array calls of the model.

    Linear in cached tokens for each number of requests, and between columns of prompt tokens.
    """

    def __init__(self, model: IterationSource, load: ReplicaLoad, most_tokens: float) -> None:
        self._model, self._load = model, load
        self.columns = [0.0, *np.geomspace(8.0, max(most_tokens, 16.0), _COLUMNS).tolist()]
        self.base: list[float] = []
        self.slope: list[float] = []
        self._prompts: list[list[float]] = []
        self._context = [0.0] * len(self.columns)
        self._reference = max(1.0, load.prefill_context)
        self._add_rows()
        self._fit_attention_slope()

    def _add_rows(self) -> None:
        """Adds rows for further decoding requests."""
        first = len(self.base)
        decoding = np.arange(first, first + _ROWS, dtype=np.float64)
        context = self._load.decoding_context
        short, long = (
            np.asarray(self._compute_times(decoding, decoding * context * factor, 0.0))
            for factor in (0.5, 1.5)
        )
        slope = (long - short) / np.maximum(decoding * context, 1.0)
        self.slope += slope.tolist()
        self.base += (short - slope * decoding * context * 0.5).tolist()
        # Every eighth row is computed, those between are interpolated.
        every = np.arange(first, first + _ROWS + 8, 8, dtype=np.float64)
        rows, columns = np.meshgrid(every, np.asarray(self.columns), indexing="ij")
        flat = np.asarray(self._compute_times(rows.ravel(), rows.ravel() * context, columns.ravel()))
        added = flat.reshape(rows.shape)
        added = np.maximum(added - added[:, :1], 0.0)
        for low, high in pairwise(added):
            self._prompts += (low + (high - low) * np.arange(8)[:, None] / 8.0).tolist()

    def _fit_attention_slope(self) -> None:
        """Fits the seconds of one prompt token per further token that it attends to."""
        tokens = np.asarray(self.columns[1:])
        near, far = (
            np.asarray(self._compute_times(np.zeros_like(tokens), np.zeros_like(tokens), tokens, factor))
            for factor in (1.0, 2.0)
        )
        self._context[1:] = ((far - near) / (tokens * self._reference)).tolist()
        self._context[0] = self._context[1]

    def _compute_times(
        self, decoding: NDArray[np.float64], cached: object, prefilled: object, factor: float = 1.0
    ) -> NDArray[np.float64]:
        tokens = np.zeros_like(decoding) + cast("float", prefilled)
        batch = IterationBatch(
            cast("float", decoding),
            cast("float", cached),
            cast("float", tokens),
            cast("float", np.where(tokens > 0.0, self._reference * factor, 0.0)),
            cast("float", tokens / self._load.computed_tokens),
        )
        return cast("NDArray[np.float64]", self._model.compute_time(batch).seconds)

    def compute_decode_seconds(self, requests: int) -> tuple[float, float]:
        """Returns the seconds of an iteration of ``requests`` without cached tokens, and per cached token."""
        while requests >= len(self.base):
            self._add_rows()
        return self.base[requests], self.slope[requests]

    def compute_prompt_seconds(self, requests: int, tokens: float, attended: float) -> float:
        """Returns the seconds that prompt ``tokens`` add, which attend to ``attended`` tokens in total."""
        while requests >= len(self._prompts):
            self._add_rows()
        columns, row = self.columns, self._prompts[requests]
        place = min(bisect_right(columns, tokens), len(columns) - 1)
        low, high = columns[place - 1], columns[place]
        share = (tokens - low) / (high - low)
        seconds = row[place - 1] + (row[place] - row[place - 1]) * share
        further = self._context[place] * (attended - tokens * self._reference)
        return max(0.0, float(seconds) + further)
