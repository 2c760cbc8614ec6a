"""Cached rates and energies of configurations, which do not depend on prices or constraints."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.estimates.allowance import spend_effort
from service.estimates.electricity import bill_electricity
from service.estimates.rates import plan_run
from service.planning.cost.charges import CurrencyCharges
from service.planning.energy.site import Site
from service.planning.estimates import ForwardPassRun, Run, ServingRun
from service.planning.estimates.carbon import estimate_location_based
from service.planning.estimates.energy import RunEnergy, build_machines, estimate_energy
from service.planning.estimates.load import MachinePower
from service.planning.estimates.power import DevicePower, estimate_draw
from service.planning.estimates.serving import ServingEstimate
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity, exact
from service.plans.assumptions import compute_time_factor
from service.plans.requests import RequestConfiguration, build_configuration
from service.plans.space import KeptConfiguration, SearchSpace
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.prices import resolve_currencies
from service.resolve.site import resolve_site
from service.schemas.estimates import UtilityBillRequest
from service.schemas.references import ClusterInput
from service.schemas.site import RunSiteInput
from service.schemas.workloads import InferenceWorkloadInput

Floats = NDArray[np.float64]

NEVER_ENDS: Final = "NO_PROGRESS"
"""Code of a run that failures or interruptions stop faster than it progresses."""


@dataclass
class MeteredRun:
    """A run with its energy at a site."""

    request: UtilityBillRequest
    site: Site
    energy: RunEnergy
    catalog: CatalogView
    notes: AnswerNotes

    @cached_property
    def emissions(self) -> Quantity | None:
        """Emissions of the electricity at the average of the grid."""
        found = estimate_location_based(self.energy, self.site, self.notes, spend_effort)
        return found and found.kg_co2e

    @cached_property
    def electricity(self) -> CurrencyCharges | None:
        """Cost of the electricity in the currency of the request."""
        billed = bill_electricity(self.request, self.energy, self.catalog, self.notes)
        if billed.charged is None:
            return None
        currencies = resolve_currencies(self.request, self.catalog)
        return currencies.exchange_total(billed.charged, "/electricity/total", self.notes)


class EvaluatedConfiguration(NamedTuple):
    """A configuration with its rates."""

    configuration: RequestConfiguration
    catalog: CatalogView
    """Catalog with the measured constants of the configuration's devices."""
    run: Run
    draw: DevicePower | None
    energies: dict[object, RunEnergy]
    """Energies by the properties of a site that they depend on."""
    metered: dict[object, tuple[RunSiteInput, MeteredRun]]
    """Metered runs by site and start, with the site of the question."""

    def copy_run(self) -> Run:
        """Returns a copy of the run, whose notes may be changed."""
        return self.run._replace(notes=self.run.notes.copy())

    def meter_run(self, request: UtilityBillRequest, building: RunSiteInput) -> MeteredRun:
        """Returns the energy of the run as a bill uses it. Cached unless an assumption changes the site."""
        key = (id(building), request.starts_at, request.currency_code)
        if request.site is building and key in self.metered:
            return self.metered[key][1]
        run = self.copy_run()
        site = resolve_site(request, self.catalog, run.notes)
        found = MeteredRun(request, site, self._get_energy(run, site), self.catalog, run.notes)
        if request.site is building:
            self.metered[key] = building, found
        return found

    def _get_energy(self, run: Run, site: Site) -> RunEnergy:
        """Returns the energy of a run, cached since prices and grid do not change it."""
        key = (site.pues, site.cooling, site.fabric_watts_per_device, site.starts_at)
        if key not in self.energies:
            self.energies[key] = estimate_energy(run, site, self.draw)
        return self.energies[key]

    @property
    def request_seconds(self) -> float | None:
        """Mean seconds of a request of a service."""
        run, found = self.run, None
        if isinstance(run, ServingRun) and isinstance(run.serving, ServingEstimate):
            found = run.serving.request_seconds
        elif isinstance(run, ForwardPassRun) and run.passing is not None:
            found = run.passing.request_seconds
        return None if found is None else found.value


class SearchColumns(NamedTuple):
    """Configurations that a search keeps, as arrays.

    ``lasting`` is the duration of the whole work in seconds.
    """

    kept: tuple[KeptConfiguration, ...]
    cluster: NDArray[np.int64]
    seconds: Floats
    lasting: Floats
    watts: Floats
    devices: NDArray[np.int64]
    known: dict[object, Floats]
    """Arrays that do not depend on prices, by their inputs."""


def build_columns(space: SearchSpace, kept: tuple[KeptConfiguration, ...]) -> SearchColumns:
    """Returns the columns of some configurations."""
    is_service = isinstance(space.question.workload, InferenceWorkloadInput)
    counts = [cluster.accelerator_count for cluster in space.clusters]
    return SearchColumns(
        kept,
        np.array([each.cluster for each in kept], dtype=np.int64),
        np.array([each.seconds for each in kept]),
        np.array([(each.lasting_seconds or 0.0) if is_service else each.seconds for each in kept]),
        np.array([each.watts or 0.0 for each in kept]),
        np.array([each.accelerator_count or counts[each.cluster] for each in kept], dtype=np.int64),
        {},
    )


class RunCache:
    """Cache of the rates of configurations, which do not depend on prices or constraints."""

    def __init__(self) -> None:
        self._columns: SearchColumns | None = None
        self._worked: dict[tuple[str, ...], EvaluatedConfiguration] = {}
        self._machines: dict[tuple[object, ...], MachinePower | None] = {}

    def get_run(
        self, space: SearchSpace, kept: KeptConfiguration, accelerator_id: str
    ) -> EvaluatedConfiguration:
        """Returns the rates of a configuration of the space."""
        key = (
            space.get_cluster(kept).model_dump_json(),
            json.dumps([dict(kept.parallelism), dict(kept.workload)], sort_keys=True),
            space.question.workload.model_dump_json(),
            str(max(-1, kept.cluster - len(space.clusters))),
            repr(compute_time_factor(space.question, accelerator_id)),
        )
        found = self._worked.get(key)
        if found is None:
            found = self._worked[key] = run_configuration(
                build_configuration(space, kept, accelerator_id), space.catalog
            )
        return found

    def get_columns(self, space: SearchSpace, kept: tuple[KeptConfiguration, ...]) -> SearchColumns:
        """Returns the kept configurations as arrays, cached between rankings of one search."""
        found = self._columns
        if found is None or found.kept is not kept:
            found = self._columns = build_columns(space, kept)
        return found

    def get_machines(self, space: SearchSpace, asked: ClusterInput, site: Site) -> MachinePower | None:
        """Returns the machines of a cluster at a site, or None if their power is unknown."""
        key = (asked.model_dump_json(), site.cooling, site.fabric_watts_per_device)
        if key not in self._machines:
            catalog = apply_calibrations(space.catalog, asked)
            found = resolve_cluster(asked, catalog, AnswerNotes())
            limit = found.accelerator.power_limit_watts
            self._machines[key] = (
                None if limit is None else build_machines(found, site, catalog.curves, exact(limit), limit)[0]
            )
        return self._machines[key]


def run_configuration(configuration: RequestConfiguration, catalog: CatalogView) -> EvaluatedConfiguration:
    """Returns the rates of a configuration."""
    question = configuration.throughput
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    return EvaluatedConfiguration(configuration, catalog, run, estimate_draw(run), {}, {})
