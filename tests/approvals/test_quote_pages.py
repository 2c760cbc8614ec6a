"""Pages of quotes: what they list, and the button that submits what was read."""

import re

import pytest

from tests.applications import attach, bearing
from tests.approvals.deciding import QUOTED, Actor
from tests.approvals.reading import Reader, heading, refusal
from tests.approvals.test_links import RequestedApproval, calling
from tests.approvals.test_pages import ADA, HOSTILE
from tests.browsing import LOOPBACK, PHONE, overflow, served, violations


@pytest.fixture(scope="class")
def callers(app, databases_of):
    """Callers that the tests of a class share."""
    maker = databases_of("sqlite")
    yield from calling(app, maker.loaded())
    maker.dispose()


@pytest.fixture
def eve(callers):
    return Reader(callers.client, "eve")


def submission(reader, page):
    """What the form of a quote would send."""
    seen = reader.get(page).text
    digest = re.search('name="content_digest" value="([0-9a-f]+)"', seen)[1]
    return {"content_digest": digest, "form_token": reader.form_token()}


class TestReading:
    def test_quotes_are_listed_by_names(self, callers, eve):
        quote = Actor(callers).quote(name="A listed run")
        seen = eve.get("/quotes").text
        assert f'<a href="/quotes/{quote["id"]}">A listed run</a>' in seen
        assert "8 \N{MULTIPLICATION SIGN} NVIDIA H100 SXM" in seen
        assert "<bdi>API key “" in seen

    def test_a_quote_begins_with_its_card(self, callers, eve):
        quote = Actor(callers).quote()
        seen = eve.get(f"/quotes/{quote['id']}")
        assert heading(seen) == quote["name"]
        assert seen.text.index("Amount to pay") < seen.text.index("Submit for approval")

    def test_what_others_wrote_is_text(self, callers, eve):
        quote = Actor(callers).quote(name=HOSTILE, note=HOSTILE)
        for path in ("/quotes", f"/quotes/{quote['id']}", f"/quotes/{quote['id']}/report"):
            seen = eve.get(path).text
            assert "<script" not in seen
            assert "&lt;script&gt;" in seen

    def test_a_quote_of_another_tenant_is_not_there(self, callers):
        quote = Actor(callers).quote()
        outside = Reader(callers.client, "eve", tenant=callers.tenant("strangers"))
        for path in (f"/quotes/{quote['id']}", f"/quotes/{quote['id']}/report"):
            assert refusal(outside.get(path)) == (404, "QUOTE_NOT_FOUND")
        assert quote["id"] not in outside.get("/quotes").text

    def test_whoever_may_not_read_quotes_reads_none(self, callers):
        reader = Reader(callers.client, "ada", scopes=["approvals:*"])
        assert refusal(reader.get("/quotes")) == (403, "SCOPE_REQUIRED")

    def test_decisions_are_shown_to_those_who_may_read_approvals(self, callers, eve):
        asked = RequestedApproval(Actor(callers), ADA, quorum=1)
        Reader(callers.client, "ada").decide(f"/approvals/{asked.approval['id']}")
        page = f"/quotes/{asked.quote['id']}"
        assert "Approved by <bdi>ada</bdi>" in eve.get(page).text
        assert f"/approvals/{asked.approval['id']}" in eve.get(page).text
        narrow = Reader(callers.client, "nell", scopes=["quotes:read"])
        assert "Approved by" not in narrow.get(page).text


class TestSubmitting:
    def test_the_button_asks_the_approvers_of_the_policies(self, callers, eve):
        RequestedApproval(Actor(callers), ADA, quorum=1)
        everybody = Actor(callers)
        policy = {
            "id": "everybody",
            "name": "everybody",
            "conditions": {},
            "steps": [{"name": "step", "approvers": [ADA], "quorum": 1}],
        }
        assert everybody.post("/v1/approval-policies", policy).status_code == 201
        page = f"/quotes/{Actor(callers).quote()['id']}"
        sent = submission(eve, page)
        answer = eve.send(page, sent)
        assert answer.status_code == 303, answer.text
        assert "Asked for by <bdi>eve</bdi>" in eve.get(answer.headers["location"]).text
        assert "Submit for approval" not in eve.get(page).text
        again = eve.send(page, sent)
        assert (again.status_code, heading(again)) == (
            409,
            "This version of the quote has been submitted before",
        )

    def test_a_quote_that_no_policy_matches_stays_a_draft_and_says_why(self, callers):
        stranger = callers.tenant("unruled")
        quoted = callers.client.post(
            "/v1/quotes", QUOTED, headers=bearing(callers.key("*:*", tenant=stranger))
        )
        assert quoted.status_code == 201, quoted.text
        page, reader = f"/quotes/{quoted.json()['id']}", Reader(callers.client, "eve", tenant=stranger)
        answer = reader.send(page, submission(reader, page))
        assert (answer.status_code, heading(answer)) == (409, "No approval policy matches the quote")
        assert "The quote was not submitted" in answer.text
        assert "Submit for approval" in answer.text

    def test_what_was_not_read_is_not_submitted(self, callers, eve):
        page = f"/quotes/{Actor(callers).quote()['id']}"
        sent = submission(eve, page) | {"content_digest": "0" * 64}
        assert eve.send(page, sent).status_code == 409
        assert "Submit for approval" in eve.get(page).text

    def test_a_form_of_another_session_submits_nothing(self, callers, eve):
        page = f"/quotes/{Actor(callers).quote()['id']}"
        sent = submission(eve, page) | {"form_token": "0" * 64}
        assert refusal(eve.send(page, sent))[0] == 403

    def test_whoever_may_only_read_submits_nothing(self, callers):
        page = f"/quotes/{Actor(callers).quote()['id']}"
        reader = Reader(callers.client, "ray", scopes=["quotes:read", "approvals:read"])
        assert refusal(reader.send(page, submission(reader, page))) == (403, "SCOPE_REQUIRED")


@pytest.mark.parametrize("scheme", ["light", "dark"])
class TestInABrowser:
    pytestmark = LOOPBACK

    def test_pages_of_quotes_and_budgets_are_read_on_a_phone(self, app, databases_of, window, scheme):
        maker = databases_of("sqlite")
        attach(app, maker.loaded())
        with served(app) as address:
            page = window(PHONE, color_scheme=scheme, bypass_csp=True)
            for path in ("/quotes", "/budgets"):
                page.goto(f"{address}{path}")
                assert overflow(page) == 0
                assert violations(page) == []
        maker.dispose()
