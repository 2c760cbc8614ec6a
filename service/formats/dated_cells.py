"""Cells that files of dated prices have in common: day, currency, source, and which of two prices stands."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple, TypeVar

from service.formats.offers.listed import ListedSource, RefusedOffer, RowError, parse_text
from service.planning.cost.prices import is_old, parse_first_day, parse_last_day

CONFIDENCES: Final = ("list", "computed", "transcribed", "marketplace")
"""Origins of a price, the most reliable first: the provider's list, figures computed from it, a list as
somebody else has read it, and hosts of a marketplace.
"""
_LONGEST_CITATION: Final = 1000
_DAY: Final = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_ADDRESS: Final = re.compile(r"https://[!-~]{1,492}")
_SCHEME: Final = re.compile(r"[a-z]+://")
_Cell = TypeVar("_Cell")
_Price = TypeVar("_Price")


class DatedPrice(NamedTuple):
    """The identity of a price: its id and place, its day, its origin, its amounts, and its doubt."""

    id: str
    pointer: str
    as_of: str
    confidence: int
    amounts: tuple[Decimal | None, ...]
    is_doubtful: bool = False


def read_cell(cells: Mapping[str, str], column: str, parse: Callable[[str], _Cell]) -> _Cell:
    """Parses the cell of a column; a cell that is refused is refused by the name of its column."""
    try:
        return parse(cells.get(column, ""))
    except RowError as error:
        raise RowError(error.code, error.detail, column) from error


def parse_required(text: str) -> str:
    """Text that a row must have."""
    parsed = parse_text(text)
    if parsed is None:
        raise RowError("CELL_EMPTY", "the cell is empty")
    return parsed


def parse_day(text: str) -> str:
    """A year, a month or a day as text, if the calendar has it."""
    day = parse_required(text)
    if not _DAY.fullmatch(day) or not _is_day(day):
        raise RowError("DATE_INVALID", "the date is no day such as 2026-11-09")
    return day


def _is_day(text: str) -> bool:
    try:
        parse_last_day(text)
    except ValueError:
        return False
    return True


def parse_currency(text: str) -> str:
    """An ISO 4217 code."""
    code = parse_required(text)
    if not _CURRENCY.fullmatch(code):
        raise RowError("CURRENCY_INVALID", "the currency is no code such as USD")
    return code


def parse_confidence(text: str) -> int:
    """The place of an origin among ``CONFIDENCES``; the last place for none."""
    name = parse_text(text)
    if name is None:
        return len(CONFIDENCES)
    if name not in CONFIDENCES:
        raise RowError("CONFIDENCE_UNKNOWN", f"the confidence is one of {', '.join(CONFIDENCES)}")
    return CONFIDENCES.index(name)


def parse_address(text: str) -> str | None:
    """The https address of a source, whose scheme may be left out; None for none."""
    address = parse_text(text)
    if address is None:
        return None
    full = address if _SCHEME.match(address) else f"https://{address}"
    if not _ADDRESS.fullmatch(full):
        raise RowError("URL_INVALID", "the address of a source begins with https:// and has no spaces")
    return full


def read_source(cells: Mapping[str, str], provider: str) -> ListedSource:
    """The source of a row; without ``via`` it is the provider's own publication."""
    url = read_cell(cells, "source_url", parse_address)
    via = read_cell(cells, "via", parse_text)
    if url is None and via is None:
        raise RowError("SOURCE_MISSING", "a price needs a source_url or a via", "source_url")
    citation = f"Prices of {provider}" + (f", as read in {via}" if via else "")
    return ListedSource(citation[:_LONGEST_CITATION], url, read_cell(cells, "licence", parse_text))


def keep_newest(
    prices: Sequence[_Price], describe: Callable[[_Price], DatedPrice]
) -> tuple[list[_Price], list[RefusedOffer]]:
    """Returns the price of each id that stands, and the refused others.

    It is the newest of the prices without a doubt that are at most a year older than the newest of the file,
    else the newest; of one day, that of the most reliable origin.
    """
    newest = max((parse_first_day(describe(one).as_of) for one in prices), default=date.min)
    kept: dict[str, _Price] = {}
    refused: list[RefusedOffer] = []
    for price in sorted(prices, key=lambda one: _build_order(describe(one), newest)):
        mine = describe(price)
        first = describe(kept.setdefault(mine.id, price))
        if first.pointer != mine.pointer:
            refused.append(_refuse(mine, first))
    return list(kept.values()), refused


def _build_order(price: DatedPrice, newest: date) -> tuple[bool, int, int]:
    is_second = price.is_doubtful or is_old(price.as_of, newest)
    return is_second, -parse_last_day(price.as_of).toordinal(), price.confidence


def _refuse(price: DatedPrice, kept: DatedPrice) -> RefusedOffer:
    if price.as_of == kept.as_of and price.amounts == kept.amounts:
        return RefusedOffer(price.pointer, "REPEATS_ANOTHER_ROW", f"it repeats the price at {kept.pointer}")
    is_older = parse_last_day(price.as_of) < parse_last_day(kept.as_of)
    if price.is_doubtful and not kept.is_doubtful and not is_older:
        detail = f"the same product has a price of {kept.as_of} without a doubt at {kept.pointer}"
        return RefusedOffer(price.pointer, "DOUBTFUL", detail)
    if price.as_of != kept.as_of:
        detail = f"the same product has a newer price at {kept.pointer}"
        return RefusedOffer(price.pointer, "SUPERSEDED", detail)
    detail = f"the same product has another price of that day at {kept.pointer}"
    return RefusedOffer(price.pointer, "CONTRADICTS_ANOTHER_ROW", detail)
