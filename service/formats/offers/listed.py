"""Contents of a price list: offers, and the refused rows with the reason for each."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import Final, NamedTuple, TypeVar

from service.planning.cost.prices import CommitmentTerm, compute_effective_price, format_price
from service.planning.errors import PlanningError

_LARGEST_PRICE: Final = Decimal(1_000_000)
_LARGEST_COUNT: Final = 1_000_000
_LONGEST_ID: Final = 100
_DIGEST_LENGTH: Final = 10
_Row = TypeVar("_Row")
_EXACT: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=Decimal)
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]{1,500}")


class RefusedOffer(NamedTuple):
    """A refused row; ``pointer`` leads into a document, or is a line of a table (the header is /1).

    A column of the table follows the line where its cell is the reason.
    """

    pointer: str
    code: str
    detail: str


class ListedSource(NamedTuple):
    """Source that a row names for itself."""

    citation: str
    url: str | None = None
    licence: str | None = None


class ListedOffer(NamedTuple):
    """One price of a list: ``price`` is of an instance for an hour, None if the term states its parts."""

    pointer: str
    provider: str
    accelerator_id: str
    accelerator_count: int
    purchase_option: str
    price: Decimal | None
    currency_code: str
    region: str | None = None
    zone: str | None = None
    instance_type: str | None = None
    term: CommitmentTerm | None = None
    term_name: str = ""
    includes: tuple[str, ...] | None = None
    doubt: str | None = None
    note: str | None = None
    as_of: str | None = None
    source: ListedSource | None = None

    @property
    def hourly_price(self) -> Decimal:
        """Price of an instance for an hour, all that is paid over a term included."""
        return compute_effective_price(self.price, self.term)

    @property
    def id(self) -> str:
        """The id of the offer: the same for the same product, whatever its price."""
        what = self.instance_type or f"{self.accelerator_count}x-{self.accelerator_id}"
        place = self.zone or self.region or ""
        return build_slug(self.provider, what, place, self.purchase_option, self.term_name)


class ReadOffers(NamedTuple):
    """Offers that were read by id, and refused rows; ``rows`` counts those of the list."""

    offers: tuple[ListedOffer, ...]
    refused: tuple[RefusedOffer, ...]
    rows: int


def build_slug(*parts: str) -> str:
    """An id of the catalog made of ``parts``; what would be too long ends in a digest."""
    joined = "-".join(part for part in parts if part).lower()
    text = re.sub(r"[^a-z0-9]+", "-", joined).strip("-") or "offer"
    if len(text) <= _LONGEST_ID:
        return text
    digest = sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{text[: _LONGEST_ID - _DIGEST_LENGTH - 1]}-{digest}"


class RowError(Exception):
    """A row that is refused, because of one of its columns if it names it."""

    def __init__(self, code: str, detail: str, column: str = "") -> None:
        super().__init__(detail)
        self.code: Final = code
        self.detail: Final = detail
        self.column: Final = column


def parse_price(text: str) -> Decimal:
    """A price as text: a plain positive number of at most nine decimals is kept, more are rounded."""
    try:
        price = Decimal(text.strip())
    except InvalidOperation:
        raise RowError("PRICE_INVALID", "the price is not a number") from None
    if not price.is_finite() or price < 0 or price > _LARGEST_PRICE:
        raise RowError("PRICE_INVALID", "the price is not a plain amount of money")
    price = Decimal(format_price(price))
    if price == 0:
        raise RowError("PRICE_ZERO", "a price of 0 is an unknown price")
    return price


def parse_count(text: str) -> int:
    """A count of accelerators as text such as 8 or 8.0; 0 where there is none."""
    if not text.strip():
        return 0
    try:
        count = Decimal(text.strip())
    except InvalidOperation:
        raise RowError("COUNT_INVALID", "the count of accelerators is not a number") from None
    if not count.is_finite() or count < 0 or count > _LARGEST_COUNT:
        raise RowError("COUNT_INVALID", "the count of accelerators is not a whole number")
    if count != int(count):
        raise RowError("FRACTION_OF_DEVICE", "a share of an accelerator is not a device")
    return int(count)


def parse_text(value: object) -> str | None:
    """Text as a row may keep it; None for what is empty."""
    text = str(value or "").strip()
    if not text:
        return None
    if not _TEXT.fullmatch(text):
        raise RowError("TEXT_INVALID", "a name is longer than 500 characters or holds what cannot be printed")
    return text


def read_table(
    content: str, columns: Sequence[str], read: Callable[[str, Mapping[str, str]], _Row]
) -> tuple[list[_Row], list[RefusedOffer], int]:
    """Reads the rows of a CSV with ``read``; returns them, the refused rows, and the number of rows.

    Raises PlanningError for content that is not a CSV or lacks one of ``columns``, which may come in any
    order.
    """
    rows: list[_Row] = []
    refused: list[RefusedOffer] = []
    total = 0
    for line, header, cells in _read_lines(content, columns):
        total += 1
        try:
            rows.append(read(f"/{line}", _match_cells(header, cells)))
        except RowError as error:
            pointer = f"/{line}/{error.column}" if error.column else f"/{line}"
            refused.append(RefusedOffer(pointer, error.code, error.detail))
    return rows, refused, total


def _read_lines(content: str, columns: Sequence[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    reader = csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline=""))
    try:
        header = next(reader, [])
        missing = [name for name in columns if name not in header]
        if missing:
            raise PlanningError("FORMAT", "/content", f"the table has no column {missing[0]}")
        for cells in reader:
            if cells:
                yield reader.line_num, header, cells
    except csv.Error as error:
        raise PlanningError("FORMAT", "/content", f"line {reader.line_num} is no CSV") from error


def _match_cells(header: list[str], cells: list[str]) -> Mapping[str, str]:
    if len(cells) != len(header):
        raise RowError("WIDTH", "the row has more or fewer cells than the header")
    return dict(zip(header, cells, strict=True))


def parse_document(content: str) -> object:
    """A JSON document with exact numbers; raises PlanningError if it is none."""
    try:
        return _EXACT.decode(content.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise PlanningError("FORMAT", "/content", "the content is not JSON") from error


def collect_offers(offers: Iterable[ListedOffer], refused: Iterable[RefusedOffer], rows: int) -> ReadOffers:
    """Collects the offers of a list, each once and plausible beside the others; the rest is refused.

    A row that repeats another is dropped; one that contradicts it (same product, another price) is refused,
    and so is a spot price above that of the same instance on demand.
    """
    kept: dict[str, ListedOffer] = {}
    refusals = list(refused)
    for offer in offers:
        first = kept.setdefault(offer.id, offer)
        if first is not offer and first._replace(pointer=offer.pointer) != offer:
            detail = f"the same offer has other terms at {first.pointer}"
            refusals.append(RefusedOffer(offer.pointer, "CONTRADICTS_ANOTHER_ROW", detail))
    plausible = _drop_expensive_spot(kept, refusals)
    return ReadOffers(tuple(plausible), tuple(sorted(refusals, key=_build_sort_key)), rows)


def _build_sort_key(refused: RefusedOffer) -> tuple[int, str]:
    line = refused.pointer.removeprefix("/").partition("/")[0]
    return (int(line) if line.isdigit() else 0), refused.pointer


def _drop_expensive_spot(
    kept: Mapping[str, ListedOffer], refusals: list[RefusedOffer]
) -> Iterator[ListedOffer]:
    on_demand: dict[tuple[object, ...], Decimal] = {}
    for offer in kept.values():
        if offer.purchase_option == "on_demand":
            on_demand.setdefault(_build_product_key(offer, offer.zone or offer.region), offer.hourly_price)
    for offer in kept.values():
        places = dict.fromkeys((offer.zone or offer.region, offer.region))
        listed = [
            on_demand[_build_product_key(offer, place)]
            for place in places
            if _build_product_key(offer, place) in on_demand
        ]
        if offer.purchase_option == "spot" and listed and offer.hourly_price > listed[0]:
            detail = "spot costs more than the same instance on demand: one of the two prices is wrong"
            refusals.append(RefusedOffer(offer.pointer, "SPOT_ABOVE_ON_DEMAND", detail))
        else:
            yield offer


def _build_product_key(offer: ListedOffer, place: str | None) -> tuple[object, ...]:
    what = (offer.provider, offer.instance_type, offer.accelerator_id, offer.accelerator_count)
    return *what, place, offer.currency_code
