"""Bodies from their bytes, errors as problems, the cap on bodies: over a small application."""

import asyncio
import gc
import json
import logging
from enum import StrEnum
from typing import Annotated, Literal

import httpx
import pytest
from fastapi import FastAPI, Path, Query, Request
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from service.kit.http import bodies
from service.kit.http.admission import Admission
from service.kit.http.context import RequestContext
from service.kit.http.html import render_problems_page
from service.kit.http.problems import Conflict, FieldError, Unprocessable, build_anchor, build_pointer
from service.kit.http.request_queues import RequestQueues
from service.kit.http.web import (
    DirectRoutes,
    RawBody,
    add_routes,
    api_router,
    build_route_class,
    install_problem_handlers,
    offloading,
)
from service.kit.memory import MemoryWatch
from service.kit.security.principals import build_permission


class Colour(StrEnum):
    RED = "red"


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Circle(Shape):
    kind: Literal["circle"]
    radius: float


class Square(Shape):
    kind: Literal["square"]
    side: Annotated[int, Field(ge=1, le=2**53 - 1)]


class Drawing(Shape):
    colour: Colour = Colour.RED
    shape: Annotated[Circle | Square, Field(discriminator="kind")]
    points: list[float] = []


router = api_router("/drawings", tag="drawings")


@router.post("")
async def measure(drawing: Drawing, request: Request) -> dict[str, float]:
    match drawing.shape:
        case Circle(radius=radius):
            return {"area": 3 * radius * radius, "path": float(len(request.url.path))}
        case Square(side=side):
            return {"area": 1.0 / (side - 1)}


@router.put("/{number}")
def store(number: Annotated[int, Path(ge=0)], drawing: Drawing, size: Annotated[int, Query()] = 1) -> Drawing:
    if number == 7:
        raise Conflict("seven is taken", FieldError("/number", "TAKEN", "is taken"))
    assert size
    return drawing


@router.put("/kept/{number}")
def keep(number: int, drawing: Drawing, content: RawBody) -> list[int]:
    return [number, len(drawing.points), len(content)]


@router.get("")
def count(colour: Annotated[list[Colour], Query()]) -> int:
    return len(colour)


def application(max_body_bytes):
    app = FastAPI()
    app.add_middleware(DirectRoutes, routes=app.routes, handlers=app.exception_handlers)
    app.add_middleware(
        RequestContext, max_body_bytes=max_body_bytes, hosts=["test"], memory=MemoryWatch(None)
    )
    app.state.admission = Admission(None, requests_per_minute=0)
    app.state.request_queues = RequestQueues()
    install_problem_handlers(app)
    add_routes(app, router)
    return app


@pytest.fixture(scope="module")
def small():
    return application(2000)


def call(app, method, url, **options):
    async def run():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, url, **options)

    return asyncio.run(run())


def post(app, content, **headers):
    headers = {"content-type": "application/json", **headers}
    return call(app, "POST", "/drawings", content=content, headers=headers)


CIRCLE = b'{"shape": {"kind": "circle", "radius": 2}}'


def test_both_ways_of_calling_an_endpoint_validate_alike(small):
    assert post(small, CIRCLE).json() == {"area": 12.0, "path": 9.0}
    stored = call(small, "PUT", "/drawings/1", content=CIRCLE, headers={"content-type": "application/json"})
    assert stored.json()["colour"] == "red"
    bad = CIRCLE.replace(b"2", b'"2"')
    direct = post(small, bad).json()
    solved = call(small, "PUT", "/drawings/1", content=bad, headers={"content-type": "application/json"})
    assert direct["errors"] == solved.json()["errors"]
    assert direct["errors"][0]["pointer"] == "/shape/radius"


@pytest.mark.parametrize(("method", "url"), [("POST", "/drawings"), ("PUT", "/drawings/1")])
def test_a_refused_body_does_not_wait_for_the_collector(small, method, url):
    def list_problems():
        return [each for each in gc.get_objects() if isinstance(each, Unprocessable)]

    gc.collect()
    held_by_others = list_problems()
    gc.disable()
    try:
        bad = CIRCLE.replace(b"2", b'"2"')
        refused = call(small, method, url, content=bad, headers={"content-type": "application/json"})
        assert refused.status_code == 422
        assert list_problems() == held_by_others
    finally:
        gc.enable()


def test_an_endpoint_can_have_the_body_as_it_was_sent(small):
    sent = CIRCLE.replace(b", ", b",\n    ")
    kept = call(small, "PUT", "/drawings/kept/1", content=sent, headers={"content-type": "application/json"})
    assert kept.json() == [1, 0, len(sent)]


def test_a_route_can_need_another_permission():
    needing = build_route_class(build_permission("drawings", "report"))
    reporting = api_router("/drawings", tag="drawings", route_class=needing)

    @reporting.put("/{number}")
    def report(number: int) -> int:
        return number

    assert [route.permission.scope for route in reporting.routes] == ["drawings:report"]
    assert {route.permission.scope for route in router.routes} == {"drawings:read", "drawings:write"}


class TestHostileBodies:
    @pytest.mark.parametrize(
        ("body", "status", "pointer"),
        [
            (b"", 400, ""),
            (b"{", 400, ""),
            (b"\xff\xfe{}", 400, ""),
            (b'{"shape": NaN}', 422, "/shape"),
            (b"NaN", 422, ""),
            (b"null", 422, ""),
            (b"[]", 422, ""),
            (b"true", 422, ""),
            (b'{"shape": {"kind": "circle", "radius": NaN}}', 422, "/shape/radius"),
            (b'{"shape": {"kind": "circle", "radius": Infinity}}', 422, "/shape/radius"),
            (b'{"shape": {"kind": "circle", "radius": 1e999}}', 422, "/shape/radius"),
            (b'{"shape": {"kind": "circle", "radius": true}}', 422, "/shape/radius"),
            (b'{"shape": {"kind": "circle", "radius": "2"}}', 422, "/shape/radius"),
            (b'{"shape": {"kind": "square", "side": 2.5}}', 422, "/shape/side"),
            (b'{"shape": {"kind": "square", "side": true}}', 422, "/shape/side"),
            (b'{"shape": {"kind": "square", "side": 0}}', 422, "/shape/side"),
            (b'{"shape": {"kind": "square", "side": 9007199254740992}}', 422, "/shape/side"),
            (b'{"shape": {"kind": "square", "side": 1' + b"0" * 500 + b"}}", 422, "/shape/side"),
            (b'{"shape": {"kind": "oval"}}', 422, "/shape"),
            (b'{"shape": {"radius": 1}}', 422, "/shape"),
            (b'{"shape": {"kind": "circle"}}', 422, "/shape/radius"),
            (b'{"shape": {"kind": "circle", "radius": 1, "x": 1}}', 422, "/shape/x"),
            (b'{"shape": {"kind": "circle", "radius": 1}, "colour": "blue"}', 422, "/colour"),
            (b'{"shape": {"kind": "circle", "radius": 1}, "colour": null}', 422, "/colour"),
            (b'{"shape": {"kind": "circle", "radius": 1}, "points": [1, 2, "x"]}', 422, "/points/2"),
            (b'{"shape": {"kind": "circle", "radius": 1}, "a/b~c": 1}', 422, "/a~1b~0c"),
            (b'{"shape": {"kind": "circle", "radius": 1}, "\\u0000": 1}', 422, "/\x00"),
            (b'{"shape": ' + b"[" * 900 + b"]" * 900 + b"}", 400, ""),
        ],
    )
    def test_each_names_its_field(self, small, body, status, pointer):
        response = post(small, body)
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["errors"][0]["pointer"] == pointer

    def test_nothing_that_was_sent_comes_back(self, small):
        sent = "correct-horse-battery-staple"
        for body in (
            {"shape": {"kind": sent}},
            {"shape": {"kind": "circle", "radius": sent}},
            {"shape": sent},
            {"shape": {"kind": "circle", "radius": 1}, "colour": sent},
            {"shape": {"kind": "circle", "radius": 1}, "points": sent},
        ):
            assert sent not in post(small, json.dumps(body)).text

    def test_errors_are_counted_out(self, small):
        body = {"shape": {"kind": "circle", "radius": 1}, "points": ["x"] * 100}
        assert len(post(small, json.dumps(body)).json()["errors"]) == 20

    @given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
    def test_no_bytes_are_a_defect_of_ours(self, small, body):
        assert post(small, body).status_code in (400, 422)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
            lambda inner: (
                st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
            ),
            max_leaves=15,
        )
    )
    def test_no_json_is_a_defect_of_ours(self, small, value):
        body = {"shape": value, "points": value}
        assert post(small, json.dumps(body)).status_code == 422

    def test_surrogates_are_refused_and_not_echoed(self, small):
        response = post(small, b'{"shape": {"kind": "\\ud800", "radius": 1}}')
        assert response.status_code in (400, 422)
        assert response.json()["errors"]


class TestMediaTypeAndSize:
    @pytest.mark.parametrize(
        "kind", ["application/json; charset=utf-8", "Application/JSON", "application/json"]
    )
    def test_json_by_any_spelling(self, small, kind):
        assert post(small, CIRCLE, **{"content-type": kind}).status_code == 200

    @pytest.mark.parametrize("kind", ["text/plain", "", "application/xml", "application/jsonx"])
    def test_other_types_are_refused(self, small, kind):
        response = post(small, CIRCLE, **{"content-type": kind})
        assert (response.status_code, response.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")

    def test_a_large_body_is_refused_by_its_length(self, small):
        response = post(small, b" " * 2001 + CIRCLE)
        assert (response.status_code, response.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
        assert post(small, b" " * (2000 - len(CIRCLE)) + CIRCLE).status_code == 200

    @pytest.mark.parametrize("url", ["POST /drawings", "PUT /drawings/1"])
    def test_a_large_body_in_chunks_is_refused_while_it_comes(self, small, url):
        async def chunks():
            for _ in range(50):
                yield b" " * 100

        method, path = url.split()
        headers = {"content-type": "application/json"}
        response = call(small, method, path, content=chunks(), headers=headers)
        assert (response.status_code, response.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")

    @pytest.mark.parametrize(
        "headers",
        [
            {"content-type": "application/json; charset=latin-1"},
            {"content-encoding": "gzip"},
            {"transfer-encoding": "gzip, chunked"},
        ],
    )
    def test_a_body_in_another_coding_is_refused(self, small, headers):
        assert post(small, CIRCLE, **headers).status_code == 415

    @pytest.mark.parametrize("url", ["POST /drawings", "PUT /drawings/1"])
    def test_a_body_that_does_not_come_is_not_waited_for(self, small, url, monkeypatch):
        async def chunks():
            yield b"{"
            await asyncio.sleep(5)

        monkeypatch.setattr(bodies, "BODY_SECONDS", 0.01)
        method, path = url.split()
        headers = {"content-type": "application/json"}
        response = call(small, method, path, content=chunks(), headers=headers)
        assert (response.status_code, response.json()["code"]) == (408, "REQUEST_TIMEOUT")
        assert response.headers["connection"] == "close"

    def test_a_body_of_very_many_values_is_refused(self, monkeypatch):
        monkeypatch.setattr(offloading, "LARGE_BODY_BYTES", 2**20)
        large = application(2**20)
        body = {"shape": {"kind": "circle", "radius": 1}, "points": [1] * (bodies.MOST_VALUES - 10)}
        assert post(large, json.dumps(body)).status_code == 200
        body["points"] += [1] * 20
        assert post(large, json.dumps(body)).status_code == 413

    def test_very_many_errors_are_not_listed(self):
        members = ",".join(f'"{number:x}":1' for number in range(2001))
        document = post(application(2**16), b"{" + members.encode() + b"}").json()
        assert [error["code"] for error in document["errors"]] == ["TOO_MANY_ERRORS"]


class TestMembersGivenTwice:
    TWICE = b'{"shape": {"kind": "circle", "radius": 2, "radius": 3}, "points": [1], "points": []}'

    def test_are_refused_in_what_is_stored(self, small):
        headers = {"content-type": "application/json"}
        refused = call(small, "PUT", "/drawings/1", content=self.TWICE, headers=headers)
        assert refused.status_code == 422
        assert [error["pointer"] for error in refused.json()["errors"]] == ["/shape/radius", "/points"]

    def test_count_the_last_time_in_what_is_answered(self, small):
        assert post(small, self.TWICE).json()["area"] == 27.0


class TestQueries:
    @pytest.mark.parametrize("url", ["POST /drawings?a/b=1", "PUT /drawings/1?size=1&a/b=1"])
    def test_unknown_parameters_are_refused(self, small, url):
        method, path = url.split()
        headers = {"content-type": "application/json"}
        response = call(small, method, path, content=CIRCLE, headers=headers)
        assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/query/a~1b")

    def test_a_single_parameter_is_given_once(self, small):
        headers = {"content-type": "application/json"}
        response = call(small, "PUT", "/drawings/1?size=1&size=1", content=CIRCLE, headers=headers)
        assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "REPEATED")

    def test_one_that_takes_a_list_may_be_repeated(self, small):
        assert call(small, "GET", "/drawings?colour=red&colour=red").json() == 2

    def test_another_method_is_told_first(self, small):
        assert call(small, "DELETE", "/drawings/1?x=1").status_code == 405


class TestProblems:
    def test_unknown_addresses_and_methods(self, small):
        assert call(small, "GET", "/nothing").json()["code"] == "NOT_FOUND"
        refused = call(small, "DELETE", "/drawings/1")
        assert (refused.status_code, refused.headers["allow"]) == (405, "PUT")

    def test_an_expected_problem_has_its_fields(self, small):
        headers = {"content-type": "application/json"}
        response = call(small, "PUT", "/drawings/7", content=CIRCLE, headers=headers)
        document = response.json()
        assert document == {
            "type": "/docs/problems#conflict",
            "title": Conflict.title,
            "status": 409,
            "detail": "seven is taken",
            "instance": "/drawings/7",
            "code": "CONFLICT",
            "request_id": response.headers["request-id"],
            "errors": [{"pointer": "/number", "code": "TAKEN", "detail": "is taken"}],
        }

    def test_parameters_are_named(self, small):
        headers = {"content-type": "application/json"}
        path = call(small, "PUT", "/drawings/x", content=CIRCLE, headers=headers)
        assert path.json()["errors"][0]["pointer"] == "/path/number"
        query = call(small, "PUT", "/drawings/1?size=x", content=CIRCLE, headers=headers)
        assert query.json()["errors"][0]["pointer"] == "/query/size"

    def test_a_defect_says_nothing_but_its_id(self, small, caplog):
        with caplog.at_level(logging.ERROR):
            response = post(small, b'{"shape": {"kind": "square", "side": 1}}')
        document = response.json()
        assert (response.status_code, document["code"]) == (500, "INTERNAL_ERROR")
        assert "division" not in response.text
        assert response.headers["request-id"] == document["request_id"]
        assert document["request_id"] in caplog.text
        assert "ZeroDivisionError" in caplog.text

    def test_every_response_has_an_id_of_its_own(self, small):
        ids = {post(small, CIRCLE).headers["request-id"] for _ in range(3)}
        assert len(ids) == 3

    def test_the_page_has_every_anchor(self):
        assert f'id="{build_anchor(Conflict).partition("#")[2]}"' in render_problems_page()


def test_pointers_are_escaped_and_cut():
    assert build_pointer(["a/b", "c~d", 3]) == "/a~1b/c~0d/3"
    assert len(build_pointer(["x" * 10_000])) == 101
