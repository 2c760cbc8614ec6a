"""Answer to a question of cost: rent, purchase or ownership, storage and egress."""

from operator import add
from typing import NamedTuple

from service.estimates.charges import to_lines, to_money, to_money_total
from service.estimates.list_prices import to_list_prices
from service.estimates.rates import plan_run
from service.planning.cost.charges import CurrencyCharges
from service.planning.estimates import Run
from service.planning.estimates.bill import note_unknown_duration
from service.planning.estimates.break_even import BreakEven
from service.planning.estimates.cost import RunCost, estimate_run_cost
from service.planning.estimates.device_hours import estimate_device_hours
from service.planning.estimates.ownership import OwnershipCost
from service.planning.estimates.rent import Rent
from service.planning.estimates.unit_costs import estimate_unit_costs
from service.planning.quantity import combine, scaled
from service.planning.units import HOUR_SECONDS
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.cost import resolve_cost_terms
from service.schemas.answer import to_evidence, to_parallelism, to_quantity
from service.schemas.cost_answers import BreakEven as BreakEvenAnswer
from service.schemas.cost_answers import CostEstimate, OwnershipCostBreakdown, RentCostBreakdown
from service.schemas.estimates import CostEstimateRequest


class AnsweredCost(NamedTuple):
    """A run, its cost and the answer of it."""

    run: Run
    cost: RunCost
    answer: CostEstimate


def estimate_cost(question: CostEstimateRequest, catalog: CatalogView) -> CostEstimate:
    """Answers a question of cost: rent, share of own devices or purchase, with storage and egress."""
    return answer_cost(question, catalog).answer


def answer_cost(question: CostEstimateRequest, catalog: CatalogView) -> AnsweredCost:
    """Returns the answer to a question of cost with the run and the cost behind it."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    return answer_cost_of_run(question, plan_run(question, catalog), catalog)


def estimate_cost_of_run(question: CostEstimateRequest, run: Run, catalog: CatalogView) -> RunCost:
    """Returns the cost of a run whose rates are known."""
    estimate_device_hours(run)
    return estimate_run_cost(run, resolve_cost_terms(question, run.case, catalog, run.notes))


def answer_cost_of_run(question: CostEstimateRequest, run: Run, catalog: CatalogView) -> AnsweredCost:
    """Returns the answer on the cost of a run whose rates are known."""
    notes, hours = run.notes, estimate_device_hours(run)
    answer: CostEstimate = {
        "lines": [],
        "parallelism": to_parallelism(run.case.layout, chosen=run.case.layout_chosen),
        "evidence": to_evidence(question, notes, catalog.revision),
        "defaults": notes.defaults,
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if run.duration_seconds and hours:
        answer["duration_seconds"] = to_quantity(run.duration_seconds)
        answer["device_hours"] = to_quantity(hours)
    else:
        note_unknown_duration(run)
    terms = resolve_cost_terms(question, run.case, catalog, notes)
    cost = estimate_run_cost(run, terms)
    _add_parts(answer, cost)
    if cost.rent is not None and cost.rent.spot is not None and hours is not None:
        # A run on devices that are taken back lasts longer, and holds them longer.
        extra = scaled(cost.rent.spot.extra, run.case.cluster.accelerator_count / HOUR_SECONDS)
        answer["duration_seconds"] = to_quantity(cost.rent.spot.lasting)
        answer["device_hours"] = to_quantity(combine(add, hours, extra))
    listed = to_list_prices(question, run, cost.total, terms.currencies, catalog)
    if listed:
        answer["list_prices"] = listed
    if cost.total is not None:
        _add_total(answer, run, cost.total)
    return AnsweredCost(run, cost, answer)


def _add_parts(answer: CostEstimate, cost: RunCost) -> None:
    if cost.rent is not None:
        answer["rent"] = _to_rent(cost.rent)
    if cost.purchase is not None:
        answer["purchase"] = to_money_total(cost.purchase)
    if cost.ownership is not None:
        answer["ownership"] = _to_ownership(cost.ownership)
    if cost.break_even_runs is not None:
        answer["break_even_runs"] = to_quantity(cost.break_even_runs)
        answer["break_even"] = [to_break_even(each) for each in cost.break_even]


def _add_total(answer: CostEstimate, run: Run, total: CurrencyCharges) -> None:
    """Adds the charges, and the cost of a request and of a million tokens."""
    answer["lines"], answer["total"] = to_lines(total), to_money(total.total)
    shares = estimate_unit_costs(run, total)
    if shares.request is not None:
        answer["cost_per_request"] = to_money(shares.request)
    if shares.million_input_tokens is not None:
        answer["cost_per_million_input_tokens"] = to_money(shares.million_input_tokens)
    if shares.million_output_tokens is not None:
        answer["cost_per_million_output_tokens"] = to_money(shares.million_output_tokens)
    if shares.million_tokens is not None:
        answer["cost_per_million_tokens"] = to_money(shares.million_tokens)


def _to_rent(rent: Rent) -> RentCostBreakdown:
    terms, charged = rent.terms, rent.charges
    answer: RentCostBreakdown = {
        "lines": to_lines(charged),
        "total": to_money(charged.total),
        "instances": rent.instances,
        "devices_per_instance": terms.devices_per_instance,
        "paid_device_hours": to_quantity(rent.paid),
    }
    if terms.option is not None:
        answer["purchase_option"] = terms.option
    if rent.due_at_start:
        amount = f"{rent.due_at_start:f}"
        answer["due_at_start"] = {"amount": amount, "currency_code": charged.currency_code}
    if rent.spot is not None:
        spot = rent.spot
        devices = float(rent.instances * terms.devices_per_instance)
        answer["interruptions"] = {
            "expected_interruptions": spot.interruptions,
            "extra_device_hours": to_quantity(scaled(spot.extra, devices / HOUR_SECONDS)),
            "duration_seconds": to_quantity(spot.lasting),
        }
        if spot.mtbf_seconds is not None:
            answer["interruptions"]["mean_time_between_interruptions_seconds"] = spot.mtbf_seconds
    return answer


def _to_ownership(owned: OwnershipCost) -> OwnershipCostBreakdown:
    answer: OwnershipCostBreakdown = {
        "lines": [],
        "yearly": to_money_total(owned.yearly),
        "price_per_device_hour": to_money(owned.yearly.per(owned.device_hours)),
        "device_hours_per_year": to_quantity(owned.device_hours),
    }
    if owned.run is not None:
        answer["lines"], answer["total"] = to_lines(owned.run), to_money(owned.run.total)
    return answer


def to_break_even(found: BreakEven) -> BreakEvenAnswer:
    """Maps the runs and months after which a purchase has paid itself back."""
    answer: BreakEvenAnswer = {"counts": list(found.counts), "utilization": found.utilization}
    if found.months is not None:
        answer["months"] = to_quantity(found.months)
    if found.runs is not None:
        answer["runs"] = to_quantity(found.runs)
    return answer
