"""Approvals against a model of them: any actors, in any order, crashes and retries among them."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from unittest.mock import patch
from uuid import uuid4

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete

from service.app.background.approvals import settle_deadlines
from service.app.tables import TABLES
from service.approvals import deadlines, decisions, service
from service.approvals.delegations import service as delegations
from service.approvals.delegations.schemas import ApprovalDelegationRequest
from service.approvals.schemas import ApprovalDecisionRequest
from service.approvals.service import QuoteAmendment
from service.audit.service import WriteContext, Writes
from service.auth import service as auth
from service.auth.tables import ApiKeyRow, TenantRow
from service.budgets.service import APPLIERS
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.clock import now
from service.kit.http import idempotency
from service.kit.http.problems import Problem
from service.kit.security.principals import Principal, PrincipalKind
from service.policies import service as policies
from service.policies.changes import service as changes
from service.policies.schemas import MOST_STEPS, ApprovalPolicyRequest
from service.quotes import documents
from service.quotes import service as quotes
from service.quotes.snapshot import QuoteSubject as AskedQuote
from service.quotes.snapshot import build_quote, project_questions
from service.schemas.estimates import CostEstimateRequest, MemoryEstimateRequest
from tests.applications import KEYRING
from tests.approvals.model import FINAL, MAKERS, Model, ModelledApproval, Refused, Step, human
from tests.clocks import Clock, unset
from tests.faults.harness import LONG

TENANT = "default"
PEOPLE = ("token:alice", "token:bob", "token:carol", "api_key:k1", "api_key:k2", "api_key:k3", "person:bob")
ADMIN = "token:admin"
AUTHORS = st.sampled_from([ADMIN, ADMIN, *PEOPLE[:4]])
DELAY = 3 * 3600
HOURS = st.sampled_from([None, 2, 8])
DAYS = 1
KINDS = st.sampled_from(["free", "priced", "incomplete"])
POINTS = (
    (deadlines, "enqueue_job"),
    (decisions.steps, "schedule_step"),
    (quotes, "set_state"),
    (service, "to_detail"),
    (decisions, "to_detail"),
    (idempotency, "store_answer"),
    (Writes, "record"),
)
"""Where a transaction is cut off."""
KEPT = {"tenants", "api_keys", "catalog_state", "installation"}


class Crash(Exception):
    """The process is gone."""


def subject(name):
    kind, _, own_id = name.partition(":")
    return Principal(PrincipalKind(kind), own_id, TENANT, frozenset())


@cache
def frozen(kind="free"):
    """A quote: free of money, priced at some dollars, or incomplete, without what interruptions cost."""
    body = {
        "model": {"source": "parameter_count", "parameter_count": 10**9},
        "workload": {"kind": "training", "sequence_length": 128, "total_tokens": 1000},
    }
    if kind != "free":
        option = "spot" if kind == "incomplete" else "on_demand"
        price = {"amount": "2", "currency_code": "USD"}
        body["cluster"] = {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1}
        body["rental"] = {"price_per_device_hour": price, "purchase_option": option}
        body["efficiency"] = {"source": "assumed", "utilization": 0.5}
    operation, question = (
        ("memory", MemoryEstimateRequest) if kind == "free" else ("cost", CostEstimateRequest)
    )
    asked = AskedQuote(
        operation=operation,
        name="a run",
        requests=project_questions(operation, question.model_validate_json(json.dumps(body))),
        owns_devices=False,
    )
    return build_quote(asked, build_shipped_snapshot(), lambda sources: [{} for _ in sources])


@st.composite
def steps(draw):
    approvers = draw(st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=3, unique=True))
    expires = draw(HOURS)
    escalates = draw(st.sampled_from([None, 1]))
    return {
        "approvers": approvers,
        "quorum": draw(st.integers(1, min(2, len(approvers)))),
        "expires": expires,
        "escalates": escalates,
        "to": draw(st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=2, unique=True)),
    }


def written(step):
    body = {"name": "step", "approvers": step["approvers"], "quorum": step["quorum"]}
    if step["expires"] is not None:
        body["expires_after_seconds"] = step["expires"] * 3600
    if step["escalates"] is not None:
        body["escalation"] = {"after_seconds": step["escalates"] * 3600, "to": step["to"]}
    return body


def known(step):
    hours = {name: step[name] and step[name] * 3600 for name in ("expires", "escalates")}
    to = step["to"] if step["escalates"] is not None else []
    return Step(list(step["approvers"]), step["quorum"], **hours, to=to)


class Policy:
    """What one policy asks, of quotes above a limit or of all, and who has written versions of it."""

    def __init__(self, steps, limited, authors):
        self.steps, self.limited, self.authors = steps, limited, authors

    @property
    def body(self):
        return {
            "id": "policy",
            "name": "policy",
            "conditions": {"total_above": {"amount": "1000", "currency_code": "EUR"}} if self.limited else {},
            "steps": [written(step) for step in self.steps],
            "automatic": not self.steps,
        }

    @property
    def shape(self):
        return ApprovalPolicyRequest.model_validate_json(json.dumps(self.body))

    def only_adds_to(self, standing):
        left = [written(step) for step in self.steps]
        for step in standing.steps:
            if written(step) not in left:
                return False
            left.remove(written(step))
        return self.limited == standing.limited and bool(standing.steps or not self.steps)


class Waiting:
    """A change of the policy that waits."""

    def __init__(self, change_id, wanted, at):
        self.id, self.wanted, self.at, self.agreed = change_id, wanted, at, set()


class Machine(RuleBasedStateMachine):
    """People ask, decide, delegate, amend, cancel and repeat themselves; time passes, and processes die."""

    def __init__(self, database, clock):
        super().__init__()
        self.database, self.clock = database, clock
        self.writes = Writes(database, KEYRING)
        self.catalog = build_shipped_snapshot()
        self.start = datetime.now(UTC)
        self.model, self.policy, self.quotes, self.last = Model(), None, {}, None
        self.change, self.versions = None, [None]
        self.crash_at, self.judged = None, {}
        self.clock.set(self.start)
        with database.open_writer() as session:
            for table in reversed(TABLES):
                if table.name.startswith(
                    ("approval", "audit", "policy_changes", "quotes", "events", "idempotency", "backgr")
                ):
                    session.execute(delete(table))
            session.execute(delete(ApiKeyRow))
            if session.get(TenantRow, TENANT) is None:
                row = {"name": "Default", "created_at": now(), "version": 1, "keys_revision": 0}
                session.add(TenantRow(tenant_id=TENANT, **row))
            for name, maker in MAKERS.items():
                own = {"tenant_id": TENANT, "id": name.partition(":")[2], "name": name, "scopes": []}
                made = {"digest": "", "created_at": now(), "created_by": maker, "version": 1}
                session.add(ApiKeyRow(**own, **made, lineage=[maker]))

    # How it is done

    def act(self, name, operation, sent, do):
        """The answer to a write, or the code of what refuses it; whoever hears nothing asks again."""
        call = WriteContext(subject(name), operation, f"/{operation}", "request", uuid4().hex)
        if self.crash_at is not None:
            before, (place, what), self.crash_at = self.documents(), self.crash_at, None
            was_done = False
            with suppress(Crash, Problem), patch.object(place, what, side_effect=Crash):
                self.writes.run(call, sent, do)
                was_done = True  # it does not come by that point
            assert was_done or self.documents() == before
        try:
            answer = json.loads(bytes(self.writes.run(call, sent, do).body) or b"null")
        except Problem as problem:
            self.last = None
            return problem.code
        self.last = (call, sent, do, answer)
        return answer

    def working(self, name):
        """Somebody, by a name that nobody has taken from them."""
        return MAKERS[name] if name in self.model.revoked else name

    def agree(self, answer, expect):
        """Both the service and the model do it, or both refuse it with the same code."""
        refusal = None
        try:
            expect()
        except Refused as refused:
            refusal = str(refused)
        assert (answer if isinstance(answer, str) else None) == refusal

    def seconds(self, text):
        return (datetime.fromisoformat(text) - self.start).total_seconds()

    # What happens

    @initialize(chosen=st.lists(steps(), min_size=1, max_size=2), author=st.sampled_from(PEOPLE[:6]))
    def begin(self, chosen, author):
        at_once = {"patch": {"change_delay_seconds": DELAY}, "if_match": "*"}
        self.act(
            ADMIN, "settings", DELAY, partial(changes.change_settings, subject=subject(ADMIN), **at_once)
        )
        self.set_policy(chosen, limited=False, author=ADMIN, more=False)
        self.quote(author, "free")
        self.submit(0, author, 1)

    @rule(chosen=st.lists(steps(), max_size=3), limited=st.booleans(), author=AUTHORS, more=st.booleans())
    def set_policy(self, chosen, limited, author, more):
        steps = [step for step in chosen if step["escalates"] is None or step["expires"] != 1]
        if more and self.policy is not None and len(self.policy.steps) < MOST_STEPS - 3:
            steps, limited = [*self.policy.steps, *steps], self.policy.limited
        wanted = Policy(steps, limited, {author})
        if self.policy is None:
            do = partial(policies.create_policy, subject=subject(author), body=wanted.shape)
        else:
            members = wanted.shape.model_dump(mode="json")
            patched = {name: members[name] for name in ("steps", "conditions", "automatic")}
            do = partial(
                policies.change_policy,
                subject=subject(author),
                policy_id="policy",
                patch=patched,
                if_match="*",
            )
        answer = self.act(author, "set_policy", wanted.body, do)

        def expect():
            if self.change is not None:
                raise Refused("POLICY_CHANGE_WAITS")
            if self.policy is None or wanted.only_adds_to(self.policy):
                self.stand(wanted)
            else:
                at = self.seconds(answer["effective_at"])
                assert at == pytest.approx(self.model.now + DELAY, abs=1)
                self.change = Waiting(answer["id"], wanted, at)

        self.agree(answer, expect)

    def stand(self, wanted):
        """A version of the policy takes effect: its authors are those of all before it too."""
        earlier = self.policy.authors if self.policy else set()
        self.policy = Policy(wanted.steps, wanted.limited, wanted.authors | earlier)
        self.versions.append(self.policy)

    def judging(self):
        """The policy that judges now: one whose delay is over counts, though nobody has written it down."""
        if self.change is not None and self.change.at <= self.model.now:
            wanted = self.change.wanted
            return Policy(wanted.steps, wanted.limited, wanted.authors | self.policy.authors)
        return self.policy

    def write_down(self):
        if self.change is not None and self.change.at <= self.model.now:
            self.stand(self.change.wanted)
            self.change = None

    @precondition(lambda self: self.change)
    @rule(decider=st.sampled_from(PEOPLE[:6]))
    def approve_change(self, decider):
        decider = self.working(decider)
        change, asked = self.change, self.policy.steps
        do = partial(
            changes.approve_change,
            subject=subject(decider),
            change_id=change.id,
            rates=self.catalog.exchange_rates,
            appliers=APPLIERS,
        )
        answer = self.act(decider, "approve_policy_change", change.id, do)

        def expect():
            if change.at <= self.model.now:
                raise Refused("POLICY_CHANGE_ENDED")
            (author,) = change.wanted.authors
            if human(decider) == human(author):
                raise Refused("OWN_APPROVAL")
            if not any(decider in step["approvers"] for step in asked):
                raise Refused("NOT_AN_APPROVER_OF_CHANGE")
            change.agreed.add(decider)
            counted = [{*step["approvers"]} & change.agreed - self.model.revoked for step in asked]
            if all(
                len({human(name) for name in names}) >= step["quorum"]
                for names, step in zip(counted, asked, strict=True)
            ):
                self.stand(change.wanted)
                self.change = None

        self.agree(answer, expect)

    @precondition(lambda self: self.change)
    @rule(rejecting=st.sampled_from(PEOPLE[:6]))
    def reject_change(self, rejecting):
        do = partial(changes.reject_change, subject=subject(rejecting), change_id=self.change.id)

        def expect():
            if self.change.at <= self.model.now:
                raise Refused("POLICY_CHANGE_ENDED")
            self.change = None

        self.agree(self.act(rejecting, "reject_policy_change", self.change.id, do), expect)

    @rule()
    def settle_changes(self):
        changes.settle_due_changes(
            self.database, self.writes, TENANT, lambda _: self.catalog.exchange_rates, APPLIERS
        )
        self.write_down()

    @rule(author=st.sampled_from(PEOPLE[:6]), kind=KINDS)
    def quote(self, author, kind):
        author = self.working(author)
        do = partial(quotes.create_quote, tenant_id=TENANT, frozen=frozen(kind), created_by=author, days=DAYS)
        answer = self.act(author, "create_quote", author, do)
        self.quotes[answer["id"]] = {**answer, "authors": {author}, "kind": kind}

    def newest(self, dice):
        return list(self.quotes.values())[dice % len(self.quotes)]

    def approval_of(self, quote):
        found = (
            each for each in self.model.asked.values()
            if (each.quote, each.version) == (quote["id"], quote["version"])
        )  # fmt: skip
        return next(found, None)

    def begun(self, quote, asker, answer):
        policy = self.judging()
        is_unknown = quote["kind"] == "incomplete" or (quote["kind"] == "free" and policy.limited)
        speaks = bool(policy.steps) if is_unknown else not (policy.limited and quote["kind"] == "priced")
        if not speaks:
            raise Refused("NO_APPROVAL_POLICY")
        askers = {asker, *quote["authors"]}
        if {human(name) for name in askers} & {human(name) for name in policy.authors}:
            raise Refused("OWN_POLICY")
        asked = ModelledApproval(
            id=answer["id"],
            quote=quote["id"],
            version=quote["version"],
            digest=quote["content_digest"],
            askers=askers,
            steps=[known(step) for step in policy.steps],
            valid_until=self.seconds(quote["valid_until"]),
            last=self.model.now,
        )
        self.model.begin(asked)
        self.write_down()
        quote["authors"].add(asker)
        if asked.state == "approved":
            self.supersede_others(asked)

    def supersede_others(self, asked):
        for other in self.model.asked.values():
            if other.quote == asked.quote and other is not asked and other.state == "approved":
                self.model.end(other, "superseded")

    @precondition(lambda self: self.quotes)
    @rule(dice=st.integers(0, 9), asker=st.sampled_from(PEOPLE[:6]), stale=st.integers(0, 5))
    def submit(self, dice, asker, stale):
        asker = self.working(asker)
        quote = self.newest(dice)
        digest = quote["content_digest"] if stale else "0" * 64

        def expect(answer):
            if not stale:
                raise Refused("CONTENT_CHANGED")
            if self.approval_of(quote) is not None:
                raise Refused("QUOTE_NOT_DRAFT")
            if self.model.now >= self.seconds(quote["valid_until"]):
                raise Refused("QUOTE_NO_LONGER_VALID")
            if self.policy is None:
                raise Refused("NO_APPROVAL_POLICY")
            self.begun(quote, asker, answer if isinstance(answer, dict) else {"id": "refused"})

        do = partial(
            service.submit_quote,
            subject=subject(asker),
            quote_id=quote["id"],
            content_digest=digest,
            catalog=self.catalog,
        )
        answer = self.act(asker, "submit_quote", digest, do)
        self.agree(answer, lambda: expect(answer))

    @precondition(lambda self: self.quotes and self.policy is not None)
    @rule(dice=st.integers(0, 9), asker=st.sampled_from(PEOPLE[:6]), kind=KINDS)
    def amend(self, dice, asker, kind):
        asker = self.working(asker)
        quote = self.newest(dice)
        earlier = self.approval_of(quote)
        do = partial(
            service.amend_quote,
            subject=subject(asker),
            quote_id=quote["id"],
            amendment=QuoteAmendment(quote["content_digest"], frozen(kind), DAYS),
            catalog=self.catalog,
        )
        answer = self.act(asker, "amend_quote", [quote["id"], quote["version"]], do)

        def expect():
            body = answer if isinstance(answer, dict) else {"id": "refused", "content_digest": ""}
            newest = {
                **quote,
                "version": quote["version"] + 1,
                "content_digest": body["content_digest"],
                "authors": {asker, *quote["authors"]},
                "kind": kind,
            }
            if isinstance(answer, dict):
                with self.database.open_reader() as session:
                    stored = quotes.get_quote(session, TENANT, quote["id"])
                newest["valid_until"] = stored["valid_until"].isoformat()
            self.begun(newest, asker, body)
            if earlier and earlier.state in ("pending", "approved"):
                self.model.end(earlier, "superseded")
            self.quotes[quote["id"]] = newest

        self.agree(answer, expect)

    @precondition(lambda self: self.quotes)
    @rule(dice=st.integers(0, 9), author=st.sampled_from(PEOPLE[:6]), kind=KINDS)
    def reprice(self, dice, author, kind):
        """Somebody makes another version, which nobody has asked to be approved."""
        author = self.working(author)
        quote = self.newest(dice)
        earlier = self.approval_of(quote)
        do = partial(
            quotes.add_version,
            tenant_id=TENANT,
            quote_id=quote["id"],
            frozen=frozen(kind),
            created_by=author,
            days=DAYS,
        )
        answer = self.act(author, "reprice_quote", [quote["id"], quote["version"]], do)

        def expect():
            if earlier and earlier.state == "pending":
                raise Refused("QUOTE_PENDING")
            self.quotes[quote["id"]] = {**answer, "authors": {author, *quote["authors"]}, "kind": kind}

        self.agree(answer, expect)

    @precondition(lambda self: self.model.asked)
    @rule(
        dice=st.integers(0, 9),
        decider=st.sampled_from(PEOPLE),
        kind=st.sampled_from(["approve", "approve", "approve", "reject"]),
        stale=st.integers(0, 9),
    )
    def decide(self, dice, decider, kind, stale):
        decider = self.working(decider)
        asked = list(self.model.asked.values())[-1 - dice % len(self.model.asked)]
        digest = asked.digest if stale else "0" * 64
        answer = self.act(
            decider, f"{kind}_approval", [asked.id, digest], self.deciding(asked, decider, kind, digest)
        )
        self.agree(answer, lambda: self.model.decide(asked, decider, kind, digest))
        if asked.state == "approved":
            self.supersede_others(asked)

    def deciding(self, asked, decider, kind, digest):
        return partial(
            decisions.decide_approval,
            subject=subject(decider),
            approval_id=asked.id,
            decision=kind,
            sent=ApprovalDecisionRequest(content_digest=digest),
            catalog=self.catalog,
        )

    @precondition(lambda self: self.quotes)
    @rule(dice=st.integers(0, 9), asker=st.sampled_from(PEOPLE[:6]))
    def cancel(self, dice, asker):
        asker = self.working(asker)
        quote = self.newest(dice)
        asked = self.approval_of(quote)

        def expect():
            if asked is None:
                raise Refused("QUOTE_NOT_SUBMITTED")
            if asked.state in FINAL - {"cancelled"}:
                raise Refused("APPROVAL_ENDED")
            if asked.state != "cancelled":
                self.model.end(asked, "cancelled")

        digest = quote["content_digest"]
        do = partial(
            service.cancel_approval, subject=subject(asker), quote_id=quote["id"], content_digest=digest
        )
        self.agree(self.act(asker, "cancel_quote", digest, do), expect)

    @rule(giver=st.sampled_from(PEOPLE[:4]), taker=st.sampled_from(PEOPLE), ahead=st.integers(0, 2))
    def delegate(self, giver, taker, ahead):
        giver = self.working(giver)
        starts, ends = (self.clock.at + timedelta(hours=hours) for hours in (ahead, ahead + 4))
        body = {"delegate": taker, "starts_at": starts.isoformat(), "ends_at": ends.isoformat()}
        shape = ApprovalDelegationRequest.model_validate_json(json.dumps(body))
        do = partial(delegations.create_delegation, subject=subject(giver), body=shape)

        def expect():
            if giver == taker:
                raise Refused("UNPROCESSABLE")
            span = (self.seconds(moment.isoformat()) for moment in (starts, ends))
            self.model.delegations.append((giver, taker, *span))

        self.agree(self.act(giver, "create_delegation", body, do), expect)

    @rule(key=st.sampled_from(sorted(MAKERS)))
    def revoke(self, key):
        do = partial(auth.revoke_key, caller=subject(key), key_id=key.partition(":")[2])

        def expect():
            if key in self.model.revoked:
                raise Refused("API_KEY_NOT_FOUND")
            self.model.revoked.add(key)

        self.agree(self.act("token:carol", "revoke_key", key, do), expect)

    @rule(hours=st.sampled_from([0.5, 1, 1.5, 6, 20, -3]))
    def wait(self, hours):
        self.clock.move(hours=hours)
        self.model.now += hours * 3600

    @precondition(lambda self: self.model.asked)
    @rule()
    def settle(self):
        for approval_id in list(self.model.asked):
            with self.database.open_writer() as session:
                settle_deadlines(session, self.writes, TENANT, approval_id)
        self.model.settle()

    @rule(point=st.sampled_from(POINTS))
    def crash_next(self, point):
        self.crash_at = point

    @precondition(lambda self: self.last)
    @rule()
    def repeat(self):
        """The answer was lost: the same request with the same key changes nothing, and answers the same."""
        call, sent, do, answer = self.last
        before = self.documents()
        again = self.writes.run(call, sent, do)
        assert json.loads(bytes(again.body) or b"null") == answer
        assert self.documents() == before

    def documents(self):
        with self.database.open_reader() as session:
            return {each: service.get_approval(session, TENANT, each) for each in self.model.asked}

    # What holds at any time

    @invariant()
    def approvals_are_as_the_model_says(self):
        for approval_id, shown in self.documents().items():
            asked = self.model.asked[approval_id]
            assert shown["state"] == asked.state
            assert shown["judged"] == self.judged.setdefault(approval_id, shown["judged"])
            for found, step in zip(shown["steps"], asked.steps, strict=True):
                assert (found["state"], found["approvers"]) == (step.state, step.approvers)
                told = [(one["approver"], one["decided_by"], one["decision"]) for one in found["decisions"]]
                assert told == step.decisions

    @invariant()
    def nobody_decides_for_themselves_or_twice_or_late(self):
        for approval_id, shown in self.documents().items():
            asked = self.model.asked[approval_id]
            for step in shown["steps"]:
                voices = [{human(one["approver"]), human(one["decided_by"])} for one in step["decisions"]]
                assert sum(map(len, voices)) == len(set().union(*voices))
                for one in step["decisions"]:
                    assert not asked.barred(one["decided_by"])
                    assert one["content_digest"] == asked.digest
                    assert one["decided_at"] < step["due_at"]

    @invariant()
    def nobody_is_judged_by_what_they_or_whoever_they_act_for_have_written(self):
        for approval_id, shown in self.documents().items():
            asked = self.model.asked[approval_id]
            for judged in shown["judged"]["policies"]:
                authors = self.versions[judged["version"]].authors
                assert {human(name) for name in authors}.isdisjoint(human(name) for name in asked.askers)

    @invariant()
    def the_policy_is_as_the_model_says(self):
        if self.policy is not None:
            with self.database.open_reader() as session:
                stored = policies.get_policy(session, TENANT, "policy")
            assert stored["version"] == len(self.versions) - 1
            assert stored["steps"] == self.policy.shape.model_dump(mode="json")["steps"]

    @invariant()
    def a_version_is_what_its_approval_is(self):
        with self.database.open_reader() as session:
            for asked in self.model.asked.values():
                assert quotes.get_quote(session, TENANT, asked.quote, asked.version)["state"] == asked.state

    def teardown(self):
        with self.database.open_reader() as session:
            assert self.policy is None or self.writes.verify_chain(session, TENANT).fault is None
            assert list(service.find_deviations(session, TENANT)) == []
        super().teardown()


@pytest.mark.parametrize(
    ("databases", "examples"),
    [("sqlite", 300 if LONG else 6), ("postgresql", 100 if LONG else 2)],
    indirect=["databases"],
)
def test_approvals_are_what_the_model_says(database, examples, monkeypatch):
    clock = Clock(database)
    monkeypatch.setattr(documents, "now", lambda: clock.at)
    small = settings(max_examples=examples, stateful_step_count=25, phases=[Phase.generate])
    try:
        run_state_machine_as_test(lambda: Machine(database, clock), settings=small)
    finally:
        unset(database)
