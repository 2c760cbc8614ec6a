"""Cost and electricity of a run as rows of FOCUS."""

from collections.abc import Iterable

from pydantic import MISSING

from service.estimates.cost import AnsweredCost, answer_cost
from service.estimates.utility_bill import estimate_bill
from service.formats.focus_charges import find_period, list_cost_charges, list_electricity_charges
from service.kit.http.csv_tables import render_csv
from service.planning import METHOD_VERSION
from service.planning.cost.focus import COLUMNS, BillingAccount, FocusCharge, build_focus_rows
from service.planning.errors import PlanningError
from service.planning.estimates.bill import RunBill
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView
from service.schemas.answer import compute_input_digest
from service.schemas.estimates import (
    CostEstimateRequest,
    CostExportRequest,
    UtilityBillExportRequest,
    UtilityBillRequest,
)

_ELECTRICITY = "/electricity/total"


def export_cost(question: CostExportRequest, catalog: CatalogView, tenant_id: str) -> str:
    """Writes the lines of an estimate of cost as FOCUS rows; refuses one whose total is not known."""
    return _render_rows(question, build_cost_charges(question, answer_cost(question, catalog)), tenant_id)


def export_utility_bill(question: UtilityBillExportRequest, catalog: CatalogView, tenant_id: str) -> str:
    """Writes the lines of the electricity bill as FOCUS rows; refuses one whose total is not known."""
    return _render_rows(question, build_bill_charges(question, estimate_bill(question, catalog)), tenant_id)


def build_cost_charges(question: CostEstimateRequest, found: AnsweredCost) -> list[FocusCharge]:
    """Returns the charges of a run's cost; refuses a run without a start or without a total."""
    starts_at = None if question.starts_at is MISSING else question.starts_at
    period = find_period(starts_at, found.run.duration_seconds)
    if found.cost.total is None:
        raise _build_unknown_total(found.run.notes, "/total", "")
    return list(list_cost_charges(found.cost.rent, found.cost.total, period))


def build_bill_charges(question: UtilityBillRequest, bill: RunBill) -> list[FocusCharge]:
    """Returns the charges of a run's electricity; refuses a run without a start or without a total."""
    charged, metered = bill.electricity
    if charged is None:
        raise _build_unknown_total(bill.run.notes, _ELECTRICITY, "/site")
    starts_at = None if question.starts_at is MISSING else question.starts_at
    return list(list_electricity_charges(charged, metered, starts_at, bill.run.duration_seconds))


def _build_unknown_total(notes: AnswerNotes, gap_at: str, pointer: str) -> PlanningError:
    gap = next(gap for gap in notes.gaps if gap["pointer"] == gap_at)
    return PlanningError(gap["code"], pointer, f"the total is not known: {gap['detail']}")


def _render_rows(
    question: CostExportRequest | UtilityBillExportRequest, charges: Iterable[FocusCharge], tenant_id: str
) -> str:
    account_id = tenant_id if question.billing_account_id is MISSING else question.billing_account_id
    name = account_id if question.billing_account_name is MISSING else question.billing_account_name
    digest = compute_input_digest(question)
    tags = {"estimate": "true", "input_digest": digest, "method_version": METHOD_VERSION}
    return render_csv(COLUMNS, build_focus_rows(charges, BillingAccount(account_id, name, tags)))
