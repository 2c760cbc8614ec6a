"""The question for the best configuration under constraints: a plan."""

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
    """Machines that are there already."""

    name: Text
    """What the answer calls them."""
    cluster: ClusterInput
    """One of the machines: what its devices are, how many it holds and how they are joined. The
    accelerator_count is that of all of them: the most that a plan takes."""
    site: RunSiteInput | MISSING = MISSING
    """Where they stand; what their electricity costs is part of the cost of a plan."""
    purchase: Purchase | MISSING = MISSING
    """What they cost; with its ownership the run bears its share. Left out, only electricity counts."""


class RentedDevices(StrictModel):
    """Devices that can be rented on terms that are no offer of the catalog."""

    name: Text
    """What the answer calls them."""
    cluster: ClusterInput
    """What they are and how they are joined. The accelerator_count is the most that can be rented."""
    rental: Rental
    """The terms."""
    provider: Text | MISSING = MISSING
    """Who rents them out; compared with the providers of the constraints."""
    region: Text | MISSING = MISSING
    """Where they are; compared with the regions of the constraints, and of the sites."""


class RegionSite(StrictModel):
    """The building in which rented devices of some regions stand, for their energy and carbon."""

    regions: Annotated[list[Text], Field(min_length=1, max_length=100)]
    """Regions as offers name them."""
    site: RunSiteInput
    """The building; the price of its electricity is the provider's and not part of the cost of a plan."""


class PlanConstraints(StrictModel):
    """What a configuration has to keep to. What is left out does not bind."""

    budget: MoneyInput | MISSING = MISSING
    """The most that the run may cost."""
    duration_seconds: Positive | MISSING = MISSING
    """The longest that a training run may take, interruptions included."""
    finish_by: Instant | MISSING = MISSING
    """When a training run has to be done; needs starts_at or window."""
    accelerator_count: Degree | MISSING = MISSING
    """Most devices."""
    providers: Annotated[list[Text], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Providers whose offers count; all of the catalog's when left out."""
    regions: Annotated[list[Text], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Regions whose offers count; all when left out."""
    purchase_options: (
        Annotated[
            list[Literal["on_demand", "spot", "reserved", "committed", "capacity_block"]],
            Field(min_length=1, max_length=5),
        ]
        | MISSING
    ) = MISSING
    """Ways of paying whose offers count; all when left out."""
    headroom_share: Annotated[float, Field(ge=0.0, le=0.9)] = 0.0
    """Least share of what a training run may use of a device that it leaves free. Of a service the
    memory_fraction of its workload says how much the engine takes."""
    facility_kw: Positive | MISSING = MISSING
    """Most power at the meter of the building, that of hosts and cooling included."""
    location_based_kg_co2e: Positive | MISSING = MISSING
    """Most emissions of the electricity."""


class TrainingSearch(StrictModel):
    """What is varied of a training run. What is left out takes the values that practice knows."""

    tensor: _Degrees | MISSING = MISSING
    """Tensor-parallel degrees; defaults to those that divide a node."""
    pipeline: _Degrees | MISSING = MISSING
    """Pipeline stages; defaults to those that divide the cluster, up to the blocks of the model."""
    context: _Degrees | MISSING = MISSING
    """Devices that share a sequence; defaults to 1, and to powers of 2 for sequences of 32,768 and more."""
    expert: _Degrees | MISSING = MISSING
    """Replicas that the experts are spread over; defaults to those that divide them."""
    sequence_parallel: Annotated[list[bool], Field(min_length=1, max_length=2)] | MISSING = MISSING
    """Defaults to where tensor is above 1."""
    shardings: Annotated[list[Sharding], Field(min_length=1, max_length=5)] | MISSING = MISSING
    """Defaults to none, zero_1 and zero_3."""
    sharding_group_sizes: _Degrees | MISSING = MISSING
    """Under hybrid sharding; defaults to the devices of a node."""
    pipeline_schedules: Annotated[list[PipelineSchedule], Field(min_length=1, max_length=4)] | MISSING = (
        MISSING
    )
    """Defaults to one_f_one_b and interleaved."""
    virtual_stages: _Degrees | MISSING = MISSING
    """Under the interleaved schedule; defaults to 2 and 4."""
    micro_batch_sizes: _Degrees | MISSING = MISSING
    """Defaults to 1, 2, 4 and 8, and to that of the workload."""
    recomputations: Annotated[list[RecomputationInput], Field(min_length=1, max_length=16)] | MISSING = (
        MISSING
    )
    """Defaults to none, selective and full."""
    precisions: Annotated[list[TrainingPrecision], Field(min_length=1, max_length=8)] | MISSING = MISSING
    """Precisions that are allowed; defaults to that of the workload."""


class ServingSearch(StorageSearch):
    """What is varied of a service. What is left out takes the values that practice knows."""

    tensor: _Degrees | MISSING = MISSING
    """Tensor-parallel degrees; defaults to those that divide a node."""
    pipeline: _Degrees | MISSING = MISSING
    """Pipeline stages; defaults to 1, and where no replica fits into a node to whole nodes."""
    expert: _Degrees | MISSING = MISSING
    """Replicas that the experts are spread over; defaults to those that divide them."""
    expert_tensor: _Degrees | MISSING = MISSING
    """Devices that each expert is cut over; defaults to 1 and to the tensor-parallel degree."""


class PlanSearch(StrictModel):
    """What is varied beside layouts."""

    accelerators: Annotated[list[CatalogName], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Accelerators of the catalog to rent; defaults to all that have offers which the constraints allow."""
    accelerator_counts: Annotated[list[Degree], Field(min_length=1, max_length=64)] | MISSING = MISSING
    """Numbers of devices of a training run; defaults to whole nodes in doublings, up to 16,384, and to all
    nodes of a supply. A service takes the fewest that keep its levels."""
    training: TrainingSearch = TrainingSearch()
    """For a training workload."""
    serving: ServingSearch = ServingSearch()
    """For a service."""
    offers: bool = True
    """Whether devices are rented by the offers of the catalog, beside `owned` and `rented`."""
    spot: SpotTerms | MISSING = MISSING
    """How often spot devices of the catalog are taken back. Without it their offers count only where
    `purchase_options` of the constraints names spot, and their rent is that of a run that keeps them."""
    depth: Annotated[int, Field(ge=1, le=100, json_schema_extra=_INT64)] = 10
    """Configurations of one supply and number of devices that are told apart: ranked rows, and what the
    sensitivity is taken over."""
    rows_per_supply: Annotated[int, Field(ge=1, le=100, json_schema_extra=_INT64)] = 3
    """Most ranked rows of one supply, so that others are seen; of a Pareto set all count."""
    rows: Annotated[int, Field(ge=1, le=200, json_schema_extra=_INT64)] = 10
    """Most ranked rows."""


class SensitivityAssumption(StrictModel):
    """An assumption that is moved, to see what becomes of the choice."""

    kind: Literal["price", "time", "electricity_price", "carbon_intensity", "interruption_rate"]
    """Rent or price of the devices of a supply; time of the work on an accelerator; price of a kWh, and
    emissions of a kWh, where a figure is given or known; interruptions of spot devices."""
    of: Text | MISSING = MISSING
    """Which supply, accelerator or site; all of them when left out."""
    factor: Annotated[float, Field(ge=0.001, le=1000.0)]
    """What it is multiplied by."""


class GivenConfiguration(StrictModel):
    """A configuration to be ranked with the rest, such as the one in use."""

    name: Text
    """What the answer calls it."""
    supply: Text | MISSING = MISSING
    """Name of `owned` or `rented`, or the id of an offer; left out, the supply on which it does best."""
    cluster: ClusterInput
    """What it runs on."""
    parallelism: ParallelismInput
    """Its layout."""
    workload: WorkloadInput
    """The workload as it is run: the same work, in its own batch, precision and recomputation."""


class PlanRequest(StrictModel):
    """Which configuration does this work best?"""

    model: ModelReference
    """What is trained or served."""
    workload: WorkloadInput
    """The work. Of training its total and its global batch, of serving its load and its service levels; what
    the search varies takes the place of what is given here."""
    goal: PlanGoal
    """Least cost, least time (of a service: of a request), least emissions of the electricity, fewest
    devices, or all that no other betters in cost, time and emissions."""
    constraints: PlanConstraints = PlanConstraints()
    """What has to be kept to."""
    search: PlanSearch = PlanSearch()
    """What is varied."""
    owned: Annotated[list[OwnedNodes], Field(max_length=50)] = []
    """Machines that are there already."""
    rented: Annotated[list[RentedDevices], Field(max_length=50)] = []
    """Devices on terms that are no offer of the catalog."""
    sites: Annotated[list[RegionSite], Field(max_length=100)] = []
    """Buildings of rented devices by region."""
    site: RunSiteInput | MISSING = MISSING
    """The building of rented devices elsewhere."""
    storage: StorageInput | MISSING = MISSING
    """What keeping data and checkpoints costs."""
    egress: EgressInput | MISSING = MISSING
    """What data that leave cost."""
    starts_at: Instant | MISSING = MISSING
    """When the run starts."""
    window: StartWindow | MISSING = MISSING
    """Moments at which it may start; the best of them is chosen for each configuration."""
    currency_code: CurrencyCode | MISSING = MISSING
    """Currency of the costs, at the catalog's exchange rates; that of the budget, else USD."""
    given: Annotated[list[GivenConfiguration], Field(max_length=20)] = []
    """Configurations to be ranked with the rest."""
    assumptions: Annotated[list[SensitivityAssumption], Field(max_length=20)] = []
    """Assumptions that are moved."""
    most_candidates: Annotated[PositiveInteger, Field(le=100_000_000)] = 10_000_000
    """A search of more candidates is refused, with the list that makes it so large."""
