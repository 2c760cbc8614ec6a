"""Histories of concurrent calls, and whether calls that happen one at a time explain them.

The search is that of Wing and Gong with the memory of Lowe: a call may come first if it began before any
other that is left has ended, and what was tried once is not tried again. A call without an answer may have
happened at any time since it began, or not at all.
"""

import itertools
import threading
import time
from math import inf
from typing import Any, NamedTuple

UNKNOWN = "unknown"
"""Stands for an answer that nobody got."""


class Call(NamedTuple):
    """What was asked, what was answered, and when."""

    asked: tuple[Any, ...]
    answered: Any
    begun: float
    ended: float


class History:
    """Calls on one thing, by any number of callers."""

    def __init__(self):
        self.calls = []
        self._lock = threading.Lock()

    def record(self, asked, call):
        """Call, and note the answer; a call that answers :data:`UNKNOWN` has no end."""
        begun = time.monotonic()
        answered = call()
        ended = inf if answered == UNKNOWN else time.monotonic()
        with self._lock:
            self.calls.append(Call(asked, answered, begun, ended))
        return answered


def is_explained(calls, state, step):
    """Whether calls one at a time, each between its begin and its end, give these answers.

    ``step(state, asked, answered)`` lists the states after a call; none if it cannot be answered so.
    """
    calls = sorted(calls, key=lambda call: call.begun)
    answered = sum(1 << place for place, call in enumerate(calls) if call.ended < inf)
    left, seen = [(0, state)], {(0, state)}
    while left:
        done, state = left.pop()
        if done & answered == answered:
            return True
        for place in _list_first(calls, done):
            for after in step(state, calls[place].asked, calls[place].answered):
                reached = (done | 1 << place, after)
                if reached not in seen:
                    seen.add(reached)
                    left.append(reached)
    return False


def _list_first(calls, done):
    """The places of the calls that may come first among those that are left."""
    remaining = [place for place in range(len(calls)) if not done >> place & 1]
    earliest = min(calls[place].ended for place in remaining)
    return itertools.takewhile(lambda place: calls[place].begun <= earliest, remaining)


def _fits(answered, expected):
    return answered in (UNKNOWN, expected)


class Vote(NamedTuple):
    """An approval that some people vote on until enough of them approve, or one rejects."""

    quorum: int
    state: str = "pending"
    votes: frozenset[tuple[str, str]] = frozenset()

    @staticmethod
    def step(held, asked, answered):
        """``("approve" or "reject", person)`` is answered by the state, or a code; ``("read",)`` by all."""
        verb, *person = asked
        if verb == "read":
            return [held] if _fits(answered, (held.state, held.votes)) else []
        after, expected = held._decide(verb, *person)
        return [after] if _fits(answered, expected) else []

    def _decide(self, verb, person):
        own = dict(self.votes).get(person)
        if own is not None:
            return self, self.state if own == verb else "DECIDED_OTHERWISE"
        if self.state != "pending":
            return self, "APPROVAL_ENDED"
        votes = self.votes | {(person, verb)}
        enough = sum(kind == "approve" for _, kind in votes) >= self.quorum
        state = "rejected" if verb == "reject" else "approved" if enough else "pending"
        return self._replace(state=state, votes=votes), state


class Purse(NamedTuple):
    """A budget that refuses what it has not, and approvals that each take the same of it."""

    most: int
    taken: frozenset[int] = frozenset()
    decided: frozenset[int] = frozenset()
    cancelled: frozenset[int] = frozenset()

    @staticmethod
    def step(held, asked, answered):
        """``("approve" or "cancel", number)`` has a state or a code, ``("read",)`` how many are paid."""
        verb, *number = asked
        if verb == "read":
            return [held] if _fits(answered, len(held.taken)) else []
        after, expected = held._approve(*number) if verb == "approve" else held._cancel(*number)
        return [after] if _fits(answered, expected) else []

    def _approve(self, number):
        if number in self.decided:
            return self, "cancelled" if number in self.cancelled else "approved"
        if number in self.cancelled:
            return self, "APPROVAL_ENDED"
        if len(self.taken) == self.most:
            return self, "BUDGET_EXCEEDED"
        return self._replace(taken=self.taken | {number}, decided=self.decided | {number}), "approved"

    def _cancel(self, number):
        return self._replace(taken=self.taken - {number}, cancelled=self.cancelled | {number}), "cancelled"


class Versions(NamedTuple):
    """A quote, of which each version follows the one that its author knew."""

    newest: int = 1

    @staticmethod
    def step(held, asked, answered):
        """``("reprice", known)`` has the version that it made or a code, ``("read",)`` the newest."""
        verb, *known = asked
        if verb == "read":
            return [held] if _fits(answered, held.newest) else []
        if known != [held.newest]:
            return [held] if _fits(answered, "QUOTE_CHANGED") else []
        return [Versions(held.newest + 1)] if _fits(answered, held.newest + 1) else []


class Lease(NamedTuple):
    """A run that one node at a time holds, under a token that each grant raises.

    A lease may lapse at any time, so what the holder asks may be refused; a token before is always refused.
    """

    token: int = 0
    holder: str = ""
    ended: bool = False
    done: frozenset[tuple[str, int]] = frozenset()

    @staticmethod
    def step(held, asked, answered):
        """``("claim", node)`` is answered by a token or 0, ``("read",)`` by whether the run has ended.

        ``("renew" or "completed" or "released", node, token)`` are answered ``ok`` or ``STALE_LEASE``.
        """
        verb, *about = asked
        if verb == "read":
            return [held] if _fits(answered, held.ended) else []
        if verb == "claim":
            return list(held._claim(*about, answered))
        return list(held._answer_holder(verb, *about, answered))

    def _claim(self, node, answered):
        if answered in (UNKNOWN, 0):
            yield self
        if self.ended:
            return
        if answered == UNKNOWN:
            yield self._replace(holder="")  # under a token that nobody knows
        elif answered > self.token or (answered, node) == (self.token, self.holder):
            yield self._replace(token=answered, holder=node)

    def _answer_holder(self, verb, node, token, answered):
        is_held = not self.ended and (self.token, self.holder) == (token, node)
        is_repeated = (verb, token) in self.done
        if answered in (UNKNOWN, "STALE_LEASE") and not is_repeated:
            yield self
        if answered in (UNKNOWN, "ok") and is_repeated:
            yield self
        if answered in (UNKNOWN, "ok") and is_held:
            yield self._after(verb, token)

    def _after(self, verb, token):
        if verb == "renew":
            return self
        return self._replace(holder="", ended=verb == "completed", done=self.done | {(verb, token)})
