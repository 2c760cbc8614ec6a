"""Reports and the form as people see them: on a phone, on a desktop, on paper, and by a screen reader."""

import pytest

from service.kit.http.html import page_response
from service.kit.reports.numbers import TIMES
from service.quotes.report.service import ReportDecision, ReportNames, render_report
from tests.applications import attach
from tests.browsing import DESKTOP, LOOPBACK, PHONE, overflow, printed, served, shows, violations
from tests.quotes.reading import SERVED, TRAINED, quoted
from tests.quotes.report.test_every_figure import frozen

pytestmark = [*LOOPBACK]

SHEETS = {"A4": (6, 11), "Letter": (6, 11)}
LEAD_SHEETS = 2


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


@pytest.mark.parametrize("question", [SERVED, TRAINED])
def test_what_is_decided_takes_two_sheets_and_the_annex_begins_another(window, tmp_path, question):
    page = window(DESKTOP)
    made = ReportDecision("approve", "Grace Hopper", "Head of research", "2026-11-22T14:03:12Z")
    names = ReportNames("API key “CI” of Ada Lovelace", "Research")
    page.set_content(render_report(quoted(question), names=names, decisions=[made, made]))
    whole = {paper: printed(page, tmp_path / "whole.pdf", format=paper) for paper in SHEETS}
    page.evaluate("document.querySelector('.annex').replaceChildren()")
    for paper in SHEETS:
        # An empty annex still begins a sheet of its own.
        assert printed(page, tmp_path / "lead.pdf", format=paper) <= LEAD_SHEETS + 1
        assert whole[paper] > LEAD_SHEETS + 1


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
        assert not page.is_visible("#total_tokens_billions")
        page.click("#more > summary")
        page.fill("#days", "")
        page.click("#question-form > .buttons button")
        page.wait_for_selector("#wrong")
        assert page.title().startswith("Error: ")
        page.click("a[href='#days']")
        assert page.locator("#days:focus").count() == 1
        page.keyboard.type("7")
        page.keyboard.press("Enter")
        page.wait_for_selector("#answer-title")
        assert page.input_value("#days") == "7"
        page.click("text=Keep and compare")
        page.check("text=Train it")
        page.click("#question-form > .buttons button")
        page.wait_for_selector("#answer-title:has-text('trained')")
        assert page.locator("table.compared th[scope=col]").count() == 3
        assert overflow(page) == 0
    maker.dispose()


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_answer_follows_what_is_typed(window, app, databases_of, width):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with served(app) as address:
        page = window(width)
        page.goto(f"{address}/ask")
        page.click("#fold-speed > summary")
        page.fill("#accelerator_count", "8")
        page.wait_for_selector(f"#answer-title:has-text('8 {TIMES}')")
        assert "accelerator_count=8" in page.url
        assert page.locator("#fold-speed[open]").count() == 1
        assert page.text_content("#status").startswith("Fits. ")
        page.fill("#model", "lama 3.1 70")
        page.wait_for_selector("#wrong")
        assert "Did you mean Llama 3.1 70B" in page.inner_text("#refusal")
        assert page.get_attribute("#model", "aria-invalid") == "true"
        assert f"8 {TIMES}" in page.inner_text("#answer-title")
        page.fill("#model", "Qwen3 8B")
        page.wait_for_selector("#answer-title:has-text('Qwen3 8B')")
        assert page.locator("#wrong, [aria-invalid]").count() == 0
        typed = page.url
        page.reload()
        assert page.inner_text("#answer-title").startswith("Qwen3 8B")
        assert page.url == typed
        assert overflow(page) == 0
    maker.dispose()


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_everybody_can_read_an_answer_and_its_comparison(window, app, databases_of, width):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with served(app) as address:
        page = window(width, bypass_csp=True)
        page.goto(f"{address}/ask?kept_1=accelerator_count%3D8")
        page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        assert page.locator("table.compared").count() == 1
        assert violations(page) == []
        assert overflow(page) == 0
    maker.dispose()


FIRST_FIELDS = [
    "model",
    "accelerator_count",
    "accelerator",
    "workload",
    "concurrency",
    "input_tokens",
    "output_tokens",
    "weight_precision",
]


def test_the_keyboard_reaches_the_few_fields_then_the_answer(window, app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with served(app) as address:
        page = window(DESKTOP)
        page.goto(f"{address}/ask")
        page.focus("#model")
        reached = []
        for _ in FIRST_FIELDS:
            reached.append(page.evaluate("document.activeElement.id"))
            page.keyboard.press("Tab")
        assert reached == FIRST_FIELDS
        assert page.evaluate("document.activeElement.textContent") == "Answer"
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Keep and compare"
    maker.dispose()


def test_a_late_answer_does_not_replace_a_newer_one(window, app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with served(app) as address:
        page = window(DESKTOP)
        page.goto(f"{address}/ask")
        held = []
        page.route("**/ask/answer", lambda route: held.append(route) if not held else route.continue_())
        page.fill("#accelerator_count", "2")
        page.wait_for_selector("#answer[aria-busy=true]")
        page.fill("#accelerator_count", "16")
        page.wait_for_selector(f"#answer-title:has-text('16 {TIMES}')")
        assert page.get_attribute("#answer", "aria-busy") == "false"
    maker.dispose()
