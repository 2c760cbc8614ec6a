"""Configurations of a search: formats of weights and cache, and layouts of a replica."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.estimates.devices import compute_peak
from service.planning.inference import ReplicaDegrees, find_layout_constraint, list_replica_layouts
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism, list_divisors
from service.plans.serving.devices import SearchedDevices, StorageLayouts
from service.plans.serving.settings import apply_settings, get_workload, list_storages
from service.plans.serving.variants import PlacedVariant
from service.plans.space import SearchSpace
from service.resolve import resolve_served
from service.schemas.plan_answers import PlanConstraint
from service.schemas.plans import ServingSearch

MOST_CONFIGURATIONS: Final = 100_000
"""Most configurations of one search; each takes some hundredths of a second."""
_WHOLE_NODES = (2, 4, 8, 16)
"""Pipeline stages of a replica that is larger than a node."""


def list_layouts(machine: SearchedDevices) -> Iterator[StorageLayouts]:
    """Yields every combination of formats for weights and cache, with its layouts."""
    settings = list_storages(machine.space.question.search.serving)
    return (_build_stored(machine, each) for each in settings)


def list_variants(machine: SearchedDevices) -> Iterator[tuple[StorageLayouts, Parallelism]]:
    """Yields configurations in the order of the search."""
    return ((stored, layout) for stored in list_layouts(machine) for layout in stored.layouts)


def _build_stored(machine: SearchedDevices, settings: Mapping[str, Any]) -> StorageLayouts:
    """Returns the layouts to search for one combination of formats."""
    space, cluster = machine.space, machine.cluster
    given = get_workload(space)
    stored = StorageLayouts(settings, apply_settings(given, settings), has_rate=True, layouts=())
    one, catalog = machine.resolve_cluster(1)
    question = machine.build_question(stored, Parallelism())
    case = resolve_served(question, stored.given, one, space.model, catalog=catalog, notes=AnswerNotes())
    if case.unknown is not None:
        raise case.unknown
    try:
        compute_peak(one, case.workload)
        has_rate = cluster.accelerator.bandwidth_bytes_per_second is not None
    except PlanningError:
        has_rate = False
    stored = stored._replace(has_rate=has_rate)
    profile = space.model.profile
    degrees = _resolve_degrees(machine, stored, profile, space.question.search.serving)
    layouts = islice(list_replica_layouts(profile, degrees), get_max_configurations(space) + 1)
    return stored._replace(layouts=tuple(layouts))


def _resolve_degrees(
    machine: SearchedDevices, stored: StorageLayouts, profile: ModelProfile, search: ServingSearch
) -> ReplicaDegrees:
    """Returns the degrees of the question, with usual ones as defaults."""
    tensor = (
        list_divisors(machine.cluster.accelerators_per_node) if search.tensor is MISSING else search.tensor
    )
    pipeline: Sequence[int] = (1,) if search.pipeline is MISSING else search.pipeline
    if search.pipeline is MISSING and stored.has_rate and not _is_fitting_node(machine, stored, tensor):
        pipeline = (1, *(stages for stages in _WHOLE_NODES if stages * max(tensor) <= machine.most))
    expert = search.expert
    if expert is MISSING:
        expert = [each for each in list_divisors(max(1, profile.expert_count)) if each <= machine.most]
    cuts = None if search.expert_tensor is MISSING else tuple(search.expert_tensor)
    listed = [tuple(dict.fromkeys(each)) for each in (tensor, pipeline, expert)]
    return ReplicaDegrees(listed[0], listed[1], listed[2], cuts)


def _is_fitting_node(machine: SearchedDevices, stored: StorageLayouts, tensor: Sequence[int]) -> bool:
    """Returns true if the widest replica within a node fits a request."""
    for width in sorted(tensor, reverse=True):
        layout = Parallelism(tensor=width)
        if find_layout_constraint(layout, machine.space.model.profile, machine.cluster) is None:
            return PlacedVariant(machine, stored, layout).holds != 0
    return True


def find_shape_constraint(
    machine: SearchedDevices, stored: StorageLayouts, layout: Parallelism
) -> PlanConstraint | None:
    """Returns the constraint that rules a layout out regardless of its memory."""
    if not stored.has_rate:
        return PlanConstraint.PRECISION
    if layout.devices > machine.most:
        return PlanConstraint.DEVICES
    if machine.place in machine.space.apart and layout.devices > machine.cluster.domain:
        return PlanConstraint.LINK
    reason = find_layout_constraint(layout, machine.space.model.profile, machine.cluster)
    if reason is not None:
        return PlanConstraint(reason.value)
    return None if machine.count_max_replicas(layout) else PlanConstraint.LINK


def get_max_configurations(space: SearchSpace) -> int:
    """Returns the most configurations that the question allows."""
    return min(space.question.most_candidates, MOST_CONFIGURATIONS)
