"""A fitted or published figure, how sure it is, and what it rests on."""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import NamedTuple, TypeVar

from service.planning.errors import PlanningError
from service.planning.quantity import EvidenceBasis, Quantity


class AchievedShare(NamedTuple):
    """An achieved share: 10th percentile, median and 90th percentile of ``runs`` measured runs.

    Or the extremes and the middle of several fits, as its source says.
    """

    low: float
    value: float
    high: float
    runs: int
    source: str

    @property
    def ends(self) -> tuple[float, float, float]:
        """Its low end, middle and high end."""
        return self.low, self.value, self.high

    def to_quantity(self, basis: EvidenceBasis) -> Quantity:
        """As a quantity with the given basis."""
        return Quantity(self.value, self.low, self.high, basis)


_Key = TypeVar("_Key")
_Rates = TypeVar("_Rates")


def find_nearest_share(
    constants: Mapping[_Key, AchievedShare], keys: Iterable[_Key], name: str
) -> AchievedShare:
    """The constant of the first of ``keys`` that has one, the nearest first.

    Raises :class:`PlanningError` (``CALIBRATION_INCOMPLETE``) if none has.
    """
    for key in keys:
        share = constants.get(key)
        if share is not None:
            return share
    raise PlanningError("CALIBRATION_INCOMPLETE", "/calibration", f"{name} is not known")


def get_or_build(known: MutableMapping[_Key, _Rates], key: _Key, made: Callable[[], _Rates]) -> _Rates:
    """What was made for ``key`` before, else what ``made`` makes now."""
    found = known.get(key)
    if found is None:
        found = known[key] = made()
    return found
