"""What the machines around accelerators draw, and what making them emits."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare


class Cooling(StrEnum):
    """What takes the heat away from a node: its own fans, cold plates with few fans, or a bath."""

    AIR = "air"
    LIQUID = "liquid"
    IMMERSION = "immersion"


class FacilityCurves(NamedTuple):
    """What the machines around accelerators draw.

    ``host`` is the full load of a node's electronics over what the vendor's reference server may draw
    beside its accelerators, ``host_pooled`` the same over the limit of the accelerators where no such
    server is known, ``host_idle`` the share of it without work, ``fans`` their draw over that of what they
    cool. ``supply_loss`` scales the loss of the Titanium curve, ``supply_rating`` is what the supplies that
    share the load are rated for over the most that the node draws. ``port_joules_per_byte`` is of a switch
    port with its optics, by the bandwidth of the port. Making a server without its accelerators emits
    ``server_embodied_kg_co2e``; it is in use for a share of its lifetime.
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
