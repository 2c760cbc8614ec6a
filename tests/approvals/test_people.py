"""Who is who: whoever asked for any version decides about none, and nobody's voice counts twice."""

from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import update

from service.approvals import service
from service.approvals.delegations import service as delegations
from service.approvals.delegations.schemas import ApprovalDelegationRequest
from service.approvals.service import QuoteAmendment
from service.auth.service import resolve_lineage
from service.auth.tables import ApiKeyRow
from service.kit.clock import now
from service.quotes import service as quotes
from tests.approvals.test_model import TENANT, frozen, subject
from tests.approvals.test_races import Scene

pytestmark = pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
"""What the rules are; the test of the model holds both databases to them."""
ALICE, BOB, CAROL, DAVE = (f"token:{name}" for name in ("alice", "bob", "carol", "dave"))
ASKER = "token:asker"


def key(database, name, maker, **members):
    """A key that somebody has made."""
    with database.open_writer() as session:
        own = {"tenant_id": TENANT, "id": name.partition(":")[2], "name": name, "scopes": []}
        made = {"digest": "", "created_at": now(), "created_by": maker, "version": 1}
        line = [maker, *(resolve_lineage(session, subject(maker)) - {maker})]
        session.add(ApiKeyRow(**own, **made, lineage=line, **members))
    return name


def delegate(scene, giver, taker):
    body = f'{{"delegate": "{taker}", "ends_at": "2099-01-01T00:00:00Z"}}'
    shape = ApprovalDelegationRequest.model_validate_json(body)
    return scene.run(giver, partial(delegations.create_delegation, subject=subject(giver), body=shape))["id"]


def decide(scene, name, kind="approve"):
    """What becomes of a decision: the state of the approval, or why it is none."""
    answer = scene.run(name, scene.deciding(name, kind))
    return answer if isinstance(answer, str) else answer["state"]


def voices(scene):
    (step,) = scene.shown()["steps"]
    return [(one["approver"], one["decided_by"]) for one in step["decisions"]]


def reprice(scene, author):
    """Another version, and the approval of it that somebody else asks for."""
    made = partial(
        quotes.add_version,
        tenant_id=TENANT,
        quote_id=scene.quote["id"],
        frozen=frozen(),
        created_by=author,
        days=30,
    )
    scene.quote = scene.run(author, made)


class TestWhoeverAskedForAnyVersion:
    @pytest.mark.parametrize("ending", ["reject", "cancel"])
    def test_does_not_decide_about_one_that_follows_an_end(self, database, ending):
        scene = Scene(database, approvers=[ASKER, ALICE, BOB])
        if ending == "reject":
            assert decide(scene, ALICE, "reject") == "rejected"
        else:
            scene.run(ASKER, scene.cancelling())
        amendment = QuoteAmendment(scene.quote["content_digest"], frozen(), 30)
        amend = partial(
            service.amend_quote,
            subject=subject(CAROL),
            quote_id=scene.quote["id"],
            amendment=amendment,
            catalog=scene.catalog,
        )
        scene.approval = scene.run(CAROL, amend)
        scene.quote = {**scene.quote, "content_digest": scene.approval["content_digest"]}
        assert decide(scene, ASKER) == "OWN_APPROVAL"
        assert decide(scene, BOB) == "approved"

    def test_does_not_decide_because_somebody_else_submits_another_version_of_it(self, database):
        scene = Scene(database, approvers=[ASKER, ALICE, BOB])
        scene.run(ASKER, scene.cancelling())
        reprice(scene, ALICE)
        reprice(scene, CAROL)
        scene.approval = scene.run(CAROL, scene.submitting(CAROL))
        assert decide(scene, ASKER) == "OWN_APPROVAL"
        assert decide(scene, ALICE) == "OWN_APPROVAL"
        assert decide(scene, BOB) == "approved"

    def test_is_barred_as_a_person_whatever_they_act_by(self, database):
        own = key(database, "api_key:k1", ASKER)
        other = key(database, "api_key:k2", "api_key:k1")
        names = [own, other, "person:Asker", BOB]
        scene = Scene(database, approvers=names)
        assert [decide(scene, name) for name in names[:3]] == ["OWN_APPROVAL"] * 3
        # Asked for by a key, it is barred for the person and their other keys.
        scene.quote = scene.quote_anew()
        sibling = key(database, "api_key:k3", ASKER)
        scene.approval = scene.run(sibling, scene.submitting(sibling))
        assert [decide(scene, name) for name in (*names[:3], ASKER)] == ["OWN_APPROVAL"] * 4
        assert decide(scene, BOB) == "approved"

    def test_is_no_delegate_and_gives_nobody_their_place(self, database):
        scene = Scene(database, approvers=[ASKER, ALICE])
        delegate(scene, ALICE, ASKER)
        delegate(scene, ASKER, BOB)
        assert decide(scene, ASKER) == "OWN_APPROVAL"
        assert decide(scene, BOB) == "NOT_AN_APPROVER"
        assert decide(scene, ALICE) == "approved"


class TestOneVoice:
    def test_is_of_a_person_by_two_keys_of_theirs(self, database):
        keys = [key(database, f"api_key:k{number}", ALICE) for number in (1, 2)]
        scene = Scene(database, approvers=[*keys, "person:alice", BOB], quorum=2)
        assert decide(scene, keys[0]) == "pending"
        assert decide(scene, keys[1]) == "ALREADY_DECIDED"
        assert decide(scene, "person:alice") == "ALREADY_DECIDED"
        assert decide(scene, BOB) == "approved"

    def test_is_not_made_two_by_names_of_one_person_when_it_is_asked_for(self, database):
        own = key(database, "api_key:k1", ALICE)
        scene = Scene(database, approvers=[ALICE, own, "person:ALICE"], quorum=2)
        assert scene.approval == "TOO_FEW_APPROVERS"

    def test_counts_once_of_an_approver_who_is_also_a_delegate(self, database):
        scene = Scene(database, approvers=[ALICE, BOB, CAROL], quorum=2)
        delegate(scene, BOB, ALICE)
        assert decide(scene, ALICE) == "pending"
        assert decide(scene, ALICE) == "pending"
        assert voices(scene) == [(ALICE, ALICE)]
        assert decide(scene, CAROL) == "approved"

    def test_is_used_up_where_a_delegate_has_said_it(self, database):
        own = key(database, "api_key:k1", ALICE)
        scene = Scene(database, approvers=[own, ALICE, BOB], quorum=2)
        by = delegate(scene, own, DAVE)
        assert decide(scene, DAVE) == "pending"
        assert scene.shown()["steps"][0]["decisions"][0]["delegation_id"] == by
        # Alice's key has spoken through Dave: Alice has not two voices.
        assert decide(scene, ALICE) == "ALREADY_DECIDED"
        assert decide(scene, BOB) == "approved"
        assert voices(scene) == [(own, DAVE), (BOB, BOB)]
        assert "delegation_id" not in scene.shown()["steps"][0]["decisions"][1]

    def test_of_one_delegate_of_two_fills_one_place(self, database):
        scene = Scene(database, approvers=[ALICE, BOB], quorum=2)
        delegate(scene, ALICE, DAVE)
        delegate(scene, BOB, DAVE)
        assert decide(scene, DAVE) == "pending"
        assert decide(scene, DAVE) == "pending"
        assert voices(scene) == [(ALICE, DAVE)]
        assert decide(scene, ALICE) == "ALREADY_DECIDED"
        assert decide(scene, BOB) == "approved"


class TestDelegations:
    def test_are_not_handed_on(self, database):
        scene = Scene(database, approvers=[ALICE, BOB], quorum=2)
        delegate(scene, ALICE, CAROL)
        delegate(scene, CAROL, DAVE)
        assert decide(scene, DAVE) == "NOT_AN_APPROVER"
        assert decide(scene, CAROL) == "pending"
        assert voices(scene) == [(ALICE, CAROL)]

    @pytest.mark.parametrize(
        "ending", [{"revoked_at": now()}, {"expires_at": now() - timedelta(minutes=1)}, None]
    )
    def test_end_with_the_key_that_gave_them(self, database, ending):
        own = key(database, "api_key:k1", ALICE)
        scene = Scene(database, approvers=[own, BOB])
        delegate(scene, own, DAVE)
        with database.open_reader() as session:
            assert service.list_deciding_names(session, subject(DAVE)) == {own, DAVE}
        with database.open_writer() as session:
            change = update(ApiKeyRow).values(**ending) if ending else ApiKeyRow.__table__.delete()
            session.execute(change)
        assert decide(scene, DAVE) == "NOT_AN_APPROVER"
        with database.open_reader() as session:
            assert service.list_deciding_names(session, subject(DAVE)) == {DAVE}
        assert decide(scene, BOB) == "approved"

    def test_by_keys_that_have_ended_nobody_is_left_to_approve(self, database):
        own = key(database, "api_key:k1", ALICE, revoked_at=now())
        assert Scene(database, approvers=[own]).approval == "TOO_FEW_APPROVERS"
