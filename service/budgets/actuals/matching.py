"""Owners of the rows of a bill, and sums of its charges by day."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any, Final, NamedTuple

from service.budgets.money import to_micros
from service.formats.focus import ONE_TIME, PURCHASE, BilledRow

QUOTE: Final = "quote_id"
CENTER: Final = "cost_center_id"
_QUOTE_ID: Final = re.compile(r"[0-9a-f]{32}")
_DIGITS: Final = 80
"""Precision of the sums. It exceeds the digits of a cost and the microseconds of ten years, so that parts add
up.
"""


MOST_DAYS: Final = 100_000
"""Largest number of days of all charges of a bill. Charges for the same owner and period count once."""


class TooManyDaysError(ValueError):
    """The charges of a bill cover more days than the limit."""


class ChargeOwner(NamedTuple):
    """Quote and cost centre of a row."""

    quote_id: str | None
    cost_center_id: str | None


class ChargeKey(NamedTuple):
    """Key by which charges are summed."""

    billing_starts_at: datetime
    day: str
    owner: ChargeOwner
    service_category: str | None
    currency_code: str


class ChargeAmounts(NamedTuple):
    """Sums in millionths of a currency."""

    billed: int
    effective: int


def get_own_tag(row: BilledRow, name: str) -> str | None:
    """Returns a tag of the service. Providers may add a prefix with a colon or a slash to its name."""
    found = (value for key, value in row.tags.items() if re.split(r"[:/]", key)[-1] == name)
    return row.tags.get(name) or next(found, None)


def drop_double_commitments(rows: Sequence[BilledRow]) -> tuple[list[BilledRow], int]:
    """Returns rows in which no commitment counts twice, and the number of changed rows.

    The effective cost of a purchase that covers other charges is 0, as the specification says. If a bill has
    another cost and also charges of the commitment, the charges count.
    """
    used = {row.commitment_id for row in rows if row.category != PURCHASE and row.effective != 0} - {None}
    twice = [row.category == PURCHASE and row.effective != 0 and row.commitment_id in used for row in rows]
    once = [
        row._replace(effective=Decimal(0)) if is_twice else row
        for row, is_twice in zip(rows, twice, strict=True)
    ]
    return once, sum(twice)


def list_quote_ids(rows: Iterable[BilledRow]) -> set[str]:
    """Returns the ids of quotes that rows name, even of quotes that do not exist."""
    named = {get_own_tag(row, QUOTE) for row in rows}
    return {name for name in named if name is not None and _QUOTE_ID.fullmatch(name)}


class ChargeOwners:
    """Resolver of the owners of rows. ``quotes`` maps existing quotes to their cost centres."""

    def __init__(self, centers: Sequence[Mapping[str, Any]], quotes: Mapping[str, str | None]) -> None:
        self._quotes = quotes
        self._centers = {center["id"] for center in centers}
        self._accounts = {name: center["id"] for center in centers for name in center["accounts"]}
        self._tags = {
            (tag["key"], tag["value"]): center["id"] for center in centers for tag in center["tags"]
        }

    def find_owner(self, row: BilledRow) -> ChargeOwner:
        """Returns the owner of one row."""
        quote_id = get_own_tag(row, QUOTE)
        if quote_id not in self._quotes:
            quote_id = None
        return ChargeOwner(quote_id, next(self._list_named_centers(row, quote_id), None))

    def _list_named_centers(self, row: BilledRow, quote_id: str | None) -> Iterator[str]:
        """Yields the existing cost centres that a row names. The first one counts."""
        names = [None if quote_id is None else self._quotes[quote_id], get_own_tag(row, CENTER)]
        yield from (name for name in names if name in self._centers and name is not None)
        yield from (self._tags[tag] for tag in row.tags.items() if tag in self._tags)
        accounts = (row.sub_account, row.billing_account)
        yield from (self._accounts[name] for name in accounts if name is not None and name in self._accounts)


def sum_by_day(rows: Iterable[tuple[BilledRow, ChargeOwner]]) -> dict[ChargeKey, ChargeAmounts]:
    """Returns the sums of rows on each day. Charges of several days are split by time.

    Sums are exact. The remainder below a millionth is carried to the next day, so that the sum of a bill's
    days is off by at most half a millionth.
    """
    with localcontext(prec=_DIGITS):
        exact: dict[ChargeKey, dict[str, list[Decimal]]] = {}
        for (key, start, end), (billed, effective) in _sum_by_period(rows).items():
            by_day = exact.setdefault(key, defaultdict(_build_zero_sums))
            for day, share in _split_by_day(start, end):
                by_day[day][0] += billed * share
                by_day[day][1] += effective * share
        return {
            key._replace(day=day): ChargeAmounts(*amounts)
            for key, by_day in exact.items()
            for day, amounts in _round_by_day(by_day)
        }


def _build_zero_sums() -> list[Decimal]:
    return [Decimal(0), Decimal(0)]


def _sum_by_period(
    rows: Iterable[tuple[BilledRow, ChargeOwner]],
) -> dict[tuple[ChargeKey, datetime, datetime], list[Decimal]]:
    """Returns sums of charges with equal keys and periods. Refuses too many days in total."""
    sums: dict[tuple[ChargeKey, datetime, datetime], list[Decimal]] = defaultdict(_build_zero_sums)
    for row, owner in rows:
        key = ChargeKey(row.billing_start, "", owner, row.service_category, row.currency_code)
        # One-time charges fall due at once, for any period.
        end = row.charge_start if row.frequency == ONE_TIME else row.charge_end
        amounts = sums[key, row.charge_start, end]
        amounts[0] += row.billed
        amounts[1] += row.effective
    if sum((end - start).days + 1 for _, start, end in sums) > MOST_DAYS:
        raise TooManyDaysError
    return sums


def _split_by_day(start: datetime, end: datetime) -> Iterator[tuple[str, Decimal]]:
    """Yields the days (UTC) of a period, each with its share of the period."""
    if (end - timedelta(microseconds=1)).date() <= start.date():
        yield start.date().isoformat(), Decimal(1)
        return
    tick = timedelta(microseconds=1)
    length, left = Decimal((end - start) // tick), Decimal(1)
    while start < end:
        midnight = datetime.combine(start.date() + timedelta(days=1), datetime.min.time(), UTC)
        share = left if midnight >= end else Decimal((midnight - start) // tick) / length
        yield start.date().isoformat(), share
        start, left = midnight, left - share


def _round_by_day(by_day: Mapping[str, Sequence[Decimal]]) -> Iterator[tuple[str, tuple[int, int]]]:
    exact, kept = [Decimal(0), Decimal(0)], [0, 0]
    for day in sorted(by_day):
        amounts = []
        for place, amount in enumerate(by_day[day]):
            exact[place] += amount
            amounts.append(to_micros(exact[place]) - kept[place])
            kept[place] += amounts[place]
        yield day, (amounts[0], amounts[1])
