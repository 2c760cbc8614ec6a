"""The one declaration of a type of event has all that messages, scopes, examples and bridges need of it."""

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from service.app.examples.webhooks import MESSAGES
from service.schemas.events import WebhookEventType
from service.webhooks import reading
from service.webhooks.messages import build_message_router

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
BODIES = {route.path: route.body_field.field_info.annotation for route in build_message_router().routes}


@pytest.mark.parametrize("type_", WebhookEventType)
def test_the_sample_is_a_message_and_has_only_declared_members(type_):
    message = MESSAGES[type_]
    TypeAdapter(BODIES[type_]).validate_python(message)
    data = type_.subject.data
    assert data.__required_keys__ <= message["data"].keys() <= data.__annotations__.keys()


def test_a_scope_reads_a_resource_of_the_api():
    operations = [one for path in json.loads(DOCUMENT.read_text())["paths"].values() for one in path.values()]
    scopes = {scope for one in operations for needed in one["security"] for scope in needed["bearer"]}
    assert {permission.scope for permission in reading.NEEDED.values()} <= scopes


def test_a_message_is_of_one_subject():
    names = {type_.subject.message_name: type_.subject for type_ in WebhookEventType}
    assert all(names[type_.subject.message_name] is type_.subject for type_ in WebhookEventType)
