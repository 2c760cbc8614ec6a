"""Operations on webhooks."""

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Response

from service.audit.service import Read, Write
from service.kit.http.pages import NEWEST_FIRST, PageQuery
from service.kit.http.versions import CREATED, VERSIONED, IfMatch, versioned_response
from service.kit.http.web import api_router, from_state, json_response
from service.webhooks import repository, service
from service.webhooks.schemas import (
    IssuedWebhook,
    RecoveredWebhookDeliveries,
    ReplayedWebhookDeliveries,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryPage,
    WebhookDeliveryQuery,
    WebhookId,
    WebhookPage,
    WebhookPatch,
    WebhookRecoveryRequest,
    WebhookReplayRequest,
    WebhookRequest,
    WebhookRotationRequest,
)

router = api_router("/v1/webhooks", tag="webhooks")


Rules = Annotated[service.Webhooks, from_state("webhooks")]
WebhookPath = Annotated[WebhookId, Path(description="Id of the webhook.")]


@router.get("", summary="List webhooks", response_model=WebhookPage)
def list_webhooks(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Returns a page of the tenant's webhooks, the newest first, without their secrets."""
    page = read.page(query, NEWEST_FIRST, "webhooks")
    with read.session() as session:
        rows = repository.list_page(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response([service.webhook_to_response(row) for row in rows]))


@router.post("", summary="Create a webhook", status_code=201, response_model=IssuedWebhook, responses=CREATED)
def create_webhook(write: Write, rules: Rules, body: WebhookRequest) -> Response:
    """Creates a webhook. The secret that messages are signed with is shown this once.

    Messages are posted as Standard Webhooks 1.0 specifies, at least once each and in no promised order. Each
    type of event needs the scope to read what it carries, such as `approvals:read`. Events that the maker of
    the webhook may no longer read are withheld.
    """
    return write.run(body, lambda session: rules.create(session, write.subject, body))


@router.get("/{id:name}", summary="Get a webhook", response_model=Webhook, responses=VERSIONED)
def get_webhook(read: Read, id: WebhookPath) -> Response:
    """Returns a webhook and the state of its deliveries, without its secret."""
    with read.session() as session:
        return versioned_response(
            service.webhook_to_response(service.get_webhook(session, read.tenant_id, id))
        )


@router.patch("/{id:name}", summary="Change a webhook", response_model=Webhook, responses=VERSIONED)
def update_webhook(
    write: Write, rules: Rules, id: WebhookPath, body: WebhookPatch, if_match: IfMatch = ""
) -> Response:
    """Changes a webhook, enables or disables it, if it is still at the version of the ETag.

    A caller who changes its URL or its event types must be able to read what those events carry. From then on
    the webhook is told on the caller's behalf.
    """
    sent = [body, if_match]
    return write.run(sent, lambda session: rules.change(session, write.subject, id, body, if_match))


@router.delete("/{id:name}", summary="Delete a webhook and its deliveries", status_code=204)
def delete_webhook(write: Write, id: WebhookPath, if_match: IfMatch = "") -> Response:
    """Deletes a webhook and its deliveries, if it is still at the version of the ETag."""
    return write.run(if_match, lambda session: service.delete_webhook(session, write.subject, id, if_match))


@router.post(
    "/{id:name}:rotate",
    summary="Rotate the secret of a webhook",
    response_model=IssuedWebhook,
    responses=VERSIONED,
)
def rotate_webhook(write: Write, rules: Rules, id: WebhookPath, body: WebhookRotationRequest) -> Response:
    """Creates the next secret or key of a webhook. Messages are signed with both until the overlap ends."""
    overlap = timedelta(seconds=body.overlap_seconds)
    return write.run(body, lambda session: rules.rotate(session, write.subject, id, overlap))


@router.post(
    "/{id:name}:test",
    summary="Send a test message to a webhook",
    status_code=202,
    response_model=WebhookDelivery,
)
def test_webhook(write: Write, id: WebhookPath) -> Response:
    """Sends a message of type `webhook.test` to this webhook, whatever its event types are."""
    return write.run(None, lambda session: service.send_test_event(session, write.subject, id))


@router.post(
    "/{id:name}:replay",
    summary="Replay deliveries to a webhook",
    status_code=202,
    response_model=ReplayedWebhookDeliveries,
)
def replay_webhook(write: Write, id: WebhookPath, body: WebhookReplayRequest) -> Response:
    """Sends deliveries again that were delivered or given up, under the same ids."""
    delivery_ids = list(dict.fromkeys(body.delivery_ids))
    return write.run(
        body, lambda session: service.replay_deliveries(session, write.subject, id, delivery_ids)
    )


@router.post(
    "/{id:name}:recover",
    summary="Replay deliveries given up since a time",
    status_code=202,
    response_model=RecoveredWebhookDeliveries,
)
def recover_webhook(write: Write, id: WebhookPath, body: WebhookRecoveryRequest) -> Response:
    """Sends deliveries again that were given up since a time, under the same ids."""
    return write.run(body, lambda session: service.recover_deliveries(session, write.subject, id, body.since))


@router.get(
    "/{id:name}/deliveries", summary="List the deliveries to a webhook", response_model=WebhookDeliveryPage
)
def list_webhook_deliveries(
    read: Read, id: WebhookPath, query: Annotated[WebhookDeliveryQuery, Query()]
) -> Response:
    """Returns a page of the deliveries to a webhook, the newest first, each with its attempts.

    The caller must be able to read the events that the webhook is told of, or those that `event_type` names.
    """
    page = read.page(query, NEWEST_FIRST, "deliveries", id, query.state, query.event_type)
    with read.session() as session:
        return json_response(
            page.to_response(service.list_deliveries(session, read.subject, id, query, page))
        )
