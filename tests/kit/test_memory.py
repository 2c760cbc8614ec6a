"""Memory beside its limit: where the limit is found, when memory is short, and what is refused then."""

import asyncio
import threading
import time

import pytest

from service.app.examples import EXAMPLES
from service.kit.http.cancellation import check_cancelled
from service.kit.http.long_work import SEARCHES, LongWork
from service.kit.http.problems import MemoryPressure
from service.kit.http.web import LARGE_BODY_BYTES
from service.kit.locales import _load_style
from service.kit.memory import MemoryBudget, MemoryWatch, find_budget, read_resident_bytes, release_memory

LIMIT = 1000
PATIENCE = 60


class UsedMemory:
    """Memory in use, as a test sets it."""

    def __init__(self, used=0):
        self.used = used
        self.watch = MemoryWatch(MemoryBudget(LIMIT, lambda: self.used))

    def use(self, used):
        self.used = used
        self.watch.sample()
        return self.watch.is_short, self.watch.is_critical


@pytest.fixture
def cgroups(tmp_path):
    """Files of cgroups, and a reader of the budget of a process in them."""

    def write(of_process, files):
        (tmp_path / "cgroup").write_text(of_process)
        for name, content in files.items():
            (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "sys" / name).write_text(content)
        return find_budget(None, own=tmp_path, cgroups=tmp_path / "sys")

    return write


@pytest.mark.unit
class TestLimits:
    def test_the_tightest_limit_of_cgroups_around_a_process_holds(self, cgroups):
        budget = cgroups(
            "0::/pod/api\n",
            {
                "pod/api/memory.max": "max\n",
                "pod/memory.max": "5000\n",
                "pod/memory.stat": "anon 70\nfile 900\n",
                "memory.max": "8000\n",
            },
        )
        assert (budget.limit_bytes, budget.read_used_bytes()) == (5000, 70)

    def test_cgroups_of_version_1_are_read_and_a_path_of_the_host_leads_to_the_root(self, cgroups):
        files = {"memory/memory.limit_in_bytes": "6000\n", "memory/memory.stat": "rss 1\ntotal_rss 80\n"}
        budget = cgroups("4:memory:/docker/0ab\n1:cpu:/\n", files)
        assert (budget.limit_bytes, budget.read_used_bytes()) == (6000, 80)

    def test_no_limit_of_either_is_none(self, cgroups, tmp_path):
        assert cgroups("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}) is None
        assert find_budget(None, own=tmp_path / "none") is None
        assert cgroups("0::/\n", {"memory.max": "5000\n"}) is not None

    def test_a_setting_counts_the_resident_set_and_0_asks_for_no_limit(self):
        assert find_budget(4096) == (4096, read_resident_bytes)
        assert find_budget(0) is None
        before = read_resident_bytes()
        filled = bytearray(b"x") * (64 * 2**20)
        assert read_resident_bytes() - before > len(filled) / 2


@pytest.mark.unit
def test_memory_is_short_from_the_high_mark_until_the_low_one(caplog):
    memory = UsedMemory()
    assert [memory.use(used) for used in (890, 900, 810, 960, 800, 790, 890)] == [
        (False, False),
        (True, False),
        (True, False),
        (True, True),
        (True, False),
        (False, False),
        (False, False),
    ]
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    memory.use(950)
    assert [memory.watch.is_release_due() for _ in range(3)] == [True, False, False]


@pytest.mark.unit
def test_the_heap_is_trimmed_once_a_minute(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch = MemoryWatch(None)
    due = []
    for now[0] in (100.0, 159.0, 160.0, 161.0, 219.0, 220.0):
        due.append(watch.is_trim_due())
    assert due == [False, False, True, False, False, True]


@pytest.mark.unit
def test_bodies_that_arrive_between_two_samples_count_until_they_are_given_back():
    memory = UsedMemory(600)
    memory.watch.sample()
    assert [memory.watch.reserve(100) for _ in range(4)] == [True, True, True, False]
    memory.watch.give_back(100)
    assert memory.watch.reserve(100)
    assert MemoryWatch(None).reserve(10**15)


def test_work_that_waits_is_refused_and_work_that_runs_ends_once_memory_is_critical():
    async def check():
        memory = UsedMemory()
        queue, begun, ended = LongWork(SEARCHES, PATIENCE, memory=memory.watch), threading.Event(), []

        async def receive():
            await asyncio.Event().wait()

        def search():
            begun.set()
            try:
                while True:
                    check_cancelled()
                    time.sleep(0.001)
            finally:
                ended.append(True)

        running, waiting = (asyncio.create_task(queue.run({"state": {}}, receive, search)) for _ in range(2))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        memory.use(920)
        queue.shed()
        with pytest.raises(MemoryPressure):
            await waiting
        with pytest.raises(MemoryPressure):
            await queue.run({"state": {}}, receive, search)
        assert not running.done()
        memory.use(960)
        queue.shed()
        with pytest.raises(MemoryPressure):
            await running
        memory.use(500)
        assert await queue.run({"state": {}}, receive, lambda: "answer") == "answer"
        assert ended == [True]

    asyncio.run(check())


def test_caches_of_answers_are_emptied():
    _load_style("en")
    assert _load_style.cache_info().currsize
    release_memory()
    assert not _load_style.cache_info().currsize


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_service_that_is_short_refuses_what_is_long_and_goes_on(reader):
    def ask(path, body=None, **options):
        answer = reader.request("POST" if body or options else "GET", path, json=body, **options)
        return answer.status_code, answer.json()["code"] if answer.status_code == 503 else ""

    memory = reader.app.state.memory
    batch = ("/v1/estimates/memory:batch", {"requests": 20 * [EXAMPLES["estimate_memory"]]})
    large = b" " * (LARGE_BODY_BYTES + 1)

    async def send_in_chunks():
        yield large

    chunked = {"content": send_in_chunks(), "headers": {"content-type": "application/json"}}
    memory.is_short = True
    refused = (503, "MEMORY_PRESSURE")
    assert ask(*batch) == refused
    assert ask("/v1/sites", content=large, headers={"content-type": "application/json"}) == refused
    assert ask("/v1/sites", **chunked) == refused
    assert ask("/v1/estimates/summary", EXAMPLES["estimate_summary"]) == (200, "")
    assert ask("/v1/estimates/memory", EXAMPLES["estimate_memory"]) == (200, "")
    assert ask("/v1/sites") == (200, "")
    assert reader.get("/readyz").text == "ready, short of memory\n"
    memory.is_short = False
    assert ask(*batch) == (200, "")
    assert reader.get("/readyz").text == "ready\n"
