"""Series of grids as others publish them: text in, planning values out."""

from service.formats.grid.entsoe import PriceSeries, entsoe_prices
from service.formats.grid.hourly import avert_regions, month_hours

__all__ = ["PriceSeries", "avert_regions", "entsoe_prices", "month_hours"]
