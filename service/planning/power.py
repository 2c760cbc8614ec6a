"""Energy as power times time, with the hosts beside the accelerators and the building around both.

IT energy is what accelerators and hosts draw; facility energy is IT energy times the power usage
effectiveness (PUE, ISO/IEC 30134-2), which counts cooling and distribution.
"""

from service.planning.units import HOUR_SECONDS

WATTS_PER_KILOWATT = 1000.0


def power_watts(
    *,
    accelerators: float = 0.0,
    accelerator_watts: float = 0.0,
    hosts: float = 0.0,
    host_watts: float = 0.0,
) -> float:
    """Power of accelerators and hosts together."""
    return accelerators * accelerator_watts + hosts * host_watts


def energy_kwh(watts: float, seconds: float) -> float:
    """Energy of a constant power over a time."""
    return watts * seconds / HOUR_SECONDS / WATTS_PER_KILOWATT


def facility_kwh(it_kwh: float, pue: float) -> float:
    """Energy at the meter of the building for IT energy inside it."""
    return it_kwh * pue
