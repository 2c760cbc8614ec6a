"""Shapes of grids."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType, TypedDict

from service.catalog.rows import RowInput, Versioned
from service.catalog.shapes import LARGEST_BOUND, Bound, ListQuery, Words, patch_of
from service.kit.pages import NextPageToken
from service.questions.base import NotNegative, Text

GridKind = TypeAliasType(
    "GridKind", Literal["country", "egrid_subregion", "bidding_zone", "cloud_region", "other"]
)
Accounting = TypeAliasType("Accounting", Literal["generation", "life_cycle", "provider", "unstated"])


class GridInput(RowInput):
    """An electricity grid with its yearly mean, location-based."""

    code: Text
    """The code that the source uses for the place."""
    kind: GridKind
    """What the code names."""
    carbon_intensity_kg_co2e_per_kwh: NotNegative
    """Yearly mean."""
    data_year: Annotated[int, Field(ge=1990, le=2100, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Year that the mean is of."""
    accounting: Accounting
    """What is counted: emissions of generation, of the life cycle, or as the provider publishes."""
    water_liters_per_kwh: NotNegative | MISSING = MISSING
    """Water evaporated off the site for each kWh."""


class Grid(GridInput, Versioned):
    """A grid of the catalog."""


if TYPE_CHECKING:
    GridPatch = GridInput
else:
    GridPatch = patch_of(GridInput, "GridPatch")


class GridPage(TypedDict):
    """A page of grids."""

    items: list[Grid]
    next_page_token: NextPageToken


class GridQuery(ListQuery):
    """Filters of grids."""

    code: Words = []
    """Codes to list."""
    kind: Annotated[list[GridKind], Field(max_length=50)] = []
    """Kinds to list."""
    accounting: Annotated[list[Accounting], Field(max_length=50)] = []
    """Ways of accounting to list."""
    max_carbon_intensity_kg_co2e_per_kwh: Bound = LARGEST_BOUND
    """Highest carbon intensity."""
