"""One person, by whichever credential they come, and what ends them ends all of those."""

import time

import pytest
from sqlalchemy import select

from service.auth.tables import IdentityRow
from service.kit.security.credentials import parse_id
from service.kit.security.identity import normalize_person
from tests.applications import TENANT, Callers, attach
from tests.approvals.deciding import Actor, policy
from tests.approvals.reading import Reader, heading
from tests.auth.issuing import Provider, on_loopback
from tests.conftest import Client

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

SITE = "https://plan.example"
ANN, MAIL = "5e0e7c2a-ann", "ann@example.org"


@pytest.fixture
def provider():
    issuing = Provider("", "RS256", now=int(time.time()))
    with on_loopback(issuing):
        yield issuing


@pytest.fixture
def settings(provider):
    issuer = {"oidc_issuer": provider.issuer, "oidc_audience": "ironlaw", "oidc_algorithms": "RS256"}
    return TENANT.model_copy(update={**issuer, "public_url": SITE})


@pytest.fixture
def people(app, database, settings):
    attach(app, database, settings)
    people = Callers(app, database)
    people.client = Client(app)
    yield people
    people.client.close()


class Holder(Actor):
    """Somebody with a token of the issuer."""

    def __init__(self, people, provider, subject_id=ANN, **claims):
        claims = {"email": MAIL, "email_verified": True, **claims}
        self.secret = provider.token(sub=subject_id, scope="*:*", tenant="default", **claims)
        self.name = f"token:{subject_id}"
        self._client = people.client


def named(*names, quorum=1):
    return policy({"name": "step", "approvers": list(names), "quorum": quorum})


def asked(people, asker, *names, quorum=1):
    admin = Actor(people)
    made = admin.post("/v1/approval-policies", named(*names, quorum=quorum))
    assert made.status_code == 201, made.text
    return asker.submit(asker.quote())


def link(people, approval, approver):
    mailer = Actor(people, "approval-links:write")
    return mailer.post(f"/v1/approvals/{approval['id']}:link", {"approver": approver})


def code(answer):
    return answer.status_code, answer.json()["code"]


class TestSpelling:
    @pytest.mark.parametrize(
        "other",
        [
            "Name@Example.org", "name+1@example.org", "n.ame@example.org", "N.a.m.e+x+y@EXAMPLE.org.",
            "\uff4e\uff41me@example.org", " name@example.org",
        ],
    )  # fmt: skip
    def test_of_one_person(self, other):
        assert normalize_person(other) == normalize_person("name@example.org") == "name@example.org"

    @pytest.mark.parametrize(
        "other", ["name@example.com", "names@example.org", "name", "@example.org", "a.b"]
    )
    def test_of_another(self, other):
        assert normalize_person(other) != "name@example.org"
        assert normalize_person(other)

    def test_of_no_mail_address_keeps_its_dots(self):
        assert normalize_person("A.B+c") == "a.b+c"
        assert normalize_person("+tag@example.org") == "+tag@example.org"


class TestOnePerson:
    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    @pytest.mark.parametrize("approver", [MAIL, "Ann+approvals@example.org", "a.nn@example.org"])
    def test_does_not_approve_by_a_link_what_they_asked_for_by_a_token(self, people, provider, approver):
        ann = Holder(people, provider)
        approval = asked(people, ann, "person:bob@example.org", f"person:{approver}").json()
        assert code(link(people, approval, f"person:{approver}")) == (403, "OWN_APPROVAL")
        assert link(people, approval, "person:bob@example.org").status_code == 201

    def test_is_asked_for_somebody_else_where_nobody_else_could_approve(self, people, provider):
        refused = asked(people, Holder(people, provider), f"person:{MAIL}")
        assert code(refused) == (409, "TOO_FEW_APPROVERS")

    def test_nor_by_a_key_that_they_have_made(self, people, provider):
        ann = Holder(people, provider)
        key = Actor(people, by=ann)
        approval = asked(people, key, f"person:{MAIL}", ann.name, "person:bob@example.org").json()
        assert code(ann.decide(approval)) == (403, "OWN_APPROVAL")
        assert code(link(people, approval, f"person:{MAIL}")) == (403, "OWN_APPROVAL")

    def test_nor_what_they_only_made_and_a_colleague_asked_for(self, people, provider):
        """The version of the quote holds no more than the name that its author acted under."""
        ann, bob = Holder(people, provider), Holder(people, provider, "bob-7", email="bob@example.org")
        quote = ann.quote()
        Actor(people).post("/v1/approval-policies", named(f"person:{MAIL}", "person:carol@example.org"))
        approval = bob.submit(quote).json()
        assert code(link(people, approval, f"person:{MAIL}")) == (403, "OWN_APPROVAL")

    def test_has_one_voice_by_a_link_and_by_a_token(self, people, provider):
        ann, asker = Holder(people, provider), Actor(people)
        approval = asked(people, asker, f"person:{MAIL}", ann.name, "person:bob@example.org", quorum=2).json()
        url = link(people, approval, f"person:{MAIL}").json()["url"].removeprefix(SITE)
        assert heading(Reader(people.client).decide(url)) == "You have approved this"
        assert code(ann.decide(approval)) == (409, "ALREADY_DECIDED")

    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    @pytest.mark.parametrize("verified", [False, None, "no"])
    def test_is_not_who_an_unverified_address_says(self, people, provider, verified):
        mallory = Holder(people, provider, "mallory", email_verified=verified)
        assert asked(people, mallory, f"person:{MAIL}").json()["state"] == "pending"

    def test_is_whom_another_claim_names_if_that_is_set(self, app, database, provider, settings):
        attach(app, database, settings.model_copy(update={"oidc_person_claim": "upn"}))
        people = Callers(app, database)
        people.client = Client(app)
        ann = Holder(people, provider, email=None, email_verified=None, upn="Ann@Example.org")
        assert code(asked(people, ann, f"person:{MAIL}")) == (409, "TOO_FEW_APPROVERS")
        people.client.close()

    def test_is_noted_once_and_audited_without_a_name(self, people, provider, database):
        ann = Holder(people, provider)
        ann.quote()
        ann.quote()
        with database.open_reader() as session:
            (row,) = session.scalars(select(IdentityRow)).all()
        assert (row.subject, row.person) == (ann.name, MAIL)
        events = Actor(people).get("/v1/audit-events").json()["items"]
        noted = [one for one in events if one["operation"] == "note_identity"]
        assert [one["resource"] for one in noted] == [f"identities/{row.id}"]


class TestTheEndOfAPerson:
    def end(self, people, subject_id=ANN, **members):
        admin = Actor(people, "sessions:write")
        ended = admin.post("/v1/sessions:end", {"subject_id": subject_id, **members})
        assert ended.status_code == 200, ended.text
        return ended.json()

    def opens(self, *actors):
        return [actor.get("/v1/models").status_code for actor in actors]

    @pytest.mark.parametrize("by", [ANN, MAIL, "a.nn+x@EXAMPLE.org"])
    def test_ends_their_tokens_their_keys_and_what_was_made_with_those(self, people, provider, by):
        ann, bob = Holder(people, provider), Holder(people, provider, "bob-7", email="bob@example.org")
        key = Actor(people, by=ann)
        child, other = Actor(people, by=key), Actor(people, by=bob)
        assert self.opens(ann, bob, key, child, other) == [200] * 5
        ended = self.end(people, by)
        assert self.opens(ann, bob, key, child, other) == [401, 200, 401, 401, 200]
        assert sorted(ended["revoked_key_ids"]) == sorted(parse_id(each.secret) for each in (key, child))
        provider.now += 5
        assert self.opens(Holder(people, provider)) == [200], "a token that was issued later opens"

    def test_ends_a_key_that_they_were_handed(self, people, provider):
        ann, robot = Holder(people, provider), Actor(people, "models:read")
        rotated = ann.post(f"/v1/api-keys/{parse_id(robot.secret)}:rotate", {"overlap_seconds": 0})
        robot.secret = rotated.json()["secret"]
        self.end(people)
        assert self.opens(robot) == [401]

    def test_lasts_while_they_are_disabled(self, people, provider):
        self.end(people, disabled=True)
        provider.now += 5
        ann = Holder(people, provider)
        assert self.opens(ann) == [401]
        self.end(people)
        assert self.opens(ann) == [401], "it is not taken back by the way"
        self.end(people, disabled=False)
        provider.now += 5
        assert self.opens(Holder(people, provider)) == [200]

    def test_stops_what_they_have_handed_out_while_they_are_disabled(self, people, provider):
        ann = Holder(people, provider)
        delegate = Actor(people)
        given = {"delegate": delegate.name, "ends_at": "2099-01-01T00:00:00Z"}
        assert ann.post("/v1/approval-delegations", given).status_code == 201
        approval = asked(people, Actor(people), ann.name, "person:bob@example.org").json()
        path = f"/v1/approvals/{approval['id']}"
        url = ann.post(f"{path}:link", {"approver": "person:bob@example.org"}).json()["url"]
        self.end(people, disabled=True)
        assert code(delegate.decide(approval)) == (403, "NOT_AN_APPROVER")
        sent = {"decision": "approve", "content_digest": approval["content_digest"]}
        assert Reader(people.client).send(url.removeprefix(SITE), sent).status_code == 409
        self.end(people, disabled=False)
        assert delegate.decide(approval).json()["state"] == "approved"

    def test_a_token_that_does_not_say_when_it_was_issued_was_issued_before(self, people, provider):
        ann = Holder(people, provider, iat=None)
        assert self.opens(ann) == [200]
        self.end(people)
        assert self.opens(ann) == [401]

    def test_signing_out_everywhere_leaves_their_keys(self, people, provider):
        ann = Holder(people, provider)
        ann.quote()
        key, reader = Actor(people, by=ann), Reader(people.client, ANN)
        reader.send("/logout", {"form_token": reader.form_token(), "everywhere": "yes"})
        assert self.opens(ann, key) == [401, 200]
        assert reader.get("/approvals").status_code == 401
