"""Requests and answers of benchmark runs, results, suites and comparisons."""

from typing import Annotated, Literal

from pydantic import MISSING, AwareDatetime, BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from service.benchmarks.figures import ComparisonVerdict
from service.benchmarks.verdicts import ResultVerdict
from service.kit.http.pages import NUMBER, WHOLE, NextPageToken, PageQuery, build_number_validator
from service.protocol.base import Uuid
from service.protocol.leases import BenchmarkProgress
from service.protocol.nodes import DeviceKind
from service.protocol.results import BenchmarkResultReport, LeaseStanding, ResultStatus
from service.protocol.suites import BenchmarkSuite, Metric, MetricDirection
from service.protocol.summary import SampleStatistics
from service.schemas.base import Integer, ResourceId, StrictModel, Text
from service.schemas.derived import derive_model

BenchmarkRunState = TypeAliasType(
    "BenchmarkRunState", Literal["waiting", "running", "completed", "failed", "cancelled", "dead"]
)
BenchmarkResultStatus = TypeAliasType("BenchmarkResultStatus", ResultStatus)
ResultLeaseStanding = TypeAliasType("ResultLeaseStanding", LeaseStanding)
BenchmarkMetric = TypeAliasType("BenchmarkMetric", Metric)
ShortText = Annotated[str, Field(max_length=500)]
Digest = Annotated[str, Field(max_length=64)]
OPTIONAL_ID = r"^([a-z0-9][a-z0-9._-]{0,99})?$"
ResourceIds = Annotated[list[ResourceId], Field(max_length=50)]


class BenchmarkSuitePage(StrictModel):
    """A page of benchmark suites."""

    items: list[BenchmarkSuite]
    """Suites in order of id."""
    next_page_token: NextPageToken


class BenchmarkRunRequest(StrictModel):
    """A request for a benchmark run."""

    suite_id: ResourceId
    """Suite to run."""
    node_id: ResourceId | MISSING = MISSING
    """Node that runs the suite. Defaults to the first free node with the device of the suite."""
    note: Text | MISSING = MISSING
    """Purpose of the run."""


class BenchmarkFigure(StrictModel):
    """The figure of one benchmark in a run, computed by the service from the raw samples."""

    benchmark: ResourceId
    """Name in the suite."""
    metric: BenchmarkMetric
    """Quantity and unit of the figure."""
    direction: MetricDirection
    """Direction in which a figure is better."""
    value: float
    """Middle figure of the repeats."""
    lowest: float
    """Lowest figure of the repeats."""
    highest: float
    """Highest figure of the repeats."""
    relative_spread: float | MISSING = MISSING
    """Highest minus lowest figure, divided by the value: its uncertainty. Absent with one repeat."""
    repeats: Integer
    """Number of repeats that count."""
    result_verdict: ResultVerdict | MISSING = MISSING
    """Worst verdict on a repeat; absent until all repeats are validated."""


class BenchmarkRun(StrictModel):
    """A suite, run once on one node."""

    id: ResourceId
    suite_id: ResourceId
    """Suite of the run."""
    suite_version: Integer
    """Version of the suite when the run was requested."""
    device: DeviceKind
    """Kind of device that the suite is for."""
    seed: Integer
    """Seed of the input data of the benchmarks."""
    node_id: ResourceId | MISSING = MISSING
    """Node of the run: the requested node, or the last that took it."""
    note: Text | MISSING = MISSING
    re_run_of: ResourceId | MISSING = MISSING
    """Run whose suspect results it measures again; validation requests at most two."""
    state: BenchmarkRunState
    """State of the run. A `dead` run was lost too often; its results so far are kept."""
    attempt: Integer
    """Number of times that a node has taken the run."""
    cancel_requested: bool
    """True if the cancellation of the run is requested."""
    progress: list[BenchmarkProgress]
    """Progress of each benchmark, as the node reports it."""
    reason: ShortText | MISSING = MISSING
    """Code of the reason that the run failed."""
    detail: ShortText | MISSING = MISSING
    """Reason in words."""
    created_at: AwareDatetime
    begun_at: AwareDatetime | MISSING = MISSING
    """Time at which a node took the run."""
    finished_at: AwareDatetime | MISSING = MISSING
    """Time at which the run ended."""
    figures: list[BenchmarkFigure] | MISSING = MISSING
    """Figures of the latest attempt that has measurements; absent from lists."""


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
    """Nodes of the runs to list."""
    suite_id: ResourceIds = []
    """Suites of the runs to list."""


class SampleSummary(
    derive_model("_SampleSummary", SampleStatistics, types={int: Integer}, members={})  # type: ignore[misc]
):
    """Statistics of samples: of seconds of one execution, or of readings in the unit of the metric."""


class MeasurementConditions(StrictModel):
    """Conditions under which a result was measured, as its node reports them; of readings, the middle one."""

    worker_version: ShortText
    """Version of the worker."""
    accelerator_index: Integer | MISSING = MISSING
    """Index of the accelerator in the inventory of the node."""
    concurrent_accelerators: Integer
    """Number of accelerators that were measured at the same time, this one included; 0 without any."""
    library: ShortText | MISSING = MISSING
    """Library that ran."""
    algorithm: ShortText | MISSING = MISSING
    """Algorithm that the library chose."""
    math_mode: ShortText | MISSING = MISSING
    """Mode of the multiplications."""
    accumulation: ShortText | MISSING = MISSING
    """Type of the accumulator."""
    data: ShortText | MISSING = MISSING
    """Distribution of the input."""
    timer: ShortText | MISSING = MISSING
    """Timer of the samples."""
    warmup_seconds: float | MISSING = MISSING
    """Duration of the warm-up: the same work, run before the first sample."""
    inner_iterations: Integer | MISSING = MISSING
    """Number of executions in one sample."""
    stop_reason: ShortText | MISSING = MISSING
    """Reason that there are no more samples."""
    discarded_samples: Integer | MISSING = MISSING
    """Number of samples that do not count."""
    flush_bytes: Integer | MISSING = MISSING
    """Bytes that are read before each sample, so that no input is cached."""
    rotated_buffers: Integer | MISSING = MISSING
    """Number of sets of input that take turns."""
    uses_graph: bool | MISSING = MISSING
    """True if the executions were launched as a graph."""
    threads: Integer | MISSING = MISSING
    """Number of threads of the host that did the work."""
    correctness_passed: bool | MISSING = MISSING
    """True if the computed result passed the comparison with a reference."""
    largest_relative_error: float | MISSING = MISSING
    """Largest error against the reference, relative to the scale of the result."""
    window_seconds: float | MISSING = MISSING
    """Duration of the window of the readings."""
    sm_clock_hz: float | MISSING = MISSING
    """Clock of the multiprocessors."""
    cpu_clock_hz: float | MISSING = MISSING
    """Clock of the processors, on a node without accelerators."""
    memory_clock_hz: float | MISSING = MISSING
    """Clock of the memory."""
    temperature_celsius: float | MISSING = MISSING
    """Temperature of the device."""
    memory_temperature_celsius: float | MISSING = MISSING
    """Temperature of the memory of the device."""
    power_watts: float | MISSING = MISSING
    """Power by the sensor, on most devices its average over one second."""
    power_instant_watts: float | MISSING = MISSING
    """Power by the sensor at the moment of a reading."""
    energy_joules: float | MISSING = MISSING
    """Energy by the energy counter."""
    energy_power_watts: float | MISSING = MISSING
    """Power by the energy counter, over the time between its readings."""
    ecc_corrected: Integer | MISSING = MISSING
    """Number of corrected errors of the memory."""
    ecc_uncorrected: Integer | MISSING = MISSING
    """Number of uncorrected errors of the memory."""
    pcie_generation: Integer | MISSING = MISSING
    """Generation of the bus under load."""
    pcie_width: Integer | MISSING = MISSING
    """Number of lanes under load."""
    other_processes: Integer | MISSING = MISSING
    """Number of other processes on the device."""
    load_average: float | MISSING = MISSING
    """Load average of the host over one minute."""
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
    """Best verdict that the finding allows; a label allows `accepted`."""
    detail: ShortText
    """Observation with its unit."""
    observed: float | MISSING = MISSING
    """Observed value."""
    limit: float | MISSING = MISSING
    """Limit that the observed value was compared with."""


class UncheckedValidationRule(StrictModel):
    """A check that could not be made: it neither passed nor found anything."""

    rule: ShortText
    """Name of the check."""
    detail: ShortText
    """Fact that is unknown."""


class BenchmarkResultValidation(StrictModel):
    """Verdict on a result as a measurement of its device, with its reasons."""

    verdict: ResultVerdict
    """Verdict on the result. Only an `accepted` result enters a calibration. A `suspect` result is measured
    again, and is accepted once two of three runs agree; an `evidence_only` result is true, but not of the
    device alone; a `rejected` result cannot be true."""
    findings: list[ValidationFinding]
    """Checks that did not pass."""
    unchecked: list[UncheckedValidationRule]
    """Checks that could not be made."""
    agreeing_run_ids: list[ResourceId]
    """Other runs of the same benchmark on the same device with the same figure."""
    rules_version: Integer
    """Version of the rules."""
    validated_at: AwareDatetime
    """Time of the validation by the clock of the service."""


class BenchmarkResult(StrictModel):
    """One repeat of one benchmark."""

    id: Uuid
    content_sha256: Digest
    """Digest of the bytes that the node sent."""
    run_id: ResourceId
    """Benchmark run that the result names."""
    attempt: Integer
    """Attempt of the run."""
    fencing_token: Integer
    """Fencing token of the lease that the result names."""
    benchmark: ResourceId
    """Name in the suite."""
    repeat: Integer
    """Number of the repeat, counted from 1."""
    lease: ResultLeaseStanding
    """Standing of the attempt: `current` if it counts for its run, `late` if its lease had ended when the
    result came or another attempt counts, `unknown` if it was not granted."""
    conflicts_with: Uuid | MISSING = MISSING
    """Result that came first for the same repeat of the same attempt; this one does not count."""
    is_counted: bool
    """True if figures are computed from the result."""
    node_id: ResourceId
    """Node that measured it."""
    suite_id: ResourceId
    """Suite of the benchmark."""
    suite_version: Integer
    """Version of the suite."""
    device: DeviceKind
    """Kind of device that was measured."""
    hardware: ShortText | MISSING = MISSING
    """Name of the hardware by its driver."""
    hardware_sha256: Digest | MISSING = MISSING
    """Digest of the numbers that identify the hardware: results with equal digests can be compared."""
    work_sha256: Digest
    """Digest of the work: results of equal work can be compared."""
    metric: BenchmarkMetric
    """Quantity and unit of the figure."""
    direction: MetricDirection
    """Direction in which a figure is better."""
    status: BenchmarkResultStatus
    """Status of the measurement."""
    reason: ShortText | MISSING = MISSING
    """Reason that there is no measurement."""
    figure: float | MISSING = MISSING
    """Figure that the service computes from the raw samples."""
    summary: SampleSummary | MISSING = MISSING
    """Statistics that the service computes from the raw samples."""
    conditions: MeasurementConditions
    """Conditions of the measurement."""
    started_at: AwareDatetime
    """Start by the clock of the node."""
    finished_at: AwareDatetime
    """End by the clock of the node."""
    received_at: AwareDatetime
    """Time of receipt by the clock of the service."""
    validation: BenchmarkResultValidation | MISSING = MISSING
    """Validation of the result; absent until it is done, and where nothing was measured."""


class StoredBenchmarkResult(BenchmarkResult):
    """One repeat of one benchmark, with the record as the node sent it."""

    record: BenchmarkResultReport
    """Record with the raw samples."""


class BenchmarkResultPage(StrictModel):
    """A page of results."""

    items: list[BenchmarkResult]
    """Results, the last received first."""
    next_page_token: NextPageToken


class ResultFilter(BaseModel):
    """Filters of results."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    run_id: ResourceIds = []
    """Benchmark runs of the results."""
    node_id: ResourceIds = []
    """Nodes of the results."""
    suite_id: ResourceIds = []
    """Suites of the results."""
    benchmark: ResourceIds = []
    """Names of benchmarks."""
    status: Annotated[list[BenchmarkResultStatus], Field(max_length=4)] = []
    """Statuses of the measurements."""
    lease: Annotated[list[ResultLeaseStanding], Field(max_length=3)] = []
    """Standings of the attempt."""
    verdict: Annotated[list[ResultVerdict], Field(max_length=4)] = []
    """Verdicts of the validation."""

    def get_allowed_values(self) -> dict[str, list[str]]:
        """Returns the values that each column may have."""
        return {name: list(getattr(self, name)) for name in ResultFilter.model_fields if name != "verdict"}


class BenchmarkResultQuery(ResultFilter, PageQuery):
    """Filters of a page of results."""


class ExportQuery(ResultFilter):
    """Results that are exported, and the format of the table."""

    format: Literal["csv", "parquet"] = "csv"
    """Format of the table."""


class ComparisonQuery(BaseModel):
    """The benchmark and the runs that are compared."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    benchmark: ResourceId
    """Name of the benchmark."""
    node_id: Annotated[str, Field(pattern=OPTIONAL_ID, max_length=100)] = ""
    """Node that is compared over time. Defaults to every node of the same hardware."""
    baseline_run_id: Annotated[str, Field(pattern=OPTIONAL_ID, max_length=100)] = ""
    """Run that the others are compared with. Defaults to the first run that measured the benchmark."""
    runs: Annotated[
        int, Field(ge=1, le=500, json_schema_extra={"format": "int64"}), build_number_validator(WHOLE)
    ] = 100
    """Number of runs that are compared, the last ones."""


class BenchmarkComparisonRun(StrictModel):
    """One run beside the baseline."""

    run_id: ResourceId
    """Benchmark run."""
    node_id: ResourceId
    """Node that measured it."""
    suite_version: Integer
    """Version of the suite."""
    received_at: AwareDatetime
    """Time at which the first of its results came."""
    value: float
    """Middle figure of the repeats."""
    lowest: float
    """Lowest figure of the repeats."""
    highest: float
    """Highest figure of the repeats."""
    relative_spread: float | MISSING = MISSING
    """Highest minus lowest figure, divided by the value; absent with one repeat."""
    repeats: Integer
    """Number of repeats that count."""
    sample_minimum: float
    """Lowest sample of all repeats: seconds of one execution, or a reading."""
    sample_median: float
    """Median of the medians of the repeats."""
    sample_q3: float
    """Highest upper quartile of the repeats."""
    has_clocks: bool
    """True if the clocks of both runs are known, so that times are compared in cycles too."""
    verdict: ComparisonVerdict
    """Verdict on the run: `slower` or `faster` where the samples from minimum to upper quartile lie apart, in
    time and in cycles; `same` where each median lies among the samples of the other; otherwise `ambiguous`.
    For readings, `lower` or `higher`."""
    relative_change: float | MISSING = MISSING
    """Value divided by that of the baseline, minus 1."""


class BenchmarkComparison(StrictModel):
    """The runs of one benchmark on equal hardware."""

    benchmark: ResourceId
    """Name of the benchmark."""
    metric: BenchmarkMetric
    """Quantity and unit of the figures."""
    direction: MetricDirection
    """Direction in which a figure is better."""
    work_sha256: Digest
    """Digest of the work, which is the same in all runs."""
    hardware: ShortText | MISSING = MISSING
    """Name of the hardware by its driver."""
    hardware_sha256: Digest | MISSING = MISSING
    """Digest of the numbers that identify the hardware; absent if they are unknown: one node is compared."""
    baseline: BenchmarkComparisonRun
    """Run that the others are compared with."""
    runs: list[BenchmarkComparisonRun]
    """Runs in the order of time."""


class RegressionQuery(BaseModel):
    """Filters of the figures in which regressions are looked for."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    node_id: ResourceIds = []
    """Nodes. Defaults to every node of the tenant."""
    benchmark: ResourceIds = []
    """Names of benchmarks. Defaults to all."""
    least_change: Annotated[float, Field(ge=0.001, le=1), build_number_validator(NUMBER)] = 0.05
    """Least change of a figure for the worse, as a share of the other figure."""


class BenchmarkRegression(StrictModel):
    """A figure that is worse than those before it on its node, or than those of equal nodes."""

    against: Literal["earlier_runs", "other_nodes"]
    """Figures that it is compared with: earlier runs of the node, or other nodes with equal hardware."""
    benchmark: ResourceId
    """Name of the benchmark."""
    metric: BenchmarkMetric
    """Quantity and unit of the figures."""
    direction: MetricDirection
    """Direction in which a figure is better."""
    work_sha256: Digest
    """Digest of the work, which is the same in all runs."""
    hardware: ShortText | MISSING = MISSING
    """Name of the hardware by its driver."""
    node_id: ResourceId
    """Node that is worse."""
    run_id: ResourceId
    """Its last run of the benchmark."""
    received_at: AwareDatetime
    """Time at which the first result of that run came."""
    value: float
    """Figure of that run."""
    baseline_node_id: ResourceId
    """Node that it is compared with: itself, or the middle one of the others."""
    baseline_run_id: ResourceId
    """Run that it is compared with: the middle one of the earlier ones, or the last one of that node."""
    baseline_value: float
    """Figure of the baseline."""
    compared: Integer
    """Number of earlier runs, or of other nodes, of which the baseline is the middle one."""
    relative_change: float
    """Value divided by that of the baseline, minus 1."""
    has_clocks: bool
    """True if both clocks are known, so that a lower clock can be told from slower work."""


class BenchmarkRegressionList(StrictModel):
    """Regressions, the largest change first."""

    items: list[BenchmarkRegression]
    """Regressions."""
    results_considered: Integer
    """Number of accepted and suspect results that the answer rests on, the last ones."""
    since: AwareDatetime | MISSING = MISSING
    """Time at which the first of these results came."""
