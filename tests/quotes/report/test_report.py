"""The report of a quote: its figures are the answer's, whatever the quote lacks and however it is called."""

import copy
import json
from decimal import Decimal
from itertools import pairwise

import pytest

from service.kit.http.html import format_money
from service.kit.reports.numbers import TIMES
from service.kit.reports.shapes import ReportChart
from service.quotes.report.service import build_estimate_parts, render_report, render_report_section
from service.quotes.report.utility_bill.load_profile import build_slots
from tests.asking import usd
from tests.quotes.reading import BARE, SERVED, TRAINED, UNKNOWN, Page, quoted

SPACE = "\N{NO-BREAK SPACE}"
MEMORY = "Memory of the fullest device by component"
HOSTILE = "\u202e</title></style><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"' {{ 7*7 }}"


def page_of(quote):
    return Page(render_report(quote))


def number(text):
    """The number that a cell begins with."""
    return float(text.split(SPACE)[0].replace(",", ""))


def assert_drawn_to_scale(page, title, values):
    """Bars as long as the figures that they stand for, each from the end of the one before."""
    blocks = page.blocks(title)[: len(values)]
    widths = [width for _, width in blocks]
    longest = max(range(len(values)), key=values.__getitem__)
    scale = widths[longest] / values[longest]
    reached = 0.0
    for (start, width), value in zip(blocks, values, strict=True):
        assert start == pytest.approx(reached, abs=0.2)
        assert width == pytest.approx(max(value * scale, 1.0), abs=0.2)
        reached += value * scale


def test_memory_is_drawn_against_what_the_device_has():
    quote = quoted(TRAINED)
    page, memory = page_of(quote), quote["answers"]["memory"]
    sizes = [part["bytes"] for part in memory["per_device"]["components"]]
    assert_drawn_to_scale(page, MEMORY, [*map(float, sizes)])
    total = memory["per_device"]["total_bytes"]["value"]
    assert [number(cell) for cell in page.column(MEMORY, 1)] == [
        pytest.approx(size / 2**30, abs=6e-4) for size in [*sizes, total]
    ]
    assert [number(cell) for cell in page.column(MEMORY, 2)] == [
        pytest.approx(size / 1e9, abs=6e-4) for size in [*sizes, total]
    ]
    (start, width), scale = page.blocks(MEMORY)[-1], page.blocks(MEMORY)[-1][1] / total
    marks = [float(given["x1"]) for _, given in page.charts[MEMORY]["marks"] if given["class"] == "mark"]
    assert start == 0
    assert marks == [pytest.approx(memory["usable_bytes"] * scale, abs=0.2)]
    whiskers = [
        float(given["x1"]) for _, given in page.charts[MEMORY]["marks"] if given["class"] == "whisker"
    ]
    ends = memory["per_device"]["total_bytes"]
    assert whiskers[1:] == [pytest.approx(ends[end] * scale, abs=0.2) for end in ("low", "high")]
    assert width > 0


def test_a_step_is_drawn_by_its_phases():
    quote = quoted(TRAINED)
    page, answer = page_of(quote), quote["answers"]["throughput"]
    title = "Time of a step by phase"
    seconds = [phase["seconds"]["value"] for phase in answer["breakdown"]]
    assert_drawn_to_scale(page, title, seconds)
    assert [number(cell) for cell in page.column(title, 1)] == [
        pytest.approx(value, abs=6e-4) for value in [*seconds, answer["step_seconds"]["value"]]
    ]
    assert page.column(title, 3)[:-1] == [phase["bound"] for phase in answer["breakdown"]]


def test_operators_stand_under_the_roof():
    quote = quoted(TRAINED)
    page, operators = page_of(quote), quote["answers"]["throughput"]["operators"]
    title = "Operators of one block under the roofline"
    marks = page.charts[title]["marks"]
    points = [given for tag, given in marks if given["class"].startswith("point")]
    assert len(points) == len(operators)
    rows = page.tables[title][1:]
    assert [number(row[2]) * 1e12 for row in rows] == [
        pytest.approx(each["achieved_flops_per_second"], rel=1e-3) for each in operators
    ]
    (roof,) = [given["points"] for tag, given in marks if tag == "polyline"]
    (_, low), (knee, top), (_, end) = [tuple(map(float, at.split(","))) for at in roof.split()]
    assert low > top == end
    for tag, given in marks:
        if not given["class"].startswith("point"):
            continue
        x = float(given["cx"]) if tag == "circle" else float(given["x"]) + 4
        y = float(given["cy"]) if tag == "circle" else float(given["y"]) + 4
        assert y >= top - 0.2
        # To the right of the knee an operator may be bound by compute only.
        assert (tag == "circle") == (x > knee)


def test_a_request_is_drawn_by_its_phases():
    quote = quoted(SERVED)
    page, answer = page_of(quote), quote["answers"]["throughput"]
    seconds = [phase["seconds"]["value"] for phase in answer["breakdown"]]
    assert_drawn_to_scale(page, "Time of a request by phase", seconds)
    p99 = answer["request_seconds_percentiles"]["p99"]
    (row,) = [row for row in page.tables["Percentiles of request times"] if row[0] == "Request"]
    assert number(row[3]) * {"s": 1, "ms": 1e-3}[row[3].split(SPACE)[1]] == pytest.approx(p99, rel=1e-3)
    assert "Operators of one block under the roofline" not in page.charts


def test_energy_is_drawn_by_equipment():
    quote = quoted(TRAINED)
    page, energy = page_of(quote), quote["answers"]["utility_bill"]["energy"]
    title = "Energy at the meter of the building, by equipment"
    assert_drawn_to_scale(page, title, [line["facility_kwh"]["value"] for line in energy["lines"]])
    assert number(page.column(title, 1)[-1]) * 1e3 == pytest.approx(energy["facility_kwh"]["value"], rel=1e-3)


def test_charges_and_their_total_are_shown_to_the_last_digit():
    quote = quoted(TRAINED)
    page, answers = page_of(quote), quote["answers"]
    cells = {cell for rows in page.tables.values() for row in rows for cell in row}
    lines = [*answers["cost"]["lines"], *answers["utility_bill"]["electricity"]["lines"]]
    assert {format_money(**line["amount"]) for line in lines} <= cells
    headline = quote["headlines"]["total"]
    assert format_money(headline["amount"], "USD") in page.tables["Headlines"][1][1]
    assert format_money(headline["low"], "USD") in page.tables["Headlines"][1][1]
    title = "Electricity by equipment"
    amounts = [float(line["amount"]["amount"]) for line in answers["utility_bill"]["electricity"]["lines"]]
    assert_drawn_to_scale(page, title, amounts)


def test_what_the_total_counts_is_not_said_to_be_beside_it():
    storage = {"price_per_gigabyte_month": usd("0.02"), "dataset_bytes": 1e15}
    question = {**TRAINED, "storage": storage}
    tables = page_of(quoted(without(question, 2), "cost")).tables
    assert [row[0] for row in tables["Charges of the run"]][1:] == ["Rental", "Storage dataset", "Total"]
    assert [caption for caption in tables if "does not count" in caption] == [
        "Purchase, which the total does not count"
    ]


def test_power_in_time_is_that_of_the_meter():
    quote = quoted(SERVED)
    page, profile = page_of(quote), quote["answers"]["utility_bill"]["energy"]["load_profile"]
    rows = page.tables["Power at the meter in time"][1:]
    kw = profile["intervals_kw"]
    assert len(rows) == 96
    assert page.tables["Power at the meter in time"][0][1] == "Mean, W"
    assert max(number(row[3]) for row in rows) == pytest.approx(max(kw) * 1e3, rel=1e-3)
    assert rows[0][0] == "2026-01-28 08:00 UTC"
    (area,) = [
        given["points"]
        for tag, given in page.charts["Power at the meter in time"]["marks"]
        if tag == "polygon"
    ]
    heights = [float(at.split(",")[1]) for at in area.split()]
    assert heights[0] == heights[-1] == max(heights)


def test_stretches_hold_every_interval_once():
    kw = [float(value % 7) for value in range(1000)]
    slots = build_slots(kw, 900.0)
    assert len(slots) == 96
    assert slots[0].start == 0
    assert slots[-1].end == 900_000
    hours = [(slot.end - slot.start) / 3600 for slot in slots]
    assert sum(slot.mean * each for slot, each in zip(slots, hours, strict=True)) == pytest.approx(
        sum(kw) / 4
    )
    assert all(before.end == after.start for before, after in pairwise(slots))


def test_a_bill_is_shown_by_charge_and_by_period():
    quote = quoted(SERVED)
    page, electricity = page_of(quote), quote["answers"]["utility_bill"]["electricity"]
    periods = electricity["periods"]
    total = format_money(electricity["total"]["amount"], "USD")
    assert page.column("Bill by billing period", 3) == [*(format_money(**p["total"]) for p in periods), total]
    assert page.column("Bill by billing period", 0)[:2] == ["January 2026", "February 2026"]
    assert page.tables["Bill by charge, over all billing periods"][-1][3] == total
    kinds = page.tables["Bill by kind of charge and period"]
    for row, period in zip(kinds[1:], periods, strict=True):
        amounts = [Decimal(cell.split(SPACE)[0].replace(",", "")) for cell in row[1:-1] if cell]
        assert row[-1] == format_money(**period["total"])
        assert sum(amounts) == Decimal(period["total"]["amount"])
    assert (
        len(page.tables[f"All {len(electricity['lines'])} lines of the bill"])
        == len(electricity["lines"]) + 1
    )


def test_a_year_of_thirty_charges_is_summed_up():
    quote = quoted(SERVED)
    electricity = quote["answers"]["utility_bill"]["electricity"]
    line = electricity["lines"][0]
    months = [{"start_date": f"2026-{m:02}-01", "end_date": f"2026-{m + 1:02}-01"} for m in range(1, 12)]
    months.append({"start_date": "2026-12-01", "end_date": "2027-01-01"})
    electricity["lines"] = [
        {
            **line,
            "name": f"charge_{n}",
            "billing_period": month,
            "amount": {"amount": "-0.10", "currency_code": "USD"},
        }
        for month in months
        for n in range(30)
    ]
    template = {"energy_kwh": 1.0, "peak_kw": 2.0, "total": {"amount": "-3.00", "currency_code": "USD"}}
    electricity["periods"] = [{**template, "billing_period": month} for month in months]
    page = page_of(quote)
    charges = page.tables["Bill by charge, over all billing periods"]
    assert len(charges) == 32
    assert charges[1][1:] == ["12", charges[1][2], f"-1.20{SPACE}USD"]
    assert charges[-1][3] == f"-36.00{SPACE}USD"
    assert len(page.blocks("Bill by billing period")) == 12
    folded = [given for tag, given in page.tags if tag == "details"]
    assert folded == [{"class": "unprinted"}] * 2
    assert "All 360 lines of the bill" in page.tables


def test_a_report_of_many_lines_is_cut_and_says_so():
    """Three years of a hundred charges, and a plan that rests on thousands of rows."""
    quote = quoted(SERVED)
    bill, speed = quote["answers"]["utility_bill"], quote["answers"]["throughput"]
    electricity = bill["electricity"]
    line, gap = electricity["lines"][0], quote["gaps"][0]
    electricity["lines"] = [{**line, "name": f"charge_{n}"} for n in range(3600)]
    electricity["periods"] = electricity["periods"][:1] * 36
    quote["gaps"] = [{**gap, "detail": f"gap {n}"} for n in range(5000)]
    quote["inputs"] = quote["inputs"][:1] * 5000
    quote["answers"]["cost"]["lines"] = quote["answers"]["cost"]["lines"] * 3000
    bill["energy"]["load_profile"]["intervals_kw"] = [1.0] * 70_176
    operator = {**OPERATOR, "bound": "memory", "direction": "forward"}
    speed["operators"] = [operator] * 500
    text = render_report(quote)
    page = Page(text)
    assert len(text) < 1_000_000
    for caption, count in (
        ("All 3,600 lines of the bill", 3600),
        ("Bill by charge, over all billing periods", 3600),
        ("Charges of the run", 3000),
        ("Operators of one block under the roofline", 500),
        ("Rows of the catalog", 5000),
        ("Unknown figures, which do not count as 0", 5000),
    ):
        rows = [row for row in page.tables[caption] if row[0].endswith("more in the JSON")]
        assert [row[0] for row in rows] == [f"and {count - 200:,} more in the JSON"], caption
        assert len(page.tables[caption]) <= 203
    assert "Charges of the run" not in page.charts
    assert len(page.blocks("Bill by billing period")) == 36
    assert len(page.texts("Operators of one block under the roofline", "number")) <= 60


OPERATOR = {
    "operator": "norm",
    "flops_per_byte": 2.0,
    "achieved_flops_per_second": 1e12,
    "attainable_flops_per_second": 2e12,
    "seconds": 1e-6,
}


def test_what_is_decided_stands_first():
    quote = quoted(TRAINED, cost_center_id="research", note="as agreed")
    text = render_report(quote)
    for said in ("token:alice", "research", "as agreed", quote["content_digest"], quote["id"]):
        assert said in text
    assert f'<time datetime="{quote["valid_until"][:19].replace(" ", "T")}Z">' in text
    assert text.index(">Summary<") < text.index("Headlines") < text.index(MEMORY)
    assert f"1,024 {TIMES} h100-sxm" in text
    assert "without electricity" in text
    owned = quoted({name: value for name, value in TRAINED.items() if name != "rental"})
    assert "the electricity of its own devices" in render_report(owned)


def test_headlines_that_are_not_known_say_why():
    rows = page_of(quoted(UNKNOWN)).tables["Headlines"]
    assert [row[0] for row in rows if row[1] != "not known"][1:] == [
        "Time of the rundata sheets",
        "Device-hoursdata sheets",
    ]
    assert rows[1][0] == "Totalno rental or purchase price is given"
    memory = page_of(quoted(BARE, "memory"))
    assert [row[0].split("activations")[0] for row in memory.tables["Headlines"]][1:] == [
        "Memory of the fullest device",
        "Fitsno accelerator with a known memory is named",
    ]
    assert "Known parts" in memory.tables[MEMORY][-1][0]


@pytest.mark.parametrize("place", range(4))
def test_every_operation_has_a_report(place):
    operation = ["memory", "throughput", "cost", "utility-bill"][place]
    page = page_of(quoted(TRAINED if place == 3 else without(TRAINED, place), operation))
    assert set(page.charts) >= {MEMORY} | ({"Time of a step by phase"} if place else set())
    assert ("Energy at the meter of the building, by equipment" in page.charts) == (place == 3)


def without(request, place):
    later = ["rental", "purchase", "site"] if place < 2 else ["site"]
    return {name: value for name, value in request.items() if name not in later}


def test_every_chart_has_a_name_a_description_and_a_table():
    for quote in (quoted(TRAINED), quoted(SERVED), quoted(UNKNOWN)):
        page = page_of(quote)
        assert len(page.ids) == len(set(page.ids))
        for title, chart in page.charts.items():
            assert title in page.tables
            assert chart["given"]["role"] == "img"
            assert set(chart["given"]["aria-labelledby"].split()) <= set(page.ids)
        levels = [tag for tag, _ in page.tags if tag in {"h1", "h2", "h3"}]
        assert levels[:2] == ["h1", "h2"]
        assert levels.count("h1") == 1


def test_nothing_is_taken_from_elsewhere():
    text = render_report(quoted(TRAINED))
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "form"}
    named = {name for _, given in page.tags for name in given}
    assert not {name for name in named if name.startswith("on")} | (named & {"src", "style"})
    assert "://" not in text.partition("<body>")[2]


def hostile(value):
    """The document with every text of it hostile but those that figures are read from."""
    kept = {
        "basis",
        "amount",
        "low",
        "high",
        "currency_code",
        "pointer",
        "phase",
        "bound",
        "direction",
        "kind",
    }
    kept |= {
        "start_date",
        "end_date",
        "created_at",
        "valid_until",
        "starts_at",
        "first_interval_at",
        "operation",
    }
    if isinstance(value, dict):
        return {name: member if name in kept else hostile(member) for name, member in value.items()}
    if isinstance(value, list):
        return [hostile(member) for member in value]
    return f"{HOSTILE}{'x' * 300}" if isinstance(value, str) else value


@pytest.mark.parametrize("request_", [TRAINED, SERVED, UNKNOWN], ids=["trained", "served", "unknown"])
def test_texts_are_never_markup(request_):
    quote = hostile(quoted(request_, cost_center_id="research", note="n"))
    honest, page = page_of(quoted(request_, cost_center_id="research", note="n")), page_of(quote)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in honest.tags}
    assert "<script" not in render_report(quote).replace("&lt;script", "")
    assert "\u202e" not in render_report(quote), "nor does any turn the direction of what follows"
    assert "49" not in page.tables["Settings of the question"][1][1]


def test_long_settings_are_cut():
    request = copy.deepcopy(TRAINED)
    request["site"]["baseline_load"] = {
        "kind": "series",
        "starts_at": "2026-01-01T00:00:00Z",
        "interval_minutes": 60,
        "kw": [1.5, *[2.0] * 9000],
    }
    quote = quoted(TRAINED)
    quote["requests"]["utility_bill"] = request
    rows = dict(page_of(quote).tables["Settings of the question"][1:])
    assert rows["Site / baseline load / kw"] == "9,001 numbers from 1.500 to 2"
    assert rows["Site / PUE"] == "1.12"
    quote["requests"]["utility_bill"] = {f"setting_{n}": n for n in range(500)}
    rows = page_of(quote).tables["Settings of the question"]
    assert rows[-1] == ["and 420 more in the JSON", ""]
    quote["requests"]["utility_bill"] = {
        "model": {"source": "huggingface_config", "config": {"a": ["b"] * 50}}
    }
    assert page_of(quote).tables["Settings of the question"][2][1] == "50 entries"


def test_amounts_of_several_currencies_are_not_summed():
    quote = quoted(TRAINED)
    lines = quote["answers"]["utility_bill"]["electricity"]["lines"]
    lines[0]["amount"]["currency_code"] = "EUR"
    page = page_of(quote)
    assert "Electricity by equipment" not in page.charts
    assert lines[0]["amount"]["amount"].partition(".")[2] in json.dumps(page.tables["Electricity"])


def test_a_part_of_a_page_begins_below_its_title():
    page = Page(str(render_report_section(quoted(TRAINED))))
    assert "h1" not in {tag for tag, _ in page.tags}
    assert all(name.startswith("report-") for name in page.ids)


def test_answers_without_a_quote_are_shown_alike():
    quote = quoted(TRAINED)
    found = {
        name: value for name, value in quote.items() if name not in {"id", "name", "state", "valid_until"}
    }
    parts, whole = build_estimate_parts(found), page_of(quote)
    blocks = [parts.certainty, *(block for section in parts.sections for block in section.blocks)]
    shown = [block for block in blocks if isinstance(block, ReportChart)]
    assert [chart.caption for chart in shown] == list(whole.charts)
    assert {chart.table.caption for chart in shown} <= whole.tables.keys()
    assert len(parts.headlines) == len(whole.tables["Headlines"]) - 1
