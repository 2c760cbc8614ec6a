"""The comparison of two documents finds a break of each kind, and the document has none."""

import copy
import gzip
import json

import pytest

from tests.contract.breaks import ANNOUNCED, find_breaks, read_last_release
from tests.contract.test_document import DOCUMENT

REF = "#/components/schemas/"
OLD = {
    "paths": {
        "/v1/things": {
            "post": {
                "operationId": "create_thing",
                "security": [{"bearer": ["things:write"]}],
                "parameters": [
                    {"name": "dry", "in": "query", "schema": {"type": "string", "maxLength": 9}},
                ],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": f"{REF}Request"}}}},
                "responses": {
                    "201": {
                        "headers": {"Location": {}},
                        "content": {"application/json": {"schema": {"$ref": f"{REF}Thing"}}},
                    }
                },
                "callbacks": {
                    "thing.made": {
                        "{$request.body#/url}": {
                            "post": {
                                "requestBody": {
                                    "content": {"application/json": {"schema": {"$ref": f"{REF}Thing"}}}
                                }
                            }
                        }
                    }
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Request": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "kind": {"type": "string", "enum": ["a", "b"]},
                    "part": {"oneOf": [{"$ref": f"{REF}Left"}, {"$ref": f"{REF}Right"}]},
                    "unit": {"anyOf": [{"type": "string", "enum": ["day"]}, {"type": "number"}]},
                    "names": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["size"],
            },
            "Left": {"type": "object", "properties": {"side": {"type": "string", "const": "left"}}},
            "Right": {"type": "object", "properties": {"side": {"type": "string", "const": "right"}}},
            "Open": {"type": "object", "properties": {"kind": {"type": "string", "const": "open"}}},
            "Shut": {"type": "object", "properties": {"kind": {"type": "string", "const": "shut"}}},
            "Thing": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "note": {"type": "string"},
                    "state": {"oneOf": [{"$ref": f"{REF}Open"}, {"$ref": f"{REF}Shut"}]},
                },
                "required": ["id"],
            },
        }
    },
}
OPERATION = ("paths", "/v1/things", "post")
SENT = ("components", "schemas", "Request")
MEMBERS = (*SENT, "properties")
ANSWERED = ("components", "schemas", "Thing")
GONE = object()
BREAKS = {
    "an operation": (OPERATION, GONE, "POST /v1/things is gone"),
    "the name of an operation": (
        (*OPERATION, "operationId"),
        "make_thing",
        "POST /v1/things is called make_thing",
    ),
    "the scope of an operation": (
        (*OPERATION, "security"),
        [{"bearer": ["admin"]}],
        "POST /v1/things needs other scopes",
    ),
    "a parameter": ((*OPERATION, "parameters"), [], "POST /v1/things has no parameter dry"),
    "a required parameter": (
        (*OPERATION, "parameters", 0, "required"),
        True,
        "POST /v1/things requires the parameter dry",
    ),
    "a bound of a parameter": (
        (*OPERATION, "parameters", 0, "schema", "maxLength"),
        8,
        "POST /v1/things parameter dry has the maxLength 8 instead of 9",
    ),
    "a body": ((*OPERATION, "requestBody"), GONE, "POST /v1/things takes no body"),
    "a required body": (
        (*OPERATION, "requestBody", "required"),
        True,
        "POST /v1/things requires a body",
    ),
    "a status": (
        (*OPERATION, "responses", "204"),
        {},
        "POST /v1/things answers with other statuses",
    ),
    "a header": (
        (*OPERATION, "responses", "201", "headers"),
        {},
        "POST /v1/things 201 header Location is gone",
    ),
    "a media type": (
        (*OPERATION, "responses", "201", "content"),
        {},
        "POST /v1/things 201 has no application/json",
    ),
    "a message": ((*OPERATION, "callbacks"), {}, "message thing.made is gone"),
    "a member that is sent": ((*MEMBERS, "kind"), GONE, "Request (sent).kind is gone"),
    "a required member": ((*SENT, "required"), ["size", "kind"], "Request (sent).kind is required"),
    "a type": (
        (*MEMBERS, "size", "type"),
        "number",
        "Request (sent).size has the type number instead of integer",
    ),
    "the type of an item": (
        (*MEMBERS, "names", "items", "type"),
        "integer",
        "Request (sent).names[] has the type integer instead of string",
    ),
    "a narrower bound": (
        (*MEMBERS, "size", "minimum"),
        2,
        "Request (sent).size has the minimum 2 instead of 1",
    ),
    "a pattern": ((*MEMBERS, "kind", "pattern"), "a", "Request (sent).kind has another pattern"),
    "a value that is sent": ((*MEMBERS, "kind", "enum"), ["a"], "Request (sent).kind takes only ['a']"),
    "an alternative that is sent": (
        (*MEMBERS, "part", "oneOf"),
        [{"$ref": f"{REF}Left"}],
        "Request (sent).part takes fewer alternatives",
    ),
    "a closed shape": (
        (*SENT, "additionalProperties"),
        False,
        "Request (sent) takes no other members",
    ),
    "a member of an answer": ((*ANSWERED, "properties", "note"), GONE, "Thing (answered).note is gone"),
    "an alternative of an answer": (
        (*ANSWERED, "properties", "state", "oneOf"),
        [{"$ref": f"{REF}Open"}, {"$ref": f"{REF}Shut"}, {"$ref": f"{REF}Left"}],
        "Thing (answered).state has other alternatives",
    ),
    "a member that may be absent": ((*ANSWERED, "required"), [], "Thing (answered).id may be absent"),
}
SOUND = {
    "an optional member that is sent": ((*MEMBERS, "more"), {"type": "string"}),
    "a wider bound": ((*MEMBERS, "size", "minimum"), 0),
    "a value more that is sent": ((*MEMBERS, "kind", "enum"), ["a", "b", "c"]),
    "a member that need not be sent": ((*SENT, "required"), []),
    "a member of an answer": ((*ANSWERED, "properties", "more"), {"type": "string"}),
    "a member that is always there": ((*ANSWERED, "required"), ["id", "note"]),
    "a value more of one of several kinds that is sent": (
        (*MEMBERS, "unit", "anyOf", 0, "enum"),
        ["day", "week"],
    ),
    "a member of an alternative that is always there": (
        ("components", "schemas", "Open", "required"),
        ["kind"],
    ),
    "another operation": (("paths", "/v1/others"), {"get": {"operationId": "list_others"}}),
}


def changed(place, value):
    """The made-up document with another value in a place."""
    document = copy.deepcopy(OLD)
    *path, last = place
    node = document
    for part in path:
        node = node[part]
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return document


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_told(name):
    place, value, told = BREAKS[name]
    assert told in find_breaks(OLD, changed(place, value))


@pytest.mark.parametrize("name", SOUND)
def test_what_old_clients_do_not_notice_is_no_break(name):
    assert find_breaks(OLD, changed(*SOUND[name])) == []


def test_another_name_of_a_shape_is_no_break():
    renamed = json.loads(json.dumps(OLD).replace("Request", "Asked").replace("Thing", "Other"))
    assert find_breaks(OLD, renamed) == []


def test_the_document_breaks_nothing_unannounced_since_the_last_release():
    assert set(find_breaks(read_last_release(), DOCUMENT)) == ANNOUNCED


@pytest.mark.parametrize(
    ("old", "new", "breaks"),
    [
        ("^[a-z]{0,9}$", "^[a-z:]{0,9}$", False),
        ("^[a-z:]{0,9}$", "^[a-z]{0,9}$", True),
        ("^[a-z]{0,9}$", "^[a-z:]{0,8}$", True),
        ("^[^a-z]$", "^[^a-z:]$", True),
        ("^[a-z][0-9]$", "^[a-z0-9][0-9]$", False),
    ],
)
def test_a_set_of_characters_may_have_more(old, new, breaks):
    texts = [json.dumps(OLD).replace('"maxLength": 9', f'"pattern": {json.dumps(one)}') for one in (old, new)]
    assert bool(find_breaks(*map(json.loads, texts))) is breaks


def test_the_newest_release_is_compared(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.contract.breaks.RELEASES", tmp_path)
    for version in ("0.9.0", "0.10.0"):
        content = gzip.compress(json.dumps({"version": version}).encode())
        (tmp_path / f"openapi-{version}.json.gz").write_bytes(content)
    assert read_last_release() == {"version": "0.10.0"}
