"""Estimate requests of a configuration on a supply."""

import json
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import MISSING

from service.plans.assumptions import apply_assumptions, build_efficiency
from service.plans.search import build_workload as searched_workload
from service.plans.space import DeviceSupply, KeptConfiguration, SearchSpace
from service.schemas.base import MoneyInput
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)
from service.schemas.plan_answers import PlanEstimateRequests
from service.schemas.plans import PlanRequest
from service.schemas.purchase import Ownership, Purchase
from service.schemas.references import ParallelismInput
from service.schemas.workloads import WorkloadInput


class RequestConfiguration(NamedTuple):
    """Members that all requests of a configuration share."""

    throughput: ThroughputEstimateRequest
    memory: MemoryEstimateRequest


def get_currency(question: PlanRequest) -> str:
    """Returns the currency of the costs of a plan."""
    if question.currency_code is not MISSING:
        return question.currency_code
    budget = question.constraints.budget
    return "USD" if budget is MISSING else budget.currency_code


def build_configuration(
    space: SearchSpace, kept: KeptConfiguration, accelerator_id: str
) -> RequestConfiguration:
    """Returns the throughput and memory requests of a configuration."""
    said: dict[str, Any] = {
        "model": space.question.model,
        "workload": build_workload(space, kept),
        "cluster": space.get_cluster(kept),
        "parallelism": build_parallelism(space, kept),
    }
    efficiency = build_efficiency(space.question, accelerator_id)
    return RequestConfiguration(
        ThroughputEstimateRequest.model_construct(**said, efficiency=efficiency),
        MemoryEstimateRequest.model_construct(**said),
    )


def build_cost_request(
    space: SearchSpace, configuration: RequestConfiguration, supply: DeviceSupply, starts_at: datetime | None
) -> CostEstimateRequest | None:
    """Returns the request for rent, ownership and storage, or None if only electricity is paid."""
    question, supply = space.question, apply_assumptions(supply, space.question, space.catalog)
    said: dict[str, Any] = {"currency_code": get_currency(question)}
    for name in ("storage", "egress"):
        if getattr(question, name) is not MISSING:
            said[name] = getattr(question, name)
    if supply.rental is not None:
        said["rental"] = supply.rental
    elif supply.purchase is not None:
        said["purchase"] = supply.purchase
    elif len(said) > 1:
        said["purchase"] = _build_free_purchase(get_currency(question))
    else:
        return None
    if starts_at is not None:
        said["starts_at"] = starts_at
    return CostEstimateRequest.model_construct(**_list_run_members(configuration), **said)


def _build_free_purchase(currency_code: str) -> Purchase:
    """Returns a purchase at no cost, since a cost request needs either a rental or a purchase."""
    nothing = MoneyInput(amount="0", currency_code=currency_code)
    return Purchase(price_per_device=nothing, ownership=Ownership(years=1.0))


def build_bill_request(
    space: SearchSpace, configuration: RequestConfiguration, supply: DeviceSupply, starts_at: datetime | None
) -> UtilityBillRequest | None:
    """Returns the request for energy, electricity and emissions, or None if the site is unknown."""
    supply = apply_assumptions(supply, space.question, space.catalog)
    if supply.site is None:
        return None
    said: dict[str, Any] = {"site": supply.site, "currency_code": get_currency(space.question)}
    if starts_at is not None:
        said["starts_at"] = starts_at
    return UtilityBillRequest.model_construct(**_list_run_members(configuration), **said)


def _list_run_members(configuration: RequestConfiguration) -> dict[str, Any]:
    names = ("model", "workload", "cluster", "parallelism", "efficiency")
    return {name: getattr(configuration.throughput, name) for name in names}


def build_requests(
    space: SearchSpace, kept: KeptConfiguration, supply: DeviceSupply, starts_at: datetime | None = None
) -> PlanEstimateRequests:
    """Returns the four estimate requests that give the figures of a configuration on a supply."""
    configuration = build_configuration(space, kept, supply.accelerator_id)
    requests: PlanEstimateRequests = {"memory": configuration.memory, "throughput": configuration.throughput}
    cost = build_cost_request(space, configuration, supply, starts_at)
    if cost is not None:
        requests["cost"] = cost
    bill = build_bill_request(space, configuration, supply, starts_at)
    if bill is not None:
        requests["utility_bill"] = bill
    return requests


def build_workload(space: SearchSpace, kept: KeptConfiguration) -> WorkloadInput:
    """Returns the workload of a configuration."""
    place = kept.cluster - len(space.clusters)
    if place >= 0:
        return space.question.given[place].workload
    return searched_workload(space.question.workload, kept)


def build_parallelism(space: SearchSpace, kept: KeptConfiguration) -> ParallelismInput:
    """Returns the layout of a configuration."""
    place = kept.cluster - len(space.clusters)
    if place >= 0:
        return space.question.given[place].parallelism
    return ParallelismInput.model_validate_json(json.dumps(dict(kept.parallelism)))
