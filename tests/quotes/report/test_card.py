"""The card of a quote: the facts that somebody weighs before signing, from the figures of the quote."""

from decimal import Decimal

from service.kit.http.html import format_money
from service.quotes.compare import compare_quotes
from service.quotes.report.card import build_card
from service.quotes.report.service import ReportDecision, ReportNames, render_report
from tests.asking import usd
from tests.quotes.reading import BARE, SERVED, TRAINED, quoted
from tests.quotes.test_alternatives import WIDE


def rows(quote, changes=None):
    return {row.label: row for row in build_card(quote, changes)}


def test_a_year_is_told_by_the_month():
    quote = quoted(WIDE, "cost")
    total = Decimal(quote["headlines"]["total"]["amount"])
    month = rows(quote)["Per month"]
    assert month.value == format_money(round(total / 12, 2), "USD")
    assert month.remark == "over 12 months"


def test_a_week_has_no_month():
    assert "Per month" not in rows(quoted(SERVED))


def test_an_idle_service_is_told_with_what_would_do():
    quote = quoted(WIDE, "cost")
    card = rows(quote)
    assert card["Capacity used"].tone == "warn-text"
    assert card["Capacity used"].value == "8%"
    assert "3 of 37.05 requests per second" in card["Capacity used"].remark
    fewer = [each["detail"] for each in quote["alternatives"] if each["kind"] == "fewer_devices"]
    assert fewer == ["2 of the 16 devices serve the same load"]
    assert any("Amazon Bedrock sells the tokens" in each["detail"] for each in quote["alternatives"])
    assert fewer[0] in card["Cheapest alternative"].remark
    assert card["Devices"].remark == "from Crusoe"


def test_service_levels_are_met_or_not_or_not_asked():
    assert rows(quoted(WIDE, "cost"))["Service levels"].value == "met"
    assert "first token within 2 s, 50 ms a token" in rows(quoted(WIDE, "cost"))[
        "Service levels"
    ].remark.replace("\N{NO-BREAK SPACE}", " ")
    strict = {**WIDE["workload"], "service_levels": {"time_to_first_token_seconds": 0.0001}}
    missed = rows(quoted({**WIDE, "workload": strict}, "cost"))["Service levels"]
    assert (missed.value, missed.tone) == ("not met", "bad-text")
    silent = {name: value for name, value in WIDE["workload"].items() if name != "service_levels"}
    assert rows(quoted({**WIDE, "workload": silent}, "cost"))["Service levels"].value == "none are asked for"
    assert "Service levels" not in rows(quoted(TRAINED))


def test_a_higher_price_is_told_since_the_version_before():
    before = quoted(WIDE, "cost")
    dearer = {**WIDE, "rental": {"price_per_device_hour": usd("8.58")}}
    after = {**quoted(dearer, "cost"), "version": 2}
    moved = rows(after, compare_quotes(before, after))["Since version 1"]
    assert (moved.value, moved.tone) == ("+100.0%", "warn-text")
    assert moved.remark == f"it was {format_money(before['headlines']['total']['amount'], 'USD')}"
    same = rows(before, compare_quotes(before, before))["Since version 1"]
    assert same.value == "the amount is the same"


def test_charges_are_told_by_their_shares():
    driven = rows(quoted(TRAINED))["What it pays for"]
    assert driven.value.startswith("Rental: ")
    assert "device-hours at 3" in driven.value


def test_what_is_not_known_is_not_made_up():
    card = rows(quoted(BARE, "memory"))
    assert card["Amount to pay"].value == "not known"
    assert card.keys() <= {"Amount to pay", "Devices", "Memory used"}


def test_a_quote_of_an_earlier_release_says_nothing_of_alternatives():
    quote = quoted(WIDE, "cost")
    del quote["alternatives"]
    assert "Cheapest alternative" not in rows(quote)


def test_the_report_names_who_asked_and_who_approved():
    quote = quoted(WIDE, "cost")
    made = ReportDecision("approve", "ada", "Finance", quote["created_at"])
    page = render_report(quote, names=ReportNames("API key “CI” of ben", "Research"), decisions=[made])
    assert "<dt>Approved by</dt><dd><bdi>ada</bdi>" in page
    assert "in the step “<bdi>Finance</bdi>”" in page
    assert "<bdi>API key “CI” of ben</bdi>" in page
    assert "<dt>Cost centre</dt><dd>Research</dd>" in page
