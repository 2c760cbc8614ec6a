"""Reports and the form as people see them: on a phone, on a desktop, on paper, and by a screen reader."""

import pytest

from service.kit.http.html import page_response
from service.quotes.report.service import render_report
from tests.applications import attach
from tests.browsing import DESKTOP, LOOPBACK, PHONE, overflow, printed, served, shows, violations
from tests.quotes.reading import SERVED, TRAINED, quoted
from tests.quotes.report.test_every_figure import frozen

pytestmark = [*LOOPBACK]

SHEETS = {"A4": (6, 11), "Letter": (6, 11)}


def show(page, quote):
    response = page_response(render_report(quote))
    policy = {"Content-Security-Policy": response.headers["Content-Security-Policy"]}
    shows(page, bytes(response.body).decode(), policy)


def short(quote):
    """A report with a block of each kind: rows like the others take the tool seconds."""
    answers = quote["answers"]
    bill = answers["utility_bill"]
    del answers["cost"], answers["throughput"]
    del bill["energy"]["load_profile"]["intervals_kw"][8:]
    del bill["electricity"]["lines"][26:]
    return quote


def test_a_report_is_read_and_printed(window, tmp_path):
    # The tool that looks for violations is a script, which the policy of the page refuses.
    page = window(PHONE, bypass_csp=True)
    show(page, short(quoted(SERVED)))
    assert overflow(page) == 0
    assert violations(page) == []
    for paper, (least, most) in SHEETS.items():
        assert least <= printed(page, tmp_path / "report.pdf", format=paper) <= most


BEYOND = """() => {
    const width = document.documentElement.clientWidth;
    return [...document.querySelectorAll("svg, svg text, table, th, td, li, p")]
        .filter(each => each.getBoundingClientRect().right > width + 1)
        .map(each => `${each.tagName}: ${each.textContent.trim().slice(0, 60)}`);
}"""
"""What stands beyond the right edge of a page."""
NARROW = 360
PAPER = {"A4": 688, "Letter": 710}
"""Width between the margins at 96 pixels per inch."""


@pytest.mark.parametrize("name", ["long names", "dear", "credits"])
def test_nothing_is_cut_on_paper_or_makes_a_phone_scroll_sideways(window, name):
    page = window(NARROW)
    show(page, frozen(name))
    assert overflow(page) == 0
    for width in PAPER.values():
        page.set_viewport_size({"width": width, "height": 1000})
        page.emulate_media(media="print")
        assert page.evaluate(BEYOND) == []
    numbers = page.evaluate(BROKEN)
    assert numbers == []


BROKEN = """() => [...document.querySelectorAll("td.number")].filter(cell => {
    const text = [...cell.childNodes].find(node => node.nodeType === Node.TEXT_NODE);
    const number = text && /[0-9][0-9.,]*/.exec(text.data);
    if (!number) return false;
    const range = document.createRange();
    range.setStart(text, number.index);
    range.setEnd(text, number.index + number[0].length);
    return range.getClientRects().length > 1;
}).map(cell => cell.textContent)"""
"""Numbers that go on in a second line."""


def test_a_page_keeps_its_policy_and_its_width_whatever_its_names(window):
    page = window(PHONE)
    quote = quoted(TRAINED)
    quote["name"] = "n" * 300
    quote["requests"]["utility_bill"]["model"] = {"id": "m" * 300}
    show(page, quote)
    assert overflow(page) == 0
    chart = page.locator("svg").first
    assert 300 < chart.bounding_box()["width"] <= PHONE
    assert (
        chart.locator(".whisker").first.evaluate("line => getComputedStyle(line).stroke")
        == "rgb(179, 71, 12)"
    )


def test_the_form_is_filled_in_without_scripts(window, app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with served(app) as address:
        page = window(PHONE, java_script_enabled=False)
        page.goto(f"{address}/ask")
        page.check("text=Serve it")
        assert not page.is_visible("#total_tokens_billions")
        page.fill("#days", "")
        page.click("button")
        assert page.title().startswith("Error: ")
        page.click("a[href='#days']")
        assert page.locator("#days:focus").count() == 1
        page.keyboard.type("7")
        page.keyboard.press("Enter")
        page.wait_for_selector("#report-answer")
        assert page.input_value("#days") == "7"
        page = window(DESKTOP, bypass_csp=True)
        page.goto(f"{address}/ask")
        assert violations(page) == []
    maker.dispose()
