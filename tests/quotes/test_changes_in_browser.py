"""How an answer changes, as people see it: loaded by a fold, or on a page of its own."""

import pytest

from service.auth.sessions import PageVisitor
from service.kit.http.html import render_template
from service.kit.security.principals import LOCAL
from service.quotes.form.changes import service
from service.quotes.form.changes.service import answer_changes
from service.quotes.form.links import build_address
from tests.applications import attach
from tests.asking import shipped
from tests.browsing import DESKTOP, LOOPBACK, NARROW, PHONE, overflow, served, violations
from tests.quotes.test_changes import PATIENT, SERVED, TRAINED

pytestmark = [*LOOPBACK]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Time enough on a machine that others use too."""
    monkeypatch.setattr(service, "CURVE_SECONDS", PATIENT)
    monkeypatch.setattr(service, "TORNADO_SECONDS", PATIENT)


@pytest.mark.parametrize("width", [NARROW, PHONE, DESKTOP])
def test_charts_load_when_their_fold_is_opened(window, app, databases_of, width):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with served(app) as address:
        page = window(width, bypass_csp=True)
        page.goto(address + build_address(SERVED))
        assert page.locator("#changes").count() == 0
        page.click("#fold-changes > summary")
        page.wait_for_selector("#changes svg")
        assert page.text_content("#status") == "The charts are shown."
        assert violations(page) == []
        assert overflow(page) == 0
        page.fill("#concurrency", "32")
        page.wait_for_selector("#changes :text('asked: 32')")
    maker.dispose()


def test_charts_that_cannot_be_loaded_leave_their_link(window, app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with served(app) as address:
        page = window(DESKTOP)
        page.route("**/ask/charts?*", lambda route: route.fulfill(status=503, body="busy"))
        page.goto(address + build_address(SERVED))
        page.click("#fold-changes > summary")
        page.wait_for_selector("#fold-changes :text('could not be loaded')")
        assert page.locator("#fold-changes a[data-part]").count() == 1
    maker.dispose()


def overlapping(page):
    """Texts of a chart that overlap, as a browser draws them."""
    return page.evaluate(
        """() => [...document.querySelectorAll("#changes svg")].flatMap(svg => {
          const boxes = [...svg.querySelectorAll("text")].map(one => [one, one.getBoundingClientRect()]);
          const meet = (a, b) => a.left < b.right && b.left < a.right
            && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
          return boxes.flatMap(([one, a], place) => boxes.slice(place + 1)
            .filter(([, b]) => meet(a, b))
            .map(([other]) => `${one.textContent} / ${other.textContent}`));
        })"""
    )


@pytest.mark.parametrize("form", [SERVED, TRAINED, {**SERVED, "first_token_seconds": "1"}])
def test_labels_do_not_overlap_in_a_browser(window, form):
    page = window(PHONE)
    page.set_content(
        render_template(
            "quotes/form/charts.html",
            visitor=PageVisitor(LOCAL, ""),
            subject="A model",
            address="/ask",
            refusal=None,
            section=answer_changes(form, shipped()),
        )
    )
    assert page.locator("#changes svg").count() == 4
    assert overlapping(page) == []
    assert overflow(page) == 0
