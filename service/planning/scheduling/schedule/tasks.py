"""Tasks, the pools that they run on, and their schedule."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, NamedTuple

ScheduleGoal = Literal["cheapest", "earliest"]


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
