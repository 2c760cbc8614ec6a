"""The electricity of a run as FOCUS rows."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time

from service.estimates.focus import (
    ESTIMATE,
    ChargePeriod,
    PriceOrigin,
    build_account,
    find_period,
    to_charges,
)
from service.estimates.utility_bill import estimate_utility_bill
from service.kit.http.csv_tables import render_csv
from service.planning.cost.focus import COLUMNS, FocusCharge, ServiceCategory, build_focus_rows
from service.planning.errors import PlanningError
from service.planning.quantity import Quantity
from service.resolve.catalog import CatalogView
from service.schemas.bill_answers import ElectricityBillLine, UtilityBill
from service.schemas.estimates import UtilityBillExportRequest, UtilityBillRequest

_ELECTRICITY = ServiceCategory("Other", "Other (Other)", "Electricity")


def export_utility_bill(question: UtilityBillExportRequest, catalog: CatalogView, tenant_id: str) -> str:
    """The lines of the electricity bill as FOCUS rows; refuses one whose total is not known."""
    answer = estimate_utility_bill(question, catalog)
    charges = list_bill_charges(question, answer)
    account = build_account(question, answer["evidence"]["input_digest"], tenant_id)
    return render_csv(COLUMNS, build_focus_rows(charges, account))


def list_bill_charges(question: UtilityBillRequest, answer: UtilityBill) -> list[FocusCharge]:
    """The charges of the electricity of a run; refuses one without a start or without a total."""
    if "total" not in answer["electricity"]:
        gap = next(gap for gap in answer["gaps"] if gap["pointer"] == "/electricity/total")
        raise PlanningError(gap["code"], "/site", f"the total is not known: {gap['detail']}")
    return list(_list_charges(question, answer))


def _list_charges(question: UtilityBillRequest, answer: UtilityBill) -> Iterator[FocusCharge]:
    duration = Quantity(**answer["duration_seconds"]) if "duration_seconds" in answer else None
    for line in answer["electricity"]["lines"]:
        period = _find_billing_period(line) or find_period(question.starts_at, duration)
        for charge in to_charges([line], period, PriceOrigin(ESTIMATE)):
            yield charge._replace(service=_ELECTRICITY)


def _find_billing_period(line: ElectricityBillLine) -> ChargePeriod | None:
    """The billing period of a line: its local days, written as days of UTC so that a month stays one row."""
    if "billing_period" not in line:
        return None
    days = line["billing_period"]
    return ChargePeriod(
        *(
            datetime.combine(date.fromisoformat(day), time(), UTC)
            for day in (days["start_date"], days["end_date"])
        )
    )
