"""What a plan searches: clusters, supplies of them, and what is kept of the configurations on each.

A configuration is a layout, a batch and a precision on a cluster. What it costs, draws and emits on a supply
from a start grows with its time and with the power of its devices, and with nothing else that a layout
decides: rent, ownership, tariffs, emissions and every constraint are monotone in both. So of the
configurations on one cluster only those can be among the best ``depth`` of any goal, under any constraint,
that fewer than ``depth`` others are at least as good as in both: that is what a search keeps.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from service.resolve.catalog import CatalogView
from service.resolve.model import ResolvedModel
from service.schemas.base import AnswerWarning
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.plans import PlanRequest
from service.schemas.purchase import Purchase
from service.schemas.references import ClusterInput
from service.schemas.rental import Rental
from service.schemas.site import RunSiteInput

REACH: Final = 4.0
"""By how much an assumption is moved to see whether the choice hangs on it, up and down. So a search keeps
what is later than a deadline by up to this: moved so far, the deadline no longer rules it out."""


class DeviceSupply(NamedTuple):
    """Where devices come from, and on which clusters of the space; one of ``rental`` and owning.

    ``pointer`` and ``site_pointer`` are where the question speaks of it and of its building.
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


class SearchSpace(NamedTuple):
    """A question with its clusters and the supplies of them.

    A cluster of a training run has a number of devices, one of a service the most that its supplies have. The
    nodes of clusters that are ``apart`` are joined by no network that is known.
    """

    question: PlanRequest
    catalog: CatalogView
    model: ResolvedModel
    clusters: tuple[ClusterInput, ...]
    supplies: tuple[DeviceSupply, ...]
    warnings: tuple[AnswerWarning, ...] = ()
    apart: frozenset[int] = frozenset()

    def get_cluster(self, kept: "KeptConfiguration") -> ClusterInput:
        """The devices of a configuration; those of given configurations stand behind those of the space."""
        if kept.cluster >= len(self.clusters):
            return self.question.given[kept.cluster - len(self.clusters)].cluster
        cluster = self.clusters[kept.cluster]
        if kept.accelerator_count is None:
            return cluster
        return cluster.model_copy(update={"accelerator_count": kept.accelerator_count})


class KeptConfiguration(NamedTuple):
    """A configuration worth pricing: members of the workload and of the layout that the search chose.

    ``seconds`` order the configurations of a cluster by time: of training those of the whole work before
    checkpoints and failures, of serving those of a request. ``watts`` is the mean draw of a device, where it
    is known. Of a service ``accelerator_count`` is how many devices of the cluster it takes, and
    ``lasting_seconds`` how long its horizon lasts.
    """

    cluster: int
    parallelism: Mapping[str, Any]
    workload: Mapping[str, Any]
    seconds: float
    watts: float | None = None
    accelerator_count: int | None = None
    lasting_seconds: float | None = None


class SearchOutcome(NamedTuple):
    """What became of a part of the space. Outcomes add up, in any order, to that of the whole."""

    considered: int
    scored: int
    feasible: int
    ruled_out: Mapping[PlanConstraint, int]
    pruned: Mapping[PruningRule, int]
    kept: tuple[KeptConfiguration, ...]

    def add(self, other: "SearchOutcome") -> "SearchOutcome":
        """Both together; what is kept of the same cluster is not yet weighed against each other."""
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
    """A part of the space that is searched in one go, in seconds at most; ``part`` says which, in JSON."""

    candidates: int
    part: Mapping[str, Any]
