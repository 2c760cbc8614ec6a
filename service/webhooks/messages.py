"""Messages that receivers are sent, as the API document describes them."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field, create_model

from service.schemas.base import RFC_3339
from service.schemas.events import EventSubject, WebhookEventType

Moment = Annotated[str, Field(max_length=32, pattern=f"^{RFC_3339}$")]


def build_message_router() -> APIRouter:
    """Returns a router with an operation for each message that receivers offer. The service answers none."""
    router = APIRouter()
    shapes: dict[str, type[BaseModel]] = {}
    for type_ in WebhookEventType:
        name = type_.subject.message_name
        if name not in shapes:
            shapes[name] = _build_message(type_.subject)

        def receive(body: Any) -> None:  # noqa: ANN401
            del body

        receive.__annotations__["body"] = shapes[name]
        needed = f" Needs the scope `{type_.subject.scope}`." if type_.subject.scope else ""
        router.post(
            type_,
            operation_id=f"receive_{type_.replace('.', '_')}",
            summary=type_.summary,
            description=type_.summary + needed,
            tags=["webhooks"],
        )(receive)
    return router


def _build_message(subject: EventSubject) -> type[BaseModel]:
    types: Any = Literal[tuple(str(type_) for type_ in WebhookEventType if type_.subject is subject)]
    return create_model(
        subject.message_name,
        __doc__=f"Message about {subject.noun}.",
        type=(types, Field(description="Type of the event.")),
        timestamp=(Moment, Field(description="Time of the event.")),
        data=(subject.data, Field(description="Members of the event.")),
    )
