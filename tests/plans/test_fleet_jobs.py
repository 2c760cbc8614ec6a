"""A fleet that is not answered soon is searched in the background, like a plan, to the same answer."""

import asyncio
import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Barrier, BrokenBarrierError, Event, get_ident

import httpx
import pytest
from pydantic_core import to_json
from sqlalchemy import select, update

from service.app.background.plans import FLEET_SCHEDULING, FLEET_SEARCHING, RANKING, SEARCHING
from service.app.backup import restore_backup, write_backup
from service.app.examples import EXAMPLES
from service.audit.service import WriteContext, Writes
from service.estimates.service import answer_question
from service.kit.clock import now
from service.kit.database.engine import Database
from service.kit.http import long_work
from service.kit.http.idempotency import IdempotencyKeyRow
from service.kit.http.web import offloading
from service.kit.jobs.tables import DEAD, DONE, WAITING, JobRow
from service.kit.security.principals import LOCAL
from service.planning.errors import PlanningError
from service.plans import creation, repository, service, stored
from service.plans.errors import TooManyPlans
from service.plans.fleet import estimate_fleet, split_fleet
from service.plans.pricing import CandidatePricer
from service.plans.service import prepare_fleet
from service.plans.tables import PlanRow
from service.schemas.fleet_plans import FleetPlanRequest
from tests.applications import KEYRING, bearing
from tests.asking import usd
from tests.faults.harness import rows
from tests.plans.searches import count_jobs, count_pieces
from tests.plans.test_fleet import CLOUD, SERVICE, fleet, run
from tests.prepared import ON_SQLITE
from tests.working import do_all

QUESTION = fleet(
    run("a"),
    run("b", 4_000_000_000, earliest_start_at="2026-12-31T12:00:00.5+02:00"),
    run("a again"),
    SERVICE,
    run("late", 800_000_000_000_000),
    rented=[CLOUD],
    starts_at="2026-12-29T23:59:59.25Z",
    budget=usd("100000"),
)
ONCE = {"Idempotency-Key": "monday"}
PIECES = 8
"""Those of four workloads on two pools; of two equal ones, one is searched."""


@pytest.fixture(autouse=True)
def _never_soon(monkeypatch):
    monkeypatch.setattr(offloading, "_INLINE_SHARE", 0.0)


def parsed(question=QUESTION):
    return FleetPlanRequest.model_validate_json(json.dumps(question))


def catalog_of(client, tenant="default"):
    return client.app.state.snapshots.get_current(tenant)


def expected(client, question=QUESTION):
    """What one process answers that searches all by itself."""
    return json.loads(to_json(answer_question(estimate_fleet, parsed(question), catalog_of(client))))


def asked(client, question=QUESTION, **options):
    """What is answered to a caller for whom the search takes too long."""
    go_on = Event()
    real = creation.estimate_fleet
    creation.estimate_fleet = lambda *given: go_on.wait(60) and real(*given)
    try:
        return client.post("/v1/plans:fleet", question, **options)
    finally:
        go_on.set()
        creation.estimate_fleet = real


def begun(client, question=QUESTION):
    response = asked(client, question)
    assert response.status_code == 202, response.text
    return response.headers["location"]


def search(database, most=inf):
    return do_all(database, FLEET_SEARCHING, FLEET_SCHEDULING, most=most)


def jobs(database):
    return count_jobs(database, FLEET_SEARCHING, FLEET_SCHEDULING)


@ON_SQLITE
def test_a_fleet_that_is_answered_soon_is_not_stored(client, monkeypatch):
    monkeypatch.setattr(offloading, "_INLINE_SHARE", 1.0)
    response = client.post("/v1/plans:fleet", QUESTION)
    assert response.status_code == 200, response.text
    assert response.json() == expected(client)
    assert "location" not in response.headers
    assert client.get("/v1/plans").json()["items"] == []
    told = [event["operation"] for event in client.get("/v1/audit-events").json()["items"]]
    assert "plan_fleet" not in told


def test_a_fleet_that_takes_longer_is_searched_piece_by_piece_to_the_same_answer(client, database):
    response = asked(client)
    assert response.status_code == 202
    place, plan = response.headers["location"], response.json()
    assert (plan["state"], plan["kind"], plan["goal"]) == ("running", "fleet", "cheapest")
    assert parsed(plan["fleet_question"]) == parsed()
    assert not {"question", "answer", "fleet_answer"} & plan.keys()
    event, *_ = client.get("/v1/audit-events").json()["items"]
    assert (event["operation"], event["resource"]) == ("plan_fleet", f"plans/{plan['id']}")
    assert search(database, most=3) == 3
    progress = client.get(place).json()["progress"]
    assert (progress["pieces"], progress["pieces_done"]) == (PIECES, 3)
    assert 0 < progress["candidates_decided"] < progress["candidates"]
    assert search(database) == PIECES - 3 + 1
    plan = client.get(place).json()
    assert plan["state"] == "done"
    assert plan["fleet_answer"] == expected(client)
    assert [one["workload"] for one in plan["fleet_answer"]["unplaced"]] == ["late"]
    assert plan["best_cost"] == plan["fleet_answer"]["cost"]
    assert plan["progress"]["candidates_decided"] == plan["progress"]["candidates"]
    assert (jobs(database), count_pieces(database)) == ({DONE: PIECES + 1}, 0)
    (listed,) = client.get("/v1/plans?goal=cheapest").json()["items"]
    assert listed == {name: value for name, value in plan.items() if not name.startswith("fleet_")}


class TestPrices:
    """Every piece prices what it keeps, so that the last job has little to do."""

    PLACED = fleet(run("a"), SERVICE, rented=[CLOUD])
    PATIENT = {
        **SERVICE,
        "name": "patient",
        "workload": {**SERVICE["workload"], "input_tokens": 60_000, "request_rate_per_second": 0.02},
        "model": {"source": "catalog", "id": "llama-3.1-70b"},
        "serving": {},
    }
    """No device here reads 60,000 tokens of a 70B model within the default levels."""
    del PATIENT["workload"]["service_levels"]

    def test_the_last_job_prices_nothing_again(self, client, database, monkeypatch):
        place = begun(client, self.PLACED)
        do_all(database, FLEET_SEARCHING)
        with monkeypatch.context() as patch:
            patch.setattr(CandidatePricer, "price_start", _never)
            assert do_all(database, FLEET_SCHEDULING) == 1
        assert client.get(place).json()["fleet_answer"] == expected(client, self.PLACED)

    def test_what_a_piece_cannot_price_is_left_to_the_last_job(self, client, database, monkeypatch):
        place = begun(client, self.PLACED)
        with monkeypatch.context() as patch:
            patch.setattr(CandidatePricer, "price_start", _refuse)
            do_all(database, FLEET_SEARCHING)
        do_all(database, FLEET_SCHEDULING)
        assert client.get(place).json()["fleet_answer"] == expected(client, self.PLACED)

    @pytest.mark.parametrize("goal", ["cheapest", "earliest"])
    def test_levels_that_nothing_keeps_are_dropped_in_the_pieces_too(self, client, database, goal):
        question = fleet(self.PATIENT, run("a"), rented=[CLOUD], goal=goal)
        place = begun(client, question)
        search(database)
        answer = client.get(place).json()["fleet_answer"]
        assert "DEFAULT_LEVELS_MISSED" in [each["code"] for each in answer["warnings"]]
        assert answer == expected(client, question)

    def test_an_unknown_price_stays_unknown(self, client, database):
        bare = {"name": "bare", "cluster": CLOUD["cluster"]}
        question = fleet(run("a"), owned=[bare], goal="earliest")
        place = begun(client, question)
        search(database)
        answer = client.get(place).json()["fleet_answer"]
        assert "cost" not in answer["assignments"][0]["row"]
        assert answer == expected(client, question)


def _refuse(*_):
    raise PlanningError("NOT_MODELLED", "/model", "the model has no price")


def test_a_search_goes_on_where_it_is_restored(client, database, databases, tmp_path):
    place = begun(client)
    search(database, most=2)
    write_backup(database, tmp_path / "backup")
    restored = databases.empty()
    restore_backup(restored, tmp_path / "backup")
    assert search(restored) == PIECES - 2 + 1
    with restored.open_reader() as session:
        plan = stored.get_plan(session, "default", place.rpartition("/")[2])
    assert plan["fleet_answer"] == expected(client)
    assert client.get(place).json()["state"] == "running"


def test_a_piece_that_is_searched_twice_counts_once(client, database):
    """A process is killed between what it found and the end of its job."""
    place = begun(client)
    search(database, most=2)
    done = update(JobRow).where(JobRow.state == DONE, JobRow.kind == FLEET_SEARCHING.name)
    with database.open_writer() as session:
        session.execute(done.values(state=WAITING, due_at=now(), finished_at=None))
    assert search(database) == PIECES + 1
    assert client.get(place).json()["fleet_answer"] == expected(client)


@ON_SQLITE
def test_jobs_of_fleets_are_unknown_to_an_older_version(client, database):
    """It would take the question for that of a plan, and give up after a few attempts."""
    begun(client)
    assert do_all(database, SEARCHING, RANKING) == 0


def test_a_search_begins_anew_under_a_catalog_that_changes_meanwhile(client, database):
    place = begun(client)
    search(database, most=3)
    site = {**EXAMPLES["create_site"], "id": "hall-of-others", "aliases": []}
    assert client.post("/v1/sites", site).status_code == 201
    assert search(database, most=1) == 1
    assert client.get(place).json()["progress"]["pieces_done"] == 0
    search(database)
    plan = client.get(place).json()
    assert plan["fleet_answer"] == expected(client)
    assert plan["fleet_answer"]["evidence"]["catalog_revision"] == catalog_of(client).revision


def test_a_search_is_cancelled_and_deleted(client, database):
    place = begun(client)
    search(database, most=2)
    assert client.post(f"{place}:cancel").json()["state"] == "cancelled"
    assert (search(database), count_pieces(database)) == (0, 0)
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404


def test_a_search_whose_job_was_given_up_fails(client, database):
    place = begun(client)
    with database.open_writer() as session:
        one = select(JobRow.id).where(JobRow.state == WAITING).limit(1).scalar_subquery()
        session.execute(update(JobRow).where(JobRow.id == one).values(state=DEAD, due_at=None))
        assert stored.fail_stuck_plans(session) == 1
    assert client.get(place).json()["state"] == "failed"
    assert search(database) == 0


def test_plans_are_refused_where_as_many_fleets_run(client, monkeypatch):
    monkeypatch.setattr(stored, "MOST_RUNNING", 1)
    begun(client)
    monkeypatch.setattr(service, "MOST_CANDIDATES_AT_ONCE", 0)
    refused = client.post("/v1/plans", EXAMPLES["create_plan"])
    assert (refused.status_code, refused.json()["code"]) == (409, "TOO_MANY_PLANS")
    assert refused.headers["retry-after"] == "10"


def test_two_at_once_do_not_both_get_the_last_place(client, database, monkeypatch):
    """Each would count before the other is stored."""
    monkeypatch.setattr(stored, "MOST_RUNNING", 1)
    prepared = answer_question(prepare_fleet, parsed(), catalog_of(client))
    counted, count_running = Barrier(2), repository.count_running

    def count(*given):
        found = count_running(*given)
        with contextlib.suppress(BrokenBarrierError):
            counted.wait(1)
        return found

    def begin(_):
        try:
            with database.open_writer() as session:
                stored.create_plan(session, "default", prepared)
        except TooManyPlans:
            return "refused"
        return "stored"

    monkeypatch.setattr(repository, "count_running", count)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(begin, range(2))) == ["refused", "stored"]


class TestWithoutAPlace:
    """As many searches of the tenant run as may: a fleet is answered while its caller waits, or refused."""

    @pytest.fixture(autouse=True)
    def _full(self, monkeypatch):
        monkeypatch.setattr(stored, "MOST_RUNNING", 0)

    def test_a_fleet_that_takes_over_a_second_keeps_its_turn(self, client, database, monkeypatch):
        searches = []
        go_on = Event()
        real_search, real_check = creation.estimate_fleet, stored.check_place

        def search(*given):
            searches.append(given)
            assert go_on.wait(60)
            return real_search(*given)

        def check(*given):
            go_on.set()
            real_check(*given)

        monkeypatch.setattr(creation, "estimate_fleet", search)
        monkeypatch.setattr(stored, "check_place", check)
        answered = client.post("/v1/plans:fleet", QUESTION, headers=ONCE)
        assert answered.status_code == 200, answered.text
        assert answered.json() == expected(client)
        assert len(searches) == 1  # what was searched before is not lost
        assert rows(database, select(PlanRow.id)) == []
        again = client.post("/v1/plans:fleet", QUESTION, headers=ONCE)
        assert (again.headers["idempotency-replayed"], again.content) == ("true", answered.content)

    def test_one_that_takes_longer_than_its_caller_waits_is_refused(self, client, database, monkeypatch):
        monkeypatch.setattr(client.app.state.work_queues["searches"], "_seconds", 0.3)
        refused = asked(client)
        assert (refused.status_code, refused.json()["code"]) == (409, "TOO_MANY_PLANS")
        assert refused.headers["retry-after"] == "10"
        assert rows(database, select(PlanRow.id)) == []

    def test_one_behind_a_full_queue_is_shed(self, client, monkeypatch):
        monkeypatch.setattr(client.app.state.work_queues["searches"]._waiting, "_most_of_a_tenant", 0)
        refused = client.post("/v1/plans:fleet", QUESTION)
        assert (refused.status_code, refused.json()["code"]) == (503, "BUSY")
        assert refused.headers["retry-after"] == "1"

    def test_the_last_place_may_go_to_another_meanwhile(self, client, monkeypatch):
        """Two fleets see one place, and one has it."""
        monkeypatch.setattr(client.app.state.work_queues["searches"], "_seconds", 0.5)
        monkeypatch.setattr(stored, "check_place", _once(lambda *_: None, stored.check_place))
        refused = asked(client)
        assert (refused.status_code, refused.json()["code"]) == (409, "TOO_MANY_PLANS")

    def test_a_question_without_an_answer_is_refused_at_its_field(self, client):
        response = client.post("/v1/plans:fleet", fleet(run("a"), run("a")))
        assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "NAME_TWICE")


def _once(first, then):
    """A function that is ``first`` when it is called first, and ``then`` afterwards."""
    turns = iter([first])

    def call(*given):
        return next(turns, then)(*given)

    return call


@ON_SQLITE
def test_a_workload_that_no_pool_has_the_devices_for_needs_no_search(client, database):
    question = fleet(run("a", accelerator_counts=[4096]))
    assert split_fleet(parsed(question), catalog_of(client)) == ()
    place = begun(client, question)
    assert search(database) == 1
    assert client.get(place).json()["fleet_answer"] == expected(client, question)


@ON_SQLITE
def test_a_question_without_an_answer_is_refused_at_its_field(client):
    response = asked(client, fleet(run("a"), run("a")))
    assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "NAME_TWICE")
    assert client.get("/v1/plans").json()["items"] == []


def test_a_request_that_is_sent_again_is_one_plan(client, database):
    first, second = asked(client, headers=ONCE), asked(client, headers=ONCE)
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert jobs(database) == {WAITING: PIECES}


class TestSentAgain:
    """A fleet that is answered while its caller waits, under an Idempotency-Key."""

    @pytest.fixture(autouse=True)
    def _soon(self, monkeypatch):
        monkeypatch.setattr(offloading, "_INLINE_SHARE", 1.0)

    def test_the_first_answer_is_given_again_without_a_search(self, client, database, monkeypatch):
        first = client.post("/v1/plans:fleet", QUESTION, headers=ONCE)
        assert first.json() == expected(client)
        assert "idempotency-replayed" not in first.headers
        monkeypatch.setattr(creation, "estimate_fleet", _never)
        again = client.post("/v1/plans:fleet", QUESTION, headers=ONCE)
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["idempotency-replayed"] == "true"
        assert rows(database, select(PlanRow.id)) == []
        assert "plan_fleet" not in [
            event["operation"] for event in client.get("/v1/audit-events").json()["items"]
        ]

    def test_another_question_under_the_key_is_refused(self, client):
        client.post("/v1/plans:fleet", QUESTION, headers=ONCE)
        other = client.post("/v1/plans:fleet", {**QUESTION, "goal": "earliest"}, headers=ONCE)
        assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")

    def test_of_two_at_once_both_have_the_answer_of_the_first(self, client, monkeypatch):
        """Both are searched; the catalog changes between them, so that one cannot pass for the other."""
        begin, real = Barrier(2), creation.estimate_fleet

        def search_together(*given):
            begin.wait(60)
            return {**real(*given), "currency_code": f"{get_ident()}"}

        monkeypatch.setattr(long_work, "MOST_AT_ONCE_OF_A_TENANT", 2)
        monkeypatch.setattr(creation, "estimate_fleet", search_together)

        async def ask_both():
            transport = httpx.ASGITransport(app=client.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
                asking = [http.post("/v1/plans:fleet", json=QUESTION, headers=ONCE) for _ in range(2)]
                return await asyncio.gather(*asking)

        answers = client._runner.run(ask_both())
        kept = client.post("/v1/plans:fleet", QUESTION, headers=ONCE)
        given = [each for each in answers if each.status_code == 200]
        assert given
        assert {each.content for each in given} == {kept.content}
        refused = [each.json()["code"] for each in answers if each.status_code != 200]
        assert set(refused) <= {"IDEMPOTENCY_KEY_IN_USE"}

    def test_a_plan_that_was_stored_meanwhile_is_the_answer(self, client, monkeypatch):
        """An equal request in another process was not answered soon, and is stored before this one."""
        made, real = [], creation.estimate_fleet

        def search(*given):
            monkeypatch.setattr(creation, "estimate_fleet", real)
            made.append(_stored_elsewhere(client))
            return real(*given)

        monkeypatch.setattr(creation, "estimate_fleet", search)
        answered = client.post("/v1/plans:fleet", QUESTION, headers=ONCE)
        assert (answered.status_code, answered.json()["id"]) == (202, made[0])
        assert answered.headers["idempotency-replayed"] == "true"
        assert answered.headers["location"] == f"/v1/plans/{made[0]}"

    def test_a_dry_run_leaves_the_key_free(self, client):
        dry = client.post("/v1/plans:fleet", QUESTION, headers=ONCE, params={"validate_only": "true"})
        assert dry.status_code == 200
        other = client.post("/v1/plans:fleet", {**QUESTION, "goal": "earliest"}, headers=ONCE)
        assert (other.status_code, "idempotency-replayed" in other.headers) == (200, False)

    def test_who_may_only_read_leaves_no_answer_behind(self, callers, database):
        reader = {**bearing(callers.key("plans:read")), **ONCE}
        for goal in ("cheapest", "earliest"):
            answered = callers.client.post("/v1/plans:fleet", {**QUESTION, "goal": goal}, headers=reader)
            assert answered.status_code == 200
        assert rows(database, select(IdempotencyKeyRow.operation)) == []

    def test_without_a_key_no_database_is_asked(self, client, monkeypatch):
        for name in ("open_reader", "open_writer"):
            monkeypatch.setattr(Database, name, _never)
        assert client.post("/v1/plans:fleet", QUESTION).status_code == 200


def _never(*_):
    raise AssertionError


def _stored_elsewhere(client):
    """An equal request with the key, as another process stores it; the id of its plan."""
    state = client.app.state
    call = WriteContext(LOCAL, "plan_fleet", "/v1/plans:fleet", "r", ONCE["Idempotency-Key"])
    prepared = answer_question(prepare_fleet, parsed(), catalog_of(client))
    sent = parsed().model_dump(mode="json")
    made = Writes(state.database, KEYRING).run(
        call, sent, lambda session: stored.create_plan(session, LOCAL.tenant_id, prepared)
    )
    return json.loads(made.body)["id"]


@ON_SQLITE
def test_a_dry_run_stores_nothing(client, database):
    response = asked(client, params={"validate_only": "true"})
    assert response.status_code == 202
    assert "location" not in response.headers
    assert (client.get("/v1/plans").json()["items"], jobs(database)) == ([], {})


@ON_SQLITE
def test_who_may_only_read_stores_nothing(callers, database, monkeypatch):
    """A question that takes long would otherwise write what its caller may not."""
    client, reader = callers.client, {"headers": bearing(callers.key("plans:read"))}
    monkeypatch.setattr(client.app.state.work_queues["searches"], "_seconds", 0.5)
    refused = asked(client, **reader)
    assert (refused.status_code, refused.json()["code"]) == (503, "OUT_OF_TIME")
    assert rows(database, select(PlanRow.id)) == []
    monkeypatch.setattr(client.app.state.work_queues["searches"], "_seconds", 60.0)
    answered = client.post("/v1/plans:fleet", QUESTION, **reader)
    assert answered.status_code == 200
    assert client.post("/v1/plans", EXAMPLES["create_plan"], **reader).status_code == 403
    writer = {"headers": bearing(callers.key("plans:*"))}
    place = asked(client, **writer).headers["location"]
    assert client.get(place, **reader).json()["kind"] == "fleet"


@ON_SQLITE
def test_a_fleet_is_no_candidate_of_a_quote(client, database):
    place = begun(client)
    plan_id = place.rpartition("/")[2]
    search(database)
    quote = {"name": "q", "plan_id": plan_id, "candidate": 1}
    refused = client.post("/v1/quotes", quote)
    assert (refused.status_code, refused.json()["code"]) == (409, "PLAN_NOT_QUOTABLE")
    assert client.get(f"/plans/{plan_id}/quote").status_code == 409


def test_a_goal_of_fleets_filters_the_list(client):
    begun(client, {**QUESTION, "goal": "earliest"})
    (plan,) = client.get("/v1/plans?goal=earliest").json()["items"]
    assert plan["goal"] == "earliest"
    assert client.get("/v1/plans?goal=cheapest").json()["items"] == []
