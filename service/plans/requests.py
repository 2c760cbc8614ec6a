"""The requests of a configuration on a supply: what estimates are asked to give its figures."""

import json
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import MISSING

from service.plans.assumptions import efficiency_of, moved
from service.plans.search import workload_of as searched_workload
from service.plans.space import Kept, Space, Supply
from service.schemas.base import MoneyInput
from service.schemas.estimates import CostQuestion, MemoryQuestion, ThroughputQuestion, UtilityBillQuestion
from service.schemas.plan_answers import PlanRequests
from service.schemas.plans import PlanQuestion
from service.schemas.purchase import Ownership, Purchase
from service.schemas.references import ParallelismInput
from service.schemas.workloads import WorkloadInput


class Configuration(NamedTuple):
    """What every request of a configuration says."""

    throughput: ThroughputQuestion
    memory: MemoryQuestion


def currency_of(question: PlanQuestion) -> str:
    """Currency of the costs of a plan."""
    if question.currency_code is not MISSING:
        return question.currency_code
    budget = question.constraints.budget
    return "USD" if budget is MISSING else budget.currency_code


def configuration_of(space: Space, kept: Kept, accelerator_id: str) -> Configuration:
    """How a configuration is asked about."""
    said: dict[str, Any] = {
        "model": space.question.model,
        "workload": workload_of(space, kept),
        "cluster": space.cluster_of(kept),
        "parallelism": parallelism_of(space, kept),
    }
    efficiency = efficiency_of(space.question, accelerator_id)
    return Configuration(
        ThroughputQuestion.model_construct(**said, efficiency=efficiency),
        MemoryQuestion.model_construct(**said),
    )


def cost_request(
    space: Space, configuration: Configuration, supply: Supply, starts_at: datetime | None
) -> CostQuestion | None:
    """What asks for rent, ownership and storage; None where only electricity is paid."""
    question, supply = space.question, moved(supply, space.question, space.catalog)
    said: dict[str, Any] = {"currency_code": currency_of(question)}
    for name in ("storage", "egress"):
        if getattr(question, name) is not MISSING:
            said[name] = getattr(question, name)
    if supply.rental is not None:
        said["rental"] = supply.rental
    elif supply.purchase is not None:
        said["purchase"] = supply.purchase
    elif len(said) > 1:
        said["purchase"] = _paid_for(currency_of(question))
    else:
        return None
    if starts_at is not None:
        said["starts_at"] = starts_at
    return CostQuestion.model_construct(**_run_of(configuration), **said)


def _paid_for(currency_code: str) -> Purchase:
    """Devices that are there and cost nothing more: a cost is asked for by how the devices are had."""
    nothing = MoneyInput(amount="0", currency_code=currency_code)
    return Purchase(price_per_device=nothing, ownership=Ownership(years=1.0))


def bill_request(
    space: Space, configuration: Configuration, supply: Supply, starts_at: datetime | None
) -> UtilityBillQuestion | None:
    """What asks for energy, electricity and emissions; None where the building is not known."""
    supply = moved(supply, space.question, space.catalog)
    if supply.site is None:
        return None
    said: dict[str, Any] = {"site": supply.site, "currency_code": currency_of(space.question)}
    if starts_at is not None:
        said["starts_at"] = starts_at
    return UtilityBillQuestion.model_construct(**_run_of(configuration), **said)


def _run_of(configuration: Configuration) -> dict[str, Any]:
    names = ("model", "workload", "cluster", "parallelism", "efficiency")
    return {name: getattr(configuration.throughput, name) for name in names}


def requests_of(space: Space, kept: Kept, supply: Supply, starts_at: datetime | None = None) -> PlanRequests:
    """Bodies of the four estimates that give the figures of a configuration on a supply."""
    configuration = configuration_of(space, kept, supply.accelerator_id)
    requests: PlanRequests = {"memory": configuration.memory, "throughput": configuration.throughput}
    cost = cost_request(space, configuration, supply, starts_at)
    if cost is not None:
        requests["cost"] = cost
    bill = bill_request(space, configuration, supply, starts_at)
    if bill is not None:
        requests["utility_bill"] = bill
    return requests


def workload_of(space: Space, kept: Kept) -> WorkloadInput:
    """The workload of a configuration."""
    place = kept.cluster - len(space.clusters)
    if place >= 0:
        return space.question.given[place].workload
    return searched_workload(space.question.workload, kept)


def parallelism_of(space: Space, kept: Kept) -> ParallelismInput:
    """The layout of a configuration."""
    place = kept.cluster - len(space.clusters)
    if place >= 0:
        return space.question.given[place].parallelism
    return ParallelismInput.model_validate_json(json.dumps(dict(kept.parallelism)))
