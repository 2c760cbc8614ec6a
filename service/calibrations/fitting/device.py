"""The measured device, as the catalog and its node describe it."""

from collections.abc import Mapping
from typing import NamedTuple

from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.links import Link
from service.planning.operators import DeviceMachine, build_machine
from service.planning.precision import NumberFormat
from service.protocol.work.base import DType

FORMATS: Mapping[DType, NumberFormat] = {
    "fp64": NumberFormat.FP64,
    "fp32": NumberFormat.FP32,
    "tf32": NumberFormat.TF32,
    "bf16": NumberFormat.BF16,
    "fp16": NumberFormat.FP16,
    "fp8_e4m3": NumberFormat.FP8,
    "int8": NumberFormat.INT8,
}


class FittedDevice(NamedTuple):
    """A device with the constants that hold for it until others are computed.

    ``accelerator`` is that of the catalog, None for a processor and for a part that the catalog does not
    have: then rates have no limit that they would be shares of. ``power_limit_watts`` is the one that is
    enforced, ``link`` joins the devices of the node, ``host_link`` one of them and its host.
    """

    reference: Calibration
    accelerator: Accelerator | None = None
    power_limit_watts: float | None = None
    link: Link | None = None
    host_link: Link | None = None

    @property
    def machine(self) -> DeviceMachine | None:
        """The device under the reference constants; None if the catalog lacks its data."""
        if self.accelerator is None:
            return None
        return build_machine(self.accelerator, self.reference.operators)

    @property
    def kernel_seconds(self) -> float:
        """Seconds of a kernel beyond its work, by the reference; 0 for a processor, which launches none."""
        machine = self.machine
        return machine.rates.kernel_seconds if machine else 0.0

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second of the data sheet."""
        return self.accelerator.bandwidth_bytes_per_second if self.accelerator else None
