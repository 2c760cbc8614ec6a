"""What every request gets: admission, limits, hosts, headers, a log line and a count."""

import asyncio
import io
import json
from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI, Request
from prometheus_client import REGISTRY

from service.app.application import create_app
from service.kit.http import admission
from service.kit.http.admission import REFUSALS_PER_MINUTE, Admission, build_unauthorized
from service.kit.http.context import RequestContext
from service.kit.http.problems import TooManyRequests
from service.kit.http.request_queues import RequestQueues
from service.kit.http.web import add_routes, api_router, install_problem_handlers
from service.kit.logs import configure_logs
from service.kit.memory import MemoryWatch
from service.kit.security.principals import Principal, PrincipalKind
from tests.applications import OPEN, quiet_logs

SECRET = "correct-horse-battery-staple"  # noqa: S105
LIMIT = 5
router = api_router("/things", tag="things")


@router.get("")
async def list_things(request: Request) -> dict[str, str]:
    return {"path": request.url.path}


@router.delete("")
async def break_things() -> None:
    raise RuntimeError(SECRET)


async def authenticate(credential):
    if credential == SECRET:
        raise build_unauthorized()
    return Principal(PrincipalKind.API_KEY, credential, "t", frozenset({"things:*"}))


def application(*, limit=0, hosts=("test", "*.never"), authenticated=True):
    app = FastAPI()
    app.add_middleware(RequestContext, max_body_bytes=2000, hosts=hosts, memory=MemoryWatch(None))
    app.state.admission = Admission(authenticate if authenticated else None, requests_per_minute=limit)
    app.state.request_queues = RequestQueues()
    install_problem_handlers(app)
    add_routes(app, router)

    @app.get("/livez")
    async def livez() -> None:
        pass

    return app


def call(app, method="GET", url="/things", **headers):
    async def send():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, url, headers=headers)

    return asyncio.run(send())


def as_caller(app, name, **headers):
    return call(app, authorization=f"Bearer {name}", **headers)


def count_refusals(code):
    return REGISTRY.get_sample_value("ironlaw_requests_refused_total", {"code": code}) or 0


class TestRateLimit:
    def test_a_caller_is_told_how_many_are_left(self):
        app = application(limit=LIMIT)
        answer = as_caller(app, "ann")
        assert answer.headers["ratelimit-policy"] == f'"default";q={LIMIT};w=60'
        assert answer.headers["ratelimit"].startswith(f'"default";r={LIMIT - 1};t=')
        assert 0 < int(answer.headers["ratelimit"].rpartition("=")[2]) <= 60

    def test_one_too_many_is_refused_until_the_window_ends(self):
        app = application(limit=LIMIT)
        before = count_refusals("TOO_MANY_REQUESTS")
        statuses = [as_caller(app, "ann").status_code for _ in range(LIMIT + 2)]
        assert statuses == [200] * LIMIT + [429] * 2
        assert count_refusals("TOO_MANY_REQUESTS") == before + 2
        refused = as_caller(app, "ann")
        assert refused.json()["code"] == "TOO_MANY_REQUESTS"
        assert refused.headers["ratelimit"].startswith('"default";r=0;t=')
        assert 0 < int(refused.headers["retry-after"]) <= 60

    def test_callers_do_not_share_a_limit(self):
        app = application(limit=LIMIT)
        for _ in range(LIMIT):
            as_caller(app, "ann")
        assert as_caller(app, "bob").status_code == 200

    @pytest.mark.parametrize("step_seconds", [3600, -3600])
    def test_a_clock_that_is_set_gives_nothing_back(self, monkeypatch, step_seconds):
        time = SimpleNamespace(time=lambda: 1_700_000_000.0, monotonic=lambda: 100.0)
        monkeypatch.setattr(admission, "time", time)
        limit = admission.RateLimit(1)
        limit.count_request("ann")
        time.time = lambda: 1_700_000_000.0 + step_seconds
        with pytest.raises(TooManyRequests):
            limit.count_request("ann")

    def test_guessing_is_limited_by_address(self):
        app = application()
        statuses = [as_caller(app, SECRET).status_code for _ in range(REFUSALS_PER_MINUTE + 1)]
        assert set(statuses[:-1]) == {401}
        assert statuses[-1] == 429
        assert as_caller(app, "ann").status_code == 200

    def test_without_a_limit_nothing_is_said(self):
        assert "ratelimit" not in as_caller(application(), "ann").headers


class TestHosts:
    @pytest.mark.parametrize("host", ["test", "test:8000", "TEST", "Test:1"])
    def test_a_host_on_the_list(self, host):
        assert as_caller(application(), "ann", host=host).status_code == 200

    @pytest.mark.parametrize(
        "host",
        ["", "evil.example", "test.evil.example", "eviltest", "test:80:80", "test@evil", "a.never", "[::1]"],
    )
    def test_any_other(self, host):
        answer = as_caller(application(), "ann", host=host)
        assert (answer.status_code, answer.json()["code"]) == (421, "HOST_NOT_ALLOWED")
        assert "evil" not in answer.text

    def test_an_address_in_brackets(self):
        assert as_caller(application(hosts=("[::1]",)), "ann", host="[::1]:8000").status_code == 200

    def test_probes_come_by_address(self):
        assert call(application(), url="/livez", host="10.1.2.3:8000").status_code == 200

    def test_any_host(self):
        assert as_caller(application(hosts=("*",)), "ann", host="whatever").status_code == 200


class TestOrigin:
    @pytest.mark.parametrize(
        "origin", ["https://evil.example", "null", "http://test:81", "", "https://eviltest"]
    )
    def test_a_page_of_another_site_cannot_write(self, origin):
        app = application(authenticated=False)
        answer = call(app, "DELETE", host="test", origin=origin)
        assert (answer.status_code, answer.json()["code"]) == (403, "ORIGIN_NOT_ALLOWED")
        assert call(app, "GET", host="test", origin=origin).status_code == 200

    @pytest.mark.parametrize("site", ["cross-site", "same-site", "", "other"])
    def test_nor_can_one_of_which_the_browser_says_so(self, site):
        """Another scheme of our host, for one: its origin names the host too."""
        app, own = application(authenticated=False), {"host": "test", "origin": "http://test"}
        answer = call(app, "DELETE", **own, **{"sec-fetch-site": site})
        assert (answer.status_code, answer.json()["code"]) == (403, "ORIGIN_NOT_ALLOWED")
        assert call(app, "GET", **own, **{"sec-fetch-site": site}).status_code == 200

    @pytest.mark.parametrize("site", [{}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}])
    def test_our_own_page_can(self, site):
        app = application(authenticated=False)
        assert call(app, "DELETE", host="test:8000", origin="http://test:8000", **site).status_code == 500


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [("GET", "/things", 200), ("GET", "/nothing", 404), ("DELETE", "/things", 500), ("POST", "/things", 405)],
)
def test_every_answer_has_the_headers_of_security(method, url, status):
    answer = call(application(), method, url, authorization="Bearer ann")
    assert answer.status_code == status
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert len(answer.headers["request-id"]) == 16


@pytest.mark.parametrize(
    ("public_url", "told"),
    [
        ("https://plan.example", "max-age=31536000"),
        ("http://127.0.0.1:8000", None),
        ("", None),
    ],
)
def test_browsers_stay_on_tls_where_that_is_the_address_of_the_service(public_url, told):
    app = create_app(OPEN.model_copy(update={"public_url": public_url}))
    for url in ("/livez", "/nothing"):
        assert call(app, url=url).headers.get("strict-transport-security") == told


class TestLog:
    @pytest.fixture
    def lines(self):
        stream = io.TextIOWrapper(io.BytesIO(), write_through=True)
        configure_logs(as_json=True, stream=stream)

        def read():
            return [json.loads(line) for line in stream.buffer.getvalue().splitlines()]

        yield read
        quiet_logs()

    def test_a_line_for_each_request_with_who_and_what(self, lines):
        answer = as_caller(application(), "ann")
        (line,) = lines()
        assert line["request_id"] == answer.headers["request-id"]
        wanted = {"event": "request", "operation": "list_things", "status": 200, "method": "GET"}
        assert wanted.items() <= line.items()
        assert (line["tenant_id"], line["subject_id"]) == ("t", "ann")
        assert 0 <= line["seconds"] < 1

    def test_a_defect_has_the_ids_too(self, lines):
        answer = call(application(), "DELETE", authorization="Bearer ann")
        defect, request = lines()
        assert "unhandled error" in defect["event"]
        assert "RuntimeError" in defect["exception"]
        assert defect["request_id"] == request["request_id"] == answer.headers["request-id"]
        assert defect["subject_id"] == "ann"

    def test_no_credential_query_or_path_is_logged(self, lines):
        app = application()
        call(app, url=f"/things?{SECRET}=1", authorization="Bearer ann")
        call(app, url=f"/{SECRET}", authorization="Bearer ann")
        as_caller(app, SECRET)
        call(app, authorization=f"Basic {SECRET}")
        written = lines()
        assert [line["status"] for line in written] == [422, 404, 401, 401]
        assert [line["code"] for line in written][2:] == ["CREDENTIALS_REQUIRED"] * 2
        assert SECRET not in json.dumps(written)

    def test_probes_are_not_logged(self, lines):
        call(application(), url="/livez")
        assert lines() == []


def test_requests_are_counted_by_operation():
    def counted(status):
        labels = {"operation": "list_things", "status": status}
        return REGISTRY.get_sample_value("ironlaw_requests_total", labels) or 0

    app = application()
    before = counted("2xx"), counted("4xx")
    as_caller(app, "ann")
    call(app)
    assert (counted("2xx"), counted("4xx")) == (before[0] + 1, before[1] + 1)
    seconds = REGISTRY.get_sample_value("ironlaw_request_seconds_count", {"operation": "list_things"})
    assert seconds
    assert REGISTRY.get_sample_value("ironlaw_requests_in_progress") == 0
