"""Lower bounds of cost, time and emissions of a configuration on a supply. They order the estimates.

No figure of a candidate lies below its bound:

    time      T >= s                 s: seconds of the work alone; interruptions only add to them
    rent      C >= p D T / 3600      p: price of a device-hour, D: devices of whole instances; increments,
                                     terms, blocks and minimum spend only add to the hours that are paid
    power     P >= M(w) u            M: machines whose devices draw w on average while they work, u: least PUE
                                     of a year; the meter's highest interval is one of work
    energy    E >= M(w) u s          ramps, checkpoints and lost work only add
    own       C >= E e + o n s       e: flat price of a kWh; a tariff has no bound before its bill;
                                     o: a year's cost of the purchase over the device-hours used in it
    emissions M >= E i               i: least intensity of the grid, if none is below 0

Storage and egress only add. Money is rounded line by line, by a few minor units at most.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost import round_amount
from service.planning.cost.currencies import TotalCurrency
from service.planning.energy.power import WATTS_PER_KILOWATT
from service.planning.energy.site import Site
from service.planning.estimates.ownership import estimate_device_hour_cost
from service.planning.notes import AnswerNotes
from service.planning.units import HOUR_SECONDS
from service.plans.assumptions import apply_assumptions, compute_time_factor
from service.plans.pricing import CandidatePricer, relocate_errors
from service.plans.requests import get_currency
from service.plans.runs import Floats, SearchColumns
from service.plans.space import DeviceSupply, SearchSpace
from service.resolve.hardware import resolve_cluster
from service.resolve.prices import multiply_price, resolve_price
from service.resolve.purchase import resolve_purchase
from service.resolve.rental import resolve_rental
from service.resolve.site import resolve_site
from service.schemas.estimates import UtilityBillRequest
from service.schemas.references import ClusterInput
from service.schemas.workloads import TrainingWorkloadInput

_JUST_BELOW: Final = 1.0 - 1e-9
"""Factor for differences between arrays and numbers in their last digits."""
_ROUNDINGS: Final = 20
"""Upper limit of the lines of a charge. Each is rounded by at most half a minor unit."""


class SupplyBounds(NamedTuple):
    """Lower bounds of the configurations on one supply; true flags if price and emissions are known."""

    kept: NDArray[np.int64]
    devices: Floats
    time: Floats
    cost: Floats
    kg_co2e: Floats
    kw: Floats
    price_known: bool
    emissions_known: bool


def compute_bounds(pricer: CandidatePricer, supply: DeviceSupply, columns: SearchColumns) -> SupplyBounds:
    """Returns the lower bounds of all configurations that the devices of a supply suffice for."""
    space, question = pricer.space, pricer.space.question
    here = np.isin(columns.cluster, supply.clusters) & (columns.devices <= supply.most_devices)
    kept = np.flatnonzero(here)
    devices = columns.devices[kept]
    factor = compute_time_factor(question, supply.accelerator_id) * _JUST_BELOW
    time, lasting = columns.seconds[kept] * factor, columns.lasting[kept] * factor
    supply = apply_assumptions(supply, question, space.catalog)
    with relocate_errors(supply):
        site = _resolve_site(supply, space)
        rate = _resolve_rate(supply, space)
    kw = _compute_least_kw(pricer, supply, site, columns, kept) * _JUST_BELOW
    if _has_data_pipeline(space) and factor != _JUST_BELOW:
        # Time that devices wait for data does not grow with their work, so their mean draw changes.
        kw = np.zeros_like(kw)
    kwh = kw * lasting / HOUR_SECONDS
    intensity = _find_least_intensity(site)
    cost = np.zeros_like(time)
    price_known = pricer.wanted.has_end
    if rate is not None:
        cost = rate.count_paid_devices(devices) * lasting * (rate.amount / HOUR_SECONDS) - rate.slack
    elif supply.kind == "owned" and site is not None:
        cost = _compute_least_electricity(supply, space, kwh) + _compute_least_ownership(
            pricer, supply, columns, kept
        )
    else:
        price_known = False
    return SupplyBounds(
        kept,
        devices.astype(np.float64),
        time,
        cost,
        kwh * intensity if intensity is not None else np.full_like(kwh, -np.inf),
        kw,
        price_known,
        _is_emission_known(pricer, supply, site),
    )


def _is_emission_known(pricer: CandidatePricer, supply: DeviceSupply, site: Site | None) -> bool:
    """Returns true if power of the devices, overhead of the site and intensity of the grid are known."""
    if site is None or site.pues is None or (site.grid.mean is None and site.grid.in_time is None):
        return False
    return pricer.runs.get_machines(pricer.space, pricer.space.clusters[supply.clusters[0]], site) is not None


def _has_data_pipeline(space: SearchSpace) -> bool:
    workload = space.question.workload
    return isinstance(workload, TrainingWorkloadInput) and workload.data_pipeline is not MISSING


def _compute_least_kw(
    pricer: CandidatePricer,
    supply: DeviceSupply,
    site: Site | None,
    columns: SearchColumns,
    kept: NDArray[np.int64],
) -> Floats:
    """Returns the power at the meter during work in the month of the least PUE, or 0 if unknown."""
    found = np.zeros(len(kept))
    if site is None or site.pues is None or not pricer.needs_energy(supply):
        return found
    building = (site.cooling, site.fabric_watts_per_device, min(site.pues))
    key = (supply.clusters, supply.most_devices, *building)
    if key in columns.known:
        return columns.known[key]
    for cluster, here in _list_clusters(pricer, columns, kept):
        machines = pricer.runs.get_machines(pricer.space, cluster, site)
        if machines is not None:
            found[here] = [sum(machines.compute_watts(each)) for each in columns.watts[kept][here].tolist()]
    columns.known[key] = found * (min(site.pues) / WATTS_PER_KILOWATT)
    return columns.known[key]


def _list_clusters(
    pricer: CandidatePricer, columns: SearchColumns, kept: NDArray[np.int64]
) -> Iterator[tuple[ClusterInput, NDArray[np.bool_]]]:
    """Yields each cluster of some configurations, with a mask of the configurations on it."""
    of = np.stack([columns.cluster[kept], columns.devices[kept]])
    for place, count in np.unique(of, axis=1).T.tolist():
        cluster = pricer.space.clusters[place].model_copy(update={"accelerator_count": count})
        yield cluster, (of[0] == place) & (of[1] == count)


def _compute_least_ownership(
    pricer: CandidatePricer, supply: DeviceSupply, columns: SearchColumns, kept: NDArray[np.int64]
) -> Floats:
    """Returns the share of a purchase for the device-hours of the work alone."""
    space, found = pricer.space, np.zeros(len(kept))
    if supply.purchase is None:
        return found
    currencies = _build_currencies(space)
    slack = _ROUNDINGS * _get_minor_unit(get_currency(space.question))
    factor = compute_time_factor(space.question, supply.accelerator_id) * _JUST_BELOW
    for asked, here in _list_clusters(pricer, columns, kept):
        cluster = resolve_cluster(asked, space.catalog, AnswerNotes())
        terms = resolve_purchase(supply.purchase, cluster, space.catalog, AnswerNotes())
        rate = estimate_device_hour_cost(terms, cluster.accelerator_count, currencies, AnswerNotes())
        if rate is not None:
            hours = cluster.accelerator_count * columns.lasting[kept][here] * (factor / HOUR_SECONDS)
            found[here] = float(rate) * _JUST_BELOW * hours - slack
    return found


class _RentalRate(NamedTuple):
    """Rent of a device-hour in the currency of the plan, and the size of instances."""

    amount: float
    slack: float
    devices_per_instance: int
    least_instances: int

    def count_paid_devices(self, counts: NDArray[np.int64]) -> Floats:
        """Returns the number of devices that are paid for."""
        whole = -(-counts // self.devices_per_instance)
        return np.maximum(whole, self.least_instances) * float(self.devices_per_instance)


def _build_currencies(space: SearchSpace) -> TotalCurrency:
    on = _get_start(space) or now()
    return TotalCurrency(get_currency(space.question), space.catalog.exchange_rates, on.date())


def _resolve_rate(supply: DeviceSupply, space: SearchSpace) -> _RentalRate | None:
    if supply.rental is None:
        return None
    terms = resolve_rental(supply.rental, supply.accelerator_id, space.catalog, AnswerNotes())
    price = _build_currencies(space).exchange_price(terms.price, "/rent/total", AnswerNotes())
    if price is None:
        return None
    slack = _ROUNDINGS * _get_minor_unit(price.currency_code)
    return _RentalRate(
        float(price.amount) * _JUST_BELOW, slack, terms.devices_per_instance, terms.least_instances
    )


def _get_minor_unit(currency_code: str) -> float:
    return float(Decimal(1).scaleb(int(round_amount(Decimal(1), currency_code).as_tuple().exponent)))


def _resolve_site(supply: DeviceSupply, space: SearchSpace) -> Site | None:
    if supply.site is None:
        return None
    said: dict[str, Any] = {"workload": space.question.workload, "site": supply.site}
    start = _get_start(space)
    if start is not None:
        said["starts_at"] = start
    question = UtilityBillRequest.model_construct(**said)
    return resolve_site(question, space.catalog, AnswerNotes())


def _get_start(space: SearchSpace) -> datetime | None:
    if space.question.window is not MISSING:
        return space.question.window.earliest_start_at
    return None if space.question.starts_at is MISSING else space.question.starts_at


def _find_least_intensity(site: Site | None) -> float | None:
    """Returns the least intensity of the grid at any time, or None if it may be below 0."""
    if site is None:
        return 0.0
    known = [] if site.grid.mean is None else [site.grid.mean.value]
    if site.grid.in_time is not None:
        known.append(float(np.nanmin(site.grid.in_time.values)))
    least = min(known, default=0.0)
    return least * _JUST_BELOW if least >= 0.0 else None


def _compute_least_electricity(supply: DeviceSupply, space: SearchSpace, kwh: Floats) -> Floats:
    """Returns the electricity cost at a flat price.

    A tariff has no lower bound, since it may pay for energy.
    """
    asked = MISSING if supply.site is None else supply.site.electricity
    if asked is MISSING or asked.price_per_kwh is MISSING:
        return np.full_like(kwh, -np.inf)
    given = multiply_price(resolve_price(asked.price_per_kwh), asked.price_factor)
    price = _build_currencies(space).exchange_price(given, "/electricity/total", AnswerNotes())
    if price is None:
        return np.zeros_like(kwh)
    return kwh * float(price.amount) * _JUST_BELOW - _ROUNDINGS * _get_minor_unit(price.currency_code)
