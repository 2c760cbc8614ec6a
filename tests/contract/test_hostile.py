"""Every operation under the corpus of hostile requests: each is refused, says where, and echoes nothing."""

import gc
import json
import time
from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest
from fastapi import FastAPI

from service.app.examples import EXAMPLE_IDS
from service.catalog import repository
from service.catalog.shipped import list_shipped_documents
from service.kit.http.problems import CONTENT_TYPE
from service.kit.http.web import JsonRoute
from tests.applications import TENANT, attach
from tests.contract.corpus import MARK, Operation
from tests.contract.credentials import OF_NODES, credentials, node_of
from tests.contract.test_document import CATALOG, OPERATIONS
from tests.contract.wire import Wire

SECONDS = 1.0
"""Most processor time that one hostile request may take; a tenth of it is usual."""
LONGEST_ANSWER = 16_000


class Served(NamedTuple):
    """An application, and the headers of who may call all of it."""

    app: FastAPI
    headers: dict[str, str]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(request, app, databases_of):
    """An application over a database that nobody changes, and who may call every operation."""
    database = databases_of(request.param).unchanged()
    attach(app, database, TENANT)
    app.state.snapshots.refresh()
    return Served(app, credentials(app))


def row_of(name):
    noun = OPERATIONS[name][1].split("/")[2]
    if "{id}" not in OPERATIONS[name][1]:
        return ""
    return list_shipped_documents()[noun.replace("-", "_")][0]["id"] if noun in CATALOG else EXAMPLE_IDS[noun]


def faults(hostile, status, headers, content):
    """What is wrong with an answer to a hostile request."""
    if status not in hostile.statuses:
        yield f"status {status} {content[:300]}"
        return
    if headers[b"content-type"].decode() != CONTENT_TYPE:
        yield "not a problem"
        return
    document = json.loads(content)
    if document["status"] != status or document["request_id"].encode() != headers[b"request-id"]:
        yield "not this problem"
    if len(content) > LONGEST_ANSWER:
        yield f"{len(content)} bytes"
    if hostile.pointer is not None:
        pointer = (document["errors"] or [{"pointer": None}])[0]["pointer"]
        parent = hostile.pointer.rpartition("/")[0]
        if pointer not in (hostile.pointer, parent) and not (pointer or "").startswith(hostile.pointer):
            yield f"points at {pointer}"
    named = hostile.pointer and MARK in hostile.pointer
    if not hostile.echoes_path and not named and MARK.rpartition("-")[0].encode() in content:
        yield "echoes what was sent"


@cache
def ways_to_read(app):
    """How the body of each operation that takes one is read, in their order."""
    ways = {
        (method.lower(), route.path_format): (type(route).__name__, route.direct is None, route.body_limits)
        for route in app.routes
        if isinstance(route, JsonRoute) and route.include_in_schema
        for method in route.methods
    }
    takers = {name: place for name, (*place, said) in OPERATIONS.items() if "requestBody" in said}
    return {name: ways[tuple(place)] for name, place in takers.items()}


def number_of(app, name):
    """Which one an operation is of those whose bodies are read alike."""
    ways = ways_to_read(app)
    return [each for each in ways if ways[each] == ways[name]].index(name) if name in ways else 0


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("served", ["sqlite"], indirect=True)
def test_every_hostile_request_is_refused(served, name, request, record_property):
    is_long = request.config.getoption("--examples", 0)  # `make hostile` sends each operation everything
    number = 0 if is_long else number_of(served.app, name)
    refuse(served, name, lambda operation: operation.all(number), record_property)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if "estimate" not in name])
@pytest.mark.parametrize("served", ["postgresql"], indirect=True)
def test_what_postgresql_is_asked_for_is_refused(served, name, record_property):
    refuse(served, name, Operation.looked_up, record_property)


def refuse(served, name, choose, record_property):
    """Send an operation the hostile requests that are chosen, and hold each answer against them."""
    app, headers = served
    row = row_of(name)
    if name in OF_NODES:
        headers = credentials(app, name)
        row = node_of(headers) if "/nodes/" in OPERATIONS[name][1] else row
    with app.state.database.open_reader() as session:
        revisions = repository.list_own_revisions(session)
    gc.freeze()  # a request is not charged for looking through what the other tests have left
    wire = Wire(app, headers)
    wrong, sent = [], Counter()
    for hostile in choose(Operation(name, row)):
        started = time.process_time()
        status, answered, content = wire.send(hostile)
        spent = time.process_time() - started
        sent[status] += 1
        wrong += [f"{hostile.name}: {fault}" for fault in faults(hostile, status, answered, content)]
        if spent > SECONDS:
            wrong.append(f"{hostile.name}: {spent:.2f} s")
    wire.close()
    record_property("corpus", [(name, status, times) for status, times in sent.items()])
    assert not wrong, "\n".join([f"{len(wrong)} of {sent.total()}", *wrong[:40]])
    with app.state.database.open_reader() as session:
        assert repository.list_own_revisions(session) == revisions
