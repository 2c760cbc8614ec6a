"""A process that delivers: to receivers that are slow, broken or hostile, while others go on."""

import base64
import json
import time

import pytest
from sqlalchemy import select, update
from standardwebhooks import Webhook

from service.app.background.service import BackgroundWorkers, JobDependencies
from service.audit.service import Writes
from service.kit.http.outbound import OutboundClient, parse_networks
from service.kit.jobs import leases
from service.kit.jobs.events import emit_event
from service.kit.jobs.notifier import notify_after_commit
from service.kit.security.principals import LOCAL
from service.schemas.events import WebhookEventType
from service.webhooks import dispatching, service
from service.webhooks.dispatching import Dispatcher
from service.webhooks.fair_scheduling import MOST_AT_ONCE, MOST_TO_A_WEBHOOK
from service.webhooks.schemas import WebhookRequest
from service.webhooks.service import Webhooks
from service.webhooks.tables import AttemptRow, DeliveryRow, WebhookRow
from tests.applications import KEYRING
from tests.waiting import until
from tests.webhooks import ed25519
from tests.webhooks.receiving import answer, receiver, silent, slow

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
SQLITE = pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
"""Of what no database has a say in."""
LOOPBACK = parse_networks("127.0.0.0/8")
WEBHOOKS = Webhooks.from_keyring(KEYRING, OutboundClient(LOOPBACK, timeout_seconds=2.0))


@pytest.fixture
def there():
    with receiver() as made:
        yield made


class Sending:
    """Webhooks of one database, and what became of what they were told."""

    def __init__(self, database):
        self.database = database

    def webhook(self, url, *types, tenant="default", **members):
        asked = {"url": url, "event_types": types or ["webhook.test"], **members}
        body = WebhookRequest.model_validate_json(json.dumps(asked))
        with self.database.open_writer() as session:
            change = WEBHOOKS.create(session, LOCAL._replace(tenant_id=tenant), body)
        shown = change.body["webhook"]
        return shown["id"], change.once.get("secret") or shown["public_key"]

    def tell(self, type_=WebhookEventType.WEBHOOK_TEST, **data):
        with self.database.open_writer() as session:
            return emit_event(session, "default", type_, data)

    def tell_directly(self, webhook_id, tenant="default"):
        with self.database.open_writer() as session:
            return service.send_test_event(session, LOCAL._replace(tenant_id=tenant), webhook_id).body[
                "event_id"
            ]

    def due_now(self):
        with self.database.open_writer() as session:
            waiting = DeliveryRow.state == "waiting"
            session.execute(update(DeliveryRow).where(waiting).values(due_at=leases.get_database_time()))
            notify_after_commit(session)

    def attempts(self, webhook_id):
        with self.database.open_reader() as session:
            of_it = select(DeliveryRow.id).where(DeliveryRow.webhook_id == webhook_id)
            rows = session.scalars(select(AttemptRow).where(AttemptRow.delivery_id.in_(of_it)))
            return [(row.status_code, row.error_code) for row in rows]

    def states(self):
        with self.database.open_reader() as session:
            return sorted(session.scalars(select(DeliveryRow.state)))


@pytest.fixture
def sending(database):
    return Sending(database)


@pytest.fixture
def dispatcher(database):
    running = Dispatcher(database, Writes(database, KEYRING), WEBHOOKS)
    running.start()
    yield running
    running.ask_to_stop(0.2)
    running.join()


def test_an_event_arrives_signed_and_once(sending, there, database, monkeypatch):
    monkeypatch.setattr(dispatching, "POLL_SECONDS", 600.0)  # only the bell wakes it
    _, secret = sending.webhook(there.url("/hook"), "approval.approved")
    means = JobDependencies(writes=Writes(database, KEYRING), webhooks=WEBHOOKS)
    running = BackgroundWorkers(database, means, 2)
    try:
        event_id = sending.tell(WebhookEventType.APPROVAL_APPROVED, approval_id="a1")
        until(lambda: sending.states() == ["delivered"])
    finally:
        running.stop()
    ((headers, body),) = there.at("/hook")
    assert headers["webhook-id"] == event_id
    message = Webhook(secret).verify(body, headers)
    assert (message["type"], message["data"]) == ("approval.approved", {"approval_id": "a1"})
    assert headers["user-agent"].startswith("Ironlaw/")
    assert headers["content-type"] == "application/json"


@SQLITE
@pytest.mark.usefixtures("dispatcher")
def test_a_message_is_signed_as_its_webhook_says(sending, there):
    webhook_id, key = sending.webhook(there.url("/hook"), signature_scheme="v1a")
    event_id = sending.tell_directly(webhook_id)
    until(lambda: sending.states() == ["delivered"])
    ((headers, body),) = there.at("/hook")
    version, _, signature = headers["webhook-signature"].partition(",")
    assert version == "v1a"
    signed = b"%s.%s.%s" % (event_id.encode(), headers["webhook-timestamp"].encode(), body)
    public_key = base64.b64decode(key.removeprefix("whpk_"))
    assert ed25519.holds(public_key, base64.b64decode(signature), signed)


def test_a_receiver_that_is_slow_holds_up_nobody_else(sending, there, database):
    patient = Webhooks.from_keyring(KEYRING, OutboundClient(LOOPBACK, timeout_seconds=60.0))
    running = Dispatcher(database, Writes(database, KEYRING), patient)
    running.start()
    there.script["/slow"] = silent
    stuck = [sending.webhook(there.url("/slow"))[0] for _ in range(3)]
    for webhook_id in stuck:
        for _ in range(6):
            sending.tell_directly(webhook_id)
    until(lambda: len(there.at("/slow")) >= 12)
    quick, _ = sending.webhook(there.url("/quick"))
    for _ in range(10):
        sending.tell_directly(quick)
    until(lambda: sending.attempts(quick) == [(204, None)] * 10)
    assert [sending.attempts(webhook_id) for webhook_id in stuck] == [[], [], []]
    assert len(there.at("/slow")) == 12, "four at a time for each of three"
    running.ask_to_stop(0.0)
    running.join()


@SQLITE
def test_a_tenant_whose_receivers_all_hang_holds_up_no_other(sending, there, database):
    patient = Webhooks.from_keyring(KEYRING, OutboundClient(LOOPBACK, timeout_seconds=60.0))
    there.script["/slow"] = silent
    for _ in range(MOST_AT_ONCE // 2 // MOST_TO_A_WEBHOOK + 3):
        webhook_id, _ = sending.webhook(there.url("/slow"))
        for _ in range(MOST_TO_A_WEBHOOK):
            sending.tell_directly(webhook_id)
    running = Dispatcher(database, Writes(database, KEYRING), patient)
    running.start()
    until(lambda: len(there.at("/slow")) >= MOST_AT_ONCE // 2)
    quick, _ = sending.webhook(there.url("/quick"), tenant="other")
    for _ in range(10):
        sending.tell_directly(quick, "other")
    until(lambda: sending.attempts(quick) == [(204, None)] * 10)
    assert len(there.at("/slow")) == MOST_AT_ONCE // 2
    running.ask_to_stop(0.0)
    running.join()


@pytest.mark.usefixtures("dispatcher")
class TestAReceiver:
    @SQLITE
    @pytest.mark.parametrize(
        ("said", "attempt"),
        [
            (answer(302, location="http://127.0.0.1:1/"), (302, "REDIRECTED")),
            (answer(500, b"broken"), (500, "REFUSED_BY_RECEIVER")),
            (b"", (None, "NO_HTTP_ANSWER")),
        ],
    )
    def test_that_fails_is_sent_the_same_again(self, sending, there, said, attempt):
        there.script["/hook"] = said
        webhook_id, secret = sending.webhook(there.url("/hook"))
        event_id = sending.tell_directly(webhook_id)
        until(lambda: sending.attempts(webhook_id) == [attempt])
        there.script["/hook"] = answer(200)
        sending.due_now()
        until(lambda: sending.states() == ["delivered"])
        (_, first), (headers, second) = there.at("/hook")
        assert first == second
        assert {found["webhook-id"] for found, _ in there.at("/hook")} == {event_id}
        Webhook(secret).verify(second, headers)

    def test_that_is_gone_is_told_no_more(self, sending, there, database):
        there.script["/hook"] = answer(410)
        webhook_id, _ = sending.webhook(there.url("/hook"))
        sending.tell_directly(webhook_id)
        until(lambda: sending.states() == ["failed"])
        with database.open_reader() as session:
            row = session.scalars(select(WebhookRow)).one()
        assert row.disabled_reason == "GONE"

    @SQLITE
    def test_that_asks_for_time_gets_it(self, sending, there):
        there.script["/hook"] = answer(429, retry_after="3600")
        webhook_id, _ = sending.webhook(there.url("/hook"))
        sending.tell_directly(webhook_id)
        until(lambda: sending.attempts(webhook_id))
        sending.tell_directly(webhook_id)
        time.sleep(0.3)
        assert len(there.at("/hook")) == 1


@SQLITE
def test_a_name_that_leads_inside_is_not_called(sending, there, database):
    inside = OutboundClient(resolve=lambda *_: ["127.0.0.1"])
    running = Dispatcher(database, Writes(database, KEYRING), Webhooks.from_keyring(KEYRING, inside))
    running.start()
    webhook_id, _ = sending.webhook("https://inside.test/")
    sending.tell_directly(webhook_id)
    until(lambda: sending.attempts(webhook_id) == [(None, "ADDRESS_REFUSED")])
    running.ask_to_stop(0.0)
    running.join()
    assert there.connections == 0


@SQLITE
def test_what_is_being_answered_when_a_process_stops_is_recorded(sending, there, database):
    there.script["/hook"] = slow(0.4)
    webhook_id, _ = sending.webhook(there.url("/hook"))
    running = Dispatcher(database, Writes(database, KEYRING), WEBHOOKS)
    running.start()
    sending.tell_directly(webhook_id)
    until(lambda: there.at("/hook"))
    running.ask_to_stop(5.0)
    running.join()
    assert sending.states() == ["delivered"]


def test_what_is_not_answered_by_then_is_given_back(sending, there, database):
    there.script["/hook"] = silent
    webhook_id, _ = sending.webhook(there.url("/hook"))
    running = Dispatcher(database, Writes(database, KEYRING), WEBHOOKS)
    running.start()
    sending.tell_directly(webhook_id)
    until(lambda: there.at("/hook"))
    running.ask_to_stop(0.1)
    running.join()
    with database.open_reader() as session:
        row = session.scalars(select(DeliveryRow)).one()
        assert (row.state, row.failures) == ("waiting", 0)
        assert row.due_at <= session.scalars(select(leases.get_database_time())).one()


@SQLITE
def test_an_outcome_is_recorded_once_the_database_is_back(sending, there, dispatcher, monkeypatch):
    broken = [OSError(), OSError()]
    record = dispatcher._record

    def failing(*args):
        if broken:
            raise broken.pop()
        record(*args)

    monkeypatch.setattr(dispatcher, "_record", failing)
    webhook_id, _ = sending.webhook(there.url("/hook"))
    sending.tell_directly(webhook_id)
    until(lambda: sending.states() == ["delivered"])
    assert len(there.at("/hook")) == 1
