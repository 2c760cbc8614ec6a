"""Limits of spread of accelerators and of processors, each with its source."""

from collections.abc import Mapping
from typing import NamedTuple


class SpreadLimits(NamedTuple):
    """Limits of the spread of samples and repeats, as shares of their median."""

    sample_spread: float
    """Interquartile range of the samples of one process."""
    drift: float
    """Change over the window, by least squares."""
    repeat_spread: float
    """Highest less lowest figure of the repeats, and the difference of two runs that agree."""
    fewest_samples: int


_LIMITS: Mapping[str, SpreadLimits] = {
    # 1% is where sampling ends (benchmark-worker.md 7.3); 5% is SuperBench's gate (2.5), 3% that of 10.5.
    "cuda": SpreadLimits(sample_spread=0.05, drift=0.05, repeat_spread=0.03, fewest_samples=10),
    # A processor is shared with other programs. On two cores under a load of five, repeats of the
    # CPU suite differed by up to 0.41 and quartiles by up to 0.49 (docs/methods/validation.md); calibrations
    # keep that range, so that it is shown and not lost.
    "cpu": SpreadLimits(sample_spread=1.0, drift=1.0, repeat_spread=0.5, fewest_samples=2),
}

_POWER_LIMITED = 0.10
"""Limit of spread and drift of samples while the power limit moves the clock.

It moves in steps from sample to sample: quartiles of large products were 5.4 to 7.0% of the median apart, and
products that were warmed for a second still drifted by up to 8.1%, on an H200 (docs/gpu-h200-sxm.md).
"""


def resolve_limits(device: str, *, is_on_host: bool, is_power_limited: bool = False) -> SpreadLimits:
    """Returns the limits of a device, or of a processor if the host does the work."""
    limits = _LIMITS["cpu" if is_on_host else device]
    if not is_power_limited:
        return limits
    return limits._replace(
        sample_spread=max(limits.sample_spread, _POWER_LIMITED), drift=max(limits.drift, _POWER_LIMITED)
    )
