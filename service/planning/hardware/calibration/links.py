"""Achieved performance of collectives on links: shares of the rate, and fixed seconds of a message."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from service.planning.hardware.links import LinkKind


class LinkShare(NamedTuple):
    """Performance that software achieves on one kind of link.

    ``rate`` is the share of the rate that a long message reaches; ``hop_seconds`` is one step from a device
    to the next where the link itself states no latency.
    """

    rate: float
    hop_seconds: float


class LinkCalibration(NamedTuple):
    """Constants of collective communication at one end of their intervals.

    ``launch_seconds`` starts a collective on all devices; ``chunk_seconds`` is the cost of a chunk of a
    longer message on each hop, in addition to its bytes. ``in_network`` is, by generation of accelerators,
    the share of the rate that reducing switches pass, ``in_network_pooled`` the share for other generations.
    """

    launch_seconds: float
    chunk_seconds: float
    links: Mapping[LinkKind, LinkShare]
    in_network: Mapping[str, float]
    in_network_pooled: float


class LinkCurves(NamedTuple):
    """Constants in the middle and at the ends of their intervals, and the kinds that were measured."""

    slow: LinkCalibration
    value: LinkCalibration
    fast: LinkCalibration
    measured: frozenset[LinkKind]
    sources: Mapping[LinkKind, str]


IDEAL_LINKS: Final = LinkCalibration(0.0, 0.0, dict.fromkeys(LinkKind, LinkShare(1.0, 0.0)), {}, 1.0)
"""Links at their whole rate and with their own latency: the alpha-beta model of textbooks."""
