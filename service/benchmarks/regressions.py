"""Regressions: the last run of a node compared with its earlier ones, and with equal nodes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from service.benchmarks.figures import READ_METRICS, compare_standings
from service.benchmarks.repeats import compute_figure, compute_standing, group_by_run
from service.benchmarks.schemas import RegressionQuery
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation import repository
from service.kit.database.engine import Reader
from service.schemas.events import BenchmarkRegressionEvent

MOST_RESULTS = 5000
_WORSE = {"higher": frozenset({"slower", "lower"}), "lower": frozenset({"slower", "higher"})}
RepeatedResults = Sequence[BenchmarkResultRow]
_SortedRegression = tuple[dict[str, Any], str]
"""A regression as the API shows it, and the id of its result."""


class RunOfBenchmark(NamedTuple):
    """One run of one benchmark on one node, and its figure."""

    repeats: RepeatedResults
    value: float

    @property
    def first(self) -> BenchmarkResultRow:
        """Its first result."""
        return self.repeats[0]


def find_regressions(session: Reader, tenant_id: str, query: RegressionQuery) -> dict[str, Any]:
    """Finds every plausible regression among the last results of a tenant, largest change first."""
    # Other nodes are included, since a node may be worse than they are.
    rows = repository.list_plausible_results(session, tenant_id, query.benchmark, limit=MOST_RESULTS)
    items = [
        item
        for item, _ in _list_regressions(rows, query.least_change)
        if not query.node_id or item["node_id"] in query.node_id
    ]
    items.sort(key=lambda item: -abs(item["relative_change"]))
    since = {"since": rows[0].received_at} if rows else {}
    return {"items": items, "results_considered": len(rows), **since}


def list_regression_events(session: Reader, tenant_id: str, run_id: str) -> list[BenchmarkRegressionEvent]:
    """Returns the events of a run: the largest change of each of its figures that is a regression."""
    names = {row.benchmark for row in repository.list_measured_results(session, tenant_id, [run_id])}
    if not names:
        return []
    rows = repository.list_plausible_results(session, tenant_id, names, limit=MOST_RESULTS)
    events: dict[str, BenchmarkRegressionEvent] = {}
    for item, result_id in _list_regressions(rows, RegressionQuery().least_change):
        known = events.get(result_id)
        is_larger = known is None or abs(item["relative_change"]) > abs(known["relative_change"])
        if item["run_id"] == run_id and is_larger:
            events[result_id] = BenchmarkRegressionEvent(
                node_id=item["node_id"],
                benchmark=item["benchmark"],
                metric=item["metric"],
                against=item["against"],
                relative_change=item["relative_change"],
                result_id=result_id,
            )
    return list(events.values())


def _list_regressions(rows: RepeatedResults, least_change: float) -> Iterator[_SortedRegression]:
    for nodes in group_comparable_runs(rows):
        last = [runs[-1] for runs in nodes.values()]
        for runs in nodes.values():
            yield from _compare_run("earlier_runs", runs[-1], runs[:-1], least_change)
        for run in last:
            yield from _compare_run("other_nodes", run, [one for one in last if one is not run], least_change)


def group_comparable_runs(rows: RepeatedResults) -> Iterator[dict[str, list[RunOfBenchmark]]]:
    """Yields runs of equal work on equal hardware, by node and in the order of time."""
    groups: dict[tuple[Any, ...], list[BenchmarkResultRow]] = {}
    for row in rows:
        # A node with unknown hardware is only comparable with itself.
        hardware = row.hardware_sha256 or f"of {row.node_id}"
        key = (row.benchmark, row.work_sha256, row.metric, row.direction, hardware)
        groups.setdefault(key, []).append(row)
    for group in groups.values():
        nodes: dict[str, list[RunOfBenchmark]] = {}
        for repeats in group_by_run(group):
            nodes.setdefault(repeats[0].node_id, []).append(
                RunOfBenchmark(repeats, compute_figure(repeats)["value"])
            )
        yield nodes


def select_middle_run(runs: Sequence[RunOfBenchmark]) -> RunOfBenchmark:
    """Returns the run with the middle figure, the lower one of two."""
    return sorted(runs, key=lambda one: one.value)[(len(runs) - 1) // 2]


def _compare_run(
    against: str, run: RunOfBenchmark, others: Sequence[RunOfBenchmark], least_change: float
) -> Iterator[_SortedRegression]:
    """Yields the comparison of the run with the median of others, if it is worse."""
    if not others:
        return
    beside = select_middle_run(others)
    change = run.value / beside.value - 1 if beside.value else 0.0
    if abs(change) < least_change:
        return
    first = run.first
    one, other = compute_standing(beside.repeats), compute_standing(run.repeats)
    verdict = compare_standings(one, other, is_time=first.metric not in READ_METRICS)
    if verdict not in _WORSE[first.direction]:
        return
    item = {
        "against": against,
        "benchmark": first.benchmark,
        "metric": first.metric,
        "direction": first.direction,
        "work_sha256": first.work_sha256,
        **({} if first.hardware is None else {"hardware": first.hardware}),
        "node_id": first.node_id,
        "run_id": first.run_id,
        "received_at": first.received_at,
        "value": run.value,
        "baseline_node_id": beside.first.node_id,
        "baseline_run_id": beside.first.run_id,
        "baseline_value": beside.value,
        "compared": len(others),
        "relative_change": change,
        "has_clocks": one.cycles is not None and other.cycles is not None,
    }
    yield item, first.id
