"""List schedules in several orders, improved by moving tasks that were left out to the front."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from service.planning.scheduling.schedule.pools import find_earliest_start
from service.planning.scheduling.schedule.tasks import FleetDevices, FleetTask, PlacedTask, ScheduleGoal
from service.planning.scheduling.schedule.values import evaluate_schedule

_ROUNDS = 50
"""Maximum improvements of a list schedule."""
_SortOrder = Callable[[PlacedTask], tuple[Decimal | int, ...]]


def build_list_schedule(
    tasks: Sequence[FleetTask], fleet: FleetDevices, between: Callable[[], object]
) -> list[PlacedTask]:
    """Returns the best of list schedules in several orders, with left-out tasks moved to the front."""

    def schedule_order(order: list[int], way: _SortOrder) -> list[PlacedTask]:
        between()
        return schedule_in_order(order, tasks, fleet, way)

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
    ways = (build_goal_order(fleet.goal), _by_end, _by_area)
    made = [(schedule_order(order, way), order) for order in orders for way in ways]
    best, order = min(made, key=lambda one: evaluate_schedule(one[0], tasks, fleet.goal))
    for _ in range(_ROUNDS):
        left = sorted(set(places) - {one.task for one in best})
        moved = [[place, *(other for other in order if other != place)] for place in left]
        made = [(schedule_order(other, way), other) for other in moved for way in ways]
        better = min(
            made, key=lambda one: evaluate_schedule(one[0], tasks, fleet.goal), default=(best, order)
        )
        if evaluate_schedule(better[0], tasks, fleet.goal) >= evaluate_schedule(best, tasks, fleet.goal):
            break
        best, order = better
    return best


def _get_deadline(task: FleetTask) -> int:
    return task.latest


def _compute_area(task: FleetTask) -> int:
    return min((mode.devices * mode.seconds for mode in task.modes), default=0)


def _compute_slack(task: FleetTask) -> int:
    return task.latest - task.earliest - min((mode.seconds for mode in task.modes), default=0)


def build_goal_order(goal: ScheduleGoal) -> _SortOrder:
    """Returns the order of placed tasks that the goal prefers."""
    if goal == "earliest":
        return lambda one: (one.end, one.mode.cost)
    return lambda one: (one.mode.cost, one.end)


def _by_end(one: PlacedTask) -> tuple[Decimal | int, ...]:
    return (one.end, one.mode.cost)


def _by_area(one: PlacedTask) -> tuple[Decimal | int, ...]:
    return (one.mode.devices * one.mode.seconds, one.mode.cost, one.end)


def schedule_in_order(
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
