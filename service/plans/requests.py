"""The requests of a configuration on a supply: what estimates are asked to give its figures."""

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
    """What every request of a configuration says."""

    throughput: ThroughputEstimateRequest
    memory: MemoryEstimateRequest


def get_currency(question: PlanRequest) -> str:
    """Currency of the costs of a plan."""
    if question.currency_code is not MISSING:
        return question.currency_code
    budget = question.constraints.budget
    return "USD" if budget is MISSING else budget.currency_code


def build_configuration(
    space: SearchSpace, kept: KeptConfiguration, accelerator_id: str
) -> RequestConfiguration:
    """How a configuration is asked about."""
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
    """What asks for rent, ownership and storage; None where only electricity is paid."""
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
    """Devices that are there and cost nothing more: a cost is asked for by how the devices are had."""
    nothing = MoneyInput(amount="0", currency_code=currency_code)
    return Purchase(price_per_device=nothing, ownership=Ownership(years=1.0))


def build_bill_request(
    space: SearchSpace, configuration: RequestConfiguration, supply: DeviceSupply, starts_at: datetime | None
) -> UtilityBillRequest | None:
    """What asks for energy, electricity and emissions; None where the building is not known."""
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
    """Bodies of the four estimates that give the figures of a configuration on a supply."""
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
    """The workload of a configuration."""
    place = kept.cluster - len(space.clusters)
    if place >= 0:
        return space.question.given[place].workload
    return searched_workload(space.question.workload, kept)


def build_parallelism(space: SearchSpace, kept: KeptConfiguration) -> ParallelismInput:
    """The layout of a configuration."""
    place = kept.cluster - len(space.clusters)
    if place >= 0:
        return space.question.given[place].parallelism
    return ParallelismInput.model_validate_json(json.dumps(dict(kept.parallelism)))
