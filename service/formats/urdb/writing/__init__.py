"""Conversion of a tariff to the document of a rate, and the omissions of such a document."""

from service.formats.urdb.writing.rate import UrdbExport, urdb_from_tariff

__all__ = [
    "UrdbExport",
    "urdb_from_tariff",
]
