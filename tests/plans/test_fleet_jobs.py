"""A fleet that is not answered soon is searched in the background, like a plan, to the same answer."""

import json
from math import inf
from threading import Event

import pytest
from pydantic_core import to_json
from sqlalchemy import select, update

from service.app.background.plans import FLEET_SCHEDULING, FLEET_SEARCHING, RANKING, SEARCHING
from service.app.backup import restore_backup, write_backup
from service.app.examples import EXAMPLES
from service.estimates.service import answer_question
from service.kit.clock import now
from service.kit.http.web import offloading
from service.kit.jobs.tables import DEAD, DONE, WAITING, JobRow
from service.plans import creation, service, stored
from service.plans.fleet import estimate_fleet, split_fleet
from service.plans.tables import PlanRow
from service.schemas.fleet_plans import FleetPlanRequest
from tests.applications import bearing
from tests.asking import usd
from tests.faults.harness import rows
from tests.plans.searches import count_jobs, count_pieces
from tests.plans.test_fleet import CLOUD, SERVICE, fleet, run
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


def test_fleets_and_plans_share_the_limit_of_a_tenant(client, monkeypatch):
    monkeypatch.setattr(stored, "MOST_RUNNING", 1)
    begun(client)
    refused = asked(client)
    assert (refused.status_code, refused.json()["code"]) == (409, "TOO_MANY_PLANS")
    monkeypatch.setattr(service, "MOST_CANDIDATES_AT_ONCE", 0)
    refused = client.post("/v1/plans", EXAMPLES["create_plan"])
    assert (refused.status_code, refused.json()["code"]) == (409, "TOO_MANY_PLANS")


def test_a_workload_that_no_pool_has_the_devices_for_needs_no_search(client, database):
    question = fleet(run("a", accelerator_counts=[4096]))
    assert split_fleet(parsed(question), catalog_of(client)) == ()
    place = begun(client, question)
    assert search(database) == 1
    assert client.get(place).json()["fleet_answer"] == expected(client, question)


def test_a_question_without_an_answer_is_refused_at_its_field(client):
    response = asked(client, fleet(run("a"), run("a")))
    assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "NAME_TWICE")
    assert client.get("/v1/plans").json()["items"] == []


def test_a_request_that_is_sent_again_is_one_plan(client, database):
    once = {"headers": {"Idempotency-Key": "monday"}}
    first, second = asked(client, **once), asked(client, **once)
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert jobs(database) == {WAITING: PIECES}


def test_a_dry_run_stores_nothing(client, database):
    response = asked(client, params={"validate_only": "true"})
    assert response.status_code == 202
    assert "location" not in response.headers
    assert (client.get("/v1/plans").json()["items"], jobs(database)) == ([], {})


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
