"""The fleet at a glance: its nodes, what has become worse, and its newest runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from service.benchmarks import service as benchmarks
from service.benchmarks.schemas import BenchmarkRunQuery, RegressionQuery
from service.fleet.permissions import ReadableParts
from service.fleet.words import (
    describe_count,
    describe_devices,
    describe_node_state,
    describe_run_state,
    find_software,
    format_ago,
    format_change,
    format_figure,
)
from service.kit.clock import now
from service.kit.database.engine import Reader
from service.kit.locales import format_count
from service.kit.reports.numbers import TIMES
from service.nodes import service as nodes

MOST_NODES: Final = 200
MOST_REGRESSIONS: Final = 50
MOST_RUNS: Final = 10
DAYS: Final = 7
_REVOKED: Final = "revoked"


def describe_fleet(
    session: Reader, tenant_id: str, heartbeats: nodes.HeartbeatRegistry, parts: ReadableParts
) -> dict[str, Any]:
    """Returns what the page of the fleet shows. The number of queries does not grow with that of nodes."""
    listed = nodes.list_fleet(session, tenant_id, heartbeats, limit=MOST_NODES)
    counts = benchmarks.count_recent_results(session, tenant_id, days=DAYS) if parts.results else {}
    revoked = frozenset(node["id"] for node in listed if node["state"] == _REVOKED)
    regressions = list_regressions(session, tenant_id, without=revoked) if parts.results else []
    runs = list_runs(session, tenant_id, BenchmarkRunQuery(), limit=MOST_RUNS) if parts.runs else []
    current = _find_current_runs(session, tenant_id, listed) if parts.runs else {}
    worse = Counter(regression["node_id"] for regression in regressions)
    time = now()
    described = [
        describe_node(node, time)
        | {
            "results": sum(counts.get(node["id"], Counter()).values()),
            "regressions": worse[node["id"]],
            "run": current.get(node["id"]),
        }
        for node in listed
    ]
    return {
        "nodes": sorted(described, key=_needs_attention, reverse=True),
        "is_cut": len(listed) == MOST_NODES,
        "summary": _summarize(described, counts.values()),
        "regressions": regressions[:MOST_REGRESSIONS],
        "regression_count": len(regressions),
        "worse_count": len(worse),
        "runs": runs,
        "days": DAYS,
    }


def describe_node(node: Mapping[str, Any], time: datetime) -> dict[str, Any]:
    """Returns a node with its state and devices in words."""
    return {
        **node,
        "status": describe_node_state(node),
        "devices": describe_devices(node),
        "driver": find_software(node, "driver"),
        "heard": format_ago(node["last_seen_at"], time) if "last_seen_at" in node else "",
    }


def _needs_attention(node: Mapping[str, Any]) -> bool:
    return node["state"] != _REVOKED and (node["status"].kind == "bad-text" or bool(node["regressions"]))


def _summarize(listed: Sequence[Mapping[str, Any]], counts: Iterable[Counter[str]]) -> dict[str, Any]:
    """Returns the counts on top of the page; nodes that are revoked are counted as such only."""
    present = [node for node in listed if node["state"] != _REVOKED]
    states = Counter(node["status"].text for node in listed)
    devices: Counter[str] = Counter()
    for node in present:
        devices.update(part["name"] for part in node.get("inventory", {}).get("accelerators", ()))
    results: Counter[str] = sum(counts, Counter())
    return {
        "nodes": len(present),
        "states": ", ".join(f"{count} {state}" for state, count in states.most_common()),
        "devices": devices.total(),
        "device_names": ", ".join(f"{count} {TIMES} {name}" for name, count in devices.most_common()),
        "processors": sum(node["device"] == "cpu" for node in present),
        "results": results.total(),
        "verdicts": ", ".join(
            f"{format_count(count)} {verdict.replace('_', ' ') or 'without a verdict'}"
            for verdict, count in results.most_common()
        ),
    }


def _find_current_runs(
    session: Reader, tenant_id: str, listed: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns the runs that nodes hold a lease of, by node."""
    held = {node["lease"]["benchmark_run_id"]: node["id"] for node in listed if "lease" in node}
    runs = benchmarks.get_runs(session, tenant_id, list(held))
    return {held[run["id"]]: describe_run(run, {}) for run in runs}


def list_runs(
    session: Reader, tenant_id: str, query: BenchmarkRunQuery, *, limit: int
) -> list[dict[str, Any]]:
    """Returns the newest runs in words."""
    found = benchmarks.list_newest_runs(session, tenant_id, query, limit=limit)
    names = nodes.find_names(session, tenant_id, {run["node_id"] for run in found if "node_id" in run})
    return [describe_run(run, names) for run in found]


_ENDED: Final = frozenset({"done", "failed", "skipped"})


def describe_run(run: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Returns a run with its state, node, progress and duration in words."""
    steps = Counter(step["state"] for step in run["progress"])
    ended = sum(steps[state] for state in _ENDED)
    begun, finished = run.get("begun_at"), run.get("finished_at")
    return {
        **run,
        "status": describe_run_state(run),
        "node": names.get(run.get("node_id", ""), ""),
        "done": f"{ended} of {describe_count(len(run['progress']), 'benchmark')}" if run["progress"] else "",
        "failed": steps["failed"],
        "duration": format_figure((finished - begun).total_seconds(), "seconds")
        if begun and finished
        else "",
    }


def list_regressions(
    session: Reader, tenant_id: str, node_id: str = "", without: frozenset[str] = frozenset()
) -> list[dict[str, Any]]:
    """Returns the regressions of nodes in words, the largest change first, each figure once."""
    query = RegressionQuery(node_id=[node_id] if node_id else [])
    items = benchmarks.find_regressions(session, tenant_id, query)["items"]
    figures: dict[tuple[str, str, str], dict[str, Any]] = {}
    for item in items:
        if item["node_id"] in without:
            continue
        key = (item["node_id"], item["run_id"], item["benchmark"])
        shown = figures.setdefault(
            key, {**item, "shown": format_figure(item["value"], item["metric"]), "worse": []}
        )
        shown["worse"].append(_describe_regression(item))
    names = nodes.find_names(session, tenant_id, {node_id for node_id, *_ in figures})
    return [{**one, "node": names.get(one["node_id"], one["node_id"])} for one in figures.values()]


def _describe_regression(item: Mapping[str, Any]) -> dict[str, str]:
    """Returns a comparison that a figure fails, in words."""
    nouns = {
        "earlier_runs": ("its earlier run", "its {} earlier runs"),
        "other_nodes": ("an equal node", "{} equal nodes"),
    }
    one, more = nouns[item["against"]]
    return {
        "change": format_change(item["relative_change"]),
        "baseline": format_figure(item["baseline_value"], item["metric"]),
        "of": one if item["compared"] == 1 else more.format(item["compared"]),
    }
