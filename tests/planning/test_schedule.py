"""Who runs where and when: the best schedule of small fleets, sound ones with a bound of large ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.scheduling.schedule import (
    FleetDevices,
    FleetSchedule,
    FleetTask,
    PlacedTask,
    TaskMode,
    find_earliest_start,
    find_least_capacity,
    find_peak_devices,
    find_schedule,
)

Value = tuple[tuple[int, ...], Decimal, Decimal]

LATEST = 7
"""Times of small fleets are whole seconds up to here, so that every start can be tried."""

_modes = st.builds(
    TaskMode, st.integers(0, 1), st.integers(1, 4), st.integers(1, 4), st.integers(0, 9).map(Decimal)
)
_tasks = st.builds(
    lambda priority, earliest, window, modes: FleetTask(
        priority, earliest, min(LATEST, earliest + window), tuple(modes)
    ),
    st.integers(1, 2),
    st.integers(0, 3),
    st.integers(1, 6),
    st.lists(_modes, max_size=2),
)
_fleets = st.builds(
    FleetDevices,
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.none() | st.integers(0, 20).map(Decimal),
    st.sampled_from(("cheapest", "earliest")),
)


def _value(placed: Sequence[PlacedTask], tasks: Sequence[FleetTask], fleet: FleetDevices) -> Value:
    counts = Counter(tasks[one.task].priority for one in placed)
    cost = sum((one.mode.cost for one in placed), Decimal(0))
    flow = Decimal(sum(one.end - tasks[one.task].earliest for one in placed))
    missing = tuple(-counts[priority] for priority in sorted({task.priority for task in tasks}))
    return (missing, cost, flow) if fleet.goal == "cheapest" else (missing, flow, cost)


def _is_sound(placed: Sequence[PlacedTask], tasks: Sequence[FleetTask], fleet: FleetDevices) -> bool:
    """Whether windows, devices at every moment and the budget are kept."""
    in_window = all(
        one.mode in tasks[one.task].modes
        and tasks[one.task].earliest <= one.start
        and one.end <= tasks[one.task].latest
        for one in placed
    )
    spent = sum((one.mode.cost for one in placed), Decimal(0))
    once = len({one.task for one in placed}) == len(placed)
    has_room = all(
        sum(
            other.mode.devices
            for other in placed
            if other.mode.pool == one.mode.pool and other.start <= one.start < other.end
        )
        <= fleet.capacities[one.mode.pool]
        for one in placed
    )
    return in_window and has_room and once and (fleet.budget is None or spent <= fleet.budget)


def _all(tasks: Sequence[FleetTask]) -> Iterator[list[PlacedTask]]:
    """Every choice of tasks, modes and starts."""
    choices = [
        [
            None,
            *(
                PlacedTask(place, mode, start)
                for mode in task.modes
                for start in range(task.earliest, task.latest - mode.seconds + 1)
            ),
        ]
        for place, task in enumerate(tasks)
    ]
    for chosen in product(*choices):
        yield [one for one in chosen if one is not None]


@given(st.lists(_tasks, max_size=4), _fleets, st.booleans())
@settings(max_examples=80, deadline=None)
def test_no_choice_of_modes_and_starts_is_better(
    tasks: list[FleetTask],
    fleet: FleetDevices,
    has_twins: bool,  # noqa: FBT001
) -> None:
    tasks = [tasks[0], *tasks[:3]] if has_twins and tasks else tasks
    found = find_schedule(tasks, fleet)
    assert found.is_optimal
    assert _is_sound(found.placed, tasks, fleet)
    least = min(_value(placed, tasks, fleet) for placed in _all(tasks) if _is_sound(placed, tasks, fleet))
    assert _value(found.placed, tasks, fleet) == least


@given(st.lists(_tasks, min_size=6, max_size=20), _fleets)
@settings(max_examples=15, deadline=None)
def test_what_is_known_after_few_steps_is_sound_and_within_its_bound(
    tasks: list[FleetTask], fleet: FleetDevices
) -> None:
    found, longer = find_schedule(tasks, fleet, most_steps=0), find_schedule(tasks, fleet, most_steps=300)
    assert not found.is_optimal
    for one in (found, longer):
        assert _is_sound(one.placed, tasks, fleet)
        _check_bound(one, tasks, fleet)
    assert _value(longer.placed, tasks, fleet) <= _value(found.placed, tasks, fleet)


def _check_bound(found: FleetSchedule, tasks: Sequence[FleetTask], fleet: FleetDevices) -> None:
    missing, first, _ = _value(found.placed, tasks, fleet)
    most = found.bound.most_placed
    assert all(-count <= most[priority] for priority, count in zip(sorted(most), missing, strict=True))
    assert len(found.placed) <= found.bound.most_in_all <= sum(most.values())
    assert found.bound.least_figure <= first


def _task(priority: int, latest: int, *modes: tuple[int, int, int, int]) -> FleetTask:
    made = (TaskMode(pool, devices, seconds, Decimal(cost)) for pool, devices, seconds, cost in modes)
    return FleetTask(priority, 0, latest, tuple(made))


def test_the_first_priority_is_never_left_out_for_more_of_the_second() -> None:
    tasks = [_task(2, 10, (0, 4, 5, 1)), _task(2, 10, (0, 4, 5, 1)), _task(1, 10, (0, 8, 10, 50))]
    found = find_schedule(tasks, FleetDevices((8,), None, "cheapest"))
    assert [one.task for one in found.placed] == [2]


def test_costs_and_ends_are_weighed_as_the_goal_says() -> None:
    task = _task(1, 10, (0, 4, 8, 10), (0, 8, 4, 11))
    cheapest = find_schedule([task], FleetDevices((8,), None, "cheapest"))
    earliest = find_schedule([task], FleetDevices((8,), None, "earliest"))
    assert [one.mode.devices for one in (*cheapest.placed, *earliest.placed)] == [4, 8]
    assert find_schedule([task], FleetDevices((8,), Decimal(10), "earliest")).placed == cheapest.placed


def test_a_task_waits_for_room_and_starts_the_moment_there_is() -> None:
    tasks = [_task(1, 30, (0, 8, 10, 1)), _task(1, 30, (0, 6, 5, 1)), _task(1, 30, (0, 2, 9, 1))]
    found = find_schedule(tasks, FleetDevices((8,), None, "cheapest"))
    assert [(one.task, one.start) for one in found.placed] == [(1, 0), (2, 0), (0, 9)]


def test_the_bound_counts_what_windows_and_budget_leave_room_for() -> None:
    tasks = [_task(1, 10, (0, 8, 4, 3)) for _ in range(5)]
    by_devices = find_schedule(tasks, FleetDevices((8,), None, "cheapest"))
    by_budget = find_schedule(tasks, FleetDevices((80,), Decimal(10), "cheapest"))
    assert (by_devices.bound.most_placed, by_devices.bound.most_in_all) == ({1: 2}, 2)
    assert (by_budget.bound.most_placed, by_budget.bound.most_in_all) == ({1: 3}, 3)
    assert (len(by_devices.placed), len(by_budget.placed)) == (2, 3)


@given(
    st.lists(st.tuples(_modes, st.integers(0, 6)), max_size=4), _modes, st.integers(0, 4), st.integers(0, 5)
)
def test_room_beside_others_is_the_first_and_the_least(
    others: list[tuple[TaskMode, int]], mode: TaskMode, earliest: int, slack: int
) -> None:
    placed = [PlacedTask(place, other, start) for place, (other, start) in enumerate(others)]
    capacity, latest = 5, earliest + mode.seconds + slack
    starts = range(earliest, latest - mode.seconds + 1)
    peaks = {start: find_peak_devices(placed, start, start + mode.seconds) + mode.devices for start in starts}
    roomy = [start for start, taken in peaks.items() if taken <= capacity]
    assert find_earliest_start(placed, capacity, mode, earliest, latest) == next(iter(roomy), None)
    assert find_least_capacity(placed, mode, earliest, latest) == min(peaks.values())
    assert find_least_capacity(placed, mode, earliest, earliest + mode.seconds - 1) is None


def test_the_search_ends_where_nobody_wants_it_any_more():
    """Forty workloads kept a thread for sixteen seconds after the caller was refused."""
    modes = tuple(TaskMode(0, devices, 10 + devices, Decimal(devices)) for devices in (1, 2, 3, 5))
    tasks = [FleetTask(1, 0, 40, modes) for _ in range(12)]
    steps = 0

    def between():
        nonlocal steps
        steps += 1
        if steps > 100:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        find_schedule(tasks, FleetDevices((7,), None, "cheapest"), between=between)
    assert steps == 101
