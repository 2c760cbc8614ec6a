"""Turns of tenants and webhooks, by a clock of the test: who is held up by whom, and by how much."""

import heapq
from collections import Counter

import pytest
from sqlalchemy import event, insert

from service.kit.jobs import leases
from service.webhooks import repository
from service.webhooks.fair_scheduling import MOST_AT_ONCE, MOST_TO_A_WEBHOOK, FairScheduler, ReadyWebhook
from service.webhooks.tables import DeliveryRow, WebhookRow

QUICK, SILENT = 0.1, 20.0


class Process:
    """One process whose receivers take as long as the test says."""

    def __init__(self):
        self.turns = FairScheduler()
        self.time = 0.0
        self.waiting = {}
        self.takes = {}
        self.told = Counter()
        self.done_at = {}
        self.most = Counter()
        self._sent = []

    def add(self, tenant, webhook, messages, seconds):
        self.waiting[ReadyWebhook(tenant, webhook)] = messages
        self.takes[ReadyWebhook(tenant, webhook)] = seconds

    def run(self, until):
        while self.time < until:
            self._begin()
            if not self._sent:
                return
            self.time, turn = heapq.heappop(self._sent)
            self.turns.end_send(turn)
            self.told[turn.webhook_id] += 1
            if not self.waiting[turn] and turn not in {sent for _, sent in self._sent}:
                self.done_at[turn.webhook_id] = self.time

    def _begin(self):
        begun = True
        while begun:  # a process looks again at once while it finds something
            ready = [each for each, messages in self.waiting.items() if messages]
            begun = self.turns.begin_sends(ready, 16)
            for turn in begun:
                if not self.waiting[turn]:  # fewer than it has turns for
                    self.turns.end_send(turn)
                    continue
                self.waiting[turn] -= 1
                heapq.heappush(self._sent, (self.time + self.takes[turn], turn))
            begun = [turn for turn in begun if self.waiting[turn]]
        self._count()

    def _count(self):
        under_way = Counter(key for _, turn in self._sent for key in (("all",), turn.tenant, turn.webhook))
        assert self.turns.room == MOST_AT_ONCE - len(self._sent)
        self.most |= under_way


@pytest.fixture
def process():
    return Process()


def test_a_process_sends_so_many_at_a_time_and_a_webhook_gets_so_many(process):
    for tenant in range(100):
        for webhook in range(3):
            process.add(f"t{tenant}", f"{tenant}.{webhook}", 100, SILENT)
    process.run(until=200)
    assert process.most["all",] == MOST_AT_ONCE
    assert process.most["t0", "0.0"] <= MOST_TO_A_WEBHOOK


def test_one_webhook_alone_gets_four(process):
    process.add("a", "a", 100, SILENT)
    process.run(until=19)
    assert process.most["all",] == MOST_TO_A_WEBHOOK == 4


def test_what_others_send_to_a_webhook_counts():
    turns = FairScheduler()
    assert len(turns.begin_sends([ReadyWebhook("a", "a", 3)], 16)) == 1
    assert turns.begin_sends([ReadyWebhook("a", "a", 4)], 16) == []
    assert len(turns.begin_sends([ReadyWebhook("a", "a", 1)], 16)) == 3


def test_a_tenant_leaves_room_for_whoever_comes_next(process):
    for number in range(100):
        process.add("slow", f"slow {number}", 10_000, SILENT)
    process.run(until=1)
    assert process.most["slow",] == MOST_AT_ONCE // 2
    process.add("quick", "quick", 50, QUICK)
    process.run(until=process.time + 5)
    assert process.told["quick"] == 50
    # Fifty, four at a time, as if there were nobody else.
    assert process.done_at["quick"] - 20 < 13 * QUICK + 0.01


def test_many_tenants_that_hang_leave_room_too(process):
    for tenant in range(6):
        for number in range(20):
            process.add(f"t{tenant}", f"{tenant} {number}", 1000, SILENT)
    process.run(until=1)
    process.add("quick", "quick", 20, QUICK)
    began = process.time
    process.run(until=began + 5)
    assert process.done_at["quick"] - began < 3


def test_a_receiver_that_hangs_holds_up_no_other_of_its_tenant(process):
    process.add("a", "silent", 10_000, SILENT)
    process.add("a", "quick", 100, QUICK)
    process.run(until=10)
    assert process.done_at["quick"] < 25 * QUICK + 0.01


def test_ten_thousand_of_one_tenant_do_not_come_before_one_of_another():
    """Though each of them is older, and all receivers are quick."""
    turns = FairScheduler()
    many, one = ReadyWebhook("many", "many"), ReadyWebhook("one", "one")
    assert one in turns.begin_sends([many, one], 2)


def test_equals_take_turns_when_there_is_room_for_one():
    turns = FairScheduler()
    ready = [ReadyWebhook(str(number), "hook") for number in range(5)]
    seen = []
    for _ in range(10):
        (turn,) = turns.begin_sends(ready, 1)
        seen.append(turn.tenant_id)
        turns.end_send(turn)
    assert seen == [*"01234", *"01234"]


def test_who_is_forgotten_takes_no_memory():
    turns = FairScheduler()
    for number in range(100):
        (turn,) = turns.begin_sends([ReadyWebhook("a", str(number))], 1)
        turns.end_send(turn)
    assert len(turns._last) == 2
    assert not turns._under_way


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_looking_costs_the_same_however_much_waits(database):
    """Steps of SQLite's machine, which are the same on every run."""

    held = {"on_behalf_of": "x", "scopes": []}

    def webhook(session, name):
        times = {"created_at": leases.read_database_time(session), "created_by": "x", "version": 1, **held}
        row = WebhookRow(tenant_id="a", id=name, url="x", event_types=[], signature_scheme="v1", secret=b"")
        for key, value in times.items():
            setattr(row, key, value)
        session.add(row)

    def fill(session, name, number):
        common = {"tenant_id": "a", "webhook_id": name, "event_type": "x", "state": "waiting", "attempt": 0}
        at = leases.read_database_time(session)
        rows = [
            {"id": f"{name} {n}", "event_id": f"{n}", "due_at": at, "created_at": at, **common}
            for n in range(number)
        ]
        session.execute(insert(DeliveryRow), [{**row, "fencing_token": 0, "failures": 0} for row in rows])

    steps = Counter()

    @event.listens_for(database.engine, "connect")
    def count(connection, _):
        connection.set_progress_handler(lambda: steps.update(["ticks"]), 100)

    def cost():
        database.dispose()
        steps.clear()
        with database.open_reader() as session:
            found = repository.read_queue(session)
        with database.open_writer() as session:
            assert repository.claim_due_delivery(session, "a", found.ready[0].webhook_id, 60.0) is not None
        return steps["ticks"]

    with database.open_writer() as session:
        for name in ("one", "two"):
            webhook(session, name)
            fill(session, name, 5)
    few = cost()
    with database.open_writer() as session:
        webhook(session, "many")
        fill(session, "many", 5000)
    assert cost() < few + 20
    event.remove(database.engine, "connect", count)
