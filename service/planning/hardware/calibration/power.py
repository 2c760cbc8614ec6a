"""What an accelerator draws: constants of its power by what it does.

Shares are of the power limit, because idle chips, clocks and multipliers of a generation grow with what their
coolers take away; a byte of memory costs what its interface costs, whatever the device may draw in all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare, find_nearest_share, get_or_build
from service.planning.quantity import EvidenceBasis, weakest_basis


class PowerQuantity(StrEnum):
    """The constants of an accelerator's power."""

    IDLE_SHARE = "idle_share"
    """Share of the limit drawn under a context with no kernel: leakage, refresh of memory, clocks."""
    ACTIVE_SHARE = "active_share"
    """Share of the limit that a running kernel adds whatever it computes: one that waits or copies too."""
    UNPACKING_SHARE = "unpacking_share"
    """Share of the limit that kernels add which scale or unpack narrow weights beside multiplying them."""
    MATRIX_SHARE = "matrix_share"
    """Share of the limit that multiplying at the rate which the device sustains adds at the full clock."""
    MATRIX_EXPONENT = "matrix_exponent"
    """How that grows with the rate: below 1, because few rows pay for the whole tiles that they stand in."""
    COMMUNICATION_SHARE = "communication_share"
    """Share of the limit that sending and receiving at the rate of the links adds."""
    BYTE_JOULES = "byte_joules"
    """Energy of one byte between memory and multiprocessors."""


DRAW: Final = frozenset(
    {
        PowerQuantity.IDLE_SHARE,
        PowerQuantity.ACTIVE_SHARE,
        PowerQuantity.MATRIX_SHARE,
        PowerQuantity.BYTE_JOULES,
    }
)
"""What the draw under load consists of: a device of which all were measured is a measured one."""


class PowerRates(NamedTuple):
    """The constants of one generation as numbers."""

    idle_share: float
    active_share: float
    unpacking_share: float
    matrix_share: float
    matrix_exponent: float
    communication_share: float
    byte_joules: float


PowerKey = tuple[PowerQuantity, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCalibration:
    """Constants by quantity and generation; None stands for any of them."""

    constants: Mapping[PowerKey, AchievedShare]
    measured: frozenset[str] = frozenset()
    """Generations whose draw was measured."""
    bases: Mapping[PowerQuantity, EvidenceBasis] = field(default_factory=dict)
    """The evidence behind constants that were measured on the device itself."""
    _known: dict[str, PowerRates] = field(default_factory=dict, repr=False, compare=False)

    @property
    def basis_of_draw(self) -> EvidenceBasis | None:
        """The evidence behind the draw under load; None where a part of it was not measured on the device."""
        if not self.bases.keys() >= DRAW:
            return None
        return weakest_basis(*(self.bases[quantity] for quantity in DRAW))

    def find_share(self, quantity: PowerQuantity, generation: str) -> AchievedShare:
        """The constant of the generation, else that of any."""
        return find_nearest_share(self.constants, ((quantity, generation), (quantity, None)), quantity)

    def get_rates(self, generation: str) -> PowerRates:
        """The constants of a generation."""
        return get_or_build(
            self._known,
            generation,
            lambda: PowerRates(
                **{each.value: self.find_share(each, generation).value for each in PowerQuantity}
            ),
        )
