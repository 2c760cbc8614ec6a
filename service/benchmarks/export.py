"""Export of results as a table of one row each, with the same columns as CSV and as Parquet, page by page."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from service.benchmarks.schemas import MeasurementConditions, SampleSummary
from service.kit.http.csv_tables import render_csv_parts

if TYPE_CHECKING:
    import pyarrow as pa

ColumnKind = Literal["text", "integer", "number", "boolean", "time"]
ExportRow = Mapping[str, Any]
"""A result as the API shows it."""


class ExportColumn(NamedTuple):
    """A column, and the path of its value in a result."""

    name: str
    kind: ColumnKind
    path: tuple[str, ...]

    def get_value(self, row: ExportRow) -> Any:  # noqa: ANN401
        """Returns the value of a row; None if it is unknown."""
        place: Any = row
        for member in self.path:
            if place is None:
                return None
            place = place.get(member)
        # PostgreSQL returns a large number in a document as an integer.
        return float(place) if self.kind == "number" and place is not None else place


_KINDS: Mapping[object, ColumnKind] = MappingProxyType({int: "integer", float: "number", bool: "boolean"})
_OWN: tuple[tuple[str, ColumnKind], ...] = (
    ("id", "text"),
    ("content_sha256", "text"),
    ("run_id", "text"),
    ("attempt", "integer"),
    ("fencing_token", "integer"),
    ("benchmark", "text"),
    ("repeat", "integer"),
    ("lease", "text"),
    ("conflicts_with", "text"),
    ("is_counted", "boolean"),
    ("node_id", "text"),
    ("suite_id", "text"),
    ("suite_version", "integer"),
    ("device", "text"),
    ("hardware", "text"),
    ("hardware_sha256", "text"),
    ("work_sha256", "text"),
    ("metric", "text"),
    ("direction", "text"),
    ("status", "text"),
    ("reason", "text"),
    ("started_at", "time"),
    ("finished_at", "time"),
    ("received_at", "time"),
)
FIGURES = ("flops_per_second", "bytes_per_second", "seconds", "bytes", "watts")
"""Metrics with a column of their own for the figure, so that every column has one unit."""


def _resolve_kind(annotation: object) -> ColumnKind:
    """Returns the kind of the column for a schema member, whether optional or not."""
    if annotation in _KINDS:
        return _KINDS[annotation]
    return next((kind for part in get_args(annotation) if (kind := _resolve_kind(part)) != "text"), "text")


def _build_columns(
    shape: type[SampleSummary | MeasurementConditions], under: str, prefix: str
) -> list[ExportColumn]:
    return [
        ExportColumn(f"{prefix}{name}", _resolve_kind(field.annotation), (under, name))
        for name, field in shape.model_fields.items()
    ]


COLUMNS = (
    *(ExportColumn(name, kind, (name,)) for name, kind in _OWN),
    ExportColumn("verdict", "text", ("validation", "verdict")),
    *(ExportColumn(f"figure_{metric}", "number", ("figures", metric)) for metric in FIGURES),
    *_build_columns(SampleSummary, "summary", "sample_"),
    *_build_columns(MeasurementConditions, "conditions", ""),
)
"""Columns of the table. Samples are seconds of one execution, or readings in the unit of the metric."""


def _list_values(row: ExportRow) -> list[Any]:
    figures = {row["metric"]: row.get("figure")}
    return [column.get_value({**row, "figures": figures}) for column in COLUMNS]


def render_csv(pages: Iterable[Sequence[ExportRow]]) -> Iterator[bytes]:
    """Yields a line for each row, after one with the names; an unknown value is an empty cell."""
    return render_csv_parts([column.name for column in COLUMNS], (map(_list_values, page) for page in pages))


def render_parquet(pages: Iterable[Sequence[ExportRow]]) -> Iterator[bytes]:
    """Yields the bytes of a Parquet file, with a row group for each page."""
    import pyarrow as pa  # noqa: PLC0415  # a fifth of a second to import
    from pyarrow import parquet  # noqa: PLC0415

    sink, schema = _BufferedSink(), _build_schema(pa)
    with parquet.ParquetWriter(pa.PythonFile(sink, "w"), schema) as writer:
        for page in pages:
            columns = zip(*map(_list_values, page), strict=True)
            arrays = [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            yield sink.take_written()
    yield sink.take_written()


def _build_schema(arrow: Any) -> "pa.Schema":  # noqa: ANN401
    types: Mapping[ColumnKind, Callable[[], Any]] = {
        "text": arrow.string,
        "integer": arrow.int64,
        "number": arrow.float64,
        "boolean": arrow.bool_,
        "time": lambda: arrow.timestamp("us", tz="UTC"),
    }
    return arrow.schema([(column.name, types[column.kind]()) for column in COLUMNS])


class _BufferedSink(io.RawIOBase):
    """A sink that buffers written bytes until they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        """Returns true: the sink accepts bytes."""
        return True

    def write(self, part: Any) -> int:  # noqa: ANN401
        """Buffers bytes."""
        self._parts.append(bytes(part))
        return len(self._parts[-1])

    def take_written(self) -> bytes:
        """Returns the bytes that were written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
