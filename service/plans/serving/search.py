"""The fewest replicas of each configuration that keep the service levels."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from service.estimates.memory import estimate_memory
from service.estimates.rates import plan_run
from service.planning.estimates import ServingRun
from service.planning.estimates.power import estimate_draw
from service.planning.estimates.serving import ServingEstimate
from service.planning.inference import find_fewest_replicas
from service.planning.parallelism import Parallelism
from service.plans.serving.devices import SearchedDevices, StorageLayouts
from service.plans.serving.layouts import find_shape_constraint, list_variants
from service.plans.serving.levels import LevelCheck
from service.plans.serving.settings import get_degrees
from service.plans.serving.variants import PlacedVariant, find_least_replicas
from service.plans.space import KeptConfiguration, SearchOutcome, SearchPiece, SearchSpace, get_service_levels
from service.resolve.calibrated import apply_calibrations
from service.schemas.estimates import MemoryEstimateRequest
from service.schemas.plan_answers import PlanConstraint, PruningRule


def search_services(
    space: SearchSpace, piece: SearchPiece, rules: Sequence[PruningRule] = tuple(PruningRule)
) -> SearchOutcome:
    """Returns the configurations of ``piece``, each with its fewest replicas. ``rules`` may prune."""
    ruled_out, pruned = Counter[PlanConstraint](), Counter[PruningRule]()
    kept: list[KeptConfiguration] = []
    scored = feasible = 0
    for place, first, last in piece.part["ranges"]:
        machine = SearchedDevices(space, place, rules)
        for stored, layout in islice(list_variants(machine), first, last):
            found = _decide_layout(machine, stored, layout)
            if isinstance(found, KeptConfiguration):
                kept.append(found)
                found = found if found.keeps_levels else PlanConstraint.SERVICE_LEVEL
            scored += isinstance(found, KeptConfiguration) or found is PlanConstraint.SERVICE_LEVEL
            if isinstance(found, KeptConfiguration):
                feasible += 1
            elif isinstance(found, PruningRule):
                pruned[found] += 1
            else:
                ruled_out[found] += 1
    return SearchOutcome(piece.candidates, scored, feasible, ruled_out, pruned, tuple(kept))


def _decide_layout(
    machine: SearchedDevices, stored: StorageLayouts, layout: Parallelism
) -> PlanConstraint | PruningRule | KeptConfiguration:
    """Returns the configuration with its fewest replicas, or the rule that excludes it."""
    most = machine.count_max_replicas(layout)
    constraint = find_shape_constraint(machine, stored, layout)
    if constraint is not None:
        return constraint
    placed = PlacedVariant(machine, stored, layout)
    if PruningRule.STATE in machine.rules and placed.state_exceeds:
        return PruningRule.STATE
    least = find_least_replicas(placed, most)
    if isinstance(least, PlanConstraint):
        return least
    if placed.case.load.concurrency is not None:
        most = min(most, placed.case.load.concurrency)
    space = machine.space
    found = _find_within_levels(placed, LevelCheck(placed, space.question), least, most)
    if isinstance(found, KeptConfiguration) or not _has_default_levels(space):
        return found
    beyond = _find_within_levels(placed, LevelCheck(placed, space.asked), least, most)
    return beyond._replace(keeps_levels=False) if isinstance(beyond, KeptConfiguration) else found


def _has_default_levels(space: SearchSpace) -> bool:
    return get_service_levels(space.asked) != get_service_levels(space.question)


def _find_within_levels(
    placed: PlacedVariant, levels: "LevelCheck", least: int, most: int
) -> PlanConstraint | PruningRule | KeptConfiguration:
    """Returns the configuration with the fewest replicas that keep some levels, or the rule against it."""
    if placed.is_alike(1):
        light = next(placed.estimate_servings([most]))
        if PruningRule.LEVELS in placed.machine.rules and levels.is_missed_alone(light):
            return PruningRule.LEVELS
        least = max(least, levels.count_least_replicas(light))
    return _find_fewest(placed, levels, least, most) or PlanConstraint.SERVICE_LEVEL


def _find_fewest(
    placed: PlacedVariant, levels: LevelCheck, least: int, most: int
) -> KeptConfiguration | None:
    """Returns the fewest replicas that carry the load, or None."""
    while (found := find_fewest_replicas(least, most, levels.check_replica_counts)) is not None:
        kept = _build_kept(placed, found, levels)
        if kept is not None:
            return kept
        least = found + 1
    return None


def _build_kept(placed: PlacedVariant, replicas: int, levels: LevelCheck) -> KeptConfiguration | None:
    """Returns the configuration by single estimates, or None if they show that it does not carry the load."""
    machine = placed.machine
    question = machine.build_question(placed.stored, placed.layout, replicas)
    catalog = apply_calibrations(machine.space.catalog, question.cluster)
    run = plan_run(question, catalog)
    if not isinstance(run, ServingRun) or not isinstance(run.serving, ServingEstimate):
        return None
    memory = MemoryEstimateRequest.model_construct(
        model=question.model,
        workload=question.workload,
        cluster=question.cluster,
        parallelism=question.parallelism,
    )
    if not levels.is_carried(run.serving) or not _has_headroom(memory, machine.space):
        return None
    draw = estimate_draw(run)
    return KeptConfiguration(
        cluster=machine.place,
        parallelism=get_degrees(run.case.layout),
        workload=placed.stored.settings,
        seconds=run.serving.request_seconds.value,
        watts=None if draw is None else draw.watts.value,
        accelerator_count=run.case.layout.devices,
        lasting_seconds=None if run.duration_seconds is None else run.duration_seconds.value,
    )


def _has_headroom(question: MemoryEstimateRequest, space: SearchSpace) -> bool:
    """Returns true if the memory of a device is unknown, or holds the configuration with its headroom."""
    found = estimate_memory(question, space.catalog)
    if "headroom_bytes" not in found:
        return True
    return found["headroom_bytes"] >= space.headroom_share * found.get("usable_bytes", 0.0)
