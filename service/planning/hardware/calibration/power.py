"""Power of an accelerator: constants by the kind of its activity.

Shares are of the power limit, because idle chips, clocks and multipliers of a generation scale with the
capacity of their coolers; the energy of a byte depends on the memory interface, whatever the device's limit
is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare, find_nearest_share, get_or_build
from service.planning.quantity import EvidenceBasis, weakest_basis


class PowerQuantity(StrEnum):
    """Constants of an accelerator's power."""

    IDLE_SHARE = "idle_share"
    """Share of the limit drawn by a context without a running kernel: leakage, refresh of memory, clocks."""
    ACTIVE_SHARE = "active_share"
    """Share of the limit that any running kernel adds, one that waits or copies included."""
    UNPACKING_SHARE = "unpacking_share"
    """Share of the limit that kernels add which scale or unpack narrow weights beside multiplying them."""
    MATRIX_SHARE = "matrix_share"
    """Share of the limit that multiplying at the sustained rate adds at the full clock."""
    MATRIX_EXPONENT = "matrix_exponent"
    """Exponent of its growth with the rate.

    Below 1, because few rows pay for the whole tiles that hold them.
    """
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
"""Constants of the draw under load; a device for which all of them were measured counts as measured."""


class PowerRates(NamedTuple):
    """Constants of one generation as numbers."""

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
    """Evidence behind constants that were measured on the device itself."""
    _known: dict[str, PowerRates] = field(default_factory=dict, repr=False, compare=False)

    @property
    def basis_of_draw(self) -> EvidenceBasis | None:
        """Evidence behind the draw under load; None where a part of it was not measured on the device."""
        if not self.bases.keys() >= DRAW:
            return None
        return weakest_basis(*(self.bases[quantity] for quantity in DRAW))

    def find_share(self, quantity: PowerQuantity, generation: str) -> AchievedShare:
        """Returns the constant of the generation, else that of any."""
        return find_nearest_share(self.constants, ((quantity, generation), (quantity, None)), quantity)

    def get_rates(self, generation: str) -> PowerRates:
        """Returns the constants of a generation."""
        return get_or_build(
            self._known,
            generation,
            lambda: PowerRates(
                **{each.value: self.find_share(each, generation).value for each in PowerQuantity}
            ),
        )
