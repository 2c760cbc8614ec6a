"""Resolution of disaggregated serving, where prefill and decode have separate replicas."""

from typing import NamedTuple

from pydantic import MISSING

from service.planning.cases import Disaggregation, InferenceCase, ReplicaPool
from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import replace_accelerator, resolve_cluster, resolve_link
from service.resolve.layout import check_serving, check_shapes, pad_served_model, resolve_layout
from service.schemas.disaggregated import DisaggregatedPoolInput, DisaggregationInput
from service.schemas.references import ClusterInput, ParallelismInput

POINTER = "/workload/disaggregated"


def _resolve_pool_layout(pool: DisaggregatedPoolInput) -> Parallelism:
    """Returns the layout of one replica.

    Its data-parallel attention ranks equal the ranks that share its experts.
    """
    given = pool.parallelism
    ranks = given.expert if given.data is MISSING else given.data
    if ranks != given.expert:
        detail = (
            f"data {ranks} of a replica differs from expert {given.expert}; give their number as replicas"
        )
        raise PlanningError("PARALLELISM_MISMATCH", "/parallelism/data", detail)
    return resolve_layout(given.model_copy(update={"data": ranks}), None)


class _PoolModel(NamedTuple):
    """One replica of a pool, and the model as the replica holds it."""

    layout: Parallelism
    profile: ModelProfile


def _resolve_pool_model(
    pool: DisaggregatedPoolInput,
    profile: ModelProfile,
    accelerator: Accelerator | None,
    notes: AnswerNotes,
    name: str,
) -> _PoolModel:
    """Returns the layout of one replica, and the model with what its engine adds."""
    at = f"{POINTER}/{name}"
    try:
        layout = _resolve_pool_layout(pool)
        padded = pad_served_model(profile, layout, accelerator, notes, at)
        check_shapes(layout, padded)
        check_serving(layout, notes)
    except PlanningError as error:
        raise PlanningError(error.code, f"{at}{error.pointer}", error.detail) from error
    return _PoolModel(layout, padded)


def resolve_disaggregation(
    given: DisaggregationInput,
    asked: ClusterInput,
    case: InferenceCase,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> Disaggregation:
    """Returns both pools and the link between them, which defaults to a link of the cluster."""
    pools = {
        name: _resolve_pool(getattr(given, name), name, asked, case, catalog=catalog, notes=notes)
        for name in ("prefill", "decode")
    }
    if given.transfer_link is not MISSING:
        link, source = resolve_link(given.transfer_link, catalog, f"{POINTER}/transfer_link")
        if source is not None:
            notes.cite(source, f"{POINTER}/transfer_link")
    else:
        whole, cluster = resolve_cluster(asked, catalog, AnswerNotes()), pools["decode"].cluster
        is_inside = whole.accelerator_count <= whole.domain
        link = cluster.intra_node_link if is_inside else cluster.inter_node_link
    return Disaggregation(**pools, link=link, is_by_layer=given.transfer == "by_layer")


def _resolve_pool(
    given: DisaggregatedPoolInput,
    name: str,
    asked: ClusterInput,
    case: InferenceCase,
    *,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> ReplicaPool:
    workload = case.workload
    layout = _resolve_pool_layout(given)
    if given.accelerator is not MISSING:
        if given.accelerator != asked.accelerator:
            asked = replace_accelerator(asked, given.accelerator)
            catalog = apply_calibrations(catalog, asked)
        detail = "prices and power are computed for the accelerator of the cluster, not for that of the pool"
        notes.warn("ACCELERATORS_DIFFER", f"{POINTER}/{name}/accelerator", detail)
    asked = asked.model_copy(update={"accelerator_count": layout.devices * given.replicas})
    cluster = resolve_cluster(asked, catalog, AnswerNotes())
    requests, tokens = given.max_num_seqs, given.max_batched_tokens
    if requests is not MISSING:
        workload = workload._replace(most_requests=requests)
    if tokens is not MISSING:
        workload = workload._replace(batched_tokens=tokens)
    # Its layout has been noted with that of all decode replicas.
    model = _resolve_pool_model(given, case.profile, cluster.accelerator, AnswerNotes(), name)
    return ReplicaPool(layout, model.profile, cluster, catalog.constants, workload, given.replicas)


def resolve_decode_layout(
    given: DisaggregationInput,
    parallelism: ParallelismInput | MISSING,
    profile: ModelProfile,
    cluster: Cluster | None,
    notes: AnswerNotes,
) -> tuple[Parallelism, ModelProfile]:
    """Returns the layout of all decode replicas, which hold the caches, and the model as they hold it.

    Raises :class:`PlanningError` if the devices of both pools do not add up to those of the cluster.
    """
    if parallelism is not MISSING:
        detail = "disaggregated prefill and decode pools have their own parallelism: leave this member out"
        raise PlanningError("PARALLELISM_MISMATCH", "/parallelism", detail)
    accelerator = cluster.accelerator if cluster else None
    pools = {
        name: _resolve_pool_model(getattr(given, name), profile, accelerator, notes, name)
        for name in ("prefill", "decode")
    }
    counts = {name: pool.layout.devices * getattr(given, name).replicas for name, pool in pools.items()}
    if cluster and sum(counts.values()) != cluster.accelerator_count:
        detail = (
            f"prefill has {counts['prefill']} devices and decode {counts['decode']}, "
            f"the cluster {cluster.accelerator_count}"
        )
        raise PlanningError("PARALLELISM_MISMATCH", POINTER, detail)
    decode = pools["decode"]
    layout = decode.layout._replace(data=decode.layout.data * given.decode.replicas)
    return layout, decode.profile
