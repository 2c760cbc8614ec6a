"""Shapes of calibrations."""

from typing import Annotated, Any, Literal

from pydantic import MISSING, AwareDatetime, Field, JsonValue
from typing_extensions import TypeAliasType

from service.kit.http.pages import NextPageToken, PageQuery
from service.protocol.nodes import DeviceKind
from service.schemas.base import Integer, ResourceId, StrictModel, Text

CalibrationState = TypeAliasType("CalibrationState", Literal["active", "superseded", "withdrawn"])
CalibrationOrigin = TypeAliasType("CalibrationOrigin", Literal["benchmarks", "import"])
ShortText = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(max_length=100)]
Digest = Annotated[str, Field(max_length=64)]
ResourceIds = Annotated[list[ResourceId], Field(max_length=50)]
ResultId = Annotated[str, Field(max_length=100)]
CalibrationDocument = Annotated[
    dict[str, JsonValue], Field(max_length=500, json_schema_extra={"additionalProperties": True})
]


class Calibration(StrictModel):
    """Figures of one device, drawn once and never changed."""

    id: ResourceId
    """Named by the answers that it moved."""
    number: Integer
    """Counts the sets of one node and hardware, or is 1 of an import."""
    origin: CalibrationOrigin
    """Drawn from the benchmarks of a node, or from measurements of others that were imported."""
    state: CalibrationState
    """Only an `active` one counts; a newer one supersedes it."""
    reason: ShortText | MISSING = MISSING
    """Why it was withdrawn."""
    device: DeviceKind
    """Kind of device that was measured; one of a processor says nothing of accelerators."""
    node_id: ResourceId | MISSING = MISSING
    """Node that measured it."""
    hardware: ShortText | MISSING = MISSING
    """What the driver calls it."""
    hardware_sha256: Digest | MISSING = MISSING
    """Digest of the numbers that identify it."""
    accelerator_id: ResourceId | MISSING = MISSING
    """Accelerator of the catalog that it is; absent where none has its name, memory and power limit."""
    generation: Name | MISSING = MISSING
    """Architecture of that accelerator."""
    power_limit_watts: float | MISSING = MISSING
    """Limit that was enforced."""
    driver_major: Integer | MISSING = MISSING
    """Branch of the driver."""
    rests_on: CalibrationDocument | MISSING = MISSING
    """Of an import: which one."""
    created_at: AwareDatetime
    """When it was drawn."""
    ended_at: AwareDatetime | MISSING = MISSING
    """When it was superseded or withdrawn."""


class CalibratedFigure(StrictModel):
    """One constant, and what it rests on."""

    name: Name
    """Group, quantity and number format, such as `operators.matrix_peak.bf16`."""
    unit: Name
    """Unit of the figure."""
    value: float
    """Middle of the runs."""
    low: float
    """Least of what was measured."""
    high: float
    """Most of it."""
    runs: Integer | MISSING = MISSING
    """Runs behind it."""
    limit: float | MISSING = MISSING
    """What the data sheet states, in the same unit; absent where the figure is no share of anything."""
    share: float | MISSING = MISSING
    """Value over limit: what planning counts with."""
    source: ShortText | MISSING = MISSING
    """What measured it, in words."""
    method: ShortText | MISSING = MISSING
    """How the figure follows from what was measured."""
    benchmarks: Annotated[list[Name], Field(max_length=500)] | MISSING = MISSING
    """Names of the benchmarks."""
    result_ids: Annotated[list[ResultId], Field(max_length=10_000)] | MISSING = MISSING
    """Accepted results that it was drawn from."""
    run_ids: Annotated[list[ResultId], Field(max_length=10_000)] | MISSING = MISSING
    """Runs of those."""
    conditions: CalibrationDocument | MISSING = MISSING
    """Middle of each condition under which they were measured, or the word that all agree in."""


class MessageResidual(StrictModel):
    """How far one size lies off its line."""

    message_bytes: float
    """Size of the message."""
    measured_over_line: float
    """Measured time over that of the line."""


class CollectiveFit(StrictModel):
    """The line through the times of one collective: seconds are alpha and bytes over beta."""

    collective: Name
    """What was exchanged."""
    devices: Integer
    """Devices that took part."""
    algorithm: Name | MISSING = MISSING
    """What the library was told to use; absent where it chose."""
    alpha_seconds: float
    """What an empty message takes."""
    beta_bytes_per_second: float
    """Rate of what comes on top."""
    residuals: Annotated[list[MessageResidual], Field(max_length=1000)]
    """What the line leaves, by size."""


class EndToEndMeasurement(StrictModel):
    """A measured end-to-end figure beside the question that it answers."""

    operation: Name
    """Estimate that answers it."""
    family: Name
    """Kind of answer."""
    figure: Name | MISSING = MISSING
    """JSON Pointer of the figure in the answer."""
    measured: float
    """In the unit of the figure."""
    question: CalibrationDocument
    """Body of the estimate."""


class CalibrationDetails(Calibration):
    """A calibration with every figure and what each rests on."""

    figures: Annotated[list[CalibratedFigure], Field(max_length=500)]
    """Constants of the device."""
    fits: Annotated[list[CollectiveFit], Field(max_length=500)]
    """Lines through the times of collectives."""
    answers: Annotated[list[EndToEndMeasurement], Field(max_length=10_000)]
    """Measured answers to whole questions."""


class CalibrationPage(StrictModel):
    """A page of calibrations."""

    items: list[Calibration]
    """Calibrations, the newest first."""
    next_page_token: NextPageToken


class WithdrawnCalibrations(StrictModel):
    """What was withdrawn together."""

    items: Annotated[list[Calibration], Field(max_length=10_000)]
    """Calibrations, the oldest first."""


class CalibrationWithdrawalRequest(StrictModel):
    """Why a calibration shall count no more."""

    reason: Text
    """What was found out."""


class NodeCalibrationWithdrawalRequest(CalibrationWithdrawalRequest):
    """Why nothing that a node has measured shall count."""

    node_id: ResourceId
    """Node that proved bad."""


class CalibrationQuery(PageQuery):
    """Filters of calibrations."""

    state: Annotated[list[CalibrationState], Field(max_length=3)] = []
    """States to list."""
    origin: Annotated[list[CalibrationOrigin], Field(max_length=2)] = []
    """Origins to list."""
    device: Annotated[list[DeviceKind], Field(max_length=2)] = []
    """Kinds of devices to list."""
    node_id: ResourceIds = []
    """Nodes to list."""
    accelerator_id: ResourceIds = []
    """Accelerators of the catalog to list."""

    def get_allowed_values(self) -> dict[str, list[Any]]:
        """Values that each column may have."""
        names = CalibrationQuery.model_fields.keys() - PageQuery.model_fields.keys()
        return {name: list(getattr(self, name)) for name in sorted(names)}
