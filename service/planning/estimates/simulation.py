"""Maximum length of a simulation of requests."""

from service.planning.errors import PlanningError

MOST_SIMULATED = 200_000
"""Maximum number of requests of one simulation."""


def check_length(requests: float) -> None:
    """Refuses a simulation of too many requests."""
    if requests > MOST_SIMULATED:
        detail = f"at most {MOST_SIMULATED} requests are simulated"
        raise PlanningError("SIMULATION_TOO_LONG", "/solver/duration_seconds", detail)
