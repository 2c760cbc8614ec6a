"""Power of the machines around accelerators, from the accelerators' draw, in watts.

    hosts     = H (i + (1 - i) u)                        processors, memory, interfaces, switches in the node
    fans      = f (accelerators + hosts)                 of the equipment that they cool; none in immersion
    DC        = accelerators + hosts + fans
    supplies  = k DC (1 / eta(DC / rating) - 1)          loss of power supplies
    fabric    = devices x B x p(devices) x w             switches and optics between nodes

H is the draw of a node beside its accelerators at full load, i the share of it that an idle host draws, u the
share of their dynamic power that the accelerators use. eta is the efficiency of a supply of the Titanium
class at a share of its rating (80 PLUS, 230 V, redundant). B is the bandwidth of a device to other nodes, p
the switch ports on the way of a device in a non-blocking fat tree (Leiserson 1985), w the power of a port and
its optics for each byte per second. Cooling of the room and distribution belong to the building: they are in
its power usage effectiveness.
"""

from typing import NamedTuple

import numpy as np

from service.planning.errors import PlanningError
from service.planning.hardware.calibration.facility import Cooling, FacilityCurves
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import LinkKind
from service.planning.quantity import EvidenceBasis, Quantity, weakest

EQUIPMENT = ("accelerators", "hosts", "fans", "power_supplies", "fabric")
"""Kinds of equipment, in the order of answers and of load profiles."""

_SUPPLY_LOADS = (0.1, 0.2, 0.5, 1.0)
_SUPPLY_EFFICIENCIES = (0.90, 0.94, 0.96, 0.91)
"""Efficiencies of the Titanium class at 230 V, redundant."""

_RADIX = 64
"""Ports of a switch."""
_SWITCHED = frozenset({LinkKind.INFINIBAND, LinkKind.ROCE, LinkKind.EFA, LinkKind.ETHERNET})


class NodeRates(NamedTuple):
    """Constants of one node as numbers: watts, shares and the rating of its supplies."""

    host_watts: float
    host_idle: float
    fans: float
    supply_loss: float
    supply_watts: float


class NodeDraw(NamedTuple):
    """Watts of one node beside its accelerators."""

    hosts: float
    fans: float
    power_supplies: float


def supply_loss_watts(dc_watts: float, rating_watts: float) -> float:
    """Returns the loss of Titanium supplies at ``dc_watts``; below 10% of the rating as at 10%."""
    load = dc_watts / rating_watts
    efficiency = float(np.interp(load, _SUPPLY_LOADS, _SUPPLY_EFFICIENCIES))
    return dc_watts * (1.0 / efficiency - 1.0)


def compute_node_draw(accelerator_watts: float, load: float, rates: NodeRates) -> NodeDraw:
    """Returns the draw of a node beside accelerators that draw ``accelerator_watts``, ``load`` from 0 to 1.

    With the accelerators it grows with both; the loss of the supplies alone falls near their best load.
    """
    hosts = rates.host_watts * (rates.host_idle + (1.0 - rates.host_idle) * load)
    fans = rates.fans * (accelerator_watts + hosts)
    lost = supply_loss_watts(accelerator_watts + hosts + fans, rates.supply_watts)
    return NodeDraw(hosts, fans, rates.supply_loss * lost)


def dynamic_share(watts: float, idle_watts: float, limit_watts: float) -> float:
    """Returns the share of the power above idle that a device uses."""
    return min(1.0, max(0.0, (watts - idle_watts) / (limit_watts - idle_watts)))


def host_watts(cluster: Cluster, curves: FacilityCurves) -> Quantity | None:
    """Returns the power of a node's electronics beside its accelerators at full load, in watts.

    The measured share of the most that the vendor's reference server may draw beside its accelerators at
    their limit, scaled to the accelerators of a node; without a reference server, the pooled ratio of host to
    accelerator power. None where the accelerator's limit is unknown.
    """
    server, limit = cluster.accelerator.server, cluster.accelerator.power_limit_watts
    if limit is None:
        return None
    if server is None:
        share, beside = curves.host_pooled, limit
    else:
        share = curves.host
        beside = server.power_limit_watts / server.accelerator_count - limit
        if beside <= 0.0:
            raise PlanningError(
                "SERVER_POWER",
                "/cluster/accelerator",
                f"{server.name} draws less than its accelerators at their power limit",
            )
    watts = beside * cluster.accelerators_per_node
    return Quantity(watts * share.value, watts * share.low, watts * share.high, EvidenceBasis.DATASHEET)


def build_node_rates(
    cluster: Cluster, cooling: Cooling, curves: FacilityCurves
) -> tuple[NodeRates, NodeRates, NodeRates] | None:
    """Returns the constants of a node at their value, low and high draw; None where the limit is unknown."""
    hosts, limit = host_watts(cluster, curves), cluster.accelerator.power_limit_watts
    if hosts is None or limit is None:
        return None
    server, fans = cluster.accelerator.server, curves.fans[cooling]
    whole = limit * cluster.accelerators_per_node
    most = (whole + hosts.value) * (1.0 + fans.value)
    if server is not None:
        most = server.power_limit_watts * cluster.accelerators_per_node / server.accelerator_count
    rating = most * curves.supply_rating.value

    def build_rates(end: str) -> NodeRates:
        loss: float = getattr(curves.supply_loss, end)
        return NodeRates(
            getattr(hosts, end), getattr(curves.host_idle, end), getattr(fans, end), loss, rating
        )

    return build_rates("value"), build_rates("low"), build_rates("high")


def count_fabric_ports(devices: int) -> int:
    """Returns the switch ports on the way of each device of a non-blocking fat tree of 64-port switches.

    One switch joins up to 64 devices; every further level adds a port up and one down, and joins 32 times as
    many.
    """
    ports, reach = 1, _RADIX
    while reach < devices:
        ports, reach = ports + 2, reach * _RADIX // 2
    return ports


def fabric_watts(cluster: Cluster, curves: FacilityCurves) -> Quantity | None:
    """Returns the power of switches and optics between nodes, in watts; None where no switch joins them."""
    link = cluster.inter_node_link
    if cluster.domain >= cluster.accelerator_count or link.kind not in _SWITCHED:
        return None
    each = link.bytes_per_second * count_fabric_ports(cluster.accelerator_count) * cluster.accelerator_count
    port = curves.port_joules_per_byte
    drawn = Quantity(each * port.value, each * port.low, each * port.high, EvidenceBasis.DATASHEET)
    return drawn._replace(basis=weakest(drawn))
