"""Numbers and dates in the way of the reader: separators, and the order of a date. Words stay English.

A route of pages sets the reader's style for its request. Everything else is written in the plain style, so
that what is stored or sent does not depend on who asks.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from service.kit.http.packed import read_weights

DateOrder = Literal["dmy", "mdy", "ymd"]
_MOST_TAG_CHARACTERS: Final = 35
_MOST_TAGS: Final = 8
_TYPED_DECIMAL: Final = re.compile("[0-9]{1,15},[0-9]{1,9}")
_NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_THOUSANDS: Final = re.compile("[0-9]{1,3}[.,][0-9]{3}")
_COMMA: Final = ","
_ORDERS: Final[dict[str, DateOrder]] = {"mdy": "mdy", "ymd": "ymd"}
_PATTERNS: Final[dict[DateOrder, str]] = {
    "dmy": "{day} {month} {year}",
    "mdy": "{month} {day}, {year}",
    "ymd": "{year} {month} {day}",
}


class ReaderStyle(NamedTuple):
    """Separators of numbers and order of dates."""

    group: str = ","
    decimal: str = "."
    date_order: DateOrder = "dmy"


PLAIN: Final = ReaderStyle()
_style: ContextVar[ReaderStyle] = ContextVar("reader_style", default=PLAIN)


@contextmanager
def use_style(style: ReaderStyle) -> Iterator[None]:
    """Writes numbers and dates in a style."""
    token = _style.set(style)
    try:
        yield
    finally:
        _style.reset(token)


def get_style() -> ReaderStyle:
    """Returns the style of the reader."""
    return _style.get()


def select_style(accepted: str) -> ReaderStyle:
    """Returns the style of the first known language of a value of Accept-Language, else the plain one."""
    weights = {tag: weight for tag, weight in read_weights(accepted).items() if weight > 0 and tag != "*"}
    tags = sorted(weights, key=lambda tag: -weights[tag])[:_MOST_TAGS]
    known = (_load_style(tag) for tag in tags if len(tag) <= _MOST_TAG_CHARACTERS)
    return next((style for style in known if style is not None), PLAIN)


@lru_cache(maxsize=512)
def _load_style(tag: str) -> ReaderStyle | None:
    """Returns the style of a language by the Unicode CLDR, or None if it is unknown."""
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415  # slow to import

    try:
        locale = Locale.parse(tag, sep="-")
        symbols = locale.number_symbols["latn"]
    except (UnknownLocaleError, ValueError, TypeError, KeyError):
        return None
    pattern = str(locale.date_formats["long"].pattern)
    places = {part: pattern.find(letter) for part, letter in (("d", "d"), ("m", "M"), ("y", "y"))}
    order = "".join(sorted(places, key=lambda part: places[part]))
    return ReaderStyle(symbols["group"], symbols["decimal"], _ORDERS.get(order, "dmy"))


def localize_number(text: str) -> str:
    """Returns a number in plain style, as ``f"{value:,}"`` writes it, in the style of the reader."""
    style = _style.get()
    if style.group == PLAIN.group and style.decimal == PLAIN.decimal:
        return text
    return text.translate({ord(PLAIN.group): style.group, ord(PLAIN.decimal): style.decimal})


def read_number(text: str) -> str:
    """Returns a number as a reader types it in plain style: 0,12 is 0.12 where decimals have a comma.

    A text that may be thousands or decimals, such as 1,500 or 1.500 there, is returned as it is.
    """
    is_decimal = _style.get().decimal == _COMMA and _TYPED_DECIMAL.fullmatch(text)
    return text.replace(_COMMA, PLAIN.decimal) if is_decimal and not may_be_thousands(text) else text


def may_be_thousands(text: str) -> bool:
    """Returns true if a separator before three digits may be of thousands, where decimals have a comma."""
    return _style.get().decimal == _COMMA and _THOUSANDS.fullmatch(text) is not None


def explain_number(text: str) -> str:
    """Returns why a text is not a number of a form in plain style, or nothing if it is one."""
    if may_be_thousands(text):
        return "may be thousands or decimals: write thousands without a separator"
    if not _NUMBER.fullmatch(text):
        return f"must be a number such as 1500 or {localize_number('0.12')}, without separators"
    return ""


def read_numbers(form: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Returns a form as a reader has typed it with its numbers in plain style, as addresses have them."""
    return {name: read_number(text.strip()) if name in names else text for name, text in form.items()}


def write_numbers(form: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Returns a form with its numbers in the style of the reader, without separators of thousands."""
    return {
        name: localize_number(text) if name in names and _NUMBER.fullmatch(text) else text
        for name, text in form.items()
    }


def format_count(value: float) -> str:
    """Returns a count with separators of thousands."""
    return localize_number(f"{value:,}")


def format_date(day: date) -> str:
    """Returns a day of the calendar, such as 1 October 2026."""
    return _PATTERNS[_style.get().date_order].format(day=day.day, month=f"{day:%B}", year=day.year)
