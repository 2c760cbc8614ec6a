"""The best schedule, by the exact search or else by lists."""

from collections.abc import Callable, Sequence

from service.planning.scheduling.schedule.bound import compute_bound
from service.planning.scheduling.schedule.branches import ScheduleSearch
from service.planning.scheduling.schedule.lists import (
    build_goal_order,
    build_list_schedule,
    schedule_in_order,
)
from service.planning.scheduling.schedule.tasks import FleetDevices, FleetSchedule, FleetTask
from service.planning.scheduling.schedule.values import list_feasible_modes

MOST_STEPS = 400_000
"""Maximum steps of the exact search; beyond them the best known schedule is the answer."""


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
    tasks = [task._replace(modes=tuple(list_feasible_modes(task, fleet))) for task in tasks]
    search = ScheduleSearch(tasks, fleet, most_steps, between)
    search.update_best(build_list_schedule(tasks, fleet, between))
    is_optimal = search.search_all()
    known = (
        search.best
        if is_optimal
        else schedule_in_order(search.order, tasks, fleet, build_goal_order(fleet.goal), search.best)
    )
    placed = tuple(sorted(known, key=lambda one: (one.start, one.task)))
    bound = compute_bound(tasks, fleet, [one.task for one in placed])
    return FleetSchedule(placed, is_optimal, bound)
