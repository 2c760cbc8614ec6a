"""Where a run takes place."""

from typing import Annotated

from pydantic import MISSING, Field

from service.questions.base import CatalogName, Input, MoneyInput, NotNegative
from service.questions.energy import SiteEnergy


class Electricity(Input):
    """A flat price of electricity."""

    price_per_kwh: MoneyInput
    """Price of a kWh at the meter."""


class RunSite(SiteEnergy):
    """The building. Figures given here take the place of those of `site_id`."""

    site_id: CatalogName | MISSING = MISSING
    """Site of the catalog."""
    pue: Annotated[float, Field(ge=1, le=10)] | MISSING = MISSING
    """Power usage effectiveness: facility energy over IT energy."""
    electricity: Electricity | MISSING = MISSING
    """What electricity costs."""
    grid_id: CatalogName | MISSING = MISSING
    """Grid of the catalog."""
    carbon_intensity_kg_co2e_per_kwh: NotNegative | MISSING = MISSING
    """Emissions of each kWh at the meter."""
    water_usage_effectiveness_liters_per_kwh: NotNegative | MISSING = MISSING
    """Water evaporated on the site per kWh of IT energy."""
