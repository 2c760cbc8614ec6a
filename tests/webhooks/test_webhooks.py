"""Webhooks over HTTP: made, changed, rotated, tried and replayed."""

import base64
import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, update

from service.app.examples import EXAMPLES
from service.webhooks.service import MOST_WEBHOOKS
from service.webhooks.tables import DeliveryRow, WebhookRow
from tests.webhooks.receiving import HOSTILE_ADDRESSES

BODY = EXAMPLES["create_webhook"]
SQLITE = pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
"""Of rules that are the service's own, whatever keeps its rows."""


@pytest.fixture
def webhook(client):
    made = client.post("/v1/webhooks", BODY)
    assert made.status_code == 201
    return made.headers["location"]


def refusal(response):
    problem = response.json()
    return response.status_code, problem["code"], [(e["pointer"], e["code"]) for e in problem["errors"]]


@SQLITE
class TestMaking:
    def test_shows_the_secret_this_once(self, client):
        made = client.post("/v1/webhooks", BODY, headers={"Idempotency-Key": "one"})
        again = client.post("/v1/webhooks", BODY, headers={"Idempotency-Key": "one"})
        assert made.json()["secret"].startswith("whsec_")
        assert again.json() == {"webhook": made.json()["webhook"]}
        secret = made.json()["secret"].removeprefix("whsec_")
        for url in (made.headers["location"], "/v1/webhooks", "/v1/audit-events"):
            assert secret not in client.get(url).text

    def test_wants_an_address_that_may_be_called(self, client):
        for url, code in (
            ("http://hooks.example.com/", "URL_REFUSED"),
            ("https://hooks.example.com:8080/", "URL_REFUSED"),
            ("https://169.254.169.254/latest", "ADDRESS_REFUSED"),
            ("https://[::ffff:10.0.0.1]/", "ADDRESS_REFUSED"),
            ("https://user:password@hooks.example.com/", "URL_INVALID"),
        ):
            refused = client.post("/v1/webhooks", {**BODY, "url": url})
            assert refusal(refused) == (422, "ADDRESS_NOT_ALLOWED", [("/url", code)])
            assert "password" not in refused.text

    @pytest.mark.parametrize("url", HOSTILE_ADDRESSES)
    def test_refuses_an_address_that_no_host_has(self, client, webhook, url):
        created = client.post("/v1/webhooks", {**BODY, "url": url})
        changed = client.patch(webhook, {"url": url}, headers={"If-Match": "*"})
        for refused in (created, changed):
            assert refused.status_code == 422
            assert [error["pointer"] for error in refused.json()["errors"]] == ["/url"]

    def test_of_too_many_is_refused(self, client, webhook, monkeypatch):
        del webhook
        monkeypatch.setattr("service.webhooks.service.MOST_WEBHOOKS", 1)
        assert MOST_WEBHOOKS == 100
        assert refusal(client.post("/v1/webhooks", BODY))[:2] == (409, "TOO_MANY_WEBHOOKS")

    def test_is_recorded(self, client, webhook):
        event = client.get("/v1/audit-events").json()["items"][0]
        assert (event["operation"], f"/v1/{event['resource']}") == ("create_webhook", webhook)


@SQLITE
class TestChanging:
    def test_needs_the_version_that_it_is_based_on(self, client, webhook):
        etag = client.get(webhook).headers["etag"]
        assert client.patch(webhook, {"enabled": False}).status_code == 428
        changed = client.patch(webhook, {"enabled": False}, headers={"If-Match": etag})
        assert changed.status_code == 200
        assert client.patch(webhook, {"enabled": True}, headers={"If-Match": etag}).status_code == 412
        assert client.delete(webhook, headers={"If-Match": etag}).status_code == 412
        assert client.delete(webhook, headers={"If-Match": changed.headers["etag"]}).status_code == 204
        assert refusal(client.get(webhook))[:2] == (404, "WEBHOOK_NOT_FOUND")

    def test_takes_null_as_everything_and_as_nothing_to_say(self, client, webhook):
        sent = {"event_types": None, "description": None}
        changed = client.patch(webhook, sent, headers={"If-Match": "*"}).json()
        assert {"event_types", "description"}.isdisjoint(changed)
        assert changed["url"] == BODY["url"]

    def test_looks_at_the_address_again(self, client, webhook):
        refused = client.patch(webhook, {"url": "https://10.0.0.1/"}, headers={"If-Match": "*"})
        assert refusal(refused) == (422, "ADDRESS_NOT_ALLOWED", [("/url", "ADDRESS_REFUSED")])

    def test_ends_what_waits_and_begins_anew(self, client, webhook, database):
        waiting = client.post(f"{webhook}:test").json()
        off = client.patch(webhook, {"enabled": False}, headers={"If-Match": "*"}).json()
        assert (off["state"], off["disabled_reason"]) == ("disabled", "BY_OWNER")
        (ended,) = client.get(f"{webhook}/deliveries").json()["items"]
        assert (ended["id"], ended["state"]) == (waiting["id"], "cancelled")
        assert refusal(client.post(f"{webhook}:test"))[:2] == (409, "WEBHOOK_DISABLED")
        replayed = client.post(f"{webhook}:replay", {"delivery_ids": [waiting["id"]]})
        assert refusal(replayed)[:2] == (409, "WEBHOOK_DISABLED")
        with database.open_writer() as session:
            failing = {"disabled_reason": "FAILING", "failing_since": WebhookRow.created_at}
            session.execute(update(WebhookRow).values(**failing))
        on = client.patch(webhook, {"enabled": True}, headers={"If-Match": "*"}).json()
        assert on["state"] == "enabled"
        assert {"disabled_at", "disabled_reason", "failing_since"}.isdisjoint(on)


@SQLITE
def test_a_rotation_shows_the_next_secret_once(client, webhook):
    first = client.post(f"{webhook}:rotate", {"overlap_seconds": 60}).json()
    second = client.post(f"{webhook}:rotate", {}).json()
    assert first["secret"] != second["secret"]
    assert second["webhook"]["rotation_ends_at"] > first["webhook"]["rotation_ends_at"]
    assert second["webhook"]["version"] == 3
    told = client.get("/v1/audit-events").text
    assert second["secret"].removeprefix("whsec_") not in told


@SQLITE
class TestAPublicKey:
    @pytest.fixture
    def made(self, client):
        return client.post("/v1/webhooks", {**BODY, "signature_scheme": "v1a"}).json()

    def test_is_shown_and_no_secret(self, client, made):
        assert "secret" not in made
        shown = client.get(f"/v1/webhooks/{made['webhook']['id']}").json()
        assert shown["signature_scheme"] == "v1a"
        assert shown["public_key"] == made["webhook"]["public_key"]
        assert len(base64.b64decode(shown["public_key"].removeprefix("whpk_"), validate=True)) == 32

    def test_changes_with_a_rotation(self, client, made):
        rotated = client.post(f"/v1/webhooks/{made['webhook']['id']}:rotate", {"overlap_seconds": 60}).json()
        assert rotated.keys() == {"webhook"}
        assert rotated["webhook"]["public_key"] != made["webhook"]["public_key"]
        assert "rotation_ends_at" in rotated["webhook"]

    def test_is_of_one_scheme_alone(self, client, webhook):
        assert "public_key" not in client.get(webhook).json()
        assert client.get(webhook).json()["signature_scheme"] == "v1"
        refused = client.post("/v1/webhooks", {**BODY, "signature_scheme": "v2"})
        assert [error["pointer"] for error in refused.json()["errors"]] == ["/signature_scheme"]


class TestReplaying:
    def test_lets_a_delivery_wait_again(self, client, webhook, database):
        made = [client.post(f"{webhook}:test").json()["id"] for _ in range(3)]
        with database.open_writer() as session:
            ended = {"state": "failed", "failures": 10, "due_at": None, "finished_at": DeliveryRow.created_at}
            session.execute(update(DeliveryRow).where(DeliveryRow.id.in_(made[:2])).values(**ended))
        listed = client.get(f"{webhook}/deliveries?state=failed").json()["items"]
        assert {item["id"] for item in listed} == set(made[:2])
        replayed = client.post(f"{webhook}:replay", {"delivery_ids": made[:2]})
        assert replayed.status_code == 202
        assert [(i["id"], i["state"]) for i in replayed.json()["items"]] == [(m, "waiting") for m in made[:2]]
        with database.open_reader() as session:
            assert {row.failures for row in session.scalars(select(DeliveryRow))} == {0}

    def test_of_what_is_not_there_changes_nothing(self, client, webhook):
        known = client.post(f"{webhook}:test").json()["id"]
        refused = client.post(f"{webhook}:replay", {"delivery_ids": [known, "0" * 32]})
        assert refusal(refused) == (404, "DELIVERY_NOT_FOUND", [("/delivery_ids/1", "NOT_FOUND")])

    def test_of_another_webhook_is_refused(self, client, webhook):
        known = client.post(f"{webhook}:test").json()["id"]
        other = client.post("/v1/webhooks", BODY).headers["location"]
        assert client.post(f"{other}:replay", {"delivery_ids": [known]}).status_code == 404


class TestRecovering:
    @pytest.fixture
    def missed(self, client, webhook, database):
        """Ids of a delivery of a year ago, of two that were given up, and of one that still waits."""
        old, failed, cancelled, waits = (client.post(f"{webhook}:test").json()["id"] for _ in range(4))

        def end(id_, state, **members):
            with database.open_writer() as session:
                ended = {"state": state, "due_at": None, "finished_at": DeliveryRow.created_at, **members}
                session.execute(update(DeliveryRow).where(DeliveryRow.id == id_).values(failures=10, **ended))

        end(old, "failed", created_at=datetime(2025, 1, 1, tzinfo=UTC))
        end(failed, "failed")
        end(cancelled, "cancelled")
        return old, {failed, cancelled}, waits

    def states(self, client, webhook):
        return {item["id"]: item["state"] for item in client.get(f"{webhook}/deliveries").json()["items"]}

    def test_sends_again_what_was_given_up_since(self, client, webhook, missed, database):
        old, given_up, waits = missed
        for number in (2, 0):
            recovered = client.post(f"{webhook}:recover", {"since": "2026-01-01T00:00:00Z"})
            assert (recovered.status_code, recovered.json()) == (202, {"delivery_count": number})
            assert self.states(client, webhook) == {
                old: "failed",
                waits: "waiting",
                **dict.fromkeys(given_up, "waiting"),
            }
        with database.open_reader() as session:
            again = session.scalars(select(DeliveryRow).where(DeliveryRow.id.in_(given_up))).all()
            assert [(row.failures, row.finished_at) for row in again] == [(0, None)] * 2
            assert all(row.due_at is not None for row in again)

    def test_of_another_webhook_is_not_done(self, client, webhook, missed):
        other = client.post("/v1/webhooks", BODY).headers["location"]
        since = {"since": "2020-01-01T00:00:00Z"}
        assert client.post(f"{other}:recover", since).json() == {"delivery_count": 0}
        assert self.states(client, webhook)[missed[0]] == "failed"

    def test_is_recorded(self, client, webhook, missed):
        del missed
        client.post(f"{webhook}:recover", {"since": "2020-01-01T00:00:00Z"})
        told = client.get("/v1/audit-events").json()["items"][0]
        assert (told["operation"], f"/v1/{told['resource']}") == ("recover_webhook", f"{webhook}/deliveries")
        assert "after_digest" in told

    def test_asked_for_under_one_key_is_answered_alike(self, client, webhook, missed):
        del missed
        sent = {"since": "2020-01-01T00:00:00Z"}
        answers = [
            client.post(f"{webhook}:recover", sent, headers={"Idempotency-Key": "one"}).json()
            for _ in range(2)
        ]
        assert answers == [{"delivery_count": 3}] * 2

    def test_needs_a_time_and_a_webhook_that_is_told(self, client, webhook):
        assert client.post(f"{webhook}:recover", {}).status_code == 422
        assert client.post(f"{webhook}:recover", {"since": "2026-01-01"}).status_code == 422
        client.patch(webhook, {"enabled": False}, headers={"If-Match": "*"})
        refused = client.post(f"{webhook}:recover", {"since": "2026-01-01T00:00:00Z"})
        assert refusal(refused)[:2] == (409, "WEBHOOK_DISABLED")


def test_deliveries_come_in_pages(client, webhook):
    made = [client.post(f"{webhook}:test").json()["id"] for _ in range(5)]
    found, token = [], ""
    while token is not None:
        page = client.get(f"{webhook}/deliveries?page_size=2&page_token={token}").json()
        found += [item["id"] for item in page["items"]]
        token = page["next_page_token"]
    assert found == made[::-1]
    listed = client.get(f"{webhook}/deliveries?event_type=approval.approved").json()
    assert json.dumps(listed["items"]) == "[]"
