"""Bounds of any schedule."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, product

from service.planning.scheduling.schedule.tasks import FleetDevices, FleetTask, ScheduleBound
from service.planning.scheduling.schedule.values import find_least_figures


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
    figures = (find_least_figures(tasks[place].modes, fleet.goal)[0] for place in placed)
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
