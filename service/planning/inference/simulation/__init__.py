"""Discrete-event simulation of a server over the iteration model.

Random numbers come from the seed alone.
"""

from service.planning.inference.simulation.runs import simulate_requests
from service.planning.inference.simulation.served_load import simulate_served_load

__all__ = [
    "simulate_requests",
    "simulate_served_load",
]
