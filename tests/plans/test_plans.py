"""Plans over HTTP and their searches in the background: one answer, whoever searches, kept and told."""

import json
from datetime import UTC, datetime, timedelta
from math import inf
from threading import Event

import pytest
from pydantic_core import to_json
from sqlalchemy import select, update

from service.app.background.plans import RANKING, SEARCHING, SWEEPING
from service.app.backup import restore_backup, write_backup
from service.app.examples import EXAMPLES
from service.estimates.service import answer_question
from service.kit.clock import now
from service.kit.http.web import offloading
from service.kit.jobs.tables import CANCELLED, DEAD, DONE, WAITING, JobRow
from service.plans import service, stored
from service.plans.space import KeptConfiguration, SearchOutcome
from service.plans.tables import PlanRow
from service.schemas.plan_answers import PlanConstraint
from service.schemas.plans import PlanRequest
from tests.applications import bearing
from tests.faults.harness import rows
from tests.plans import toy
from tests.plans.searches import count_jobs, count_pieces
from tests.prepared import ON_SQLITE
from tests.working import do_all


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    toy.install(monkeypatch)
    answered_at_once(monkeypatch, is_small=False)


def answered_at_once(monkeypatch, *, is_small):
    monkeypatch.setattr(service, "MOST_CANDIDATES_AT_ONCE", inf if is_small else 0)
    monkeypatch.setattr(service, "MOST_PIECES_AT_ONCE", inf)


def asked(client, **options):
    return client.post("/v1/plans", toy.QUESTION, **options)


def begun(client):
    response = asked(client)
    assert response.status_code == 202, response.text
    return response.headers["location"]


def search(database, most=inf):
    return do_all(database, SEARCHING, RANKING, most=most)


def expected(client):
    """What one process answers that searches all by itself."""
    question = PlanRequest.model_validate_json(json.dumps(toy.QUESTION))
    return answer_question(service.estimate_plan, question, client.app.state.snapshots.get_current("default"))


def jobs(database):
    return count_jobs(database, SEARCHING, RANKING)


def change_catalog(client, number):
    site = {**EXAMPLES["create_site"], "id": f"hall-{number}", "aliases": []}
    assert client.post("/v1/sites", site).status_code == 201


def test_a_small_search_is_answered_at_once(client, database, monkeypatch):
    answered_at_once(monkeypatch, is_small=True)
    response = asked(client)
    assert response.status_code == 200, response.text
    plan = response.json()
    assert plan["state"] == "done"
    assert plan["answer"] == expected(client)
    assert plan["question"] == toy.QUESTION
    assert plan["best_cost"]["currency_code"] == "EUR"
    assert plan["progress"] == {
        "pieces": toy.PIECES,
        "pieces_done": toy.PIECES,
        "candidates": toy.PIECES * toy.CANDIDATES,
        "candidates_decided": toy.PIECES * toy.CANDIDATES,
    }
    assert client.get(response.headers["location"]).json() == plan
    assert jobs(database) == {}
    event, *_ = client.get("/v1/audit-events").json()["items"]
    assert (event["operation"], event["resource"]) == ("create_plan", f"plans/{plan['id']}")


def test_a_small_search_that_is_not_answered_soon_goes_on_in_the_background(client, database, monkeypatch):
    answered_at_once(monkeypatch, is_small=True)
    monkeypatch.setattr(offloading, "_INLINE_SHARE", 0.0)
    go_on = Event()
    with monkeypatch.context() as slow:
        toy.install(slow, search_space=lambda *asked: go_on.wait(60) and toy.search_space(*asked))
        place = begun(client)
        go_on.set()
    assert client.get(place).json()["state"] == "running"
    assert search(database) == toy.PIECES + 1
    assert client.get(place).json()["answer"] == expected(client)


def test_a_large_search_comes_to_the_same_answer_piece_by_piece(client, database):
    place = begun(client)
    assert client.get(place).json()["progress"]["pieces_done"] == 0
    assert search(database, most=2) == 2
    plan = client.get(place).json()
    assert plan["state"] == "running"
    assert "answer" not in plan
    assert plan["progress"] == {
        "pieces": toy.PIECES,
        "pieces_done": 2,
        "candidates": toy.PIECES * toy.CANDIDATES,
        "candidates_decided": 2 * toy.CANDIDATES,
    }
    assert search(database) == toy.PIECES - 2 + 1
    plan = client.get(place).json()
    assert plan["state"] == "done"
    assert plan["answer"] == expected(client)
    assert list(plan["answer"]["rows"][0]) == ["rank", "cost"]
    assert plan["finished_at"] >= plan["created_at"]
    assert jobs(database) == {DONE: toy.PIECES + 1}
    assert count_pieces(database) == 0


def test_question_and_answer_are_passed_on_as_they_are_stored(client, database):
    """An answer of megabytes is not decoded for it."""
    place = begun(client)
    search(database)
    text = '{"rows":  [], "given":  [], "name": "Größe, \\u00fc \\"", "number": 1e-7}'
    with database.open_writer() as session:
        question = {**toy.QUESTION, "name": 'Rechenzentrum Köln "}', "scale": 1e-7, "whole": 10**20}
        session.execute(update(PlanRow).values(answer=text, question=question))
    response = client.get(place)
    assert response.headers["content-type"] == "application/json"
    assert response.text.endswith(f',"answer":{text}}}')
    with database.open_reader() as session:
        stored_plan = stored.get_plan(session, "default", place.rpartition("/")[2])
    assert response.json() == json.loads(to_json(stored_plan))


def test_a_piece_that_is_searched_twice_counts_once(client, database):
    """A process is killed between what it found and the end of its job."""
    place = begun(client)
    search(database, most=2)
    done = update(JobRow).where(JobRow.state == DONE, JobRow.kind == SEARCHING.name)
    with database.open_writer() as session:
        session.execute(done.values(state=WAITING, due_at=now(), finished_at=None))
    assert search(database) == toy.PIECES + 1
    plan = client.get(place).json()
    assert plan["answer"] == expected(client)
    assert plan["progress"]["candidates_decided"] == toy.PIECES * toy.CANDIDATES


@ON_SQLITE
def test_what_is_ranked_twice_is_answered_once(client, database):
    place = begun(client)
    search(database)
    plan = client.get(place).json()
    with database.open_writer() as session:
        again = update(JobRow).where(JobRow.kind == RANKING.name)
        session.execute(again.values(state=WAITING, due_at=now(), finished_at=None))
    assert search(database) == 1
    assert client.get(place).json() == plan


class TestCatalog:
    def test_a_search_begins_anew_under_a_catalog_that_changes_meanwhile(self, client, database):
        place = begun(client)
        search(database, most=3)
        change_catalog(client, 1)
        assert search(database, most=1) == 1
        assert client.get(place).json()["progress"]["pieces_done"] == 0
        assert jobs(database) == {DONE: 4, CANCELLED: toy.PIECES - 4, WAITING: toy.PIECES}
        search(database)
        plan = client.get(place).json()
        assert plan["answer"] == expected(client)
        revision = client.app.state.snapshots.get_current("default").revision
        assert plan["answer"]["evidence"]["catalog_revision"] == revision

    def test_and_so_it_does_before_it_is_ranked(self, client, database):
        place = begun(client)
        search(database, most=toy.PIECES)
        change_catalog(client, 1)
        assert search(database) == 1 + toy.PIECES + 1
        assert client.get(place).json()["answer"] == expected(client)

    @ON_SQLITE
    def test_a_catalog_that_does_not_stay_lets_it_fail(self, client, database):
        place = begun(client)
        for number in range(stored.MOST_BEGINNINGS):
            assert client.get(place).json()["state"] == "running"
            change_catalog(client, number)
            assert search(database, most=1) == 1
        plan = client.get(place).json()
        assert (plan["state"], plan["error_code"]) == ("failed", "CATALOG_CHANGED")
        assert search(database) == 0
        assert count_pieces(database) == 0

    @pytest.mark.parametrize("other", [{"method_version": "2020.1"}, {"day": "2020-01-01"}])
    @ON_SQLITE
    def test_another_method_or_day_is_another_search(self, client, database, other):
        """Processes of two versions share a database while one replaces the other; prices end with a day."""
        place = begun(client)
        with database.open_writer() as session:
            session.execute(update(PlanRow).values(**other))
        assert search(database) == 1 + toy.PIECES + 1
        assert client.get(place).json()["answer"] == expected(client)
        columns = (PlanRow.catalog_revision, PlanRow.method_version, PlanRow.day)
        (pinned,) = rows(database, select(*columns))
        assert tuple(pinned) == service.build_pin(client.app.state.snapshots.get_current("default"))

    @ON_SQLITE
    def test_a_day_that_ends_while_a_piece_is_searched_ends_its_search(self, client, database, monkeypatch):
        evening = datetime(2026, 12, 1, 23, 59, tzinfo=UTC)
        times = [evening]
        monkeypatch.setattr(service, "now", lambda: times[-1])
        place = begun(client)

        def past_midnight(space, piece):
            times.append(evening + timedelta(minutes=2))
            return toy.search_space(space, piece)

        toy.install(monkeypatch, search_space=past_midnight)
        assert search(database, most=1) == 1
        assert client.get(place).json()["progress"]["pieces_done"] == 0
        assert search(database) == toy.PIECES + 1
        assert client.get(place).json()["answer"] == expected(client)
        assert [row.day for row in rows(database, select(PlanRow.day))] == ["2026-12-02"]


class TestRefusing:
    @pytest.mark.parametrize("stage", ["build_space", "split_search"])
    @ON_SQLITE
    def test_a_question_without_an_answer_is_refused_by_its_field(self, client, monkeypatch, stage):
        toy.install(monkeypatch, **{stage: toy.refuse})
        response = asked(client)
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/search/training/tensor", "NO_LAYOUT")
        assert client.get("/v1/plans").json()["items"] == []

    @pytest.mark.parametrize("stage", ["build_space", "search_space", "rank_candidates"])
    @ON_SQLITE
    def test_what_turns_out_in_the_background_lets_the_plan_fail(self, client, database, monkeypatch, stage):
        place = begun(client)
        toy.install(monkeypatch, **{stage: toy.refuse})
        search(database)
        plan = client.get(place).json()
        assert plan["state"] == "failed"
        assert plan["error_code"] == "NO_LAYOUT"
        assert plan["error_summary"] == "/search/training/tensor: no degree divides the heads"
        assert "answer" not in plan
        assert jobs(database).keys() <= {DONE, CANCELLED}
        assert count_pieces(database) == 0

    def test_so_many_searches_run_at_a_time(self, client, database, monkeypatch):
        monkeypatch.setattr(stored, "MOST_RUNNING", 2)
        begun(client)
        begun(client)
        response = asked(client)
        assert (response.status_code, response.json()["code"]) == (409, "TOO_MANY_PLANS")
        answered_at_once(monkeypatch, is_small=True)
        assert asked(client).status_code == 200
        answered_at_once(monkeypatch, is_small=False)
        search(database)
        begun(client)


class TestEnding:
    def test_a_search_is_cancelled(self, client, database):
        place = begun(client)
        search(database, most=2)
        response = client.post(f"{place}:cancel")
        assert response.status_code == 200, response.text
        assert response.json()["state"] == "cancelled"
        assert client.get(place).json()["state"] == "cancelled"
        assert client.post(f"{place}:cancel").json() == response.json()
        assert search(database) == 0
        assert jobs(database) == {DONE: 2, CANCELLED: toy.PIECES - 2}
        assert count_pieces(database) == 0

    def test_a_piece_that_runs_meanwhile_changes_nothing(self, client, database, monkeypatch):
        place = begun(client)

        def cancelled_meanwhile(space, piece):
            assert client.post(f"{place}:cancel").status_code == 200
            return toy.search_space(space, piece)

        toy.install(monkeypatch, search_space=cancelled_meanwhile)
        assert search(database) == 1
        plan = client.get(place).json()
        assert (plan["state"], plan["progress"]["pieces_done"]) == ("cancelled", 0)

    def test_a_plan_is_deleted_while_it_is_searched(self, client, database, monkeypatch):
        place = begun(client)

        def deleted_meanwhile(space, piece):
            assert client.delete(place).status_code == 204
            return toy.search_space(space, piece)

        toy.install(monkeypatch, search_space=deleted_meanwhile)
        assert search(database) == 1
        assert client.get(place).status_code == client.delete(place).status_code == 404
        assert (count_pieces(database), search(database)) == (0, 0)
        assert client.get("/v1/plans").json()["items"] == []

    def test_what_has_ended_is_not_cancelled(self, client, database):
        place = begun(client)
        search(database)
        response = client.post(f"{place}:cancel")
        assert (response.status_code, response.json()["code"]) == (409, "PLAN_ENDED")
        assert client.get(place).json()["state"] == "done"

    @pytest.mark.parametrize(
        ("state", "error", "code"),
        [(DEAD, "UNEXPECTED", "UNEXPECTED"), (CANCELLED, None, "JOB_CANCELLED")],
    )
    def test_a_search_whose_job_was_given_up_fails(self, client, database, state, error, code):
        place = begun(client)
        search(database, most=1)
        with database.open_writer() as session:
            one = select(JobRow.id).where(JobRow.state == WAITING).limit(1).scalar_subquery()
            ended = update(JobRow).where(JobRow.id == one)
            session.execute(ended.values(state=state, due_at=None, error_code=error, error_summary=error))
        swept(database)
        plan = client.get(place).json()
        assert (plan["state"], plan["error_code"]) == ("failed", code)
        assert search(database) == 0

    def test_a_search_that_goes_on_is_left_alone(self, client, database):
        place = begun(client)
        search(database, most=3)
        change_catalog(client, 1)
        search(database, most=1)  # jobs of the first beginning are cancelled, those of the second are not
        swept(database)
        assert client.get(place).json()["state"] == "running"

    @pytest.mark.parametrize(
        ("age", "left"),
        [(stored.KEPT + timedelta(hours=1), 0), (stored.KEPT - timedelta(hours=1), 1)],
    )
    def test_what_ended_long_ago_goes(self, client, database, age, left):
        begun(client)
        search(database)
        begun(client)
        with database.open_writer() as session:
            session.execute(update(PlanRow).where(PlanRow.state == "done").values(finished_at=now() - age))
            session.execute(update(PlanRow).values(created_at=now() - 2 * age))
            assert stored.delete_expired_plans(session) == 1 - left
        states = [plan["state"] for plan in client.get("/v1/plans").json()["items"]]
        assert sorted(states) == ["done"] * left + ["running"]


def swept(database):
    with database.open_writer() as session:
        stored.fail_stuck_plans(session)
    assert SWEEPING.job.name == "plans.sweep"


class TestListing:
    def test_pages_hold_plans_without_their_answers(self, client, database, monkeypatch):
        begun(client)
        search(database)
        answered_at_once(monkeypatch, is_small=True)
        made = [asked(client).json()["id"] for _ in range(2)]
        first = client.get("/v1/plans?page_size=2").json()
        assert [plan["id"] for plan in first["items"]] == made[::-1]
        assert not {"answer", "question"} & first["items"][0].keys()
        assert first["items"][0]["best_cost"]["currency_code"] == "EUR"
        second = client.get(f"/v1/plans?page_size=2&page_token={first['next_page_token']}").json()
        assert (len(second["items"]), second["next_page_token"]) == (1, None)

    def test_filters(self, client, database):
        begun(client)
        search(database)
        begun(client)
        states = [plan["state"] for plan in client.get("/v1/plans?state=running").json()["items"]]
        assert states == ["running"]
        assert len(client.get("/v1/plans?state=running&state=done&goal=cheapest").json()["items"]) == 2
        assert client.get("/v1/plans?goal=fastest").json()["items"] == []

    def test_plans_are_those_of_their_tenant(self, callers, database):
        mine, other = (
            {"headers": bearing(callers.key("plans:*", tenant=callers.tenant(name)))}
            for name in ("mine", "other")
        )
        client = callers.client
        place = asked(client, **mine).headers["location"]
        assert client.get(place, **other).status_code == 404
        assert client.post(f"{place}:cancel", **other).status_code == 404
        assert client.get("/v1/plans", **other).json()["items"] == []
        search(database)
        assert client.get(place, **mine).json()["state"] == "done"
        reader = {"headers": bearing(callers.key("plans:read", tenant="mine"))}
        assert client.get(place, **reader).status_code == 200
        assert asked(client, **reader).status_code == 403
        assert client.post(f"{place}:cancel", **reader).status_code == 403


class TestRepeating:
    def test_a_request_that_is_sent_again_is_one_plan(self, client, database):
        once = {"headers": {"Idempotency-Key": "monday"}}
        first, second = asked(client, **once), asked(client, **once)
        assert (first.status_code, second.status_code) == (202, 202)
        assert first.json() == second.json()
        assert second.headers["location"] == first.headers["location"]
        assert jobs(database) == {WAITING: toy.PIECES}

    @pytest.mark.parametrize("is_small", [True, False])
    def test_a_dry_run_stores_nothing(self, client, database, monkeypatch, is_small):
        answered_at_once(monkeypatch, is_small=is_small)
        response = asked(client, params={"validate_only": "true"})
        assert response.status_code == (200 if is_small else 202)
        assert "location" not in response.headers
        assert ("answer" in response.json()) == is_small
        assert client.get("/v1/plans").json()["items"] == []
        assert jobs(database) == {}
        assert count_pieces(database) == 0


def test_a_search_goes_on_where_it_is_restored(client, database, databases, tmp_path):
    place = begun(client)
    search(database, most=2)
    write_backup(database, tmp_path / "backup")
    restored = databases.empty()
    restore_backup(restored, tmp_path / "backup")
    assert search(restored) == toy.PIECES - 2 + 1
    with restored.open_reader() as session:
        plan = stored.get_plan(session, "default", place.rpartition("/")[2])
    assert plan["answer"] == expected(client)
    assert client.get(place).json()["state"] == "running"


def test_an_outcome_that_is_stored_is_the_same():
    kept = KeptConfiguration(
        3, {"tensor": 8, "sequence_parallel": True}, {"micro_batch_size": 2}, 0.1 + 0.2, None
    )
    other = KeptConfiguration(4, {"tensor": 1}, {}, 1e22, 700.0)
    outcome = SearchOutcome(10, 5, 2, {PlanConstraint.MEMORY: 3}, {}, (kept, other))
    assert stored.parse_outcome(json.loads(json.dumps(stored.to_document(outcome)))) == outcome


def test_a_question_that_is_stored_is_the_same():
    question = PlanRequest.model_validate_json(json.dumps(toy.QUESTION))
    kept = json.dumps(question.model_dump(mode="json", exclude_unset=True))
    assert PlanRequest.model_validate_json(kept) == question


def test_metrics_count_plans(client, database):
    begun(client)
    search(database)
    begun(client)
    text = client.get("/metrics").text
    assert 'ironlaw_plans{state="done"} 1.0' in text
    assert 'ironlaw_plans{state="running"} 1.0' in text
