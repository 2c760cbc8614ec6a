"""Operations on webhooks."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.kit.http.pages import PageQuery
from service.kit.http.versions import ETAG, IfMatch
from service.kit.http.web import LOCATED, api_router
from service.webhooks.face import Face, WebhookPath
from service.webhooks.schemas import (
    IssuedWebhook,
    RecoveredDeliveries,
    ReplayedDeliveries,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryPage,
    WebhookDeliveryQuery,
    WebhookInput,
    WebhookPage,
    WebhookPatch,
    WebhookRecovery,
    WebhookReplay,
    WebhookRotation,
)

router = api_router("/v1/webhooks", tag="webhooks")
_TAGGED: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}}
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | LOCATED[201]["headers"]}}


@router.get("", response_model=WebhookPage)
def list_webhooks(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's webhooks, the newest first, without their secrets."""
    return face.list(caller.tenant_id, query)


@router.post("", status_code=201, response_model=IssuedWebhook, responses=_CREATED)
def create_webhook(face: Face, call: WriteCall, body: WebhookInput) -> Response:
    """Be told of events at an address; a secret that messages are signed with is shown this once.

    Messages are posted as Standard Webhooks 1.0 says, at least once each and in no promised order. Every kind
    of event needs the scope to read what it carries, such as `approvals:read`; what whoever made the webhook
    may not read any more is withheld.
    """
    return face.create(call, body)


@router.get("/{id:name}", response_model=Webhook, responses=_TAGGED)
def get_webhook(face: Face, caller: Caller, id: WebhookPath) -> Response:
    """A webhook and how it goes, without its secret."""
    return face.get(caller.tenant_id, id)


@router.patch("/{id:name}", response_model=Webhook, responses=_TAGGED)
def update_webhook(
    face: Face, call: WriteCall, id: WebhookPath, body: WebhookPatch, if_match: IfMatch = ""
) -> Response:
    """Change a webhook, enable or disable it, if it is still at the version of the ETag.

    Whoever changes its address or its kinds of events must be able to read what those carry; from then on
    it is told on their behalf.
    """
    return face.change(call, id, body, if_match)


@router.delete("/{id:name}", status_code=204)
def delete_webhook(face: Face, call: WriteCall, id: WebhookPath, if_match: IfMatch = "") -> Response:
    """Delete a webhook and its deliveries, if it is still at the version of the ETag."""
    return face.delete(call, id, if_match)


@router.post("/{id:name}:rotate", response_model=IssuedWebhook, responses=_TAGGED)
def rotate_webhook(face: Face, call: WriteCall, id: WebhookPath, body: WebhookRotation) -> Response:
    """Give a webhook its next secret or key; messages are signed with both until the overlap ends."""
    return face.rotate(call, id, body)


@router.post("/{id:name}:test", status_code=202, response_model=WebhookDelivery)
def test_webhook(face: Face, call: WriteCall, id: WebhookPath) -> Response:
    """Have a message of type `webhook.test` delivered to this webhook, whatever it is told of."""
    return face.test(call, id)


@router.post("/{id:name}:replay", status_code=202, response_model=ReplayedDeliveries)
def replay_webhook(face: Face, call: WriteCall, id: WebhookPath, body: WebhookReplay) -> Response:
    """Send again what was delivered or given up, under the same ids."""
    return face.replay(call, id, body)


@router.post("/{id:name}:recover", status_code=202, response_model=RecoveredDeliveries)
def recover_webhook(face: Face, call: WriteCall, id: WebhookPath, body: WebhookRecovery) -> Response:
    """Send again everything since a time that was given up, under the same ids: after a receiver was down."""
    return face.recover(call, id, body)


@router.get("/{id:name}/deliveries", response_model=WebhookDeliveryPage)
def list_webhook_deliveries(
    face: Face, caller: Caller, id: WebhookPath, query: Annotated[WebhookDeliveryQuery, Query()]
) -> Response:
    """A page of the deliveries to a webhook, the newest first, each with its attempts.

    The caller must be able to read what the webhook is told of, or what `event_type` names.
    """
    return face.deliveries(caller, id, query)
