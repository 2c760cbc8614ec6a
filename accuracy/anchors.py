"""Comparison with other tools' answers to memory questions, and with known values."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from accuracy.lines import RowsError
from accuracy.report import TextTable
from accuracy.scoring import Estimators
from service.evidence.measured import SHAPES, MeasuredOperation
from service.planning.errors import PlanningError
from service.planning.units import GIBIBYTE_BYTES, GIGABYTE_BYTES
from service.resolve.catalog import CatalogView

COLUMNS: Final = frozenset(
    {"anchor", "version", "task", "model", "hardware", "setting", "quantity", "value", "unit", "reference"}
)
_UNITS: Final = {"GB": GIGABYTE_BYTES, "GiB": GIBIBYTE_BYTES}
_STATE: Final = ("weights", "gradients", "master_weights", "optimizer_states")
_PARTS: Final[Mapping[str, tuple[str, ...] | None]] = {
    "weights": ("weights",),
    "weights_per_gpu": ("weights",),
    "kv_cache": ("kv_cache",),
    "weights_and_optimizer": _STATE,
    "activations": ("activations", "logits"),
    "memory_per_gpu": None,
    "total_memory": None,
    "peak_memory": None,
}
"""Parts of our answer that a quantity counts; None for the total."""
_SAME_SHAPE: Final = {"llama-3-8b": "llama-3.1-8b", "llama-3-70b": "llama-3.1-70b"}


class Anchor(NamedTuple):
    """A figure of another tool."""

    tool: str
    task: str
    model: str
    setting: str
    quantity: str
    size: float
    reference: float | None


def read_anchors(path: Path) -> list[Anchor]:
    """Returns the figures of memory in a file of other tools' answers."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = COLUMNS - set(reader.fieldnames or ())
        if missing:
            raise RowsError(path, 1, min(missing), "the header lacks it")
        anchors = []
        for row in reader:
            if row["quantity"] in _PARTS and row["unit"] in _UNITS:
                try:
                    anchors.append(_anchor(row))
                except ValueError:
                    raise RowsError(path, reader.line_num, "value", "is not a number") from None
    return anchors


def _anchor(row: Mapping[str, str]) -> Anchor:
    unit = _UNITS[row["unit"]]
    known = re.fullmatch(r"[\d.]+", row["reference"])
    name, version = row["anchor"], row["version"].partition(" (")[0]
    return Anchor(
        tool=f"{name} {version}".strip(),
        task=row["task"],
        model=row["model"],
        setting="; ".join(filter(None, (row["hardware"].strip("- "), row["setting"]))),
        quantity=row["quantity"],
        size=float(row["value"]) * unit,
        reference=float(known[0]) * unit if known else None,
    )


def _number(pattern: str, text: str, default: int = 1) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else default


def _model(anchor: Anchor, catalog: CatalogView) -> str | None:
    name = re.match(r"[\w.-]+", anchor.model)
    slug = name[0].lower() if name else ""
    return next((one for one in (slug, _SAME_SHAPE.get(slug, "")) if one in catalog.models), None)


def _tokens(text: str) -> tuple[int, int]:
    stated = re.search(r"isl (\d+) \+ osl (\d+)", text)
    if stated:
        return int(stated[1]), int(stated[2])
    both = re.search(r"(\d+)\+(\d+) ctx", text)
    if both:
        return int(both[1]), int(both[2])
    whole = _number(r"\bs?(\d{4,6})(?: ctx|;|,|$)", text, 8192)
    return whole - 1024, 1024


def _serving(anchor: Anchor) -> dict[str, Any]:
    inputs, outputs = _tokens(anchor.setting)
    return {
        "kind": "inference",
        "weight_precision": "bf16",
        "kv_cache_precision": "bf16",
        "input_tokens": inputs,
        "output_tokens": outputs,
        "concurrency": _number(r"batch (\d+)", anchor.setting),
    }


def _training(text: str) -> dict[str, Any]:
    pure = "pure bf16" in text or "LoRA" in text
    workload: dict[str, Any] = {
        "kind": "training",
        "sequence_length": _number(r"seq (\d+)", text, 8192),
        "micro_batch_size": _number(r"micro-batch (\d+)", text, _number(r"\bb(\d+)\b", text)),
        "gradient_accumulation_steps": 1,
        "precision": "pure_bf16" if pure else "bf16",
    }
    if "torchtitan" in text or "FSDP" in text:
        workload["framework"] = {"name": "torchtitan"}
    adapted = re.search(r"\b(Q?LoRA)\b", text)
    if adapted:
        workload["adaptation"] = {"kind": adapted[1].lower(), "rank": 8}
    if "selective" in text:
        workload["recomputation"] = {"strategy": "selective"}
    elif re.search(r"(?<!no )(?<!without )(full recompute|checkpointing|, recompute)", text):
        workload["recomputation"] = {"strategy": "full"}
    return workload


def _layout(text: str) -> dict[str, Any]:
    tensor = _number(r"TP(\d+)", text)
    data = _number(r"ZeRO-3 x(\d+)", text, _number(r"^x(\d+)", text, _number(r"(\d+) GPUs dist", text)))
    layout: dict[str, Any] = {"tensor": tensor, "data": data}
    if data > 1:
        layout["sharding"] = "zero_1" if "distributed optimizer" in text else "zero_3"
    return layout


def _question(anchor: Anchor, catalog: CatalogView) -> dict[str, Any] | None:
    model = _model(anchor, catalog)
    if model is None:
        return None
    text = f"{anchor.setting}; {anchor.model}"
    workload = _serving(anchor) if anchor.task == "inference" else _training(text)
    layout = _layout(text) if anchor.task == "training" else {"tensor": _number(r"TP(\d+)", text), "data": 1}
    return {"model": {"source": "catalog", "id": model}, "workload": workload, "parallelism": layout}


def _own(anchor: Anchor, catalog: CatalogView, estimators: Estimators) -> float | None:
    """Returns our figure, or None if the model is not in the catalog or a fact is not supported."""
    question = _question(anchor, catalog)
    if question is None:
        return None
    try:
        shape = SHAPES[MeasuredOperation.MEMORY].model_validate_json(json.dumps(question))
        device = estimators[MeasuredOperation.MEMORY](shape, catalog)["per_device"]
    except (ValidationError, PlanningError):
        return None
    names = _PARTS[anchor.quantity]
    if names is None:
        return float(device["total_bytes"]["value"]) if "total_bytes" in device else None
    return sum(float(part["bytes"]) for part in device["components"] if part["name"] in names)


def _lines(anchors: list[Anchor], catalog: CatalogView, estimators: Estimators) -> Iterator[list[str]]:
    for anchor in anchors:
        own = _own(anchor, catalog, estimators)
        known = anchor.reference
        yield [
            f"{anchor.model}; {anchor.setting}",
            anchor.quantity,
            anchor.tool,
            f"{anchor.size / GIGABYTE_BYTES:.2f}",
            "-" if own is None else f"{own / GIGABYTE_BYTES:.2f}",
            "-" if known is None else f"{known / GIGABYTE_BYTES:.2f}",
            "-" if known is None else f"{anchor.size / known - 1:+.1%}",
            "-" if known is None or own is None else f"{own / known - 1:+.1%}",
        ]


def beside_anchors(path: Path, catalog: CatalogView, estimators: Estimators) -> TextTable:
    """Returns a table of other tools' figures, ours, and the measured or exact one if there is one."""
    lines = list(_lines(read_anchors(path), catalog, estimators))
    head = ("case", "quantity", "tool", "tool GB", "ours GB", "known GB", "tool off", "ours off")
    return TextTable("Beside other tools", head, lines)
