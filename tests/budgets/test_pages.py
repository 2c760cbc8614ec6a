"""Pages of budgets: what is left, by names, and what has taken from it."""

from uuid import uuid4

import pytest

from tests.approvals.deciding import Actor
from tests.approvals.reading import Reader, heading, refusal
from tests.approvals.test_links import RequestedApproval, calling
from tests.approvals.test_pages import ADA


@pytest.fixture(scope="class")
def callers(app, databases_of):
    """Callers that the tests of a class share."""
    maker = databases_of("sqlite")
    yield from calling(app, maker.loaded())
    maker.dispose()


@pytest.fixture
def center(callers):
    """The id of a cost centre with a budget of 1,000 USD of the same id."""
    actor, name = Actor(callers), uuid4().hex
    made = actor.post("/v1/cost-centers", {"id": name, "name": "The laboratory"})
    assert made.status_code == 201, made.text
    body = {
        "id": name,
        "name": "Laboratory, all years",
        "cost_center_id": name,
        "amount": {"amount": "1000", "currency_code": "USD"},
        "starts_on": "2026-01-01",
        "ends_on": "2099-12-31",
    }
    made = actor.post("/v1/budgets", body)
    assert made.status_code == 201, made.text
    return name


class TestBudgets:
    def test_budgets_are_listed_with_what_is_left(self, callers, center):
        seen = Reader(callers.client, "eve").get("/budgets").text
        assert f'<a href="/budgets/{center}">Laboratory, all years</a>' in seen
        assert "1,000.00\N{NO-BREAK SPACE}USD</strong> left of 1,000.00\N{NO-BREAK SPACE}USD" in seen
        assert "The laboratory, 1 January 2026 to 31 December 2099" in seen

    def test_a_budget_names_the_quotes_that_have_taken_from_it(self, callers, center):
        asked = RequestedApproval(Actor(callers), ADA, quorum=1, quoted={"cost_center_id": center})
        Reader(callers.client, "ada").decide(f"/approvals/{asked.approval['id']}")
        seen = Reader(callers.client, "eve").get(f"/budgets/{center}")
        assert heading(seen) == "Laboratory, all years"
        assert (
            f'<a href="/approvals/{asked.approval["id"]}">{asked.quote["name"]}</a>, version 1' in seen.text
        )

    def test_another_tenant_sees_none(self, callers, center):
        outside = Reader(callers.client, "eve", tenant=callers.tenant("strangers"))
        assert "There is no budget yet" in outside.get("/budgets").text
        assert refusal(outside.get(f"/budgets/{center}")) == (404, "BUDGET_NOT_FOUND")

    def test_whoever_may_not_read_budgets_reads_none(self, callers, center):
        reader = Reader(callers.client, "ada", scopes=["quotes:*", "approvals:*"])
        for path in ("/budgets", f"/budgets/{center}"):
            assert refusal(reader.get(path)) == (403, "SCOPE_REQUIRED")
