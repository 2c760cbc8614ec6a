"""Measured constants of operators, links, steps, engines and power: frozen, fitted elsewhere."""

from dataclasses import dataclass

from service.planning.hardware.calibration.links import LinkCalibration, LinkCurves
from service.planning.hardware.calibration.operators import (
    MachineFacts,
    OperatorCalibration,
    OperatorQuantity,
    OperatorRates,
)
from service.planning.hardware.calibration.passes import PassCalibration
from service.planning.hardware.calibration.power import PowerCalibration, PowerQuantity, PowerRates
from service.planning.hardware.calibration.serving import ServingCalibration, ServingQuantity, ServingRates
from service.planning.hardware.calibration.shares import AchievedShare
from service.planning.hardware.calibration.steps import StepCalibration, StepQuantity, StepRates

__all__ = [
    "AchievedShare",
    "Calibration",
    "LinkCalibration",
    "LinkCurves",
    "MachineFacts",
    "OperatorCalibration",
    "OperatorQuantity",
    "OperatorRates",
    "PassCalibration",
    "PowerCalibration",
    "PowerQuantity",
    "PowerRates",
    "ServingCalibration",
    "ServingQuantity",
    "ServingRates",
    "StepCalibration",
    "StepQuantity",
    "StepRates",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One immutable set of constants."""

    operators: OperatorCalibration
    links: LinkCurves
    steps: StepCalibration
    passes: PassCalibration
    serving: ServingCalibration
    power: PowerCalibration
