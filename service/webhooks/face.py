"""Webhooks over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.audit.service import Call, Change, Writes
from service.kit.database.engine import Database, Writer
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.versions import etag
from service.kit.http.web import json_response
from service.kit.security.subjects import Subject
from service.webhooks import reading, repository, service
from service.webhooks.repository import After
from service.webhooks.schemas import (
    WebhookDeliveryQuery,
    WebhookId,
    WebhookInput,
    WebhookPatch,
    WebhookRecovery,
    WebhookReplay,
    WebhookRotation,
)
from service.webhooks.service import Webhooks


class WebhooksFace:
    """Reads and writes of the webhooks of one database, as responses."""

    def __init__(self, database: Database, *, writes: Writes, tokens: PageTokens, webhooks: Webhooks) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._webhooks = webhooks

    def list(self, tenant_id: str, query: PageQuery) -> Response:
        """A page of webhooks."""
        filters = json.dumps(["webhooks", tenant_id])
        with self._database.reading() as session:
            rows = repository.page(session, tenant_id, self._after(query, filters), query.limit + 1)
            shown = [service.shown_webhook(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def get(self, tenant_id: str, webhook_id: str) -> Response:
        """One webhook, without its secret."""
        with self._database.reading() as session:
            row = service.known(session, tenant_id, webhook_id)
            return json_response(service.shown_webhook(row), headers={"ETag": etag(row.version)})

    def create(self, call: Call, body: WebhookInput) -> Response:
        """A new webhook."""
        create = partial(self._webhooks.create, subject=call.subject, body=body)
        return self._writes.run(call, body.model_dump(mode="json"), create)

    def change(self, call: Call, webhook_id: str, body: WebhookPatch, if_match: str) -> Response:
        """A webhook with other members."""
        change = partial(self._webhooks.change, body=body, if_match=if_match)
        return self._run(call, webhook_id, [body.model_dump(mode="json"), if_match], change)

    def delete(self, call: Call, webhook_id: str, if_match: str) -> Response:
        """No such webhook any more."""
        return self._run(call, webhook_id, if_match, partial(service.delete, if_match=if_match))

    def rotate(self, call: Call, webhook_id: str, body: WebhookRotation) -> Response:
        """The next secret of a webhook."""
        rotate = partial(self._webhooks.rotate, overlap=timedelta(seconds=body.overlap_seconds))
        return self._run(call, webhook_id, body.model_dump(mode="json"), rotate)

    def test(self, call: Call, webhook_id: str) -> Response:
        """A delivery that tells of nothing."""
        return self._run(call, webhook_id, None, service.send_test)

    def replay(self, call: Call, webhook_id: str, body: WebhookReplay) -> Response:
        """Deliveries that are sent again."""
        replay = partial(service.replay, delivery_ids=list(dict.fromkeys(body.delivery_ids)))
        return self._run(call, webhook_id, body.model_dump(mode="json"), replay)

    def recover(self, call: Call, webhook_id: str, body: WebhookRecovery) -> Response:
        """Everything that was given up since a time, sent again."""
        return self._run(
            call, webhook_id, body.model_dump(mode="json"), partial(service.recover, since=body.since)
        )

    def deliveries(self, subject: Subject, webhook_id: str, query: WebhookDeliveryQuery) -> Response:
        """A page of the deliveries to a webhook, with their attempts, of kinds that ``subject`` may read."""
        tenant_id = subject.tenant_id
        filters = json.dumps(["deliveries", tenant_id, webhook_id, query.state, query.event_type])
        with self._database.reading() as session:
            row = service.known(session, tenant_id, webhook_id)
            reading.check(subject, query.event_type or row.event_types)
            rows = repository.deliveries_page(
                session,
                tenant_id,
                webhook_id,
                states=query.state,
                event_types=query.event_type or reading.readable(subject),
                after=self._after(query, filters),
                limit=query.limit + 1,
            )
            attempts = repository.attempts(session, tenant_id, [row.id for row in rows])
            shown = [service.shown_delivery(row, attempts[row.id]) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def _run(self, call: Call, webhook_id: str, sent: object, do: Callable[..., Change]) -> Response:
        def done(session: Writer) -> Change:
            return do(session, subject=call.subject, webhook_id=webhook_id)

        return self._writes.run(call, sent, done)

    def _after(self, query: PageQuery, filters: str) -> After | None:
        if not query.page_token:
            return None
        created_at, row_id = self._tokens.decode(query.page_token, filters)
        return datetime.fromisoformat(created_at), row_id


def _face(request: Request) -> WebhooksFace:
    face: WebhooksFace = request.app.state.webhooks
    return face


Face = Annotated[WebhooksFace, Depends(_face)]
WebhookPath = Annotated[WebhookId, Path(description="Id of the webhook.")]
