"""What follows from an attempt, by the database's clock: waits, pauses, the end, and who is told why."""

import contextlib
import json
from datetime import timedelta

import pytest
from sqlalchemy import select

from service.app.tenants import erase_tenant
from service.audit.service import Writes
from service.audit.tables import AuditEventRow
from service.auth.schemas import TenantRequest
from service.auth.service import create_tenant, set_tenant_disabled
from service.kit.clock import now
from service.kit.http.outbound import OutboundClient, parse_networks
from service.kit.jobs import leases
from service.kit.jobs.events import EventRow, emit_event
from service.kit.jobs.leases import LeaseLost
from service.kit.jobs.tables import JobRow
from service.kit.security.principals import LOCAL
from service.schemas.events import WebhookEventType
from service.webhooks import attempts, repository, service
from service.webhooks.attempts import JITTER, WAITS_SECONDS, AttemptResult
from service.webhooks.fair_scheduling import MOST_TO_A_WEBHOOK, FairScheduler
from service.webhooks.schemas import WebhookRequest
from service.webhooks.service import Webhooks
from service.webhooks.tables import AttemptRow, DeliveryRow, WebhookRow
from tests import clocks
from tests.applications import KEYRING

WEBHOOKS = Webhooks.from_keyring(
    KEYRING, OutboundClient(parse_networks("127.0.0.0/8")), "https://plan.example.com"
)
OK = {"status_code": 200}
DOWN = {"status_code": 500, "error_code": "REFUSED_BY_RECEIVER", "answer_excerpt": "down"}
SQLITE = pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
"""Of rules that are the service's own, whatever keeps its rows."""
DATA = {"approval_id": "a1", "quote_id": "q1", "quote_version": 1, "name": "n", "requester": "token:ann"}


class WebhookDatabase:
    """The webhooks of a database, and attempts whose results the test says."""

    def __init__(self, database, clock):
        self.database, self.clock = database, clock
        self.writes = Writes(database, KEYRING)

    def webhook(self, *types, tenant="default", **members):
        body = {"url": "http://127.0.0.1/", **({"event_types": types} if types else {}), **members}
        made = WebhookRequest.model_validate_json(json.dumps(body))
        subject = LOCAL._replace(tenant_id=tenant)
        with self.database.open_writer() as session:
            change = WEBHOOKS.create(session, subject, made)
        return change.body["webhook"]["id"]

    def tell(self, type_=WebhookEventType.APPROVAL_APPROVED, tenant="default", data=DATA):
        with self.database.open_writer() as session:
            event_id = emit_event(session, tenant, type_, data)
            return event_id, service.publish_event(session, tenant, event_id)

    def queue(self):
        with self.database.open_reader() as session:
            return repository.read_queue(session)

    def take(self):
        """What a process that has nothing under way sends first."""
        for turn in FairScheduler().begin_sends(self.queue().ready, 1):
            with self.database.open_writer() as session:
                return attempts.claim_delivery(session, WEBHOOKS, turn.tenant_id, turn.webhook_id)
        return None

    def record(self, message, **result):
        with self.database.open_writer() as session:
            made = AttemptResult(started_at=now(), milliseconds=3, **result)
            attempts.record_attempt(session, self.writes, message, made)

    def attempt(self, **result):
        message = self.take()
        assert message is not None
        self.record(message, **result)
        return message

    def rows(self, table):
        with self.database.open_reader() as session:
            return session.scalars(select(table)).all()

    def row(self, table):
        (row,) = self.rows(table)
        return row

    def wait(self):
        """Seconds until the one delivery is tried again."""
        return (self.row(DeliveryRow).due_at - self.clock.at).total_seconds()


@pytest.fixture
def board(database):
    made = WebhookDatabase(database, clocks.Clock(database))
    yield made
    clocks.unset(database)


class TestPublishing:
    def test_tells_whoever_wants_to_know(self, board):
        everything, some = board.webhook(), board.webhook("approval.approved", "budget.exceeded")
        board.webhook("approval.rejected")
        board.webhook(tenant="other")
        event_id, told = board.tell()
        assert told == 2
        rows = board.rows(DeliveryRow)
        assert {row.webhook_id for row in rows} == {everything, some}
        assert {row.event_id for row in rows} == {event_id}

    def test_tells_once_however_often_it_is_done(self, board):
        board.webhook()
        event_id, _ = board.tell()
        with board.database.open_writer() as session:
            service.publish_event(session, "default", event_id)
        assert len(board.rows(DeliveryRow)) == 1

    def test_is_asked_for_in_the_transaction_of_the_event(self, board):
        with contextlib.suppress(RuntimeError), board.database.open_writer() as session:
            emit_event(session, "default", WebhookEventType.WEBHOOK_TEST, {})
            raise RuntimeError
        assert board.rows(EventRow) == board.rows(JobRow) == []

    def test_of_what_is_told_once(self, board):
        for tenant in ("default", "default", "other"):
            with board.database.open_writer() as session:
                emit_event(session, tenant, WebhookEventType.BUDGET_EXCEEDED, {}, once_for="b1 1.0")
        assert [row.tenant_id for row in board.rows(EventRow)] == ["default", "other"]
        assert len(board.rows(JobRow)) == 2

    @SQLITE
    def test_leaves_out_what_is_disabled(self, board):
        webhook_id = board.webhook()
        with board.database.open_writer() as session:
            service.disable_webhook(session, service.lock_webhook(session, "default", webhook_id), "BY_OWNER")
        assert board.tell()[1] == 0


class TestAMessage:
    def test_is_the_same_at_every_attempt(self, board):
        board.webhook()
        event_id, _ = board.tell()
        first = board.attempt(**DOWN)
        board.clock.move(minutes=1)
        second = board.take()
        assert (first.event_id, first.body) == (second.event_id, second.body) == (event_id, first.body)
        body = json.loads(first.body)
        assert body["type"] == "approval.approved"
        assert body["data"] == {**DATA, "page_url": "https://plan.example.com/approvals/a1"}
        assert body["timestamp"].endswith("Z")
        assert len(first.body) < 20_000

    @SQLITE
    @pytest.mark.parametrize("scheme", ["v1", "v1a"])
    def test_is_signed_with_both_secrets_until_the_overlap_ends(self, board, scheme):
        webhook_id = board.webhook(signature_scheme=scheme)
        board.tell()

        def rotate(**overlap):
            with board.database.open_writer() as session:
                WEBHOOKS.rotate(session, LOCAL, webhook_id, timedelta(**overlap))

        def secrets():
            with board.database.open_reader() as session:
                row = service.get_webhook(session, "default", webhook_id)
                return WEBHOOKS.decrypt_live_secrets(row, leases.read_database_time(session))

        (old,) = secrets()
        rotate(hours=1)
        lost, kept = secrets()
        assert kept == old
        rotate(hours=1)
        new, kept = secrets()
        assert kept == old
        assert len({old, lost, new}) == 3
        message = board.take()
        assert (message.signature_scheme, message.secrets) == (scheme, [new, old])
        board.clock.move(hours=1)
        assert secrets() == [new]
        rotate(hours=1)
        assert secrets()[1] == new

    @SQLITE
    def test_of_an_event_that_is_not_kept_any_more_is_given_up(self, board):
        board.webhook()
        board.tell()
        with board.database.open_writer() as session:
            session.delete(session.scalars(select(EventRow)).one())
        assert board.take() is None
        assert board.row(DeliveryRow).state == "failed"

    @SQLITE
    def test_is_kept_secret_from_those_who_read_the_database(self, board):
        board.webhook()
        row = board.row(WebhookRow)
        with board.database.open_reader() as session:
            (secret,) = WEBHOOKS.decrypt_live_secrets(row, leases.read_database_time(session))
        assert secret not in row.secret


class TestAFailure:
    def test_is_tried_again_by_the_schedule_and_then_given_up(self, board):
        board.webhook()
        board.tell()
        for expected in WAITS_SECONDS:
            board.attempt(**DOWN)
            assert expected * (1 - JITTER) - 1 <= board.wait() <= expected * (1 + JITTER) + 1
            assert board.take() is None
            board.clock.move(seconds=board.wait() + 1)
        board.attempt(**DOWN)
        row = board.row(DeliveryRow)
        assert (row.state, row.failures, row.due_at) == ("failed", 10, None)
        tried = board.rows(AttemptRow)
        assert [attempt.number for attempt in tried] == list(range(1, 11))
        assert {(a.status_code, a.error_code, a.answer_excerpt) for a in tried} == {
            (500, "REFUSED_BY_RECEIVER", "down")
        }
        assert board.row(WebhookRow).disabled_at is None

    @SQLITE
    def test_comes_back_at_another_time_than_the_next_one(self, board):
        board.webhook()
        for _ in range(6):
            board.tell()
        while (message := board.take()) is not None:
            board.record(message, **DOWN)
        assert len({row.due_at for row in board.rows(DeliveryRow)}) > 1

    def test_is_forgotten_at_the_first_success(self, board):
        board.webhook()
        board.tell()
        board.attempt(**DOWN)
        assert board.row(WebhookRow).failing_since is not None
        board.clock.move(minutes=1)
        board.attempt(**OK)
        webhook, row = board.row(WebhookRow), board.row(DeliveryRow)
        assert (webhook.failing_since, row.state) == (None, "delivered")
        assert abs((webhook.succeeded_at - board.clock.at).total_seconds()) < 1

    def test_that_asks_for_time_gets_it_for_all_that_is_sent_there(self, board):
        board.webhook()
        other = board.webhook("approval.rejected")
        board.tell()
        board.attempt(**DOWN, retry_after_seconds=600.0)
        assert 599 <= board.wait() <= 601
        board.tell()
        board.tell(WebhookEventType.APPROVAL_REJECTED)
        assert board.take().webhook_id == other
        assert board.take() is None
        board.clock.move(seconds=601)
        assert board.take() is not None

    @SQLITE
    @pytest.mark.parametrize(
        ("status", "is_left_alone"), [(429, True), (502, True), (504, True), (500, False)]
    )
    def test_of_load_slows_down(self, board, status, is_left_alone):
        board.webhook()
        board.tell()
        board.attempt(status_code=status)
        board.tell()
        assert (board.take() is None) == is_left_alone
        board.clock.move(seconds=61)
        assert board.take() is not None

    @SQLITE
    def test_waits_a_day_at_most_whatever_is_asked_for(self, board):
        board.webhook()
        board.tell()
        board.attempt(status_code=429, retry_after_seconds=1e9)
        assert board.wait() <= 86_401

    def test_of_a_receiver_that_is_gone_ends_it(self, board):
        board.webhook()
        for _ in range(3):
            board.tell()
        board.attempt(status_code=410)
        webhook = board.row(WebhookRow)
        assert (webhook.disabled_reason, webhook.version) == ("GONE", 2)
        assert sorted(row.state for row in board.rows(DeliveryRow)) == ["cancelled", "cancelled", "failed"]
        assert board.take() is None
        told = board.row(AuditEventRow)
        assert (told.operation, told.resource) == ("disable_webhook", f"webhooks/{webhook.id}")
        assert told.subject_kind == "service"

    def test_that_ends_it_is_told_to_the_others(self, board):
        gone = board.webhook("approval.approved", description="orders")
        asks, everything = board.webhook("webhook.disabled"), board.webhook()
        board.webhook("approval.rejected")
        board.webhook(tenant="other")
        board.tell()
        message = board.take()
        while message.webhook_id != gone:
            board.record(message, **OK)
            message = board.take()
        board.record(message, status_code=410)
        (event,) = [row for row in board.rows(EventRow) if row.type == "webhook.disabled"]
        assert event.data == {"webhook_id": gone, "description": "orders", "reason": "GONE"}
        (job,) = [row for row in board.rows(JobRow) if row.effect_key == event.id]
        assert (job.tenant_id, job.kind) == ("default", "events.publish")
        with board.database.open_writer() as session:
            service.publish_event(session, "default", event.id)
        told = {row.webhook_id for row in board.rows(DeliveryRow) if row.event_id == event.id}
        assert told == {asks, everything}

    @SQLITE
    def test_that_lasts_five_days_ends_it(self, board):
        board.webhook()
        board.tell()
        board.attempt(**DOWN)
        for days, is_over in ((4, False), (0.9, False), (0.2, True)):
            board.clock.move(days=days)
            board.attempt(**DOWN)
            board.tell()
            assert (board.row(WebhookRow).disabled_reason == "FAILING") == is_over
        (event,) = [row for row in board.rows(EventRow) if row.type == "webhook.disabled"]
        assert event.data["reason"] == "FAILING"

    @SQLITE
    def test_that_its_owner_ends_is_told_to_nobody(self, board):
        webhook_id = board.webhook()
        with board.database.open_writer() as session:
            service.disable_webhook(session, service.lock_webhook(session, "default", webhook_id), "BY_OWNER")
        assert board.rows(EventRow) == []

    @SQLITE
    def test_among_successes_ends_nothing(self, board):
        board.webhook()
        for _ in range(4):
            board.tell()
            board.attempt(**DOWN)
            board.clock.move(days=2)
            board.attempt(**OK)
        assert board.row(WebhookRow).disabled_at is None


class TestALease:
    def test_that_ends_lets_the_same_message_be_sent_again(self, board):
        board.webhook()
        board.tell()
        first = board.take()
        assert board.take() is None
        board.clock.move(seconds=attempts.LEASE_SECONDS + 1)
        second = board.take()
        assert (second.event_id, second.body) == (first.event_id, first.body)
        with pytest.raises(LeaseLost):
            board.record(first, **OK)
        assert board.rows(AttemptRow) == []
        board.record(second, **OK)
        assert board.row(DeliveryRow).state == "delivered"

    def test_is_not_given_for_more_than_some_at_a_time_of_one_receiver(self, board):
        busy, other = board.webhook("approval.approved"), board.webhook("approval.rejected")
        for _ in range(MOST_TO_A_WEBHOOK + 3):
            board.tell()
        taken = [board.take() for _ in range(MOST_TO_A_WEBHOOK)]
        assert {message.webhook_id for message in taken} == {busy}
        assert board.take() is None
        board.tell(WebhookEventType.APPROVAL_REJECTED)
        assert board.take().webhook_id == other
        board.record(taken[0], **OK)
        assert board.take().webhook_id == busy

    def test_ends_in_nothing_when_its_webhook_is_deleted(self, board):
        webhook_id = board.webhook()
        board.tell()
        message = board.take()
        with board.database.open_writer() as session:
            service.delete_webhook(session, LOCAL, webhook_id, "*")
        board.record(message, **OK)
        assert board.rows(DeliveryRow) == board.rows(AttemptRow) == []

    @SQLITE
    def test_of_a_webhook_that_is_disabled_meanwhile_keeps_what_came_of_it(self, board):
        for result, state in ((DOWN, "cancelled"), (OK, "delivered")):
            webhook_id = board.webhook()
            event_id, _ = board.tell()
            message = next(m for m in iter(board.take, None) if m.webhook_id == webhook_id)
            with board.database.open_writer() as session:
                service.disable_webhook(
                    session, service.lock_webhook(session, "default", webhook_id), "BY_OWNER"
                )
            board.record(message, **result)
            (row,) = [row for row in board.rows(DeliveryRow) if row.webhook_id == webhook_id]
            assert (row.event_id, row.state) == (event_id, state)

    def test_is_mended_when_the_clock_is_set_back(self, board):
        board.webhook()
        board.tell()
        board.attempt(**DOWN)
        board.clock.move(days=-30)
        with board.database.open_writer() as session:
            leases.repair_spans(session, DeliveryRow)
        assert board.wait() < 10


class TestATenantThatIsDisabled:
    @pytest.fixture
    def board(self, board):
        with board.database.open_writer() as session:
            create_tenant(session, TenantRequest(id="other", name="Other"))
        board.webhook(tenant="other")
        return board

    @staticmethod
    def disable(board, *, disabled=True):
        with board.database.open_writer() as session:
            set_tenant_disabled(session, "other", disabled=disabled)

    def test_is_told_nothing_until_it_is_enabled_again(self, board):
        board.tell(tenant="other")
        self.disable(board)
        event_id, told = board.tell(tenant="other")
        assert told == 1, "what happens meanwhile waits as well"
        assert board.take() is None
        assert board.queue().ready == []
        board.webhook()
        mine, _ = board.tell()
        assert board.attempt(**OK).event_id == mine, "others are told"
        self.disable(board, disabled=False)
        assert event_id in {board.attempt(**OK).event_id for _ in range(2)}

    def test_is_not_tried_again(self, board):
        board.tell(tenant="other")
        board.attempt(**DOWN)
        self.disable(board)
        board.clock.move(days=1)
        assert board.take() is None
        self.disable(board, disabled=False)
        assert board.take() is not None

    @SQLITE
    def test_for_longer_than_events_are_kept_is_not_told_of_them(self, board):
        board.tell(tenant="other")
        self.disable(board)
        board.clock.move(days=91)
        with board.database.open_writer() as session:
            assert service.expire_deliveries(session) == 1
        assert board.rows(DeliveryRow) == []

    @SQLITE
    def test_and_redacted_keeps_nothing_to_tell(self, board):
        board.tell(tenant="other")
        message = board.take()
        with board.database.open_writer() as session:
            erase_tenant(session, "other")
        board.record(message, **OK)
        assert board.take() is None
        assert board.rows(DeliveryRow) == board.rows(AttemptRow) == []


def test_what_is_old_goes(board):
    board.webhook()
    board.tell()
    board.attempt(**OK)
    board.clock.move(days=1)
    board.tell()
    board.attempt(**OK)
    board.clock.move(days=89, hours=12)
    with board.database.open_writer() as session:
        assert service.expire_deliveries(session) == 1
    assert len(board.rows(DeliveryRow)) == len(board.rows(AttemptRow)) == 1


def test_the_queue_says_when_to_look_again(board):
    assert board.queue()[1:] == ([], None)
    webhook_id = board.webhook()
    board.tell()
    assert board.queue().ready == [("default", webhook_id, 0)]
    board.attempt(status_code=429, retry_after_seconds=30.0)
    ahead = board.queue().next_at - board.clock.at
    assert timedelta(seconds=29) < ahead < timedelta(seconds=31)
