"""Length of a question's work, read from the question before it is answered.

A short question takes some milliseconds and is answered on the event loop; one that may take over 20 ms is
answered in a thread, in the queue of searches if it may take over a second.
"""

from typing import Final

from pydantic import MISSING

from service.planning.workload import AdaptationKind
from service.resolve.catalog import CatalogView
from service.resolve.layout import find_unstated
from service.schemas.estimates import (
    MemoryEstimateRequest,
    RunEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)
from service.schemas.references import CatalogModel, ModelReference, ParameterCountModel
from service.schemas.site import RunSiteInput
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput, WorkloadInput

MOST_SHORT_BYTES: Final = 2**13
"""Longest body of a short question: traces of arrivals, histograms and loads are longer."""
MOST_SHORT_LAYERS: Final = 64
"""Most entries of the layers of a short question's model."""
MOST_SHORT_TRAINED: Final = 10
"""Most entries of a model that is trained: each layout that is tried looks at all of them."""
MOST_SHORT_ADAPTED: Final = 2
"""Most entries where adapters are trained, whose tensors are looked at one by one."""


def is_long(
    question: MemoryEstimateRequest | RunEstimateRequest, body_bytes: int, catalog: CatalogView
) -> bool:
    """Returns true if one of the four questions may take over 20 ms.

    These have a long body, a model given by its configuration or its layers, a model with many layers (fewer
    where it is trained), an open layout of a service or of a training run, a scaling curve, a simulation,
    disaggregated serving, a site of the catalog, a tariff, or a load beside the run.
    """
    return (
        body_bytes > MOST_SHORT_BYTES
        or not _is_small(question.model, _get_max_layers(question.workload), catalog)
        or is_search(question)
        or _has_open_layout(question)
        or (isinstance(question, UtilityBillRequest) and _is_metered(question.site))
    )


def is_search(question: MemoryEstimateRequest | RunEstimateRequest) -> bool:
    """Returns true if one of the four questions may take over a second, however small its body.

    These have a scaling curve, a simulation, or disaggregated serving.
    """
    workload = question.workload
    if isinstance(workload, InferenceWorkloadInput) and workload.disaggregated is not MISSING:
        return True
    if not isinstance(question, ThroughputEstimateRequest):
        return False
    return question.scaling is not MISSING or question.solver.kind != "analytic"


def _get_max_layers(workload: WorkloadInput) -> int:
    """Returns the most entries of the layers of a model whose work is short."""
    if isinstance(workload, InferenceWorkloadInput):
        return MOST_SHORT_LAYERS
    is_whole = workload.adaptation.kind is AdaptationKind.FULL
    return MOST_SHORT_TRAINED if is_whole else MOST_SHORT_ADAPTED


def _is_small(model: ModelReference, most_layers: int, catalog: CatalogView) -> bool:
    if isinstance(model, ParameterCountModel):
        return True
    if not isinstance(model, CatalogModel):
        return False
    known = catalog.models.get(model.id)
    return known is None or len(known.architecture["layers"]) <= most_layers


_RULED = {"overlap_expert_communication"}
"""Open members of a layout that a rule fills without a search."""


def _has_open_layout(question: MemoryEstimateRequest | RunEstimateRequest) -> bool:
    """Returns true if the layout of a service or of a training run, or a member of it, is searched."""
    workload, layout, cluster = question.workload, question.parallelism, question.cluster
    if cluster is MISSING or isinstance(question.model, ParameterCountModel):
        return False
    if not isinstance(workload, TrainingWorkloadInput):
        return layout is MISSING and cluster.accelerator_count > 1
    if layout is not MISSING:
        return bool(find_unstated(layout) - _RULED)
    parts = (workload.micro_batch_size, workload.gradient_accumulation_steps)
    return workload.global_batch_size is not MISSING or all(each is MISSING for each in parts)


def _is_metered(site: RunSiteInput | MISSING) -> bool:
    """Returns true if a bill is read interval by interval."""
    if site is MISSING:
        return False
    flat = site.electricity is MISSING or site.electricity.price_per_kwh is not MISSING
    return site.site_id is not MISSING or site.baseline_load is not MISSING or not flat
