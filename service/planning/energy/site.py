"""Site of a run, its power over time, and its measured energy.

Watts and kWh are of the machines of the run; intensities are in kg CO2e and water in litres per kWh.
"""

from datetime import datetime
from typing import NamedTuple

from service.planning.energy.carbon import IntensitySeries
from service.planning.hardware.calibration.facility import Cooling
from service.planning.quantity import EvidenceBasis, Quantity, scaled


class GridIntensity(NamedTuple):
    """Carbon intensity of a grid: its mean, its series over time where known, and its accounting."""

    mean: Quantity | None = None
    in_time: IntensitySeries | None = None
    accounting: str | None = None
    emission_rate: str = "average"

    def scale(self, factor: float) -> "GridIntensity":
        """Returns the intensity multiplied by a factor."""
        mean, in_time = self.mean, self.in_time
        return self._replace(
            mean=mean and scaled(mean, factor),
            in_time=in_time and in_time._replace(values=in_time.values * factor),
        )


class ContractInstrument(NamedTuple):
    """Electricity that was contracted at a separate intensity; ``source`` is the document that proves it."""

    kind: str
    share: float
    kg_co2e_per_kwh: float
    accounting: str
    source: str


class Maintenance(NamedTuple):
    """Maintenance windows at equal distances, which pause the run, in seconds."""

    every_seconds: float
    duration_seconds: float
    first_after_seconds: float
    draws_idle_power: bool


class LoadCourse(NamedTuple):
    """Power of a run over time, by the interval of its meter."""

    interval_minutes: int = 15
    ramp_seconds: float = 0.0
    idle_seconds: float = 0.0
    maintenance: Maintenance | None = None
    daily_shape: tuple[float, ...] = ()
    """Load of a service in each hour of the day over the mean of all; empty for a constant one."""
    include_intervals: bool = False


class MeasuredEnergy(NamedTuple):
    """Measured energy of a run, at the meter of the building or at the supply of its machines."""

    energy_kwh: float
    duration_seconds: float
    device_count: int
    is_at_facility: bool


class Site(NamedTuple):
    """A building, and the run in it.

    ``pues`` is one power usage effectiveness or one for each month, None where it is not known.
    """

    is_given: bool = False
    """True if the question names a building."""
    pues: tuple[float, ...] | None = None
    pue_basis: EvidenceBasis = EvidenceBasis.ASSUMED
    cooling: Cooling = Cooling.AIR
    fabric_watts_per_device: float | None = None
    """Power of switches and optics; None where it follows from the bandwidth between nodes."""
    grid: GridIntensity = GridIntensity()
    marginal: GridIntensity | None = None
    instruments: tuple[ContractInstrument, ...] = ()
    """Electricity that was contracted at separate intensities."""
    residual_mix: ContractInstrument | None = None
    """Residual mix for the electricity without instruments."""
    onsite_water_liters_per_kwh: Quantity | None = None
    offsite_water_liters_per_kwh: Quantity | None = None
    load: LoadCourse = LoadCourse()
    starts_at: datetime | None = None
    """Start of the run in the local time of the building."""
    measured: MeasuredEnergy | None = None
