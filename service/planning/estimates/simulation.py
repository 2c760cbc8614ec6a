"""How long a simulation of requests may be."""

from service.planning.errors import PlanningError

MOST_SIMULATED = 200_000
"""Requests of one simulation."""


def check_length(requests: float) -> None:
    """Refuse a simulation of too many requests."""
    if requests > MOST_SIMULATED:
        detail = f"{MOST_SIMULATED} requests are simulated at most"
        raise PlanningError("SIMULATION_TOO_LONG", "/solver/duration_seconds", detail)
