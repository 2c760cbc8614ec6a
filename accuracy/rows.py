"""Measured rows, each a checked figure of one run."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from accuracy.lines import RowLine, read_lines, shown

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One measured figure. ``text`` holds the original columns, which take precedence over the others."""

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
    """Facts that a physical estimate lacks, according to the file."""
    text: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MeasuredRowsFile:
    """Rows of one file in order, with remarks that do not prevent its use."""

    path: Path
    sha256: str
    rows: tuple[MeasuredRow, ...]
    warnings: tuple[str, ...]


def _members(line: RowLine, column: str, known: Mapping[str, str]) -> Mapping[str, Any]:
    text = line.cells[column].strip()
    if not text:
        return MappingProxyType({})
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise line.error(column, "is not JSON") from None
    if not isinstance(document, dict):
        raise line.error(column, "is not a JSON object")
    _check(line, column, document, known)
    return MappingProxyType(document)


def _check(line: RowLine, column: str, document: Mapping[str, Any], known: Mapping[str, str]) -> None:
    for name, value in document.items():
        wanted = known.get(name)
        if name in ("prefill", "decode") and column == "layout_json" and isinstance(value, dict):
            _check(line, column, value, known)
        elif wanted is None:
            line.warnings.append(str(line.error(column, f"member {shown(name)} is not known")))
        elif not _is(value, wanted):
            raise line.error(column, f"member {name} is not {wanted}")
        elif name == "sharding" and value not in SHARDINGS:
            raise line.error(column, f"sharding {shown(value)} is none of: {', '.join(sorted(SHARDINGS))}")


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _is(value: object, wanted: str) -> bool:
    if wanted in (_WORD, _TRUTH):
        return isinstance(value, str if wanted == _WORD else bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0 and (wanted == _NUMBER or value == int(value))


_OF_TRAINING = {"samples_per_s": "training_samples_per_s"}
"""Metrics of training whose names in rows are those of metrics of serving."""


def _unit(line: RowLine, metric: str, units: Mapping[str, str]) -> str:
    unit = line.one_of("unit_si", UNITS)
    if metric not in units:
        line.warnings.append(
            str(line.error("metric", f"{shown(metric)} is not known; the row is not scored"))
        )
    elif unit != units[metric]:
        raise line.error("unit_si", f"{unit} is not the unit of {metric}, {units[metric]}")
    return unit


def _row(line: RowLine, units: Mapping[str, str]) -> MeasuredRow:
    hints = frozenset(filter(None, (hint.strip() for hint in line.cells["eligible_hint"].split(","))))
    if hints - HINTS:
        unknown = ", ".join(map(shown, sorted(hints - HINTS)))
        raise line.error("eligible_hint", f"{unknown} is none of: {', '.join(sorted(HINTS))}")
    metric = line.required("metric")
    if line.required("kind") == "training":
        metric = _OF_TRAINING.get(metric, metric)
    unit = _unit(line, metric, units)
    value = line.value("value_si")
    if unit == "bool" and value not in (0.0, 1.0):
        raise line.error("value_si", "a bool is 0 or 1")
    return MeasuredRow(
        id=line.required("id"),
        run_id=line.required("run_id"),
        source=line.required("source"),
        kind=line.one_of("kind", KINDS),
        metric=metric,
        model_id=line.required("model_id"),
        accelerator_id=line.required("accelerator_id"),
        layout=_members(line, "layout_json", LAYOUT),
        precision=_members(line, "precision_json", PRECISION),
        batch=_members(line, "batch_json", BATCH),
        length=_members(line, "length_json", LENGTH),
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


def read_rows(path: Path, units: Mapping[str, str]) -> MeasuredRowsFile:
    """Reads the rows of one file. Raises :class:`RowsError` at the first invalid one.

    ``units`` are those of the known metrics; a row of another metric is kept, with a warning.
    """
    rows, warnings = [], []
    read = read_lines(path, TEXT_COLUMNS | DERIVED_COLUMNS)
    for line in read.lines:
        rows.append(_row(line, units))
        warnings.extend(line.warnings)
    return MeasuredRowsFile(path, read.sha256, tuple(rows), tuple(warnings))


def by_run(rows: Iterable[MeasuredRow]) -> Mapping[str, Mapping[str, MeasuredRow]]:
    """Returns the rows of each run by metric."""
    runs: dict[str, dict[str, MeasuredRow]] = {}
    for row in rows:
        runs.setdefault(row.run_id, {})[row.metric] = row
    return runs


def printed_half_unit(row: MeasuredRow) -> float:
    """Returns half a unit of the last digit that the source prints, in the row's SI unit."""
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
    """Parses a count as tables print it: 50368, 250k, 7e9, 671B (37B active)."""
    match = _PRINTED_COUNT.match(text.strip())
    if not match:
        return None
    digits, scale, exponent = match.groups()
    return round(float(digits) * _SCALE[scale] * 10.0 ** int(exponent or 0))
