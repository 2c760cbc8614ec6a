"""Requests and answers of grids."""

from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType, TypedDict

from service.catalog.rows import EXAMPLE_SOURCES, RowDocument, RowInput, Versioned
from service.catalog.shapes import LARGEST_BOUND, ListQuery, NumberBound, TextFilter
from service.schemas.base import AnswerWarning, NotNegative, Text
from service.schemas.carbon import CarbonIntensitySeriesInput, EmissionAccounting, EmissionRate, ZoneName

MOST_CHARACTERS = 4_000_000
"""Most characters of a file: a year of hours of 100 regions."""
GridKind = TypeAliasType(
    "GridKind", Literal["country", "egrid_subregion", "bidding_zone", "cloud_region", "other"]
)
GreenhouseGases = TypeAliasType("GreenhouseGases", Literal["co2e", "co2"])


class GridRequest(RowInput):
    """An electricity grid with its yearly mean intensity, and its intensity over time if that is known."""

    code: Text
    """Code of the place in the source."""
    kind: GridKind
    """Kind of place that the code names."""
    carbon_intensity_kg_co2e_per_kwh: NotNegative
    """Mean intensity of a year."""
    data_year: Annotated[int, Field(ge=1990, le=2100, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Year of the mean."""
    accounting: EmissionAccounting
    """Emissions that are counted: those of generation, of the life cycle, or as the provider publishes
    them."""
    emission_rate: EmissionRate = "average"
    """Rate of the average kWh, or of one additional kWh."""
    greenhouse_gases: GreenhouseGases = "co2e"
    """Gases that are counted: all greenhouse gases, or carbon dioxide alone."""
    series: CarbonIntensitySeriesInput | MISSING = MISSING
    """Intensity over time."""
    water_liters_per_kwh: NotNegative | MISSING = MISSING
    """Water that evaporates in power plants for each kWh."""


class GridImportRequest(RowInput):
    """A grid from a published table of hourly intensities."""

    code: Text
    """Code of the place in the source. For AVERT, the column of its region."""
    kind: GridKind
    """Kind of place that the code names."""
    format: Literal["avert_csv", "month_hour_csv"]
    """Format of the file: EPA's AVERT (marginal, lb CO2 by hour of the year), or average kg CO2e/MWh by month
    and hour."""
    content: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
    """The file as text."""
    time_zone: ZoneName
    """Time zone of its hours."""
    accounting: EmissionAccounting = "generation"
    """Emissions that are counted."""
    data_year: Annotated[int, Field(ge=1990, le=2100, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Year of the series."""
    water_liters_per_kwh: NotNegative | MISSING = MISSING
    """Water that evaporates in power plants for each kWh."""


class Grid(GridRequest, Versioned):
    """A grid of the catalog."""


class ImportedGrid(TypedDict):
    """A grid that was imported."""

    grid: Grid
    """The new row."""
    warnings: list[AnswerWarning]
    """Facts that the file leaves open."""


class GridQuery(ListQuery):
    """Filters of grids."""

    code: TextFilter = []
    """Codes to list."""
    kind: Annotated[list[GridKind], Field(max_length=50)] = []
    """Kinds to list."""
    accounting: Annotated[list[EmissionAccounting], Field(max_length=50)] = []
    """Kinds of accounting to list."""
    emission_rate: Annotated[list[EmissionRate], Field(max_length=50)] = []
    """Kinds of emission rate to list."""
    max_carbon_intensity_kg_co2e_per_kwh: NumberBound = LARGEST_BOUND
    """Highest carbon intensity."""


EXAMPLE: RowDocument = {
    "id": "example-grid",
    "name": "Example grid",
    "code": "EX",
    "kind": "other",
    "carbon_intensity_kg_co2e_per_kwh": 0.2,
    "accounting": "generation",
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {"carbon_intensity_kg_co2e_per_kwh": 0.19}
