"""What the software around the operators of a step costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.planning.calibration.shares import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCalibration:
    """Constants of steps by name."""

    constants: Mapping[str, Share] = field(default_factory=dict)
