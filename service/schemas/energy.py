"""What a question says of the energy of a run: its building, its course in time, and what was measured."""

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
"""Facility energy over IT energy."""


class SiteEnergyInput(StrictModel):
    """How a building cools and joins the machines of a run."""

    pue_by_month: Annotated[list[Effectiveness], Field(min_length=MONTHS, max_length=MONTHS)] | MISSING = (
        MISSING
    )
    """Power usage effectiveness from January to December, in place of `pue`; needs `starts_at`."""
    cooling: Literal["air", "liquid", "immersion"] = "air"
    """What takes the heat away from a node: its fans, cold plates, or a bath."""
    fabric_power_watts_per_device: NotNegative | MISSING = MISSING
    """Switches and optics between nodes, for each device; from its bandwidth to other nodes when left out."""


class MaintenanceSchedule(StrictModel):
    """Windows at equal distances in which the run stands still."""

    every_seconds: Positive
    """From the start of a window to that of the next."""
    duration_seconds: Positive
    """Length of a window."""
    first_after_seconds: NotNegative | MISSING = MISSING
    """From the start of the run to the first window; `every_seconds` when left out."""
    power: Literal["idle", "off"] = "idle"
    """What the machines draw meanwhile."""


class RunLoadInput(StrictModel):
    """The course of a run's power in time."""

    interval_minutes: IntervalMinutes = 15
    """Interval over which the meter takes the mean."""
    ramp_seconds: NotNegative = 0.0
    """From switching on to steady work, at half the power above idle on average. Added to the run."""
    idle_seconds: NotNegative = 0.0
    """After the run, until the machines are switched off. Added to the run."""
    maintenance: MaintenanceSchedule | MISSING = MISSING
    """Windows in which the run stands still. They move its end."""
    daily_shape: (
        Annotated[list[Annotated[float, Field(ge=0, le=24)]], Field(min_length=HOURS, max_length=HOURS)]
        | MISSING
    ) = MISSING
    """Of a service: its load in each hour of the day, from midnight on, over the mean of all hours."""
    include_intervals: bool = False
    """Whether the answer lists the power of every interval; needs `starts_at`."""


class MeasuredEnergyInput(StrictModel):
    """What a run was measured to take, in place of what would be estimated."""

    energy_kwh: Positive
    """Energy of the whole run."""
    duration_seconds: Annotated[float, Field(ge=1, le=1e10)]
    """Time in which it was taken."""
    device_count: Degree
    """Accelerators that took part."""
    boundary: Literal["facility", "it"] = "facility"
    """Where it was measured: at the meter of the building, or at the supply of its machines."""
