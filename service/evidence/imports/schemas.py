"""Requests and answers of imported evidence."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypeAliasType, TypedDict

from service.kit.http.pages import NextPageToken, PageQuery
from service.planning.hardware.collectives import Collective
from service.schemas.base import Integer, Positive, ResourceId, StrictModel, Text
from service.schemas.references import ClusterInput, ModelReference, ParallelismInput
from service.schemas.workloads import WorkloadInput

EvidenceFormat = TypeAliasType(
    "EvidenceFormat",
    Literal[
        "guidellm",
        "aiperf_json",
        "aiperf_csv",
        "vllm_bench",
        "inferencex",
        "llama_bench",
        "mlperf_inference",
        "engine_log",
        "training_log",
        "nvbandwidth",
        "nccl_tests",
        "superbench",
        "dcgm_diagnostics",
        "dcgm_dmon",
        "dcgm_exporter",
        "nsight_compute",
        "torch_profiler",
        "own_csv",
    ],
)
EvidenceState = TypeAliasType("EvidenceState", Literal["active", "superseded", "withdrawn"])
LONGEST_CONTENT = 8 * 2**20
READINGS_SHOWN = 1000


class EvidenceImportRequest(StrictModel):
    """A file of measurements, and facts that it does not state.

    If file and request both leave a fact open, the problem names it. Facts of the request must not contradict
    the file; for lengths the request takes precedence.
    """

    format: EvidenceFormat
    """Format of the file, by the program that wrote it. `own_csv` is the service's own table."""
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CONTENT)]
    """The file as text."""
    model: ModelReference | MISSING = MISSING
    """Model that ran. Required if the file names no model of the catalog."""
    cluster: ClusterInput | MISSING = MISSING
    """Cluster that it ran on. Required if the file does not name an accelerator of the catalog and the number
    of devices."""
    parallelism: ParallelismInput | MISSING = MISSING
    """Layout of the model. Required on several devices if the file does not state it."""
    workload: WorkloadInput | MISSING = MISSING
    """Workload that was measured, as far as the file does not state it: lengths, load, precision, engine."""
    collective: Collective | MISSING = MISSING
    """Collective that was timed, if the file does not state it."""
    power_limit_watts: Positive | MISSING = MISSING
    """Power limit of each device during the measurement, if it was not the delivered one."""
    note: Text | MISSING = MISSING
    """Origin of the file."""


class ImportedEvidenceReading(TypedDict):
    """One figure as it was read, in the SI unit that ends the name of the metric."""

    pointer: str
    """Line of the file (/12) or JSON Pointer into it."""
    metric: str
    """Metric that was measured."""
    value: float
    """Value of the figure."""
    statistic: str
    """Statistic of the figure: mean, a percentile such as p50, min, max, or single."""
    of: NotRequired[dict[str, str | float]]
    """Scope of the figure: step, rank, device, test, size."""


class ImportedEvidenceFigure(TypedDict):
    """One figure that counts as evidence, with the estimate of it at the time of the import."""

    pointer: str
    """Place of the figure in the file."""
    family: str
    """Kind of figure that it is evidence for."""
    measured: float
    """Measured value, in the unit of the estimate's figure."""
    estimated: float
    """Estimate of the service for the same question, without this evidence."""


class EvidenceRemark(TypedDict):
    """A part of the file that does not count, or a remark on a part that does."""

    pointer: str
    """Place in the file."""
    code: str
    """Stable name of the reason."""
    detail: str
    """Description of the reason."""


class EvidenceSummary(TypedDict):
    """A file of measurements that was imported."""

    id: ResourceId
    format: EvidenceFormat
    """Format of the file, by the program that wrote it."""
    state: EvidenceState
    """State of the evidence, which is the state of its calibration."""
    reason: NotRequired[str]
    """Reason of the withdrawal."""
    note: NotRequired[str]
    """Origin of the file."""
    calibration_id: ResourceId
    """Id of the calibration that was made from the file."""
    content_sha256: str
    """SHA-256 of the file, which itself is not stored."""
    run_count: Integer
    """Number of runs in the file."""
    reading_count: Integer
    """Number of figures that were read."""
    answers: list[ImportedEvidenceFigure]
    """Figures of whole runs, which adjust estimates of the tenant."""
    figures: list[str]
    """Figures of the device that were derived, by their name in the calibration."""
    refused: list[EvidenceRemark]
    """Parts of the file that do not count, with the reasons."""
    notes: list[EvidenceRemark]
    """Remarks on parts that count."""
    created_at: AwareDatetime
    withdrawn_at: NotRequired[AwareDatetime]
    """Time of the withdrawal."""


class ImportedEvidence(EvidenceSummary):
    """A file of measurements that was imported, with the figures that were read."""

    readings: list[ImportedEvidenceReading]
    """The first 1,000 figures."""


class EvidencePage(TypedDict):
    """A page of imports."""

    items: list[EvidenceSummary]
    next_page_token: NextPageToken


class EvidenceQuery(PageQuery):
    """Filters of imports."""

    format: Annotated[list[EvidenceFormat], Field(max_length=20)] = []
    """Formats to list."""


class EvidenceWithdrawalRequest(StrictModel):
    """Reason why imported evidence no longer counts."""

    reason: Text
    """Reason of the withdrawal."""
