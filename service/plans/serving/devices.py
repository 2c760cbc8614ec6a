"""A kind of devices to search on, and the question that a configuration on it answers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import MESHES
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.plans.serving.settings import to_parallelism_input
from service.plans.space import SearchSpace
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.plan_answers import PruningRule
from service.schemas.references import ClusterInput
from service.schemas.workloads import InferenceWorkloadInput


class StorageLayouts(NamedTuple):
    """Formats of weights and cache, and the layouts of a replica to search with them."""

    settings: Mapping[str, Any]
    given: InferenceWorkloadInput
    has_rate: bool
    layouts: tuple[Parallelism, ...]


class SearchedDevices:
    """A kind of devices with the configurations to search on it."""

    def __init__(
        self, space: SearchSpace, place: int, rules: Sequence[PruningRule] = tuple(PruningRule)
    ) -> None:
        self.space = space
        self.place = place
        self.rules = rules
        self.given = space.clusters[place]
        self.most = self.given.accelerator_count
        self.cluster, self.catalog = self.resolve_cluster(self.most)
        self._alike: dict[int, bool] = {}

    def resolve_cluster(self, devices: int) -> tuple[Cluster, CatalogView]:
        """Returns a cluster of this many devices, and the catalog with their constants."""
        given = self.build_cluster(devices)
        catalog = apply_calibrations(self.space.catalog, given)
        return resolve_cluster(given, catalog, AnswerNotes()), catalog

    def build_cluster(self, devices: int) -> ClusterInput:
        """Returns a cluster of this many devices as a member of a question."""
        return self.given.model_copy(update={"accelerator_count": devices})

    def count_max_replicas(self, layout: Parallelism) -> int:
        """Returns the number of replicas that fit. Groups that do not divide a domain use one domain only.

        The next replica would span two domains, but its figures would be those of a replica within one.
        """
        domain = self.cluster.domain
        return (self.most if domain % layout.tensor == 0 else domain) // layout.devices

    def is_alike(self, devices: int) -> bool:
        """Returns true if a replica on this many devices has the same links as on all devices.

        Their number affects no other figure: a group of devices never spans more than there are.
        """
        link = self.cluster.intra_node_link
        reached = max(self.cluster.accelerators_per_node, link.joined)
        if devices >= reached:
            return True
        if devices not in self._alike:
            cluster, catalog = self.resolve_cluster(devices)
            same = cluster._replace(
                accelerator_count=self.cluster.accelerator_count,
                accelerators_per_node=self.cluster.accelerators_per_node,
            )
            self._alike[devices] = (
                same == self.cluster and catalog is self.catalog and link.kind not in MESHES
            )
        return self._alike[devices]

    def build_question(
        self, stored: StorageLayouts, layout: Parallelism, replicas: int = 1
    ) -> ThroughputEstimateRequest:
        """Returns the throughput request for this many replicas."""
        return ThroughputEstimateRequest.model_construct(
            model=self.space.question.model,
            workload=stored.given,
            cluster=self.build_cluster(layout.devices * replicas),
            parallelism=to_parallelism_input(layout._replace(data=layout.data * replicas)),
            explain=False,
        )
