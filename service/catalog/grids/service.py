"""What a grid must obey, and grids from published tables of hourly intensities."""

from typing import NamedTuple

from service.catalog.grids.schemas import GridImport, ImportedGrid
from service.catalog.rows import Document
from service.formats.grid import avert_regions, month_hours
from service.kit.http.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError
from service.planning.tariff.calendar import zone_of
from service.schemas.base import AnswerWarning

_WHOLE_YEAR_HOURS = 8760


def check_grid(document: Document) -> Document:
    """Nothing to add; :class:`PlanningError` for a series by the clock of a zone that does not exist."""
    if zone := document.get("series", {}).get("time_zone"):
        zone_of(zone, "/series/time_zone")
    return {}


class ReadTable(NamedTuple):
    """A table as a catalog row, with what it leaves open."""

    document: Document
    warnings: list[AnswerWarning]

    def answer(self, stored: Document) -> ImportedGrid:
        """The stored row beside the warnings."""
        return {"grid": stored, "warnings": self.warnings}  # type: ignore[typeddict-item]


def read_table(body: GridImport) -> ReadTable:
    """The row that a published table describes."""
    try:
        zone_of(body.time_zone)
        values, counted = _values(body)
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The table cannot be imported", field) from error
    document = body.model_dump(mode="json", exclude={"format", "content", "time_zone"}) | counted
    document["carbon_intensity_kg_co2e_per_kwh"] = max(0.0, sum(values) / len(values))
    kind = "hours_of_year" if body.format == "avert_csv" else "month_hours"
    document["series"] = {"kind": kind, "time_zone": body.time_zone, "kg_co2e_per_kwh": list(values)}
    warnings: list[AnswerWarning] = []
    if kind == "hours_of_year" and len(values) < _WHOLE_YEAR_HOURS:
        detail = f"{len(values)} hours: the mean of the row is theirs, and later hours have no intensity"
        warnings.append({"code": "YEAR_INCOMPLETE", "pointer": "/content", "detail": detail})
    return ReadTable(document, warnings)


def _values(body: GridImport) -> tuple[tuple[float, ...], Document]:
    """The series, and what it counts."""
    if body.format == "month_hour_csv":
        return month_hours(body.content), {"emission_rate": "average", "greenhouse_gases": "co2e"}
    regions = avert_regions(body.content)
    if body.code not in regions:
        raise PlanningError("REGION_UNKNOWN", "/code", "the file has no column of this name")
    return regions[body.code], {"emission_rate": "marginal", "greenhouse_gases": "co2"}
