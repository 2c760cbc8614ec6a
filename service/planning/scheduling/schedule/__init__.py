"""Schedule of tasks on pools of devices, within a budget.

A task runs in one of its modes, without a break: a number of devices of one pool for a number of seconds, at
a cost that does not depend on its start. With ``x_t`` the mode and ``s_t`` the start of each placed task

    devices    sum of devices of x_t over s_t <= u < s_t + seconds of x_t  <=  capacity, of each pool at any u
    window     earliest_t <= s_t,  s_t + seconds of x_t <= latest_t
    budget     sum of costs of x_t <= budget

Of all such schedules the best places most tasks of the first priority, of these most of the second and so on;
of these it has the least cost, then the least flow (sum of s_t + seconds - earliest_t), or the other way
round.

The exact search (``branches``) finds it. Where its steps run out, the answer is the best of list schedules
(``lists``), with an upper bound of any schedule (``bound``).
"""

from service.planning.scheduling.schedule.pools import (
    find_earliest_start,
    find_least_capacity,
    find_peak_devices,
)
from service.planning.scheduling.schedule.search import find_schedule
from service.planning.scheduling.schedule.tasks import (
    FleetDevices,
    FleetSchedule,
    FleetTask,
    PlacedTask,
    TaskMode,
)

__all__ = [
    "FleetDevices",
    "FleetSchedule",
    "FleetTask",
    "PlacedTask",
    "TaskMode",
    "find_earliest_start",
    "find_least_capacity",
    "find_peak_devices",
    "find_schedule",
]
