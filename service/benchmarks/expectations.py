"""Last figures of a node beside what is expected of them: the data sheet, equal nodes and earlier runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import MISSING

from service.benchmarks import repository
from service.benchmarks.datasheets import Datasheet, build_datasheet
from service.benchmarks.regressions import RunOfBenchmark, group_comparable_runs, select_middle_run
from service.benchmarks.repeats import compute_figure
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation import repository as validations
from service.benchmarks.validation.physics import compute_lane_rate, count_directions
from service.benchmarks.validation.repository import JudgedResult
from service.benchmarks.verdicts import ResultVerdict, select_worst
from service.catalog import service as catalog
from service.kit.database.engine import Reader
from service.protocol.nodes import NodeAccelerator, NodeInventory
from service.protocol.suites import Benchmark, BenchmarkSuite
from service.protocol.work.arithmetic import AttentionWork, GemmWork
from service.protocol.work.links import CollectiveWork, HostLinkWork, PeerLinkWork, PeerMatrixWork
from service.protocol.work.products import BlockScaledGemmWork, GroupedGemmWork, WeightOnlyGemmWork

MOST_RESULTS = 2000
"""Results of a node, and of the nodes that are equal to it, that are read."""
_PLAUSIBLE = frozenset({ResultVerdict.ACCEPTED, ResultVerdict.SUSPECT})


class MiddleFigure(NamedTuple):
    """The middle one of other figures, and their number."""

    value: float
    compared: int


class LastFigure(NamedTuple):
    """The figure of the last run of a benchmark on a node.

    ``datasheet`` is the limit of the data sheet in the unit of the figure; what is not known is None.
    """

    benchmark: str
    metric: str
    direction: str
    value: float
    lowest: float
    highest: float
    repeats: int
    run_id: str
    received_at: datetime
    verdict: str | None
    """Worst verdict on a repeat; None until all repeats are validated."""
    findings: Sequence[Mapping[str, Any]]
    """Checks of any repeat that did not pass, each rule once."""
    runs: int
    """Comparable runs of the node, this one included."""
    datasheet: float | None
    other_nodes: MiddleFigure | None
    earlier_runs: MiddleFigure | None


def list_last_figures(
    session: Reader, tenant_id: str, node_id: str, inventory: NodeInventory | None
) -> list[LastFigure]:
    """Returns the last figure of every benchmark that a node has measured, by name.

    Earlier runs and other nodes count as in :func:`service.benchmarks.regressions.find_regressions`.
    """
    judged = validations.list_node_results(session, tenant_id, node_id, limit=MOST_RESULTS)
    hardware = {one.row.hardware_sha256 for one in judged if one.row.hardware_sha256 is not None}
    peers = (
        validations.list_plausible_peers(session, tenant_id, node_id, hardware, limit=MOST_RESULTS)
        if hardware
        else ()
    )
    beside = list(_list_measured(judged, peers))
    limits = _compute_limits(session, tenant_id, inventory, [one.run.first for one in beside])
    by_id = {one.row.id: one for one in judged}
    return sorted(
        (_build_last_figure(one, by_id, limits.get(one.run.first.benchmark)) for one in beside),
        key=lambda figure: figure.benchmark,
    )


class _RunBeside(NamedTuple):
    """The last run of a benchmark on a node, beside the plausible ones that it is comparable with."""

    run: RunOfBenchmark
    runs: int
    earlier: Sequence[RunOfBenchmark]
    others: Sequence[RunOfBenchmark]


def _list_measured(
    judged: Sequence[JudgedResult], peers: Sequence[BenchmarkResultRow]
) -> Iterator[_RunBeside]:
    """Yields the last run of each benchmark; of two works under one name, the later."""
    plausible = [one.row for one in judged if one.verdict in _PLAUSIBLE]
    known = {
        _build_key(runs[0].first): runs
        for nodes in group_comparable_runs(plausible)
        for runs in nodes.values()
    }
    others = {
        _build_key(runs[0].first): [runs[-1] for runs in nodes.values()]
        for nodes in group_comparable_runs(peers)
        if nodes
        for runs in [next(iter(nodes.values()))]
    }
    last: dict[str, list[RunOfBenchmark]] = {}
    for nodes in group_comparable_runs([one.row for one in judged]):
        for runs in nodes.values():
            name, before = runs[-1].first.benchmark, last.get(runs[-1].first.benchmark)
            if before is None or before[-1].first.received_at < runs[-1].first.received_at:
                last[name] = runs
    for runs in last.values():
        run, key = runs[-1], _build_key(runs[-1].first)
        earlier = [one for one in known.get(key, ()) if one.first.run_id != run.first.run_id]
        yield _RunBeside(run, len(runs), earlier, others.get(key, ()))


def _build_key(row: BenchmarkResultRow) -> tuple[str | None, ...]:
    return row.benchmark, row.work_sha256, row.metric, row.hardware_sha256


def _build_last_figure(
    beside: _RunBeside, judged: Mapping[str, JudgedResult], limit: float | None
) -> LastFigure:
    run = beside.run
    first, verdicts = run.first, [judged[row.id].verdict for row in run.repeats]
    findings = [finding for row in run.repeats for finding in judged[row.id].findings or ()]
    figure = compute_figure(run.repeats)
    return LastFigure(
        benchmark=first.benchmark,
        metric=first.metric,
        direction=first.direction,
        **{name: figure[name] for name in ("value", "lowest", "highest", "repeats")},
        run_id=first.run_id,
        received_at=first.received_at,
        verdict=None
        if None in verdicts
        else select_worst(ResultVerdict(verdict) for verdict in verdicts if verdict is not None),
        findings=list({finding["rule"]: finding for finding in findings}.values()),
        runs=beside.runs,
        datasheet=limit,
        other_nodes=_build_middle(beside.others),
        earlier_runs=_build_middle(beside.earlier),
    )


def _build_middle(runs: Sequence[RunOfBenchmark]) -> MiddleFigure | None:
    return MiddleFigure(select_middle_run(runs).value, len(runs)) if runs else None


def _compute_limits(
    session: Reader, tenant_id: str, inventory: NodeInventory | None, rows: Collection[BenchmarkResultRow]
) -> dict[str, float]:
    """Returns the limits of the data sheet that are known, by benchmark."""
    parts = {} if inventory is None else {part.index: part for part in inventory.accelerators}
    measured = [(row, part) for row in rows if (part := parts.get(row.accelerator_index)) is not None]
    if not measured:
        return {}
    accelerators = catalog.list_visible_rows(session, "accelerators", tenant_id)
    links = catalog.list_visible_rows(session, "links", tenant_id)
    sheets = {index: build_datasheet(part, accelerators, links) for index, part in parts.items()}
    suites = {
        run_id: BenchmarkSuite.model_validate(suite)
        for run_id, suite in repository.list_suites(
            session, tenant_id, {row.run_id for row, _ in measured}
        ).items()
    }
    found = {
        row.benchmark: compute_limit(benchmark, part, sheets[part.index])
        for row, part in measured
        if row.run_id in suites
        if (benchmark := suites[row.run_id].find_benchmark(row.benchmark)) is not None
    }
    return {name: limit for name, limit in found.items() if limit is not None}


_MULTIPLIED = GemmWork | AttentionWork | BlockScaledGemmWork | GroupedGemmWork | WeightOnlyGemmWork
"""Work that the dense rate of its type bounds."""


def compute_limit(benchmark: Benchmark, part: NodeAccelerator, sheet: Datasheet | None) -> float | None:
    """Returns the limit of the data sheet of a part for the figure of a benchmark.

    None if the part has no data sheet, or the data sheet does not bound the work.
    """
    work, metric = benchmark.work, benchmark.metric
    if isinstance(work, HostLinkWork | PeerLinkWork | PeerMatrixWork | CollectiveWork):
        return _compute_link_limit(work, part, sheet) if metric == "bytes_per_second" else None
    if sheet is None:
        return None
    if metric == "flops_per_second" and isinstance(work, _MULTIPLIED):
        return sheet.find_peak(work.dtype)
    fetched = work.fetched_bytes_per_moved_byte
    if metric != "bytes_per_second" or not fetched or not work.is_memory_bound(metric):
        return None
    rate = sheet.memory_bytes_per_second
    return rate and rate / fetched


def _compute_link_limit(
    work: HostLinkWork | PeerLinkWork | PeerMatrixWork | CollectiveWork,
    part: NodeAccelerator,
    sheet: Datasheet | None,
) -> float | None:
    if not isinstance(work, HostLinkWork):
        one_way = sheet.link_bytes_per_second if sheet else None
    elif part.pcie_generation_maximum is MISSING or part.pcie_width_maximum is MISSING:
        one_way = None
    else:
        one_way = compute_lane_rate(part.pcie_generation_maximum, part.pcie_width_maximum)
    return one_way and one_way * count_directions(work)
