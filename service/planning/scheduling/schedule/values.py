"""Figures by which modes and schedules are compared."""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from service.planning.scheduling.schedule.tasks import (
    FleetDevices,
    FleetTask,
    PlacedTask,
    ScheduleGoal,
    TaskMode,
)


class ScheduleValue(NamedTuple):
    """Value of a schedule; less is better."""

    missing: tuple[int, ...]
    first: Decimal
    second: Decimal


def evaluate_schedule(
    placed: Iterable[PlacedTask], tasks: Sequence[FleetTask], goal: ScheduleGoal
) -> ScheduleValue:
    """Returns the value of a schedule: what it places by priority, then its figures."""
    ones = list(placed)
    counts = Counter(tasks[one.task].priority for one in ones)
    priorities = sorted({task.priority for task in tasks})
    cost = sum((one.mode.cost for one in ones), Decimal(0))
    flow = Decimal(sum(one.end - tasks[one.task].earliest for one in ones))
    figures = (cost, flow) if goal == "cheapest" else (flow, cost)
    return ScheduleValue(tuple(-counts[priority] for priority in priorities), *figures)


def list_feasible_modes(task: FleetTask, fleet: FleetDevices) -> list[TaskMode]:
    """Returns the modes in which a task runs alone, without dominated ones, best first."""
    alone = [
        mode
        for mode in task.modes
        if mode.devices <= fleet.capacities[mode.pool]
        and task.earliest + mode.seconds <= task.latest
        and (fleet.budget is None or mode.cost <= fleet.budget)
    ]
    alone.sort(key=lambda mode: (*order_figures(mode, fleet.goal), mode.devices, mode.pool))
    kept = list[TaskMode]()
    for mode in alone:
        if not any(_is_no_worse(other, mode) for other in kept):
            kept.append(mode)
    return kept


def _is_no_worse(mode: TaskMode, other: TaskMode) -> bool:
    is_smaller = mode.devices <= other.devices and mode.seconds <= other.seconds
    return mode.pool == other.pool and is_smaller and mode.cost <= other.cost


def order_figures(mode: TaskMode, goal: ScheduleGoal) -> tuple[Decimal, Decimal]:
    """Returns cost and seconds of a mode, the figure of the goal first."""
    seconds = Decimal(mode.seconds)
    return (mode.cost, seconds) if goal == "cheapest" else (seconds, mode.cost)


def find_least_figures(modes: Iterable[TaskMode], goal: ScheduleGoal) -> tuple[Decimal, Decimal]:
    """Returns the least of both figures of a task, each over all modes."""
    firsts, seconds = zip(*(order_figures(mode, goal) for mode in modes), strict=True)
    return min(firsts), min(seconds)
