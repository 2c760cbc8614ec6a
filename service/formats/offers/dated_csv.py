"""Files of dated prices that their keeper fills row by row, each with its source.

A row prices a whole product: ``provider``, ``product``, ``catalog_accelerator_id`` and ``accelerator_count``,
``region``, ``purchase_option`` (on_demand, spot, reserved, committed, capacity_block, or reserved_1y,
reserved_3y and reserved_other, whose ``commitment_note`` says what is promised), ``price_per_hour``,
``currency``, ``as_of``, ``source_url``. May be left out: ``term_days``, ``price_per_accelerator_hour``
(which must agree), ``includes_host``, ``via``, ``confidence``, ``licence``. A row that names no accelerator
of the catalog is refused: an H100 whose form is not printed is not guessed. Of rows of one product the newest
stands; one that is doubtful stands behind one of the year before that is not.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from service.formats.dated_cells import (
    CONFIDENCES,
    DatedPrice,
    keep_newest,
    parse_confidence,
    parse_currency,
    parse_day,
    parse_required,
    read_cell,
    read_source,
)
from service.formats.offers.listed import (
    ListedOffer,
    ReadOffers,
    RowError,
    build_slug,
    collect_offers,
    parse_count,
    parse_price,
    parse_text,
    read_table,
)
from service.formats.offers.names import ListedAccelerators, PriceListContext
from service.planning.cost.prices import CommitmentTerm

COLUMNS: Final = (
    "provider",
    "product",
    "catalog_accelerator_id",
    "accelerator_count",
    "region",
    "purchase_option",
    "commitment_note",
    "price_per_hour",
    "currency",
    "as_of",
    "source_url",
)
_STATED_OPTIONS: Final = ("on_demand", "spot", "reserved", "committed", "capacity_block")
_TERM_OPTIONS: Final[Mapping[str, int]] = {"reserved_1y": 365, "reserved_3y": 3 * 365, "reserved_other": 0}
"""Purchase options that name a term only, with its days; 0 where the remark says them or nothing does."""
_EVERYWHERE: Final = "global"
_LENGTH: Final = re.compile(r"(?:\b([0-9]{1,4}|one)[- ](year|month|week|day)|\b(month)ly billing)")
_RANGE_OF_DAYS: Final = re.compile(r"\b([0-9]{1,4}) to [0-9]{1,4} days\b")
_UNIT_DAYS: Final = {"year": 365.0, "month": 365.0 / 12.0, "week": 7.0, "day": 1.0}
_LONGEST_TERM_DAYS: Final = 3660
_ROUNDING: Final = Decimal("0.005")
"""Share by which the price of a product may differ from that of its accelerators, which is printed rounded.
"""


class _Promise(NamedTuple):
    option: str
    term: CommitmentTerm | None
    paid_hourly: bool = False


@cache
def _load_document() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((files(__package__) / "dated_csv.json").read_bytes())
    return content


def offers_from_dated_csv(content: str, context: PriceListContext) -> ReadOffers:
    """The offers of a file of dated prices; raises PlanningError if a column is missing."""
    confidences: dict[str, int] = {}

    def read_offer(pointer: str, cells: Mapping[str, str]) -> ListedOffer:
        confidences[pointer] = read_cell(cells, "confidence", parse_confidence)
        return _read_offer(pointer, cells, context.accelerators, confidences[pointer])

    def describe_offer(offer: ListedOffer) -> DatedPrice:
        amounts, confidence = (offer.hourly_price,), confidences[offer.pointer]
        is_doubtful = offer.doubt is not None
        return DatedPrice(offer.id, offer.pointer, offer.as_of or "", confidence, amounts, is_doubtful)

    rows, refused, total = read_table(content, COLUMNS, read_offer)
    kept, older = keep_newest(rows, describe_offer)
    return collect_offers(kept, [*refused, *older], total)


def _read_offer(
    pointer: str, cells: Mapping[str, str], accelerators: ListedAccelerators, confidence: int
) -> ListedOffer:
    provider = read_cell(cells, "provider", parse_required)
    remark = read_cell(cells, "commitment_note", parse_text) or ""
    price = read_cell(cells, "price_per_hour", parse_price)
    count = read_cell(cells, "accelerator_count", _parse_device_count)
    _check_device_price(cells, price, count)
    promise = _read_promise(cells, remark)
    term = promise.term
    if term is not None and promise.paid_hourly:
        term = term._replace(hourly=price)
    region = read_cell(cells, "region", parse_text)
    return ListedOffer(
        pointer=pointer,
        provider=_name_provider(provider),
        accelerator_id=_read_accelerator(cells, accelerators),
        accelerator_count=count,
        purchase_option=promise.option,
        price=None if term is not None and term.hourly is not None else price,
        currency_code=read_cell(cells, "currency", parse_currency),
        region=None if region == _EVERYWHERE else region,
        instance_type=read_cell(cells, "product", _parse_product),
        term=term,
        term_name=f"{term.days}d" if term else "",
        includes=read_cell(cells, "includes_host", _parse_inclusions),
        doubt=_find_doubt(remark, confidence),
        note=remark or None,
        as_of=read_cell(cells, "as_of", parse_day),
        source=read_source(cells, provider),
    )


def _parse_device_count(text: str) -> int:
    count = parse_count(text)
    if not count:
        raise RowError("COUNT_INVALID", "the count of accelerators is missing")
    return count


def _check_device_price(cells: Mapping[str, str], price: Decimal, count: int) -> None:
    """Refuses a row whose price of an accelerator is not that of the product over its accelerators."""
    column = "price_per_accelerator_hour"
    if not cells.get(column, "").strip():
        return
    each = read_cell(cells, column, parse_price)
    if abs(each * count - price) > _ROUNDING * price:
        detail = "the price of an accelerator times their count is not the price of the product"
        raise RowError("PRICE_CONTRADICTS_COUNT", detail, column)


def _read_accelerator(cells: Mapping[str, str], accelerators: ListedAccelerators) -> str:
    column = "catalog_accelerator_id"
    name = cells.get(column, "").strip()
    if not name:
        raise RowError("ACCELERATOR_NOT_STATED", "the row names no accelerator of the catalog", column)
    if name not in accelerators.labels_gb:
        raise RowError("UNKNOWN_ACCELERATOR", "the catalog has no accelerator of this id", column)
    return name


def _name_provider(name: str) -> str:
    short: str | None = _load_document()["providers"].get(name.lower())
    return short or build_slug(name)


def _parse_product(text: str) -> str:
    name = parse_required(text)
    same: str | None = _load_document()["products"].get(name.lower())
    return same or name


def _read_promise(cells: Mapping[str, str], remark: str) -> _Promise:
    """Returns the purchase option with the term that is agreed, if one is."""
    option = read_cell(cells, "purchase_option", parse_required)
    days = read_cell(cells, "term_days", _parse_term_days)
    if option in _STATED_OPTIONS:
        return _read_stated(option, days)
    if option not in _TERM_OPTIONS:
        detail = f"the purchase option is one of {', '.join((*_STATED_OPTIONS, *_TERM_OPTIONS))}"
        raise RowError("PURCHASE_OPTION_UNKNOWN", detail, "purchase_option")
    days = days or _TERM_OPTIONS[option] or _find_days(remark.lower())
    term = CommitmentTerm(days) if days else None
    for promise in _load_document()["promises"]:
        if re.search(promise["remark"], remark.lower()):
            break
    if promise["purchase_option"] is None:
        detail = "capacity that is waited for is no purchase option of offers"
        raise RowError("PURCHASE_OPTION_UNKNOWN", detail, "commitment_note")
    return _Promise(promise["purchase_option"], term, promise.get("paid") == "hourly")


def _read_stated(option: str, days: int) -> _Promise:
    if days and option in ("on_demand", "spot"):
        raise RowError("TERM_NOT_EXPECTED", "on_demand and spot have no term", "term_days")
    return _Promise(option, CommitmentTerm(days) if days else None)


def _parse_term_days(text: str) -> int:
    if not text.strip():
        return 0
    if not re.fullmatch(r"[0-9]{1,4}", text.strip()) or not 0 < int(text) <= _LONGEST_TERM_DAYS:
        raise RowError("TERM_INVALID", f"a term is a whole number of days up to {_LONGEST_TERM_DAYS}")
    return int(text)


def _find_days(remark: str) -> int:
    """The days of the shortest term that a remark names, which comes first; 0 where it names none."""
    if said := _RANGE_OF_DAYS.search(remark):
        return int(said[1])
    said = _LENGTH.search(remark)
    if said is None:
        return 0
    number = int(said[1]) if (said[1] or "").isdigit() else 1
    return min(round(number * _UNIT_DAYS[said[2] or said[3]]), _LONGEST_TERM_DAYS)


def _parse_inclusions(text: str) -> tuple[str, ...] | None:
    said = text.strip().lower()
    if said not in ("", "yes", "no"):
        raise RowError("INCLUDES_HOST_INVALID", "it is yes or no, or empty where that is unknown")
    return {"yes": ("host",), "no": (), "": None}[said]


def _find_doubt(remark: str, confidence: int) -> str | None:
    """The reason why a price is no rate that a provider keeps, from its remark or its origin."""
    if any(re.search(pattern, remark.lower()) for pattern in _load_document()["doubts"]):
        return remark
    if CONFIDENCES[confidence : confidence + 1] == ("marketplace",):
        return "prices of third-party hosts, which move from day to day"
    return None
