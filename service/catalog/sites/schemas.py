"""Requests and answers of sites."""

from typing import Annotated

from pydantic import MISSING, Field

from service.catalog.rows import EXAMPLE_SOURCES, RowDocument, RowInput, Versioned
from service.catalog.shapes import IdentifierFilter, ListQuery
from service.schemas.base import NotNegative, ResourceId
from service.schemas.tariffs import TimeZone


class SiteRequest(RowInput):
    """A building or a fleet of buildings."""

    pue: Annotated[float, Field(ge=1, le=10)]
    """Power usage effectiveness: energy of the facility over energy of the IT equipment."""
    grid_id: ResourceId | MISSING = MISSING
    """Grid that the site draws from."""
    water_usage_effectiveness_liters_per_kwh: NotNegative | MISSING = MISSING
    """Water that evaporates on the site for each kWh of IT energy."""
    tariff_id: ResourceId | MISSING = MISSING
    """Tariff of the catalog that the site's electricity is billed by."""
    time_zone: TimeZone | MISSING = MISSING
    """IANA name of the site's time zone."""


class Site(SiteRequest, Versioned):
    """A site of the catalog."""


class SiteQuery(ListQuery):
    """Filters of sites."""

    grid_id: IdentifierFilter = []
    """Grids to list sites of."""
    tariff_id: IdentifierFilter = []
    """Tariffs to list sites of."""


EXAMPLE: RowDocument = {
    "id": "example-site",
    "name": "Example site",
    "pue": 1.2,
    "grid_id": "egrid-us-rfce",
    "time_zone": "America/New_York",
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {"pue": 1.18}
