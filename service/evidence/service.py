"""The shipped reference set of measured efficiencies, as planning reads it."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from service.planning.curves import ReferenceCurves, Share, TrainingMemoryCurves
from service.planning.precision import NumberFormat
from service.planning.quantity import Spread


def _share(entry: dict[str, Any]) -> Share:
    return Share(entry["low"], entry["value"], entry["high"], entry["runs"], entry["source"])


def _figure(entry: dict[str, Any]) -> Any:  # noqa: ANN401
    return _share(entry) if "value" in entry else Spread(**entry)


@cache
def reference_curves() -> ReferenceCurves:
    """The reference set that ships with the service."""
    document = json.loads((files("service.evidence") / "reference_curves.json").read_text())
    training = {
        (entry["generation"], NumberFormat(entry["compute"]), entry["recomputation"]): _share(entry)
        for entry in document.pop("training")
    }
    pooled = {entry["recomputation"]: _share(entry) for entry in document.pop("training_pooled")}
    memory = {name: _figure(entry) for name, entry in document.pop("training_memory").items()}
    measured = frozenset(document.pop("serving_generations"))
    single: dict[str, Any] = {name: _figure(entry) for name, entry in document.items()}
    return ReferenceCurves(
        training=training,
        training_pooled=pooled,
        training_memory=TrainingMemoryCurves(**memory),
        serving_generations=measured,
        **single,
    )
