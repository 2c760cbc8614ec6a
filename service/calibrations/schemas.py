"""Requests and answers of calibrations."""

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
    """Figures of one device, derived once and never changed."""

    id: ResourceId
    """Id of the calibration, as in `evidence.calibration_ids` of answers."""
    number: Integer
    """Sequence number among the calibrations of one node and hardware. 1 for an import."""
    origin: CalibrationOrigin
    """Origin of the figures: benchmarks of a node, or imported measurements."""
    state: CalibrationState
    """State of the calibration. Only an `active` one is used; a newer one supersedes it."""
    reason: ShortText | MISSING = MISSING
    """Reason of the withdrawal."""
    device: DeviceKind
    """Kind of device that was measured. A calibration of a processor is not used for accelerators."""
    node_id: ResourceId | MISSING = MISSING
    """Node that measured the device."""
    hardware: ShortText | MISSING = MISSING
    """Name of the device, as the driver reports it."""
    hardware_sha256: Digest | MISSING = MISSING
    """SHA-256 of the numbers that identify the device."""
    accelerator_id: ResourceId | MISSING = MISSING
    """Accelerator of the catalog that the device is. Absent if none has its name, memory and power limit."""
    generation: Name | MISSING = MISSING
    """Architecture of that accelerator."""
    power_limit_watts: float | MISSING = MISSING
    """Enforced power limit."""
    driver_major: Integer | MISSING = MISSING
    """Major version of the driver."""
    rests_on: CalibrationDocument | MISSING = MISSING
    """Import that the figures come from. Present for imported figures."""
    created_at: AwareDatetime
    """Time at which the calibration was made."""
    ended_at: AwareDatetime | MISSING = MISSING
    """Time at which the calibration was superseded or withdrawn."""


class CalibratedFigure(StrictModel):
    """One constant and its evidence."""

    name: Name
    """Group, quantity and number format, such as `operators.matrix_peak.bf16`."""
    unit: Name
    """Unit of the figure."""
    value: float
    """Median over the runs."""
    low: float
    """Smallest measured value."""
    high: float
    """Largest measured value."""
    runs: Integer | MISSING = MISSING
    """Number of runs."""
    limit: float | MISSING = MISSING
    """Limit of the data sheet, in the same unit. Absent if the figure is not a share of a limit."""
    share: float | MISSING = MISSING
    """Value over limit, which planning uses."""
    source: ShortText | MISSING = MISSING
    """Source of the measurement."""
    method: ShortText | MISSING = MISSING
    """Derivation of the figure from the measurements."""
    benchmarks: Annotated[list[Name], Field(max_length=500)] | MISSING = MISSING
    """Names of the benchmarks."""
    result_ids: Annotated[list[ResultId], Field(max_length=10_000)] | MISSING = MISSING
    """Accepted results that the figure was derived from."""
    run_ids: Annotated[list[ResultId], Field(max_length=10_000)] | MISSING = MISSING
    """Runs of those results."""
    conditions: CalibrationDocument | MISSING = MISSING
    """Median of each condition of the measurements, or the text that they agree on."""


class MessageResidual(StrictModel):
    """Deviation of one message size from the fitted line."""

    message_bytes: float
    """Size of the message."""
    measured_over_line: float
    """Measured time over that of the line."""


class CollectiveFit(StrictModel):
    """Line fitted to the times of one collective: seconds are alpha plus bytes over beta."""

    collective: Name
    """Collective operation that was timed."""
    devices: Integer
    """Devices that took part."""
    algorithm: Name | MISSING = MISSING
    """Algorithm that the library was told to use. Absent if the library chose it."""
    alpha_seconds: float
    """Time of an empty message."""
    beta_bytes_per_second: float
    """Rate of the additional bytes."""
    residuals: Annotated[list[MessageResidual], Field(max_length=1000)]
    """Deviations from the line, by message size."""


class EndToEndMeasurement(StrictModel):
    """A measured end-to-end figure and the request of the estimate for it."""

    operation: Name
    """Estimate that answers the question."""
    family: Name
    """Kind of figure."""
    figure: Name | MISSING = MISSING
    """JSON Pointer of the figure in the answer."""
    measured: float
    """Measured value, in the unit of the figure."""
    question: CalibrationDocument
    """Body of the request."""


class CalibrationDetails(Calibration):
    """A calibration with every figure and its evidence."""

    figures: Annotated[list[CalibratedFigure], Field(max_length=500)]
    """Constants of the device."""
    fits: Annotated[list[CollectiveFit], Field(max_length=500)]
    """Lines fitted to the times of collectives."""
    answers: Annotated[list[EndToEndMeasurement], Field(max_length=10_000)]
    """Measured answers to whole questions."""


class CalibrationPage(StrictModel):
    """A page of calibrations."""

    items: list[Calibration]
    """Calibrations, the newest first."""
    next_page_token: NextPageToken


class WithdrawnCalibrations(StrictModel):
    """Calibrations that were withdrawn together."""

    items: Annotated[list[Calibration], Field(max_length=10_000)]
    """Calibrations, the oldest first."""


class CalibrationWithdrawalRequest(StrictModel):
    """Reason why a calibration no longer counts."""

    reason: Text
    """Finding that led to the withdrawal."""


class NodeCalibrationWithdrawalRequest(CalibrationWithdrawalRequest):
    """Withdrawal of everything that a node has measured."""

    node_id: ResourceId
    """Node whose calibrations are withdrawn."""


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
        """Returns the allowed values of each column."""
        names = CalibrationQuery.model_fields.keys() - PageQuery.model_fields.keys()
        return {name: list(getattr(self, name)) for name in sorted(names)}
