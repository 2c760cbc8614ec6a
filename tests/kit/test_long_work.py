"""Long work in threads of its own: in turn, bounded in number and time, and for nobody who has gone."""

import asyncio
import gc
import threading
import weakref

import pytest
from starlette.requests import ClientDisconnect

from service.kit.http import long_work
from service.kit.http.cancellation import check_cancelled
from service.kit.http.long_work import QUESTIONS, LongWork
from service.kit.http.problems import OutOfTime, TooBusy
from service.kit.security.principals import LOCAL

PATIENCE = 60


class PendingWork:
    """Work of one caller that says when it began, and goes on when it is let."""

    def __init__(self, pool, tenant="a", answer="answer"):
        self.began, self.go_on, self.answer = threading.Event(), threading.Event(), answer
        self._hung_up = asyncio.Event()
        scope = {"state": {"subject": LOCAL._replace(tenant_id=tenant)}}
        self.task = asyncio.create_task(pool.run(scope, self._receive, self._do))

    async def _receive(self):
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    def _do(self):
        self.began.set()
        assert self.go_on.wait(PATIENCE)
        check_cancelled()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def has_begun(self):
        assert await asyncio.to_thread(self.began.wait, PATIENCE)

    def hang_up(self):
        self._hung_up.set()


async def settled():
    """Every callback that is due has been called."""
    for _ in range(5):
        await asyncio.sleep(0)


def scene(check):
    """Runs a check in a loop of its own."""

    def run():
        asyncio.run(check(LongWork(QUESTIONS, PATIENCE)))

    run.__name__, run.__doc__ = check.__name__, check.__doc__
    return run


@scene
async def test_an_answer_comes_from_a_thread(pool):
    found = await pool.run({"state": {}}, asyncio.Event().wait, threading.current_thread)
    assert found is not threading.current_thread()
    assert found.daemon, "it keeps no process from ending"


@scene
async def test_an_error_comes_as_it_was_raised(pool):
    one = PendingWork(pool, answer=LookupError("none"))
    one.go_on.set()
    with pytest.raises(LookupError, match="none"):
        await one.task


@scene
async def test_what_an_error_held_is_gone_with_it(pool):
    """A refused body of megabytes does not wait for the collector."""

    class Large:
        pass

    held, threads = [], []

    def refuse():
        large = Large()
        held.append(weakref.ref(large))
        threads.append(threading.current_thread())
        raise LookupError

    gc.disable()
    try:
        with pytest.raises(LookupError):
            await pool.run({"state": {}}, asyncio.Event().wait, refuse)
        threads[0].join(PATIENCE)
        await settled()
        assert held[0]() is None
    finally:
        gc.enable()


@scene
async def test_one_tenant_leaves_a_thread_to_the_others(pool):
    first, second, other = PendingWork(pool, "a"), PendingWork(pool, "a"), PendingWork(pool, "b")
    other.go_on.set()
    assert await other.task == "answer"
    await first.has_begun()
    assert not second.began.is_set()
    first.go_on.set()
    second.go_on.set()
    assert await first.task == await second.task == "answer"


def test_tenants_are_served_in_turn():
    async def check():
        pool, served = LongWork(QUESTIONS, PATIENCE, threads=1), []
        asked = [PendingWork(pool, tenant) for tenant in ("a", "a", "a", "b")]
        for name, one in zip(("a1", "a2", "a3", "b1"), asked, strict=True):
            one.task.add_done_callback(lambda _, name=name: served.append(name))
            one.go_on.set()
        await asyncio.gather(*(one.task for one in asked))
        await settled()
        assert served == ["a1", "a2", "b1", "a3"]

    asyncio.run(check())


@pytest.mark.parametrize(("bound", "tenants"), [("MOST_OF_A_TENANT", "aaa"), ("MOST_WAITING", "aabcdd")])
def test_no_more_wait_than_may(monkeypatch, bound, tenants):
    monkeypatch.setattr(long_work, bound, 2)

    async def check():
        pool = LongWork(QUESTIONS, PATIENCE)
        asked = [PendingWork(pool, tenant) for tenant in tenants]
        with pytest.raises(TooBusy) as refused:
            await asked[-1].task
        assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "1")
        for one in asked:
            one.go_on.set()
        answers = await asyncio.gather(*(one.task for one in asked), return_exceptions=True)
        assert answers.count("answer") == len(answers) - sum(isinstance(each, TooBusy) for each in answers)
        assert await asyncio.gather(*(one.task for one in asked[:2])) == ["answer"] * 2
        again = PendingWork(pool)
        again.go_on.set()
        assert await again.task == "answer"

    asyncio.run(check())


def test_a_tenant_that_fills_the_line_makes_place_for_another(monkeypatch):
    monkeypatch.setattr(long_work, "MOST_WAITING", 3)

    async def check():
        pool = LongWork(QUESTIONS, PATIENCE)
        greedy = [PendingWork(pool, "a") for _ in range(4)]
        await settled()
        others = [PendingWork(pool, tenant) for tenant in "bbcd"]
        for one in (*greedy, *others):
            one.go_on.set()
        found = await asyncio.gather(*(one.task for one in (*greedy, *others)), return_exceptions=True)
        refused = [isinstance(answer, TooBusy) for answer in found]
        assert refused == [False, False, True, True, False, False, False, True]

    asyncio.run(check())


def test_a_search_may_have_a_share_of_the_time():
    async def check():
        pool, go_on, never = LongWork(QUESTIONS, PATIENCE), threading.Event(), asyncio.Event().wait
        scope = {"state": {}}
        with pytest.raises(OutOfTime):
            await pool.run(scope, never, lambda: go_on.wait(PATIENCE), share=0.001)
        go_on.set()
        assert await pool.run(scope, never, lambda: "the rest") == "the rest"

    asyncio.run(check())


@scene
async def test_nobody_begins_to_work_for_a_caller_who_has_gone(pool):
    first, second, third = PendingWork(pool), PendingWork(pool), PendingWork(pool)
    await first.has_begun()
    second.hang_up()
    with pytest.raises(ClientDisconnect):
        await second.task
    for one in (first, second, third):
        one.go_on.set()
    assert await third.task == "answer"
    assert not second.began.is_set()


@scene
async def test_what_runs_for_a_caller_who_has_gone_ends_at_its_next_piece(pool):
    ended = []

    class Piecewise(PendingWork):
        def _do(self):
            try:
                return super()._do()
            except BaseException as error:
                ended.append(type(error).__name__)
                raise

    first, second = Piecewise(pool), PendingWork(pool)
    await first.has_begun()
    first.hang_up()
    with pytest.raises(ClientDisconnect):
        await first.task
    await settled()
    assert not second.began.is_set(), "what runs counts until it ends"
    first.go_on.set()
    second.go_on.set()
    assert await second.task == "answer"
    assert ended == ["NoLongerWantedError"]


def test_what_takes_too_long_is_refused_and_counts_until_it_ends():
    async def check():
        pool = LongWork(QUESTIONS, 0.05)
        first, second = PendingWork(pool), PendingWork(pool)
        for one in (first, second):
            with pytest.raises(OutOfTime) as refused:
                await one.task
            assert (refused.value.status, refused.value.code) == (503, "OUT_OF_TIME")
            assert refused.value.headers["Retry-After"] == "1"
        assert first.began.is_set()
        assert not second.began.is_set()
        pool._seconds = PATIENCE
        third = PendingWork(pool)
        first.go_on.set()
        third.go_on.set()
        assert await third.task == "answer"
        assert not second.began.is_set()

    asyncio.run(check())


def test_the_parts_of_one_request_share_its_time():
    async def check():
        pool, scope, never = LongWork(QUESTIONS, PATIENCE), {"state": {}}, asyncio.Event().wait
        await pool.run(scope, never, lambda: None)
        scope["state"]["answer_by"] -= 2 * PATIENCE
        go_on = threading.Event()
        with pytest.raises(OutOfTime):
            await pool.run(scope, never, lambda: go_on.wait(PATIENCE))
        go_on.set()

    asyncio.run(check())


@scene
async def test_a_system_without_threads_refuses(pool):
    def none(_):
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", none)
        with pytest.raises(TooBusy):
            await pool.run({"state": {}}, asyncio.Event().wait, lambda: 1)
    assert await pool.run({"state": {}}, asyncio.Event().wait, lambda: 1) == 1
