"""The generated sources of both client packages are those of the document."""

import json

import pytest

from clients.generator.__main__ import TYPESCRIPT, write_sources
from clients.generator.document import read_document
from service.schemas.events import WebhookEventType
from tests.contract.test_document import DOCUMENT, OPERATIONS, ROOT

SOURCES = write_sources()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_generated_file_is_current(path):
    is_current = path.read_text() == SOURCES[path]
    assert is_current, f"{path.relative_to(ROOT)} is stale: run make client-sources"


def test_every_operation_has_a_method_of_its_own():
    resources = read_document(DOCUMENT).resources
    methods = [(resource, each.verb) for resource, operations in resources.items() for each in operations]
    assert len(set(methods)) == len(methods) == len(OPERATIONS)
    assert {each.name for operations in resources.values() for each in operations} == set(OPERATIONS)


def test_a_wait_asks_for_states_that_the_document_has():
    schemas = DOCUMENT["components"]["schemas"]
    waits = [
        (operation, schemas[operation.answers[0]["$ref"].rpartition("/")[2]])
        for operations in read_document(DOCUMENT).resources.values()
        for operation in operations
        if operation.pending_states
    ]
    assert len(waits) == 5
    for operation, shape in waits:
        states = shape["properties"]["state"]["$ref"].rpartition("/")[2]
        assert set(operation.pending_states) < set(schemas[states]["enum"])


def test_the_messages_are_of_every_event():
    schemas = DOCUMENT["components"]["schemas"]
    types = [schemas[name]["properties"]["type"] for name in read_document(DOCUMENT).messages]
    named = [schemas[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in types]
    events = [event for each in named for event in each.get("enum", [each.get("const")])]
    assert sorted(events) == sorted(WebhookEventType)


def test_the_lock_file_of_npm_has_no_address():
    lock = json.loads((TYPESCRIPT / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
