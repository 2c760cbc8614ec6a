"""Simulation of the load of a replica, and the refusal of one that takes long."""

from collections.abc import Callable

from service.planning.cases import Simulation
from service.planning.estimates.simulation import MOST_SIMULATED, check_length
from service.planning.inference import (
    IterationModel,
    ReplicaLoad,
    ReplicaServer,
    ServedLoad,
    estimate_served_load,
    simulate_served_load,
)

SIMULATED_REQUESTS = 2000
"""Simulated requests of one replica, where the question gives no number."""


def simulate_load(
    model: IterationModel,
    server: ReplicaServer,
    load: ReplicaLoad,
    simulation: Simulation,
    between: Callable[[], None],
) -> ServedLoad:
    """Simulates each request; a burst longer than a simulation is simulated as a steady load."""
    if (load.burst_requests or 0.0) > MOST_SIMULATED:
        load = load._replace(burst_requests=None)
    seed, seconds = simulation.seed, simulation.duration_seconds
    if seconds is None:
        requests = SIMULATED_REQUESTS if simulation.requests is None else simulation.requests
        _check_work(server, load, requests)
        return simulate_served_load(model, server, load, seed=seed, requests=requests, between=between)
    rate = load.rate_per_second or estimate_served_load(model, server, load).requests_per_second
    check_length(rate * seconds)
    _check_work(server, load, rate * seconds)
    return simulate_served_load(model, server, load, seed=seed, duration_seconds=seconds, between=between)


def _check_work(server: ReplicaServer, load: ReplicaLoad, requests: float) -> None:
    """Refuses a simulation of too many iterations: requests at the start and long prompts count too."""
    followed = max(requests, load.burst_requests or 0.0) + (load.concurrency or 0.0)
    check_length(followed * max(1.0, load.inputs.longest / server.batched_tokens))
