"""Accelerators of a run that the links of a node join, which a rented instance has to hold."""

from service.planning.cases import RunCase, ServingCase, TrainingCase
from service.planning.hardware.cluster import Cluster
from service.planning.notes import AnswerNotes
from service.resolve import resolve_run
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.workloads import TrainingWorkloadInput


def count_linked(case: RunCase) -> int:
    """Returns the accelerators of a node that exchange data: all that train, else those of a replica."""
    joined = _count_joined(case.cluster)
    if isinstance(case, TrainingCase) or (isinstance(case, ServingCase) and case.disaggregation is not None):
        return joined
    return min(joined, case.layout.devices // case.replicas)


def count_linked_by(question: ThroughputEstimateRequest, catalog: CatalogView) -> int:
    """Returns the linked accelerators of a question. Raises :class:`PlanningError` as its answer does."""
    notes = AnswerNotes()
    if isinstance(question.workload, TrainingWorkloadInput):
        return _count_joined(resolve_cluster(question.cluster, catalog, notes))
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    return count_linked(resolve_run(question, catalog, notes))


def _count_joined(cluster: Cluster) -> int:
    return min(cluster.accelerator_count, cluster.accelerators_per_node)
