"""The page of a node: what it is, what it measured last beside what is expected, and one figure over time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.benchmarks import service as benchmarks
from service.benchmarks.schemas import BenchmarkRunQuery
from service.benchmarks.service import LastFigure
from service.calibrations import service as calibrations
from service.fleet.last_results import (
    FEWEST_DATED,
    build_bars,
    describe_figure,
    describe_findings,
    has_news,
    select_shown,
)
from service.fleet.over_time import build_dated, select_dated
from service.fleet.overview import describe_node, list_regressions, list_runs
from service.fleet.permissions import ReadableParts
from service.fleet.words import describe_count
from service.kit.clock import now
from service.kit.database.engine import Reader
from service.kit.reports.numbers import BYTES, WATTS, format_value
from service.nodes import service as nodes
from service.protocol.nodes import NodeInventory

MOST_RUNS: Final = 20
MOST_SETS: Final = 5


def describe_node_page(
    session: Reader,
    tenant_id: str,
    node_id: str,
    *,
    heartbeats: nodes.HeartbeatRegistry,
    parts: ReadableParts,
    wanted: str,
) -> dict[str, Any]:
    """Returns what the page of a node shows, with the benchmark ``wanted`` over time."""
    node = nodes.get_node(session, tenant_id, node_id, heartbeats)
    inventory = node.get("inventory", {})
    query = BenchmarkRunQuery(node_id=[node_id])
    sets = {"node_id": [node_id]}
    return {
        "node": describe_node(node, now()),
        "accelerators": _group_accelerators(inventory.get("accelerators", ())),
        "host_memory": _format_memory(inventory.get("host", {})),
        "runs": list_runs(session, tenant_id, query, limit=MOST_RUNS) if parts.runs else [],
        "most_runs": MOST_RUNS,
        "calibrations": calibrations.list_newest(session, tenant_id, sets, limit=MOST_SETS)
        if parts.calibrations
        else [],
        **(_describe_results(session, tenant_id, node, wanted) if parts.results else {"regressions": []}),
    }


def _describe_results(
    session: Reader, tenant_id: str, node: Mapping[str, Any], wanted: str
) -> dict[str, Any]:
    """Returns the part of the page about results: regressions, last figures, and one of them over time."""
    inventory = NodeInventory.model_validate(node["inventory"]) if "inventory" in node else None
    figures: list[LastFigure] = benchmarks.list_last_figures(session, tenant_id, node["id"], inventory)
    regressions = list_regressions(session, tenant_id, node["id"])
    worse = [one["benchmark"] for one in regressions]
    dated = select_dated(figures, wanted, worse)
    shown = select_shown(figures, worse)
    return {
        "regressions": regressions,
        "figures": [describe_figure(figure) for figure in shown],
        "folded": [describe_figure(figure) for figure in figures if figure not in shown],
        "findings": [describe_findings(figure) for figure in figures if has_news(figure)],
        "bars": build_bars(shown),
        "dated": build_dated(session, tenant_id, node["id"], dated) if dated else None,
        "dated_names": [figure.benchmark for figure in figures if figure.runs >= FEWEST_DATED],
    }


def _format_memory(host: Mapping[str, Any]) -> str:
    return format_value(host["memory_bytes"], BYTES) if "memory_bytes" in host else ""


_IDENTITY: Final = (
    *("name", "memory_bytes", "power_limit_watts", "power_limit_default_watts", "compute_capability"),
    *(
        "ecc_mode",
        "mig_mode",
        "pcie_generation_maximum",
        "pcie_width_maximum",
        "nvlink_count",
        "vbios_version",
    ),
)


def _group_accelerators(accelerators: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the devices of a node in words, equal ones together."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for part in accelerators:
        groups.setdefault(tuple(part.get(name) for name in _IDENTITY), []).append(part)
    return [_describe_accelerators(alike) for alike in groups.values()]


def _describe_accelerators(alike: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    part, places = alike[0], sorted(each["index"] for each in alike)
    is_row = len(places) > 1 and places == list(range(places[0], places[-1] + 1))
    limit, default = part.get("power_limit_watts"), part.get("power_limit_default_watts")
    lanes = [part.get("pcie_generation_maximum"), part.get("pcie_width_maximum")]
    modes = [
        f"{name} {'on' if part[member] else 'off'}"
        for member, name in (("ecc_mode", "ECC"), ("mig_mode", "MIG"))
        if member in part
    ]
    return {
        "places": f"{places[0]} to {places[-1]}" if is_row else ", ".join(map(str, places)),
        "name": part["name"],
        "memory": format_value(part["memory_bytes"], BYTES) if "memory_bytes" in part else "",
        "power": format_value(limit, WATTS) if limit is not None else "",
        "default_power": format_value(default, WATTS) if default and limit and default != limit else "",
        "bus": f"PCIe {lanes[0]} x{lanes[1]}" if all(lanes) else "",
        "links": describe_count(part["nvlink_count"], "NVLink") if part.get("nvlink_count") else "",
        "modes": ", ".join(modes),
        "firmware": part.get("vbios_version", ""),
    }
