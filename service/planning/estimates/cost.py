"""Cost of a run: rent, its share of owned devices or their purchase, storage and egress."""

from typing import NamedTuple

from service.planning.cost.charges import CurrencyCharges, sum_charges
from service.planning.cost.currencies import TotalCurrency
from service.planning.cost.terms import CostTerms, OwnershipTerms, PurchaseTerms
from service.planning.estimates.break_even import (
    BreakEven,
    estimate_break_even,
    estimate_break_even_runs,
    find_incomparable,
)
from service.planning.estimates.ownership import OwnershipCost, charge_purchase, estimate_ownership
from service.planning.estimates.rent import Rent, estimate_rent
from service.planning.estimates.runs import Run
from service.planning.estimates.storage import charge_egress, charge_storage
from service.planning.quantity import Quantity


class RunCost(NamedTuple):
    """Cost of a run. ``total`` is None where a part of it is not known, which is a gap.

    The total is the rent, else the run's share of owned devices, else their purchase; plus storage and
    egress.
    """

    rent: Rent | None = None
    purchase: CurrencyCharges | None = None
    ownership: OwnershipCost | None = None
    break_even_runs: Quantity | None = None
    """Runs whose rent equals the purchase: purchase over rent."""
    break_even: tuple[BreakEven, ...] = ()
    total: CurrencyCharges | None = None


def estimate_run_cost(run: Run, terms: CostTerms) -> RunCost:
    """Estimates the cost of a run on the given terms.

    Refuses a case that does not give the duration of the run.
    """
    found, currencies = RunCost(), terms.currencies
    if terms.rental is not None:
        found = found._replace(rent=estimate_rent(run, terms.rental, currencies))
    if terms.purchase is not None:
        found = _add_purchase(found, run, terms.purchase, currencies)
    if terms.rental is not None and terms.purchase is not None:
        found = _add_break_even(found, run, terms.purchase.ownership)
    kept: list[CurrencyCharges | None] = []
    if terms.storage is not None:
        kept.append(charge_storage(run, terms.storage, currencies))
    if terms.egress is not None:
        kept.append(charge_egress(run, terms.egress, currencies))
    return found._replace(total=_sum_total(run, terms, _choose_devices(found, run, terms), kept))


def _add_purchase(found: RunCost, run: Run, terms: PurchaseTerms, currencies: TotalCurrency) -> RunCost:
    bought = charge_purchase(terms, currencies, run.notes)
    if bought is None or terms.ownership is None:
        return found._replace(purchase=bought)
    owned = estimate_ownership(run, terms.ownership, bought, currencies)
    return found._replace(purchase=bought, ownership=owned)


def _add_break_even(found: RunCost, run: Run, terms: OwnershipTerms | None) -> RunCost:
    """Adds the number of runs after which the purchase has paid itself back."""
    rent, bought, duration = found.rent and found.rent.charges, found.purchase, run.duration_seconds
    refusal = find_incomparable(rent, bought)
    if refusal or not (rent and bought and duration):
        run.notes.add_gap(
            "/break_even_runs", *(refusal or ("PRICE_REQUIRED", "needs the rent and the purchase"))
        )
        return found
    return found._replace(
        break_even_runs=estimate_break_even_runs(rent, bought),
        break_even=estimate_break_even(duration, rent, bought, run.notes, terms=terms, owned=found.ownership),
    )


def _choose_devices(found: RunCost, run: Run, terms: CostTerms) -> CurrencyCharges | None:
    """Returns the cost of the devices: rent, else the run's share of owned ones, else their purchase."""
    if terms.rental is None:
        if terms.purchase is not None and terms.purchase.ownership is not None:
            return found.ownership and found.ownership.run
        return found.purchase
    if terms.purchase is not None:
        detail = "the total is the rent; break-even sets rent against purchase"
        run.notes.warn("PURCHASE_NOT_IN_TOTAL", "/purchase", detail)
    return found.rent and found.rent.charges


def _sum_total(
    run: Run, terms: CostTerms, devices: CurrencyCharges | None, kept: list[CurrencyCharges | None]
) -> CurrencyCharges | None:
    """Returns the total cost of the run; None where it is not known, which is a gap."""
    parts = [devices, *kept]
    reason = None
    if devices is None:
        reason = _explain_devices(run, terms)
    elif None not in kept and len({part.currency_code for part in parts if part}) > 1:
        reason = ("CURRENCY_MISMATCH", "the amounts are in different currencies: give currency_code")
    if reason:
        run.notes.add_gap("/total", *reason)
    elif None in kept:
        reason = ("TOTAL_UNKNOWN", "the total is not known")
    if reason:
        run.notes.add_gap("/cost_per_million_tokens", *reason)
        return None
    return sum_charges(parts)


def _explain_devices(run: Run, terms: CostTerms) -> tuple[str, str]:
    """Returns code and detail of the reason why the cost of the devices is not known."""
    if terms.rental is None and terms.purchase is None:
        return "PRICE_REQUIRED", "no rental or purchase price is given"
    for gap in run.notes.gaps:
        if gap["pointer"] in ("/rent/total", "/purchase/total", "/ownership/total"):
            return gap["code"], gap["detail"]
    return "RATE_UNKNOWN", "the duration is not known"
