"""A search whose processes are killed at any point goes on to the same answer."""

import contextlib
import json
import random
import signal
import time
from collections import Counter

from pydantic_core import to_json
from sqlalchemy import func, select

from service.app.background.plans import FLEET_SEARCHING
from service.estimates.service import answer_question
from service.evidence.snapshot import get_store
from service.kit.jobs.tables import DONE, JobRow
from service.plans import service, stored
from service.plans.fleet import estimate_fleet
from service.plans.jobs import KINDS
from service.plans.tables import PlanPieceRow
from service.schemas.fleet_plans import FleetPlanRequest
from service.schemas.plans import PlanRequest
from tests import forked
from tests.faults import plan_worker
from tests.faults.harness import LONG, TIMES, rows
from tests.faults.points import read_ledger
from tests.plans.test_fleet import CLOUD, SERVICE, fleet, run
from tests.waiting import until
from tests.working import do_all

TENANT = "default"
QUESTION = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "global_batch_size": 128,
        "total_tokens": 10_000_000_000,
    },
    "goal": "cheapest",
    "search": {
        "accelerators": ["a100-sxm-80gb", "b200-sxm", "h100-sxm", "h200-sxm"],
        "accelerator_counts": [16],
        "training": {"pipeline": [1, 2], "micro_batch_sizes": [1], "recomputations": [{"strategy": "full"}]},
        "depth": 3,
        "rows": 3,
    },
}
FLEET = fleet(run("a"), run("b", 4_000_000_000), SERVICE, rented=[CLOUD])
SEARCHES, KILLS_EACH = 20 if LONG else 0, 5


class Crew:
    """Two processes that work on the searches of one database."""

    def __init__(self, database, folder):
        self._url = database.url.render_as_string(hide_password=False)
        self._hits, self._log = folder / "hits.jsonl", folder / "log"
        self.processes = []

    def start(self, point=None):
        """Start those that are missing, armed for a point."""
        for _ in range(2 - len(self.processes)):
            options = (self._url, str(self._hits), {"point": point}, str(self._log))
            self.processes.append(forked.Process(plan_worker.run, *options))

    def hits(self):
        return Counter(line["point"] for line in read_ledger(self._hits))

    def kill_at(self, point):
        """Have a process reach a point and die there; the other dies wherever it is."""
        before = self.hits()[point]
        self.start(point)
        until(lambda: self.hits()[point] > before)
        self.kill()

    def kill(self):
        while self.processes:
            process = self.processes.pop()
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL

    def kill_one(self, chance):
        process = self.processes.pop(chance.randrange(len(self.processes)))
        process.kill()
        process.join()


@contextlib.contextmanager
def crew_of(database, folder):
    crew = Crew(database, folder)
    try:
        yield crew
    finally:
        crew.kill()


class Search:
    """A plan that is asked for, beside what one process answers that searches all by itself."""

    def __init__(self, database):
        self._database = database
        store = get_store(database)
        store.refresh()
        question, catalog = PlanRequest.model_validate_json(json.dumps(QUESTION)), store.get_current(TENANT)
        self._expected = json.loads(to_json(answer_question(service.estimate_plan, question, catalog)))
        self._prepared = answer_question(service.prepare_pieces, question, catalog)

    def ask(self):
        with self._database.open_writer() as session:
            self._id = stored.create_plan(session, TENANT, self._prepared).body["id"]

    def _is_done(self):
        states = select(JobRow.state).where(JobRow.kind.in_(KINDS)).distinct()
        return [row.state for row in rows(self._database, states)] == [DONE]

    def check(self):
        """The answer is the one that was to be expected, and every piece counted once."""
        until(self._is_done)
        with self._database.open_reader() as session:
            plan = json.loads(to_json(stored.get_plan(session, TENANT, self._id)))
        assert plan["state"] == "done"
        assert plan["answer"] == self._expected
        pieces = len(self._prepared.pieces)
        candidates = sum(piece.candidates for piece in self._prepared.pieces)
        assert plan["progress"] == {
            "pieces": pieces,
            "pieces_done": pieces,
            "candidates": candidates,
            "candidates_decided": candidates,
        }
        assert rows(self._database, select(PlanPieceRow.number)) == []
        jobs = select(func.count()).select_from(JobRow).where(JobRow.effect_key.startswith(self._id))
        assert rows(self._database, jobs)[0][0] == pieces + 1


def test_a_search_whose_processes_are_killed_comes_to_the_same_answer(databases, tmp_path, report):
    began = time.monotonic()
    database = databases.loaded()
    search = Search(database)
    with crew_of(database, tmp_path) as crew:
        for _ in range(TIMES):
            search.ask()
            for point in plan_worker.POINTS:
                crew.kill_at(point)
            crew.start()
            search.check()
            crew.kill()
        hits = crew.hits()
        kill_at_random(crew, search)
    assert {point: hits[point] for point in plan_worker.POINTS if hits[point] < TIMES} == {}
    report(
        "Processes killed while they search",
        database=databases.kind,
        processes=2,
        **{f"kills, {point}": hits[point] for point in plan_worker.POINTS},
        kills_at_random=SEARCHES * KILLS_EACH,
        searches=TIMES + SEARCHES,
        other_answers=0,
        minutes=f"{(time.monotonic() - began) / 60:.1f}",
    )


def test_a_fleet_goes_on_in_other_processes(databases, tmp_path):
    database = databases.loaded()
    store = get_store(database)
    store.refresh()
    question, catalog = FleetPlanRequest.model_validate_json(json.dumps(FLEET)), store.get_current(TENANT)
    expected = json.loads(to_json(answer_question(estimate_fleet, question, catalog)))
    prepared = answer_question(service.prepare_fleet, question, catalog)
    with database.open_writer() as session:
        plan_id = stored.create_plan(session, TENANT, prepared).body["id"]

    def get_plan():
        with database.open_reader() as session:
            return json.loads(to_json(stored.get_plan(session, TENANT, plan_id)))

    assert do_all(database, FLEET_SEARCHING, most=2) == 2
    with crew_of(database, tmp_path) as crew:
        crew.start()
        until(lambda: get_plan()["state"] != "running")
    plan = get_plan()
    assert plan["fleet_answer"] == expected
    assert plan["progress"]["pieces_done"] == len(prepared.pieces) > 2


def kill_at_random(crew, search):
    """Searches of which one process after the other is killed, at any moment."""
    chance = random.Random(1)  # noqa: S311
    for _ in range(SEARCHES):
        search.ask()
        for _ in range(KILLS_EACH):
            crew.start()
            time.sleep(chance.uniform(0.0, 2.0))
            crew.kill_one(chance)
        crew.start()
        search.check()
