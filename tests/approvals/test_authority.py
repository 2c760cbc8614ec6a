"""Who really acted: people with the secrets that they know, against everything that hands one out.

The model knows nothing of lineages. It knows which secret each human knows, and so who may have been behind
each act: nobody may ever have decided what they asked for, nor have been two voices of one step.
"""

import json
from collections import Counter
from functools import partial
from uuid import uuid4

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete

from service.app.tables import TABLES
from service.approvals import decisions, service
from service.approvals.delegations import service as delegations
from service.approvals.delegations.schemas import ApprovalDelegationRequest
from service.approvals.links import service as links
from service.approvals.links.schemas import ApprovalLinkRequest
from service.approvals.links.service import Links
from service.approvals.schemas import ApprovalDecisionRequest
from service.audit.service import WriteContext, Writes
from service.auth import service as auth
from service.auth.schemas import ApiKeyRequest
from service.auth.service import ApiKeys, is_active, record_identity
from service.auth.session_revocation import SessionRevocations
from service.auth.tables import TenantRow
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.clock import now
from service.kit.http.problems import Problem
from service.kit.security.principals import LOCAL, Principal, PrincipalKind
from service.policies import service as policies
from service.policies.schemas import ApprovalPolicyRequest
from service.quotes import service as quotes
from tests.applications import KEYRING
from tests.approvals.test_model import TENANT, frozen
from tests.faults.harness import LONG

HUMANS = ("ann", "bob", "cat", "dan")
MAILS = {"ann": "ann@example.org", "bob": "b.ob+x@Example.org", "cat": "cat@example.org", "dan": ""}
"""Whom the issuer says that somebody is; of the last it says nothing."""
NAMED = (
    "person:ann@example.org",
    "person:bob@example.org",
    "person:cat@example.org",
    "person:eve@example.org",
)
"""Whom policies name by mail; of those the humans of the same name are sent the links."""
TOKENS = tuple(f"token:sub-{human}" for human in HUMANS)
ROBOTS = ("robot-1", "robot-2")
"""Keys of the command line, each of a human who has nothing else."""
MOST_ASKED = 3
DICE = st.integers(0, 19)
APPROVERS = st.lists(st.sampled_from([*TOKENS, *NAMED, "robot", "key"]), min_size=4, max_size=8)
KEY = ApiKeyRequest(name="key", scopes=["*:*"])
KEPT = {"tenants", "catalog_state", "installation"}


def token(human):
    return Principal(PrincipalKind.TOKEN, f"sub-{human}", TENANT, frozenset({"*:*"}), canonical(MAILS[human]))


def canonical(mail):
    return {"b.ob+x@Example.org": "bob@example.org"}.get(mail, mail)


class Machine(RuleBasedStateMachine):
    """People make, rotate and revoke keys, delegate, send links, ask and decide."""

    seen = Counter()

    def __init__(self, database):
        super().__init__()
        self.database = database
        self.writes = Writes(database, KEYRING, record_identity)
        self.keys, self.catalog = ApiKeys.from_keyring(KEYRING), build_shipped_snapshot()
        self.links = Links(KEYRING, public_url="https://plan.example", has_tenant=lambda _: True)
        self.endings = SessionRevocations(KEYRING, lambda _tenant, _id: None)
        self.known, self.quotes, self.urls, self.approvals = {}, {}, [], {}
        self.asked, self.decided = {}, {}

    @initialize(approvers=APPROVERS, quorum=st.integers(1, 3))
    def begin(self, approvers, quorum):
        with self.database.open_writer() as session:
            for table in reversed(TABLES):
                if table.name not in KEPT and not table.name.startswith("accel"):
                    session.execute(delete(table))
            if session.get(TenantRow, TENANT) is None:
                row = {"name": "Default", "created_at": now(), "version": 1, "keys_revision": 0}
                session.add(TenantRow(tenant_id=TENANT, **row))
        for robot in ROBOTS:
            self.add_key(robot, self.run(LOCAL, partial(self.keys.create, creator=LOCAL, body=KEY)))
        self.make_key(0)
        stand_ins = {"robot": self.key_of(ROBOTS[0]), "key": self.key_of("ann")}
        names = list(dict.fromkeys(stand_ins.get(name, name) for name in approvers))
        step = {"name": "step", "approvers": names, "quorum": min(quorum, len(names))}
        body = {"id": "policy", "name": "policy", "conditions": {}, "steps": [step]}
        shape = ApprovalPolicyRequest.model_validate_json(json.dumps(body))
        self.run(LOCAL, partial(policies.create_policy, subject=LOCAL, body=shape))

    # Who is who

    def key_of(self, human):
        return next(name for name, known in self.known.items() if human in known)

    def add_key(self, human, answer):
        if isinstance(answer, dict):
            self.known[f"api_key:{answer['key']['id']}"] = {human}

    def actor(self, dice):
        """A human and what they act by: their token, or a key that they know a working secret of."""
        able = [(human, token(human)) for human in HUMANS]
        with self.database.open_reader() as session:
            for name, humans in self.known.items():
                subject = auth.build_named_subject(TENANT, name)._replace(scopes=frozenset({"*:*"}))
                if is_active(session, subject, now()):
                    able += [(human, subject) for human in sorted(humans)]
        return able[dice % len(able)]

    def run(self, subject, do):
        """What a write did, or the code of what refused it."""
        changes = []

        def doing(session):
            changes.append(do(session))
            return changes[-1]

        try:
            self.writes.run(WriteContext(subject, "test", "/test", "request", uuid4().hex), None, doing)
        except Problem as problem:
            return problem.code
        return {**(changes[-1].body or {}), **changes[-1].once}

    def pick(self, found, dice):
        return list(found)[-1 - dice % len(found)]

    # What people do

    @rule(dice=DICE)
    def make_key(self, dice):
        human, subject = self.actor(dice)
        self.add_key(human, self.run(subject, partial(self.keys.create, creator=subject, body=KEY)))

    @precondition(lambda self: self.known)
    @rule(dice=DICE, key=st.integers(0, 9))
    def rotate(self, dice, key):
        human, subject = self.actor(dice)
        name = self.pick(self.known, key)
        do = partial(self.keys.rotate, caller=subject, key_id=name.partition(":")[2], overlap=now() - now())
        if isinstance(self.run(subject, do), dict):
            self.known[name] = {human}
            self.seen["rotated"] += 1

    @precondition(lambda self: len(self.known) > len(ROBOTS) + 2)
    @rule(dice=DICE, key=st.integers(0, 9))
    def revoke(self, dice, key):
        _, subject = self.actor(dice)
        key_id = self.pick(self.known, key).partition(":")[2]
        self.run(subject, partial(auth.revoke_key, caller=subject, key_id=key_id))

    @precondition(lambda self: len(self.known) > len(ROBOTS) + 2)
    @rule(human=st.sampled_from(HUMANS))
    def end_person(self, human):
        subject = token("dan" if human != "dan" else "ann")
        self.run(subject, partial(self.endings.end_person, tenant_id=TENANT, subject_id=f"sub-{human}"))
        with self.database.open_reader() as session:
            for name, humans in self.known.items():
                alive = is_active(session, auth.build_named_subject(TENANT, name), now())
                assert not (alive and human in humans), f"{human} still acts by {name}"

    @precondition(lambda self: len(self.approvals) < MOST_ASKED)
    @rule(dice=DICE, others=st.lists(DICE, max_size=2))
    def ask(self, dice, others):
        """Make a quote, perhaps price it anew by others, and submit it."""
        human, subject = self.actor(dice)
        version = {"tenant_id": TENANT, "frozen": frozen(), "days": 1}
        quote = self.run(subject, partial(quotes.create_quote, created_by=subject.name, **version))
        self.asked[quote["id"]] = {human}
        for other in others:
            human, subject = self.actor(other)
            again = partial(quotes.add_version, quote_id=quote["id"], created_by=subject.name, **version)
            quote = self.run(subject, again)
            self.asked[quote["id"]].add(human)
        seen = {"quote_id": quote["id"], "content_digest": quote["content_digest"]}
        answer = self.run(
            subject, partial(service.submit_quote, subject=subject, catalog=self.catalog, **seen)
        )
        if isinstance(answer, dict):
            self.quotes[quote["id"]], self.approvals[quote["id"]] = quote, answer
            self.seen["submitted"] += 1

    @rule(dice=DICE, to=st.sampled_from([*TOKENS, *NAMED, "key"]), key=st.integers(0, 9))
    def delegate(self, dice, to, key):
        _, subject = self.actor(dice)
        taker = self.pick(self.known, key) if to == "key" else to
        body = json.dumps({"delegate": taker, "ends_at": "2099-01-01T00:00:00Z"})
        shape = ApprovalDelegationRequest.model_validate_json(body)
        self.run(subject, partial(delegations.create_delegation, subject=subject, body=shape))

    @precondition(lambda self: self.approvals)
    @rule(dice=DICE, quote=st.integers(0, 9), approver=st.sampled_from(NAMED))
    def link(self, dice, quote, approver):
        human, subject = self.actor(dice)
        quote_id = self.pick(self.approvals, quote)
        approval_id = self.approvals[quote_id]["id"]
        do = partial(
            self.links.create,
            maker=subject,
            approval_id=approval_id,
            body=ApprovalLinkRequest(approver=approver),
        )
        answer = self.run(subject, do)
        if isinstance(answer, dict):
            receiver = approver.partition(":")[2].partition("@")[0]
            self.urls.append((answer["url"].rpartition("/")[2], quote_id, (human, receiver)))
            self.seen["linked"] += 1

    @precondition(lambda self: self.approvals)
    @rule(dice=DICE, quote=st.integers(0, 9), kind=st.sampled_from(["approve"] * 4 + ["reject"]))
    def decide(self, dice, quote, kind):
        human, subject = self.actor(dice)
        quote_id = self.pick(self.approvals, quote)
        self.run_decision(quote_id, human, subject, partial(self.decision, quote_id, subject, kind))

    @precondition(lambda self: self.urls)
    @rule(url=st.integers(0, 9), which=st.integers(0, 1))
    def decide_by_link(self, url, which):
        secret, quote_id, holders = self.pick(self.urls, url)
        with self.database.open_reader() as session:
            row = self.links.resolve_token(session, secret)
        subject = links.build_subject(row)

        def do(session):
            links.use_link(session, self.links.resolve_token(session, secret))
            return self.decision(
                quote_id, subject, "approve", session=session, via="link", linked_by=row.created_by
            )

        self.run_decision(quote_id, holders[which], subject, do)

    def decision(self, quote_id, subject, kind, session, **by):
        sent = ApprovalDecisionRequest(content_digest=self.quotes[quote_id]["content_digest"])
        approval_id = self.approvals[quote_id]["id"]
        return decisions.decide_approval(
            session, subject, approval_id, decision=kind, sent=sent, catalog=self.catalog, **by
        )

    def run_decision(self, quote_id, human, subject, do):
        """Whoever was really behind a decision that counts has neither asked nor decided the step before."""
        answer = self.run(subject, do)
        if isinstance(answer, str):
            self.seen[answer] += 1
            return
        behind = self.decided.setdefault(quote_id, {})
        behind.setdefault(subject.name, human)
        for step in answer["steps"]:
            humans = [behind[decision["decided_by"]] for decision in step["decisions"]]
            assert len(set(humans)) == len(humans), (humans, step)
            assert self.asked[quote_id].isdisjoint(humans), (self.asked[quote_id], humans)
        self.seen[answer["state"]] += 1


def test_nobody_decides_what_they_asked_for_nor_twice(databases):
    machine = partial(Machine, databases.loaded())
    examples = 400 if LONG else 8 if databases.kind == "sqlite" else 3
    Machine.seen.clear()
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=60,
            deadline=None,
            derandomize=not LONG,
            phases=(Phase.generate, Phase.shrink) if LONG else (Phase.generate,),
        ),
    )
    # The walk comes to everything that it is about.
    wanted = {"submitted", "linked", "rotated", "pending", "approved", "OWN_APPROVAL", "ALREADY_DECIDED"}
    assert wanted <= Machine.seen.keys(), Machine.seen
