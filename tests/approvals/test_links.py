"""Links: one approver's, for one decision; forged, expired, used, swapped and scanned."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from service.approvals.links.tables import ApprovalLinkRow
from service.approvals.tables import ApprovalRow
from service.auth.service import set_tenant_disabled
from service.kit.clock import now
from service.kit.security.credentials import parse_id
from tests.applications import TENANT, Callers, attach, bearing
from tests.approvals.deciding import Actor, governed, made_by, policy, step
from tests.approvals.reading import Reader, heading, refusal
from tests.conftest import Client

SITE = "https://plan.example"
WHOLE = "ironlawlink_a1b2c3d4e5f6g7h8_" + "a" * 43 + "9Zm9Yb"
CAROL = "person:carol@example.org"
DAVE = "person:dave@example.org"


SETTINGS = TENANT.model_copy(update={"public_url": SITE})


@pytest.fixture
def callers(app, database):
    yield from calling(app, database)


def calling(app, database):
    attach(app, database, SETTINGS)
    callers = Callers(app, database)
    callers.client = Client(app)
    yield callers
    callers.client.close()


@pytest.fixture(scope="class")
def callers_of_all(app, databases_of):
    """Callers that the tests of a class share: their rules are asked of one database, once."""
    maker = databases_of("sqlite")
    yield from calling(app, maker.loaded())
    maker.dispose()


@pytest.fixture
def mailer(callers):
    """What sends links to people; it may do nothing else."""
    return Actor(callers, "approval-links:write")


@pytest.fixture
def asked(callers):
    """An approval that Carol and Dave both have to give."""
    return RequestedApproval(Actor(callers))


def person(name):
    return SimpleNamespace(name=name)


class RequestedApproval:
    """An approval that is asked for, and the policy that says by whom it is given."""

    def __init__(self, asker, *approvers, quorum=2, quoted=None, **members):
        self.asker = asker
        people = [person(name) for name in approvers or (CAROL, DAVE)]
        asking = step(*people, quorum=quorum, **members)
        named = policy(asking, name=f"of-{parse_id(asker.secret)}", requesters=[asker.name])
        made = governed(asker, named)
        assert made.status_code == 201, made.text
        self.quote = asker.quote(**(quoted or {}))
        submitted = asker.submit(self.quote)
        assert submitted.status_code == 201, submitted.text
        self.approval = submitted.json()
        self.path = f"/v1/approvals/{self.approval['id']}"

    def state(self):
        return self.asker.get(self.path).json()["state"]

    def decisions(self):
        steps = self.asker.get(self.path).json()["steps"]
        return [decision for one in steps for decision in one["decisions"]]


def link(maker, asked, approver=CAROL):
    """The path of a fresh link."""
    made = maker.post(f"{asked.path}:link", {"approver": approver})
    assert made.status_code == 201, made.text
    assert made.json()["url"].startswith(f"{SITE}/decide/ironlawlink_")
    return made.json()["url"].removeprefix(SITE)


def code(answer):
    return answer.status_code, answer.json()["code"]


class TestOneDecision:
    def test_by_whom_the_link_is_for(self, callers, mailer, asked):
        path = link(mailer, asked)
        reader = Reader(callers.client)
        assert heading(reader.get(path)) == asked.quote["name"]
        page = reader.decide(path, comment="Fine,\r\n go  on")
        assert (page.status_code, heading(page)) == (200, "You have approved this")
        (decision,) = asked.decisions()
        assert (decision["approver"], decision["via"], decision["comment"]) == (CAROL, "link", "Fine, go on")
        assert decision["content_digest"] == asked.quote["content_digest"]
        assert decision["linked_by"] == mailer.name
        assert asked.state() == "pending"
        other = Actor(callers, "approval-links:write")
        page = Reader(callers.client).decide(link(other, asked, DAVE), "reject")
        assert heading(page) == "You have rejected this"
        assert asked.state() == "rejected"

    def test_is_in_the_audit_with_who_made_the_link(self, callers, mailer, asked):
        Reader(callers.client).decide(link(mailer, asked))
        events = asked.asker.get("/v1/audit-events").json()["items"][:3]
        told = [(one["operation"], one["subject_kind"], one["subject_id"]) for one in events]
        maker = mailer.name.partition(":")[2]
        assert told == [
            ("decide_by_link", "person", "carol@example.org"),
            ("decide_by_link", "person", "carol@example.org"),
            ("link_approval", "api_key", maker),
        ]
        by_link = f"{asked.path.removeprefix('/v1/')}/links/"
        assert [one["resource"].startswith(by_link) for one in events] == [False, True, True]
        # The use of the link follows its making, in which its maker is named.
        assert events[1]["before_digest"] == events[2]["after_digest"]

    def test_a_used_link_decides_nothing_more_and_shows_nothing_more(self, callers, mailer, asked):
        path, reader = link(mailer, asked), Reader(callers.client)
        form = reader.fields(path)
        reader.decide(path)
        again = reader.send(form.action, {**form.hidden, "decision": "reject"})
        assert again.status_code == 409
        assert heading(again) == "You have approved this"
        assert "has been used" in again.text
        assert asked.quote["id"] not in again.text
        assert len(asked.decisions()) == 1

    def test_by_whoever_is_first_of_those_it_was_passed_on_to(self, callers, mailer, asked):
        path = link(mailer, asked)
        hidden = Reader(callers.client).fields(path).hidden
        pages, token = callers.client.app.state.approval_pages, path.rpartition("/")[2]

        def press(decision):
            return pages.decide_linked("request", token, {**hidden, "decision": decision}).status_code

        with ThreadPoolExecutor(8) as threads:
            statuses = list(threads.map(press, ["approve", "reject"] * 4))
        assert sorted(statuses) == [303] + [409] * 7
        assert len(asked.decisions()) == 1

    def test_reading_it_changes_nothing(self, callers, mailer, asked):
        """Programs that scan mail open links, ask for their heads, and do so often."""
        path, reader = link(mailer, asked), Reader(callers.client)
        for _ in range(3):
            assert reader.get(path).status_code == 200
            assert callers.client.request("HEAD", path).status_code == 200
        assert asked.decisions() == []
        assert heading(reader.decide(path)) == "You have approved this"

    def test_what_is_not_said_clearly_decides_nothing(self, callers, mailer, asked):
        path, reader = link(mailer, asked), Reader(callers.client)
        assert reader.decide(path, decision="perhaps").status_code == 400
        assert reader.decide(path, decision=None).status_code == 400
        assert reader.decide(path, content_digest=None).status_code == 400
        other = reader.decide(path, content_digest="0" * 64)
        assert (other.status_code, heading(other)[:18]) == (409, "The content digest")
        long = reader.decide(path, comment="<b>" + "x" * 500)
        assert (long.status_code, "&lt;b&gt;xxx" in long.text) == (422, True)
        assert asked.decisions() == []


class TestRefused:
    @pytest.fixture
    def callers(self, callers_of_all):
        return callers_of_all

    @pytest.mark.parametrize(
        "token",
        ["x", "ironlawlink_", WHOLE, "ironlaw_a1b2c3d4e5f6g7h8_x", "%00", "é", "a" * 190],
    )
    def test_one_that_nobody_made(self, callers, token):
        reader = Reader(callers.client)
        for answer in (
            reader.get(f"/decide/{token}"),
            reader.send(f"/decide/{token}", {"decision": "approve"}),
        ):
            assert refusal(answer) == (404, "APPROVAL_LINK_NOT_FOUND")

    def test_one_of_whose_secret_a_part_is_another_links(self, callers, mailer, asked):
        mine, other = link(mailer, asked), link(mailer, asked, DAVE)
        _, own_id, _ = mine.rsplit("/", 1)[1].split("_")
        swapped = "_".join(["/decide/ironlawlink", own_id, other.split("_")[2]])
        assert refusal(Reader(callers.client).get(swapped)) == (404, "APPROVAL_LINK_NOT_FOUND")

    def test_one_that_has_expired(self, callers, mailer, asked):
        path, reader = link(mailer, asked), Reader(callers.client)
        form = reader.fields(path)
        with callers.client.app.state.database.open_writer() as session:
            session.execute(update(ApprovalLinkRow).values(expires_at=now() - timedelta(seconds=1)))
        ended = reader.get(path)
        assert heading(ended) == "This link is no longer valid"
        assert "The link expired on <time" in ended.text
        late = reader.send(form.action, {**form.hidden, "decision": "approve"})
        assert (late.status_code, asked.decisions()) == (409, [])

    def test_one_of_a_step_that_is_done(self, callers, mailer):
        asked = RequestedApproval(Actor(callers), quorum=1)
        path, reader = link(mailer, asked), Reader(callers.client)
        form = reader.fields(path)
        Reader(callers.client).decide(link(mailer, asked, DAVE))
        assert heading(reader.get(path)) == "This link is no longer valid"
        late = reader.send(form.action, {**form.hidden, "decision": "reject"})
        assert (late.status_code, asked.state()) == (409, "approved")

    def test_one_of_a_quote_that_was_amended(self, callers, mailer, asked):
        path, reader = link(mailer, asked), Reader(callers.client)
        form = reader.fields(path)
        body = {"operation": "cost", "name": "Amended", "request": asked.quote["requests"]["cost"]}
        sent = {"content_digest": asked.quote["content_digest"], "quote": body}
        amended = asked.asker.post(f"/v1/quotes/{asked.quote['id']}:amend", sent)
        assert amended.status_code == 201, amended.text
        assert "amended" in reader.get(path).text
        late = reader.send(form.action, {**form.hidden, "decision": "approve"})
        assert late.status_code == 409
        assert asked.asker.get(f"/v1/approvals/{amended.json()['id']}").json()["steps"][0]["decisions"] == []

    def test_one_of_a_tenant_that_is_disabled(self, callers, mailer, asked):
        path = link(mailer, asked)
        operator = bearing(callers.key("tenants:*"))
        callers.client.post("/v1/tenants/default:disable", headers=operator)
        try:
            assert refusal(Reader(callers.client).get(path)) == (404, "APPROVAL_LINK_NOT_FOUND")
        finally:
            # The operator is of that tenant too.
            with callers.client.app.state.database.open_writer() as session:
                set_tenant_disabled(session, "default", disabled=False)
            callers.client.app.state.held_keys.refresh()


class TestInABrowserOfWhoeverAsked:
    """A link that was passed on to the requester, who is signed in there."""

    @pytest.fixture
    def callers(self, callers_of_all):
        return callers_of_all

    def test_it_shows_no_buttons_and_decides_nothing(self, callers, mailer, asked):
        path, ada = link(mailer, asked), Reader(callers.client, "ada")
        form = ada.fields(path)
        assert form.buttons == ["approve", "reject"], "so far she is somebody else"
        with callers.client.app.state.database.open_writer() as session:
            row = session.get(ApprovalRow, ("default", asked.approval["id"]))
            row.asked_by = [*row.asked_by, ada.name]
        assert ada.fields(path).buttons == []
        refused = ada.send(form.action, {**form.hidden, "decision": "approve"})
        assert (refused.status_code, "You cannot decide on your own request" in refused.text) == (403, True)
        assert asked.decisions() == []
        assert heading(Reader(callers.client).decide(path)) == "You have approved this"


class TestMaking:
    @pytest.fixture
    def callers(self, callers_of_all):
        return callers_of_all

    def test_needs_the_scope_for_it(self, callers, asked):
        near = Actor(callers, "approvals:*", "*:read")
        refused = near.post(f"{asked.path}:link", {"approver": CAROL})
        assert code(refused) == (403, "SCOPE_REQUIRED")

    def test_is_not_for_whoever_asked_nor_for_their_keys(self, callers, asked):
        """By the link of an approver, whoever asked could decide it."""
        key = Actor(callers)
        key.secret = made_by(callers, asked.asker, ["*:*"])
        for maker in (asked.asker, key):
            refused = maker.post(f"{asked.path}:link", {"approver": CAROL})
            assert code(refused) == (403, "OWN_APPROVAL")

    def test_is_for_persons_only(self, callers, mailer):
        """Whoever has credentials decides by them: by a link for them, its maker would act in their name."""
        key = Actor(callers)
        asked = RequestedApproval(Actor(callers), key.name, "token:erin", CAROL)
        for approver in (key.name, "token:erin"):
            refused = mailer.post(f"{asked.path}:link", {"approver": approver})
            assert code(refused) == (403, "APPROVAL_LINK_FOR_PERSONS_ONLY")
        link(mailer, asked, CAROL)

    def test_one_made_for_a_key_before_that_was_so_decides_nothing(self, app, callers, mailer):
        key = Actor(callers)
        asked = RequestedApproval(Actor(callers), key.name, CAROL, quorum=1)
        path = link(mailer, asked, CAROL)
        with app.state.database.open_writer() as session:
            old = update(ApprovalLinkRow).where(ApprovalLinkRow.id == parse_id(path.rpartition("/")[2]))
            session.execute(old.values(approver=key.name))
        late = Reader(callers.client).decide(path)
        assert (late.status_code, asked.decisions()) == (409, [])

    def test_by_links_of_one_maker_a_quorum_is_never_filled(self, callers, mailer, asked):
        first, second = link(mailer, asked), link(mailer, asked, DAVE)
        assert heading(Reader(callers.client).decide(first)) == "You have approved this"
        refused = Reader(callers.client).decide(second)
        assert (refused.status_code, len(asked.decisions()), asked.state()) == (409, 1, "pending")
        # Nor by those of a key that the maker has made.
        makers = Actor(callers, "approval-links:write", "api-keys:write")
        asked = RequestedApproval(Actor(callers))
        twin = Actor(callers, "approval-links:write", by=makers)
        assert heading(Reader(callers.client).decide(link(makers, asked))) == "You have approved this"
        refused = Reader(callers.client).decide(link(twin, asked, DAVE))
        assert (refused.status_code, len(asked.decisions()), asked.state()) == (409, 1, "pending")

    def test_beside_the_makers_own_decision_their_link_does_not_count(self, callers):
        maker = Actor(callers, "approval-links:write", "approvals:write")
        asked = RequestedApproval(Actor(callers), maker.name, CAROL)
        assert maker.decide(asked.approval).status_code == 200
        refused = Reader(callers.client).decide(link(maker, asked))
        assert (refused.status_code, asked.state()) == (409, "pending")

    def test_is_for_approvers_of_the_open_step_only(self, mailer, asked):
        other = mailer.post(f"{asked.path}:link", {"approver": "person:eve@example.org"})
        assert code(other) == (403, "NOT_AN_APPROVER")

    def test_is_listed_and_revoked(self, callers, mailer, asked):
        path, used = link(mailer, asked), link(Actor(callers, "approval-links:write"), asked, DAVE)
        Reader(callers.client).decide(used)
        near = Actor(callers, "approval-links:read")
        listed = near.get(f"{asked.path}/links").json()["items"]
        told = [(one["approver"], one["created_by"] == mailer.name, one["state"]) for one in listed]
        assert told == [(CAROL, True, "open"), (DAVE, False, "used")]
        assert not any("digest" in one or "url" in one for one in listed)
        revoked = f"/v1/approval-links/{listed[0]['id']}"
        assert near.request("DELETE", revoked).status_code == 403
        assert mailer.request("DELETE", revoked).status_code == 204
        reader = Reader(callers.client)
        assert "was revoked on <time" in reader.get(path).text
        sent = {"decision": "approve", "content_digest": asked.quote["content_digest"]}
        assert reader.send(path, sent).status_code == 409
        states = [one["state"] for one in near.get(f"{asked.path}/links").json()["items"]]
        assert (states, len(asked.decisions())) == (["revoked", "used"], 1)
        operations = [one["operation"] for one in asked.asker.get("/v1/audit-events").json()["items"]]
        assert operations[0] == "revoke_approval_link"
        assert code(mailer.request("DELETE", "/v1/approval-links/m4x8q2t6v0z3b7k1")) == (
            404,
            "APPROVAL_LINK_NOT_FOUND",
        )

    def test_ends_with_the_approval_that_is_cancelled(self, callers, mailer, asked):
        path = link(mailer, asked)
        digest = {"content_digest": asked.quote["content_digest"]}
        assert asked.asker.post(f"/v1/quotes/{asked.quote['id']}:cancel", digest).status_code == 200
        (listed,) = asked.asker.get(f"{asked.path}/links").json()["items"]
        assert listed["state"] == "ended"
        assert heading(Reader(callers.client).get(path)) == "This link is no longer valid"

    def test_ends_with_the_key_that_made_it(self, callers, mailer, asked):
        path = link(mailer, asked)
        ended = f"/v1/api-keys/{parse_id(mailer.secret)}"
        assert asked.asker.request("DELETE", ended).status_code == 204
        (listed,) = asked.asker.get(f"{asked.path}/links").json()["items"]
        assert listed["state"] == "revoked"
        sent = {"decision": "approve", "content_digest": asked.quote["content_digest"]}
        assert Reader(callers.client).send(path, sent).status_code == 409
        assert asked.decisions() == []

    def test_has_a_bound(self, mailer, asked, monkeypatch):
        monkeypatch.setattr("service.approvals.links.service.MOST_LINKS", 2)
        link(mailer, asked)
        link(mailer, asked)
        refused = mailer.post(f"{asked.path}:link", {"approver": CAROL})
        assert code(refused) == (409, "TOO_MANY_APPROVAL_LINKS")

    def test_ends_with_the_approval(self, callers, mailer, asked):
        Reader(callers.client).decide(link(mailer, asked), "reject")
        assert code(mailer.post(f"{asked.path}:link", {"approver": DAVE})) == (409, "APPROVAL_ENDED")

    def test_expires_with_the_step(self, callers, mailer):
        asked = RequestedApproval(Actor(callers), expires_after_seconds=3600)
        made = mailer.post(f"{asked.path}:link", {"approver": CAROL}).json()["link"]
        assert made["expires_at"] == asked.approval["steps"][0]["due_at"]

    def test_shows_the_address_once(self, mailer, asked):
        body, once = {"approver": CAROL}, {"Idempotency-Key": "k"}
        first, again = (mailer.post(f"{asked.path}:link", body, headers=once) for _ in range(2))
        assert first.json()["link"] == again.json()["link"]
        assert ("url" in first.json(), "url" in again.json()) == (True, False)

    def test_needs_the_address_of_the_service(self, app, mailer, asked, monkeypatch):
        monkeypatch.setattr(app.state.links, "_public_url", "")
        refused = mailer.post(f"{asked.path}:link", {"approver": CAROL})
        assert code(refused) == (409, "PUBLIC_URL_UNKNOWN")

    def test_is_of_the_tenant(self, callers, asked):
        other = Actor(callers)
        other.secret = callers.key("*:*", tenant=callers.tenant("other"))
        refused = other.post(f"{asked.path}:link", {"approver": CAROL})
        assert code(refused) == (404, "APPROVAL_NOT_FOUND")
