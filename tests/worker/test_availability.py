"""Hours, days and neighbours of a host that is not the worker's alone."""

import os
import signal
import subprocess
import threading
import time
from datetime import datetime, timedelta
from types import SimpleNamespace

import pynvml
import pytest

from service.worker import availability as module
from service.worker.availability import Availability, DailyUse, list_device_processes, parse_windows
from service.worker.benchmark import Unsupported
from service.worker.errors import WorkerError
from service.worker.interrupt import Interrupted, InterruptSignal
from service.worker.process import ChildProcesses
from service.worker.state_directory import StateDirectory
from tests.waiting import until
from tests.worker.cuda.conftest import fake_nvml  # noqa: F401
from tests.worker.cuda.fake_nvml import EachDevice, process
from tests.worker.test_process import is_alive

NOON = datetime(2026, 11, 28, 12, 0)  # noqa: DTZ001  # windows are hours of the host
OTHER, OWN = frozenset({77}), frozenset({11, 12})


@pytest.fixture
def home(tmp_path):
    return StateDirectory(tmp_path / "worker")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.02)


def code(obstacle):
    return obstacle and obstacle.code


class TestWindows:
    @pytest.mark.parametrize(
        ("text", "inside", "outside"),
        [
            ("", ["00:00", "12:00", "23:59"], []),
            ("22:00-06:00", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "12:00", "21:59"]),
            ("08:00-09:30, 12:00-13:00", ["08:00", "09:29", "12:30"], ["07:59", "09:30", "13:00", "23:00"]),
        ],
    )
    def test_a_host_is_measured_inside_of_them(self, home, text, inside, outside):
        for hour in (*inside, *outside):
            at = datetime.fromisoformat(f"2026-11-28T{hour}")
            rules = Availability(home, windows=parse_windows(text), now=lambda at=at: at)
            assert code(rules.find_obstacle()) == (None if hour in inside else "OUTSIDE_WINDOW"), hour

    @pytest.mark.parametrize("text", ["22-6", "24:00-06:00", "08:00-08:00", "08:00-09:00-10:00", "at night"])
    def test_what_is_no_window_is_refused_by_name(self, text):
        with pytest.raises(WorkerError, match=r"^'.+' is no window: write hours of the day such as"):
            parse_windows(f"10:00-11:00,{text}")


class TestDay:
    def test_seconds_of_a_day_are_kept_over_restarts_and_end_with_it(self, home):
        home.save_state(DailyUse(day="2026-11-28", seconds=600.0))
        now = [NOON]
        rules = Availability(home, daily_seconds=600.0, now=lambda: now[0])
        assert code(rules.find_obstacle()) == "DAY_USED_UP"
        assert code(Availability(home, daily_seconds=601.0, now=lambda: NOON).find_obstacle()) is None
        now[0] += timedelta(days=1)
        assert rules.find_obstacle() is None

    @pytest.mark.usefixtures("quick")
    def test_what_is_measured_is_counted_and_ends_when_it_is_used_up(self, home):
        interrupt = InterruptSignal()
        rules = Availability(home, daily_seconds=0.3, now=lambda: NOON)
        began = time.monotonic()
        with rules.guard(interrupt, frozenset), pytest.raises(Interrupted) as ended:
            interrupt.wait(30.0)
        assert ended.value.reason == "DAY_USED_UP"
        assert time.monotonic() - began > 0.25
        assert 0.3 <= home.load_state(DailyUse).seconds < 10.0
        assert code(rules.find_obstacle()) == "DAY_USED_UP"

    @pytest.mark.usefixtures("quick")
    def test_what_ends_by_itself_is_counted_too(self, home):
        rules = Availability(home, daily_seconds=100.0, now=lambda: NOON)
        for _ in range(2):
            with rules.guard(InterruptSignal(), frozenset):
                time.sleep(0.1)
        assert 0.2 <= home.load_state(DailyUse).seconds < 50.0


class TestNeighbours:
    def test_another_process_is_an_obstacle(self, home):
        there = [OTHER, frozenset()]
        rules = Availability(home, list_processes=lambda: there.pop(0))
        assert code(rules.find_obstacle()) == "DEVICE_IN_USE"
        assert rules.find_obstacle() is None

    def test_own_processes_are_none_of_them(self, home):
        rules = Availability(home, list_processes=lambda: frozenset({11}))
        assert rules.find_obstacle(OWN) is None
        rules._list_processes = lambda: frozenset({11, 77})
        assert code(rules.find_obstacle(OWN)) == "DEVICE_IN_USE"
        # The own one has no context yet, and the driver has listed own ones before.
        rules._list_processes = lambda: OTHER
        assert code(rules.find_obstacle(OWN)) == "DEVICE_IN_USE"

    def test_what_an_own_process_has_started_is_own(self, home):
        """A collective has a process for each accelerator, below the one that measures."""
        words = ["sh", "-c", "sleep 60 & echo $!; wait"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
            started = int(child.stdout.readline())
            there = frozenset({started})
            rules = Availability(home, list_processes=lambda: there)
            assert rules.find_obstacle(frozenset({child.pid})) is None
            there |= {os.getpid()}
            assert code(rules.find_obstacle(frozenset({child.pid}))) == "DEVICE_IN_USE"
            os.killpg(child.pid, signal.SIGKILL)

    def test_where_ids_mean_something_else_as_many_as_measure_are_own(self, home):
        """In a container: both processes that measure are listed under ids of the host."""
        rules = Availability(home, list_processes=lambda: frozenset({501, 502}))
        assert rules.find_obstacle(OWN) is None
        rules._list_processes = lambda: frozenset({501, 502, 503})
        assert code(rules.find_obstacle(OWN)) == "DEVICE_IN_USE"

    def test_memory_of_nobody_is_somebody_elses_unless_own_processes_are_not_listed(self, home):
        rules = Availability(home, list_processes=lambda: frozenset({-1}))
        assert code(rules.find_obstacle()) == "DEVICE_IN_USE"
        assert rules.find_obstacle(frozenset({11})) is None
        rules._list_processes = lambda: frozenset({11, -1})
        assert code(rules.find_obstacle(frozenset({11}))) == "DEVICE_IN_USE"

    @pytest.mark.usefixtures("quick")
    def test_a_process_that_begins_while_the_driver_answers_is_no_neighbour(self, home, caplog):
        own = [frozenset(), *[frozenset({11})] * 1000]
        rules = Availability(home, list_processes=lambda: frozenset({-1}))
        interrupt = InterruptSignal()
        with rules.guard(interrupt, lambda: own.pop(0)):
            until(lambda: len(own) < 997)
        interrupt.check()
        assert "NVML has listed no process of this worker" in caplog.text

    def test_a_driver_that_does_not_say_is_no_leave(self, home, monkeypatch):
        def refuse():
            raise Unsupported("NVML: Driver Not Loaded")

        over = threading.Event()
        monkeypatch.setattr(module, "ANSWER_SECONDS", 0.1)
        for answer in (refuse, over.wait):
            rules = Availability(home, list_processes=answer)
            assert code(rules.find_obstacle()) == "DEVICE_UNKNOWN"
        over.set()

    def test_processes_of_all_accelerators_are_listed(self, fake_nvml):  # noqa: F811
        fake_nvml.answers["nvmlDeviceGetCount"] = 2
        fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = EachDevice([[process()], [process(77)]])
        assert list_device_processes() == {os.getpid(), 77}
        # The second one holds 3 GiB more than its process has: somebody whom NVML does not list.
        used = [SimpleNamespace(used=2**29), SimpleNamespace(used=5 * 2**30)]
        fake_nvml.answers["nvmlDeviceGetMemoryInfo"] = EachDevice(used)
        listed = EachDevice([[process(used=2**29)], [process(77, 2 * 2**30)]])
        fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = listed
        assert list_device_processes() == {os.getpid(), 77, -2}
        listed[1] = [process(77)]  # whose memory the driver does not tell
        assert list_device_processes() == {os.getpid(), 77}

        def lost():
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

        fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = lost
        with pytest.raises(Unsupported, match=r"^NVML: GPU is lost$"):
            list_device_processes()


def test_the_device_is_given_back_within_five_seconds(home, tmp_path):
    """A process that hangs on the device is gone, with what it started, after a neighbour has come."""
    children, interrupt = ChildProcesses(module="tests.worker.children"), InterruptSignal()
    here = tmp_path / "ids"
    present = set()
    rules = Availability(home, list_processes=lambda: frozenset(present) | children.running_ids)
    came = []

    def come():
        until(lambda: here.exists() and here.read_text().endswith("\n"))
        came.append(time.monotonic())
        present.add(77)

    threading.Thread(target=come, daemon=True).start()
    with rules.guard(interrupt, lambda: children.running_ids), pytest.raises(Interrupted) as ended:
        children.run(["hang", str(here)], b"", interrupt, seconds=120.0, most_bytes=100)
    assert ended.value.reason == "DEVICE_IN_USE"
    assert time.monotonic() - came[0] < 5.0
    for one in map(int, here.read_text().split()):
        until(lambda one=one: not is_alive(one), 5.0)
    assert children.running_ids == frozenset()
