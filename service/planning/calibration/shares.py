"""A fitted or published figure, how sure it is, and what it rests on."""

from typing import NamedTuple

from service.planning.quantity import Basis, Quantity


class Share(NamedTuple):
    """An achieved share: 10th percentile, median and 90th percentile of ``runs`` measured runs.

    Or the extremes and the middle of several fits, as its source says.
    """

    low: float
    value: float
    high: float
    runs: int
    source: str

    def quantity(self, basis: Basis) -> Quantity:
        """As a quantity with the given basis."""
        return Quantity(self.value, self.low, self.high, basis)
