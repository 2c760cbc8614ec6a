"""Bills in the columns of FOCUS, the FinOps Open Cost and Usage Specification, versions 1.0 to 1.3.

One table of comma-separated values (RFC 4180) with a line of column names. Only the columns that are needed
to compare a bill with an estimate are read, and each is checked in every row: a bill with an invalid row is
refused. Source: https://focus.finops.org/focus-specification/.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

_REQUIRED: Final = (
    *("BilledCost", "EffectiveCost", "BillingCurrency", "BillingAccountId", "ChargeCategory"),
    *("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd", "ServiceCategory"),
)
_OPTIONAL: Final = ("AllocatedTags", "ChargeFrequency", "CommitmentDiscountId", "SubAccountId", "Tags")
CATEGORIES: Final = frozenset({"Adjustment", "Credit", "Purchase", "Tax", "Usage"})
PURCHASE: Final = "Purchase"
ONE_TIME: Final = "One-Time"
USAGE_BASED: Final = "Usage-Based"
_ABSENT: Final = frozenset({"", "NULL", "null"})
"""Cells that mean an absent value; exports of databases write it as a word."""
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,11})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")
_TIME: Final = re.compile(
    r"20[0-9]{2}-[01][0-9]-[0-3][0-9]"
    r"([T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?(Z| UTC|[+-](0[0-9]|1[0-4]):[0-5][0-9])?)?"
)
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]{1,500}")
_SIGNS: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_CONTROLS: Final = ("\t", "\r", "\n")
"""Leading characters before which exports put an apostrophe, so that no spreadsheet evaluates the cell."""
_LARGEST: Final = Decimal(10) ** 12
LONGEST: Final = timedelta(days=3660)
_FAULTS_TOLD: Final = 20


class BilledRow(NamedTuple):
    """One row of a bill: an amount of a currency for a period, which ends before ``charge_end``."""

    line: int
    billing_start: datetime
    billing_end: datetime
    charge_start: datetime
    charge_end: datetime
    category: str
    frequency: str | None
    service_category: str | None
    billing_account: str
    sub_account: str | None
    commitment_id: str | None
    currency_code: str
    billed: Decimal
    effective: Decimal
    tags: Mapping[str, str]


class LineFault(NamedTuple):
    """The fault of a line; the line of column names is 1."""

    line: int
    column: str
    code: str
    detail: str


class ReadBill(NamedTuple):
    """The rows of a bill, and the first of its faults; a bill with faults is refused."""

    rows: Sequence[BilledRow]
    faults: Sequence[LineFault]
    has_tags: bool = False


class _FieldError(Exception):
    def __init__(self, column: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.column, self.code, self.detail = column, code, detail


def read_focus(text: str) -> ReadBill:
    """Reads the rows of a bill; costs in units of its currency, exactly as written, times in UTC.

    A time without a zone is in UTC, as the specification says; others are converted. Costs are never absent.
    Tags are a JSON object; an apostrophe that an export put before a text for spreadsheets is removed.
    """
    try:
        lines = list(_read_lines(text))
    except csv.Error:
        return ReadBill(
            [], [LineFault(1, "", "TABLE", "the content is not a table of comma-separated values")]
        )
    columns = [name.strip() for name in lines[0][1]] if lines else []
    faults = list(_check_columns(columns))
    rows = [] if faults else list(_read_rows(columns, lines[1:], faults))
    if not faults and not rows:
        faults.append(LineFault(1, "", "NO_ROWS", "the bill has no rows"))
    return ReadBill(
        [] if faults else rows, faults, has_tags=not {"Tags", "AllocatedTags"}.isdisjoint(columns)
    )


def _read_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of each non-empty line with its number; a cell may contain line breaks."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    line = 1
    for cells in reader:
        if cells:
            yield line, cells
        line = reader.line_num + 1


def _check_columns(columns: Sequence[str]) -> Iterator[LineFault]:
    for name in _REQUIRED:
        if name not in columns:
            yield LineFault(1, name, "COLUMN_MISSING", "the bill has no such column")
    for name in (*_REQUIRED, *_OPTIONAL):
        if columns.count(name) > 1:
            yield LineFault(1, name, "COLUMN_TWICE", "the bill has this column twice")


def _read_rows(
    columns: Sequence[str], lines: Sequence[tuple[int, list[str]]], faults: list[LineFault]
) -> Iterator[BilledRow]:
    """Yields the valid rows; faults of the others are added to ``faults``."""
    for line, cells in lines:
        try:
            yield _read_row(line, columns, cells)
        except _FieldError as wrong:
            faults.append(LineFault(line, wrong.column, wrong.code, wrong.detail))
            if len(faults) == _FAULTS_TOLD:
                return


def _read_row(line: int, columns: Sequence[str], cells: Sequence[str]) -> BilledRow:
    if len(cells) != len(columns):
        raise _FieldError("", "CELLS", "the line has more or fewer cells than columns")
    row = {name: None if cell in _ABSENT else cell for name, cell in zip(columns, cells, strict=True)}
    category = _read_required(row, "ChargeCategory")
    if category not in CATEGORIES:
        raise _FieldError("ChargeCategory", "CATEGORY", f"it is one of {', '.join(sorted(CATEGORIES))}")
    currency_code = _read_required(row, "BillingCurrency")
    if not _CURRENCY.fullmatch(currency_code):
        raise _FieldError("BillingCurrency", "CURRENCY", "it is a code of ISO 4217, such as USD")
    billing_start, billing_end = _read_period(row, "BillingPeriod")
    charge_start, charge_end = _read_period(row, "ChargePeriod")
    return BilledRow(
        line=line,
        billing_start=billing_start,
        billing_end=billing_end,
        charge_start=charge_start,
        charge_end=charge_end,
        category=category,
        frequency=_read_text(row, "ChargeFrequency"),
        service_category=_read_text(row, "ServiceCategory"),
        billing_account=_read_required(row, "BillingAccountId"),
        sub_account=_read_text(row, "SubAccountId"),
        commitment_id=_read_text(row, "CommitmentDiscountId"),
        currency_code=currency_code,
        billed=_read_cost(row, "BilledCost"),
        effective=_read_cost(row, "EffectiveCost"),
        # For a charge that a provider has split (1.3), the tags of its part precede those of the whole.
        tags=_read_tags(row, "Tags") | _read_tags(row, "AllocatedTags"),
    )


_Cells = Mapping[str, str | None]


def _read_text(row: _Cells, column: str) -> str | None:
    cell = row.get(column)
    if cell is not None and not _TEXT.fullmatch(cell):
        raise _FieldError(column, "TEXT", "it is too long or contains control characters")
    return None if cell is None else strip_apostrophe(cell)


def strip_apostrophe(text: str) -> str:
    """Removes the apostrophe by which an export keeps spreadsheets from evaluating a text."""
    rest = text.removeprefix("'")
    is_computed = rest.startswith(_CONTROLS) or rest.lstrip().startswith(_SIGNS)
    return rest if is_computed else text


def _read_required(row: _Cells, column: str) -> str:
    text = _read_text(row, column)
    if text is None:
        raise _FieldError(column, "ABSENT", "it is needed in every row")
    return text


def _read_cost(row: _Cells, column: str) -> Decimal:
    cell = row[column]
    if cell is None:
        raise _FieldError(column, "ABSENT", "a cost is needed in every row, 0 where there is none")
    if not _NUMBER.fullmatch(cell):
        raise _FieldError(column, "NUMBER", "it is not a decimal number")
    cost = Decimal(cell)
    if abs(cost) >= _LARGEST:
        raise _FieldError(column, "NUMBER", "it is a million millions or more")
    return cost


def _read_period(row: _Cells, name: str) -> tuple[datetime, datetime]:
    start, end = _read_time(row, f"{name}Start"), _read_time(row, f"{name}End")
    if not start <= end <= start + LONGEST:
        raise _FieldError(f"{name}End", "PERIOD", "it is before the start, or more than ten years after it")
    return start, end


def _read_time(row: _Cells, column: str) -> datetime:
    cell = _read_required(row, column)
    if not _TIME.fullmatch(cell):
        raise _FieldError(column, "TIME", "it must be a time in ISO 8601, such as 2026-11-01T00:00:00Z")
    try:
        time = datetime.fromisoformat(cell.replace(" UTC", "Z"))
    except ValueError:
        raise _FieldError(column, "TIME", "there is no such time") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _read_tags(row: _Cells, column: str) -> dict[str, str]:
    cell = row.get(column)
    if cell is None:
        return {}
    try:
        tags = json.loads(cell)
    except (ValueError, RecursionError):
        tags = None
    if not isinstance(tags, dict):
        raise _FieldError(column, "TAGS", "tags must be a JSON object")
    return {name: _format_tag(value) for name, value in tags.items()}


def _format_tag(value: object) -> str:
    """Returns the value of a tag as text; a tag without a value has the value true."""
    return value if isinstance(value, str) else json.dumps(value)
