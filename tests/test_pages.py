"""Every page of the service, each with its problems and redirects: the same headers on all."""

import re

import pytest
from fastapi import Response
from fastapi.routing import APIRoute

from service.approvals.pages import router as pages_of_approvals
from service.kit.http.html import PageRoute, page_headers
from tests.applications import TENANT, Callers, attach, bearing, store_quote
from tests.approvals.reading import Reader
from tests.conftest import Client

POLICY = "content-security-policy"
ALL = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
READERS = {"/docs", "/docs/operations/estimate_memory", "/docs/shapes/Problem"}
"""They run a script of this host, and browsers keep them."""
KEPT = {*READERS, "/"}
ID = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"


@pytest.fixture(scope="module")
def client(app, databases_of):
    """A service that nobody can sign in to; sessions are made by tests."""
    maker = databases_of("sqlite")
    attach(app, maker.loaded(), TENANT)
    client = Client(app)
    yield client
    client.close()
    maker.dispose()


def pages(app):
    """Every route that answers with pages, and the methods that it takes."""
    own = [route for route in app.routes if isinstance(route, PageRoute)]
    others = [
        route
        for route in app.routes
        if isinstance(route, APIRoute)
        and route.path in {"/docs/problems", "/redoc", "/v1/quotes/{id:name}/report"}
    ]
    assert len(own) >= 10
    assert len(others) == 3
    return [(method, route.path) for route in own + others for method in sorted(route.methods)]


def check(answer, path=""):
    """That an answer has what every page has."""
    is_page = answer.headers.get("content-type") == "text/html; charset=utf-8"
    assert is_page or answer.status_code in (303, 308), (path, answer.status_code)
    has_scripts = path in {*READERS, "/ask"} and answer.status_code == 200
    wanted = {name.lower(): value for name, value in page_headers(has_scripts=has_scripts).items()} | ALL
    if path in KEPT and answer.status_code == 200:
        wanted["cache-control"] = "no-cache"
    assert {name: answer.headers.get(name) for name in wanted} == wanted, path


def test_every_page_says_the_same_to_everybody(client):
    key = bearing(Callers(client.app, client.app.state.database).key("*:*"))
    quote_id = store_quote(client.app.state.database)["id"]
    statuses = set()
    for method, template in pages(client.app):
        path = re.sub("{id:name}", quote_id if "quotes" in template else ID, template)
        path = path.replace("{token:name}", "x")
        path = path.replace("{name:name}", "Problem" if "shapes" in path else "estimate_memory")
        if path.startswith("/v1"):
            check(client.get(path, headers=key), path)
            continue
        ada, eve = Reader(client, "ada"), Reader(client, "eve", scopes=[])
        for reader in (Reader(client), ada, eve):
            reader.headers["accept"] = "text/html"
            answer = reader.get(path) if method == "GET" else reader.send(path, {"form_token": "0" * 32})
            check(answer, path)
            statuses.add(answer.status_code)
        if path not in {"/docs/problems", "/redoc"}:
            check(client.request("PUT", path), path)
            check(client.get(path, params={"unknown": "1"}), path)
    assert {200, 401, 403, 404} <= statuses


def test_so_do_pages_that_fail(client, monkeypatch):
    """What went wrong on our side is told as a page too, and as the same page."""

    def fail(*_: object) -> Response:
        raise RuntimeError("a secret")

    monkeypatch.setattr(pages_of_approvals, "render_inbox", fail)
    answer = Reader(client, "ada").get("/approvals")
    assert answer.status_code == 500
    assert "a secret" not in answer.text
    check(answer)


def test_so_do_redirects_of_signing_in(client, monkeypatch):
    monkeypatch.setattr(client.app.state.visitors, "_has_login", True)
    sent = client.get("/approvals")
    assert sent.status_code == 303
    check(sent)


def test_nothing_inline_is_allowed(client):
    for path in ("/", "/docs/problems", "/approvals", "/decide/x", *READERS):
        policy = client.get(path, headers={"accept": "text/html"}).headers[POLICY]
        assert "unsafe" not in policy
        assert ("script-src" in policy) == (path in READERS)
