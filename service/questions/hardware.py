"""Clusters, rates and efficiencies: the machine side of a question as planning values."""

from pydantic import MISSING

from service.planning.cluster import Accelerator, Cluster
from service.planning.curves import Efficiency, assumed_efficiency
from service.planning.errors import PlanningError
from service.planning.precision import COMPUTE_FORMATS, NumberFormat
from service.planning.quantity import assumed
from service.planning.workload import InferenceWorkload, TrainingWorkload
from service.questions.catalog import Catalog
from service.questions.notes import Notes, lookup
from service.questions.references import (
    AcceleratorReference,
    AssumedEfficiency,
    CatalogAccelerator,
    ClusterInput,
    EfficiencyInput,
)

ACCELERATORS_PER_NODE = 8
"""Where neither the question nor a reference server says."""


def _accelerator(reference: AcceleratorReference, catalog: Catalog, notes: Notes) -> Accelerator:
    if isinstance(reference, CatalogAccelerator):
        known = lookup(catalog.accelerators, reference.id, "/cluster/accelerator/id")
        notes.cite(known.source, "/cluster/accelerator")
        return known.accelerator
    given = reference.specification
    memory, bandwidth = given.memory_bytes, given.memory_bandwidth_bytes_per_second
    power, rates = given.power_limit_watts, given.peak_flops_per_second
    return Accelerator(
        id=given.name,
        generation="" if given.generation is MISSING else given.generation,
        capacity_bytes=None if memory is MISSING else assumed(float(memory)),
        bandwidth_bytes_per_second=None if bandwidth is MISSING else bandwidth,
        peak_flops_per_second={} if rates is MISSING else rates,
        power_limit_watts=None if power is MISSING else power,
    )


def resolve_cluster(given: ClusterInput, catalog: Catalog, notes: Notes) -> Cluster:
    """The cluster with the catalog's figures and defaults."""
    accelerator = _accelerator(given.accelerator, catalog, notes)
    server = accelerator.server
    per_node = given.accelerators_per_node
    if per_node is MISSING:
        per_node = server.accelerator_count if server else ACCELERATORS_PER_NODE
    per_node = min(per_node, given.accelerator_count)
    for name, link in (
        ("intra_node_link", given.intra_node_link),
        ("inter_node_link", given.inter_node_link),
    ):
        if link is not MISSING:
            lookup(catalog.links, link.id, f"/cluster/{name}/id")
            notes.warn("NOT_USED", f"/cluster/{name}", "links do not enter this estimate yet")
    host_watts = given.host_power_watts
    return Cluster(
        accelerator,
        given.accelerator_count,
        per_node,
        None if host_watts is MISSING else assumed(host_watts),
    )


def usable_bytes(cluster: Cluster | None, workload: TrainingWorkload | InferenceWorkload) -> float | None:
    """Bytes of one device that the workload may use; None where the capacity is unknown."""
    if cluster is None or cluster.accelerator.capacity_bytes is None:
        return None
    fraction = workload.memory_fraction if isinstance(workload, InferenceWorkload) else 1.0
    return cluster.accelerator.capacity_bytes.value * fraction


def compute_peak(
    cluster: Cluster, workload: TrainingWorkload | InferenceWorkload
) -> tuple[NumberFormat, float]:
    """The dense rate that the workload's format is multiplied at on the accelerator."""
    if isinstance(workload, TrainingWorkload):
        formats: tuple[NumberFormat, ...] = (workload.recipe.compute,)
        pointer = "/workload/precision"
    else:
        formats = COMPUTE_FORMATS[workload.weight_format]
        pointer = "/workload/weight_precision"
    peak = cluster.accelerator.peak(*formats)
    if peak is None:
        rates = cluster.accelerator.peak_flops_per_second
        known = ", ".join(rates) if rates else "none"
        raise PlanningError(
            "PEAK_RATE_UNKNOWN",
            pointer,
            f"no dense {' or '.join(formats)} rate is known for {cluster.accelerator.id}; known: {known}",
        )
    return peak


def resolve_efficiency(
    given: EfficiencyInput,
    catalog: Catalog,
    cluster: Cluster,
    workload: TrainingWorkload | InferenceWorkload,
    notes: Notes,
) -> Efficiency:
    """The achieved shares that the question assumes or that measured runs give."""
    if isinstance(given, AssumedEfficiency):
        bandwidth = given.bandwidth_utilization
        if bandwidth is MISSING:
            if isinstance(workload, InferenceWorkload):
                notes.warn(
                    "BANDWIDTH_UTILIZATION_DEFAULTED",
                    "/efficiency/bandwidth_utilization",
                    "the bandwidth is used to the same share as the peak rate",
                )
            return assumed_efficiency(given.utilization, None)
        return assumed_efficiency(given.utilization, bandwidth)
    if isinstance(workload, InferenceWorkload):
        efficiency = catalog.curves.serving_efficiency(cluster.accelerator.generation)
    else:
        efficiency = catalog.curves.training_efficiency(
            cluster.accelerator.generation, workload.recipe.compute, workload.measured_recomputation
        )
    notes.sources.append(
        {
            "pointer": "/efficiency",
            "kind": "reference_curve",
            "id": "reference",
            "version": 1,
            "origin": "shipped",
            "citation": efficiency.source,
        }
    )
    return efficiency
