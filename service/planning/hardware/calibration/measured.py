"""Measured figures of a device: figures of accepted results, and the scope that they apply to.

A figure keeps the rate as it was measured and the limit that it was measured against, so that a share can be
formed for the device itself and for others of its generation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from service.planning.hardware.calibration.operators import OperatorQuantity
from service.planning.hardware.calibration.power import PowerQuantity
from service.planning.hardware.calibration.serving import ServingQuantity
from service.planning.hardware.links import LinkKind
from service.planning.precision import NumberFormat
from service.planning.quantity import Quantity


class MeasuredScope(NamedTuple):
    """Device that was measured; a member is None where it is unknown.

    ``kind`` is ``cuda`` or ``cpu``: figures of a processor do not apply to an accelerator. ``accelerator_id``
    is an id of the catalog.
    """

    kind: str
    node_id: str | None
    accelerator_id: str | None
    generation: str | None
    power_limit_watts: float | None
    driver_major: int | None


class MeasuredFigure(NamedTuple):
    """A measured constant: the middle of ``runs`` runs and their range.

    ``limit`` is the figure of the data sheet that a share refers to, in the unit of the rate; None for
    constants that are no shares, such as seconds, and where no data sheet is known. Figures are in SI units.
    """

    low: float
    value: float
    high: float
    runs: int
    limit: float | None
    source: str

    @property
    def ends(self) -> tuple[float, float, float]:
        """Low end, middle and high end."""
        return self.low, self.value, self.high


class MeasuredLink(NamedTuple):
    """A link between devices: seconds per step, and bytes per second of long messages.

    ``rate`` is that of one direction of one device, as catalogs give links; ``launch_seconds`` starts a
    collective on all devices.
    """

    rate: MeasuredFigure
    hop_seconds: MeasuredFigure | None
    launch_seconds: MeasuredFigure | None
    in_network_rate: MeasuredFigure | None = None
    """Rate through reducing switches, of the same link."""


OperatorFigures = Mapping[tuple[OperatorQuantity, NumberFormat | None], MeasuredFigure]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCalibration:
    """One immutable set of figures of one device or node, with the id under which it is stored."""

    id: str
    scope: MeasuredScope
    operators: OperatorFigures = field(default_factory=dict)
    serving: Mapping[ServingQuantity, MeasuredFigure] = field(default_factory=dict)
    power: Mapping[PowerQuantity, MeasuredFigure] = field(default_factory=dict)
    links: Mapping[LinkKind, MeasuredLink] = field(default_factory=dict)
    memory_bytes: Quantity | None = None
    """Memory that a process can allocate on the device, in bytes."""
    context_bytes: Quantity | None = None
    """Memory that driver and libraries take before a process allocates any, in bytes."""
    host_link_bytes_per_second: MeasuredFigure | None = None
    """Rate of transfers from pinned host memory to the device."""
    host_memory_bytes_per_second: MeasuredFigure | None = None
    storage_read_bytes_per_second: MeasuredFigure | None = None
    storage_write_bytes_per_second: MeasuredFigure | None = None


class MeasuredAnswer(NamedTuple):
    """A measured end-to-end figure with the question that it answers.

    ``family`` is the kind of answer as in tables of residuals, such as ``serving_tpot`` or ``training_step``;
    ``measured`` is in the unit of the answer's figure; ``question`` is the body of an estimate as JSON,
    without the tenant's own calibration.
    """

    id: str
    calibration_id: str
    operation: str
    family: str
    measured: float
    question: Mapping[str, object]
