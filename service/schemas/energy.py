"""Energy members of a request: the building, the load over time, and measured energy."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.schemas.base import Degree, NotNegative, Positive, StrictModel

MONTHS = 12
HOURS = 24

IntervalMinutes = Annotated[
    Literal[5, 15, 30, 60],
    Field(json_schema_extra={"type": "integer", "format": "int64", "minimum": 5, "maximum": 60}),
]
Effectiveness = Annotated[float, Field(ge=1, le=10)]
"""Energy of the facility over energy of the IT equipment."""


class SiteEnergyInput(StrictModel):
    """Cooling and network of the building that houses a run."""

    pue_by_month: Annotated[list[Effectiveness], Field(min_length=MONTHS, max_length=MONTHS)] | MISSING = (
        MISSING
    )
    """Power usage effectiveness from January to December, in place of `pue`; needs `starts_at`."""
    cooling: Literal["air", "liquid", "immersion"] = "air"
    """Cooling of a node: its fans, cold plates, or an immersion bath."""
    fabric_power_watts_per_device: NotNegative | MISSING = MISSING
    """Power of switches and optics between nodes, for each device. Defaults to an estimate from its bandwidth
    to other nodes."""


class MaintenanceSchedule(StrictModel):
    """Windows at equal intervals in which the run is paused."""

    every_seconds: Positive
    """Time from the start of one window to the start of the next."""
    duration_seconds: Positive
    """Length of a window."""
    first_after_seconds: NotNegative | MISSING = MISSING
    """Time from the start of the run to the first window. Defaults to `every_seconds`."""
    power: Literal["idle", "off"] = "idle"
    """Power state of the machines during a window."""


class RunLoadInput(StrictModel):
    """Power of a run over time."""

    interval_minutes: IntervalMinutes = 15
    """Interval over which the meter takes the mean, in minutes."""
    ramp_seconds: NotNegative = 0.0
    """Time from switching on to steady work, at half the power above idle on average. It is added to the
    run."""
    idle_seconds: NotNegative = 0.0
    """Time after the run until the machines are switched off. It is added to the run."""
    maintenance: MaintenanceSchedule | MISSING = MISSING
    """Windows in which the run is paused. They delay its end."""
    daily_shape: (
        Annotated[list[Annotated[float, Field(ge=0, le=24)]], Field(min_length=HOURS, max_length=HOURS)]
        | MISSING
    ) = MISSING
    """Load of a service in each hour of the day, from midnight, over the mean of all hours."""
    include_intervals: bool = False
    """Set to true to list the power of every interval in the answer. Needs `starts_at`."""


class MeasuredEnergyInput(StrictModel):
    """Measured energy of a run, in place of the estimate."""

    energy_kwh: Positive
    """Energy of the whole run."""
    duration_seconds: Annotated[float, Field(ge=1, le=1e10)]
    """Time over which the energy was measured."""
    device_count: Degree
    """Accelerators that took part."""
    boundary: Literal["facility", "it"] = "facility"
    """Place of the measurement: the meter of the building, or the supply of its machines."""
