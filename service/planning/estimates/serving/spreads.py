"""Spreads of measured over estimated figures of served models."""

from typing import NamedTuple

from service.planning.quantity import IntervalFactors


class ServingSpreads(NamedTuple):
    """Measured over estimated figures of systems like this one."""

    first_token: IntervalFactors
    output_token: IntervalFactors
    rate: IntervalFactors
    power: IntervalFactors
    energy: IntervalFactors

    @property
    def of_time(self) -> tuple[str, ...]:
        """Calibrations that changed latencies or rates."""
        latencies = (*self.first_token.calibration_ids, *self.output_token.calibration_ids)
        return (*latencies, *self.rate.calibration_ids)


SPREAD_FAMILIES = ("serving_ttft", "serving_tpot", "serving_throughput", "serving_power", "serving_energy")


def invert_spread(spread: IntervalFactors) -> IntervalFactors:
    """Returns the spread of a rate from that of a time, and the reverse."""
    return IntervalFactors(1.0 / spread.high, 1.0 / spread.low, spread.source)
