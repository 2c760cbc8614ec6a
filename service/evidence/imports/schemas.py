"""Shapes of imported evidence."""

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
    """A file of measurements, and what it does not say itself.

    A fact that file and request both leave open is asked for by name. What a request says beside the file
    must not contradict it; of lengths the request holds.
    """

    format: EvidenceFormat
    """Which program wrote the file; own_csv is the service's own table."""
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CONTENT)]
    """The file as text."""
    model: ModelReference | MISSING = MISSING
    """What ran; needed where the file names no model of the catalog."""
    cluster: ClusterInput | MISSING = MISSING
    """What it ran on; needed where the file names no accelerator of the catalog or how many there were."""
    parallelism: ParallelismInput | MISSING = MISSING
    """How the model was laid out; needed on several devices where the file does not say."""
    workload: WorkloadInput | MISSING = MISSING
    """What it was asked to do, as far as the file does not say: lengths, load, precision, engine."""
    collective: Collective | MISSING = MISSING
    """Which collective was timed, where the file does not say."""
    power_limit_watts: Positive | MISSING = MISSING
    """Power limit of each device while it was measured, where it was not the delivered one."""
    note: Text | MISSING = MISSING
    """Where the file comes from."""


class ImportedEvidenceReading(TypedDict):
    """One figure as it was read, in the SI unit that the metric's name ends in."""

    pointer: str
    """Line of the file (/12) or JSON Pointer into it."""
    metric: str
    """What was measured."""
    value: float
    """The figure."""
    statistic: str
    """mean, a percentile such as p50, min, max, or single."""
    of: NotRequired[dict[str, str | float]]
    """What it belongs to: step, rank, device, test, size."""


class ImportedEvidenceFigure(TypedDict):
    """One figure that counts as evidence, beside the estimate of it at the time of the import."""

    pointer: str
    """Place of the figure in the file."""
    family: str
    """What kind of figure it is evidence of."""
    measured: float
    """In the unit of the estimate's figure."""
    estimated: float
    """What the service estimated for the same question, without this evidence."""


class EvidenceRemark(TypedDict):
    """A part of the file that does not count, or what should be known of one that does."""

    pointer: str
    """Place in the file."""
    code: str
    """Stable name of the reason."""
    detail: str
    """The reason in words."""


class EvidenceSummary(TypedDict):
    """A file of measurements that was imported."""

    id: ResourceId
    format: EvidenceFormat
    """Which program wrote the file."""
    state: EvidenceState
    """Whether it counts; that of its calibration."""
    reason: NotRequired[str]
    """Why it was withdrawn."""
    note: NotRequired[str]
    """Where the file comes from."""
    calibration_id: ResourceId
    """The calibration that it became."""
    content_sha256: str
    """Digest of the file, which itself is not kept."""
    run_count: Integer
    """Runs that the file holds."""
    reading_count: Integer
    """Figures that were read."""
    answers: list[ImportedEvidenceFigure]
    """Figures of whole runs, which move estimates of the tenant."""
    figures: list[str]
    """Figures of the device that were drawn, by their name in the calibration."""
    refused: list[EvidenceRemark]
    """Parts of the file that do not count."""
    notes: list[EvidenceRemark]
    """What should be known of parts that count."""
    created_at: AwareDatetime
    withdrawn_at: NotRequired[AwareDatetime]
    """When it stopped to count."""


class ImportedEvidence(EvidenceSummary):
    """A file of measurements that was imported, with what was read of it."""

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
    """Why something counts no longer."""

    reason: Text
    """What is wrong with it."""
