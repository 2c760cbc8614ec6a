"""Answer to a question of a tariff: its bill for a load."""

from service.estimates.electricity import to_electricity_lines, to_period_totals
from service.planning.cost.tariff_lines import sum_rounded_bill
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, exact
from service.planning.tariff.allocation import build_allocation
from service.resolve.catalog import CatalogView
from service.resolve.tariff_bill import bill_load, resolve_named_tariff
from service.schemas.answer import to_evidence, to_money_quantity, to_quantity
from service.schemas.tariff_bills import TariffBill, TariffBillRequest


def bill_tariff(question: TariffBillRequest, catalog: CatalogView) -> TariffBill:
    """Answers with every line of every billing period, rounded, and the findings of the bill."""
    notes = AnswerNotes()
    named = resolve_named_tariff(question, catalog, notes)
    billed = bill_load(question, named)
    for finding in billed.findings:
        notes.warn(finding.code, "/load", finding.detail)
    whole = build_allocation(billed)
    total = sum_rounded_bill(whole)
    return {
        "total": to_money_quantity(total, total, total, billed.currency_code, EvidenceBasis.EXACT),
        "energy_kwh": to_quantity(exact(sum(period.energy_kwh for period in billed.periods))),
        "peak_kw": to_quantity(exact(max(period.peak_kw for period in billed.periods))),
        "lines": to_electricity_lines(whole, named.source),
        "periods": [
            {
                **totals,
                "billing_demand": [
                    {"charge": charge, "kw": kw} for charge, kw in period.billing_demand_kw.items()
                ],
            }
            for totals, period in zip(to_period_totals(whole), billed.periods, strict=True)
        ],
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
