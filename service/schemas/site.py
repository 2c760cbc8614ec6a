"""Where a run takes place, what electricity costs there and whose bill it is."""

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
    """The highest demand of a month before the load."""

    month: LocalMonth
    """Calendar month."""
    peak_kw: NotNegative
    """Highest mean power of an interval in it, at the meter."""


class ElectricityPriceInput(StrictModel):
    """What electricity costs: a flat price, or a tariff with what its bill depends on."""

    price_per_kwh: MoneyInput | MISSING = MISSING
    """Price of a kWh at the meter, whenever it is used."""
    tariff_id: CatalogName | MISSING = MISSING
    """Tariff of the catalog; left out, that of the site of the catalog."""
    tariff: TariffTerms | MISSING = MISSING
    """A tariff that is not in the catalog."""
    allocation: Literal["incremental", "standalone"] | MISSING = MISSING
    """Whose bill: what the run adds to the bill of the baseline load, or that of the run alone for every
    billing period that it touches. Incremental where a baseline load is given, else standalone."""
    billing_period_starts: (
        Annotated[list[LocalDate], Field(min_length=2, max_length=MOST_MONTHS + 1)] | MISSING
    ) = MISSING
    """First days of consecutive billing periods, and of the one after the last; calendar months when left
    out."""
    monthly_peaks: Annotated[list[MonthlyPeak], Field(max_length=MOST_MONTHS)] | MISSING = MISSING
    """Demand of earlier months, for charges that look back: of the baseline load, or of what was there before
    the run."""
    power_factor: Share = 1.0
    """Active over apparent power at the meter."""
    price_factor: Factor | MISSING = MISSING
    """What the price, or each charge of the tariff, is multiplied by: prices that move."""
    metering_side: Literal["primary", "secondary"] = "primary"
    """Side of the transformer on which the meter is; tariffs may add the loss to what a secondary one
    reads."""


class ConstantBaselineLoad(StrictModel):
    """The same power always."""

    kind: Literal["constant"]
    """Discriminator."""
    kw: NotNegative
    """Power at the meter."""


class BaselineLoadSeries(StrictModel):
    """Mean power of consecutive intervals."""

    kind: Literal["series"]
    """Discriminator."""
    starts_at: Instant
    """Start of the first interval."""
    interval_minutes: IntervalMinutes
    """Length of each interval."""
    kw: Annotated[list[NotNegative], Field(min_length=1, max_length=MOST_INTERVALS)]
    """Mean power of each interval at the meter. It covers every billing period that the run touches."""


BaselineLoad = Annotated[ConstantBaselineLoad | BaselineLoadSeries, Discriminator("kind")]
"""What the meter of the site reads without the run."""


class RunSiteInput(SiteEnergyInput, SiteCarbonInput):
    """The building. Figures given here take the place of those of `site_id`."""

    site_id: CatalogName | MISSING = MISSING
    """Site of the catalog."""
    pue: Annotated[float, Field(ge=1, le=10)] | MISSING = MISSING
    """Power usage effectiveness: facility energy over IT energy."""
    electricity: ElectricityPriceInput | MISSING = MISSING
    """What electricity costs."""
    time_zone: TimeZone | MISSING = MISSING
    """Local clock of the site, by which a tariff is read; needed with a tariff."""
    baseline_load: BaselineLoad | MISSING = MISSING
    """What the meter of the site reads without the run."""
    grid_id: CatalogName | MISSING = MISSING
    """Grid of the catalog."""
    carbon_intensity_kg_co2e_per_kwh: NotNegative | MISSING = MISSING
    """Emissions of each kWh at the meter."""
    water_usage_effectiveness_liters_per_kwh: NotNegative | MISSING = MISSING
    """Water evaporated on the site per kWh of IT energy."""
