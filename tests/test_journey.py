"""The pages as a team goes through them, from a question to an approved quote, its report and its budget.

`make journey` keeps what they look like on the way, and how large and how fast they are, in docs/journey.md.
"""

import os
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.applications import TENANT, Callers, attach
from tests.approvals.deciding import Actor, at_once
from tests.auth.issuing import SigningIn, on_loopback
from tests.browsing import (
    DESKTOP,
    LOOPBACK,
    PHONE,
    Caller,
    address_of,
    listening,
    overflow,
    printed,
    served,
    violations,
)
from tests.fleet.shown import SLOW, USUAL, ShownFleet

pytestmark = LOOPBACK
VIEWS = {
    "desktop-light": (DESKTOP, "light"),
    "desktop-dark": (DESKTOP, "dark"),
    "phone-light": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}
MOST_BYTES = 300_000
ERIN = {"sub": "erin", "tenant": "default", "scope": "*:*"}
ADA = {**ERIN, "sub": "ada", "scope": "approvals:read approvals:write quotes:read"}
DAVE = "person:dave@example.org"
NAME = "An assistant for the support desk"
CENTER = {"id": "research", "name": "Research"}
BUDGET = {
    "id": "research-2026",
    "name": "Research, 2026 and 2027",
    "cost_center_id": "research",
    "amount": {"amount": "400000", "currency_code": "USD"},
    "starts_on": "2026-01-01",
    "ends_on": "2027-12-31",
    "enforcement": "warn",
}
POLICY = {
    "id": "everything",
    "name": "Everything",
    "conditions": {},
    "steps": [
        {"name": "Team lead", "approvers": ["token:ada"], "quorum": 1},
        {"name": "Finance", "approvers": [DAVE], "quorum": 1},
    ],
}
CHANGED = "before => document.getElementById('answer-sentence').textContent !== before"
SENT = "performance.getEntriesByType('navigation')[0].toJSON()"
KEPT = os.environ.get("IRONLAW_JOURNEY", "")
"""Folder to keep screenshots in, and a table of sizes and times."""


class SeenPage(NamedTuple):
    """What a page of the way took."""

    name: str
    kilobytes: float
    milliseconds: float


class Visit:
    """A window of somebody, and what its pages took."""

    def __init__(self, page, seen):
        self.page = page
        self.seen = seen

    def look(self, name):
        """Holds the page to every view, and keeps what it looks like."""
        self.page.wait_for_load_state()
        sent = self.page.evaluate(SENT)
        assert 0 < sent["encodedBodySize"] < MOST_BYTES
        self.seen.append(SeenPage(name, sent["encodedBodySize"] / 1000, sent["responseStart"]))
        size = self.page.viewport_size
        for view, (width, scheme) in VIEWS.items():
            self.page.set_viewport_size({"width": width, "height": size["height"]})
            self.page.emulate_media(color_scheme=scheme)
            assert overflow(self.page) == 0, (name, view)
            # Two views have both widths and both schemes.
            assert not (KEPT or view in ("desktop-light", "phone-dark")) or violations(self.page) == [], name
            if KEPT:
                self.page.screenshot(path=Path(KEPT) / f"{name}-{view}.jpg", quality=60)
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme="light")


@pytest.fixture
def provider():
    with on_loopback(SigningIn(now=int(time.time()))) as made:
        made.secret = ""
        made.who = ERIN
        yield made


@pytest.fixture
def place(app, databases_of, provider):
    """The address of a service that people sign in to, and its operator, who has set up what it needs."""
    maker = databases_of("sqlite")
    database, port = maker.loaded(), listening()
    settings = {
        "oidc_issuer": provider.issuer,
        "oidc_audience": "ironlaw",
        "oidc_client_id": provider.client_id,
        "public_url": address_of(port),
    }
    attach(app, database, TENANT.model_copy(update=settings))
    with served(app, port) as address:
        callers = Callers(app, database)
        callers.client = Caller(app, address)
        operator = Actor(callers)
        at_once(operator)
        for path, body in (("cost-centers", CENTER), ("budgets", BUDGET), ("approval-policies", POLICY)):
            made = operator.post(f"/v1/{path}", body)
            assert made.status_code == 201, made.text
        measure(ShownFleet(database))
        yield address, operator
        callers.client.close()
    maker.dispose()


def measure(fleet):
    """Three nodes, one of them slower than its equals and one that is not heard from any more."""
    for name, planned, silent in (("h100-1", USUAL, 0), ("h100-2", SLOW, 0), ("h100-3", USUAL, 3)):
        node = fleet.add(name, seen=timedelta(hours=silent, seconds=10))
        fleet.measure(node, planned)
        fleet.draw(node)


def test_a_team_goes_from_the_landing_page_to_an_approved_quote(place, provider, window, tmp_path):
    address, operator = place
    seen = []
    erin = Visit(window(DESKTOP), seen)
    asks(erin, address)
    plans(erin)
    quote_id, approval_id = quotes(erin, address)
    provider.who = ADA
    ada = Visit(window(PHONE), seen)
    approves_signed_in(ada, address)
    approves_by_link(Visit(window(PHONE), seen), operator, approval_id)
    prints(erin, address, quote_id, tmp_path)
    reads_the_budget(erin, address)
    reads_the_fleet(erin, address)
    if KEPT:
        write_table(seen)


def asks(visit, address):
    """From the landing page to an answer, which changes as a field does."""
    page = visit.page
    page.goto(f"{address}/")
    visit.look("1-landing")
    page.get_by_role("link", name="Ask", exact=True).click()
    before = page.locator("#answer-sentence").text_content()
    visit.look("2-ask")
    page.get_by_label("Number").fill("8")
    page.wait_for_function(CHANGED, arg=before)
    page.wait_for_url("**/ask?*accelerator_count=8*")


def plans(visit):
    """From the answer to a search for something better."""
    page = visit.page
    page.get_by_role("link", name="Search for something better").click()
    visit.look("3-new-plan")
    page.get_by_role("button", name="Search").first.click()
    page.wait_for_url(re.compile("/plans/[0-9a-f]{32}$"))
    visit.look("4-plan")


def quotes(visit, address):
    """Makes a quote of the best candidate and submits it; the ids of quote and approval."""
    page = visit.page
    page.get_by_role("link", name="Make a quote of this").click()
    page.get_by_label("Name of the quote").fill(NAME)
    page.get_by_label("Cost centre that pays").select_option(label=CENTER["name"])
    page.get_by_role("button", name="Make the quote").click()
    page.wait_for_url("**/quotes/*")
    quote_id = page.url.rpartition("/")[2]
    visit.look("5-quote")
    page.get_by_role("button", name="Submit for approval").click()
    page.wait_for_url("**/approvals/*")
    approval_id = page.url.rpartition("/")[2]
    page.goto(f"{address}/quotes")
    visit.look("6-quotes")
    return quote_id, approval_id


def approves_signed_in(visit, address):
    page = visit.page
    page.goto(f"{address}/approvals")
    visit.look("7-approvals")
    page.get_by_role("link", name=NAME).click()
    visit.look("8-approval")
    page.get_by_label("Comment").fill("Cheaper than what we rent today.")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("You have approved this").wait_for()


def approves_by_link(visit, operator, approval_id):
    made = operator.post(f"/v1/approvals/{approval_id}:link", {"approver": DAVE})
    assert made.status_code == 201, made.text
    page = visit.page
    page.goto(made.json()["url"])
    visit.look("9-link")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("You have approved this").wait_for()
    assert operator.get(f"/v1/approvals/{approval_id}").json()["state"] == "approved"


def prints(visit, address, quote_id, folder):
    """The report names who approved, and its figures fill two sheets before the annex."""
    page = visit.page
    page.goto(f"{address}/quotes/{quote_id}")
    page.get_by_role("link", name="Report to print").click()
    visit.look("10-report")
    for name in ("ada", "dave@example.org"):
        assert page.get_by_text(name).first.is_visible()
    whole = printed(page, folder / "report.pdf", format="A4")
    page.evaluate("document.querySelectorAll('.annex').forEach(part => part.remove())")
    assert printed(page, folder / "lead.pdf", format="A4") <= 2 < whole


def reads_the_budget(visit, address):
    page = visit.page
    page.goto(f"{address}/budgets")
    page.get_by_role("link", name=BUDGET["name"]).click()
    assert page.get_by_role("link", name=NAME).is_visible()
    visit.look("11-budget")


def reads_the_fleet(visit, address):
    """From all nodes to the one that is slower than its equals, and to what its results changed."""
    page = visit.page
    page.goto(f"{address}/fleet")
    visit.look("12-fleet")
    page.get_by_role("link", name="h100-2").first.click()
    visit.look("13-node")
    page.goto(f"{address}/fleet/calibrations")
    page.locator("main li a").first.click()
    visit.look("14-calibration")


def write_table(seen):
    """Writes what each page took; its pictures are beside it."""
    rows = [f"{one.name},{one.kilobytes:.0f},{one.milliseconds:.0f}\n" for one in seen]
    (Path(KEPT) / "sizes.csv").write_text("".join(rows))
