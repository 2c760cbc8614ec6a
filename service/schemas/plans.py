"""Requests of plans: the search for the best configuration under constraints."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.planning.parallelism import PipelineSchedule, Sharding
from service.planning.precision import TrainingPrecision
from service.schemas.base import (
    CatalogName,
    CurrencyCode,
    Degree,
    Instant,
    MoneyInput,
    Positive,
    PositiveInteger,
    StrictModel,
    Text,
)
from service.schemas.frontier import StorageSearch
from service.schemas.holdings import EgressInput, StorageInput
from service.schemas.purchase import Purchase
from service.schemas.references import ClusterInput, ModelReference, ParallelismInput
from service.schemas.rental import Rental, SpotTerms
from service.schemas.site import RunSiteInput
from service.schemas.what_if import StartWindow
from service.schemas.workloads import RecomputationInput, WorkloadInput

_INT64 = {"format": "int64"}
_Degrees = Annotated[list[Degree], Field(min_length=1, max_length=64)]

PlanGoal = Literal["cheapest", "fastest", "cleanest", "fewest_devices", "pareto"]


class OwnedNodes(StrictModel):
    """Machines that are already available."""

    name: Text
    """Name of the machines in the answer."""
    cluster: ClusterInput
    """One of the machines: its devices, their number and their links. `accelerator_count` is that of all
    machines: the most that a plan takes."""
    site: RunSiteInput | MISSING = MISSING
    """Building that houses the machines. The cost of their electricity is part of the cost of a plan."""
    purchase: Purchase | MISSING = MISSING
    """Price of the machines. With `ownership` the run bears its share of it. If left out, only electricity
    counts."""


class RentedDevices(StrictModel):
    """Devices that can be rented on terms that are no offer of the catalog."""

    name: Text
    """Name of the devices in the answer."""
    cluster: ClusterInput
    """Devices and their links. `accelerator_count` is the most that can be rented."""
    rental: Rental
    """Terms of the rental."""
    provider: Text | MISSING = MISSING
    """Provider that rents the devices out. It is compared with `providers` of the constraints."""
    region: Text | MISSING = MISSING
    """Region of the devices. It is compared with `regions` of the constraints and of the sites."""


class RegionSite(StrictModel):
    """Building that houses rented devices of some regions, for their energy and carbon."""

    regions: Annotated[list[Text], Field(min_length=1, max_length=100)]
    """Names of the regions, as offers give them."""
    site: RunSiteInput
    """Building of the devices. Its electricity is paid by the provider and is not part of the cost of a
    plan."""


class PlanConstraints(StrictModel):
    """Constraints of a configuration. A constraint that is left out does not apply."""

    budget: MoneyInput | MISSING = MISSING
    """Highest cost of the run."""
    duration_seconds: Positive | MISSING = MISSING
    """Longest duration of a training run, interruptions included."""
    finish_by: Instant | MISSING = MISSING
    """Latest end of a training run. Needs `starts_at` or `window`."""
    accelerator_count: Degree | MISSING = MISSING
    """Largest number of devices."""
    providers: Annotated[list[Text], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Providers whose offers are considered. Defaults to all providers of the catalog."""
    regions: Annotated[list[Text], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Regions whose offers are considered. Defaults to all regions."""
    purchase_options: (
        Annotated[
            list[Literal["on_demand", "spot", "reserved", "committed", "capacity_block"]],
            Field(min_length=1, max_length=5),
        ]
        | MISSING
    ) = MISSING
    """Purchase options whose offers are considered. Defaults to all of them."""
    headroom_share: Annotated[float, Field(ge=0.0, le=0.9)] | MISSING = MISSING
    """Smallest share of the usable memory of a device that is left free; for a service, of the part that its
    engine may use (`memory_fraction`). Defaults to 0.05 for the configurations of the search."""
    facility_kw: Positive | MISSING = MISSING
    """Highest power at the meter of the building, hosts and cooling included."""
    location_based_kg_co2e: Positive | MISSING = MISSING
    """Highest location-based emissions of the electricity."""


class TrainingSearch(StrictModel):
    """Settings of a training run to search. A setting that is left out takes the values usual in practice."""

    tensor: _Degrees | MISSING = MISSING
    """Tensor-parallel degrees. Defaults to those that divide a node."""
    pipeline: _Degrees | MISSING = MISSING
    """Numbers of pipeline stages. Defaults to those that divide the cluster, up to the blocks of the
    model."""
    context: _Degrees | MISSING = MISSING
    """Numbers of devices that share a sequence. Defaults to 1, and to powers of 2 for sequences of 32,768
    tokens and more."""
    expert: _Degrees | MISSING = MISSING
    """Numbers of replicas that the experts are spread over. Defaults to those that divide the experts."""
    sequence_parallel: Annotated[list[bool], Field(min_length=1, max_length=2)] | MISSING = MISSING
    """Settings of sequence parallelism. Defaults to true where `tensor` is above 1."""
    shardings: Annotated[list[Sharding], Field(min_length=1, max_length=5)] | MISSING = MISSING
    """Shardings of the training state. Defaults to none, zero_1 and zero_3."""
    sharding_group_sizes: _Degrees | MISSING = MISSING
    """Sizes of a sharding group under hybrid sharding. Defaults to the devices of a node."""
    pipeline_schedules: Annotated[list[PipelineSchedule], Field(min_length=1, max_length=4)] | MISSING = (
        MISSING
    )
    """Pipeline schedules. Defaults to one_f_one_b and interleaved."""
    virtual_stages: _Degrees | MISSING = MISSING
    """Virtual stages under the interleaved schedule. Defaults to 2 and 4."""
    micro_batch_sizes: _Degrees | MISSING = MISSING
    """Micro-batch sizes. Defaults to 1, 2, 4 and 8, and the size of the workload."""
    recomputations: Annotated[list[RecomputationInput], Field(min_length=1, max_length=16)] | MISSING = (
        MISSING
    )
    """Recomputation strategies. Defaults to none, selective and full."""
    precisions: Annotated[list[TrainingPrecision], Field(min_length=1, max_length=8)] | MISSING = MISSING
    """Precisions that are allowed. Defaults to the precision of the workload."""


class ServingSearch(StorageSearch):
    """Settings of a service to search. A setting that is left out takes the values usual in practice."""

    tensor: _Degrees | MISSING = MISSING
    """Tensor-parallel degrees. Defaults to those that divide a node."""
    pipeline: _Degrees | MISSING = MISSING
    """Numbers of pipeline stages. Defaults to 1, or to whole nodes if no replica fits into one node."""
    expert: _Degrees | MISSING = MISSING
    """Numbers of replicas that the experts are spread over. Defaults to those that divide the experts."""
    expert_tensor: _Degrees | MISSING = MISSING
    """Devices that each expert is divided over. Defaults to 1 and the tensor-parallel degree."""


class PlanSearch(StrictModel):
    """Settings to search, and limits of the search."""

    accelerators: Annotated[list[CatalogName], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Accelerators of the catalog to rent. Defaults to all with offers that the constraints allow."""
    accelerator_counts: Annotated[list[Degree], Field(min_length=1, max_length=64)] | MISSING = MISSING
    """Numbers of devices of a training run. Defaults to whole nodes in doublings, up to 16,384, and to all
    nodes of a supply. A service takes the fewest devices that meet its service levels."""
    training: TrainingSearch = TrainingSearch()
    """Settings of a training workload to search."""
    serving: ServingSearch = ServingSearch()
    """Settings of a service to search."""
    offers: bool = True
    """Set to false to leave out the offers of the catalog, beside `owned` and `rented`."""
    spot: SpotTerms | MISSING = MISSING
    """Interruptions of spot devices of the catalog. Without it, spot offers are considered only if
    `purchase_options` of the constraints names spot, at the rent of a run without interruptions."""
    depth: Annotated[int, Field(ge=1, le=100, json_schema_extra=_INT64)] = 10
    """Configurations of one supply and number of devices that are ranked individually. They become the ranked
    rows, and the sensitivity is computed over them."""
    rows_per_supply: Annotated[int, Field(ge=1, le=100, json_schema_extra=_INT64)] = 3
    """Most ranked rows of one supply, to leave room for others. A Pareto set ignores the limit."""
    rows: Annotated[int, Field(ge=1, le=200, json_schema_extra=_INT64)] = 10
    """Most ranked rows."""


class SensitivityAssumption(StrictModel):
    """A change of an assumption, to see its effect on the choice."""

    kind: Literal["price", "time", "electricity_price", "carbon_intensity", "interruption_rate"]
    """Assumption: rent or price of the devices of a supply; time of the work on an accelerator; price or
    emissions of a kWh, if a figure is given or known; interruptions of spot devices."""
    of: Text | MISSING = MISSING
    """Supply, accelerator or site that the assumption is about. Defaults to all of them."""
    factor: Annotated[float, Field(ge=0.001, le=1000.0)]
    """Factor that the assumption is multiplied by."""


class GivenConfiguration(StrictModel):
    """A configuration to rank with the others, such as the one in use."""

    name: Text
    """Name of the configuration in the answer."""
    supply: Text | MISSING = MISSING
    """Name of an `owned` or `rented` supply, or id of an offer. Defaults to the supply on which the
    configuration does best."""
    cluster: ClusterInput
    """Cluster that the configuration runs on."""
    parallelism: ParallelismInput
    """Layout of the configuration."""
    workload: WorkloadInput
    """Workload of the configuration: the same work, in its own batch, precision and recomputation."""


class PlanRequest(StrictModel):
    """Request for the best configuration for some work."""

    model: ModelReference
    """Model that is trained or served."""
    workload: WorkloadInput
    """Work of the model. For training: its total and its global batch. For serving: its load and its service
    levels. Without `request_seconds`, the levels of the configurations of the search default to a first token
    within 2 s and 0.2 s a further token; a search that finds none within them ranks without these and warns.
    Settings that are searched replace those given here."""
    goal: PlanGoal
    """Objective: least cost, least time (for a service: of a request), least emissions of the electricity,
    fewest devices, or every configuration that no other exceeds in cost, time and emissions."""
    constraints: PlanConstraints = PlanConstraints()
    """Constraints of the configurations."""
    search: PlanSearch = PlanSearch()
    """Settings to search, and limits of the search."""
    owned: Annotated[list[OwnedNodes], Field(max_length=50)] = []
    """Machines that are already available."""
    rented: Annotated[list[RentedDevices], Field(max_length=50)] = []
    """Devices that can be rented on terms that are no offer of the catalog."""
    sites: Annotated[list[RegionSite], Field(max_length=100)] = []
    """Buildings of rented devices by region."""
    site: RunSiteInput | MISSING = MISSING
    """Building of rented devices in other regions."""
    storage: StorageInput | MISSING = MISSING
    """Price of storing data and checkpoints."""
    egress: EgressInput | MISSING = MISSING
    """Price of data that leave the provider."""
    starts_at: Instant | MISSING = MISSING
    """Start of the run."""
    window: StartWindow | MISSING = MISSING
    """Possible starts of the run. The best one is chosen for each configuration."""
    currency_code: CurrencyCode | MISSING = MISSING
    """Currency of the costs, at the exchange rates of the catalog. Defaults to the currency of the budget,
    else USD."""
    given: Annotated[list[GivenConfiguration], Field(max_length=20)] = []
    """Configurations to rank with the others."""
    assumptions: Annotated[list[SensitivityAssumption], Field(max_length=20)] = []
    """Changes of assumptions to try."""
    most_candidates: Annotated[PositiveInteger, Field(le=100_000_000)] = 10_000_000
    """Largest number of candidates. A larger search is refused, and the problem names the list that makes it
    so large."""
