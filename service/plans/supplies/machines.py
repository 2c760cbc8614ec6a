"""A supply with one machine of all its devices."""

from typing import NamedTuple

from pydantic import MISSING

from service.plans.space import DeviceSupply
from service.schemas.plans import PlanRequest
from service.schemas.references import ClusterInput
from service.schemas.site import RunSiteInput
from service.schemas.workloads import TrainingWorkloadInput


class SupplyMachine(NamedTuple):
    """A supply with one machine of all its devices, before its clusters are chosen."""

    supply: DeviceSupply
    cluster: ClusterInput
    is_joined: bool = True
    """True if the network between nodes is known or given by the question."""


def is_training(question: PlanRequest) -> bool:
    """Returns true if the plan is of a training run."""
    return isinstance(question.workload, TrainingWorkloadInput)


def find_site(question: PlanRequest, region: str | None) -> tuple[RunSiteInput | None, str]:
    """Returns the site of rented devices in a region, and its pointer in the question."""
    for place, each in enumerate(question.sites):
        if region in each.regions:
            return each.site, f"/sites/{place}/site"
    return (None if question.site is MISSING else question.site), "/site"
