"""Serving by a cluster, in closed form or simulated."""

from collections.abc import Callable

from service.planning.cases import InferenceCase, Simulation
from service.planning.estimates.devices import get_usable_bytes
from service.planning.estimates.iterations import build_iterations
from service.planning.estimates.serving.estimate import ServingEstimate
from service.planning.estimates.serving.replica import (
    build_load,
    build_server,
    build_speculation,
    count_replica_requests,
)
from service.planning.estimates.serving.simulation import simulate_load
from service.planning.inference import estimate_served_load


def do_nothing() -> None:
    """Default of callbacks that are called between the pieces of long work."""


def estimate_serving(
    case: InferenceCase, simulation: Simulation | None = None, between: Callable[[], None] = do_nothing
) -> ServingEstimate | None:
    """Estimates the serving by the cluster; None where the data of the device do not suffice.

    A device that holds no request does not limit the rate. ``between`` is called repeatedly during a
    simulation.
    """
    model = build_iterations(case)
    if model is None:
        return None
    workload, layout, asked = case.workload, case.layout, case.load
    replicas = case.replicas
    if asked.concurrency is not None:
        replicas = min(replicas, asked.concurrency)
    limit = get_usable_bytes(case.cluster, workload)
    held = None if limit is None else count_replica_requests(case, limit)
    rules = workload.rules
    rates = case.curves.calibration.serving.get_rates(rules.name, rules.generation)
    server = build_server(case, held)._replace(
        frontend_seconds=rates.frontend_seconds,
        cold_seconds=0.0 if workload.warmed_up else rates.cold_seconds,
    )
    if asked.proposals is not None:
        server = server._replace(speculation=build_speculation(case, asked.proposals))
    load = build_load(case, replicas)
    if simulation is None:
        found = estimate_served_load(model, server, load)
    else:
        found = simulate_load(model, server, load, simulation, between)
    return ServingEstimate(
        served=found,
        model=model,
        server=server,
        load=load,
        replicas=float(replicas),
        ranks=layout.expert,
        held=held,
        case=case,
    )
