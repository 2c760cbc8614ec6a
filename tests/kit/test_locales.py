"""Numbers and dates as readers write them, by the languages that their browsers name."""

from datetime import UTC, date, datetime

import pytest

from service.kit.http.html import format_day, format_moment, format_money, format_plain
from service.kit.locales import (
    PLAIN,
    format_count,
    format_date,
    get_style,
    localize_number,
    may_be_thousands,
    read_number,
    select_style,
    use_style,
)
from service.kit.reports.numbers import UnitScale, build_tick_format, format_number, format_quantity

THIN, WIDE, APOSTROPHE = "\N{NARROW NO-BREAK SPACE}", "\N{NO-BREAK SPACE}", "\N{RIGHT SINGLE QUOTATION MARK}"
DAY = date(2026, 10, 1)


@pytest.mark.parametrize(
    ("accepted", "number", "day"),
    [
        ("", "1,415,571.28", "1 October 2026"),
        ("*", "1,415,571.28", "1 October 2026"),
        ("en-US,en;q=0.9", "1,415,571.28", "October 1, 2026"),
        ("en-GB", "1,415,571.28", "1 October 2026"),
        ("de", "1.415.571,28", "1 October 2026"),
        ("de-AT;q=0.3, de-CH;q=0.8", f"1{APOSTROPHE}415{APOSTROPHE}571.28", "1 October 2026"),
        ("fr-FR", f"1{THIN}415{THIN}571,28", "1 October 2026"),
        ("sv", f"1{WIDE}415{WIDE}571,28", "1 October 2026"),
        ("ja", "1,415,571.28", "2026 October 1"),
        ("ar", "1,415,571.28", "1 October 2026"),
        ("tlh, de;q=0.5", "1.415.571,28", "1 October 2026"),
        ("de;q=0, en-GB", "1,415,571.28", "1 October 2026"),
        ("de;q=x", "1,415,571.28", "1 October 2026"),
        ("../../etc/passwd", "1,415,571.28", "1 October 2026"),
        ("d" * 5000, "1,415,571.28", "1 October 2026"),
        ("_-_,-,\x00,\xff", "1,415,571.28", "1 October 2026"),
    ],
)
def test_the_style_is_that_of_the_first_known_language(accepted, number, day):
    with use_style(select_style(accepted)):
        assert localize_number("1,415,571.28") == number
        assert format_date(DAY) == day
    assert get_style() == PLAIN


def test_every_format_follows_the_reader():
    with use_style(select_style("de")):
        assert format_money("1415571.28", "USD") == f"1.415.571,28{WIDE}USD"
        assert format_plain(1234.5) == "1.234"
        assert format_plain(0.125) == "0,125"
        assert format_plain(4741) == "4.741" == format_count(4741)
        assert format_number(1234567.0) == "1.234.567"
        assert format_number(19.66071) == "19,66"
        assert format_number(8.4e23).startswith("8,400")
        assert format_quantity(471_857.0933333333) == "471.857,093333"
        assert build_tick_format(UnitScale(1.0, ""))(1234.5) == "1.234,5"
    with use_style(select_style("en-US")):
        assert format_day("2026-10-01") == "October 1, 2026"
        moment = format_moment(datetime(2026, 10, 1, 8, 5, tzinfo=UTC))
        assert moment == '<time datetime="2026-10-01T08:05:00Z">October 1, 2026, 08:05 UTC</time>'


@pytest.mark.parametrize(
    ("typed", "read"),
    [("0,12", "0.12"), ("1,5", "1.5"), ("0.12", "0.12"), ("1500", "1500")],
)
def test_decimals_are_read_as_they_are_typed(typed, read):
    with use_style(select_style("de")):
        assert read_number(typed) == read
        assert not may_be_thousands(read)
    assert read_number(typed) == typed


@pytest.mark.parametrize("typed", ["1.500", "1,500", "1.500,5", "1,2,3", ",5", "1,", "-1,5", "1 500"])
def test_what_could_be_two_numbers_is_not_changed(typed):
    with use_style(select_style("de")):
        assert read_number(typed) == typed
        assert may_be_thousands("1.500")
        assert may_be_thousands("12,000")
    with use_style(select_style("en")):
        assert not may_be_thousands("1.500")
