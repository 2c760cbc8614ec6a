"""Search space of a plan: clusters, their supplies and the configurations that are kept.

A configuration is a layout, a batch and a precision on a cluster. Its cost, power and emissions on a supply
from a start grow with its time and with the power of its devices, and with nothing else that a layout
decides: rent, ownership, tariffs, emissions and every constraint are monotone in both. So only those
configurations of a cluster can be among the best ``depth`` of any goal, under any constraint, that fewer than
``depth`` others match or beat in both. A search keeps these.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from pydantic import MISSING

from service.planning.notes import FilledDefault
from service.resolve.catalog import CatalogView
from service.resolve.model import ResolvedModel
from service.schemas.base import AnswerWarning
from service.schemas.load import ServiceLevelsInput
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.plans import PlanRequest
from service.schemas.purchase import Purchase
from service.schemas.references import ClusterInput
from service.schemas.rental import Rental
from service.schemas.site import RunSiteInput
from service.schemas.workloads import InferenceWorkloadInput

REACH: Final = 4.0
"""Largest factor by which an assumption is changed, up and down, to find the sensitivity of the choice. A
search therefore keeps runs that miss a deadline by up to this factor, since a changed deadline would admit
them.
"""


class DeviceSupply(NamedTuple):
    """A source of devices and its clusters in the space, either with ``rental`` or owned.

    ``pointer`` and ``site_pointer`` are the places of the supply and of its site in the question.
    """

    name: str
    kind: Literal["owned", "rented", "offer"]
    clusters: tuple[int, ...]
    accelerator_id: str
    most_devices: int
    pointer: str
    site_pointer: str = "/site"
    rental: Rental | None = None
    purchase: Purchase | None = None
    site: RunSiteInput | None = None
    provider: str | None = None
    region: str | None = None
    purchase_option: str | None = None


def get_headroom_share(question: PlanRequest) -> float:
    """Returns the headroom that a question states, else none."""
    share = question.constraints.headroom_share
    return 0.0 if share is MISSING else share


def get_service_levels(question: PlanRequest) -> ServiceLevelsInput | Any:  # noqa: ANN401
    """Returns the service levels of a question, MISSING where it has none."""
    workload = question.workload
    return workload.service_levels if isinstance(workload, InferenceWorkloadInput) else MISSING


class SearchSpace(NamedTuple):
    """A question with its clusters and their supplies.

    ``stated`` is the question without ``defaults``, the members that a plan fills; None without any.
    A cluster of a training run has a number of devices, that of a service the most that its supplies have.
    The network between nodes of clusters in ``apart`` is unknown.
    """

    question: PlanRequest
    catalog: CatalogView
    model: ResolvedModel
    clusters: tuple[ClusterInput, ...]
    supplies: tuple[DeviceSupply, ...]
    warnings: tuple[AnswerWarning, ...] = ()
    apart: frozenset[int] = frozenset()
    stated: PlanRequest | None = None
    defaults: tuple[FilledDefault, ...] = ()

    @property
    def asked(self) -> PlanRequest:
        """The question as it was asked."""
        return self.question if self.stated is None else self.stated

    @property
    def headroom_share(self) -> float:
        """Share of the usable memory that a configuration of the search leaves free."""
        return get_headroom_share(self.question)

    def get_cluster(self, kept: "KeptConfiguration") -> ClusterInput:
        """Returns the devices of a configuration.

        Given configurations are numbered after those of the space.
        """
        if kept.cluster >= len(self.clusters):
            return self.question.given[kept.cluster - len(self.clusters)].cluster
        cluster = self.clusters[kept.cluster]
        if kept.accelerator_count is None:
            return cluster
        return cluster.model_copy(update={"accelerator_count": kept.accelerator_count})


class KeptConfiguration(NamedTuple):
    """A configuration to price: the members of workload and layout that the search chose.

    ``seconds`` orders the configurations of a cluster by time: for training the whole work without
    checkpoints and failures, for serving the time of a request. ``watts`` is the mean draw of a device, if
    known. For a service, ``accelerator_count`` is the number of devices that it takes, and
    ``lasting_seconds`` the length of its horizon; ``keeps_levels`` is false if it misses service levels that
    the plan fills. ``price`` is the one that a piece of a fleet has found, as JSON.
    """

    cluster: int
    parallelism: Mapping[str, Any]
    workload: Mapping[str, Any]
    seconds: float
    watts: float | None = None
    accelerator_count: int | None = None
    lasting_seconds: float | None = None
    keeps_levels: bool = True
    price: Mapping[str, Any] | None = None


class SearchOutcome(NamedTuple):
    """Outcome of a part of the space. Outcomes add up, in any order, to that of the whole."""

    considered: int
    scored: int
    feasible: int
    ruled_out: Mapping[PlanConstraint, int]
    pruned: Mapping[PruningRule, int]
    kept: tuple[KeptConfiguration, ...]

    def add(self, other: "SearchOutcome") -> "SearchOutcome":
        """Returns the sum. Kept configurations of the same cluster are not yet reduced to the best."""
        return SearchOutcome(
            self.considered + other.considered,
            self.scored + other.scored,
            self.feasible + other.feasible,
            Counter(self.ruled_out) + Counter(other.ruled_out),
            Counter(self.pruned) + Counter(other.pruned),
            (*self.kept, *other.kept),
        )


NOTHING = SearchOutcome(0, 0, 0, {}, {}, ())


class SearchPiece(NamedTuple):
    """A part of the space that one call searches in a few seconds. ``part`` identifies it, as JSON."""

    candidates: int
    part: Mapping[str, Any]
