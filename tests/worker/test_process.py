"""Child processes: bounded in time and output, killed with all that they started, gone when the worker is."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from service.worker.interrupt import Interrupted, InterruptSignal
from service.worker.process import MOST_ERROR_CHARACTERS, ChildProcesses
from service.worker.running import run_task
from tests.waiting import until
from tests.worker.children import SECRET
from tests.worker.records import task

ROOT = Path(__file__).resolve().parents[2]
MODULE = "tests.worker.children"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def children():
    return ChildProcesses(module=MODULE)


def run(children, *words, interrupt=None, given=b"", seconds=30.0):
    return children.run(words, given, interrupt or InterruptSignal(), seconds=seconds, most_bytes=1_000_000)


def is_alive(process_id):
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def written(path):
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return [int(word) for word in path.read_text().split()]


def test_what_goes_in_and_what_comes_out(children):
    ended = run(children, "echo", "a", "b", given=b"x" * 500_000)
    assert ended.output == b"x" * 500_000 + b"a b"
    assert (ended.exit_code, ended.is_timeout, ended.error_output) == (0, False, "")


def test_a_hung_process_and_what_it_started_are_killed(children, tmp_path):
    ids = tmp_path / "ids"
    for seconds in (1.0, 4.0, 16.0, 64.0):  # a busy machine takes seconds to start the process
        began = time.monotonic()
        ended = run(children, "hang", str(ids), seconds=seconds)
        assert time.monotonic() - began < seconds + 60
        assert (ended.is_timeout, ended.exit_code) == (True, -signal.SIGKILL)
        if ids.exists() and ids.read_text().endswith("\n"):
            break
    until(lambda: not any(is_alive(process) for process in written(ids)))


def test_an_interrupt_kills_at_once(children, tmp_path):
    interrupt = InterruptSignal()

    def interrupt_it():
        written(tmp_path / "ids")
        interrupt.set("STALE_LEASE")

    threading.Thread(target=interrupt_it).start()
    with pytest.raises(Interrupted) as raised:
        run(children, "hang", str(tmp_path / "ids"), interrupt=interrupt)
    assert raised.value.reason == "STALE_LEASE"
    until(lambda: not any(is_alive(process) for process in written(tmp_path / "ids")))


def test_a_killed_worker_takes_its_child_with_it(tmp_path):
    """Nobody is left to kill it: the kernel does."""
    script = (
        "from service.worker.interrupt import InterruptSignal\n"
        "from service.worker.process import ChildProcesses\n"
        f"ChildProcesses(module={MODULE!r}).run(['hang', {str(tmp_path / 'ids')!r}], b'', InterruptSignal(),"
        " seconds=600.0, most_bytes=1)"
    )
    worker = subprocess.Popen([sys.executable, "-c", script])
    child, grandchild = written(tmp_path / "ids")
    try:
        worker.kill()
        worker.wait(timeout=60)
        until(lambda: not is_alive(child))
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_a_child_whose_worker_has_gone_before_it_began_ends(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", MODULE, "hang", "1", str(tmp_path / "ids")], cwd=ROOT, check=False, timeout=30
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "ids").exists()


def test_the_end_of_what_it_says_is_kept_without_credentials(children):
    ended = run(children, "die")
    assert ended.exit_code == -signal.SIGABRT
    assert len(ended.error_output) == MOST_ERROR_CHARACTERS
    assert ended.error_output.endswith("cannot open the device[31m as [redacted]\n")
    assert SECRET not in ended.error_output


def test_too_much_output_ends_it(children):
    ended = run(children, "flood")
    assert ended.is_too_long
    assert len(ended.output) < 1_200_000


def test_a_child_is_not_told_the_enrolment_token(children, monkeypatch):
    monkeypatch.setenv("IRONLAW_ENROLMENT_TOKEN", "ironlawenrol_secret")
    monkeypatch.setenv("IRONLAW_WORKER_DIR", "/somewhere")
    assert run(children, "variables").output == b"['IRONLAW_WORKER_DIR']"


def test_a_child_holds_the_lock_as_long_as_it_lives(tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        children = ChildProcesses(module=MODULE, kept_open=[lock.fileno()])
        assert run(children, "held", str(lock.fileno())).output == b"open"


class TestRecord:
    def test_it_is_that_of_the_process(self, children):
        asked = task()
        result = run_task(asked, children, InterruptSignal())
        assert (result.status, result.nonce, result.repeat) == ("ok", asked.nonce, 1)
        assert result.measurement.samples_ns == [1000, 1100, 1200]

    def test_a_process_that_dies_leaves_a_failure_that_says_so(self):
        class Dying(ChildProcesses):
            def run(self, words, *rest, **named):
                assert words == ["measure"]
                return super().run(["die"], *rest, **named)

        asked = task(accelerator_index=3, concurrent_accelerators=1, clock_offset_seconds=0.25)
        result = run_task(asked, Dying(module=MODULE), InterruptSignal())
        assert (result.status, result.failure.reason) == ("failed", "PROCESS_DIED")
        assert result.failure.exit_code == -signal.SIGABRT
        assert "[redacted]" in result.failure.error_output
        assert (result.accelerator_index, result.clock_offset_seconds) == (3, 0.25)
        assert result.benchmark == asked.benchmark
        assert result.started_at <= result.finished_at

    def test_a_process_that_hangs_leaves_a_timeout(self, tmp_path):
        class Hanging(ChildProcesses):
            def run(self, _, *rest, **named):
                return super().run(["hang", str(tmp_path / "ids")], *rest, **named)

        benchmark = task().benchmark.model_copy(update={"timeout_seconds": 1.0})
        result = run_task(task(benchmark=benchmark), Hanging(module=MODULE), InterruptSignal())
        assert (result.status, result.failure.reason) == ("timeout", "TIMEOUT")
        assert result.failure.detail == "after 1 s: killed"

    def test_a_record_of_something_else_is_not_taken(self):
        class Other(ChildProcesses):
            def run(self, _, *rest, **named):
                return super().run(["other_record"], *rest, **named)

        result = run_task(task(), Other(module=MODULE), InterruptSignal())
        assert (result.status, result.failure.reason) == ("failed", "WRONG_RECORD")

    def test_too_long_a_record_is_a_failure(self):
        class Flooding(ChildProcesses):
            def run(self, _, *rest, **named):
                return super().run(["flood"], *rest, **named)

        result = run_task(task(), Flooding(module=MODULE), InterruptSignal())
        assert (result.status, result.failure.reason) == ("failed", "RECORD_TOO_LARGE")
