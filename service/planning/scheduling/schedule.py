"""Schedule of tasks on pools of devices, within a budget.

A task runs in one of its modes, without a break: a number of devices of one pool for a number of seconds, at
a cost that does not depend on its start. With ``x_t`` the mode and ``s_t`` the start of each placed task

    devices    sum of devices of x_t over s_t <= u < s_t + seconds of x_t  <=  capacity, of each pool at any u
    window     earliest_t <= s_t,  s_t + seconds of x_t <= latest_t
    budget     sum of costs of x_t <= budget

Of all such schedules the best places most tasks of the first priority, of these most of the second and so on;
of these it has the least cost, then the least flow (sum of s_t + seconds - earliest_t), or the other way
round.

**Exact**: depth-first over modes, task by task, by branch and bound. Given the modes, pools are independent,
and each is a question of order: no task of a schedule with the least flow can start earlier while the others
stay (it is *active*), and every active schedule results from placing tasks in the order of their starts, each
as early as those before it leave room (serial generation; Kolisch 1996, Sprecher, Kolisch and Drexl 1995).
Pruned are sets of modes that a pool cannot hold, by a bound on the tasks that can still be placed, and by a
bound on the figure of the goal.

**Otherwise**: the best of list schedules in several orders, improved by moving tasks that were left out to
the front, with an upper bound of any schedule: see :func:`compute_bound`.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, product
from typing import Literal, NamedTuple

ScheduleGoal = Literal["cheapest", "earliest"]

MOST_STEPS = 400_000
"""Maximum steps of the exact search; beyond them the best known schedule is the answer."""
_ROUNDS = 50
"""Maximum improvements of a list schedule."""


class TaskMode(NamedTuple):
    """A way to run a task: ``devices`` of a pool, by index, for ``seconds``, at a ``cost``."""

    pool: int
    devices: int
    seconds: int
    cost: Decimal


class FleetTask(NamedTuple):
    """A task to run in one of its modes from ``earliest`` to ``latest``, in seconds; priority 1 is first."""

    priority: int
    earliest: int
    latest: int
    modes: tuple[TaskMode, ...]


class FleetDevices(NamedTuple):
    """Devices of each pool, the maximum total cost, and the goal that ranks equally full schedules."""

    capacities: tuple[int, ...]
    budget: Decimal | None
    goal: ScheduleGoal


class PlacedTask(NamedTuple):
    """A task, by index, in one of its modes from a start in seconds."""

    task: int
    mode: TaskMode
    start: int

    @property
    def end(self) -> int:
        """End of the task in seconds."""
        return self.start + self.mode.seconds


class ScheduleBound(NamedTuple):
    """Bounds of any schedule: placed tasks, by priority and in all; the least figure of the placed ones."""

    most_placed: Mapping[int, int]
    most_in_all: int
    least_figure: Decimal


class FleetSchedule(NamedTuple):
    """Tasks by start, whether the schedule is proven optimal, and its bound."""

    placed: tuple[PlacedTask, ...]
    is_optimal: bool
    bound: ScheduleBound


class _PoolItem(NamedTuple):
    """A task in a mode, as a pool sees it."""

    earliest: int
    latest: int
    devices: int
    seconds: int


class _ScheduleValue(NamedTuple):
    """Value of a schedule; less is better."""

    missing: tuple[int, ...]
    first: Decimal
    second: Decimal


class _ExhaustedError(Exception):
    """The exact search has used all of its steps."""


def find_schedule(
    tasks: Sequence[FleetTask],
    fleet: FleetDevices,
    most_steps: int = MOST_STEPS,
    *,
    between: Callable[[], object] = object,
) -> FleetSchedule:
    """Returns the best schedule, or the best known after ``most_steps``; the result is deterministic.

    ``between`` is called between steps of the search; an exception that it raises ends the search.
    """
    tasks = [task._replace(modes=tuple(_list_feasible_modes(task, fleet))) for task in tasks]
    search = _ScheduleSearch(tasks, fleet, most_steps, between)
    search.update_best(_build_list_schedule(tasks, fleet, between))
    is_optimal = search.search_all()
    known = (
        search.best
        if is_optimal
        else _schedule_in_order(search.order, tasks, fleet, _by_goal(fleet.goal), search.best)
    )
    placed = tuple(sorted(known, key=lambda one: (one.start, one.task)))
    bound = compute_bound(tasks, fleet, [one.task for one in placed])
    return FleetSchedule(placed, is_optimal, bound)


def find_earliest_start(
    placed: Iterable[PlacedTask], capacity: int, mode: TaskMode, earliest: int, latest: int | None = None
) -> int | None:
    """Returns the first start in seconds at which ``mode`` has room beside ``placed``, all of its pool.

    None where it takes more than the pool has, or ends after ``latest``.
    """
    others = list(placed)
    if mode.devices > capacity:
        return None
    starts = sorted({earliest, *(one.end for one in others if one.end > earliest)})
    for start in starts:
        if latest is not None and start + mode.seconds > latest:
            return None
        if find_peak_devices(others, start, start + mode.seconds) + mode.devices <= capacity:
            return start
    raise AssertionError  # after the last end all devices are free


def find_least_capacity(
    placed: Iterable[PlacedTask], mode: TaskMode, earliest: int, latest: int
) -> int | None:
    """Returns the least devices of a pool with which ``mode`` has room beside ``placed``, within its window.

    None where it takes longer than the window. The tasks beside it change with its start only where one of
    them begins or ends.
    """
    others = list(placed)
    last = latest - mode.seconds
    if last < earliest:
        return None
    moments = {earliest, last, *(one.end for one in others), *(one.start - mode.seconds for one in others)}
    starts = (start for start in moments if earliest <= start <= last)
    return mode.devices + min(find_peak_devices(others, start, start + mode.seconds) for start in starts)


def find_peak_devices(placed: Iterable[PlacedTask], start: int, end: int) -> int:
    """Returns the most devices in use at a time between two moments."""
    during = [one for one in placed if one.start < end and one.end > start]
    moments = {start, *(one.start for one in during if one.start > start)}
    taken = (sum(one.mode.devices for one in during if one.start <= moment < one.end) for moment in moments)
    return max(taken)


def compute_bound(tasks: Sequence[FleetTask], fleet: FleetDevices, placed: Sequence[int]) -> ScheduleBound:
    """Returns bounds of any schedule: most tasks by priority, and the least cost or flow of ``placed``.

    The placed tasks whose windows lie in an interval take at most all device-seconds of every pool in it:
    with ``f_t`` the least share of the device-seconds of one pool that a mode of task ``t`` takes, ``sum f_t
    <= pools``, so that no more can be placed than the ones with the smallest shares; and within the budget no
    more than the cheapest. Each priority is counted separately, then all together; modes are those in which a
    task runs alone.
    """
    priorities = sorted({task.priority for task in tasks})
    members = [place for place, task in enumerate(tasks) if task.modes]
    most = {
        priority: _bound_task_count(
            tasks, fleet, [place for place in members if tasks[place].priority == priority]
        )
        for priority in priorities
    }
    figures = (_find_least_figures(tasks[place].modes, fleet.goal)[0] for place in placed)
    in_all = min(_bound_task_count(tasks, fleet, members), sum(most.values()))
    return ScheduleBound(most, in_all, sum(figures, Decimal(0)))


def _bound_task_count(tasks: Sequence[FleetTask], fleet: FleetDevices, members: Sequence[int]) -> int:
    counts = [len(members), *_bound_window_counts(tasks, fleet, members)]
    if fleet.budget is not None:
        costs = sorted(min(mode.cost for mode in tasks[place].modes) for place in members)
        counts.append(sum(cost <= fleet.budget for cost in accumulate(costs)))
    return min(counts)


def _bound_window_counts(
    tasks: Sequence[FleetTask], fleet: FleetDevices, members: Sequence[int]
) -> Iterator[int]:
    areas = {
        place: min(
            Fraction(mode.devices * mode.seconds, fleet.capacities[mode.pool]) for mode in tasks[place].modes
        )
        for place in members
    }
    begins, ends = {tasks[place].earliest for place in members}, {tasks[place].latest for place in members}
    for begin, end in product(sorted(begins), sorted(ends)):
        inside = [place for place in members if begin <= tasks[place].earliest and tasks[place].latest <= end]
        taken = accumulate(sorted(areas[place] for place in inside))
        count = sum(area <= len(fleet.capacities) * (end - begin) for area in taken)
        yield len(members) - len(inside) + count


def _list_feasible_modes(task: FleetTask, fleet: FleetDevices) -> list[TaskMode]:
    """Returns the modes in which a task runs alone, without dominated ones, best first."""
    alone = [
        mode
        for mode in task.modes
        if mode.devices <= fleet.capacities[mode.pool]
        and task.earliest + mode.seconds <= task.latest
        and (fleet.budget is None or mode.cost <= fleet.budget)
    ]
    alone.sort(key=lambda mode: (*_order_figures(mode, fleet.goal), mode.devices, mode.pool))
    kept = list[TaskMode]()
    for mode in alone:
        if not any(_is_no_worse(other, mode) for other in kept):
            kept.append(mode)
    return kept


def _is_no_worse(mode: TaskMode, other: TaskMode) -> bool:
    is_smaller = mode.devices <= other.devices and mode.seconds <= other.seconds
    return mode.pool == other.pool and is_smaller and mode.cost <= other.cost


def _order_figures(mode: TaskMode, goal: ScheduleGoal) -> tuple[Decimal, Decimal]:
    seconds = Decimal(mode.seconds)
    return (mode.cost, seconds) if goal == "cheapest" else (seconds, mode.cost)


def _evaluate_schedule(
    placed: Iterable[PlacedTask], tasks: Sequence[FleetTask], goal: ScheduleGoal
) -> _ScheduleValue:
    ones = list(placed)
    counts = Counter(tasks[one.task].priority for one in ones)
    priorities = sorted({task.priority for task in tasks})
    cost = sum((one.mode.cost for one in ones), Decimal(0))
    flow = Decimal(sum(one.end - tasks[one.task].earliest for one in ones))
    figures = (cost, flow) if goal == "cheapest" else (flow, cost)
    return _ScheduleValue(tuple(-counts[priority] for priority in priorities), *figures)


class _ScheduleSearch:
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
        self.value = _evaluate_schedule([], tasks, fleet.goal)
        self._known: dict[tuple[int, tuple[_PoolItem, ...]], tuple[int, ...] | None] = {}

    def update_best(self, placed: list[PlacedTask]) -> None:
        """Stores a schedule if it is better than the known one."""
        value = _evaluate_schedule(placed, self.tasks, self.fleet.goal)
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
                _PoolItem(self.tasks[place].earliest, self.tasks[place].latest, mode.devices, mode.seconds),
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
        value = _evaluate_schedule(placed, self.tasks, self.fleet.goal)
        spent = sum((one.mode.cost for one in placed), Decimal(0))
        left = None if self.fleet.budget is None else self.fleet.budget - spent
        open_modes = {place: self._list_fitting_modes(place, chosen) for place in self.order[depth:]}
        missing = list(value.missing)
        for priority in _list_affordable_priorities(left, open_modes, self.tasks):
            missing[self.priorities.index(priority)] -= 1
        counted = sum(value.missing) - sum(missing)
        figures = [_find_least_figures(modes, self.fleet.goal) for modes in open_modes.values() if modes]
        first = value.first + sum(sorted(first for first, _ in figures)[:counted], Decimal(0))
        second = value.second + sum(sorted(second for _, second in figures)[:counted], Decimal(0))
        return _ScheduleValue(tuple(missing), first, second) < self.value

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


def _find_least_figures(modes: Iterable[TaskMode], goal: ScheduleGoal) -> tuple[Decimal, Decimal]:
    """Returns the least of both figures of a task, each over all modes."""
    firsts, seconds = zip(*(_order_figures(mode, goal) for mode in modes), strict=True)
    return min(firsts), min(seconds)


def find_least_starts(
    items: Sequence[_PoolItem], capacity: int, step: Callable[[], None]
) -> tuple[int, ...] | None:
    """Returns the starts of all ``items`` on one pool with the least sum; None if they do not all fit.

    In the order of their starts, running items only end: each item has room from the moment at
    which enough of them have ended. ``step`` is called for every node.
    """
    best: tuple[int, ...] | None = None
    least = 0

    def assign_start(starts: dict[int, int], running: list[tuple[int, int]], now: tuple[int, int]) -> None:
        nonlocal best, least
        step()
        left = [number for number in range(len(items)) if number not in starts]
        total = sum(starts.values())
        if not left:
            if best is None or total < least:
                best, least = tuple(starts[number] for number in range(len(items))), total
            return
        first = {number: _find_free_moment(items[number], running, capacity, now[0]) for number in left}
        if any(first[number] + items[number].seconds > items[number].latest for number in left):
            return
        if best is not None and total + sum(first.values()) >= least:
            return
        # An item that starts after another could have run in full before it leaves that one a place to move
        # to.
        soonest = min(first[number] + items[number].seconds for number in left)
        for number in sorted(left, key=lambda number: (first[number], items[number].latest, number)):
            start, is_twin = first[number], number - 1 in first and items[number - 1] == items[number]
            if start < soonest and (start, number) > now and not is_twin:
                ends = running.copy()
                insort(ends, (start + items[number].seconds, items[number].devices))
                assign_start({**starts, number: start}, ends, (start, number))

    assign_start({}, [], (min((item.earliest for item in items), default=0), -1))
    return best


def _find_free_moment(item: _PoolItem, running: Sequence[tuple[int, int]], capacity: int, now: int) -> int:
    """Returns the first moment from ``now`` at which enough running items have ended to leave room."""
    start = max(item.earliest, now)
    taken = sum(devices for end, devices in running if end > start)
    for end, devices in running:
        if taken + item.devices <= capacity:
            break
        if end > start:
            start, taken = end, taken - devices
    return start


def _build_list_schedule(
    tasks: Sequence[FleetTask], fleet: FleetDevices, between: Callable[[], object]
) -> list[PlacedTask]:
    """Returns the best of list schedules in several orders, with left-out tasks moved to the front."""

    def schedule_order(order: list[int], way: _SortOrder) -> list[PlacedTask]:
        between()
        return _schedule_in_order(order, tasks, fleet, way)

    places = range(len(tasks))
    orders = [
        sorted(places, key=lambda place: (tasks[place].priority, rule(tasks[place]), place))
        for rule in (
            _get_deadline,
            _compute_slack,
            _compute_area,
            lambda task: -_compute_area(task),
            lambda _: 0,
        )
    ]
    ways = (_by_goal(fleet.goal), _by_end, _by_area)
    made = [(schedule_order(order, way), order) for order in orders for way in ways]
    best, order = min(made, key=lambda one: _evaluate_schedule(one[0], tasks, fleet.goal))
    for _ in range(_ROUNDS):
        left = sorted(set(places) - {one.task for one in best})
        moved = [[place, *(other for other in order if other != place)] for place in left]
        made = [(schedule_order(other, way), other) for other in moved for way in ways]
        better = min(
            made, key=lambda one: _evaluate_schedule(one[0], tasks, fleet.goal), default=(best, order)
        )
        if _evaluate_schedule(better[0], tasks, fleet.goal) >= _evaluate_schedule(best, tasks, fleet.goal):
            break
        best, order = better
    return best


def _get_deadline(task: FleetTask) -> int:
    return task.latest


def _compute_area(task: FleetTask) -> int:
    return min((mode.devices * mode.seconds for mode in task.modes), default=0)


def _compute_slack(task: FleetTask) -> int:
    return task.latest - task.earliest - min((mode.seconds for mode in task.modes), default=0)


_SortOrder = Callable[[PlacedTask], tuple[Decimal | int, ...]]


def _by_goal(goal: ScheduleGoal) -> _SortOrder:
    if goal == "earliest":
        return lambda one: (one.end, one.mode.cost)
    return lambda one: (one.mode.cost, one.end)


def _by_end(one: PlacedTask) -> tuple[Decimal | int, ...]:
    return (one.end, one.mode.cost)


def _by_area(one: PlacedTask) -> tuple[Decimal | int, ...]:
    return (one.mode.devices * one.mode.seconds, one.mode.cost, one.end)


def _schedule_in_order(
    order: Iterable[int],
    tasks: Sequence[FleetTask],
    fleet: FleetDevices,
    way: _SortOrder,
    known: Iterable[PlacedTask] = (),
) -> list[PlacedTask]:
    """Places each task in turn beside the known ones, in its best mode by ``way`` of those with room."""
    placed = list(known)
    done, spent = {one.task for one in placed}, sum((one.mode.cost for one in placed), Decimal(0))
    for place in order:
        found = list[PlacedTask]()
        for mode in tasks[place].modes if place not in done else ():
            if fleet.budget is not None and spent + mode.cost > fleet.budget:
                continue
            beside = [one for one in placed if one.mode.pool == mode.pool]
            task, capacity = tasks[place], fleet.capacities[mode.pool]
            start = find_earliest_start(beside, capacity, mode, task.earliest, task.latest)
            if start is not None:
                found.append(PlacedTask(place, mode, start))
        if found:
            chosen = min(found, key=way)
            placed.append(chosen)
            spent += chosen.mode.cost
    return placed
