"""Checks of a plan before its search. Each refusal names the member of the question."""

from decimal import Decimal
from typing import Any

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.estimates import TrainingRun
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Sharding
from service.plans.assumptions import check_assumptions
from service.plans.pricing import CandidatePricer, RequiredFigures, relocate_errors
from service.plans.ranking import list_supplies
from service.plans.requests import RequestConfiguration, get_currency
from service.plans.runs import NEVER_ENDS, RunCache, run_configuration
from service.plans.space import DeviceSupply, KeptConfiguration, SearchSpace
from service.resolve.rental import resolve_rental
from service.resolve.training import resolve_total_tokens
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest
from service.schemas.references import ParallelismInput
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput

_WORK_TOLERANCE = 1e-3
"""Relative tolerance of the work: a run of whole steps equals one of tokens only up to the next step."""
_LEFT_TO_THE_SEARCH = (
    "/model",
    "/cluster",
    "/parallelism",
    "/efficiency",
    "/workload/precision",
    "/workload/micro_batch_size",
    "/workload/global_batch_size",
    "/workload/gradient_accumulation_steps",
    "/workload/optimizer_in_backward",
    "/workload/weight_",
    "/workload/kv_cache_precision",
)
"""Members of an estimate that a search varies or checks itself."""
_PLAIN_LAYOUT = ParallelismInput(sharding=Sharding.NONE)
"""Layout of a run that is priced for its terms alone: choosing the best would take as long as a search."""


def check_space(space: SearchSpace) -> None:
    """Refuses a question that no search can answer.

    Raises:
        PlanningError: names the field.
    """
    check_assumptions(space)
    wanted, workload = RequiredFigures(space.question), space.question.workload
    if not wanted.has_end and (wanted.cost or wanted.emissions or space.question.goal == "pareto"):
        detail = "cost and emissions of a service need a horizon"
        raise PlanningError("HORIZON_REQUIRED", "/workload/horizon", detail)
    if isinstance(workload, InferenceWorkloadInput):
        _check_service_limits(space)
    runs = RunCache()
    for place in range(len(space.question.given)):
        _check_given(space, place, runs)
    _check_currency(space)
    _check_prices(space)


def _check_currency(space: SearchSpace) -> None:
    """Refuses a currency without an exchange rate for the budget or for any price of the supplies."""
    currency, rates, pricer = (
        get_currency(space.question),
        space.catalog.exchange_rates,
        CandidatePricer(space),
    )
    known = set()
    if pricer.budget is not None and pricer.budget <= 0:
        raise PlanningError("BUDGET_ZERO", "/constraints/budget/amount", "a budget must be above zero")
    for supply in space.supplies:
        if supply.rental is None:
            return
        with relocate_errors(supply):
            terms = resolve_rental(supply.rental, supply.accelerator_id, space.catalog, AnswerNotes())
        known.add(terms.price.currency_code)
    if not any(rates.convert(Decimal(1), code, currency, pricer.day) for code in known):
        detail = f"no exchange rate from {' or '.join(sorted(known))} to {currency} is known"
        raise PlanningError("CURRENCY_MISMATCH", "/currency_code", detail)


def _check_service_limits(space: SearchSpace) -> None:
    for name in ("duration_seconds", "finish_by"):
        if getattr(space.question.constraints, name) is not MISSING:
            detail = "a service runs for its horizon: deadlines apply to training only"
            raise PlanningError("NOT_APPLICABLE", f"/constraints/{name}", detail)


def _check_given(space: SearchSpace, place: int, runs: RunCache) -> None:
    """Checks that a given configuration does the work of the question on devices of a supply."""
    given, pointer = space.question.given[place], f"/given/{place}"
    if given.workload.kind != space.question.workload.kind:
        detail = f"the workload of the plan is {space.question.workload.kind}"
        raise PlanningError("WORK_DIFFERS", f"{pointer}/workload/kind", detail)
    kept = KeptConfiguration(len(space.clusters) + place, {}, {}, seconds=0.0)
    try:
        run = runs.get_run(space, kept, list_supplies(space, place)[0].accelerator_id).run
    except PlanningError as error:
        at = error.pointer if error.pointer.startswith(("/model", pointer)) else pointer + error.pointer
        raise PlanningError(error.code, at, error.detail) from error
    asked, work = space.question.workload, given.workload
    if (
        isinstance(run, TrainingRun)
        and isinstance(asked, TrainingWorkloadInput)
        and isinstance(work, TrainingWorkloadInput)
    ):
        _check_work(asked, work, run.case.step_sequences, f"{pointer}/workload/total_tokens")


def _check_work(
    asked: TrainingWorkloadInput, given: TrainingWorkloadInput, global_batch_size: int, pointer: str
) -> None:
    """Checks that the number of tokens equals that of the question, up to the next step."""
    total = resolve_total_tokens(given, global_batch_size)
    batch = None if asked.global_batch_size is MISSING else asked.global_batch_size
    wanted = resolve_total_tokens(asked, batch)
    if total is None:
        raise PlanningError("TOTAL_REQUIRED", pointer, "give the same total as the plan")
    if wanted is not None and abs(total / wanted - 1.0) > _WORK_TOLERANCE:
        raise PlanningError("WORK_DIFFERS", pointer, f"the plan has {wanted:.6g} tokens")


def _check_prices(space: SearchSpace) -> None:
    """Estimates one configuration on each supply of the question to check terms, purchase and site."""
    pricer, buildings = CandidatePricer(space), set[str]()
    for supply in space.supplies:
        if supply.kind == "offer" and (supply.site is None or supply.site_pointer in buildings):
            continue
        buildings.add(supply.site_pointer)
        _check_supply(pricer, supply)


def _check_supply(pricer: CandidatePricer, supply: DeviceSupply) -> None:
    # Terms that are refused are so on every layout, but a plain one may not suit the question.
    refusal = _find_refusal(pricer, supply, _PLAIN_LAYOUT) and _find_refusal(pricer, supply, MISSING)
    # The search reports errors of the members that it varies.
    if refusal and refusal.code != NEVER_ENDS and not refusal.pointer.startswith(_LEFT_TO_THE_SEARCH):
        raise refusal


def _find_refusal(
    pricer: CandidatePricer, supply: DeviceSupply, layout: ParallelismInput | MISSING
) -> PlanningError | None:
    """Returns the error of pricing a run on a supply; None if it can be priced."""
    question = pricer.space.question
    given: dict[str, Any] = {
        "model": question.model,
        "workload": question.workload,
        "cluster": pricer.space.clusters[supply.clusters[0]],
        "parallelism": layout,
    }
    configuration = RequestConfiguration(
        ThroughputEstimateRequest.model_construct(**given), MemoryEstimateRequest.model_construct(**given)
    )
    try:
        pricer.check_supply(run_configuration(configuration, pricer.space.catalog), supply)
    except PlanningError as error:
        return error
    return None
