"""One device as its operators see it: rates, multiprocessors and kernel efficiencies."""

from collections.abc import Mapping
from typing import NamedTuple

from service.planning.hardware.calibration import MachineFacts, OperatorCalibration, OperatorRates
from service.planning.hardware.cluster import Accelerator
from service.planning.precision import NumberFormat


class DeviceMachine(NamedTuple):
    """Rates per second of one device, its facts, and the constants of its generation."""

    peak_flops_per_second: Mapping[NumberFormat, float]
    bandwidth_bytes_per_second: float
    facts: MachineFacts
    rates: OperatorRates


def build_machine(accelerator: Accelerator, calibration: OperatorCalibration) -> DeviceMachine | None:
    """Builds the device under the constants of its generation and the facts of its part.

    Returns None where the bandwidth of the device is not known.
    """
    if accelerator.bandwidth_bytes_per_second is None:
        return None
    facts = calibration.find_machine(accelerator.id, accelerator.generation)
    return DeviceMachine(
        accelerator.peak_flops_per_second,
        accelerator.bandwidth_bytes_per_second,
        facts,
        calibration.get_rates(accelerator.generation).scale_peaks(facts.peak_scales),
    )
