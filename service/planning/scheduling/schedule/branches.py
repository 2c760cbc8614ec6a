"""Exact search: depth-first over modes, task by task, by branch and bound.

Pruned are sets of modes that a pool cannot hold, by a bound on the tasks that can still be placed, and by a
bound on the figure of the goal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from service.planning.scheduling.schedule.pools import PoolItem, find_least_starts
from service.planning.scheduling.schedule.tasks import FleetDevices, FleetTask, PlacedTask, TaskMode
from service.planning.scheduling.schedule.values import ScheduleValue, evaluate_schedule, find_least_figures


class _ExhaustedError(Exception):
    """The exact search has used all of its steps."""


class ScheduleSearch:
    """Branch and bound over the modes of tasks; ``best`` is the best known schedule."""

    def __init__(
        self, tasks: Sequence[FleetTask], fleet: FleetDevices, most_steps: int, between: Callable[[], object]
    ) -> None:
        self.tasks, self.fleet, self.left = tasks, fleet, most_steps
        self.between = between
        self.order = sorted(range(len(tasks)), key=lambda place: (tasks[place], place))
        self.modes = [task.modes for task in tasks]
        self.priorities = sorted({task.priority for task in tasks})
        self.best: list[PlacedTask] = []
        self.value = evaluate_schedule([], tasks, fleet.goal)
        self._known: dict[tuple[int, tuple[PoolItem, ...]], tuple[int, ...] | None] = {}

    def update_best(self, placed: list[PlacedTask]) -> None:
        """Stores a schedule if it is better than the known one."""
        value = evaluate_schedule(placed, self.tasks, self.fleet.goal)
        if value < self.value:
            self.best, self.value = placed, value

    def search_all(self) -> bool:
        """Returns true if all schedules were evaluated within the steps."""
        try:
            self._descend_branches(0, {})
        except _ExhaustedError:
            return False
        return True

    def _count_step(self) -> None:
        self.between()
        self.left -= 1
        if self.left < 0:
            raise _ExhaustedError

    def _descend_branches(self, depth: int, chosen: dict[int, TaskMode]) -> None:
        placed = list[PlacedTask]()
        for pool in range(len(self.fleet.capacities)):
            held = self._schedule_pool(chosen, pool)
            if held is None:
                return
            placed += held
        if depth < len(self.order) and not self._can_improve(depth, chosen, placed):
            return
        if depth == len(self.order):
            self.update_best(placed)
            return
        place = self.order[depth]
        for mode in self._list_branches(depth, chosen):
            self._descend_branches(depth + 1, chosen if mode is None else {**chosen, place: mode})

    def _list_branches(self, depth: int, chosen: Mapping[int, TaskMode]) -> Iterator[TaskMode | None]:
        """Yields modes, then None.

        A later one of equal tasks takes no earlier branch, as they are exchangeable.
        """
        place = self.order[depth]
        modes: list[TaskMode | None] = [*self.tasks[place].modes, None]
        if depth and self.tasks[self.order[depth - 1]] == self.tasks[place]:
            modes = modes[modes.index(chosen.get(self.order[depth - 1])) :]
        spent = sum((mode.cost for mode in chosen.values()), Decimal(0))
        for mode in modes:
            if mode is None or self.fleet.budget is None or spent + mode.cost <= self.fleet.budget:
                yield mode

    def _schedule_pool(self, chosen: Mapping[int, TaskMode], pool: int) -> list[PlacedTask] | None:
        """Returns the least-flow schedule of the chosen modes of a pool; None where it cannot hold them."""
        self._count_step()
        members = sorted(
            (
                PoolItem(self.tasks[place].earliest, self.tasks[place].latest, mode.devices, mode.seconds),
                place,
            )
            for place, mode in chosen.items()
            if mode.pool == pool
        )
        key = (pool, tuple(item for item, _ in members))
        if key not in self._known:
            self._known[key] = find_least_starts(key[1], self.fleet.capacities[pool], self._count_step)
        starts = self._known[key]
        if starts is None:
            return None
        found = zip(members, starts, strict=True)
        return [PlacedTask(place, chosen[place], start) for (_, place), start in found]

    def _can_improve(self, depth: int, chosen: Mapping[int, TaskMode], placed: Sequence[PlacedTask]) -> bool:
        """Returns true if a schedule with these and with open tasks can be better than the known one.

        Open tasks count where one of their modes has room beside the chosen ones, and by priority while the
        cheapest of them fit the budget. The least figures of as many are added: they bound a schedule of as
        many tasks, and one of fewer is worse.
        """
        value = evaluate_schedule(placed, self.tasks, self.fleet.goal)
        spent = sum((one.mode.cost for one in placed), Decimal(0))
        left = None if self.fleet.budget is None else self.fleet.budget - spent
        open_modes = {place: self._list_fitting_modes(place, chosen) for place in self.order[depth:]}
        missing = list(value.missing)
        for priority in _list_affordable_priorities(left, open_modes, self.tasks):
            missing[self.priorities.index(priority)] -= 1
        counted = sum(value.missing) - sum(missing)
        figures = [find_least_figures(modes, self.fleet.goal) for modes in open_modes.values() if modes]
        first = value.first + sum(sorted(first for first, _ in figures)[:counted], Decimal(0))
        second = value.second + sum(sorted(second for _, second in figures)[:counted], Decimal(0))
        return ScheduleValue(tuple(missing), first, second) < self.value

    def _list_fitting_modes(self, place: int, chosen: Mapping[int, TaskMode]) -> list[TaskMode]:
        """Returns the modes of an open task that each pool can hold beside the chosen ones."""
        return [
            mode
            for mode in self.tasks[place].modes
            if self._schedule_pool({**chosen, place: mode}, mode.pool) is not None
        ]


def _list_affordable_priorities(
    left: Decimal | None, open_modes: Mapping[int, Sequence[TaskMode]], tasks: Sequence[FleetTask]
) -> Iterator[int]:
    """Yields the priority of each open task that can be placed.

    The cheapest that fit the remaining budget.
    """
    costs = sorted(
        (tasks[place].priority, min(mode.cost for mode in modes))
        for place, modes in open_modes.items()
        if modes
    )
    for priority, cost in costs:
        if left is None:
            yield priority
        elif cost <= left:
            left -= cost
            yield priority
