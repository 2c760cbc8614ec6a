"""Worked electricity bills: every row of a folder computed and compared with its expected figure."""

import csv
import json
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from accuracy.bill_cases import (
    BillCase,
    ChargeFilter,
    RowCells,
    as_billed,
    charges_of,
    counts_later,
    later,
    only,
)
from accuracy.bill_figures import (
    check_unit,
    figure,
    hours_of_use,
    is_component,
    needed_by,
    needs_coincident,
)
from accuracy.bill_loads import YEARS, BillError, clock_of, load_of, local_time
from accuracy.bill_months import billed_months, within
from accuracy.lines import RowsError
from accuracy.report import TextTable
from service.formats.urdb import UrdbImport, tariff_from_urdb
from service.planning.errors import PlanningError
from service.planning.tariff.bill import PeriodBill

COLUMNS = (
    "bill_id",
    "component",
    "expected",
    "currency",
    "abs_tolerance",
    "role",
    "tariff_file",
    "load_json",
    "period_start",
    "period_end",
    "calendar_year",
    "time_zone",
    "excluded_keys",
)
ROLES = frozenset({"exact", "sanity"})
RELATIVE_SLACK = 1e-9
_YEAR_DIGITS = 4


class CheckedBill(NamedTuple):
    """A row with its computed figure. ``passed`` is None if it is not judged or not computed."""

    bill_id: str
    role: str
    component: str
    expected: float | None
    computed: float | None
    passed: bool | None
    skipped: str | None
    """Reason why it was not computed."""


class ImportedTariffFile(NamedTuple):
    """A tariff file of the folder, with its parsed rate or the reason why it has none."""

    stem: str
    found: UrdbImport | None
    problem: str | None


def check_folder(folder: Path) -> list[CheckedBill]:
    """Returns every row of ``bills.csv`` with its figure. Raises :class:`RowsError` if there are no rows."""
    biller = BillComputer(folder)
    return [biller.check(row) for row in _rows(folder / "bills.csv")]


def import_folder(folder: Path) -> list[ImportedTariffFile]:
    """Returns every tariff file of the folder, including those without a bill."""
    return [_imported(path) for path in sorted(folder.glob("*.json"))]


def passes(computed: float, expected: float, tolerance: float) -> bool:
    """Returns true if the figure is within the row's tolerance and one part in 1e9 (rule 1 of the layout)."""
    return abs(computed - expected) <= tolerance + RELATIVE_SLACK * max(1.0, abs(expected))


def all_exact_pass(checked: Sequence[CheckedBill]) -> bool:
    """Returns true if each exact row was computed and agrees."""
    return all(one.passed is True for one in checked if one.role != "sanity")


def document(checked: Sequence[CheckedBill]) -> list[dict[str, object]]:
    """Returns the rows as JSON, with null for values that do not apply."""
    return [{name: value for name, value in one._asdict().items() if name != "component"} for one in checked]


def tables(checked: Sequence[CheckedBill]) -> list[TextTable]:
    """Returns the numbers of passed rows by role and component, then each failed row and each sanity row."""
    counts = []
    for role, component in sorted({(one.role, one.component) for one in checked}):
        own = [one for one in checked if (one.role, one.component) == (role, component)]
        passed, failed, skipped = (sum(map(test, own)) for test in (_has_passed, _has_failed, _is_skipped))
        counts.append([f"{role} {component}", str(len(own)), str(passed), str(failed), str(skipped)])
    shown = [one for one in checked if one.passed is not True]
    lines = [
        [one.bill_id, one.component, _shown(one.expected), _shown(one.computed), one.skipped or ""]
        for one in shown
    ]
    made = [TextTable("worked bills", ("rows", "number", "passed", "failed", "skipped"), counts)]
    if lines:
        head = ("row", "component", "expected", "computed", "skipped because")
        made.append(TextTable("rows that did not pass, and sanity rows, which are not judged", head, lines))
    return made


def _has_passed(one: CheckedBill) -> bool:
    return one.passed is True


def _has_failed(one: CheckedBill) -> bool:
    return one.passed is False


def _is_skipped(one: CheckedBill) -> bool:
    return one.skipped is not None


def _shown(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.10g}"


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="")
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RowsError(path, 1, "bill_id", f"the file cannot be read: {type(error).__name__}") from None
    if missing:
        raise RowsError(path, 1, missing[0], "is not there")
    if not rows:
        raise RowsError(path, 1, "bill_id", "the file has no rows")
    return rows


def _imported(path: Path) -> ImportedTariffFile:
    try:
        found = tariff_from_urdb(_rate(path), time_zone="Etc/UTC", only_listed=True)
    except BillError as error:
        return ImportedTariffFile(path.stem, None, str(error))
    except PlanningError as error:
        return ImportedTariffFile(path.stem, None, f"{error.pointer} {error.detail}")
    return ImportedTariffFile(path.stem, found, _refusals(found))


def _rate(path: Path) -> dict[str, object]:
    try:
        return _json_object(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise BillError("cannot be read as text") from None


def _json_object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BillError("is not a JSON object")
    return found


def _refusals(found: UrdbImport) -> str | None:
    if not found.refused:
        return None
    return "; ".join(f"{one.name} ({one.pointer}) {one.detail}" for one in found.refused)


class BillComputer:
    """Bills of one folder, each computed once for all rows that share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bills: dict[tuple[str, ...], tuple[PeriodBill, ...] | BillError] = {}

    def check(self, row: RowCells) -> CheckedBill:
        """Computes and compares one row."""
        bill_id, role, component = row["bill_id"], row["role"], row["component"]
        expected = None
        try:
            expected, tolerance = _number(row, "expected"), _number(row, "abs_tolerance")
            computed = self._computed(row)
        except BillError as error:
            return CheckedBill(bill_id, role, component, expected, None, None, str(error))
        except PlanningError as error:
            reason = f"{error.code}: {error.detail}"
            return CheckedBill(bill_id, role, component, expected, None, None, reason)
        passed = passes(computed, expected, tolerance) if role == "exact" else None
        return CheckedBill(bill_id, role, component, expected, computed, passed, None)

    def _computed(self, row: RowCells) -> float:
        component = row["component"]
        if row["role"] not in ROLES:
            raise BillError("role is neither exact nor sanity")
        if not is_component(component):
            raise BillError("component is not known")
        if not row["tariff_file"]:
            raise BillError("no tariff is known")
        case = self._case(row)
        check_unit(row, case.tariff)
        if component == "hours_of_use_h":
            return hours_of_use(case)
        months = self._months(case, needed_by(component, case.tariff), "main", years=0)
        late = needs_coincident(component) and any(map(counts_later, charges_of(case.tariff)))
        if late:
            months += self._months(case, counts_later, "late", years=1)
        if not months:
            raise BillError("the load has no month in the period")
        return figure(component, case, months)

    def _case(self, row: RowCells) -> BillCase:
        year = _year(row)
        clock = clock_of(row["time_zone"], year)
        found = self._tariff(row, clock)
        given = load_of(_json_object(row["load_json"]), self.folder, row["tariff_file"])
        if year not in {given.start.year, given.last_year}:
            raise BillError("the load is not of calendar_year")
        start = local_time(row["period_start"], "period_start")
        end = local_time(row["period_end"], "period_end")
        if end <= start:
            raise BillError("the period ends before it starts")
        return BillCase(row, found, as_billed(found.tariff), given, year, clock, start, end)

    def _tariff(self, row: RowCells, clock: str) -> UrdbImport:
        name = row["tariff_file"]
        path = self.folder / f"{name}.json"
        if Path(name).name != name or not path.is_file():
            raise BillError("its tariff file is not in the folder")
        excluded = tuple(key.strip() for key in row["excluded_keys"].split(";") if key.strip())
        found = tariff_from_urdb(_rate(path), time_zone=clock, excluded_keys=excluded, only_listed=True)
        refusals = _refusals(found)
        if refusals:
            raise BillError(f"the tariff is refused: {refusals}")
        return found

    def _months(self, case: BillCase, chosen: ChargeFilter, part: str, *, years: int) -> list[PeriodBill]:
        """Returns bills of the months that the row's period touches, ``years`` after their consumption."""
        return [
            one
            for one in self._billed(case, chosen, part)
            if later(one.period.start, years) < case.last_day
            and later(one.period.end, years) > case.start.date()
        ]

    def _billed(self, case: BillCase, chosen: ChargeFilter, part: str) -> tuple[PeriodBill, ...]:
        tariff = only(case.tariff, chosen)
        given = within(case, tariff)
        columns = ("tariff_file", "load_json", "time_zone", "calendar_year", "excluded_keys")
        names = ",".join(charge.name for charge in charges_of(tariff))
        span = (given.start.isoformat(), given.end.isoformat())
        key = (part, names, *span, *(case.row[column] for column in columns))
        if key not in self._bills:
            self._bills[key] = billed_months(case, tariff, given)
        found = self._bills[key]
        if isinstance(found, BillError):
            raise found
        return found


def _number(row: RowCells, column: str) -> float:
    try:
        number = Decimal(row[column])
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise BillError(f"{column} is not a number")
    return float(number)


def _year(row: RowCells) -> int:
    text = row["calendar_year"].strip()
    if not text.isdecimal() or len(text) > _YEAR_DIGITS or int(text) not in YEARS:
        raise BillError("calendar_year is not a year")
    return int(text)
