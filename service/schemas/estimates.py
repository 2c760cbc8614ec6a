"""The four questions and their batches."""

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
    """Does it fit?"""

    model: ModelReference
    """What runs."""
    workload: WorkloadInput
    """What it is asked to do."""
    cluster: ClusterInput | MISSING = MISSING
    """Without a cluster there is no capacity, and so no verdict."""
    parallelism: ParallelismInput | MISSING = MISSING
    """Left out, a sensible layout is chosen and stated."""


class ScalingInput(StrictModel):
    """Asks for the same run on other numbers of accelerators. An empty object chooses them."""

    accelerator_counts: Annotated[list[Degree], Field(min_length=1, max_length=8)] | MISSING = MISSING
    """Numbers of accelerators; defaults to doublings, up to eight of them and to four times the cluster, of
    the smallest that the layout leaves and that holds the step."""
    time_limit_seconds: Positive = TIME_LIMIT_SECONDS
    """Longest run that is put up with before it is spread over more accelerators; two weeks when left out."""


class RunEstimateRequest(StrictModel):
    """What runs on what."""

    model: ModelReference
    """What runs."""
    workload: WorkloadInput
    """What it is asked to do."""
    cluster: ClusterInput
    """What it runs on."""
    parallelism: ParallelismInput | MISSING = MISSING
    """Left out, a sensible layout is chosen and stated."""
    efficiency: EfficiencyInput = ModelledEfficiency(source="modelled")
    """From measured runs when left out."""


class ThroughputEstimateRequest(RunEstimateRequest):
    """How fast will it go?"""

    scaling: ScalingInput | MISSING = MISSING
    """Left out, only the run that is asked for is answered."""
    solver: SolverInput = AnalyticSolver(kind="analytic")
    """How a served model is solved; by formulas when left out."""
    explain: bool = True
    """Whether to say what would help, and where the operators stand under the roofline. Each advice is an
    estimate of its own and takes most of the time: false for many questions."""


class CostEstimateRequest(RunEstimateRequest):
    """What will it cost?"""

    rental: Rental | MISSING = MISSING
    """What the devices cost rented."""
    purchase: Purchase | MISSING = MISSING
    """What the devices cost bought."""
    storage: StorageInput | MISSING = MISSING
    """What keeping data and checkpoints costs."""
    egress: EgressInput | MISSING = MISSING
    """What data that leave cost."""
    token_price_ids: Annotated[list[CatalogName], Field(max_length=20)] | MISSING = MISSING
    """Token prices of the catalog to set beside those of a served model; defaults to those of the model."""
    starts_at: Instant | MISSING = MISSING
    """When the run starts."""
    currency_code: CurrencyCode | MISSING = MISSING
    """Currency of the totals, at the catalog's exchange rates; that of the prices when left out, which then
    must be one."""


class CostComparisonRequest(StrictModel):
    """Which way of doing the same work costs least?"""

    baseline: CostEstimateRequest
    """What the others are compared with."""
    alternatives: Annotated[list[CostEstimateRequest], Field(min_length=1, max_length=8)]
    """The same model and the same tokens or requests, on other devices, in other layouts, on other terms."""


class BilledAccount(StrictModel):
    """Who is charged, for rows that accountants read."""

    billing_account_id: Text | MISSING = MISSING
    """Account that is charged; the tenant's id when left out."""
    billing_account_name: Text | MISSING = MISSING
    """Its name; the same as its id when left out."""


class CostExportRequest(CostEstimateRequest, BilledAccount):
    """The charges of a run as FOCUS rows."""


class UtilityBillRequest(CostEstimateRequest):
    """What will the run draw, emit and cost, rented or bought?"""

    site: RunSiteInput | MISSING = MISSING
    """The building; without it electricity and carbon are gaps."""
    load_profile: RunLoadInput = RunLoadInput()
    """The course of its power in time."""
    measured: MeasuredEnergyInput | MISSING = MISSING
    """What it was measured to take, in place of the estimate."""
    embodied: EmbodiedEmissionsInput = EmbodiedEmissionsInput()
    """What making the machines emitted."""


class UtilityBillExportRequest(UtilityBillRequest, BilledAccount):
    """The electricity of a run as FOCUS rows."""


class MemoryEstimateBatchRequest(StrictModel):
    """Several questions, answered in order."""

    requests: Annotated[list[MemoryEstimateRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Questions; one without an answer fails the batch."""


class ThroughputEstimateBatchRequest(StrictModel):
    """Several questions, answered in order."""

    requests: Annotated[list[ThroughputEstimateRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Questions; one without an answer fails the batch."""


class CostEstimateBatchRequest(StrictModel):
    """Several questions, answered in order."""

    requests: Annotated[list[CostEstimateRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Questions; one without an answer fails the batch."""


class UtilityBillBatchRequest(StrictModel):
    """Several questions, answered in order."""

    requests: Annotated[list[UtilityBillRequest], Field(min_length=1, max_length=BATCH_LIMIT)]
    """Questions; one without an answer fails the batch."""
