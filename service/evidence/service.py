"""The shipped reference set and the parsing of its parts into planning values."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from service.planning.hardware.calibration import (
    Calibration,
    MachineFacts,
    OperatorCalibration,
    OperatorQuantity,
    PassCalibration,
    PowerCalibration,
    PowerQuantity,
    ServingCalibration,
    ServingQuantity,
    StepCalibration,
    StepQuantity,
)
from service.planning.hardware.calibration.facility import Cooling, FacilityCurves
from service.planning.hardware.calibration.links import LinkCalibration, LinkCurves, LinkShare
from service.planning.hardware.curves import AchievedShare, ReferenceCurves, TrainingMemoryCurves
from service.planning.hardware.distance import EvidenceSystem, ServingEvidence, build_evidence
from service.planning.hardware.links import LinkKind
from service.planning.hardware.local_evidence import LogDeviations
from service.planning.precision import NumberFormat
from service.planning.quantity import IntervalFactors
from service.planning.software.engines import EngineName
from service.planning.software.frameworks import Framework


def _parse_share(entry: dict[str, Any]) -> AchievedShare:
    return AchievedShare(entry["low"], entry["value"], entry["high"], entry["runs"], entry["source"])


def _parse_figure(entry: dict[str, Any]) -> Any:  # noqa: ANN401
    return _parse_share(entry) if "value" in entry else IntervalFactors(**entry)


def parse_link_curves(document: Mapping[str, Any]) -> LinkCurves:
    """Parses constants of links."""
    rates, hops = document["rate"], document["hop_seconds"]

    def build_link_calibration(share: str, seconds: str) -> LinkCalibration:
        generations = {name: entry[share] for name, entry in document["in_network"].items()}
        return LinkCalibration(
            launch_seconds=document["launch_seconds"][seconds],
            chunk_seconds=document["chunk_seconds"][seconds],
            links={LinkKind(kind): LinkShare(rates[kind][share], hops[kind][seconds]) for kind in rates},
            in_network_pooled=generations.pop("pooled"),
            in_network=generations,
        )

    return LinkCurves(
        slow=build_link_calibration("low", "high"),
        value=build_link_calibration("value", "value"),
        fast=build_link_calibration("high", "low"),
        sources={LinkKind(kind): entry["source"] for kind, entry in rates.items()},
        measured=frozenset(LinkKind(kind) for kind, entry in rates.items() if entry["runs"]),
    )


@cache
def load_reference_curves() -> ReferenceCurves:
    """Returns the reference set that ships with the service."""
    return parse_curves(load_shipped_document())


def load_shipped_document() -> dict[str, Any]:
    """Reads the reference set that ships with the service as a JSON document."""
    document: dict[str, Any] = json.loads((files("service.evidence") / "reference_curves.json").read_text())
    return document


def parse_curves(document: Mapping[str, Any]) -> ReferenceCurves:
    """Parses a reference set, with the residuals that the last fit left."""
    residuals = {
        (entry["family"], entry["level"]): IntervalFactors(
            entry["low"], entry["high"], "rows outside of their fit"
        )
        for entry in document.get("residuals", [])
    }
    evidence = parse_serving_evidence(document.get("serving_evidence", {}))
    return replace(
        _parse_curves(document),
        residuals=residuals,
        serving_evidence=evidence,
        deviations=parse_deviations(document.get("deviations", {})),
    )


def parse_deviations(document: Mapping[str, Any]) -> dict[str, LogDeviations]:
    """Parses common deviations of a tenant's runs, by kind of answer."""
    return {family: LogDeviations(**entry["values"]) for family, entry in document.items() if entry["counts"]}


@cache
def known_rows() -> frozenset[str]:
    """Returns fingerprints of the rows that the reference set was fitted to."""
    return frozenset((files("service.evidence") / "known_rows.txt").read_text().split())


def parse_serving_evidence(document: Mapping[str, Any]) -> ServingEvidence:
    """Parses the systems and models whose serving was measured."""
    systems = (EvidenceSystem(*system) for system in document.get("systems", []))
    return build_evidence(systems, document.get("parameter_counts", []))


_OF_THE_FIT = frozenset({"residuals", "fitted", "fitted_serving", "serving_evidence", "deviations"})
"""Parts of the reference set that a fit writes in addition to its constants."""


def _parse_curves(document: Mapping[str, Any]) -> ReferenceCurves:
    document = {name: entry for name, entry in document.items() if name not in _OF_THE_FIT}
    training = {
        (entry["generation"], NumberFormat(entry["compute"]), entry["recomputation"]): _parse_share(entry)
        for entry in document.pop("training")
    }
    pooled = {entry["recomputation"]: _parse_share(entry) for entry in document.pop("training_pooled")}
    memory = {name: _parse_figure(entry) for name, entry in document.pop("training_memory").items()}
    measured = frozenset(document.pop("serving_generations"))
    engines = {
        EngineName(engine): {name: _parse_share(entry) for name, entry in quantities.items()}
        for engine, quantities in document.pop("serving_memory").items()
    }
    calibration = _parse_calibration(document.pop("calibration"), document.pop("links"))
    single: dict[str, Any] = {name: _parse_figure(entry) for name, entry in document.items()}
    return ReferenceCurves(
        training=training,
        training_pooled=pooled,
        training_memory=TrainingMemoryCurves(**memory),
        serving_generations=measured,
        serving_memory=engines,
        calibration=calibration,
        facility=load_facility_curves(),
        **single,
    )


@cache
def load_facility_curves() -> FacilityCurves:
    """Returns the power that machines around accelerators draw, from the shipped file."""
    document: dict[str, Any] = json.loads((files("service.evidence") / "facility_curves.json").read_text())
    fans = {Cooling(cooling): _parse_share(entry) for cooling, entry in document.pop("fans").items()}
    return FacilityCurves(fans=fans, **{name: _parse_share(entry) for name, entry in document.items()})


def _parse_calibration(document: Mapping[str, Any], links: Mapping[str, Any]) -> Calibration:
    return Calibration(
        operators=parse_operator_calibration(document["operators"]),
        links=parse_link_curves(links),
        steps=parse_step_calibration(document["steps"]),
        passes=PassCalibration(**{name: _parse_share(entry) for name, entry in document["passes"].items()}),
        serving=parse_serving_calibration(document["serving"]),
        power=parse_power_calibration(document["power"]),
    )


def parse_step_calibration(document: Mapping[str, Any]) -> StepCalibration:
    """Parses constants of steps; a constant of one framework has its name behind a slash."""
    constants = {}
    for name, entry in document.items():
        quantity, _, framework = name.partition("/")
        constants[StepQuantity(quantity), Framework(framework) if framework else None] = _parse_share(entry)
    return StepCalibration(constants=constants)


def parse_serving_calibration(document: Mapping[str, Any]) -> ServingCalibration:
    """Parses constants of serving engines; engine and generation of its versions follow behind slashes."""
    constants = {}
    for name, entry in document.items():
        quantity, _, software = name.partition("/")
        engine, _, generation = software.partition("/")
        key = (ServingQuantity(quantity), EngineName(engine) if engine else None, generation or None)
        constants[key] = _parse_share(entry)
    return ServingCalibration(constants=constants)


def parse_power_calibration(document: Mapping[str, Any]) -> PowerCalibration:
    """Parses constants of power; a constant of one generation has its name behind a slash."""
    constants = {}
    for name, entry in document["constants"].items():
        quantity, _, generation = name.partition("/")
        constants[PowerQuantity(quantity), generation or None] = _parse_share(entry)
    return PowerCalibration(constants=constants, measured=frozenset(document["measured"]))


def parse_operator_calibration(document: Mapping[str, Any]) -> OperatorCalibration:
    """Parses constants of operators."""
    constants = {}
    for entry in document["constants"]:
        number_format = entry.get("format")
        key = (
            OperatorQuantity(entry["quantity"]),
            entry.get("generation"),
            NumberFormat(number_format) if number_format else None,
        )
        constants[key] = _parse_share(entry)
    machines = {}
    for entry in document["machines"]:
        rows, columns = entry["tile"]
        machines[entry["name"]] = MachineFacts(
            entry["multiprocessors"],
            rows,
            columns,
            entry["source"],
            entry.get("bounds_streams", True),
            {NumberFormat(name): scale for name, scale in entry.get("peak_scales", {}).items()},
        )
    return OperatorCalibration(constants=constants, machines=machines)
