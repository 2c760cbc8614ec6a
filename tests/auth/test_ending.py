"""Sessions that are ended before their time: by whom, for whom, and how fast every process knows."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from service.auth import session_revocation
from service.auth.service import ApiKeys, LiveKeys
from service.auth.session_revocation import SESSION_SECONDS, delete_expired
from service.auth.tables import EndedSessionRow
from service.kit.clock import now
from service.kit.security.principals import Principal, PrincipalKind
from tests.applications import KEYRING, bearing
from tests.approvals.reading import Reader
from tests.prepared import ON_SQLITE


@pytest.fixture
def admin(callers):
    return bearing(callers.key("sessions:write", "audit-events:read"))


@pytest.fixture
def ada(callers):
    return Reader(callers.client, "ada")


def reads(reader):
    """Whether a session opens pages; nobody can sign in here."""
    status = reader.get("/approvals").status_code
    assert status in (200, 401)
    return status == 200


def end(callers, headers, subject_id="ada", **options):
    return callers.client.post("/v1/sessions:end", {"subject_id": subject_id}, headers=headers, **options)


def test_all_of_a_person_end_and_nobody_elses(callers, admin, ada):
    again, bob = Reader(callers.client, "ada"), Reader(callers.client, "bob")
    other = Reader(callers.client, "ada", tenant=callers.tenant("other"))
    assert all(reads(each) for each in (ada, again, bob, other))
    assert end(callers, admin).status_code == 200
    assert [reads(each) for each in (ada, again, bob, other)] == [False, False, True, True]
    assert reads(Reader(callers.client, "ada"))


def test_ended_twice_the_later_time_counts(callers, admin):
    first = end(callers, admin).json()
    ada = Reader(callers.client, "ada")
    assert reads(ada)
    second = end(callers, admin).json()
    assert (second["id"], second["ended_at"] > first["ended_at"]) == (first["id"], True)
    assert not reads(ada)


def test_no_clock_decides_which_sessions_have_ended(callers, admin, ada, monkeypatch):
    visitors = callers.client.app.state.visitors
    ahead = lambda: now() + timedelta(seconds=30)  # noqa: E731
    monkeypatch.setattr("service.auth.sessions.now", ahead)
    begun_ahead = Reader(callers.client, "ada")
    end(callers, admin)
    assert not reads(begun_ahead)
    monkeypatch.undo()
    monkeypatch.setattr(session_revocation, "now", ahead)
    end(callers, admin)
    monkeypatch.undo()
    visitors.check_may_begin(Principal(PrincipalKind.TOKEN, "ada", "default", frozenset()))
    assert not reads(ada)
    assert reads(Reader(callers.client, "ada"))


def test_a_session_of_the_version_before_ends_too(callers, admin):
    """It has no generation."""
    visitors = callers.client.app.state.visitors
    old = Reader(callers.client, "ada")
    sealed = visitors._sealed.seal_value(["a" * 32, now().timestamp(), "ada", "default", [], ""])
    old.headers["Cookie"] = f"ironlaw-session={sealed}"
    status = old.get("/approvals").status_code
    assert status != 401
    end(callers, admin)
    assert old.get("/approvals").status_code == 401


def test_only_asked_nothing_ends(callers, admin, ada):
    told = end(callers, admin, params={"validate_only": "true"}).json()
    assert reads(ada)
    assert told["id"] == end(callers, admin, "ada").json()["id"]
    assert told["id"] != end(callers, admin, "bob").json()["id"]


@pytest.mark.parametrize("scope", ["sessions:read", "api-keys:write"])
@ON_SQLITE
def test_it_takes_the_scope(callers, ada, scope):
    assert end(callers, bearing(callers.key(scope))).status_code == 403
    assert reads(ada)


def test_a_session_opens_no_operation(callers, ada):
    assert end(callers, ada.headers).status_code == 401
    assert reads(ada)


def test_it_is_audited_without_a_name(callers, admin):
    ended = end(callers, admin, "zoe@example.org").json()
    bob = Reader(callers.client, "bob")
    bob.send("/logout", {"form_token": bob.form_token()})
    events = callers.client.get("/v1/audit-events", headers=admin).json()["items"][:2]
    by_bob, by_admin = ((one["operation"], one["subject_kind"], one["subject_id"]) for one in events)
    assert by_bob == ("end_session", "token", "bob")
    assert by_admin[:2] == ("end_sessions", "api_key")
    assert events[1]["resource"] == f"sessions/{ended['id']}"
    assert "zoe" not in str(events[1]), "no digest in hexadecimal has a z"


def test_another_process_knows_at_its_next_look(callers, admin, database):
    other = LiveKeys(database, ApiKeys.from_keyring(KEYRING))
    other.refresh()
    ended_id = end(callers, admin).json()["id"]
    assert other.get_end("default", ended_id) is None
    other.refresh()
    assert other.get_end("default", ended_id)
    callers.key("models:read")
    other.refresh()
    assert other.get_end("default", ended_id), "another change of the tenant does not revive it"


def test_what_says_nothing_any_more_goes(callers, admin, ada, database, monkeypatch):
    ada.send("/logout", {"form_token": ada.form_token()})
    end(callers, admin)
    hour, minute = timedelta(seconds=SESSION_SECONDS), timedelta(minutes=1)
    # A session goes after an hour. What was ended of a person stays, and with it the generation.
    for passed, gone in ((hour - minute, 0), (hour + minute, 1), (timedelta(days=4000), 0)):
        later = now() + passed
        monkeypatch.setattr(session_revocation, "now", lambda later=later: later)
        with database.open_writer() as session:
            assert len(delete_expired(session)) == gone
    with database.open_reader() as session:
        assert session.scalars(select(EndedSessionRow.generation)).all() == [1, 1]
