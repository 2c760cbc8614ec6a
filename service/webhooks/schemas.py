"""Requests and answers of webhooks and their deliveries."""

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
    """An address and the events to send to it."""

    url: Url
    """Address that messages are posted to: https, at port 443 or 8443 of a public host, unless the operator
    allows other networks."""
    event_types: EventTypes | MISSING = MISSING
    """Types of events to send. Defaults to all, including types that are added later."""
    description: Text | MISSING = MISSING
    """Purpose of the webhook."""
    signature_scheme: WebhookSignatureScheme = WebhookSignatureScheme.V1
    """Signature of the messages: with a secret that the receiver shares (`v1`, HMAC-SHA256), or with a key
    whose public half the receiver has (`v1a`, Ed25519)."""


class WebhookPatch(StrictModel):
    """Members to change; the others stay."""

    url: Url | MISSING = MISSING
    """New address that messages are posted to."""
    event_types: EventTypes | MISSING | None = MISSING
    """Types of events to send. Null selects all."""
    description: Text | MISSING | None = MISSING
    """Purpose of the webhook. Null removes it."""
    enabled: bool | MISSING = MISSING
    """False cancels waiting deliveries. True resumes with events that happen from then on."""


class Webhook(StrictModel):
    """An address that is told of events, and the state of its deliveries."""

    id: WebhookId
    url: Url
    """Address that messages are posted to."""
    event_types: EventTypes | MISSING = MISSING
    """Types of events that are sent. All if absent."""
    description: Text | MISSING = MISSING
    """Purpose of the webhook."""
    signature_scheme: WebhookSignatureScheme
    """Signature of the messages."""
    public_key: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """Public key that verifies `v1a` signatures. The newest one during a rotation."""
    state: WebhookState
    """State of the webhook. A disabled webhook gets no messages."""
    disabled_at: AwareDatetime | MISSING = MISSING
    """Time at which the webhook was disabled."""
    disabled_reason: WebhookDisabledReason | MISSING = MISSING
    """Reason why it was disabled: by its owner, by an answer of 410 from its receiver, or by the service
    after five days in which every attempt failed."""
    succeeded_at: AwareDatetime | MISSING = MISSING
    """Time of the last successful attempt."""
    failing_since: AwareDatetime | MISSING = MISSING
    """Time of the first failed attempt since then."""
    paused_until: AwareDatetime | MISSING = MISSING
    """Time until which deliveries pause because the receiver has asked for it."""
    rotation_ends_at: AwareDatetime | MISSING = MISSING
    """Time until which messages are also signed with the secret or key before the newest."""
    version: Integer
    """Number of changes, the creation included."""
    created_at: AwareDatetime
    created_by: Text
    """Kind and id of the subject that created the webhook."""
    on_behalf_of: Text
    """Kind and id of the subject that last set the address or the event types. Events that it may not read
    are withheld."""


class IssuedWebhook(StrictModel):
    """A webhook and its secret. The secret is shown only in this answer."""

    webhook: Webhook
    """The webhook."""
    secret: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """Secret that verifies `v1` signatures, in the form that libraries of Standard Webhooks take. Absent from
    a repeated answer, and for `v1a`, whose public key is a member of the webhook."""


class WebhookPage(StrictModel):
    """A page of webhooks."""

    items: list[Webhook]
    """Webhooks, the newest first."""
    next_page_token: NextPageToken


class WebhookRotationRequest(StrictModel):
    """Overlap in which messages are signed with both secrets, or both keys."""

    overlap_seconds: OverlapSeconds = 86400
    """Seconds of the overlap, to replace the secret or key at the receiver."""


class WebhookDeliveryAttempt(StrictModel):
    """One request to the receiver, and its outcome."""

    started_at: AwareDatetime
    """Start of the attempt."""
    milliseconds: Integer
    """Duration of the attempt."""
    status_code: Integer | MISSING = MISSING
    """HTTP status of the answer. Absent if there was none."""
    error_code: ShortText | MISSING = MISSING
    """Code of the failure. Absent if the attempt succeeded."""
    answer_excerpt: Annotated[str, Field(max_length=1024)] | MISSING = MISSING
    """Beginning of the body of the answer."""


class WebhookDelivery(StrictModel):
    """Delivery of one event to one webhook."""

    id: DeliveryId
    webhook_id: WebhookId
    """Id of the webhook."""
    event_id: ShortText
    """Id of the event, sent as `webhook-id`, the same at every attempt."""
    event_type: WebhookEventType
    """Type of the event."""
    state: WebhookDeliveryState
    """State of the delivery. A `failed` delivery has failed ten times or permanently. A `cancelled` one was
    waiting when its webhook was disabled, or may no longer be sent. `:replay` sends single ones again, and
    `:recover` all of both."""
    attempts: Annotated[list[WebhookDeliveryAttempt], Field(max_length=50)]
    """The last fifty attempts, in order."""
    next_attempt_at: AwareDatetime | MISSING = MISSING
    """Earliest time of the next attempt."""
    created_at: AwareDatetime
    finished_at: AwareDatetime | MISSING = MISSING
    """Time at which the event was delivered or given up."""


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
    """Types of events to list."""


class WebhookReplayRequest(StrictModel):
    """Deliveries to send again."""

    delivery_ids: Annotated[list[DeliveryId], Field(min_length=1, max_length=500)]
    """Ids of deliveries of this webhook."""


class ReplayedWebhookDeliveries(StrictModel):
    """Deliveries that are sent again."""

    items: list[WebhookDelivery]
    """Deliveries in the order of the request."""


class WebhookRecoveryRequest(StrictModel):
    """Time from which to send failed and cancelled deliveries again."""

    since: Instant
    """Time of the first event that the receiver may have missed."""


class RecoveredWebhookDeliveries(StrictModel):
    """Number of deliveries that are sent again."""

    delivery_count: Integer
    """Number of `failed` or `cancelled` deliveries that wait again. None if a request is repeated."""
