"""What collectives reach of the rates of links."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.planning.calibration.shares import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCalibration:
    """Constants of links by name."""

    constants: Mapping[str, Share] = field(default_factory=dict)
