"""Clusters that a plan may use, with the numbers of their devices."""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.plans.checks import check_space
from service.plans.defaults import fill_question
from service.plans.space import DeviceSupply, SearchSpace
from service.plans.supplies.checks import check_names, check_times
from service.plans.supplies.given import list_owned, list_rented
from service.plans.supplies.machines import SupplyMachine, is_training
from service.plans.supplies.offers import list_offered
from service.resolve.catalog import CatalogView
from service.resolve.hardware import get_accelerators_per_node
from service.resolve.model import resolve_model
from service.schemas.plans import PlanRequest
from service.schemas.references import ClusterInput


def build_space(question: PlanRequest, catalog: CatalogView) -> SearchSpace:
    """Returns the clusters that a plan may use, with their supplies.

    Raises:
        PlanningError: the question contradicts itself, or no supply is left; names the field.
    """
    check_times(question)
    check_names(question, catalog)
    warnings, stated = AnswerNotes(), question
    question = fill_question(question, warnings)
    model = resolve_model(question.model, catalog, warnings)
    machines = [
        *list_owned(question, catalog),
        *list_rented(question, catalog),
        *list_offered(question, catalog, warnings),
    ]
    clusters: list[ClusterInput] = []
    order: dict[tuple[str, bool], int] = {}
    supplies = []
    for machine in machines:
        places = []
        for count in _list_counts(question, machine, catalog):
            cluster = machine.cluster.model_copy(update={"accelerator_count": count})
            places.append(order.setdefault((cluster.model_dump_json(), machine.is_joined), len(order)))
            if len(order) > len(clusters):
                clusters.append(cluster)
        if places:
            supplies.append(machine.supply._replace(clusters=tuple(places)))
        elif machine.is_joined:
            detail = f"{machine.supply.name} has fewer devices than any number to search"
            warnings.warn("SUPPLY_TOO_SMALL", machine.supply.pointer, detail)
    if not supplies:
        pointer = "/search/accelerator_counts" if machines else "/search/offers"
        raise PlanningError("NO_SUPPLY", pointer, "no supply is left: give owned, rented or offers")
    _note_unknown_buildings(question, supplies, warnings)
    _note_unknown_networks(question, machines, warnings)
    apart = frozenset(place for (_, is_joined), place in order.items() if not is_joined)
    space = SearchSpace(
        question,
        catalog,
        model,
        tuple(clusters),
        tuple(supplies),
        tuple(warnings.warnings),
        apart,
        stated,
        tuple(warnings.defaults),
    )
    check_space(space)
    return space


def _note_unknown_networks(
    question: PlanRequest, machines: Sequence[SupplyMachine], notes: AnswerNotes
) -> None:
    ids = sorted({machine.supply.accelerator_id for machine in machines if not machine.is_joined})
    if ids:
        use = "a training run uses one of them" if is_training(question) else "a replica lies within one"
        detail = (
            f"the network between instances of {', '.join(ids)} is unknown, and {use}: give it under "
            "`rented` with an inter_node_link"
        )
        notes.warn("LINK_UNKNOWN", "/search/offers", detail)


def _note_unknown_buildings(
    question: PlanRequest, supplies: Sequence[DeviceSupply], notes: AnswerNotes
) -> None:
    """Warns of supplies without a site: limits of power or emissions rule them out."""
    limits = question.constraints
    asked = (limits.facility_kw, limits.location_based_kg_co2e)
    if question.goal != "cleanest" and all(limit is MISSING for limit in asked):
        return
    unknown = sum(supply.site is None for supply in supplies)
    if unknown:
        detail = (
            f"the sites of {unknown} of {len(supplies)} supplies are not given: their power and "
            "emissions are unknown, which rules them out"
        )
        notes.warn("SITE_REQUIRED", "/site", detail)


def _list_counts(question: PlanRequest, machine: SupplyMachine, catalog: CatalogView) -> Iterable[int]:
    """Returns the numbers of devices to search.

    For a service, the most, of which it uses as few as it can.
    """
    most, asked = machine.supply.most_devices, question.search.accelerator_counts
    if question.constraints.accelerator_count is not MISSING:
        most = min(most, question.constraints.accelerator_count)
    if not is_training(question):
        return (most,)
    if not machine.is_joined:
        most = min(most, get_accelerators_per_node(machine.cluster, catalog))
    if asked is not MISSING:
        return [count for count in sorted(set(asked)) if count <= most]
    return _list_doublings(get_accelerators_per_node(machine.cluster, catalog), most)


def _list_doublings(node: int, most: int) -> Iterator[int]:
    """Yields doublings of whole nodes, then all devices. Less than a node is one cluster."""
    if most <= node:
        yield most
        return
    count = node
    while count <= most:
        yield count
        count *= 2
    whole = most // node * node
    if whole != count // 2:
        yield whole
