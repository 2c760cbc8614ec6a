"""Fit of the constants of links to measured collectives and copies.

A row is one collective of one size on devices whose links the catalog knows. The fit minimises the sum of
absolute logarithms of estimated over measured rates, each group (a source and a device) weighed by the root
of its size, within the range of each constant; every group is then predicted by constants that were fitted
without it, and its interval is the spread of the others' errors.
"""

import copy
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accuracy.hardware import HardwareRow
from accuracy.scoring import percentile
from accuracy.spreads import rounded, tail
from service.evidence.service import parse_link_curves
from service.planning.hardware.calibration import LinkCalibration
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.collectives import (
    Collective,
    CollectiveAlgorithm,
    build_fabric,
    bus_bandwidth,
    collective_seconds,
)
from service.planning.hardware.links import Link, LinkKind

Document = dict[str, Any]
FitGroup = tuple[str, str]
Floats = NDArray[np.float64]
ClusterOf = Callable[[str, int, int], Cluster | None]
"""Returns the catalog's cluster of an accelerator, for a number of devices and of devices per node."""

COPIED_BYTES: Final = 512.0 * 2.0**20
"""Bytes that nvbandwidth copies, if a row does not state them."""

_NETWORK = re.compile(r"(\d+)\s*x\s*(\d+(?:\.\d+)?) GB/s per node")
_ALGORITHM = re.compile(r"algorithm (\w+)")
_NAMED: Final = {
    "NVLS": CollectiveAlgorithm.IN_NETWORK,
    "RING": CollectiveAlgorithm.RING,
    "TREE": CollectiveAlgorithm.TREE,
}


class CollectiveSetting(NamedTuple):
    """Setting that rows of different sizes share: the cluster, the collective and its algorithm."""

    cluster: Cluster
    collective: Collective
    algorithm: CollectiveAlgorithm | None = None
    switched: bool = True
    """True if in-network reduction was allowed."""
    directions: float = 1.0
    """2 if both directions of a link were counted together."""


class LinkProbe(NamedTuple):
    """A measured row as a collective on a known cluster."""

    row: HardwareRow
    setting: CollectiveSetting
    message_bytes: float


def _network(row: HardwareRow, cluster: Cluster) -> Cluster:
    """Returns the cluster with the interfaces that the row states."""
    match = _NETWORK.search(row.text["notes"])
    if match is None:
        return cluster
    kind = LinkKind.EFA if "EFA" in row.text["notes"] else cluster.inter_node_link.kind
    rate = int(match[1]) * float(match[2]) * 1e9 / cluster.accelerators_per_node
    return cluster._replace(inter_node_link=Link(kind, rate))


def _collective(row: HardwareRow, cluster: Cluster) -> LinkProbe | None:
    known = {kind.value: kind for kind in Collective}
    kind, size = known.get(row.operation), row.message_bytes
    if kind is None or size is None:
        return None
    notes = row.text["notes"]
    named = _ALGORITHM.search(notes)
    algorithm = _NAMED.get(named[1].upper()) if named else None
    setting = CollectiveSetting(
        _network(row, cluster), kind, algorithm, switched="NVLS disabled" not in notes
    )
    return LinkProbe(row, setting, size)


_TO_HOST = frozenset({"host to device", "device to host"})


def _copy(row: HardwareRow, cluster: Cluster, host_link: Link | None) -> LinkProbe | None:
    operation = row.operation.lower()
    pair = cluster._replace(accelerator_count=2, accelerators_per_node=2)
    if operation in _TO_HOST and host_link is not None:
        between = pair._replace(intra_node_link=host_link)
        return LinkProbe(row, CollectiveSetting(between, Collective.POINT_TO_POINT), COPIED_BYTES)
    if operation == "device to device read":
        return LinkProbe(
            row, CollectiveSetting(pair, Collective.POINT_TO_POINT, directions=2.0), COPIED_BYTES
        )
    return None


def link_probes(
    rows: Iterable[HardwareRow], cluster_of: ClusterOf, host_link: Callable[[str], Link | None]
) -> list[LinkProbe]:
    """Returns the plausible rows that are collectives or copies over links of the catalog."""
    found = []
    for row in rows:
        per_node = max(row.devices // row.nodes, 1)
        cluster = cluster_of(row.accelerator_id, row.devices, per_node)
        if cluster is None or "implausible" in row.text["notes"]:
            continue
        if row.metric == "busbw":
            probe = _collective(row, cluster)
        elif row.kind == "transfer":
            probe = _copy(row, cluster, host_link(row.accelerator_id))
        else:
            probe = None
        if probe is not None:
            found.append(probe)
    return found


def estimated(found: Sequence[LinkProbe], calibration: LinkCalibration) -> Floats:
    """Returns the bus bandwidth of each probe in bytes/s."""
    rates = np.zeros(len(found))
    places: dict[int, list[int]] = {}
    settings: dict[int, CollectiveSetting] = {}
    known: dict[tuple[Any, ...], int] = {}
    for place, probe in enumerate(found):
        cluster = probe.setting.cluster
        links = (cluster.intra_node_link, cluster.inter_node_link, cluster.accelerator.generation)
        key = (*links, cluster.accelerator_count, cluster.accelerators_per_node, *probe.setting[1:])
        at = known.setdefault(key, len(known))
        settings[at] = probe.setting
        places.setdefault(at, []).append(place)
    for at, own in places.items():
        sizes = np.array([found[place].message_bytes for place in own])
        rates[own] = _rates(settings[at], sizes, calibration)
    return rates


def _rates(setting: CollectiveSetting, sizes: Floats, calibration: LinkCalibration) -> Floats:
    cluster, kind = setting.cluster, setting.collective
    fabric = build_fabric(cluster, calibration)
    if not setting.switched:
        fabric = fabric._replace(in_network=None)
    devices = float(cluster.accelerator_count)
    seconds = collective_seconds(
        kind,
        sizes,  # type: ignore[arg-type]
        devices=devices,
        per_domain=float(cluster.accelerators_per_node),
        fabric=fabric,
        algorithm=setting.algorithm,
    )
    of = bus_bandwidth(kind, sizes, devices, seconds)  # type: ignore[arg-type]
    return np.asarray(setting.directions * of)


def _constants(document: Document, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Document]:
    """Returns the entries that state a range, by path."""
    if "range" in document:
        return {path: document}
    found: dict[tuple[str, ...], Document] = {}
    for name, member in document.items():
        if isinstance(member, dict):
            found |= _constants(member, (*path, name))
    return found


_SWEEPS, _POINTS, _PULL = 6, 10, 0.01


def fit_links(document: Document, found: Sequence[LinkProbe]) -> Document:
    """Fits constants to the probes by coordinate descent within their ranges.

    Each constant begins at its prior; one that affects no row stays there.
    """
    document = copy.deepcopy(document)
    constants = _constants(document)
    for entry in constants.values():
        entry["value"] = entry.setdefault("prior", entry["value"])
    groups = [probe.row.group for probe in found]
    weights = np.array([1.0 / math.sqrt(groups.count(group)) for group in groups])
    measured = np.array([probe.row.value for probe in found])

    def loss() -> float:
        of = estimated(found, parse_link_curves(document).value) / measured
        held = sum(
            abs(math.log(entry["value"] / entry["prior"])) / math.log(entry["range"][1] / entry["range"][0])
            for entry in constants.values()
        )
        return float(np.sum(weights * np.abs(np.log(of)))) + _PULL * held

    for sweep in range(_SWEEPS):
        for entry in constants.values():
            low, high = entry["range"]
            reach = (high / low) ** (0.5 ** (sweep + 1))
            start, best = entry["value"], math.inf
            for step in sorted(range(-_POINTS, _POINTS + 1), key=abs):
                entry["value"] = min(high, max(low, start * reach ** (step / _POINTS)))
                if (now := loss()) < best:
                    best, kept = now, entry["value"]
            entry["value"] = kept
    for entry in constants.values():
        entry["value"] = rounded(entry["value"])
    return document


class FittedLinkProbe(NamedTuple):
    """A probe with estimated over measured rate, fitted with its group and without, and its interval."""

    probe: LinkProbe
    fitted: float
    held_out: float
    low: float
    high: float

    @property
    def is_covered(self) -> bool:
        """True if the interval around the held-out estimate covers the measured rate."""
        return self.low <= 1.0 / self.held_out <= self.high


class LinkFit(NamedTuple):
    """Constants fitted to all groups, and every probe under those and under fits without its group."""

    document: Document
    tried: tuple[FittedLinkProbe, ...]


def fit_all_links(document: Document, found: Sequence[LinkProbe]) -> LinkFit:
    """Fits all groups, then predicts each group by constants fitted to the others."""
    whole = fit_links(document, found)
    measured = np.array([probe.row.value for probe in found])
    fitted = estimated(found, parse_link_curves(whole).value) / measured
    groups = sorted({probe.row.group for probe in found})
    held = np.zeros(len(found))
    without = {}
    for group in groups:
        own = np.array([probe.row.group == group for probe in found])
        rest = [probe for probe, out in zip(found, own, strict=True) if not out]
        without[group] = fit_links(document, rest)
        held[own] = (estimated(found, parse_link_curves(without[group]).value) / measured)[own]
    tried = []
    for place, probe in enumerate(found):
        others = [1.0 / held[k] for k, other in enumerate(found) if other.row.group != probe.row.group]
        low, high = spread_of(others)
        tried.append(FittedLinkProbe(probe, float(fitted[place]), float(held[place]), low, high))
    fitted_document = _with_intervals(whole, list(without.values()), found)
    low, high = spread_of([1.0 / ratio for ratio in held])
    fitted_document["spread"] = {
        "low": rounded(low),
        "high": rounded(high),
        "source": f"Measured over estimated, 10th and 90th percentile of {len(found)} rows, each under "
        "constants fitted without its group",
    }
    return LinkFit(fitted_document, tuple(tried))


def score_links(document: Document, found: Sequence[LinkProbe]) -> list[FittedLinkProbe]:
    """Returns every probe under the given constants, with their interval."""
    measured = np.array([probe.row.value for probe in found])
    of = estimated(found, parse_link_curves(document).value) / measured
    low, high = document["spread"]["low"], document["spread"]["high"]
    return [FittedLinkProbe(probe, float(r), float(r), low, high) for probe, r in zip(found, of, strict=True)]


def spread_of(ratios: Sequence[float]) -> tuple[float, float]:
    """Returns the 10th and 90th percentile of measured over estimated for a new row of the kind."""
    share = tail(len(ratios))
    return percentile(ratios, share), percentile(ratios, 1.0 - share)


def _with_intervals(document: Document, without: Sequence[Document], found: Sequence[LinkProbe]) -> Document:
    """Sets low and high of a fitted constant to its extremes over the prior and fits without one group."""
    document = copy.deepcopy(document)
    others = [_constants(one) for one in without]
    for path, entry in _constants(document).items():
        values = [entry["value"], entry["prior"], *(one[path]["value"] for one in others)]
        entry["low"], entry["high"] = min(values), max(values)
        entry["runs"] = sum(_reads(path, probe) for probe in found)
    return document


def _reads(path: Sequence[str], probe: LinkProbe) -> bool:
    """Returns true if a probe's time depends on the constant."""
    cluster = probe.setting.cluster
    kinds = {cluster.intra_node_link.kind.value}
    if cluster.accelerator_count > cluster.domain:
        kinds.add(cluster.inter_node_link.kind.value)
    match path[0]:
        case "rate" | "hop_seconds":
            return path[1] in kinds
        case "in_network":
            return cluster.intra_node_link.in_network and path[1] == cluster.accelerator.generation
        case _:
            return True


class LinkFitLine(NamedTuple):
    """Errors of a set of rows in per cent, and the share that its intervals cover."""

    group: str
    rows: int
    fitted: float
    held_out: float
    p90: float
    covered: float
    width: float

    def text(self, *, held_out: bool) -> str:
        """Returns the line for a terminal, of a fit with held-out groups or of the given constants."""
        error = f"median error {self.fitted:5.1f}%"
        if held_out:
            error += f", held out {self.held_out:5.1f}%"
        return (
            f"{self.group:62} {self.rows:4} rows: {error}, p90 {self.p90:5.1f}%, "
            f"covered {self.covered:5.1f}%, width {self.width:.2f}"
        )


def link_lines(tried: Sequence[FittedLinkProbe]) -> list[LinkFitLine]:
    """Returns one line for each metric and group, and one for each metric."""
    sets: dict[tuple[str, str], list[FittedLinkProbe]] = {}
    for one in tried:
        metric = one.probe.row.metric
        nodes = f", {one.probe.row.nodes} nodes" if one.probe.row.nodes > 1 else ""
        sets.setdefault((metric, " on ".join(one.probe.row.group) + nodes), []).append(one)
        sets.setdefault((metric, "all"), []).append(one)
    return [
        LinkFitLine(
            f"{metric} {group}",
            len(of),
            100.0 * statistics.median(abs(one.fitted - 1.0) for one in of),
            100.0 * statistics.median(abs(one.held_out - 1.0) for one in of),
            100.0 * percentile([abs(one.held_out - 1.0) for one in of], 0.9),
            100.0 * statistics.fmean(one.is_covered for one in of),
            statistics.median(one.high / one.low for one in of),
        )
        for (metric, group), of in sorted(sets.items())
    ]
