"""Site of a run in requests: the building, the price of its electricity and the bill."""

from typing import Annotated, Literal

from pydantic import MISSING, Discriminator, Field

from service.schemas.base import CatalogName, Factor, Instant, MoneyInput, NotNegative, Share, StrictModel
from service.schemas.carbon import SiteCarbonInput
from service.schemas.energy import IntervalMinutes, SiteEnergyInput
from service.schemas.tariffs import TariffTerms, TimeZone

MOST_INTERVALS = 70_176
"""Most intervals of a baseline load: two years of 15 minutes."""
MOST_MONTHS = 36
"""Most months of a history, and most billing periods that are given."""

LocalDate = Annotated[
    str,
    Field(
        pattern=r"^2[01][0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
        max_length=10,
        json_schema_extra={"format": "date"},
    ),
]
"""A day of the site's clock, such as 2026-11-22."""
LocalMonth = Annotated[str, Field(pattern=r"^2[01][0-9]{2}-(0[1-9]|1[0-2])$", max_length=7)]
"""A month of the site's clock, such as 2026-11."""


class MonthlyPeak(StrictModel):
    """Highest demand of a month before the load."""

    month: LocalMonth
    """Calendar month."""
    peak_kw: NotNegative
    """Highest mean power of an interval of the month, at the meter."""


class ElectricityPriceInput(StrictModel):
    """Price of electricity: a flat price, or a tariff with the data that its bill depends on."""

    price_per_kwh: MoneyInput | MISSING = MISSING
    """Price of a kWh at the meter, at any time."""
    tariff_id: CatalogName | MISSING = MISSING
    """Id of a tariff of the catalog. Defaults to the tariff of the catalog's site."""
    tariff: TariffTerms | MISSING = MISSING
    """Terms of a tariff that is not in the catalog."""
    allocation: Literal["incremental", "standalone"] | MISSING = MISSING
    """Allocation of the bill: the amount that the run adds to the bill of the baseline load (`incremental`),
    or the bill of the run alone for every billing period in which it runs (`standalone`). Defaults to
    incremental if a baseline load is given, else to standalone."""
    billing_period_starts: (
        Annotated[list[LocalDate], Field(min_length=2, max_length=MOST_MONTHS + 1)] | MISSING
    ) = MISSING
    """First days of consecutive billing periods, and of the period after the last. Defaults to calendar
    months."""
    monthly_peaks: Annotated[list[MonthlyPeak], Field(max_length=MOST_MONTHS)] | MISSING = MISSING
    """Demand of earlier months, for charges that look back: of the baseline load, or of the load before the
    run."""
    power_factor: Share = 1.0
    """Ratio of active to apparent power at the meter."""
    price_factor: Factor | MISSING = MISSING
    """Factor of the price, or of each charge of the tariff, for prices that move."""
    metering_side: Literal["primary", "secondary"] = "primary"
    """Side of the transformer that the meter is on. A tariff may add the loss of the transformer to the
    reading of a secondary meter."""


class ConstantBaselineLoad(StrictModel):
    """Constant power."""

    kind: Literal["constant"]
    """Selects this shape."""
    kw: NotNegative
    """Power at the meter."""


class BaselineLoadSeries(StrictModel):
    """Mean power of consecutive intervals."""

    kind: Literal["series"]
    """Selects this shape."""
    starts_at: Instant
    """Start of the first interval."""
    interval_minutes: IntervalMinutes
    """Length of each interval, in minutes."""
    kw: Annotated[list[NotNegative], Field(min_length=1, max_length=MOST_INTERVALS)]
    """Mean power of each interval at the meter. The series covers every billing period in which the run takes
    place."""


BaselineLoad = Annotated[ConstantBaselineLoad | BaselineLoadSeries, Discriminator("kind")]
"""Load of the site's meter without the run."""


class RunSiteInput(SiteEnergyInput, SiteCarbonInput):
    """The building that houses the run. Figures given here replace those of `site_id`."""

    site_id: CatalogName | MISSING = MISSING
    """Id of a site of the catalog."""
    pue: Annotated[float, Field(ge=1, le=10)] | MISSING = MISSING
    """Power usage effectiveness: energy of the facility over energy of the IT equipment."""
    electricity: ElectricityPriceInput | MISSING = MISSING
    """Price of electricity."""
    time_zone: TimeZone | MISSING = MISSING
    """Time zone of the site, by which a tariff is applied. Defaults to that of the tariff."""
    baseline_load: BaselineLoad | MISSING = MISSING
    """Load of the site's meter without the run."""
    grid_id: CatalogName | MISSING = MISSING
    """Id of a grid of the catalog."""
    carbon_intensity_kg_co2e_per_kwh: NotNegative | MISSING = MISSING
    """Emissions of each kWh at the meter."""
    water_usage_effectiveness_liters_per_kwh: NotNegative | MISSING = MISSING
    """Water that evaporates on the site per kWh of IT energy."""
