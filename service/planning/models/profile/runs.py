"""Sums over runs of equal rows: equal blocks are one row and a count, whatever the count is."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import cast, overload

import numpy as np
from numpy.typing import NDArray

SumRow = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Sums of the first rows of a table, from none of them to all.

    ``sums[n]`` is the row of sums of the first ``n`` rows, ``sums[-1]`` that of all; an array of such numbers
    gives the columns of those rows.
    """

    starts: tuple[int, ...]
    """Number of rows before each run, and before the end."""
    before: tuple[SumRow, ...]
    """Sums of the rows before each run."""
    rows: tuple[SumRow, ...]
    """The row that each run repeats, and a row of zeros after the last."""

    @overload
    def __getitem__(self, count: int) -> SumRow: ...
    @overload
    def __getitem__(self, count: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def __getitem__(self, count: int | NDArray[np.int64]) -> SumRow | NDArray[np.float64]:
        """Returns the sums of the first ``count`` rows."""
        if isinstance(count, np.ndarray):
            runs = np.searchsorted(self.starts, count, side="right") - 1
            further = count - np.asarray(self.starts)[runs]
            sums = np.asarray(self.before)[runs].T + further * np.asarray(self.rows)[runs].T
            return cast("NDArray[np.float64]", sums)
        if count < 0:
            count += self.starts[-1] + 1
        run = bisect_right(self.starts, count) - 1
        ahead = count - self.starts[run]
        return tuple(
            total + ahead * each for total, each in zip(self.before[run], self.rows[run], strict=True)
        )


def running_sums(runs: Iterable[tuple[SumRow, int]], width: int) -> RunningSums:
    """Builds the running sums of rows of ``width`` numbers, each with its number of repetitions."""
    counted = [(row, count) for row, count in runs if count]
    nothing = (0.0,) * width

    def add_run(total: SumRow, run: tuple[SumRow, int]) -> SumRow:
        row, count = run
        return tuple(one + count * each for one, each in zip(total, row, strict=True))

    return RunningSums(
        starts=tuple(accumulate((count for _, count in counted), initial=0)),
        before=tuple(accumulate(counted, add_run, initial=nothing)),
        rows=(*(row for row, _ in counted), nothing),
    )
