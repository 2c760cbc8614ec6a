"""Operating point of a server: its mean batch, its rate, and the wait for a place.

The batch of an open loop fluctuates: with D = D0 + D1 b the number of decoding requests has the variance b D
/ D0, and a request meets more of them than a mean batch has.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from service.planning.inference.curve import NOTHING, Array, ReplicaCurve, ServerSetting
from service.planning.inference.load import ReplicaLoad

_FIRST_FILLED = 0.4
"""Share of the room that requests leave which is taken at once when hardly a request waits.

From the simulation.
"""
_FILLING = 3.0
"""Increase of that share for each waiting request per request inside. From the simulation."""


class WorkingPoint(NamedTuple):
    """Operating point of a server on ``grid``: mean batch, wait for a place, limit of its rate."""

    grid: ReplicaCurve[Array]
    batch: float
    rate: float
    most: float
    place_seconds: float = 0.0
    queued_share: float = 0.0
    saturated: bool = False
    repeated: float = 1.0
    """Ratio of the rate with contexts recomputed after preemption to the rate without."""
    filled: float = 1.0
    """Share of the room that requests leave which is taken at once."""


def solve_closed_loop(grid: ReplicaCurve[Array], setting: ServerSetting, concurrency: float) -> WorkingPoint:
    """Returns the point of a closed loop with ``concurrency`` requests.

    Those above capacity wait for a place.
    """
    batch, most, repeated = _find_capacity_limit(grid, setting)
    held = float(np.interp(batch, grid.batch, grid.requests))
    if concurrency >= held:
        # The fewer requests wait, the longer a room that is too small for the next one stays free.
        filled = min(1.0, _FIRST_FILLED + _FILLING * (concurrency / held - 1.0))
        repeated = 1.0 / (1.0 + (1.0 / repeated - 1.0) * filled)
        rate, saturated = most * repeated, concurrency > held
        return WorkingPoint(
            grid, batch, rate, rate, queued_share=1.0, saturated=saturated, repeated=repeated, filled=filled
        )
    batch = float(np.interp(concurrency, grid.requests, grid.batch))
    return WorkingPoint(grid, batch, float(np.interp(batch, grid.batch, grid.requests_per_second)), most)


def solve_open_loop(grid: ReplicaCurve[Array], setting: ServerSetting) -> WorkingPoint:
    """Returns the point of an open loop whose rate is that of the arrivals.

    ``mixing`` is D / D0: a request meets b + D / D0 others on average, one more than b where the batch does
    not slow itself down.
    """
    load = setting.load
    most_batch, most, repeated = _find_capacity_limit(grid, setting)
    most *= repeated
    rate = load.rate_per_second or 0.0
    saturated = rate >= most
    rates = np.maximum.accumulate(grid.requests_per_second)
    steady = most_batch
    if not saturated:
        steady = float(np.interp(rate, np.append(0.0, rates), np.append(0.0, grid.batch)))
        excess, mixing = estimate_fluctuation(grid, steady)
        # An expansion for large batches; for small ones it is bounded.
        further = min(excess * (mixing - 1.0), steady / 4.0) * (load.arrivals.variation + 1.0) / 2.0
        steady = min(most_batch, steady + further)
    wait, queued = _estimate_queue_wait(load, rate, most, steady, most_batch)
    if saturated:
        wait += load.open_seconds / 2.0 * (1.0 - most / rate)
    repeats = repeated if saturated else 1.0
    return WorkingPoint(
        grid, steady, min(rate, most), most, wait, queued, saturated=saturated, repeated=repeats
    )


class _BatchLimit(NamedTuple):
    """Largest mean batch, the rate there, and its ratio to the rate without preemption."""

    batch: float
    most: float
    repeated: float


def _find_capacity_limit(grid: ReplicaCurve[Array], setting: ServerSetting) -> _BatchLimit:
    """Returns the batch at which no place is left, or every iteration is full of prompts.

    An engine that admits a prompt as soon as it finds room, and has requests waiting, fills its cache; as
    contexts grow until a request ends, others have to be dropped, and as many tokens are recomputed as are
    generated.
    """
    server, load, asked, places = setting
    by_prompts = float(np.interp(1.0, np.maximum.accumulate(grid.prompt_load), grid.batch))
    batch = min(float(np.interp(places, grid.inside, grid.batch)), by_prompts)
    most = float(np.interp(batch, grid.batch, np.maximum.accumulate(grid.requests_per_second)))
    if server.cache_tokens is None or places == server.most_requests or batch == by_prompts:
        return _BatchLimit(batch, most, 1.0)
    again = (1.0 - server.reserved_output) * load.outputs.mean
    token_seconds = np.maximum(grid.added_seconds / grid.tokens, grid.full_seconds / grid.budget)
    whole, each = (float(np.interp(batch, grid.batch, f)) for f in (grid.decoding_seconds, token_seconds))
    more = batch * (1.0 - asked.alone) * again * each
    return _BatchLimit(batch, most, whole / (whole + more) if whole else 1.0)


def _estimate_queue_wait(
    load: ReplicaLoad, rate: float, most: float, batch: float, places: float
) -> tuple[float, float]:
    """Returns the mean wait for one of ``places``, and the share of the requests that wait.

    The number of requests inside is a diffusion, drawn to its mean where places are free and by x_most - rate
    where none is: normal below ``places``, exponential above (Halfin and Whitt 1981). A queue reaches its
    steady state after about v rate / (x_most - rate)^2 (Odoni and Roth 1983), so that the difference is taken
    no smaller than the one whose time is the observed time.
    """
    lengths = load.outputs if load.decodes else load.inputs
    variance = rate * (load.arrivals.variation + (1.0 + lengths.variation) / 2.0)
    gap = max(most - rate, math.sqrt(variance / load.open_seconds))
    apart = max(places - batch, 0.0)
    deviation = math.sqrt(rate * max(apart, 1.0) / gap)
    normal = NormalDist()
    decay = 2.0 * gap / variance
    above = normal.pdf(apart / deviation) / (deviation * decay)
    queued = above / (above + normal.cdf(apart / deviation))
    return queued / decay / max(rate, NOTHING), queued


def estimate_fluctuation(grid: ReplicaCurve[Array], batch: float) -> tuple[float, float]:
    """Returns D1 b / D0 and D / D0, for a time to decode D = D0 + D1 b."""
    whole = float(np.interp(batch, grid.batch, grid.decoding_seconds))
    if not whole or not batch:
        return 0.0, 1.0
    slope = (whole - float(grid.decoding_seconds[0])) / batch
    rest = max(whole - slope * batch, 0.1 * whole)
    return batch * slope / rest, whole / rest
