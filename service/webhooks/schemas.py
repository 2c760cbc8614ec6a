"""Shapes of webhooks and of what is delivered to them."""

from typing import Annotated, Literal

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypeAliasType

from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.base import Instant, Integer, StrictModel, Text
from service.schemas.events import WebhookEventType
from service.webhooks.signing import WebhookSignatureScheme

WebhookId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
DeliveryId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
Url = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^https?://[\x21-\x7e]+$")]
EventTypes = Annotated[list[WebhookEventType], Field(min_length=1, max_length=50)]
OverlapSeconds = Annotated[int, Field(ge=0, le=30 * 86400)]
ShortText = Annotated[str, Field(max_length=100)]
WebhookState = TypeAliasType("WebhookState", Literal["enabled", "disabled"])
WebhookDisabledReason = TypeAliasType("WebhookDisabledReason", Literal["BY_OWNER", "GONE", "FAILING"])
WebhookDeliveryState = TypeAliasType(
    "WebhookDeliveryState", Literal["waiting", "running", "delivered", "failed", "cancelled"]
)


class WebhookRequest(StrictModel):
    """Where to tell of what."""

    url: Url
    """Where messages are posted to: https, at port 443 or 8443 of a public host, unless the operator allows
    other networks."""
    event_types: EventTypes | MISSING = MISSING
    """What to tell of; everything, kinds that come later too, if it is left out."""
    description: Text | MISSING = MISSING
    """What it is for."""
    signature_scheme: WebhookSignatureScheme = WebhookSignatureScheme.V1
    """How messages are signed: with a secret that the receiver has too (`v1`, HMAC-SHA256), or with a key of
    which it has the public half (`v1a`, Ed25519)."""


class WebhookPatch(StrictModel):
    """Members to change; the others stay."""

    url: Url | MISSING = MISSING
    """Where messages are posted to from now on."""
    event_types: EventTypes | MISSING | None = MISSING
    """What to tell of; null for everything."""
    description: Text | MISSING | None = MISSING
    """What it is for; null removes it."""
    enabled: bool | MISSING = MISSING
    """False cancels what waits; true begins anew with what happens from then on."""


class Webhook(StrictModel):
    """Where a tenant is told of events, and how that goes."""

    id: WebhookId
    url: Url
    """Where messages are posted to."""
    event_types: EventTypes | MISSING = MISSING
    """What it is told of; everything if it is absent."""
    description: Text | MISSING = MISSING
    """What it is for."""
    signature_scheme: WebhookSignatureScheme
    """How messages are signed."""
    public_key: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """What signatures of `v1a` are checked with; the newest one where keys are being changed."""
    state: WebhookState
    """Whether it is told anything."""
    disabled_at: AwareDatetime | MISSING = MISSING
    """Since when it is told nothing."""
    disabled_reason: WebhookDisabledReason | MISSING = MISSING
    """By whom: its owner, its receiver that answered with 410, or the service after five days in which every
    attempt failed."""
    succeeded_at: AwareDatetime | MISSING = MISSING
    """When an attempt last succeeded."""
    failing_since: AwareDatetime | MISSING = MISSING
    """The first of the failed attempts since then."""
    paused_until: AwareDatetime | MISSING = MISSING
    """Until when the receiver, which has asked for it, is left alone."""
    rotation_ends_at: AwareDatetime | MISSING = MISSING
    """Until when messages are signed with the secret or key before the newest too."""
    version: Integer
    """Number of changes, the creation included."""
    created_at: AwareDatetime
    created_by: Text
    """Kind and id of the subject that made it."""
    on_behalf_of: Text
    """Kind and id of the subject that last said where to tell of what: what this may not read is withheld."""


class IssuedWebhook(StrictModel):
    """A webhook and its secret, which is shown this once."""

    webhook: Webhook
    """The webhook."""
    secret: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """What signatures of `v1` are checked with, as libraries of Standard Webhooks take it; absent from a
    repeated answer, and of `v1a`, whose public key is a member of the webhook."""


class WebhookPage(StrictModel):
    """A page of webhooks."""

    items: list[Webhook]
    """Webhooks, the newest first."""
    next_page_token: NextPageToken


class WebhookRotationRequest(StrictModel):
    """How long messages are signed with both secrets, or both keys."""

    overlap_seconds: OverlapSeconds = 86400
    """Time to bring the new one to the receiver."""


class WebhookDeliveryAttempt(StrictModel):
    """One request to the receiver, and what came of it."""

    started_at: AwareDatetime
    """When it began."""
    milliseconds: Integer
    """How long it took."""
    status_code: Integer | MISSING = MISSING
    """HTTP status of the answer; absent where none came."""
    error_code: ShortText | MISSING = MISSING
    """Why it failed; absent where it did not."""
    answer_excerpt: Annotated[str, Field(max_length=1024)] | MISSING = MISSING
    """The beginning of the answer's body."""


class WebhookDelivery(StrictModel):
    """One event on its way to one webhook."""

    id: DeliveryId
    webhook_id: WebhookId
    """Where it is delivered to."""
    event_id: ShortText
    """What the receiver gets as `webhook-id`, the same at every attempt."""
    event_type: WebhookEventType
    """What happened."""
    state: WebhookDeliveryState
    """A `failed` one has failed ten times or for good; what waited when its webhook was disabled, or
    may not be told any more, is `cancelled`. `:replay` sends them again, and `:recover` all of both."""
    attempts: Annotated[list[WebhookDeliveryAttempt], Field(max_length=50)]
    """Attempts in their order, the last fifty of them."""
    next_attempt_at: AwareDatetime | MISSING = MISSING
    """When it is tried again, at the earliest."""
    created_at: AwareDatetime
    finished_at: AwareDatetime | MISSING = MISSING
    """When it was delivered or given up."""


class WebhookDeliveryPage(StrictModel):
    """A page of deliveries."""

    items: list[WebhookDelivery]
    """Deliveries, the newest first."""
    next_page_token: NextPageToken


class WebhookDeliveryQuery(PageQuery):
    """Filters of deliveries."""

    state: Annotated[list[WebhookDeliveryState], Field(max_length=5)] = []
    """States to list."""
    event_type: Annotated[list[WebhookEventType], Field(max_length=50)] = []
    """Kinds of events to list."""


class WebhookReplayRequest(StrictModel):
    """What to send again."""

    delivery_ids: Annotated[list[DeliveryId], Field(min_length=1, max_length=500)]
    """Deliveries of this webhook."""


class ReplayedWebhookDeliveries(StrictModel):
    """What is sent again."""

    items: list[WebhookDelivery]
    """The deliveries, in the order of the request."""


class WebhookRecoveryRequest(StrictModel):
    """From when on to send again what was given up."""

    since: Instant
    """The time of the first event that the receiver may have missed."""


class RecoveredWebhookDeliveries(StrictModel):
    """What is sent again."""

    delivery_count: Integer
    """How many deliveries were `failed` or `cancelled` and wait again; none once they do."""
