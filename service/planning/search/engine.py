"""Search of the layouts of some clusters: rules first, then bounds, then memory, then time.

The result does not depend on the bounds: each only leaves out layouts that are ruled out, or that ``depth``
others of the same cluster are proven to be better than. A test switches each of them off.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from service.planning.search.layouts import (
    LayoutArray,
    LayoutChoice,
    LayoutOptions,
    SearchCluster,
    apply_batch_size,
    build_grid,
    concatenate_layouts,
    expand_interleaved,
    match_choice,
)
from service.planning.search.pareto import select_nondominated, select_pareto_front
from service.planning.search.shapes import SearchShape, apply_rules

Floats = NDArray[np.float64]

CHUNK: Final = 4096
"""Layouts of an array: its intermediates stay in the cache of a core."""


_MANY: Final = 128
"""Number of layouts from which two smaller arrays are faster than one of all."""


class PruningProof(StrEnum):
    """A proof that a layout need not be evaluated."""

    STATE = "state"
    """Its state without any activation exceeds the device."""
    DEADLINE = "deadline"
    """Its multiplications alone take longer than the run may."""
    ROOFLINE = "roofline"
    """Its multiplications alone take longer than as many known layouts of its cluster take in all."""
    WORK = "work"
    """With smaller micro-batches, of which it has more than stages either way, it does not fit."""


PROOFS: Final = frozenset(PruningProof)


class LayoutTimes(NamedTuple):
    """Seconds of the run and mean watts of a device, one entry per layout.

    No watts where they do not count.
    """

    seconds: Floats
    watts: Floats | None


class SearchObjective(Protocol):
    """Objective of a search: memory and time of layouts."""

    def estimate_bytes(self, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns the memory of the fullest device in bytes."""

    def compute_least_bytes(self, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns a lower bound of the memory of the fullest device in bytes."""

    def estimate_runs(self, layouts: LayoutArray, choice: LayoutChoice) -> LayoutTimes:
        """Returns seconds and watts of the run."""

    def compute_least_seconds(self, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns a lower bound of the seconds of the run."""

    @property
    def grows_with_batch(self) -> bool:
        """True if larger micro-batches never take less memory, beyond one per stage."""


class SearchLimits(NamedTuple):
    """Limits of a run, and the number of best layouts; a limit of None does not bind.

    ``seconds`` is the duration beyond which a run is ruled out.
    """

    usable_bytes: float | None
    seconds: float | None
    depth: int
    weighs_power: bool


class FoundLayout(NamedTuple):
    """A layout among the best of its cluster."""

    choice: LayoutChoice
    layout: LayoutArray
    """Array of one entry."""
    seconds: float
    watts: float | None


class SearchOutcome(NamedTuple):
    """Outcome of all layouts; counts are by name of the rule."""

    considered: int
    scored: int
    feasible: int
    ruled_out: Mapping[str, int]
    pruned: Mapping[PruningProof, int]
    found: tuple[FoundLayout, ...]


class _SearchTask(NamedTuple):
    choice: LayoutChoice
    layouts: LayoutArray
    least: Floats

    def select_rows(self, which: NDArray[np.generic] | slice) -> "_SearchTask":
        return _SearchTask(self.choice, self.layouts.select_rows(which), self.least[which])  # type: ignore[arg-type]


class _LayoutSearch:
    """Search of one part of a space."""

    def __init__(
        self,
        objective: SearchObjective,
        shape: SearchShape,
        options: LayoutOptions,
        limits: SearchLimits,
        proofs: frozenset[PruningProof],
    ) -> None:
        self.objective, self.shape, self.options, self.limits = objective, shape, options, limits
        self.proofs = proofs
        self.ruled_out: Counter[str] = Counter()
        self.pruned: Counter[PruningProof] = Counter()
        self.considered = self.scored = self.feasible = 0
        self._found: list[FoundLayout] = []
        self._fronts: dict[int, _ParetoFront] = {}

    @property
    def found(self) -> tuple[FoundLayout, ...]:
        """Best layouts of every cluster."""
        fronts = (self._fronts[place] for place in sorted(self._fronts))
        return tuple(self._found[entry] for front in fronts for entry in front.entries.tolist())

    @property
    def _bounds_time(self) -> bool:
        by_deadline = PruningProof.DEADLINE in self.proofs and self.limits.seconds is not None
        return by_deadline or (PruningProof.ROOFLINE in self.proofs and not self.limits.weighs_power)

    def run(self, layouts: LayoutArray) -> None:
        """Evaluates all layouts in each choice."""
        tasks = [
            task for choice in self.options.list_choices() for task in self._build_tasks(layouts, choice)
        ]
        # The fastest candidates go first, so that the bound prunes more of the rest.
        for task in sorted(tasks, key=lambda task: float(task.least.min())):
            self._decide_task(task)

    def _build_tasks(self, layouts: LayoutArray, choice: LayoutChoice) -> Iterator[_SearchTask]:
        chosen = expand_interleaved(
            layouts.select_rows(match_choice(layouts, choice, self.options)), choice, self.options
        )
        self.considered += chosen.number
        left, broken = apply_rules(chosen, choice, self.shape)
        self.ruled_out += broken
        chosen = chosen.select_rows(left)
        if chosen and PruningProof.STATE in self.proofs and self.limits.usable_bytes is not None:
            fits = self.objective.compute_least_bytes(chosen, choice) <= self.limits.usable_bytes
            self.pruned[PruningProof.STATE] += chosen.number - int(np.count_nonzero(fits))
            chosen = chosen.select_rows(fits)
        if not chosen:
            return
        least = np.zeros(chosen.number)
        if self._bounds_time:
            least = self.objective.compute_least_seconds(chosen, choice)
        if PruningProof.DEADLINE in self.proofs and self.limits.seconds is not None:
            early = least <= self.limits.seconds
            self.pruned[PruningProof.DEADLINE] += chosen.number - int(np.count_nonzero(early))
            chosen, least = chosen.select_rows(early), least[early]
        if chosen:
            yield _SearchTask(choice, chosen, least)

    def _decide_task(self, task: _SearchTask) -> None:
        task = self._select_promising(task)
        fitting = [
            self._select_fitting(task.select_rows(slice(first, first + CHUNK)))
            for first in range(0, task.layouts.number, CHUNK)
        ]
        if not fitting:
            return
        task = _SearchTask(
            task.choice,
            concatenate_layouts(each.layouts for each in fitting),
            np.concatenate([each.least for each in fitting]),
        )
        task = task.select_rows(np.argsort(task.least, kind="stable"))
        for first in range(0, task.layouts.number, CHUNK):
            part = self._select_promising(task.select_rows(slice(first, first + CHUNK)))
            if part.layouts:
                self._score_task(part)

    def _select_promising(self, task: _SearchTask) -> _SearchTask:
        """Removes layouts that enough others of their cluster are proven to be faster than.

        They are slower than ``least``; the others are known. This holds only where time alone counts: a
        slower layout may draw less.
        """
        depth = self.limits.depth
        if PruningProof.ROOFLINE not in self.proofs or self.limits.weighs_power or not self._fronts:
            return task
        late = np.full(int(task.layouts.place.max()) + 1, np.inf)
        for place, front in self._fronts.items():
            if front.seconds.size >= depth and place < late.size:
                late[place] = front.seconds[depth - 1]
        promising = task.least <= late[task.layouts.place]
        self.pruned[PruningProof.ROOFLINE] += task.layouts.number - int(np.count_nonzero(promising))
        return task.select_rows(promising)

    def _select_fitting(self, task: _SearchTask) -> _SearchTask:
        usable = self.limits.usable_bytes
        if usable is None:
            return task
        if (
            PruningProof.WORK in self.proofs
            and self.objective.grows_with_batch
            and task.layouts.number >= _MANY
        ):
            return self._select_fitting_by_batch(task, usable)
        fits = self.objective.estimate_bytes(task.layouts, task.choice) <= usable
        self.ruled_out["memory"] += task.layouts.number - int(np.count_nonzero(fits))
        return task.select_rows(fits)

    def _select_fitting_by_batch(self, task: _SearchTask, usable: float) -> _SearchTask:
        """Evaluates the smallest micro-batch of each layout first: where it does not fit, larger ones do not.

        A replica has g sequences, m = g / b micro-batches of b. Those in flight are n of them, or all: min(b
        n, g) sequences, which do not fall as b grows; other memory per token, logits and the block at work,
        grows with b. State, gathered weights and buckets change where a step has one micro-batch alone, or no
        more than stages (``memory.transients``): beyond both they are the same. Other cases are left to
        :attr:`SearchObjective.grows_with_batch`.
        """
        layouts, count = task.layouts, task.layouts.number
        many = layouts.micro_batches > layouts.pipeline
        same = layouts.degrees - int(layouts.degrees.min())
        order = np.lexsort((layouts.micro_batch_size, ~many, same))
        heads = np.ones(count, dtype=np.bool_)
        heads[1:] = same[order][1:] != same[order][:-1]
        first = order[heads]
        proven = first[many[first]]
        fits = np.zeros(count, dtype=np.bool_)
        known = np.zeros(count, dtype=np.bool_)
        fits[first] = self.objective.estimate_bytes(layouts.select_rows(first), task.choice) <= usable
        known[first] = True
        full = np.zeros(int(same.max()) + 1, dtype=np.bool_)
        full[same[proven]] = ~fits[proven]
        cut = ~known & many & full[same]
        rest = np.flatnonzero(~known & ~cut)
        if rest.size:
            fits[rest] = self.objective.estimate_bytes(layouts.select_rows(rest), task.choice) <= usable
        self.pruned[PruningProof.WORK] += int(np.count_nonzero(cut))
        self.ruled_out["memory"] += count - int(np.count_nonzero(fits)) - int(np.count_nonzero(cut))
        return task.select_rows(fits)

    def _score_task(self, task: _SearchTask) -> None:
        layouts, limits = task.layouts, self.limits
        seconds, watts = self.objective.estimate_runs(layouts, task.choice)
        self.scored += layouts.number
        if limits.seconds is not None:
            early = seconds <= limits.seconds
            self.ruled_out["deadline"] += layouts.number - int(np.count_nonzero(early))
            layouts, seconds = layouts.select_rows(early), seconds[early]
            watts = None if watts is None else watts[early]
        self.feasible += layouts.number
        for place in np.unique(layouts.place).tolist():
            here = np.flatnonzero(layouts.place == place)
            self._record_best(
                place,
                _ScoredLayouts(
                    task.choice, layouts.select_rows(here), seconds[here], _select_entries(watts, here)
                ),
            )

    def _record_best(self, place: int, scored: "_ScoredLayouts") -> None:
        """Records the best layouts of this array and, where time alone counts, of all before."""
        depth, layouts = self.limits.depth, scored.layouts
        ties = (
            layouts.context,
            layouts.data,
            layouts.expert,
            layouts.pipeline,
            layouts.tensor,
            layouts.virtual_stages,
            layouts.micro_batches,
            layouts.micro_batch_size,
        )
        which = select_pareto_front(scored.seconds, scored.watts, depth, ties)
        front = self._fronts.get(place, _NO_FRONT)
        seconds, watts = scored.seconds[which], _select_entries(scored.watts, which)
        first = len(self._found)
        for entry in which.tolist():
            drawn = None if scored.watts is None else float(scored.watts[entry])
            alone = layouts.select_rows(slice(entry, entry + 1))
            self._found.append(FoundLayout(scored.choice, alone, float(scored.seconds[entry]), drawn))
        added = _ParetoFront(
            seconds,
            np.zeros(which.size) if watts is None else watts,
            np.arange(first, first + which.size, dtype=np.intp),
        )
        joined = front.concatenate_with(added)
        self._fronts[place] = joined.select_rows(select_nondominated(joined.seconds, joined.watts, depth))


class _ScoredLayouts(NamedTuple):
    choice: LayoutChoice
    layouts: LayoutArray
    seconds: Floats
    watts: Floats | None


class _ParetoFront(NamedTuple):
    """Best layouts of a cluster so far, in the order of seconds; ``entries`` are indices among all found."""

    seconds: Floats
    watts: Floats
    entries: NDArray[np.intp]

    def concatenate_with(self, other: "_ParetoFront") -> "_ParetoFront":
        """Returns both fronts, one after the other."""
        return _ParetoFront(
            np.concatenate([self.seconds, other.seconds]),
            np.concatenate([self.watts, other.watts]),
            np.concatenate([self.entries, other.entries]),
        )

    def select_rows(self, which: NDArray[np.intp]) -> "_ParetoFront":
        """Returns the entries at the given indices."""
        return _ParetoFront(self.seconds[which], self.watts[which], self.entries[which])


_NO_FRONT: Final = _ParetoFront(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp))


def _select_entries(column: Floats | None, which: NDArray[np.intp]) -> Floats | None:
    return None if column is None else column[which]


def search_layouts(
    objective: SearchObjective,
    shape: SearchShape,
    many: tuple[SearchCluster, ...],
    options: LayoutOptions,
    limits: SearchLimits,
    *,
    rows: tuple[int, int] = (0, 1),
    proofs: frozenset[PruningProof] = PROOFS,
) -> SearchOutcome:
    """Evaluates every layout of some clusters: the best of each by seconds and watts, and counts.

    ``rows`` are first and step among the combinations of degrees and micro-batches, to search a part of them.
    """
    search = _LayoutSearch(objective, shape, options, limits, proofs)
    search.run(
        apply_batch_size(
            build_grid(many, options).select_rows(slice(rows[0], None, rows[1])), shape.global_batch_size
        )
    )
    return SearchOutcome(
        search.considered,
        search.scored,
        search.feasible,
        +search.ruled_out,
        +search.pruned,
        search.found,
    )
