"""Pages on which people decide: what they show, to whom, and what cannot be done to them."""

import html
import re
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from service.approvals.tables import ApprovalRow
from service.kit.clock import now
from service.kit.http.html import format_money
from tests.applications import TENANT, Callers, attach, bearing
from tests.approvals.deciding import Actor
from tests.approvals.reading import Reader, heading, refusal
from tests.approvals.test_links import DAVE, RequestedApproval, calling, code
from tests.auth.issuing import SigningIn, on_loopback
from tests.browsing import (
    DESKTOP,
    LOOPBACK,
    NARROW,
    PHONE,
    Caller,
    address_of,
    listening,
    overflow,
    served,
    violations,
)
from tests.conftest import Client

HOSTILE = "</h1><script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{7*7}}"
ADA = "token:ada"
SHEET = 718
"""Pixels of A4 between margins of a centimetre."""


@pytest.fixture(scope="class")
def callers(app, databases_of):
    """Callers that the tests of a class share: what they read is of one database."""
    maker = databases_of("sqlite")
    yield from calling(app, maker.loaded())
    maker.dispose()


@pytest.fixture
def asked(callers):
    """An approval that Ada has to give."""
    return RequestedApproval(Actor(callers), ADA, quorum=1)


@pytest.fixture
def page(asked):
    """The path of its page."""
    return f"/approvals/{asked.approval['id']}"


@pytest.fixture
def ada(callers):
    return Reader(callers.client, "ada")


class TestReading:
    def test_what_waits_is_listed_with_what_it_costs(self, callers, ada, asked, page):
        inbox = ada.get("/approvals")
        assert f'<a href="{page}">{asked.quote["name"]}</a>' in inbox.text
        amount = asked.quote["headlines"]["total"]["amount"]
        assert f"{float(amount):,.2f}" in inbox.text
        assert "No approval needs your decision" in Reader(callers.client, "eve").get("/approvals").text

    def test_the_page_is_the_report_and_who_has_to_decide(self, ada, asked, page):
        seen = ada.get(page)
        assert heading(seen) == asked.quote["name"]
        for text in (
            asked.quote["content_digest"],
            "Summary",
            "Your decision",
            "1 of <bdi>ada</bdi>",
        ):
            assert text in seen.text
        assert ada.fields(page).buttons == ["approve", "reject"]

    def test_the_page_names_the_key_that_asked_and_its_amount_first(self, ada, page):
        text = ada.get(page).text
        assert "Asked for by <bdi>API key “" in text
        assert text.index("Amount to pay") < text.index("Your decision") < text.index("Summary")

    def test_the_report_names_who_approved_to_those_who_may_read_approvals(self, callers, ada, asked, page):
        ada.decide(page)
        report = f"/v1/quotes/{asked.quote['id']}/report"
        assert "<dt>Approved by</dt><dd><bdi>ada</bdi>" in asked.asker.get(report).text
        outsider = Actor(callers, "quotes:read")
        assert outsider.get(report).status_code == 200
        assert "Approved by" not in outsider.get(report).text

    def test_buttons_are_for_approvers_alone(self, callers, page):
        seen = Reader(callers.client, "eve").get(page)
        assert seen.status_code == 200
        assert "<textarea" not in seen.text

    def test_whoever_may_not_read_approvals_reads_none(self, callers, page):
        reader = Reader(callers.client, "ada", scopes=["quotes:*", "approvals:write"])
        for path in ("/approvals", page):
            assert refusal(reader.get(path)) == (403, "SCOPE_REQUIRED")

    def test_the_page_of_another_tenant_is_not_there(self, callers, page):
        reader = Reader(callers.client, "ada", tenant=callers.tenant("others"))
        assert refusal(reader.get(page)) == (404, "APPROVAL_NOT_FOUND")
        sent = {"form_token": reader.form_token(), "decision": "approve", "content_digest": "0" * 64}
        assert refusal(reader.send(page, sent)) == (404, "APPROVAL_NOT_FOUND")

    def test_nothing_from_elsewhere_and_nothing_that_runs(self, ada, page):
        headers = ada.get(page).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy.pop("style-src").startswith("'sha256-")
        assert policy == {
            "default-src": "'none'",
            "form-action": "'self'",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
        }
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"

    def test_what_others_wrote_is_text(self, callers, ada):
        asker = Actor(callers)
        asked = RequestedApproval(asker, ADA, quorum=1, quoted={"name": HOSTILE, "note": HOSTILE})
        asker.post(f"{asked.path}:comment", {"text": HOSTILE})
        for path in ("/approvals", f"/approvals/{asked.approval['id']}"):
            seen = ada.get(path).text
            assert "<script" not in seen
            assert "<img" not in seen
            assert "&lt;script&gt;" in seen
            assert "{{7*7}}" in seen

    def test_an_amendment_says_what_changed(self, ada, asked):
        request = asked.quote["requests"]["cost"]
        request["rental"]["price_per_device_hour"]["amount"] = "5"
        body = {"operation": "cost", "name": asked.quote["name"], "request": request}
        sent = {"content_digest": asked.quote["content_digest"], "quote": body}
        amended = asked.asker.post(f"/v1/quotes/{asked.quote['id']}:amend", sent)
        assert amended.status_code == 201, amended.text
        seen = ada.get(f"/approvals/{amended.json()['id']}").text
        assert "Changes since version 1" in seen
        assert "+100.0%" in seen
        before, after = (
            Decimal(one["headlines"]["total"]["amount"]) for one in (asked.quote, amended.json())
        )
        moved = f"+{format_money(after - before, 'USD')}"
        assert f"<strong>Rental</strong>: {moved} (+0.00\xa0USD by quantity, {moved} by price)" in seen
        assert "rental/price_per_device_hour/amount</code>: 2.5 → 5" in seen


def said(page, element):
    """The words of a paragraph with an id."""
    found = re.search(f'<p id="{element}">(.*?)</p>', page.text, re.DOTALL)[1]
    return " ".join(html.unescape(re.sub("<[^>]+>", "", found)).split())


class TestWhatAButtonDoes:
    """It is said in a sentence before it is pressed, and on the page that it leads to."""

    @pytest.fixture
    def budget(self, callers):
        """Makes a budget of a cost centre of its own; its id."""

        def made(amount, **members):
            name = uuid4().hex
            actor = Actor(callers)
            day = now().date()
            body = {
                "id": f"budget-{name}",
                "name": "A budget",
                "cost_center_id": name,
                "amount": {"amount": amount, "currency_code": "USD"},
                "starts_on": f"{day - timedelta(days=30)}",
                "ends_on": f"{day + timedelta(days=400)}",
                **members,
            }
            assert actor.post("/v1/cost-centers", {"id": name, "name": name}).status_code == 201
            answer = actor.post("/v1/budgets", body)
            assert answer.status_code == 201, answer.text
            return name

        return made

    def test_the_last_approval_says_what_is_committed_and_left(self, callers, ada, budget):
        center = budget("1000")
        asked = RequestedApproval(Actor(callers), ADA, quorum=1, quoted={"cost_center_id": center})
        page = f"/approvals/{asked.approval['id']}"
        total = Decimal(asked.quote["headlines"]["total"]["amount"])
        words = said(ada.get(page), "approving")
        assert words.startswith(f"Approve: you approve {total:,f} USD for a run of ")
        assert "it completes the step “step”, which is the last approval: the quote is approved" in words
        taken = f"{total:,f} USD from the budget budget-{center}"
        left = f"(1,000.00 USD left before, {1000 - total:,f} USD after)"
        assert f"this is committed: {taken} {left}." in words
        assert re.search(r"The decision is due by \d+ \w+ 20\d\d, \d\d:\d\d UTC\.$", words)
        assert "nothing is committed" in said(ada.get(page), "rejecting")
        assert asked.decisions() == [], "it was tried, and undone"
        done = ada.decide(page)
        assert (
            f"The quote is approved, and this was committed: {total:,f}\xa0USD from the budget" in done.text
        )

    def test_a_budget_that_refuses_is_told_before(self, callers, ada, budget):
        center = budget("0.01", enforcement="block")
        asked = RequestedApproval(Actor(callers), ADA, quorum=1, quoted={"cost_center_id": center})
        page = f"/approvals/{asked.approval['id']}"
        words = said(ada.get(page), "approving")
        assert words.startswith("Approve: it would currently be refused: ")
        assert f"budget-{center}" in words
        assert ada.decide(page).status_code == 409
        assert asked.state() == "pending"

    def test_a_budget_that_is_exceeded_is_told_before(self, callers, ada, budget):
        asked = RequestedApproval(Actor(callers), ADA, quorum=1, quoted={"cost_center_id": budget("0.01")})
        assert "it is exceeded" in said(ada.get(f"/approvals/{asked.approval['id']}"), "approving")

    def test_the_deadline_is_that_of_the_prices_where_they_end_first(self, callers, ada, asked, page):
        ends = datetime(2099, 1, 2, 3, 4, tzinfo=UTC)
        for member, late in (("expires_at", "valid_until"), ("valid_until", "expires_at")):
            with callers.client.app.state.database.open_writer() as session:
                row = session.get(ApprovalRow, ("default", asked.approval["id"]))
                setattr(row, member, ends)
                setattr(row, late, ends + timedelta(days=1))
            assert said(ada.get(page), "approving").endswith(
                "The decision is due by 2 January 2099, 03:04 UTC."
            )

    def test_one_of_several_says_what_is_still_needed(self, callers, ada, budget):
        asked = RequestedApproval(Actor(callers), ADA, DAVE)
        page = f"/approvals/{asked.approval['id']}"
        needed = "the step “step” needs 1 more of its 2 approvals, by dave@example.org"
        words = said(ada.get(page), "approving")
        assert f"; then {needed}" in words
        assert "; nothing is committed until then." in words
        spent = budget("0.01")
        other = RequestedApproval(Actor(callers), ADA, DAVE, quoted={"cost_center_id": spent})
        words = said(ada.get(f"/approvals/{other.approval['id']}"), "approving")
        assert (
            f"and the commitment would currently be 105.33 USD from the budget budget-{spent} (0.01 USD left"
            in words
        )
        assert "it is exceeded" in words
        done = ada.decide(page)
        assert "The approval is pending" in done.text
        assert "1 more of its 2 approvals" in done.text

    def test_a_delegate_is_told_in_whose_place(self, callers, ada):
        asker = Actor(callers)
        boss = Actor(callers)
        asked = RequestedApproval(asker, boss.name, quorum=1)
        given = {"delegate": ADA, "ends_at": (now() + timedelta(hours=1)).isoformat()}
        made = boss.post("/v1/approval-delegations", given)
        assert made.status_code == 201, made.text
        page = f"/approvals/{asked.approval['id']}"
        place = boss.name.partition(":")[2]
        assert f", as delegate of {place} (API key);" in said(ada.get(page), "approving")
        ada.decide(page)
        assert [(one["decided_by"], one["approver"]) for one in asked.decisions()] == [(ADA, boss.name)]


class TestDeciding:
    def test_a_button_decides_as_whoever_signed_in(self, ada, asked, page):
        done = ada.decide(page, comment=HOSTILE)
        assert "You have approved this" in done.text
        assert "<script" not in done.text
        (decision,) = asked.decisions()
        assert (decision["decided_by"], decision["via"], decision["comment"]) == (ADA, "page", HOSTILE)
        assert asked.state() == "approved"
        assert "<textarea" not in done.text

    def test_pressed_twice_it_is_one_decision(self, ada, asked, page):
        form = ada.fields(page)
        sent = {**form.hidden, "decision": "reject", "comment": ""}
        assert [ada.send(page, sent).status_code for _ in range(2)] == [303, 303]
        other = ada.send(page, {**sent, "decision": "approve"})
        assert (other.status_code, "You have already made the opposite decision" in other.text) == (409, True)
        assert [one["decision"] for one in asked.decisions()] == ["reject"]

    def test_what_was_not_seen_is_not_decided(self, ada, asked, page):
        changed = ada.decide(page, comment="kept", content_digest="0" * 64)
        assert (changed.status_code, "No decision was made" in changed.text) == (409, True)
        assert ">kept</textarea>" in changed.text
        assert asked.decisions() == []

    def test_what_was_amended_meanwhile_is_not_decided_and_the_page_says_what_changed(self, ada, asked, page):
        form = ada.fields(page)
        request = asked.quote["requests"]["cost"]
        request["rental"]["price_per_device_hour"]["amount"] = "5"
        body = {"operation": "cost", "name": asked.quote["name"], "request": request}
        sent = {"content_digest": asked.quote["content_digest"], "quote": body}
        amended = asked.asker.post(f"/v1/quotes/{asked.quote['id']}:amend", sent).json()
        late = ada.send(page, {**form.hidden, "decision": "approve"})
        assert late.status_code == 409
        for seen in (late, ada.get(page)):
            assert "The quote was amended" in seen.text
            assert "Version 2 replaces version 1" in seen.text
            assert f'<a href="/approvals/{amended["id"]}">' in seen.text
            assert "rental/price_per_device_hour/amount</code>: 2.5 → 5" in seen.text
            assert "<textarea" not in seen.text
        newer = asked.asker.get(f"/v1/approvals/{amended['id']}").json()
        assert [one["decisions"] for one in newer["steps"]] == [[]]

    @pytest.mark.parametrize("token", [None, "", "0" * 32])
    def test_a_form_of_another_session_decides_nothing(self, ada, asked, page, token):
        assert refusal(ada.decide(page, form_token=token)) == (403, "FORM_REFUSED")
        assert asked.decisions() == []

    def test_a_form_of_another_site_decides_nothing(self, ada, asked, page):
        form = ada.fields(page)
        answer = ada.send(page, {**form.hidden, "decision": "approve"}, Origin="https://evil.example")
        assert (code(answer), asked.decisions()) == ((403, "ORIGIN_NOT_ALLOWED"), [])

    def test_a_key_is_no_session(self, callers, asked, page):
        answer = Reader(callers.client).send(page, {}, **bearing(asked.asker.secret))
        assert refusal(answer) == (401, "SIGN_IN_UNAVAILABLE")

    def test_whoever_may_read_only_decides_nothing(self, callers, asked, page):
        reader = Reader(callers.client, "ada", scopes=["approvals:read"])
        assert refusal(reader.decide(page)) == (403, "SCOPE_REQUIRED")
        assert asked.decisions() == []

    def test_whoever_asked_decides_nothing(self, callers, asked, page):
        asker = Reader(callers.client, "ada")
        form = asker.fields(page)
        with callers.client.app.state.database.open_writer() as session:
            row = session.get(ApprovalRow, ("default", asked.approval["id"]))
            row.asked_by = [*row.asked_by, ADA]
        assert "<textarea" not in asker.get(page).text
        refused = asker.send(page, {**form.hidden, "decision": "approve"})
        assert (refused.status_code, "You cannot decide on your own request" in refused.text) == (403, True)
        assert asked.decisions() == []


def test_in_open_mode_nobody_decides(app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    client = Client(app)
    assert "In open mode everybody is the same subject" in client.get("/approvals").text
    client.close()
    maker.dispose()


class TestInABrowser:
    """The whole way of an approver: by keyboard, without scripts, on a phone and at a desk."""

    pytestmark = LOOPBACK

    @pytest.fixture
    def place(self, app, databases_of):
        """A service that people sign in to, its address, and somebody who calls it."""
        maker = databases_of("sqlite")
        database, port = maker.loaded(), listening()
        with on_loopback(SigningIn(now=int(time.time()))) as provider:
            settings = {
                "oidc_issuer": provider.issuer,
                "oidc_audience": "ironlaw",
                "oidc_client_id": provider.client_id,
                "public_url": address_of(port),
            }
            provider.secret = ""
            attach(app, database, TENANT.model_copy(update=settings))
            with served(app, port) as address:
                callers = Callers(app, database)
                callers.client = Caller(app, address)
                yield callers, address
                callers.client.close()
        maker.dispose()

    def test_somebody_signs_in_reads_and_approves(self, place, window):
        callers, address = place
        asked = RequestedApproval(Actor(callers), ADA, DAVE, quoted={"name": HOSTILE, "note": HOSTILE})
        page = window(PHONE)
        page.goto(f"{address}/approvals")
        assert page.url == f"{address}/approvals"
        self.reads_well(page)
        page.get_by_role("link", name=HOSTILE).click()
        self.reads_well(page)
        page.get_by_role("link", name="Go to the decision").click()
        assert self.focused(page) == "decide"
        page.get_by_label("Comment").fill("Fine by me")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("You have approved this").wait_for()
        self.reads_well(page)
        (decision,) = asked.decisions()
        assert (decision["decided_by"], decision["comment"]) == (ADA, "Fine by me")
        page.get_by_role("button", name="Sign out").click()
        assert page.get_by_role("heading", level=1).inner_text() == "You are signed out"
        self.reads_well(page)

    def test_a_keyboard_gets_past_what_every_page_has(self, place, window):
        _, address = place
        page = window(PHONE)
        page.goto(f"{address}/approvals")
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "To the content"
        page.keyboard.press("Enter")
        assert self.focused(page) == "main"
        page.goto(f"{address}/approvals/{'0' * 32}")
        self.reads_well(page)
        page.goto(f"{address}/docs/problems")
        self.reads_well(page)

    def test_somebody_rejects_by_a_link(self, place, window):
        callers, _ = place
        asked = RequestedApproval(Actor(callers), DAVE, quorum=1)
        mailer = Actor(callers, "approval-links:write")
        made = mailer.post(f"{asked.path}:link", {"approver": DAVE}).json()
        page = window(java_script_enabled=False)
        page.goto(made["url"])
        page.get_by_role("button", name="Reject").click()
        assert page.get_by_role("heading", level=1).inner_text() == "You have rejected this"
        assert asked.state() == "rejected"
        page.go_back()
        page.reload()
        assert page.get_by_role("button").count() == 0
        again = window(PHONE)
        again.goto(made["url"])
        self.reads_well(again)

    @staticmethod
    def focused(page):
        return page.evaluate("document.activeElement.id")

    @staticmethod
    def reads_well(page):
        """At a desk, on phones and on paper; axe knows contrast, landmarks, labels and headings."""
        for width in (DESKTOP, NARROW, PHONE):
            page.set_viewport_size({"width": width, "height": 844})
            assert violations(page) == []
            assert overflow(page) == 0
        page.set_viewport_size({"width": SHEET, "height": 844})
        page.emulate_media(media="print")
        assert overflow(page) == 0
        assert page.get_by_role("button").count() == 0
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": PHONE, "height": 844})
