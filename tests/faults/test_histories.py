"""The checker of histories finds what is wrong in small ones, and nothing in those that are right."""

import itertools
import random
from math import inf

import pytest

from tests.faults.histories import UNKNOWN, Call, Lease, Purse, Versions, Vote, is_explained

ALICE, BOB = ("approve", "alice"), ("approve", "bob")
VOTED = ("pending", frozenset({("alice", "approve")}))


def calls(*rows):
    """Calls in short: asked, answered, begun, ended."""
    return [Call(*row) for row in rows]


GOOD = {
    "a read beside a vote sees the state before": (
        Vote(2),
        calls((ALICE, "pending", 0, 3), (("read",), ("pending", frozenset()), 1, 2)),
    ),
    "a read beside a vote sees the state after": (
        Vote(2),
        calls((ALICE, "pending", 0, 3), (("read",), VOTED, 1, 2)),
    ),
    "the votes of two at once": (Vote(2), calls((ALICE, "approved", 0, 3), (BOB, "pending", 0, 3))),
    "a vote without an answer counts late": (
        Vote(2),
        calls(
            (ALICE, UNKNOWN, 0, inf),
            (BOB, "pending", 1, 2),
            (("read",), ("approved", frozenset({("alice", "approve"), ("bob", "approve")})), 3, 4),
        ),
    ),
    "a vote without an answer never counts": (
        Vote(2),
        calls((ALICE, UNKNOWN, 0, inf), (BOB, "pending", 1, 2), (ALICE, "approved", 3, 4)),
    ),
    "a commitment is given back": (
        Purse(1),
        calls(
            (("approve", 1), "approved", 0, 1),
            (("approve", 2), "BUDGET_EXCEEDED", 2, 3),
            (("cancel", 1), "cancelled", 4, 5),
            (("approve", 2), "approved", 6, 7),
            (("read",), 1, 8, 9),
        ),
    ),
    "one of two versions": (
        Versions(),
        calls((("reprice", 1), 2, 0, 3), (("reprice", 1), "QUOTE_CHANGED", 0, 3), (("read",), 2, 4, 5)),
    ),
    "a lease lapses, and its first holder is refused": (
        Lease(),
        calls(
            (("claim", "a"), 1, 0, 1),
            (("renew", "a", 1), "ok", 2, 3),
            (("claim", "b"), 3, 4, 5),
            (("completed", "a", 1), "STALE_LEASE", 6, 7),
            (("completed", "b", 3), "ok", 8, 9),
            (("completed", "b", 3), "ok", 10, 11),
            (("read",), True, 12, 13),
        ),
    ),
}
BAD = {
    "a read does not see a vote that was answered": (
        Vote(2),
        calls((ALICE, "pending", 0, 1), (("read",), ("pending", frozenset()), 2, 3)),
    ),
    "two reads go back in time": (
        Vote(2),
        calls(
            (ALICE, "pending", 0, 9), (("read",), VOTED, 1, 2), (("read",), ("pending", frozenset()), 3, 4)
        ),
    ),
    "one vote too few approves": (Vote(2), calls((ALICE, "approved", 0, 1))),
    "both think that they were the last": (
        Vote(2),
        calls((ALICE, "approved", 0, 3), (BOB, "approved", 0, 3)),
    ),
    "an end is lost": (
        Vote(1),
        calls((ALICE, "approved", 0, 1), (("reject", "bob"), "rejected", 2, 3)),
    ),
    "a budget pays for two at once": (
        Purse(1),
        calls((("approve", 1), "approved", 0, 3), (("approve", 2), "approved", 0, 3)),
    ),
    "a budget refuses what it has": (Purse(2), calls((("approve", 1), "BUDGET_EXCEEDED", 0, 1))),
    "a budget counts what it refused": (
        Purse(1),
        calls(
            (("approve", 1), "approved", 0, 1),
            (("approve", 2), "BUDGET_EXCEEDED", 2, 3),
            (("read",), 2, 4, 5),
        ),
    ),
    "one version is made twice": (Versions(), calls((("reprice", 1), 2, 0, 3), (("reprice", 1), 2, 1, 4))),
    "a version is lost": (Versions(), calls((("reprice", 1), 2, 0, 1), (("read",), 1, 2, 3))),
    "a holder whose lease is another's completes": (
        Lease(),
        calls(
            (("claim", "a"), 1, 0, 1),
            (("claim", "b"), 3, 2, 3),
            (("completed", "a", 1), "ok", 4, 5),
        ),
    ),
    "a token comes twice": (Lease(), calls((("claim", "a"), 1, 0, 1), (("claim", "b"), 1, 2, 3))),
    "a run is granted after its end": (
        Lease(),
        calls(
            (("claim", "a"), 1, 0, 1),
            (("completed", "a", 1), "ok", 2, 3),
            (("claim", "b"), 2, 4, 5),
        ),
    ),
    "a completion is lost": (
        Lease(),
        calls((("claim", "a"), 1, 0, 1), (("completed", "a", 1), "ok", 2, 3), (("read",), False, 4, 5)),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_can_be_explained_is(name):
    model, history = GOOD[name]
    assert is_explained(history, model, model.step)


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_explained_is_not(name):
    model, history = BAD[name]
    assert not is_explained(history, model, model.step)


def test_every_order_of_calls_that_were_made_one_at_a_time_is_tried():
    """The search finds as much as all orders of small histories do, and no more."""
    chance = random.Random(1)  # noqa: S311
    found = set()
    for _ in range(100):
        history = []
        for _ in range(5):
            begun = chance.uniform(0, 10)
            answered = chance.choice(["approved", "BUDGET_EXCEEDED", UNKNOWN])
            ended = inf if answered == UNKNOWN else begun + chance.uniform(0, 10)
            history.append(Call(("approve", chance.randrange(3)), answered, begun, ended))
        explained = any(_holds(order) for order in _orders(history))
        assert is_explained(history, Purse(1), Purse.step) == explained
        found.add(explained)
    assert found == {True, False}


def _orders(history):
    """Every order of the calls, without any choice of those that had no answer, that time allows."""
    known = [call for call in history if call.answered != UNKNOWN]
    others = [call for call in history if call.answered == UNKNOWN]
    for number in range(len(others) + 1):
        for happened in itertools.combinations(others, number):
            for order in itertools.permutations([*known, *happened]):
                if all(a.begun <= b.ended for a, b in itertools.combinations(order, 2)):
                    yield order


def _holds(order):
    states = {Purse(1)}
    for call in order:
        states = {after for state in states for after in Purse.step(state, call.asked, call.answered)}
    return bool(states)
