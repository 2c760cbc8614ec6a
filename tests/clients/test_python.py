"""The Python client: what it sends, when it sends it again, and what it raises; both clients do the same."""

import base64
import hashlib
import inspect
import json
import time
from datetime import UTC, datetime

import httpx
import pytest
from standardwebhooks import Webhook

from tests.clients.package import NAME, Async, Sync, client
from tests.contract.test_document import OPERATIONS

URL = "http://ironlaw.test"
SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"


class Service:
    """Answers in order, and keeps what was asked and how long was slept."""

    def __init__(self, *answers):
        self.requests, self.pauses, self._answers = [], [], list(answers)

    def answer(self, request):
        self.requests.append(request)
        given = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(given, Exception):
            raise given
        answer = given(request) if callable(given) else given
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def keys(self):
        return [request.headers.get("Idempotency-Key") for request in self.requests]


@pytest.fixture(params=[Sync, Async], ids=["sync", "async"])
def asking(request, monkeypatch):
    """Makes a client of answers; nothing sleeps."""
    made = []

    def make(*answers, **options):
        service = Service(*answers)

        async def rest(seconds):
            service.pauses.append(seconds)

        monkeypatch.setattr(f"{NAME}.sync.time.sleep", service.pauses.append)
        monkeypatch.setattr(f"{NAME}.aio.asyncio.sleep", rest)
        made.append(request.param(transport=httpx.MockTransport(service.answer), **options))
        return made[-1], service

    yield make
    for each in made:
        each.close()


def problem(status, code, headers=None, errors=()):
    details = {"status": status, "code": code, "detail": "No.", "errors": list(errors), "request_id": "r1"}
    kind = {"Content-Type": "application/problem+json"}
    return httpx.Response(status, headers={**kind, **(headers or {})}, content=json.dumps(details))


def page(ids, token):
    return httpx.Response(200, json={"items": [{"id": each} for each in ids], "next_page_token": token})


DONE = httpx.Response(201, json={"id": "one"}, headers={"ETag": '"1"', "Catalog-Revision": "7"})
BUSY = problem(503, "UNAVAILABLE", {"Retry-After": "3"})


def test_every_operation_of_the_document_is_reachable(asking):
    def answer(request):
        return page([], None) if request.method == "GET" else httpx.Response(204)

    asked, service = asking(answer)
    reached = set()
    for resource in public(asked.client):
        for name, method in inspect.getmembers(resource, inspect.ismethod):
            if name.startswith("_") or name == "wait":
                continue
            call(asked, method)
            request = service.requests[-1]
            reached.add((request.method, request.url.path))
    documented = {(method.upper(), path.replace("{id}", "the-id")) for method, path, _ in OPERATIONS.values()}
    assert reached == documented


def public(of):
    names = [name for name, kind in inspect.getmembers(type(of)) if isinstance(kind, property)]
    return [getattr(of, name) for name in names]


def call(asked, method):
    parameters = inspect.signature(method).parameters.values()
    needed = {each.name: f"the-{each.name}" for each in parameters if each.default is each.empty}
    answer = method(**needed)
    if hasattr(answer, "pages"):
        asked.rows(answer)
    else:
        asked.run(answer)


def test_a_write_is_sent_again_with_its_key_after_the_time_that_the_service_says(asking):
    asked, service = asking(BUSY, DONE)
    assert asked.run(asked.client.offers.create({"id": "one"})) == {"id": "one"}
    first, second = service.keys()
    assert first == second
    assert len(first) == 32
    assert service.pauses == [3.0]


def test_each_write_has_a_key_of_its_own_unless_one_is_given(asking):
    asked, service = asking(DONE)
    for options in ({}, {}, {"idempotency_key": "mine"}):
        asked.run(asked.client.offers.create({"id": "one"}, **options))
    one, other, given = service.keys()
    assert one != other
    assert given == "mine"


def test_a_lost_answer_is_asked_for_again_after_longer_and_longer_pauses(asking):
    lost = httpx.ReadError("connection reset")
    asked, service = asking(lost, lost, lost, httpx.Response(200, json={"fits": True}))
    assert asked.run(asked.client.estimates.memory({})) == {"fits": True}
    assert [0.5 * 0.5 * 2**each <= pause <= 0.5 * 2**each for each, pause in enumerate(service.pauses)] == [
        True
    ] * 3


def test_what_is_never_answered_says_so(asking):
    asked, service = asking(httpx.ConnectError("refused"), retries=2)
    with pytest.raises(client.ServiceUnreachable, match=r"http://ironlaw\.test: refused") as raised:
        asked.run(asked.client.models.get("one"))
    assert isinstance(raised.value.__cause__, httpx.ConnectError)
    assert len(service.requests) == 3


def test_a_write_that_takes_no_key_is_sent_once(asking):
    asked, service = asking(BUSY)
    with pytest.raises(client.ServiceUnavailable):
        asked.run(asked.client.leases.claim({}))
    with pytest.raises(client.ServiceUnavailable):
        asked.run(asked.client.request("POST", "/v1/anything", body={}))
    assert len(service.requests) == 2


def test_a_key_whose_first_request_is_still_answered_is_waited_for(asking):
    in_use = problem(409, "IDEMPOTENCY_KEY_IN_USE", {"Retry-After": "1"})
    asked, service = asking(in_use, DONE)
    asked.run(asked.client.offers.create({"id": "one"}))
    assert service.pauses == [1.0]


def test_a_pause_longer_than_the_caller_allows_is_not_slept(asking):
    asked, service = asking(problem(429, "TOO_MANY_REQUESTS", {"Retry-After": "90"}))
    with pytest.raises(client.RateLimited) as raised:
        asked.run(asked.client.models.get("one"))
    assert raised.value.retry_after_seconds == 90
    assert service.pauses == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "InvalidRequest"),
        (401, "Unauthenticated"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "Conflict"),
        (412, "VersionConflict"),
        (422, "InvalidRequest"),
        (500, "Problem"),
    ],
)
def test_a_refusal_is_raised_by_its_kind(asking, status, kind):
    errors = [{"pointer": "/model/id", "code": "UNKNOWN_REFERENCE", "detail": "No such row."}]
    asked, service = asking(problem(status, "SOME_CODE", errors=errors))
    with pytest.raises(client.IronlawError) as raised:
        asked.run(asked.client.models.get("one"))
    refused = raised.value
    assert type(refused) is getattr(client, kind)
    assert (refused.status, refused.code, refused.errors) == (status, "SOME_CODE", errors)
    assert str(refused) == f"{status} SOME_CODE: No.\n  /model/id: No such row."
    assert len(service.requests) == 1


def test_a_proxy_that_says_nothing_of_a_problem_is_named_by_its_status(asking):
    asked, _ = asking(httpx.Response(502, html="<p>down</p>"), retries=0)
    with pytest.raises(client.ServiceUnavailable, match="502 UNKNOWN: Bad Gateway"):
        asked.run(asked.client.models.get("one"))


def test_a_list_goes_on_until_its_last_page(asking):
    asked, service = asking(page(["a", "b"], "more"), page(["c"], None))
    listed = asked.client.models.list(q="llama")
    assert [row["id"] for row in asked.rows(listed)] == ["a", "b", "c"]
    assert [str(request.url.query, "ascii") for request in service.requests] == [
        "q=llama",
        "page_token=more&q=llama",
    ]


def test_a_filter_may_have_several_values(asking):
    asked, service = asking(page([], None))
    asked.rows(asked.client.offers.list(accelerator_id=["h100-sxm", "h200-sxm"], page_size=5))
    assert service.requests[0].url.query == b"page_size=5&accelerator_id=h100-sxm&accelerator_id=h200-sxm"


def test_a_wait_ends_with_the_state(asking):
    running, done = ({"id": "one", "state": state} for state in ("running", "done"))
    asked, service = asking(
        httpx.Response(200, json=running),
        httpx.Response(200, json=running, headers={"Retry-After": "2"}),
        httpx.Response(200, json=done),
    )
    assert asked.run(asked.client.plans.wait("one")) == done
    assert service.pauses == [0.25, 2.0]
    assert {request.url.path for request in service.requests} == {"/v1/plans/one"}


def test_a_wait_ends_with_its_time(asking):
    asked, _ = asking(httpx.Response(200, json={"state": "pending"}))
    with pytest.raises(client.WaitTimeout) as raised:
        asked.run(asked.client.approvals.wait("one", timeout_seconds=0))
    assert raised.value.state == "pending"


def test_estimates_see_the_writes_of_their_client(asking):
    asked, service = asking(DONE)
    asked.run(asked.client.estimates.memory({}))
    asked.run(asked.client.offers.create({"id": "one"}))
    asked.run(asked.client.estimates.memory({}))
    asked.run(asked.client.estimates.memory({}, catalog_revision=3))
    revisions = [request.headers.get("Catalog-Revision") for request in service.requests]
    assert revisions == [None, None, "7", "3"]


def test_a_change_is_based_on_the_version_that_was_read(asking):
    asked, service = asking(DONE, httpx.Response(204))
    row = asked.run(asked.client.offers.get("a/b"))
    assert asked.run(asked.client.offers.delete("a/b", if_match=client.etag_of(row))) is None
    assert service.requests[1].headers["If-Match"] == '"1"'
    assert service.requests[1].url.raw_path == b"/v1/offers/a%2Fb"
    assert json.dumps(row) == '{"id": "one"}'
    with pytest.raises(TypeError):
        client.etag_of({})


def test_a_body_that_needs_a_digest_has_that_of_its_bytes(asking):
    asked, service = asking(DONE)
    asked.run(asked.client.benchmark_results.report("one", {"result_id": "one"}))
    (request,) = service.requests
    digest = base64.b64encode(hashlib.sha256(request.content).digest()).decode()
    assert request.headers["Content-Digest"] == f"sha-256=:{digest}:"


def test_tables_are_text_or_bytes(asking):
    csv = httpx.Response(200, text="a,b\n", headers={"Content-Type": "text/csv"})
    parquet = httpx.Response(200, content=b"PAR1", headers={"Content-Type": "application/vnd.apache.parquet"})
    asked, _ = asking(csv, parquet)
    assert asked.run(asked.client.benchmark_results.export()) == "a,b\n"
    assert asked.run(asked.client.benchmark_results.export(format="parquet")) == b"PAR1"


def test_the_address_and_the_key_are_those_of_the_environment(asking, monkeypatch):
    monkeypatch.setenv("IRONLAW_URL", "http://elsewhere.test/ironlaw/")
    monkeypatch.setenv("IRONLAW_API_KEY", "key")
    asked, service = asking(DONE, url=None)
    asked.run(asked.client.models.get("one"))
    (request,) = service.requests
    assert str(request.url) == "http://elsewhere.test/ironlaw/v1/models/one"
    assert request.headers["Authorization"] == "Bearer key"


class TestWebhooks:
    """Messages are signed by another implementation of the standard."""

    BODY = b'{"type": "webhook.test", "timestamp": "2026-11-20T12:00:00Z", "data": {}}'

    def headers(self, secret=SECRET, sent_at=None):
        seconds = time.time() if sent_at is None else sent_at
        signed = Webhook(secret).sign("msg_1", datetime.fromtimestamp(seconds, UTC), self.BODY.decode())
        return {
            "Webhook-Id": "msg_1",
            "Webhook-Timestamp": str(int(seconds)),
            "Webhook-Signature": f"v1,{'A' * 43}= {signed}",
        }

    def test_a_signed_message_is_read(self):
        assert client.verify_webhook(SECRET, self.headers(), self.BODY)["type"] == "webhook.test"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"body": b"{}"},
            {"secret": f"whsec_{base64.b64encode(bytes(32)).decode()}"},
            {"headers": {}},
            {"headers": {"webhook-timestamp": "9" * 400}},
        ],
        ids=["body", "secret", "unsigned", "long"],
    )
    def test_anything_else_is_refused(self, wrong):
        given = {"secret": SECRET, "headers": self.headers(), "body": self.BODY, **wrong}
        with pytest.raises(client.InvalidSignature):
            client.verify_webhook(**given)

    def test_an_old_message_is_refused(self):
        with pytest.raises(client.InvalidSignature, match="too far from now"):
            client.verify_webhook(SECRET, self.headers(sent_at=time.time() - 301), self.BODY)
