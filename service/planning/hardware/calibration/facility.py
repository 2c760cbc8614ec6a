"""Power of the machines around accelerators, and embodied emissions of servers."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare


class Cooling(StrEnum):
    """Cooling of a node: its own fans, cold plates with few fans, or an immersion bath."""

    AIR = "air"
    LIQUID = "liquid"
    IMMERSION = "immersion"


class FacilityCurves(NamedTuple):
    """Power of the machines around accelerators.

    ``host`` is the full load of a node's electronics over the most that the vendor's reference server may
    draw beside its accelerators, ``host_pooled`` the same over the limit of the accelerators where no such
    server is known, ``host_idle`` its share without work, ``fans`` their draw over the draw of the equipment
    that they cool. ``supply_loss`` scales the loss of the Titanium curve; ``supply_rating`` is the rating of
    the supplies that share the load over the most that the node draws. ``port_joules_per_byte`` is the energy
    of a switch port with its optics, by the bandwidth of the port. Making a server without its accelerators
    emits ``server_embodied_kg_co2e``; the server is in use for a share of its lifetime.
    """

    host: AchievedShare
    host_pooled: AchievedShare
    host_idle: AchievedShare
    fans: Mapping[Cooling, AchievedShare]
    supply_loss: AchievedShare
    supply_rating: AchievedShare
    port_joules_per_byte: AchievedShare
    server_embodied_kg_co2e: AchievedShare
    lifetime_years: AchievedShare
    lifetime_utilization: AchievedShare
