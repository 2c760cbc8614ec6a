"""The edge of stored writes: once however often sent, checked without being stored, and always recorded."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from service.app.examples import EXAMPLES
from service.audit.service import Writes
from service.kit.clock import now
from service.kit.http import idempotency
from tests.applications import bearing
from tests.prepared import ON_SQLITE

GRID = EXAMPLES["create_grid"]
KEY = {"Idempotency-Key": "once"}


def events(client, **headers):
    return client.get("/v1/audit-events?page_size=500", headers=headers).json()["items"]


class TestIdempotency:
    def test_the_first_answer_is_given_again(self, client):
        first = client.post("/v1/grids", GRID, headers=KEY)
        assert first.status_code == 201
        assert "idempotency-replayed" not in first.headers
        before = events(client)
        again = client.post("/v1/grids", GRID, headers=KEY)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["idempotency-replayed"] == "true"
        for name in ("location", "etag", "catalog-revision"):
            assert again.headers[name] == first.headers[name]
        assert events(client) == before

    @ON_SQLITE
    def test_the_order_of_members_does_not_matter(self, client):
        client.post("/v1/grids", GRID, headers=KEY)
        turned = dict(reversed(GRID.items()))
        assert client.post("/v1/grids", turned, headers=KEY).headers["idempotency-replayed"] == "true"

    def test_another_request_under_the_key_is_refused(self, client):
        client.post("/v1/grids", GRID, headers=KEY)
        other = client.post("/v1/grids", {**GRID, "id": "other"}, headers=KEY)
        assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
        assert other.json()["errors"][0]["pointer"] == "/header/Idempotency-Key"
        assert client.get("/v1/grids/other").status_code == 404

    @ON_SQLITE
    def test_a_key_belongs_to_its_operation(self, client):
        client.post("/v1/grids", GRID, headers=KEY)
        assert client.post("/v1/sites", EXAMPLES["create_site"], headers=KEY).status_code == 201

    @ON_SQLITE
    def test_a_key_on_one_row_is_not_one_on_another(self, client):
        for grid in ("a", "b"):
            client.post("/v1/grids", {**GRID, "id": grid})
        headers = {**KEY, "If-Match": "*"}
        assert client.patch("/v1/grids/a", {"name": "A"}, headers=headers).status_code == 200
        assert client.patch("/v1/grids/b", {"name": "A"}, headers=headers).status_code == 422
        assert client.get("/v1/grids/b").json()["version"] == 1

    def test_a_key_belongs_to_its_subject(self, callers):
        one, two = (bearing(callers.key("*:*")) for _ in range(2))
        assert callers.client.post("/v1/grids", GRID, headers={**one, **KEY}).status_code == 201
        taken = callers.client.post("/v1/grids", GRID, headers={**two, **KEY})
        assert (taken.status_code, taken.json()["code"]) == (409, "ROW_EXISTS")

    def test_what_was_refused_is_tried_again(self, client):
        site = {**EXAMPLES["create_site"], "grid_id": GRID["id"]}
        assert client.post("/v1/sites", site, headers=KEY).status_code == 422
        client.post("/v1/grids", GRID)
        assert client.post("/v1/sites", site, headers=KEY).status_code == 201

    def test_a_change_and_a_deletion_are_repeated_too(self, client):
        location = client.post("/v1/grids", GRID).headers["location"]
        headers = {**KEY, "If-Match": '"1"'}
        first, again = (client.patch(location, {"name": "New"}, headers=headers) for _ in range(2))
        assert (first.content, again.status_code) == (again.content, 200)
        headers["If-Match"] = '"2"'
        assert [client.delete(location, headers=headers).status_code for _ in range(2)] == [204, 204]

    def test_after_a_day_the_key_is_free(self, client, monkeypatch):
        client.post("/v1/grids", GRID, headers=KEY)
        later = now() + timedelta(hours=24)
        monkeypatch.setattr(idempotency, "now", lambda: later)
        assert client.post("/v1/grids", GRID, headers=KEY).json()["code"] == "ROW_EXISTS"
        with client.app.state.database.open_writer() as session:
            assert idempotency.delete_expired(session) == 1

    def test_a_second_while_the_first_runs_is_told_so(self, client, monkeypatch):
        record, entered, leave = Writes.record, threading.Event(), threading.Event()

        def slowly(*arguments):
            entered.set()
            assert leave.wait(60)
            return record(*arguments)

        monkeypatch.setattr(Writes, "record", slowly)
        app = client.app
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(call, app, GRID)
            assert entered.wait(60)
            second = call(app, GRID)
            leave.set()
            assert first.result() == 201
        assert second == (409, "IDEMPOTENCY_KEY_IN_USE")
        monkeypatch.setattr(Writes, "record", record)
        assert client.post("/v1/grids", GRID, headers=KEY).headers["idempotency-replayed"] == "true"

    def test_of_many_at_once_one_is_done(self, client):
        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(lambda _: call(client.app, GRID), range(16)))
        assert 201 in outcomes
        assert set(outcomes) <= {201, (409, "IDEMPOTENCY_KEY_IN_USE")}
        assert client.get(f"/v1/grids/{GRID['id']}").json()["version"] == 1
        assert sum(event["operation"] == "create_grid" for event in events(client)) == 1

    def test_a_repeated_answer_has_no_secret_and_none_is_kept(self, client):
        first = client.post("/v1/api-keys", EXAMPLES["create_api_key"], headers=KEY).json()
        again = client.post("/v1/api-keys", EXAMPLES["create_api_key"], headers=KEY).json()
        assert again == {"key": first["key"]}
        with client.app.state.database.engine.connect() as connection:
            kept = connection.exec_driver_sql("SELECT body FROM idempotency_keys").all()
        assert first["secret"].encode() not in b"".join(bytes(body) for (body,) in kept)


def call(app, grid):
    """Status of a creation under the key, from a thread: 201, or status and code."""
    import asyncio  # noqa: PLC0415

    import httpx  # noqa: PLC0415

    async def send():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/v1/grids", json=grid, headers=KEY)

    response = asyncio.run(send())
    return 201 if response.status_code == 201 else (response.status_code, response.json()["code"])


class TestValidateOnly:
    def test_the_answer_is_that_of_the_write_and_nothing_is_stored(self, client):
        before, revision = events(client), client.get("/v1/grids").headers["etag"]
        tried = client.post("/v1/grids?validate_only=true", GRID)
        assert tried.status_code == 201
        assert not {"location", "etag", "catalog-revision"} & set(tried.headers)
        assert client.get(f"/v1/grids/{GRID['id']}").status_code == 404
        assert (events(client), client.get("/v1/grids").headers["etag"]) == (before, revision)
        done = client.post("/v1/grids?validate_only=false", GRID).json()
        assert {**tried.json(), "created_at": ""} == {**done, "created_at": ""}

    @ON_SQLITE
    def test_every_check_is_made(self, client):
        client.post("/v1/grids", GRID)
        location = f"/v1/grids/{GRID['id']}"
        assert client.post("/v1/grids?validate_only=true", GRID).status_code == 409
        tried = f"{location}?validate_only=true"
        assert client.patch(tried, {"name": "x"}).status_code == 428
        assert client.delete(tried, headers={"If-Match": '"9"'}).status_code == 412
        assert client.delete(tried, headers={"If-Match": '"1"'}).status_code == 204
        assert client.get(location).status_code == 200

    def test_no_secret_is_made(self, client):
        tried = client.post("/v1/api-keys?validate_only=true", EXAMPLES["create_api_key"])
        assert (tried.status_code, set(tried.json())) == (201, {"key"})
        assert client.get("/v1/api-keys").json()["items"] == []

    def test_it_does_not_use_up_the_key(self, client):
        assert client.post("/v1/grids?validate_only=true", GRID, headers=KEY).status_code == 201
        assert "idempotency-replayed" not in client.post("/v1/grids", GRID, headers=KEY).headers

    @pytest.mark.parametrize("value", ["1", "yes", "on", "", "TRUE"])
    @ON_SQLITE
    def test_only_true_and_false_are_taken(self, client, value):
        refused = client.post(f"/v1/grids?validate_only={value}", GRID)
        assert refused.json()["errors"][0]["pointer"] == "/query/validate_only"


class TestRecord:
    def test_every_write_is_recorded_with_who_and_what(self, callers):
        key = callers.key("*:*")
        headers = bearing(key)
        made = callers.client.post("/v1/grids", GRID, headers=headers)
        location = made.headers["location"]
        changed = callers.client.patch(location, {"name": "New"}, headers={**headers, "If-Match": "*"})
        callers.client.delete(location, headers={**headers, "If-Match": "*"})
        deleted, updated, created = events(callers.client, **headers)[:3]
        assert [e["operation"] for e in (created, updated, deleted)] == [
            "create_grid",
            "update_grid",
            "delete_grid",
        ]
        assert {e["resource"] for e in (created, updated, deleted)} == {f"grids/{GRID['id']}"}
        assert {e["subject_id"] for e in (created, updated)} == {key.split("_")[1]}
        assert created["request_id"] == made.headers["request-id"]
        assert "before_digest" not in created
        assert created["after_digest"] == updated["before_digest"] == idempotency.digest_json(made.json())
        assert updated["after_digest"] == deleted["before_digest"] == idempotency.digest_json(changed.json())
        assert "after_digest" not in deleted

    def test_a_refused_write_leaves_no_event(self, client):
        before = events(client)
        client.post("/v1/grids", {**GRID, "id": "?"})
        client.delete("/v1/grids/nothing", headers={"If-Match": "*"})
        assert events(client) == before

    def test_pages_walk_every_event_once(self, client):
        for number in range(5):
            client.post("/v1/grids", {**GRID, "id": f"g{number}"})
        walked, token = [], ""
        while token is not None:
            page = client.get(f"/v1/audit-events?page_size=2&page_token={token}").json()
            walked += [event["sequence"] for event in page["items"]]
            token = page["next_page_token"]
        assert walked == list(range(6, 0, -1))

    def test_the_endpoint_finds_what_was_changed(self, client, database):
        from sqlalchemy import text  # noqa: PLC0415

        client.post("/v1/grids", GRID)
        assert client.get("/v1/audit-events:verify").json()["valid"] is True
        with database.engine.begin() as connection:
            connection.execute(text("UPDATE audit_events SET resource = 'x' WHERE sequence = 2"))
        verdict = client.get("/v1/audit-events:verify").json()
        assert (verdict["valid"], verdict["fault"]["sequence"]) == (False, 2)
