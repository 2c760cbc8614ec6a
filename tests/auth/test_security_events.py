"""What the issuer says of people by itself: signed, for this service, and once as good as twice."""

import json

import pytest

from service.auth.security_events import EVENTS
from tests.applications import bearing
from tests.approvals.deciding import Actor
from tests.auth.issuing import private_key, signed
from tests.auth.test_persons import ANN, MAIL, Holder, people, provider, settings
from tests.prepared import ON_SQLITE

__all__ = ["people", "provider", "settings"]  # fixtures

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

LOGOUT = "http://schemas.openid.net/event/backchannel-logout"
DISABLED = "https://schemas.openid.net/secevent/risc/event-type/account-disabled"
REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
PUSHED = {"Content-Type": "application/secevent+jwt"}


def event(provider, kind, *, key=None, header=None, **claims):
    """A token of one event."""
    payload = {
        "iss": provider.issuer,
        "aud": "ironlaw",
        "iat": provider.now,
        "jti": "one",
        "sub": ANN,
        "events": {kind: {}},
        **claims,
    }
    payload = {name: value for name, value in payload.items() if value is not None}
    header = {"alg": "RS256", "kid": "one", "typ": "secevent+jwt", **(header or {})}
    return signed(
        json.dumps(header).encode(), json.dumps(payload).encode(), key or private_key("RS256"), "RS256"
    )


def push(people, token):
    return people.client.request("POST", "/login/events", content=token, headers=PUSHED)


def opens(*actors):
    return [actor.get("/v1/models").status_code for actor in actors]


@pytest.fixture
def ann(people, provider):
    return Holder(people, provider)


@pytest.fixture
def key(people, ann):
    return Actor(people, by=ann)


def test_signing_out_there_ends_sessions_and_tokens_here(people, provider, ann, key):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    token = event(provider, LOGOUT, header={"typ": "logout+jwt"})
    answer = people.client.request("POST", "/login/events", content=f"logout_token={token}", headers=form)
    assert (answer.status_code, answer.content) == (202, b"")
    assert opens(ann, key) == [401, 200]
    events = Actor(people).get("/v1/audit-events").json()["items"]
    assert {one["subject_kind"] for one in events if one["operation"] == "end_sessions"} == {"service"}


@pytest.mark.parametrize(
    "whom",
    [
        {},
        {"sub": None, "sub_id": {"format": "iss_sub", "iss": "https://issuer.test", "sub": ANN}},
        {"sub": None, "sub_id": {"format": "email", "email": MAIL}},
        {"sub": None, "events": {REVOKED: {"subject": {"user": {"format": "opaque", "id": ANN}}}}},
    ],
)
def test_a_session_that_was_revoked_ends_keys_too(people, provider, ann, key, whom):
    ann.quote()
    assert push(people, event(provider, REVOKED, **whom)).status_code == 202
    assert opens(ann, key) == [401, 401]
    provider.now += 5
    assert opens(Holder(people, provider)) == [200]


def test_who_was_disabled_there_is_disabled_here(people, provider, key):
    for _ in range(2):
        assert push(people, event(provider, DISABLED)).status_code == 202
    provider.now += 5
    assert opens(Holder(people, provider), key) == [401, 401]
    # Whoever is revoked besides stays disabled.
    assert push(people, event(provider, REVOKED)).status_code == 202
    provider.now += 5
    assert opens(Holder(people, provider)) == [401]


def test_it_reaches_every_tenant_that_it_may_concern(people, provider, ann):
    people.tenant("other")
    there = provider.token(sub=ANN, scope="*:*", tenant="other")
    reads = lambda: people.client.get("/v1/models", headers=bearing(there)).status_code  # noqa: E731
    assert push(people, event(provider, REVOKED, tenant="default")).status_code == 202
    assert (opens(ann), reads()) == ([401], 200)
    assert push(people, event(provider, REVOKED)).status_code == 202
    assert reads() == 401


@ON_SQLITE
@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "somebody"},
        {"iss": "https://other.test"},
        {"iat": None},
        {"iat": 2_000_000_000_000},
        {"events": {}},
        {"events": "x"},
        {"sub": None},
        {"sub": None, "sub_id": {"format": "email", "email": 7}},
        {"nonce": "of an ID token"},
        {"header": {"typ": "at+jwt"}},
        {"header": {"alg": "none"}},
        {"header": {"kid": "unknown"}},
        {"key": private_key("RS256", "another's")},
    ],
)
def test_what_is_not_the_issuers_word_for_us_is_refused(people, provider, ann, wrong):
    refused = push(people, event(provider, DISABLED, **wrong))
    assert (refused.status_code, refused.json()["code"]) == (400, "SECURITY_EVENT_REFUSED")
    assert opens(ann) == [200]


@ON_SQLITE
def test_an_access_token_is_no_event(people, ann):
    assert push(people, ann.secret).status_code == 400
    assert push(people, "no token").status_code == 400
    assert opens(ann) == [200]


def test_other_events_are_taken_and_change_nothing(people, provider, ann, key):
    kind = "https://schemas.openid.net/secevent/risc/event-type/account-enabled"
    assert kind not in EVENTS
    assert push(people, event(provider, kind)).status_code == 202
    assert opens(ann, key) == [200, 200]


@ON_SQLITE
def test_other_bodies_are_refused(people):
    answer = people.client.post("/login/events", {"token": "x"})
    assert answer.status_code == 415


@ON_SQLITE
def test_without_an_issuer_there_is_nothing_to_say(callers):
    answer = callers.client.request("POST", "/login/events", content="x", headers=PUSHED)
    assert (answer.status_code, answer.json()["code"]) == (404, "NO_ISSUER")
