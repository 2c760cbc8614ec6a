"""Assumptions of a question, and the supplies, accelerators and sites that they are about."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from pydantic import MISSING

from service.plans.assumptions import list_site_names
from service.plans.ranking import CandidateRanking
from service.plans.space import DeviceSupply, SearchSpace
from service.schemas.plans import PlanRequest
from service.schemas.workloads import TrainingWorkloadInput, WorkloadInput

Assumption = Literal[
    "price",
    "time",
    "electricity_price",
    "carbon_intensity",
    "interruption_rate",
    "budget",
    "deadline",
    "work",
]
LIMITS: Final = frozenset({"budget", "deadline"})
_TOTALS: Final = ("total_tokens", "total_steps", "total_samples", "duration_seconds", "total_output_tokens")
"""Members with the amount of work. A number of requests that all begin at once is another load."""


class MovedAssumption(NamedTuple):
    """An assumption and its subject: a supply, an accelerator or a site; None for all of them."""

    assumption: Assumption
    of: str | None = None


def list_assumptions(space: SearchSpace, ranking: CandidateRanking) -> Iterator[MovedAssumption]:
    """Yields the assumptions of the question that apply to the rows, for each subject and for all."""
    supplies = list({row.candidate.supply.name: row.candidate.supply for row in ranking.rows}.values())
    every, constraints = space.supplies, space.question.constraints
    yield from _list_moves("price", _list_names(_get_paid_name, supplies), _list_names(_get_paid_name, every))
    if isinstance(space.question.workload, TrainingWorkloadInput):
        yield from _list_moves(
            "time", _list_names(_get_device_name, supplies), _list_names(_get_device_name, every)
        )
    yield from _list_moves(
        "electricity_price", _list_names(_get_billed_site, supplies), _list_names(_get_billed_site, every)
    )
    if _is_emission_relevant(space.question):
        yield from _list_moves(
            "carbon_intensity",
            _list_names(_get_emitting_site, supplies),
            _list_names(_get_emitting_site, every),
        )
    yield from _list_moves(
        "interruption_rate", _list_names(_get_spot_name, supplies), _list_names(_get_spot_name, every)
    )
    if constraints.budget is not MISSING:
        yield MovedAssumption("budget")
    if constraints.duration_seconds is not MISSING or constraints.finish_by is not MISSING:
        yield MovedAssumption("deadline")
    if find_total(space.question.workload) is not None:
        yield MovedAssumption("work")


def _is_emission_relevant(question: PlanRequest) -> bool:
    limit = question.constraints.location_based_kg_co2e
    return question.goal in ("cleanest", "pareto") or limit is not MISSING


def _list_moves(
    assumption: Assumption, names: Sequence[str], every: Sequence[str]
) -> Iterator[MovedAssumption]:
    """Yields each name, and all of them together if there are several."""
    yield from (MovedAssumption(assumption, name) for name in names)
    if len(every) > 1 or (every and not names):
        yield MovedAssumption(assumption)


def _list_names(name: Callable[[DeviceSupply], str | None], supplies: Iterable[DeviceSupply]) -> list[str]:
    found = (name(supply) for supply in supplies)
    return list(dict.fromkeys(each for each in found if each is not None))


def _get_paid_name(supply: DeviceSupply) -> str | None:
    return supply.name if supply.rental is not None or supply.purchase is not None else None


def _get_device_name(supply: DeviceSupply) -> str:
    return supply.accelerator_id


def _get_spot_name(supply: DeviceSupply) -> str | None:
    return supply.name if supply.rental is not None and supply.rental.spot is not MISSING else None


def _get_billed_site(supply: DeviceSupply) -> str | None:
    """Returns the site whose electricity is part of the cost, for owned devices only."""
    site = supply.site if supply.kind == "owned" else None
    known = site is not None and not (site.electricity is MISSING and site.site_id is MISSING)
    return _get_site_name(supply) if known else None


def has_tariff(supply: DeviceSupply) -> bool:
    """Returns true if the cost of electricity needs a bill under a tariff."""
    if _get_billed_site(supply) is None or supply.site is None:
        return False
    return supply.site.electricity is MISSING or supply.site.electricity.price_per_kwh is MISSING


def _get_emitting_site(supply: DeviceSupply) -> str | None:
    """Returns the site of a supply if its emissions per kWh are known."""
    site = supply.site
    if site is None or (
        site.carbon_intensity_kg_co2e_per_kwh is MISSING
        and site.grid_id is MISSING
        and site.site_id is MISSING
    ):
        return None
    return _get_site_name(supply)


def _get_site_name(supply: DeviceSupply) -> str:
    """Returns the name of a supply's site: the id of the site, else the region, else the supply."""
    if supply.site is not None and supply.site.site_id is not MISSING:
        return supply.site.site_id
    return supply.region or supply.name


def is_concerned(moved: MovedAssumption, supply: DeviceSupply) -> bool:
    """Returns true if an assumption applies to a supply."""
    return moved.of is None or moved.of in _get_supply_names(moved.assumption, supply)


def _get_supply_names(assumption: Assumption, supply: DeviceSupply) -> tuple[str | None, ...]:
    """Returns the names by which an assumption may refer to a supply."""
    if assumption == "time":
        return (supply.accelerator_id,)
    if assumption in ("electricity_price", "carbon_intensity"):
        return list_site_names(supply)
    return (supply.name,)


def find_total(workload: WorkloadInput) -> tuple[str, float] | None:
    """Returns name and amount of a run's total, or None if there is none to scale."""
    holder = workload if isinstance(workload, TrainingWorkloadInput) else workload.horizon
    known = ((name, getattr(holder, name, MISSING)) for name in _TOTALS)
    return next(((name, total) for name, total in known if total is not MISSING), None)
