"""Series of grids as others publish them: text in, planning values out."""

from service.formats.grid.entsoe import PriceSeries, read_entsoe_prices
from service.formats.grid.hourly import read_avert_regions, read_month_hours

__all__ = ["PriceSeries", "read_avert_regions", "read_entsoe_prices", "read_month_hours"]
