"""Layouts of disaggregated serving, checked against cluster and model."""

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.models.profile import Profile
from service.planning.parallelism import Parallelism
from service.resolve.layout import check_serving, check_shapes, given_layout
from service.schemas.disaggregated import DisaggregatedInput, PoolInput
from service.schemas.notes import Notes
from service.schemas.references import ParallelismInput

POINTER = "/workload/disaggregated"


def pool_layout(pool: PoolInput, profile: Profile, notes: Notes, name: str) -> Parallelism:
    """The layout of one replica; its attention ranks are those that share its experts."""
    given = pool.parallelism
    ranks = given.expert if given.data is MISSING else given.data
    pointer = f"{POINTER}/{name}/parallelism"
    if ranks != given.expert:
        detail = f"of one replica data {ranks} is expert {given.expert}; replicas says how many there are"
        raise PlanningError("PARALLELISM_MISMATCH", f"{pointer}/data", detail)
    try:
        layout = given_layout(given.model_copy(update={"data": ranks}), None)
        check_shapes(layout, profile)
        check_serving(layout, notes)
    except PlanningError as error:
        raise PlanningError(error.code, f"{POINTER}/{name}{error.pointer}", error.detail) from error
    return layout


def decode_layout(
    given: DisaggregatedInput,
    parallelism: ParallelismInput | MISSING,
    profile: Profile,
    cluster: Cluster | None,
    notes: Notes,
) -> Parallelism:
    """The layout of all decode replicas, where the caches lie.

    Raises :class:`PlanningError` where the devices of both sides are not those of the cluster.
    """
    if parallelism is not MISSING:
        detail = "prefill and decode have layouts of their own"
        raise PlanningError("PARALLELISM_MISMATCH", "/parallelism", detail)
    layouts = {
        name: pool_layout(getattr(given, name), profile, notes, name) for name in ("prefill", "decode")
    }
    counts = {name: layout.devices * getattr(given, name).replicas for name, layout in layouts.items()}
    if cluster and sum(counts.values()) != cluster.accelerator_count:
        detail = (
            f"prefill has {counts['prefill']} devices and decode {counts['decode']}, "
            f"the cluster {cluster.accelerator_count}"
        )
        raise PlanningError("PARALLELISM_MISMATCH", POINTER, detail)
    decode = layouts["decode"]
    return decode._replace(data=decode.data * given.decode.replicas)
