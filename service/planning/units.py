"""Conversion factors between the units of the field. Decimal and binary prefixes are never mixed."""

from typing import Final

GIGABYTE_BYTES: Final = 1e9
MEBIBYTE_BYTES: Final = 2.0**20
GIBIBYTE_BYTES: Final = 2.0**30
MINUTE_SECONDS: Final = 60.0
HOUR_SECONDS: Final = 3600.0
DAY_SECONDS: Final = 86_400.0
KILOWATT_HOUR_JOULES: Final = 3.6e6
MILLION: Final = 1e6
