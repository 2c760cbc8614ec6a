"""Rules of grids, and import of grids from published tables of hourly intensities."""

from typing import NamedTuple

from service.catalog.grids.schemas import GridImportRequest, ImportedGrid
from service.catalog.rows import RowDocument
from service.formats.grid import read_avert_regions, read_month_hours
from service.kit.http.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError
from service.planning.tariff.calendar import resolve_zone
from service.schemas.base import AnswerWarning

_WHOLE_YEAR_HOURS = 8760


def check_grid(document: RowDocument) -> RowDocument:
    """Returns no members. Raises :class:`PlanningError` for a series in a time zone that does not exist."""
    if zone := document.get("series", {}).get("time_zone"):
        resolve_zone(zone, "/series/time_zone")
    return {}


class ReadTable(NamedTuple):
    """A table as a catalog row, with warnings about facts that it leaves open."""

    document: RowDocument
    warnings: list[AnswerWarning]

    def to_response(self, stored: RowDocument) -> ImportedGrid:
        """Returns the stored row with the warnings."""
        return {"grid": stored, "warnings": self.warnings}  # type: ignore[typeddict-item]


def read_table(body: GridImportRequest) -> ReadTable:
    """Returns the row that a published table describes."""
    try:
        resolve_zone(body.time_zone)
        values, counted = _read_values(body)
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The table cannot be imported", field) from error
    document = body.model_dump(mode="json", exclude={"format", "content", "time_zone"}) | counted
    document["carbon_intensity_kg_co2e_per_kwh"] = max(0.0, sum(values) / len(values))
    kind = "hours_of_year" if body.format == "avert_csv" else "month_hours"
    document["series"] = {"kind": kind, "time_zone": body.time_zone, "kg_co2e_per_kwh": list(values)}
    warnings: list[AnswerWarning] = []
    if kind == "hours_of_year" and len(values) < _WHOLE_YEAR_HOURS:
        detail = f"{len(values)} hours: the mean is of these hours only, and later hours have no intensity"
        warnings.append({"code": "YEAR_INCOMPLETE", "pointer": "/content", "detail": detail})
    return ReadTable(document, warnings)


def _read_values(body: GridImportRequest) -> tuple[tuple[float, ...], RowDocument]:
    """Returns the series, and the emissions that it counts."""
    if body.format == "month_hour_csv":
        return read_month_hours(body.content), {"emission_rate": "average", "greenhouse_gases": "co2e"}
    regions = read_avert_regions(body.content)
    if body.code not in regions:
        raise PlanningError("REGION_UNKNOWN", "/code", "the file has no column of this name")
    return regions[body.code], {"emission_rate": "marginal", "greenhouse_gases": "co2"}
