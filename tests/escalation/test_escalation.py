"""Whoever holds one scope gains nothing that it does not say: walked until nothing new is gained."""

import pytest

from service.auth import service as auth
from service.nodes import service as nodes
from tests.escalation.findings import MEANT, explanation, findings, may, unexplained
from tests.escalation.starts import DANGEROUS, EVERY, TOGETHER, TOPICS, Worlds
from tests.escalation.walking import Holder
from tests.webhooks.receiving import receiver

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def worlds(request, app, databases_of):
    with receiver() as there:
        worlds = Worlds(app, databases_of(request.param), there)
        yield worlds
        worlds.close()


@pytest.fixture
def world(worlds):
    world = worlds.another()
    yield world
    world.close()
    worlds.clear()


def check(world, granted):
    """Walk, and hold what was reached against what is meant: nothing more, and all of that still."""
    found = findings(Holder(world, granted, TOPICS).walk())
    assert unexplained(granted, found) == []
    explained = {explanation(granted, each) for each in found}
    for one in MEANT:
        # With all that it needs and nothing else a walk shows it.
        if set(one.needs) == set(granted):
            assert one in explained, f"explains nothing: {one}"


# An argument beside the worlds in one list would have them made for each test.
@pytest.mark.parametrize("scope", DANGEROUS)
@pytest.mark.parametrize("worlds", ["sqlite"], indirect=True)
def test_a_scope_alone_reaches_no_more_than_it_says(world, scope):
    check(world, (scope,))


# The rules are the same on both databases; `make escalation` walks from every scope on both.
@pytest.mark.parametrize("worlds", ["postgresql"], indirect=True)
def test_nor_does_the_scope_that_makes_keys_on_postgresql(world):
    check(world, ("api-keys:write",))


@pytest.mark.parametrize("granted", TOGETHER, ids=" ".join)
@pytest.mark.parametrize("worlds", ["sqlite"], indirect=True)
def test_nor_do_scopes_of_which_one_opens_what_another_needs(world, granted):
    check(world, granted)


@pytest.mark.parametrize("worlds", ["sqlite"], indirect=True)
def test_a_walk_finds_what_an_operation_hands_out_too_much(world, monkeypatch):
    """The rule of all credentials, taken away: the walk ends with the operator's scopes."""
    for place in (auth, nodes):
        monkeypatch.setattr(place, "check_covers", lambda *_: None)
    found = findings(Holder(world, ("api-keys:write",)).walk({"rotate_api_key"}))
    escalated = {each.detail for each in unexplained(("api-keys:write",), found) if each.kind == "scope"}
    assert {"tenants:write by api_key", "metrics:read by api_key", "approvals:write by api_key"} <= escalated


@pytest.mark.parametrize("worlds", ["sqlite"], indirect=True)
def test_a_walk_finds_a_quorum_of_one(world, monkeypatch):
    """One voice of everybody who was handed a secret, taken away: two rotated keys decide alone."""
    monkeypatch.setattr(auth, "_lineage_of", lambda row: row.lineage)
    granted = ("api-keys:*", "approvals:*", "approval-delegations:*")
    found = {each.kind for each in unexplained(granted, findings(Holder(world, granted, TOPICS).walk()))}
    assert "more than one decision of a step counts" in found


@pytest.mark.parametrize("worlds", ["sqlite"], indirect=True)
def test_a_walk_is_told_what_it_may_read(world):
    """Else that nothing is told to others would show nothing."""
    holder = Holder(world, ("webhooks:write", "approvals:read"), TOPICS).walk()
    assert any(message["type"].startswith("approval.") for message in world.told())
    assert may(holder, "approvals:read")


def test_every_scope_is_walked_by_make_escalation():
    assert {(scope,) for scope in DANGEROUS} | set(TOGETHER) <= set(EVERY)
