"""A deprecated operation says so in the document and in every answer."""

import asyncio
from datetime import date

import httpx
import pytest
from fastapi import FastAPI, Response

from service.kit.http.deprecation import deprecate
from service.kit.http.request_queues import RequestQueues
from service.kit.http.web import PublicRoute, add_routes, api_router

PAGE = "/docs/guide/clients.html"


@pytest.fixture
def app():
    router = api_router("/v1/things", tag="things", route_class=PublicRoute)

    @router.get("/old")
    @deprecate(date(2026, 11, 28), sunset=date(2027, 12, 1), page=PAGE)
    def get_old_thing() -> Response:
        return Response("old")

    @router.get("/new")
    def get_new_thing() -> Response:
        return Response("new")

    made = FastAPI()
    made.state.request_queues = RequestQueues()
    add_routes(made, router)
    return made


def get(app, path):
    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path)

    return asyncio.run(ask())


def test_an_answer_has_both_days_and_the_page(app):
    answer = get(app, "/v1/things/old")
    assert answer.text == "old"
    assert answer.headers["deprecation"] == "@1795824000"
    assert answer.headers["sunset"] == "Wed, 01 Dec 2027 00:00:00 GMT"
    assert answer.headers["link"] == f'<{PAGE}>; rel="deprecation"; type="text/html"'


def test_other_operations_say_nothing(app):
    headers = get(app, "/v1/things/new").headers
    assert not {"deprecation", "sunset", "link"} & headers.keys()


def test_the_document_says_it_too(app):
    paths = app.openapi()["paths"]
    assert paths["/v1/things/old"]["get"]["deprecated"] is True
    assert "deprecated" not in paths["/v1/things/new"]["get"]


def test_nothing_is_gone_before_it_is_deprecated():
    with pytest.raises(ValueError, match="deprecated before"):
        deprecate(date(2027, 1, 2), sunset=date(2027, 1, 1), page=PAGE)
