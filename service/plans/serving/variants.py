"""A configuration on its devices: what it holds, and the estimates of any number of replicas."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.planning.cases import InferenceCase
from service.planning.errors import PlanningError
from service.planning.estimates.devices import get_usable_bytes
from service.planning.estimates.serving import ServingEstimate, build_load, estimate_serving
from service.planning.hardware.cluster import Cluster
from service.planning.inference import estimate_similar_loads
from service.planning.memory.capacity import find_largest_concurrency
from service.planning.memory.serving import estimate_inference_memory, inference_weight_bytes
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.workload import InferenceWorkload
from service.plans.serving.devices import SearchedDevices, StorageLayouts
from service.resolve import resolve_served
from service.resolve.catalog import CatalogView
from service.schemas.plan_answers import PlanConstraint


class PlacedVariant:
    """A configuration on its devices: the capacity of a replica, and estimates of any number of replicas."""

    def __init__(self, machine: SearchedDevices, stored: StorageLayouts, layout: Parallelism) -> None:
        self.machine = machine
        self.stored = stored
        self.layout = layout
        self.case = self._resolve_case(1, machine.cluster, machine.catalog)
        self.holds = self._count_fitting_requests()
        self._one: ServingEstimate | None = None

    def _resolve_case(self, replicas: int, cluster: Cluster, catalog: CatalogView) -> InferenceCase:
        cluster = cluster._replace(accelerator_count=self.layout.devices * replicas)
        question, model = (
            self.machine.build_question(self.stored, self.layout, replicas),
            self.machine.space.model,
        )
        return resolve_served(
            question, self.stored.given, cluster, model, catalog=catalog, notes=AnswerNotes()
        )

    def _get_usable_bytes(self) -> float | None:
        return get_usable_bytes(self.machine.cluster, self.workload)

    def _get_filled_bytes(self) -> float | None:
        """Returns the bytes that a replica may fill: those of its engine without the headroom."""
        usable = self._get_usable_bytes()
        return None if usable is None else usable * (1.0 - self.machine.space.headroom_share)

    @property
    def workload(self) -> InferenceWorkload:
        """Workload of the memory estimate, with one request on each rank."""
        return self.case.resident.workload._replace(concurrency=self.layout.data)

    def _count_fitting_requests(self) -> int | None:
        """Returns the most requests of a rank that fit and that its engine accepts, or None if unknown."""
        limit = self._get_filled_bytes()
        if limit is None:
            return self.workload.most_requests
        memory = estimate_inference_memory(self.case.resident.profile, self.workload, self.layout)
        return find_largest_concurrency(memory, self.workload, limit)

    @property
    def state_exceeds(self) -> bool:
        """True if the weights alone exceed a device.

        This proves that nothing fits: the memory of a device includes its weights
        (``ServingMemory.beside_bytes``), and no engine uses more than the device (``usable_bytes_of``). It is
        no bound if blocks stay on the host.
        """
        limit, workload = self._get_usable_bytes(), self.workload
        if limit is None or workload.device_layers is not None:
            return False
        weights = inference_weight_bytes(self.case.resident.profile, workload.storage, self.layout)
        return weights.total > limit / workload.memory_fraction

    def estimate_serving(self, replicas: int) -> ServingEstimate:
        """Returns the estimate of this many replicas, by the function of a single estimate."""
        cluster, catalog = self.machine.resolve_cluster(self.layout.devices * replicas)
        found = estimate_serving(self._resolve_case(replicas, cluster, catalog))
        if found is None:
            detail = "the accelerator has no known rate"
            raise PlanningError("PEAK_RATE_UNKNOWN", "/cluster/accelerator", detail)
        return found

    def estimate_servings(self, numbers: Sequence[int]) -> Iterator[ServingEstimate]:
        """Yields estimates for several numbers of replicas, in arrays where only their load differs."""
        alike = [number for number in numbers if self.is_alike(number)]
        yield from (self.estimate_serving(number) for number in numbers[: len(numbers) - len(alike)])
        if not alike:
            return
        one = self._one = self._one or self.estimate_serving(alike[0])
        cases = [self._replace_replicas(one.case, number) for number in alike]
        counts = [self._count_busy(case) for case in cases]
        loads = [build_load(case, count) for case, count in zip(cases, counts, strict=True)]
        answered = estimate_similar_loads(one.model, one.server, loads)
        for case, count, load, found in zip(cases, counts, loads, answered, strict=True):
            yield replace(one, served=found, load=load, replicas=float(count), case=case)

    def is_alike(self, replicas: int) -> bool:
        """Returns true if this many replicas differ from others in their load only."""
        trace = len(self.case.load.at_seconds) > 1
        return not trace and self.machine.is_alike(replicas * self.layout.devices)

    def _replace_replicas(self, case: InferenceCase, replicas: int) -> InferenceCase:
        return replace(case, layout=self.layout._replace(data=self.layout.data * replicas))

    @staticmethod
    def _count_busy(case: InferenceCase) -> int:
        """Returns the number of replicas that have a request."""
        requests = case.load.concurrency
        return case.replicas if requests is None else min(case.replicas, requests)


def find_least_replicas(placed: PlacedVariant, most: int) -> int | PlanConstraint:
    """Returns the fewest replicas that fit the concurrent requests, or the constraint that prevents it."""
    ranks, concurrency, holds = placed.layout.data, placed.case.load.concurrency, placed.holds
    if holds == 0:
        return PlanConstraint.MEMORY
    if concurrency is None or holds is None:
        return 1
    least = math.ceil(math.ceil(concurrency / holds) / ranks)
    if least <= most:
        return least
    return PlanConstraint.ENGINE if holds == placed.workload.most_requests else PlanConstraint.MEMORY
