"""Requests that a simulation draws: their lengths, and when they arrive."""

import math
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.load import ArrivalProcess, ReplicaLoad, ReplicaServer

_WARM_SHARE = 0.1
"""Share of the requests of an open loop that are not counted: the server is still filling."""


class SimulatedRequests(NamedTuple):
    """Requests of a run: those after ``warm`` and before ``counted`` are measured."""

    inputs: list[float]
    passes: list[int]
    """Decoding iterations of each request."""
    outputs: list[float]
    arrivals: list[float]
    """Arrival times of an open loop."""
    warm: int
    counted: int
    ends: bool
    """True if no further requests follow the counted ones."""


def sample_requests(
    server: ReplicaServer, load: ReplicaLoad, random: np.random.Generator, requests: int
) -> SimulatedRequests:
    """Draws lengths and arrivals at random; ``requests`` of them are counted."""
    closed, cold = load.concurrency is not None, load.burst_requests is not None
    trace = load.arrivals.process is ArrivalProcess.TRACE and not closed
    warm = 0
    if closed and not cold:
        warm = 2 * math.ceil(load.concurrency or 0.0)
    elif not closed and not trace:
        warm = int(_WARM_SHARE * requests)
    counted = warm + requests
    drawn = counted if cold or trace else counted + requests // 4 + 100
    outputs = np.floor(
        _sample_values(load.outputs.values, load.outputs.weights, random, drawn) + random.random(drawn)
    )
    per_pass = server.speculation.tokens_per_pass if server.speculation else 1.0
    passes = np.floor(np.maximum(outputs - 1.0, 0.0) / per_pass + random.random(drawn) * (per_pass != 1.0))
    return SimulatedRequests(
        _sample_values(load.inputs.values, load.inputs.weights, random, drawn).tolist(),
        passes.astype(np.int64).tolist(),
        outputs.tolist(),
        [] if closed else _sample_arrivals(server, load, random, drawn),
        warm,
        counted,
        cold or trace,
    )


def _sample_values(
    values: tuple[float, ...], weights: tuple[float, ...], random: np.random.Generator, count: int
) -> NDArray[np.float64]:
    if len(values) == 1:
        return np.full(count, values[0])
    return np.asarray(random.choice(values, size=count, p=weights), dtype=np.float64)


def _sample_arrivals(
    server: ReplicaServer, load: ReplicaLoad, random: np.random.Generator, count: int
) -> list[float]:
    """Returns the times at which the scheduler receives requests of an open loop."""
    if load.arrivals.process is ArrivalProcess.TRACE:
        times = np.asarray(load.arrivals.at_seconds)
        return cast("list[float]", (times - times[0] + server.frontend_seconds).tolist())
    mean = 1.0 / (load.rate_per_second or 1.0)
    gaps = (
        random.exponential(mean, count)
        if load.arrivals.process is ArrivalProcess.POISSON
        else np.full(count, mean)
    )
    return cast("list[float]", (np.cumsum(gaps) + server.frontend_seconds).tolist())
