"""Requests of the four questions, and batches of them."""

from typing import Annotated

from pydantic import MISSING, Field

from service.planning.training.scaling import TIME_LIMIT_SECONDS
from service.schemas.base import (
    CatalogName,
    CurrencyCode,
    Degree,
    Instant,
    Positive,
    StrictModel,
    Text,
)
from service.schemas.carbon import EmbodiedEmissionsInput
from service.schemas.energy import MeasuredEnergyInput, RunLoadInput
from service.schemas.holdings import EgressInput, StorageInput
from service.schemas.load import AnalyticSolver, SolverInput
from service.schemas.purchase import Purchase
from service.schemas.references import (
    ClusterInput,
    EfficiencyInput,
    ModelledEfficiency,
    ModelReference,
    ParallelismInput,
)
from service.schemas.rental import Rental
from service.schemas.site import RunSiteInput
from service.schemas.workloads import WorkloadInput

BATCH_LIMIT = 500
"""Most questions of one batch."""


class MemoryEstimateRequest(StrictModel):
    """Request for the memory of a workload."""

    model: ModelReference
    """Model that is trained or served."""
    workload: WorkloadInput
    """Work of the model."""
    cluster: ClusterInput | MISSING = MISSING
    """Cluster that the workload runs on. Without it the answer has no capacity and does not say if the
    workload fits."""
    parallelism: ParallelismInput | MISSING = MISSING
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""


class ScalingInput(StrictModel):
    """Requests the same run on other numbers of accelerators. An empty object lets the service choose."""

    accelerator_counts: Annotated[list[Degree], Field(min_length=1, max_length=8)] | MISSING = MISSING
    """Numbers of accelerators. Defaults to doublings of the smallest number that the layout allows and that
    holds the step, up to eight of them and to four times the cluster."""
    time_limit_seconds: Positive = TIME_LIMIT_SECONDS
    """Longest acceptable run before it is spread over more accelerators, in seconds. Defaults to two
    weeks."""


class RunEstimateRequest(StrictModel):
    """Members that requests for speed and cost share: the model, its work and the cluster."""

    model: ModelReference
    """Model that is trained or served."""
    workload: WorkloadInput
    """Work of the model."""
    cluster: ClusterInput
    """Cluster that the workload runs on."""
    parallelism: ParallelismInput | MISSING = MISSING
    """Layout of the workload over the devices. Defaults to a sensible layout, which the answer states."""
    efficiency: EfficiencyInput = ModelledEfficiency(source="modelled")
    """Source of the efficiency of the devices. Defaults to measured runs."""


class ThroughputEstimateRequest(RunEstimateRequest):
    """Request for the speed of a workload."""

    scaling: ScalingInput | MISSING = MISSING
    """Other numbers of accelerators to answer. If left out, only the requested run is answered."""
    solver: SolverInput = AnalyticSolver(kind="analytic")
    """Solver of a served model. Defaults to formulas."""
    explain: bool = True
    """Adds advice, and the operators under the roofline. Each advice is an estimate of its own and takes most
    of the time: set to false for many requests."""


class CostEstimateRequest(RunEstimateRequest):
    """Request for the cost of a workload."""

    rental: Rental | MISSING = MISSING
    """Terms and price of renting the devices."""
    purchase: Purchase | MISSING = MISSING
    """Price of buying the devices."""
    storage: StorageInput | MISSING = MISSING
    """Price of storing data and checkpoints."""
    egress: EgressInput | MISSING = MISSING
    """Price of data that leave the provider."""
    token_price_ids: Annotated[list[CatalogName], Field(max_length=20)] | MISSING = MISSING
    """Token prices of the catalog to compare with the cost of a served model. Defaults to those of the
    model that are at most a year older than the newest of the catalog."""
    starts_at: Instant | MISSING = MISSING
    """Start of the run."""
    currency_code: CurrencyCode | MISSING = MISSING
    """Currency of the totals, at the exchange rates of the catalog. Defaults to the currency of the prices,
    which then must all have the same one."""


class CostComparisonRequest(StrictModel):
    """Request for a comparison of ways to do the same work."""

    baseline: CostEstimateRequest
    """Way that the others are compared with."""
    alternatives: Annotated[list[CostEstimateRequest], Field(min_length=1, max_length=8)]
    """Ways of doing the work with the same model and the same tokens or requests, on other devices, in other
    layouts or on other terms."""


class BilledAccount(StrictModel):
    """Account that is charged, for exported rows."""

    billing_account_id: Text | MISSING = MISSING
    """Id of the account that is charged. Defaults to the id of the tenant."""
    billing_account_name: Text | MISSING = MISSING
    """Name of the account. Defaults to its id."""


class CostExportRequest(CostEstimateRequest, BilledAccount):
    """Request for the charges of a run as FOCUS rows."""


class UtilityBillRequest(CostEstimateRequest):
    """Request for the energy, emissions and cost of a run, rented or bought."""

    site: RunSiteInput | MISSING = MISSING
    """Building that houses the run. Without it electricity and carbon are gaps."""
    load_profile: RunLoadInput = RunLoadInput()
    """Power of the run over time."""
    measured: MeasuredEnergyInput | MISSING = MISSING
    """Measured energy of the run, in place of the estimate."""
    embodied: EmbodiedEmissionsInput = EmbodiedEmissionsInput()
    """Emissions of making the machines."""


class UtilityBillExportRequest(UtilityBillRequest, BilledAccount):
    """Request for the electricity of a run as FOCUS rows."""


class MemoryEstimateBatchRequest(StrictModel):
    """Several requests for memory, answered in order."""

    requests: Annotated[list[MemoryEstimateRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Requests. If one of them has no answer, the batch fails."""


class ThroughputEstimateBatchRequest(StrictModel):
    """Several requests for throughput, answered in order."""

    requests: Annotated[list[ThroughputEstimateRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Requests. If one of them has no answer, the batch fails."""


class CostEstimateBatchRequest(StrictModel):
    """Several requests for cost, answered in order."""

    requests: Annotated[list[CostEstimateRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Requests. If one of them has no answer, the batch fails."""


class UtilityBillBatchRequest(StrictModel):
    """Several requests for utility bills, answered in order."""

    requests: Annotated[list[UtilityBillRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Requests. If one of them has no answer, the batch fails."""
