"""Rules of an operator for a shared host: hours of measuring, seconds of a day, nobody else on its GPUs."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from datetime import time as time_of_day
from typing import Any, NamedTuple

from service.protocol.base import FiniteNumber, ProtocolMessage, SingleLine
from service.worker import nvml
from service.worker.benchmark import Unsupported
from service.worker.errors import WorkerError
from service.worker.interrupt import InterruptSignal
from service.worker.process import find_group
from service.worker.state_directory import StateDirectory

POLL_SECONDS = 1.0
"""Seconds between looks at the clock and at the device."""
SAVE_SECONDS = 30.0
ANSWER_SECONDS = 1.5
"""Seconds in which the driver has to say who uses the device. Silence is no leave to measure.

A wait and two looks take 4 s at most, so that the device is given back within 5.
"""
UNLISTED_BYTES = 2**30
"""Memory in use by no listed process above which somebody else holds the device: several contexts' worth."""
_logger = logging.getLogger(__name__)
_WINDOW = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d")

ListProcesses = Callable[[], frozenset[int]]


class DailyWindow(NamedTuple):
    """Hours of each day, by the clock of the host; those that end before they begin go on after midnight."""

    begins: time_of_day
    ends: time_of_day

    def contains(self, at: time_of_day) -> bool:
        """Returns true for a time of the window; its end is outside."""
        if self.begins < self.ends:
            return self.begins <= at < self.ends
        return at >= self.begins or at < self.ends


class Obstacle(NamedTuple):
    """A reason not to measure now."""

    code: str
    text: str


class DailyUse(ProtocolMessage):
    """Seconds that the device was in use for measuring on a day of the host, kept over restarts."""

    day: SingleLine
    seconds: FiniteNumber


def parse_windows(text: str) -> tuple[DailyWindow, ...]:
    """Reads windows such as ``22:00-06:00,12:00-13:00``; none means the whole day.

    Raises:
        WorkerError: The text is of another form, or a window is empty.
    """
    windows = []
    for part in filter(None, text.replace(" ", "").split(",")):
        if not _WINDOW.fullmatch(part) or part[:5] == part[6:]:
            raise WorkerError(f"{part!r} is no window: write hours of the day such as 22:00-06:00")
        begins, ends = part.split("-")
        windows.append(DailyWindow(time_of_day.fromisoformat(begins), time_of_day.fromisoformat(ends)))
    return tuple(windows)


def list_device_processes() -> frozenset[int]:
    """Returns the ids of the processes that compute on any accelerator of the host.

    In a container NVML lists no process of another container. An accelerator with more memory in use than its
    listed processes hold adds a negative id: that of a process which is not listed.

    Raises:
        Unsupported: The driver does not tell.
    """
    found: set[int] = set()
    with nvml.open_nvml() as bindings:
        try:
            for index in range(nvml.count_units(bindings)):
                handle = nvml.get_handle(bindings, index)
                # Read first, so that what a listed process allocates meanwhile is not taken for another's.
                used = _read_used_bytes(bindings, handle)
                processes = bindings.nvmlDeviceGetComputeRunningProcesses(handle)
                found.update(process.pid for process in processes)
                if used - _sum_held_bytes(processes, used) > UNLISTED_BYTES:
                    found.add(-1 - index)
        except bindings.NVMLError as error:
            raise Unsupported(f"NVML: {error}") from None
    return frozenset(found)


def _read_used_bytes(bindings: Any, handle: Any) -> int:  # noqa: ANN401
    """Returns the memory in use by processes, without what the driver reserves; 0 if it is unknown."""
    try:
        return int(bindings.nvmlDeviceGetMemoryInfo(handle, bindings.nvmlMemory_v2).used)
    except (bindings.NVMLError, AttributeError):
        return 0


def _sum_held_bytes(processes: Sequence[Any], used: int) -> int:
    """Sums the memory of processes; all that is in use where the driver does not tell that of each."""
    held = [process.usedGpuMemory for process in processes]
    return used if None in held else sum(held)


class Availability:
    """The rules of an operator for one host, held before a lease is claimed and while it is measured."""

    def __init__(
        self,
        home: StateDirectory,
        *,
        windows: Sequence[DailyWindow] = (),
        daily_seconds: float | None = None,
        list_processes: ListProcesses | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """``list_processes`` is None on a host that nobody else uses, or that has no accelerator."""
        self._home = home
        self._windows = tuple(windows)
        self._daily_seconds = daily_seconds
        self._list_processes = list_processes
        self._now = now
        self._lists_own = False
        """True once NVML has listed a process of this worker: ids mean the same to both."""

    def find_obstacle(self, own: frozenset[int] = frozenset()) -> Obstacle | None:
        """Returns a reason not to measure now, or None; ``own`` are the ids of processes that measure."""
        at = self._now()
        if self._windows and not any(window.contains(at.time()) for window in self._windows):
            return Obstacle("OUTSIDE_WINDOW", "it is outside of the hours in which this host may be measured")
        if self._daily_seconds is not None and self._load_use(at).seconds >= self._daily_seconds:
            return Obstacle("DAY_USED_UP", f"the {self._daily_seconds:.0f} s of this day are used up")
        if self._list_processes is None:
            return None
        others = self._count_others(own)
        if others is None:
            return Obstacle("DEVICE_UNKNOWN", "the driver does not say who uses the accelerators")
        text = f"processes of others on the accelerators of this host: {others}"
        return Obstacle("DEVICE_IN_USE", text) if others else None

    @contextmanager
    def guard(self, interrupt: InterruptSignal, list_own: Callable[[], frozenset[int]]) -> Iterator[None]:
        """Ends what is measured in the block once there is an obstacle, and counts its seconds.

        The interruption has the code of the obstacle as its reason; the measuring process is killed at once.
        """
        over = threading.Event()
        watch = threading.Thread(
            target=self._watch, args=(interrupt, list_own, over), name="availability", daemon=True
        )
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join(POLL_SECONDS + ANSWER_SECONDS)
            if self._list_processes is not None and not self._lists_own:
                _logger.warning(
                    "NVML has listed no process of this worker, as in some containers: processes of others "
                    "are counted, and those that it does not list are seen by their memory alone"
                )

    def _watch(
        self, interrupt: InterruptSignal, list_own: Callable[[], frozenset[int]], over: threading.Event
    ) -> None:
        counted = saved = time.monotonic()
        use = self._load_use(self._now())
        while True:
            is_over = over.wait(POLL_SECONDS)
            passed, counted = time.monotonic() - counted, time.monotonic()
            use = self._add_use(use, passed)
            # Looked at twice: a process of this worker may have begun or ended during the first look.
            obstacle = None if is_over else self._find_while_measuring(use, list_own())
            obstacle = obstacle and self._find_while_measuring(use, list_own())
            if is_over or obstacle or counted - saved > SAVE_SECONDS:
                self._home.save_state(use)
                saved = counted
            if obstacle:
                interrupt.set(obstacle.code)
            if is_over or obstacle:
                return

    def _find_while_measuring(self, use: DailyUse, own: frozenset[int]) -> Obstacle | None:
        if self._daily_seconds is not None and use.seconds >= self._daily_seconds:
            return Obstacle("DAY_USED_UP", "")
        return self.find_obstacle(own)

    def _add_use(self, use: DailyUse, seconds: float) -> DailyUse:
        day = self._now().date().isoformat()
        return DailyUse(day=day, seconds=seconds + (use.seconds if use.day == day else 0.0))

    def _load_use(self, at: datetime) -> DailyUse:
        day, use = at.date().isoformat(), self._home.load_state(DailyUse)
        return use if use is not None and use.day == day else DailyUse(day=day, seconds=0.0)

    def _count_others(self, own: frozenset[int]) -> int | None:
        """Counts the processes of others; None if the driver does not answer.

        In a container the driver may know processes of this worker by other ids. Until it has listed one, as
        many as measure are taken for its own.
        """
        found = self._ask_driver()
        if found is None:
            return None
        # A child may have started processes of its own, one for each accelerator.
        started = frozenset(each for each in found if each in own or find_group(each) in own)
        self._lists_own = self._lists_own or bool(started)
        return len(found - started) if self._lists_own else max(len(found) - len(own), 0)

    def _ask_driver(self) -> frozenset[int] | None:
        answers: list[frozenset[int]] = []

        def ask() -> None:
            if self._list_processes is not None:
                try:
                    answers.append(self._list_processes())
                except Unsupported:
                    return

        asking = threading.Thread(target=ask, name="driver", daemon=True)
        asking.start()
        asking.join(ANSWER_SECONDS)
        return answers[0] if answers else None
