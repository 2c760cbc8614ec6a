"""Every figure of a report is the frozen answer's: those in cells and sentences, and those that are drawn."""

import copy
from collections import defaultdict
from decimal import Decimal
from functools import cache
from typing import get_args, get_type_hints

import pytest
from typing_extensions import is_typeddict

from service.kit.reports.numbers import PLAIN, select_ladder
from service.quotes.report.service import render_report
from service.schemas.answers import MemoryEstimate, OperatorEstimate, ThroughputEstimate
from service.schemas.base import QuantityEstimate
from service.schemas.bill_answers import UtilityBill
from service.schemas.cost_answers import CostEstimate
from tests.asking import usd
from tests.quotes.asking import OWNED, PLAN
from tests.quotes.reading import SERVED, TRAINED, UNKNOWN, quoted
from tests.quotes.report.figures import SPACE, UNITS, Cells, charts_of, figures_in

CALIFORNIA = {"time_zone": "America/Los_Angeles", "grid_id": "egrid-us-camx"}
BY_TIME = {**TRAINED, "starts_at": "2026-01-28T08:00:00Z"}
BY_TIME["site"] = {**CALIFORNIA, "pue": 1.12, "electricity": {"tariff_id": "pge-e20-primary-2018"}}


def priced(*charges, code="USD", site=(), **electricity):
    """The trained model at a site with a tariff of these charges."""
    terms = {
        "currency_code": code,
        "time_zone": "America/Los_Angeles",
        "revisions": [{"effective_from": "2020-01-01", "charges": list(charges)}],
    }
    question = copy.deepcopy(BY_TIME)
    question["site"] |= {"electricity": {"tariff": terms, **electricity}, **dict(site)}
    return question


def energy(price, name="energy"):
    return {"kind": "energy", "name": name, "periods": [{"name": "all", "tiers": [{"price": price}]}]}


DEMAND = {
    "kind": "demand",
    "name": "demand",
    "periods": [{"name": "all", "tiers": [{"price": "15"}]}],
    "billing_demand": {"ratchets": [{"preceding_months": 2, "share_by_billing_month": [0.9] * 12}]},
}
FIXED = {"kind": "fixed", "name": "customer", "price": "400"}
CREDIT = {"kind": "fixed", "name": "credit", "price": "-1000.50"}
TAX = {"kind": "percentage", "name": "tax", "percent": "10", "tax": True}
LITTLE = {"baseline_load": {"kind": "constant", "kw": 100.0}}


def in_currency(code, amount):
    """The trained model with all prices in a currency."""
    question = copy.deepcopy(TRAINED)
    price = {"amount": amount, "currency_code": code}
    question["rental"] = {"price_per_device_hour": price}
    question["purchase"] = {"price_per_device": price}
    question["site"]["electricity"] = {"price_per_kwh": price}
    return question


def of_tokens(count, **members):
    question = copy.deepcopy(TRAINED)
    question["workload"]["total_tokens"] = count
    return {**question, **members}


SCENARIOS = {
    "trained": TRAINED,
    "served": SERVED,
    "not known": UNKNOWN,
    "owned": OWNED,
    "by time of use": BY_TIME,
    "ratchet": priced(energy("0.12"), DEMAND, FIXED, TAX, site=LITTLE.items()),
    "credits": priced(energy("-0.02"), energy("0.01", "delivery"), CREDIT, FIXED),
    "nothing to pay": priced(energy("0")),
    "one line": priced(energy("0.1")),
    "no decimals": in_currency("JPY", "450"),
    "three decimals": in_currency("KWD", "0.923"),
    "huge": in_currency("IRR", "999999999999"),
    "tiny": of_tokens(5_000_000, rental={"price_per_device_hour": usd("0.000000001")}),
    "long names": priced(energy("0.1", "e" * 190), {**FIXED, "name": "f" * 190}),
    "dear": of_tokens(2**52, rental={"price_per_device_hour": usd("999999999.99")}),
}


@cache
def frozen(name):
    return quoted(SCENARIOS[name])


@cache
def shown(name):
    return render_report(frozen(name))


@cache
def read(name):
    return Cells(shown(name))


every_scenario = pytest.mark.parametrize("name", SCENARIOS)


def kind_of(path):
    """What a member counts, by its name: independent of how the report reads it."""
    name = next(part for part in reversed(path) if part not in {"value", "low", "high", "p50", "p95", "p99"})
    name = name.removesuffix("_percentiles").removesuffix("_without").removesuffix("_per_device")
    if "bytes" in name and not name.endswith("per_second"):
        return "bytes", 1
    for ending, kind, factor in (
        ("flops_per_second", "flops_per_second", 1),
        ("seconds", "seconds", 1),
        ("device_hours", "seconds", 3600),
        ("flops", "flops", 1),
        ("kwh", "kwh", 1),
        ("kw", "kw", 1),
        ("watts", "kw", 1e-3),
        ("joules", "joules", 1),
        ("kg_co2e", "kg_co2e", 1),
        ("liters", "liters", 1),
    ):
        if name.endswith(ending):
            return kind, factor
    if name.endswith(("utilization", "share", "probability", "goodput", "efficiency")):
        return "share", 1
    return "plain", 1


def leaves(value, path=()):
    """Every number of a document with what it counts."""
    if isinstance(value, dict):
        if "currency_code" in value:
            for end in ("amount", "low", "high"):
                if end in value:
                    yield value["currency_code"], Decimal(value[end])
            return
        for name, member in value.items():
            yield from leaves(member, (*path, name))
    elif isinstance(value, list):
        for member in value:
            yield from leaves(member, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        kind, factor = kind_of(path)
        yield kind, Decimal(str(value)) * Decimal(str(factor))
        yield "plain", Decimal(str(value))


def sums(answers):
    """What a report works out of an answer: sums of its parts, means, and the memory's bandwidth."""
    memory = answers.get("memory", {}).get("per_device", {"components": []})
    yield "bytes", sum(Decimal(part["bytes"]) for part in memory["components"])
    for each in answers.get("throughput", {}).get("operators", []):
        if not each["flops_per_byte"]:
            continue
        yield "bytes_per_second", Decimal(each["attainable_flops_per_second"] / each["flops_per_byte"])
        peak = answers["throughput"]["peak_flops_per_second_per_device"]
        yield "plain", Decimal(peak / each["attainable_flops_per_second"] * each["flops_per_byte"])
    bill = answers.get("utility_bill", {"energy": {"lines": []}, "electricity": {"lines": []}})
    for place in ("it_kwh", "facility_kwh"):
        yield "kwh", sum(Decimal(line[place]["value"]) for line in bill["energy"]["lines"] if place in line)
    for phase in bill["energy"].get("load_profile", {}).get("phases", []):
        if phase["seconds"]:
            yield "kw", Decimal(phase["it_kwh"] / phase["seconds"] * 3600)
    electricity = bill["electricity"]
    yield "kwh", sum(Decimal(period["energy_kwh"]) for period in electricity.get("periods", []))
    grouped = defaultdict(Decimal)
    for line in electricity["lines"]:
        if "amount" in line:
            code, amount = line["amount"]["currency_code"], Decimal(line["amount"]["amount"])
            named = (line["name"], line.get("price_period"), line.get("tier"), line.get("after_run"))
            month = line.get("billing_period", {}).get("start_date")
            for key in (named, (month, line.get("kind", "energy")), "all"):
                grouped[code, key] += amount
            grouped["plain", named] += 1
    yield from ((kind, total) for (kind, _), total in grouped.items())


def known(quote):
    """Every number that the report may say, by what it counts."""
    found = defaultdict(list)
    for kind, value in (*leaves(quote["answers"]), *leaves(quote["headlines"]), *sums(quote["answers"])):
        found[kind].append(value)
    found["plain"].append(Decimal(quote["version"]))
    return found


def is_said(said, among):
    """Whether a figure is one of a document, rounded to the last place that is shown.

    A unit of it, as parts are rounded so that they sum.
    """
    return any(abs(said.value - value) <= said.precision * 2 for value in among)


SEPARATE = {"80% intervals of the headlines over their estimates", "Power at the meter in time"}
"""Tables of ratios and of means, which tests of their own read."""


@every_scenario
def test_every_number_of_a_table_is_the_answers(name):
    quote, found = frozen(name), known(frozen(name))
    cells = [cell for cell in read(name).cells if cell.table not in SEPARATE]
    assert len(cells) > 20
    for cell in cells:
        if cell.column == "Share" and "Memory" in cell.table:
            continue
        for said in figures_in(cell.text, cell.unit):
            assert is_said(said, found[said.kind]), cell
    for cell in cells:
        assert "nan" not in cell.text.lower()
        assert "None" not in cell.text
    assert quote["headlines"]


@every_scenario
def test_every_figure_in_a_sentence_is_the_answers(name):
    found = known(frozen(name))
    for sentence in read(name).prose:
        for said in figures_in(sentence):
            if said.kind != "plain":
                assert is_said(said, found[said.kind] + [Decimal("1e9") * Decimal("1.073741824")]), sentence


def triples(value, path=()):
    """Value, low and high of every quantity and headline amount of a document, by what they count."""
    if isinstance(value, list):
        for member in value:
            yield from triples(member, path)
    elif isinstance(value, dict) and {"low", "high", "basis"} <= value.keys():
        code, ends = value.get("currency_code"), ("amount" if "amount" in value else "value", "low", "high")
        kind, factor = (code, 1) if code else kind_of(path)
        yield kind, tuple(Decimal(str(value[end])) * Decimal(str(factor)) for end in ends)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from triples(member, (*path, name))


@every_scenario
def test_each_interval_is_that_of_its_own_estimate(name):
    quote = frozen(name)
    found = [*triples(quote["answers"]), *triples(quote["headlines"])]
    cells = [cell for cell in read(name).cells if cell.column == "Estimate, 80% interval"]
    pairs = [(cell, figures_in(cell.text)) for cell in cells]
    intervals = [(cell, said) for cell, said in pairs if len(said) == len(("value", "low", "high"))]
    assert len(intervals) > 2
    for cell, said in intervals:
        assert any(
            kind == said[0].kind and all(is_said(one, [end]) for one, end in zip(said, ends, strict=True))
            for kind, ends in found
        ), cell


def headline_cells(text):
    """What is said of each headline."""
    cells = [cell for cell in Cells(text).cells if cell.table == "Headlines"]
    return {cell.row.partition(" | ")[0]: cell.text for cell in cells}


@every_scenario
def test_headlines_and_their_intervals_are_those_that_are_decided_about(name):
    quote = frozen(name)
    rows = {cell.row.partition(" | ")[0]: cell.text for cell in read(name).cells if cell.table == "Headlines"}
    titles = {
        "total": "Total",
        "duration_seconds": "Time of the run",
        "device_hours": "Device-hours",
        "total_bytes": "Memory of the fullest device",
        "facility_kwh": "Energy at the meter",
        "peak_kw": "Peak power at the meter",
        "location_based_kg_co2e": "Emissions (location-based)",
    }
    for member, title in titles.items():
        if member not in quote["headlines"]:
            assert rows.get(title, "not known") == "not known"
            continue
        headline = quote["headlines"][member]
        ends = [Decimal(str(headline[end])) for end in ("low", "high")]
        value = Decimal(str(headline.get("value", headline.get("amount"))))
        said = figures_in(rows[title])
        factor = 3600 if member == "device_hours" else 1
        wanted = [value, *ends] if ends[0] != ends[1] else [value]
        assert len(said) == len(wanted), rows[title]
        assert all(is_said(each, [one * factor]) for each, one in zip(said, wanted, strict=True))
        kind = headline.get("currency_code") or kind_of((member,))[0]
        assert {each.kind for each in said} == {kind}


BARS = {
    "Memory of the fullest device by component",
    "Time of a step by phase",
    "Time of a request by phase",
    "Time by phase",
    "Charges of the run",
    "Energy at the meter of the building, by equipment",
    "Energy that the equipment draws, by equipment",
    "Electricity by equipment",
    "Mean power of the equipment by phase of the run",
    "Bill by billing period",
}
IN_A_ROW = BARS - {
    "Mean power of the equipment by phase of the run",
    "Bill by billing period",
    "Time by phase",
}
"""Charts whose bars begin where the last one ended."""


@every_scenario
def test_bars_are_as_long_as_the_figures_beside_them(name):
    for title, chart in charts_of(shown(name)).items():
        if title not in BARS:
            continue
        axis, (kind, factor) = chart.axis(), chart.unit()
        pixel = abs(axis(1) - axis(0)) * 1.1
        zero = next(x for x, _, text in chart.texts("tick") if text == "0")
        assert abs(axis(zero)) <= pixel
        reached = 0.0
        for bar in chart.bars(axis):
            (said,) = figures_in(bar.text)
            assert said.kind == kind
            value = float(said.value) / factor
            start = 0.0 if bar.is_total or title not in IN_A_ROW else reached
            ends = sorted((start, start + value))
            assert (bar.start, bar.end) == (
                pytest.approx(ends[0], abs=pixel),
                pytest.approx(ends[1], abs=pixel),
            )
            assert bar.is_saved == (value < 0 and not bar.is_total)
            if bar.low is not None:
                assert bar.low <= bar.high + pixel
            if not bar.is_total:
                reached += value
            elif title in IN_A_ROW:
                assert reached == pytest.approx(value, rel=2e-4, abs=pixel)


WHOLES = {"Total", "Together", "Step", "Request", "Known parts"}
WITH_PARTS = {column for column in UNITS if column not in {"%", "W", "kW", "MW", "TFLOP/s"}}
WITH_PARTS |= {"Share", "Amount", "Together", "Energy, kWh"}


@every_scenario
def test_parts_sum_to_their_whole_as_they_are_printed(name):
    columns = defaultdict(list)
    for cell in read(name).cells:
        if cell.column in WITH_PARTS:
            columns[cell.table, cell.column].append(cell)
    summed = 0
    for key, cells in columns.items():
        if cells[-1].row not in WHOLES:
            continue
        # "< 0.1" is printed of what is rounded to nothing.
        texts = ["0" if cell.text.startswith("< ") else cell.text for cell in cells if cell.text]
        values = [Decimal(text.partition(SPACE)[0].replace(",", "")) for text in texts]
        assert sum(values[:-1]) == values[-1], key
        summed += 1
    assert summed >= 2


def test_a_candidate_of_a_plan_is_shown_as_the_plan_has_it(client):
    plan = client.post("/v1/plans", PLAN).json()
    for row in plan["answer"]["rows"]:
        sent = {"name": "a row", "plan_id": plan["id"], "candidate": row["rank"]}
        quote = client.post("/v1/quotes", sent).json()
        text = client.get(f"/v1/quotes/{quote['id']}/report").text
        cells = Cells(text).cells
        (total,) = [
            cell.text
            for cell in cells
            if (cell.table, cell.row.partition(" | ")[0]) == ("Headlines", "Total")
        ]
        said = [each.value for each in figures_in(total)]
        ends = ["low", "high"] * (row["cost"]["low"] != row["cost"]["high"])
        assert said == [Decimal(row["cost"][end]) for end in ("amount", *ends)]
        assert f"plan {plan['id']}, candidate {row['rank']}" in text
        found = known(quote)
        for cell in cells:
            if cell.table not in SEPARATE and not (cell.column == "Share" and "Memory" in cell.table):
                assert all(is_said(each, found[each.kind]) for each in figures_in(cell.text, cell.unit)), cell


def test_operators_stand_where_their_figures_are():
    quote = frozen("trained")
    chart = charts_of(shown("trained"))["Operators of one block under the roofline"]
    across, up = chart.plane()
    operators = quote["answers"]["throughput"]["operators"]
    points = [*chart.of("circle", "point"), *chart.of("rect", "point")]
    assert len(points) == len(operators)
    drawn = sorted((across(x), up(y)) for x, y in map(middle, points))
    told = sorted((each["flops_per_byte"], each["achieved_flops_per_second"] / 1e12) for each in operators)
    for one, other in zip(drawn, told, strict=True):
        assert one == pytest.approx(other, rel=0.03)
    corners = chart.of("polyline", "roof")[0].get("points").split()
    begin, knee, end = [tuple(map(float, corner.split(","))) for corner in corners]
    # 3.35 TB/s and 989 TFLOP/s are those of the data sheet.
    assert (across(knee[0]), up(knee[1])) == pytest.approx((989 / 3.35, 989), rel=0.03)
    assert up(begin[1]) / across(begin[0]) == pytest.approx(3.35, rel=0.05)
    assert end[1] == knee[1]
    assert "meet at 295.2 FLOP per byte" in chart.description
    assert "ridge 295.2 FLOP/byte" in {text for _, _, text in chart.texts("mark-name")}
    assert chart.of("line", "mark")[0].get("x1") == corners[1].split(",")[0]


def middle(point):
    """Where a point is."""
    if point.tag == "circle":
        return float(point.get("cx")), float(point.get("cy"))
    return float(point.get("x")) + 4, float(point.get("y")) + 4


def test_the_course_of_the_power_has_the_energy_of_its_intervals():
    quote = frozen("served")
    chart = charts_of(shown("served"))["Power at the meter in time"]
    days, watts = chart.plane(is_log=False)
    corners = chart.of("polygon", "area")[0].get("points").split()
    area = [tuple(map(float, corner.split(","))) for corner in corners]
    tops = area[1:-1]
    drawn = sum(
        watts(left[1]) * (days(right[0]) - days(left[0])) * 24 / 1000
        for left, right in zip(tops[::2], tops[1::2], strict=True)
    )
    profile = quote["answers"]["utility_bill"]["energy"]["load_profile"]
    kwh = sum(profile["intervals_kw"]) * profile["interval_minutes"] / 60
    assert drawn == pytest.approx(kwh, rel=0.01)
    assert watts(area[0][1]) == pytest.approx(0.0, abs=5)
    ranges = [watts(float(line.get("y2"))) for line in chart.of("line", "range")]
    assert max(ranges, default=0) <= max(profile["intervals_kw"]) * 1000 * 1.01


@every_scenario
def test_intervals_are_drawn_over_their_estimates(name):
    quote, title = frozen(name), "80% intervals of the headlines over their estimates"
    chart = charts_of(shown(name)).get(title)
    ratios = {}
    for member, headline in quote["headlines"].items():
        if isinstance(headline, dict):
            middle_of = "value" if "value" in headline else "amount"
            low, value, high = (float(headline[end]) for end in ("low", middle_of, "high"))
            if 0 < low < high:
                ratios[member] = (low / value, high / value)
    assert (chart is None) == (not ratios)
    if chart is None:
        return
    axis = chart.axis(is_log=True)
    whiskers = [line for line in chart.of("line", "whisker") if line.get("y1") == line.get("y2")]
    drawn = [(axis(float(line.get("x1"))), axis(float(line.get("x2")))) for line in whiskers]
    assert len(drawn) == len(ratios)
    for one, other in zip(drawn, ratios.values(), strict=True):
        assert one == pytest.approx(other, rel=0.02)
    told = [cell for cell in read(name).cells if cell.table == title]
    said = [figures_in(cell.text)[0] for cell in told]
    wanted = [Decimal(end) for pair in ratios.values() for end in pair]
    assert all(is_said(each, [one]) for each, one in zip(said, wanted, strict=True))


def numbers_of(shape, name="", seen=()):
    """Names of the numbers in a shape of an answer, at any depth."""
    for part in get_args(shape):
        yield from numbers_of(part, name, seen)
    if shape in (int, float) or shape is QuantityEstimate:
        yield name
    elif is_typeddict(shape) and shape not in seen:
        for member, annotation in get_type_hints(shape, include_extras=True).items():
            yield from numbers_of(annotation, member, (*seen, shape))


def test_every_member_that_names_a_unit_is_shown_in_it():
    named = ("seconds", "bytes", "kwh", "kw", "watts", "joules", "kg_co2e", "liters", "flops", "hours")
    shapes = (MemoryEstimate, ThroughputEstimate, CostEstimate, UtilityBill)
    members = {name for shape in shapes for name in numbers_of(shape)}
    assert {"device_hours", "p95", "step_seconds_without", "bytes_per_device"} <= members
    without = {
        name
        for name in members
        if any(part in name.split("_") for part in named) and select_ladder(name) == PLAIN
    }
    # Those of an operator stand in columns that say so; a year's device-hours say it in their name.
    of_operators = set(get_type_hints(OperatorEstimate))
    assert without - of_operators == {"device_hours_per_year"}
