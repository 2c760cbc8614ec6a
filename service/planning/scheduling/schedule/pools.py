"""Starts of tasks on one pool of devices.

Given the modes, pools are independent, and each is a question of order: no task of a schedule with the least
flow can start earlier while the others stay (it is *active*), and every active schedule results from placing
tasks in the order of their starts, each as early as those before it leave room (serial generation; Kolisch
1996, Sprecher, Kolisch and Drexl 1995).
"""

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from service.planning.scheduling.schedule.tasks import PlacedTask, TaskMode


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


class PoolItem(NamedTuple):
    """A task in a mode, as a pool sees it."""

    earliest: int
    latest: int
    devices: int
    seconds: int


def find_least_starts(
    items: Sequence[PoolItem], capacity: int, step: Callable[[], None]
) -> tuple[int, ...] | None:
    """Returns the starts of all ``items`` on one pool with the least sum; None if they do not all fit.

    In the order of their starts, running items only end: each item has room from the moment at
    which enough of them have ended. ``step`` is called for every node.
    """
    search = _StartSearch(items, capacity, step)
    search.assign_start({}, [], (min((item.earliest for item in items), default=0), -1))
    return search.best


class _StartSearch:
    """Branch and bound over the order of starts; ``best`` are the starts with the least sum so far."""

    def __init__(self, items: Sequence[PoolItem], capacity: int, step: Callable[[], None]) -> None:
        self._items, self._capacity, self._step = items, capacity, step
        self.best: tuple[int, ...] | None = None
        self._least = 0

    def assign_start(
        self, starts: dict[int, int], running: list[tuple[int, int]], now: tuple[int, int]
    ) -> None:
        """Starts each item in turn that can be next, after ``starts``; ``now`` is the last start and item."""
        self._step()
        items = self._items
        left = [number for number in range(len(items)) if number not in starts]
        total = sum(starts.values())
        if not left:
            if self.best is None or total < self._least:
                self.best, self._least = tuple(starts[number] for number in range(len(items))), total
            return
        first = {number: _find_free_moment(items[number], running, self._capacity, now[0]) for number in left}
        if any(first[number] + items[number].seconds > items[number].latest for number in left):
            return
        if self.best is not None and total + sum(first.values()) >= self._least:
            return
        # An item that starts after another could have run in full before it leaves that one a place to move
        # to.
        soonest = min(first[number] + items[number].seconds for number in left)
        for number in sorted(left, key=lambda number: (first[number], items[number].latest, number)):
            start, is_twin = first[number], number - 1 in first and items[number - 1] == items[number]
            if start < soonest and (start, number) > now and not is_twin:
                ends = running.copy()
                insort(ends, (start + items[number].seconds, items[number].devices))
                self.assign_start({**starts, number: start}, ends, (start, number))


def _find_free_moment(item: PoolItem, running: Sequence[tuple[int, int]], capacity: int, now: int) -> int:
    """Returns the first moment from ``now`` at which enough running items have ended to leave room."""
    start = max(item.earliest, now)
    taken = sum(devices for end, devices in running if end > start)
    for end, devices in running:
        if taken + item.devices <= capacity:
            break
        if end > start:
            start, taken = end, taken - devices
    return start
