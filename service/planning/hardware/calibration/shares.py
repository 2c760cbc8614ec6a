"""A fitted or published figure with its uncertainty and its source."""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import NamedTuple, TypeVar

from service.planning.errors import PlanningError
from service.planning.quantity import EvidenceBasis, Quantity


class AchievedShare(NamedTuple):
    """An achieved share: 10th percentile, median and 90th percentile of ``runs`` measured runs.

    For several fits, the extremes and the middle of them, as ``source`` then states.
    """

    low: float
    value: float
    high: float
    runs: int
    source: str

    @property
    def ends(self) -> tuple[float, float, float]:
        """Low end, middle and high end."""
        return self.low, self.value, self.high

    def to_quantity(self, basis: EvidenceBasis) -> Quantity:
        """Returns the share as a quantity with the given basis."""
        return Quantity(self.value, self.low, self.high, basis)


_Key = TypeVar("_Key")
_Rates = TypeVar("_Rates")


def find_nearest_share(
    constants: Mapping[_Key, AchievedShare], keys: Iterable[_Key], name: str
) -> AchievedShare:
    """Returns the constant of the first of ``keys`` that has one, the nearest first.

    Raises :class:`PlanningError` (``CALIBRATION_INCOMPLETE``) if none has.
    """
    for key in keys:
        share = constants.get(key)
        if share is not None:
            return share
    raise PlanningError("CALIBRATION_INCOMPLETE", "/calibration", f"{name} is not known")


def get_or_build(known: MutableMapping[_Key, _Rates], key: _Key, made: Callable[[], _Rates]) -> _Rates:
    """Returns the value stored for ``key``, which ``made`` builds on the first call."""
    found = known.get(key)
    if found is None:
        found = known[key] = made()
    return found
