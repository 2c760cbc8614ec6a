"""Shapes of benchmark runs, results, suites and comparisons."""

from typing import Annotated, Literal

from pydantic import MISSING, AwareDatetime, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from service.benchmarks.figures import ComparisonVerdict
from service.benchmarks.verdicts import ResultVerdict
from service.kit.http.pages import NUMBER, WHOLE, NextPageToken, PageQuery, build_number_validator
from service.protocol.base import Uuid
from service.protocol.leases import BenchmarkProgress
from service.protocol.nodes import DeviceKind
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import BenchmarkSuite
from service.schemas.base import Integer, ResourceId, StrictModel, Text

BenchmarkRunState = TypeAliasType(
    "BenchmarkRunState", Literal["waiting", "running", "completed", "failed", "cancelled", "dead"]
)
BenchmarkResultStatus = TypeAliasType(
    "BenchmarkResultStatus", Literal["ok", "failed", "timeout", "unsupported"]
)
ResultLeaseStanding = TypeAliasType("ResultLeaseStanding", Literal["current", "late", "unknown"])
BenchmarkMetric = TypeAliasType(
    "BenchmarkMetric", Literal["flops_per_second", "bytes_per_second", "seconds", "bytes", "watts"]
)
MetricDirection = Literal["higher", "lower"]
ShortText = Annotated[str, Field(max_length=500)]
Digest = Annotated[str, Field(max_length=64)]
OPTIONAL_ID = r"^([a-z0-9][a-z0-9._-]{0,99})?$"
ResourceIds = Annotated[list[ResourceId], Field(max_length=50)]


class BenchmarkSuitePage(StrictModel):
    """The suites that there are."""

    items: list[BenchmarkSuite]
    """Suites in order of id."""
    next_page_token: NextPageToken


class BenchmarkRunRequest(StrictModel):
    """A run to ask for."""

    suite_id: ResourceId
    """Suite to run."""
    node_id: ResourceId | MISSING = MISSING
    """Node that is to run it; the first free one with the device of the suite if it is left out."""
    note: Text | MISSING = MISSING
    """What the run is for."""


class BenchmarkFigure(StrictModel):
    """What a run says about one benchmark, computed by the service from the raw samples."""

    benchmark: ResourceId
    """Name in the suite."""
    metric: BenchmarkMetric
    """What the figure is, with its unit."""
    direction: MetricDirection
    """Whether more or less of it is better."""
    value: float
    """Middle figure of the repeats."""
    lowest: float
    """Of the repeats."""
    highest: float
    """Of the repeats."""
    relative_spread: float | MISSING = MISSING
    """Highest less lowest over the value, the uncertainty of it; absent with one repeat."""
    repeats: Integer
    """Repeats that count."""
    result_verdict: ResultVerdict | MISSING = MISSING
    """The worst verdict on one of the repeats; absent until all of them are validated."""


class BenchmarkRun(StrictModel):
    """A suite, run once on one node."""

    id: ResourceId
    suite_id: ResourceId
    """Suite that is run."""
    suite_version: Integer
    """Version of the suite when the run was asked for."""
    device: DeviceKind
    """Kind of device that the suite is for."""
    seed: Integer
    """What the input data of the benchmarks are made from."""
    node_id: ResourceId | MISSING = MISSING
    """Node that runs it: the one that was asked for, or the last that took it."""
    note: Text | MISSING = MISSING
    re_run_of: ResourceId | MISSING = MISSING
    """The run whose suspects it measures again; validation asks for at most two."""
    state: BenchmarkRunState
    """A `dead` run was lost too often; its results so far are kept."""
    attempt: Integer
    """How many times a node has taken it."""
    cancel_requested: bool
    """Whether it is to end."""
    progress: list[BenchmarkProgress]
    """How far each benchmark is, as the node says."""
    reason: ShortText | MISSING = MISSING
    """Why it failed."""
    detail: ShortText | MISSING = MISSING
    """Why it failed, in words."""
    created_at: AwareDatetime
    begun_at: AwareDatetime | MISSING = MISSING
    """When a node took it."""
    finished_at: AwareDatetime | MISSING = MISSING
    """When it ended."""
    figures: list[BenchmarkFigure] | MISSING = MISSING
    """Of the latest attempt that measured anything; absent from lists."""


class BenchmarkRunPage(StrictModel):
    """A page of runs."""

    items: list[BenchmarkRun]
    """Runs, the newest first."""
    next_page_token: NextPageToken


class BenchmarkRunQuery(PageQuery):
    """Filters of runs."""

    state: Annotated[list[BenchmarkRunState], Field(max_length=6)] = []
    """States to list."""
    node_id: ResourceIds = []
    """Nodes that run them, or are to."""
    suite_id: ResourceIds = []
    """Suites to list."""


class SampleSummary(StrictModel):
    """What the samples say: seconds of one execution, or readings in the unit of the metric."""

    size: Integer
    """How many there are."""
    minimum: float
    """The lowest."""
    q1: float
    """Lower quartile."""
    median: float
    """The middle one."""
    q3: float
    """Upper quartile."""
    maximum: float
    """The highest."""
    mean: float
    """Arithmetic mean."""
    standard_deviation: float
    """Of all of them."""
    median_absolute_deviation: float
    """Middle distance from the median."""
    p95: float
    """95th percentile."""
    p99: float
    """99th percentile."""
    median_low: float
    """Lower end of the 95% confidence interval of the median."""
    median_high: float
    """Upper end of the 95% confidence interval of the median."""
    drift: float
    """Change over the window as a share of the median."""
    autocorrelation: float
    """Of each sample with the next."""


class MeasurementConditions(StrictModel):
    """How and under which conditions a result was measured, as its node says; middle readings."""

    worker_version: ShortText
    """Version of the worker."""
    accelerator_index: Integer | MISSING = MISSING
    """In the inventory of the node."""
    concurrent_accelerators: Integer
    """Measured at the same time, this one included; 0 without any."""
    library: ShortText | MISSING = MISSING
    """What ran."""
    algorithm: ShortText | MISSING = MISSING
    """What the library chose."""
    math_mode: ShortText | MISSING = MISSING
    """How it multiplies."""
    accumulation: ShortText | MISSING = MISSING
    """Type that it adds in."""
    data: ShortText | MISSING = MISSING
    """Distribution of the input."""
    timer: ShortText | MISSING = MISSING
    """What took the time."""
    warmup_seconds: float | MISSING = MISSING
    """The same work, run before the first sample."""
    inner_iterations: Integer | MISSING = MISSING
    """Executions in one sample."""
    stop_reason: ShortText | MISSING = MISSING
    """Why there are no more samples."""
    discarded_samples: Integer | MISSING = MISSING
    """Samples that do not count."""
    flush_bytes: Integer | MISSING = MISSING
    """Overwritten before each sample, so that nothing of it is cached."""
    rotated_buffers: Integer | MISSING = MISSING
    """Buffers that take turns."""
    uses_graph: bool | MISSING = MISSING
    """Whether the executions were launched as a graph."""
    threads: Integer | MISSING = MISSING
    """Threads of the host that worked."""
    correctness_passed: bool | MISSING = MISSING
    """Whether what was computed is right."""
    largest_relative_error: float | MISSING = MISSING
    """Against the reference."""
    window_seconds: float | MISSING = MISSING
    """The window of the readings below."""
    sm_clock_hz: float | MISSING = MISSING
    """Clock of the multiprocessors."""
    cpu_clock_hz: float | MISSING = MISSING
    """Clock of the processors, on a node without accelerators."""
    memory_clock_hz: float | MISSING = MISSING
    """Clock of the memory."""
    temperature_celsius: float | MISSING = MISSING
    """Of the device."""
    memory_temperature_celsius: float | MISSING = MISSING
    """Of its memory."""
    power_watts: float | MISSING = MISSING
    """By the sensor."""
    energy_joules: float | MISSING = MISSING
    """By the energy counter."""
    energy_power_watts: float | MISSING = MISSING
    """By the energy counter over the time between its readings."""
    ecc_corrected: Integer | MISSING = MISSING
    """Errors of memory that were corrected."""
    ecc_uncorrected: Integer | MISSING = MISSING
    """Errors of memory that were not."""
    pcie_generation: Integer | MISSING = MISSING
    """Under load."""
    pcie_width: Integer | MISSING = MISSING
    """Lanes, under load."""
    other_processes: Integer | MISSING = MISSING
    """Processes of others on the device."""
    load_average: float | MISSING = MISSING
    """Of the host, one minute."""
    throttle_sw_power_cap_seconds: float | MISSING = MISSING
    """Time at a lower clock for the power limit."""
    throttle_sw_thermal_seconds: float | MISSING = MISSING
    """Time at a lower clock for the temperature."""
    throttle_hw_thermal_seconds: float | MISSING = MISSING
    """Time at a lower clock for the temperature, by the hardware."""
    throttle_hw_power_brake_seconds: float | MISSING = MISSING
    """Time at a lower clock for the power supply."""
    throttle_sync_boost_seconds: float | MISSING = MISSING
    """Time at a lower clock for other devices."""


class ValidationFinding(StrictModel):
    """A check that did not pass, or a label."""

    rule: ShortText
    """Name of the check, such as physics.above_dense_peak."""
    verdict: ResultVerdict
    """The best verdict that it leaves; a label leaves `accepted`."""
    detail: ShortText
    """What was seen, with its unit."""
    observed: float | MISSING = MISSING
    """What was seen."""
    limit: float | MISSING = MISSING
    """What it was held against."""


class UncheckedValidationRule(StrictModel):
    """A check that could not be made: neither a pass nor a finding."""

    rule: ShortText
    """Name of the check."""
    detail: ShortText
    """What is unknown."""


class BenchmarkResultValidation(StrictModel):
    """Whether a result is a measurement of its device, and why."""

    verdict: ResultVerdict
    """Only what is `accepted` enters a calibration. `suspect` is measured again, and is accepted once two of
    three runs agree; `evidence_only` is true, but not of the device alone; `rejected` cannot be true."""
    findings: list[ValidationFinding]
    """Every check that did not pass."""
    unchecked: list[UncheckedValidationRule]
    """Checks that could not be made."""
    agreeing_run_ids: list[ResourceId]
    """Other runs of the same benchmark on the same device that came to the same figure."""
    rules_version: Integer
    """Version of the rules."""
    validated_at: AwareDatetime
    """By the clock of the service."""


class BenchmarkResult(StrictModel):
    """One repeat of one benchmark."""

    id: Uuid
    content_sha256: Digest
    """Digest of the bytes that the node sent."""
    run_id: ResourceId
    """Benchmark run that it says it is of."""
    attempt: Integer
    """Attempt of the run."""
    fencing_token: Integer
    """Of the lease that it says it was measured under."""
    benchmark: ResourceId
    """Name in the suite."""
    repeat: Integer
    """Counted from 1."""
    lease: ResultLeaseStanding
    """What the lease was when the result came; only what was measured under a `current` one counts."""
    conflicts_with: Uuid | MISSING = MISSING
    """The result that came first for the same repeat of the same attempt; this one does not count."""
    is_counted: bool
    """Whether figures are computed from it."""
    node_id: ResourceId
    """Node that measured it."""
    suite_id: ResourceId
    """Suite of the benchmark."""
    suite_version: Integer
    """Version of the suite."""
    device: DeviceKind
    """Kind of device that was measured."""
    hardware: ShortText | MISSING = MISSING
    """What the driver calls it."""
    hardware_sha256: Digest | MISSING = MISSING
    """Digest of the numbers that identify it: equal ones can be compared."""
    work_sha256: Digest
    """Digest of the work: results of equal work can be compared."""
    metric: BenchmarkMetric
    """What the figure is, with its unit."""
    direction: MetricDirection
    """Whether more or less of it is better."""
    status: BenchmarkResultStatus
    """Whether there is a measurement."""
    reason: ShortText | MISSING = MISSING
    """Why there is none."""
    figure: float | MISSING = MISSING
    """Computed by the service from the raw samples."""
    summary: SampleSummary | MISSING = MISSING
    """Computed by the service from the raw samples."""
    conditions: MeasurementConditions
    """How it was measured."""
    started_at: AwareDatetime
    """By the clock of the node."""
    finished_at: AwareDatetime
    """By the clock of the node."""
    received_at: AwareDatetime
    """By the clock of the service."""
    validation: BenchmarkResultValidation | MISSING = MISSING
    """Absent until it has been validated, and where nothing was measured."""


class StoredBenchmarkResult(BenchmarkResult):
    """One repeat of one benchmark, with the record as the node sent it."""

    record: BenchmarkResultReport
    """Raw samples and all that was recorded with them."""


class BenchmarkResultPage(StrictModel):
    """A page of results."""

    items: list[BenchmarkResult]
    """Results, the last received first."""
    next_page_token: NextPageToken


class ResultFilter(BaseModel):
    """Filters of results."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    run_id: ResourceIds = []
    """Benchmark runs."""
    node_id: ResourceIds = []
    """Nodes."""
    suite_id: ResourceIds = []
    """Suites."""
    benchmark: ResourceIds = []
    """Names of benchmarks."""
    status: Annotated[list[BenchmarkResultStatus], Field(max_length=4)] = []
    """Whether there is a measurement."""
    lease: Annotated[list[ResultLeaseStanding], Field(max_length=3)] = []
    """What the lease was when the result came."""
    verdict: Annotated[list[ResultVerdict], Field(max_length=4)] = []
    """What validation made of it."""

    def get_allowed_values(self) -> dict[str, list[str]]:
        """Values that each column may have."""
        return {name: list(getattr(self, name)) for name in ResultFilter.model_fields if name != "verdict"}


class BenchmarkResultQuery(ResultFilter, PageQuery):
    """Filters of a page of results."""


class ExportQuery(ResultFilter):
    """What is exported, and as what."""

    format: Literal["csv", "parquet"] = "csv"
    """Format of the table."""


class ComparisonQuery(BaseModel):
    """What is compared."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    benchmark: ResourceId
    """Name of the benchmark."""
    node_id: Annotated[str, Field(pattern=OPTIONAL_ID, max_length=100)] = ""
    """One node, over time; every node of the same hardware if it is left out."""
    baseline_run_id: Annotated[str, Field(pattern=OPTIONAL_ID, max_length=100)] = ""
    """The run that the others are held against; the first that measured it if it is left out."""
    runs: Annotated[
        int, Field(ge=1, le=500, json_schema_extra={"format": "int64"}), build_number_validator(WHOLE)
    ] = 100
    """How many runs are compared, the last ones."""


class BenchmarkComparisonRun(StrictModel):
    """One run beside the baseline."""

    run_id: ResourceId
    """Benchmark run."""
    node_id: ResourceId
    """Node that measured it."""
    suite_version: Integer
    """Version of the suite."""
    received_at: AwareDatetime
    """When the first of its results came."""
    value: float
    """Middle figure of the repeats."""
    lowest: float
    """Of the repeats."""
    highest: float
    """Of the repeats."""
    relative_spread: float | MISSING = MISSING
    """Highest less lowest over the value; absent with one repeat."""
    repeats: Integer
    """Repeats that count."""
    sample_minimum: float
    """Lowest sample of all repeats: seconds of one execution, or a reading."""
    sample_median: float
    """Middle one of the medians of the repeats."""
    sample_q3: float
    """Highest upper quartile of the repeats."""
    has_clocks: bool
    """Whether the clock of both runs is known, so that times are compared in cycles too."""
    verdict: ComparisonVerdict
    """`slower` and `faster` where the samples from minimum to upper quartile lie apart, in time and in
    cycles; `same` where each median lies among the samples of the other; else `ambiguous`. Of readings
    `lower` and `higher`."""
    relative_change: float | MISSING = MISSING
    """Value over that of the baseline, less one."""


class BenchmarkComparison(StrictModel):
    """The runs of one benchmark on equal hardware."""

    benchmark: ResourceId
    """Name of the benchmark."""
    metric: BenchmarkMetric
    """What the figures are, with their unit."""
    direction: MetricDirection
    """Whether more or less of it is better."""
    work_sha256: Digest
    """Digest of the work, which is the same in all of them."""
    hardware: ShortText | MISSING = MISSING
    """What the driver calls it."""
    hardware_sha256: Digest | MISSING = MISSING
    """Digest of the numbers that identify it; absent where they are unknown, and one node is compared."""
    baseline: BenchmarkComparisonRun
    """The run that the others are held against."""
    runs: list[BenchmarkComparisonRun]
    """Runs in the order of time."""


class RegressionQuery(BaseModel):
    """What is looked at."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    node_id: ResourceIds = []
    """Nodes; every node of the tenant if it is left out."""
    benchmark: ResourceIds = []
    """Names of benchmarks; all of them if it is left out."""
    least_change: Annotated[float, Field(ge=0.001, le=1), build_number_validator(NUMBER)] = 0.05
    """How much worse a figure is at least, as a share of the other."""


class BenchmarkRegression(StrictModel):
    """A figure that is worse than those before it on its node, or than those of equal nodes."""

    against: Literal["earlier_runs", "other_nodes"]
    """Over time, or across nodes with equal hardware."""
    benchmark: ResourceId
    """Name of the benchmark."""
    metric: BenchmarkMetric
    """What the figures are, with their unit."""
    direction: MetricDirection
    """Whether more or less of it is better."""
    work_sha256: Digest
    """Digest of the work, which is the same in all of them."""
    hardware: ShortText | MISSING = MISSING
    """What the driver calls it."""
    node_id: ResourceId
    """Node that is worse."""
    run_id: ResourceId
    """Its last run of the benchmark."""
    received_at: AwareDatetime
    """When the first result of that came."""
    value: float
    """Its figure."""
    baseline_node_id: ResourceId
    """Node that it is held against: itself, or the middle one of the others."""
    baseline_run_id: ResourceId
    """Run that it is held against: the middle one of the earlier ones, or the last one of that node."""
    baseline_value: float
    """Figure of that."""
    compared: Integer
    """Earlier runs, or other nodes, of which that is the middle one."""
    relative_change: float
    """Value over that of the baseline, less one."""
    has_clocks: bool
    """Whether both clocks are known, so that a lower clock is told from slower work."""


class BenchmarkRegressionList(StrictModel):
    """What has become worse, the largest change first."""

    items: list[BenchmarkRegression]
    """Regressions."""
    results_considered: Integer
    """The last results that the answer rests on; rejected ones and those of conditions are left out."""
    since: AwareDatetime | MISSING = MISSING
    """When the first of them came."""
