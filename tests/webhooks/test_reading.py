"""What a webhook is told is what whoever is told may read: when it is made, changed, replayed and sent."""

from datetime import timedelta

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy import select, update

from service.app.examples import EXAMPLES
from service.app.examples.webhooks import MESSAGES
from service.app.storage import build_alembic_config
from service.auth.tables import ApiKeyRow
from service.kit.clock import now
from service.kit.jobs.events import emit_event
from service.kit.security.credentials import parse_id
from service.kit.security.principals import LOCAL, Principal, PrincipalKind
from service.schemas.events import WebhookEventType
from service.webhooks import attempts, reading, service
from service.webhooks.tables import DeliveryRow, WebhookRow
from tests.applications import MEANS, bearing
from tests.prepared import ON_SQLITE

EVENTS = {
    "audit-events:read": ["audit.head"],
    "policy-changes:read": [type_ for type_ in WebhookEventType if type_.startswith("policy_change.")],
    "approvals:read": [type_ for type_ in WebhookEventType if type_.startswith("approval.")],
    "budgets:read": ["budget.threshold_reached", "budget.exceeded"],
    "benchmark-results:read": ["benchmark.regressed"],
    "quotes:read": ["quote.expires_soon"],
    "webhooks:read": ["webhook.disabled"],
}
URL = {"url": "https://hooks.example.com/"}
APPROVED = {**URL, "event_types": ["approval.approved"]}
ANY = {"If-Match": "*"}


def refused(response, pointer=""):
    problem = response.json()
    assert (response.status_code, problem["code"]) == (403, "SCOPE_NOT_HELD"), response.text
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    return problem["errors"][0]["detail"]


class Tenant:
    """Who may do what with the webhooks of a tenant, over HTTP."""

    def __init__(self, callers):
        self.callers = callers
        self.database = callers.client.app.state.database

    def key(self, *scopes):
        return self.callers.key(*scopes)

    def request(self, key, method, path, body=None, **headers):
        return self.callers.client.request(method, path, json=body, headers={**bearing(key), **headers})

    def made(self, key, body=APPROVED):
        answer = self.request(key, "POST", "/v1/webhooks", body)
        assert answer.status_code == 201, answer.text
        return answer.headers["location"]

    def tell(self, type_="approval.approved"):
        with self.database.open_writer() as session:
            event_id = emit_event(session, "default", type_, MESSAGES[type_]["data"])
            return service.publish_event(session, "default", event_id)

    def take(self, webhook):
        with self.database.open_writer() as session:
            return attempts.claim_delivery(session, MEANS.webhooks, "default", webhook.rpartition("/")[2])

    def states(self):
        with self.database.open_reader() as session:
            return sorted(session.scalars(select(DeliveryRow.state)))

    def set_key(self, key, **values):
        with self.database.open_writer() as session:
            session.execute(update(ApiKeyRow).where(ApiKeyRow.id == parse_id(key)).values(**values))


@pytest.fixture
def tenant(callers):
    return Tenant(callers)


def test_every_kind_needs_what_opens_what_it_carries():
    needed = {type_: permission.scope for type_, permission in reading.NEEDED.items()}
    assert needed == {type_: scope for scope, types in EVENTS.items() for type_ in types}
    assert set(WebhookEventType) - needed.keys() == {WebhookEventType.WEBHOOK_TEST}


class TestMaking:
    @pytest.mark.parametrize(("scope", "types"), EVENTS.items())
    @ON_SQLITE
    def test_needs_to_read_what_it_is_told(self, tenant, scope, types):
        writer, both = tenant.key("webhooks:write"), tenant.key("webhooks:write", scope)
        for type_ in types:
            body = {**URL, "event_types": ["webhook.test", type_]}
            answer = tenant.request(writer, "POST", "/v1/webhooks", body)
            assert scope in refused(answer, "/event_types")
            tenant.made(both, body)

    @ON_SQLITE
    def test_of_everything_needs_to_read_everything(self, tenant):
        nearly = tenant.key("webhooks:*", "approvals:read", "budgets:read", "quotes:read")
        assert refused(tenant.request(nearly, "POST", "/v1/webhooks", URL), "/event_types").endswith(
            "this needs audit-events:read, benchmark-results:read, policy-changes:read, "
            "which the caller does not hold"
        )
        tenant.made(tenant.key("webhooks:write", "*:read"), URL)

    @ON_SQLITE
    def test_of_tests_alone_needs_nothing_more(self, tenant):
        writer = tenant.key("webhooks:write")
        webhook = tenant.made(writer, {**URL, "event_types": ["webhook.test"]})
        assert tenant.request(writer, "POST", f"{webhook}:test").status_code == 202
        assert tenant.take(webhook).event_id


class TestAnothersWebhook:
    @pytest.fixture
    def webhook(self, tenant):
        made = tenant.made(tenant.key("*:*"))
        assert tenant.tell() == 1
        return made

    def test_is_not_turned_to_an_address_of_whoever_may_not_read_it(self, tenant, webhook):
        writer = tenant.key("webhooks:*", "quotes:read")
        for body, pointer in (
            ({"url": "https://evil.example.com/"}, "/url"),
            ({"event_types": ["approval.rejected"]}, "/event_types"),
            ({"event_types": None}, "/event_types"),
        ):
            refused(tenant.request(writer, "PATCH", webhook, body, **ANY), pointer)
        shown = tenant.request(writer, "GET", webhook).json()
        assert (shown["url"], shown["event_types"]) == (APPROVED["url"], APPROVED["event_types"])

    @ON_SQLITE
    def test_is_disabled_described_and_deleted_by_whoever_keeps_webhooks(self, tenant, webhook):
        writer = tenant.key("webhooks:write")
        body = {"enabled": False, "description": "noisy"}
        assert tenant.request(writer, "PATCH", webhook, body, **ANY).status_code == 200
        assert tenant.request(writer, "PATCH", webhook, {"enabled": True}, **ANY).status_code == 200
        assert tenant.request(writer, "DELETE", webhook, **ANY).status_code == 204

    def test_shows_neither_its_next_secret_nor_its_deliveries(self, tenant, webhook):
        keeper = tenant.key("webhooks:*")
        refused(tenant.request(keeper, "POST", f"{webhook}:rotate", {}))
        refused(tenant.request(keeper, "GET", f"{webhook}/deliveries"))
        refused(tenant.request(keeper, "GET", f"{webhook}/deliveries?event_type=approval.approved"))
        own = tenant.request(keeper, "GET", f"{webhook}/deliveries?event_type=webhook.test")
        assert (own.status_code, own.json()["items"]) == (200, [])
        reader = tenant.key("webhooks:*", "approvals:read")
        (delivery,) = tenant.request(reader, "GET", f"{webhook}/deliveries").json()["items"]
        for action, body in (
            ("replay", {"delivery_ids": [delivery["id"]]}),
            ("recover", EXAMPLES["recover_webhook"]),
        ):
            refused(tenant.request(keeper, "POST", f"{webhook}:{action}", body))
            assert tenant.request(reader, "POST", f"{webhook}:{action}", body).status_code == 202
        assert tenant.request(reader, "POST", f"{webhook}:rotate", {}).status_code == 200

    def test_shows_nothing_of_kinds_that_it_was_told_before(self, tenant, webhook):
        (delivery,) = tenant.request(tenant.key("*:*"), "GET", f"{webhook}/deliveries").json()["items"]
        types = {"event_types": ["quote.expires_soon"]}
        assert tenant.request(tenant.key("*:*"), "PATCH", webhook, types, **ANY).status_code == 200
        reader = tenant.key("webhooks:*", "quotes:read")
        assert tenant.request(reader, "GET", f"{webhook}/deliveries").json()["items"] == []
        body = {"delivery_ids": [delivery["id"]]}
        refused(tenant.request(reader, "POST", f"{webhook}:replay", body), "/delivery_ids/0")

    def test_is_told_on_behalf_of_whoever_turned_it_last(self, tenant, webhook):
        maker = tenant.request(tenant.key("*:*"), "GET", webhook).json()["on_behalf_of"]
        other = tenant.key("webhooks:write", "approvals:read")
        body = {"description": "the same"}
        same = tenant.request(other, "PATCH", webhook, body, **ANY).json()
        assert same["on_behalf_of"] == same["created_by"] == maker
        turned = tenant.request(other, "PATCH", webhook, URL, **ANY).json()
        assert turned["on_behalf_of"] == f"api_key:{parse_id(other)}"
        assert turned["created_by"] == maker


class TestDelivering:
    @pytest.mark.parametrize(
        "values",
        [
            {"revoked_at": now()},
            {"expires_at": now() - timedelta(seconds=1)},
            {"scopes": ["webhooks:write", "quotes:read"]},
        ],
        ids=["revoked", "expired", "narrowed"],
    )
    def test_ends_with_what_its_maker_may_read(self, tenant, values):
        key = tenant.key("webhooks:write", "approvals:read")
        webhook = tenant.made(key)
        assert tenant.tell() == 1
        tenant.set_key(key, **values)
        assert tenant.take(webhook) is None  # what waited for it
        assert tenant.states() == ["cancelled"]
        assert tenant.tell() == 0  # what happens from then on
        other = tenant.key("webhooks:write", "approvals:read")
        assert tenant.request(other, "PATCH", webhook, URL, **ANY).status_code == 200
        assert tenant.request(other, "POST", f"{webhook}:recover", EXAMPLES["recover_webhook"]).json() == {
            "delivery_count": 1
        }
        assert tenant.take(webhook).body

    def test_goes_no_further_than_a_token_did_when_it_made_it(self, tenant):
        ann = Principal(PrincipalKind.TOKEN, "ann", "default", frozenset({"approvals:read", "webhooks:*"}))
        row = WebhookRow(tenant_id="default")
        reading.assign_subject(row, ann)
        with tenant.database.open_reader() as session:
            told = [
                type_ for type_ in WebhookEventType if reading.is_subject_allowed(session, row, type_, now())
            ]
        assert told == [*EVENTS["approvals:read"], "webhook.disabled", "webhook.test"]


def test_what_was_made_before_goes_on_as_far_as_its_key_reads(databases):
    database = databases.loaded()
    command.downgrade(build_alembic_config(database), "0021")
    created = {"created_at": now(), "version": 1}
    webhook = {"tenant_id": "default", "url": "https://x.example/", "signature_scheme": "v1", **created}
    keys = {"k1": ["webhooks:write", "quotes:read"], "k2": ["*:*"]}
    makers = {"a": "api_key:k1", "b": "api_key:gone", "c": "token:ann", "d": "local:local"}
    old = sa.MetaData()
    old.reflect(database.engine, only=["webhooks", "api_keys"])
    with database.open_writer() as session:
        for key_id, scopes in keys.items():
            row = {"tenant_id": "default", "id": key_id, "name": "k", "digest": "x", "scopes": scopes}
            session.execute(sa.insert(old.tables["api_keys"]).values(**row, **created))
        for name, maker in makers.items():
            row = {**webhook, "id": name, "created_by": maker, "event_types": [], "secret": b""}
            session.execute(sa.insert(old.tables["webhooks"]).values(**row))
    command.upgrade(build_alembic_config(database), "head")
    with database.open_reader() as session:
        rows = {row.id: row for row in session.scalars(select(WebhookRow))}
        told = {
            name: reading.is_subject_allowed(session, row, "approval.approved", now())
            for name, row in rows.items()
        }
    assert {name: row.on_behalf_of for name, row in rows.items()} == makers
    assert {name: row.scopes for name, row in rows.items()} == {
        "a": keys["k1"],
        "b": [],
        "c": ["*:read"],
        "d": ["*:read"],
    }
    assert told == {"a": False, "b": False, "c": True, "d": True}
    assert LOCAL.name == makers["d"]
