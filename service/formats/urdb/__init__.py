"""Rates of OpenEI's utility rate database (URDB), version 8 and older names, and the keys of worked bills."""

from service.formats.urdb.findings import ImportFinding
from service.formats.urdb.reading import UrdbImport, tariff_from_urdb
from service.formats.urdb.writing import UrdbExport, urdb_from_tariff

__all__ = ["ImportFinding", "UrdbExport", "UrdbImport", "tariff_from_urdb", "urdb_from_tariff"]
