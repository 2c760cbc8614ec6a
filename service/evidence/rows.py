"""Measured rows as they were gathered: one figure of one run each, checked once, here."""

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

TEXT_COLUMNS: Final = frozenset(
    {"id", "source", "kind", "model", "precision", "parallelism", "gpu", "n_gpus", "value"}
)
DERIVED_COLUMNS: Final = frozenset(
    {
        *("run_id", "model_id", "accelerator_id", "layout_json", "precision_json", "batch_json"),
        *("length_json", "recomputation", "adaptation", "trainable_parameters", "parameter_count"),
        *("active_parameter_count", "metric", "value_si", "unit_si", "per", "eligible_hint"),
    }
)
KINDS: Final = frozenset({"training", "inference"})
PER: Final = frozenset({"device", "node", "system", "replica", "user"})
UNITS: Final = frozenset(
    {
        *("s", "bytes", "tokens/s", "FLOP/s", "fraction", "W", "J", "J/token", "kg", "USD", "tokens"),
        *("nodes", "samples/s", "bytes/s", "device*s", "bool"),
    }
)
RECOMPUTATIONS: Final = frozenset({"", "none", "selective", "full", "unknown"})
HINTS: Final = frozenset(
    {"model_shape", "accelerator", "layout", "batch", "lengths", "engine_version", "recomputation"}
)

_COUNT, _NUMBER, _WORD, _TRUTH = "a whole number", "a number", "a text", "true or false"
LAYOUT: Final = {
    **dict.fromkeys(
        ("tensor", "pipeline", "data", "context", "expert", "virtual_stages", "zero_stage"), _COUNT
    ),
    **dict.fromkeys(("zero_group", "attention_data", "moe_tensor", "moe_expert"), _COUNT),
    **dict.fromkeys(("workers", "batch_size"), _COUNT),
    "sharding": _WORD,
    "sequence_parallel": _TRUTH,
}
PRECISION: Final = dict.fromkeys(
    ("weights", "compute", "gradients", "optimizer", "kv_cache", "quantisation"), _WORD
)
BATCH: Final = {
    **dict.fromkeys(
        ("micro_batch_size", "global_batch_size", "global_batch_tokens", "gradient_accumulation_steps"),
        _NUMBER,
    ),
    **dict.fromkeys(("concurrency", "max_num_seqs", "average_batch", "requests", "batch_per_rank"), _NUMBER),
    "scenario": _WORD,
}
LENGTH: Final = dict.fromkeys(("sequence_length", "input_tokens", "output_tokens", "max_model_len"), _NUMBER)

SHARDINGS: Final = frozenset({"none", "zero_1", "zero_2", "zero_3", "hybrid"})


class RowsError(Exception):
    """A file of rows that cannot be read: which line, which column, what is wrong."""

    def __init__(self, path: Path, line: int, column: str, detail: str) -> None:
        self.path, self.line, self.column, self.detail = path, line, column, detail
        super().__init__(f"{path}: line {line}, column {column}: {detail}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure. ``text`` holds the columns as the source has them; it wins over the others."""

    id: str
    run_id: str
    source: str
    kind: str
    metric: str
    model_id: str
    accelerator_id: str
    layout: Mapping[str, Any]
    precision: Mapping[str, str]
    batch: Mapping[str, Any]
    length: Mapping[str, float]
    recomputation: str
    adaptation: str
    trainable_parameters: int | None
    parameter_count: int | None
    active_parameter_count: int | None
    value: float
    unit: str
    per: str
    missing: frozenset[str]
    """Facts that a physical estimate lacks, as the file says."""
    text: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowsFile:
    """Rows of one file, in its order, with what is odd about it but does not stop its reading."""

    path: Path
    sha256: str
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Line:
    """The cells of one row, and where they stand."""

    path: Path
    number: int
    cells: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def error(self, column: str, detail: str) -> RowsError:
        return RowsError(self.path, self.number, column, detail)

    def required(self, column: str) -> str:
        text = self.cells[column].strip()
        if not text:
            raise self.error(column, "is empty")
        return text

    def one_of(self, column: str, known: frozenset[str]) -> str:
        text = self.cells[column].strip()
        if text not in known:
            raise self.error(column, f"{_shown(text)} is none of: {', '.join(sorted(known - {''}))}")
        return text

    def value(self, column: str) -> float:
        text = self.required(column)
        try:
            number = float(text)
        except ValueError:
            raise self.error(column, f"{_shown(text)} is not a number") from None
        if not math.isfinite(number):
            raise self.error(column, f"{_shown(text)} is not finite")
        return number

    def count(self, column: str) -> int | None:
        text = self.cells[column].strip()
        if not text:
            return None
        number = self.value(column)
        if number < 0 or number != int(number):
            raise self.error(column, f"{_shown(text)} is not a whole number")
        return int(number)

    def members(self, column: str, known: Mapping[str, str]) -> Mapping[str, Any]:
        text = self.cells[column].strip()
        if not text:
            return MappingProxyType({})
        try:
            document = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise self.error(column, "is not JSON") from None
        if not isinstance(document, dict):
            raise self.error(column, "is not a JSON object")
        self._check(column, document, known)
        return MappingProxyType(document)

    def _check(self, column: str, document: Mapping[str, Any], known: Mapping[str, str]) -> None:
        for name, value in document.items():
            wanted = known.get(name)
            if name in ("prefill", "decode") and column == "layout_json" and isinstance(value, dict):
                self._check(column, value, known)
            elif wanted is None:
                self.warnings.append(str(self.error(column, f"member {_shown(name)} is not known")))
            elif not _is(value, wanted):
                raise self.error(column, f"member {name} is not {wanted}")
            elif name == "sharding" and value not in SHARDINGS:
                raise self.error(
                    column, f"sharding {_shown(value)} is none of: {', '.join(sorted(SHARDINGS))}"
                )


def _shown(text: object) -> str:
    """A text of the file, short and on one line."""
    return repr(str(text)[:40])


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _is(value: object, wanted: str) -> bool:
    if wanted in (_WORD, _TRUTH):
        return isinstance(value, str if wanted == _WORD else bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0 and (wanted == _NUMBER or value == int(value))


def _unit(line: _Line, metric: str, units: Mapping[str, str]) -> str:
    unit = line.one_of("unit_si", UNITS)
    if metric not in units:
        line.warnings.append(
            str(line.error("metric", f"{_shown(metric)} is not known; the row is not scored"))
        )
    elif unit != units[metric]:
        raise line.error("unit_si", f"{unit} is not the unit of {metric}, {units[metric]}")
    return unit


def _row(line: _Line, units: Mapping[str, str]) -> Row:
    hints = frozenset(filter(None, (hint.strip() for hint in line.cells["eligible_hint"].split(","))))
    if hints - HINTS:
        unknown = ", ".join(map(_shown, sorted(hints - HINTS)))
        raise line.error("eligible_hint", f"{unknown} is none of: {', '.join(sorted(HINTS))}")
    metric = line.required("metric")
    unit = _unit(line, metric, units)
    value = line.value("value_si")
    if unit == "bool" and value not in (0.0, 1.0):
        raise line.error("value_si", "a bool is 0 or 1")
    return Row(
        id=line.required("id"),
        run_id=line.required("run_id"),
        source=line.required("source"),
        kind=line.one_of("kind", KINDS),
        metric=metric,
        model_id=line.required("model_id"),
        accelerator_id=line.required("accelerator_id"),
        layout=line.members("layout_json", LAYOUT),
        precision=line.members("precision_json", PRECISION),
        batch=line.members("batch_json", BATCH),
        length=line.members("length_json", LENGTH),
        recomputation=line.one_of("recomputation", RECOMPUTATIONS),
        adaptation=line.cells["adaptation"].strip(),
        trainable_parameters=line.count("trainable_parameters"),
        parameter_count=line.count("parameter_count"),
        active_parameter_count=line.count("active_parameter_count"),
        value=value,
        unit=unit,
        per=line.one_of("per", PER),
        missing=hints,
        text=MappingProxyType(dict(line.cells)),
    )


def _lines(path: Path, text: str) -> Iterator[_Line]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        missing = sorted((TEXT_COLUMNS | DERIVED_COLUMNS) - set(header))
        if missing:
            raise RowsError(path, 1, missing[0], f"the header lacks: {', '.join(missing)}")
        doubled = sorted({name for name in header if header.count(name) > 1})
        if doubled:
            raise RowsError(path, 1, doubled[0], "the header names it twice")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                short = header[len(cells)] if len(cells) < len(header) else header[-1]
                detail = f"the line has {len(cells)} cells, the header {len(header)}"
                raise RowsError(path, reader.line_num, short, detail)
            yield _Line(path, reader.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise RowsError(path, reader.line_num, "all", f"is not CSV: {error}") from None


def read_rows(path: Path, units: Mapping[str, str]) -> RowsFile:
    """The rows of one file; raises :class:`RowsError` at the first that cannot be read.

    ``units`` are those of the known metrics; a row of another metric is kept, with a warning.
    """
    try:
        data = path.read_bytes()
        text = data.decode()
    except OSError as error:
        raise RowsError(path, 0, "all", error.strerror or "cannot be read") from None
    except UnicodeDecodeError:
        raise RowsError(path, 0, "all", "is not UTF-8") from None
    rows, warnings, seen = [], [], set()
    for line in _lines(path, text):
        row = _row(line, units)
        if row.id in seen:
            raise line.error("id", f"{_shown(row.id)} stands twice")
        seen.add(row.id)
        rows.append(row)
        warnings.extend(line.warnings)
    return RowsFile(path, hashlib.sha256(data).hexdigest(), tuple(rows), tuple(warnings))


def by_run(rows: Iterable[Row]) -> Mapping[str, Mapping[str, Row]]:
    """The rows of each run by their metric; a run's metrics explain each other."""
    runs: dict[str, dict[str, Row]] = {}
    for row in rows:
        runs.setdefault(row.run_id, {})[row.metric] = row
    return runs


def printed_half_unit(row: Row) -> float:
    """Half a unit of the last digit that the source prints, in the row's SI unit."""
    text = row.text["value"].strip()
    try:
        printed = float(text)
    except ValueError:
        return 0.0
    if printed == 0.0:
        return 0.0
    _, _, decimals = text.partition(".")
    return abs(row.value / printed) * 0.5 * 10.0 ** -len(decimals)


_SCALE = {"": 1, "k": 10**3, "M": 10**6, "B": 10**9}
_PRINTED_COUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kMB]?)(?:e(\d+))?")


def stated_count(text: str) -> int | None:
    """A count as tables print it: 50368, 250k, 7e9, 671B (37B active)."""
    match = _PRINTED_COUNT.match(text.strip())
    if not match:
        return None
    digits, scale, exponent = match.groups()
    return round(float(digits) * _SCALE[scale] * 10.0 ** int(exponent or 0))
