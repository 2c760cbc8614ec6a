"""Validation of stored results: the cases of the rules, the stored verdicts, and runs for suspects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from statistics import median
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic_core import to_json

from service.audit.service import WriteOutcome
from service.benchmarks import asking, calibration_jobs, comparing
from service.benchmarks import repository as benchmarks
from service.benchmarks.datasheets import CatalogDocument, build_datasheet
from service.benchmarks.figures import compute_measured
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation import repository
from service.benchmarks.validation.case import (
    LEAST_BITS,
    EarlierResults,
    SiblingResult,
    ValidationCase,
    compute_information_bits,
    get_known,
)
from service.benchmarks.validation.limits import resolve_limits
from service.benchmarks.validation.rules import (
    RULES_VERSION,
    RuleVerdict,
    compute_confirmed_verdict,
    validate_case,
)
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, compute_verdict
from service.catalog import service as catalog
from service.kit.database.engine import Reader, Writer
from service.nodes import service as nodes
from service.protocol.nodes import NodeAccelerator, NodeInventory
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import BenchmarkSuite
from service.protocol.work import BenchmarkWork

MOST_RE_RUNS = 2
"""Re-runs of one run at most: of the three, two have to agree (benchmark-worker.md, 10.5, stage 7)."""
NOTE = "suspects of a run, measured again"
RowValues = dict[str, Any]


class ExaminedResult(NamedTuple):
    """Validation of one result that is to be stored."""

    result_id: str
    node_id: str
    lease: str
    values: RowValues


@dataclass(slots=True)
class _Examiner:
    """Reads what the rules need of one run, and reads what several results share once."""

    session: Reader
    tenant_id: str
    rows: Sequence[BenchmarkResultRow]
    suite: BenchmarkSuite | None
    inventories: dict[tuple[str, str], NodeInventory | None] = field(default_factory=dict)
    grants: dict[tuple[str, int], datetime | None] = field(default_factory=dict)
    peers: dict[tuple[str | None, ...], list[float]] = field(default_factory=dict)
    documents: dict[str, list[CatalogDocument]] = field(default_factory=dict)
    works: dict[tuple[str, str], BenchmarkWork | None] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)
    """Ids of earlier results of this run by the digest of their samples."""

    def examine_result(self, row: BenchmarkResultRow) -> ExaminedResult:
        record = BenchmarkResultReport.model_validate_json(
            benchmarks.get_content(self.session, self.tenant_id, row.id)
        )
        case, samples_sha256 = self._build_case(row, record)
        validation = validate_case(case)
        if samples_sha256:
            self.samples.setdefault(samples_sha256, row.id)
        values = _build_values(case, validation, samples_sha256)
        return ExaminedResult(row.id, row.node_id, row.lease, values)

    def _build_case(
        self, row: BenchmarkResultRow, record: BenchmarkResultReport
    ) -> tuple[ValidationCase, str | None]:
        read, measurement = compute_measured(record), get_known(record.measurement)
        if read is None or measurement is None:
            raise ValueError("only a result with a measurement is examined")
        says_enough = compute_information_bits(measurement, read.summary) >= LEAST_BITS
        digest = sha256(to_json(measurement.samples_ns)).hexdigest() if says_enough else None
        inventory = self._get_inventory(row.node_id, record.inventory_sha256)
        part = find_accelerator(inventory, record)
        correctness = get_known(measurement.correctness)
        checksum = None if correctness is None else get_known(correctness.checksum)
        case = ValidationCase(
            result=record,
            measurement=measurement,
            figure=read.figure,
            summary=read.summary,
            lease=row.lease,
            is_displaced=row.conflicts_with is not None,
            received_at=row.received_at,
            granted_at=self._get_granted_at(row),
            is_inventory_known=inventory is not None,
            accelerator=part,
            datasheet=None
            if part is None
            else build_datasheet(part, self._get_documents("accelerators"), self._get_documents("links")),
            siblings=list(self._list_siblings(row)),
            peers=self._list_peer_medians(row),
            earlier=EarlierResults(
                with_these_samples=digest and self._find_same_samples(row, digest),
                with_this_checksum=None
                if checksum is None
                else repository.find_same_checksum(self.session, row, checksum=checksum, seed=record.seed),
            ),
        )
        return case, digest

    def _get_inventory(self, node_id: str, digest: str) -> NodeInventory | None:
        key = (node_id, digest)
        if key not in self.inventories:
            self.inventories[key] = nodes.get_inventory(self.session, node_id, digest)
        return self.inventories[key]

    def _get_granted_at(self, row: BenchmarkResultRow) -> datetime | None:
        key = (row.node_id, row.fencing_token)
        if key not in self.grants:
            self.grants[key] = nodes.find_grant_time(
                self.session,
                tenant_id=self.tenant_id,
                node_id=row.node_id,
                run_id=row.run_id,
                fencing_token=row.fencing_token,
            )
        return self.grants[key]

    def _get_documents(self, noun: str) -> list[CatalogDocument]:
        if noun not in self.documents:
            self.documents[noun] = [*catalog.list_visible_rows(self.session, noun, self.tenant_id)]
        return self.documents[noun]

    def _list_siblings(self, row: BenchmarkResultRow) -> Iterator[SiblingResult]:
        for other in self.rows:
            is_of_attempt = other.fencing_token == row.fencing_token and other.node_id == row.node_id
            work = self._find_work(other)
            if other is row or not other.is_counted or not is_of_attempt or work is None:
                continue
            yield build_sibling(other, work)

    def _find_work(self, row: BenchmarkResultRow) -> BenchmarkWork | None:
        key = (row.benchmark, row.work_sha256)
        if key not in self.works:
            benchmark = self.suite.find_benchmark(row.benchmark) if self.suite else None
            sizes = benchmark.map_sizes() if benchmark else {}
            size = sizes.get(row.work_sha256, benchmark)
            self.works[key] = None if size is None else size.work
        return self.works[key]

    def _list_peer_medians(self, row: BenchmarkResultRow) -> list[float]:
        """Returns the median of the accepted figures of each other node."""
        if row.hardware_sha256 is None:
            return []
        key = (row.benchmark, row.work_sha256, row.metric, row.hardware_sha256, row.node_id)
        if key not in self.peers:
            by_node: dict[str, list[float]] = {}
            for node_id, figure in repository.list_peer_figures(self.session, row):
                by_node.setdefault(node_id, []).append(figure)
            self.peers[key] = [median(figures) for figures in by_node.values()]
        return self.peers[key]

    def _find_same_samples(self, row: BenchmarkResultRow, digest: str) -> str | None:
        if digest in self.samples:
            return self.samples[digest]
        return repository.find_same_samples(self.session, self.tenant_id, digest, row.id)


def build_sibling(row: BenchmarkResultRow, work: BenchmarkWork) -> SiblingResult:
    """Builds what the rules of other results of the attempt read of a counted result."""
    return SiblingResult(
        benchmark=row.benchmark,
        repeat=row.repeat,
        work=work,
        metric=row.metric,
        figure=row.counted_figure,
        accelerator_index=row.conditions.get("accelerator_index"),
        warmup_seconds=row.conditions.get("warmup_seconds"),
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def find_accelerator(
    inventory: NodeInventory | None, record: BenchmarkResultReport
) -> NodeAccelerator | None:
    """Returns the accelerator that a result was measured on, None of a processor or if it is unknown."""
    if inventory is None or record.device == "cpu":
        return None
    index = get_known(record.accelerator_index)
    if index is None and len({part.name for part in inventory.accelerators}) == 1:
        return inventory.accelerators[0]  # all of them took part, and they are alike
    return next((part for part in inventory.accelerators if part.index == index), None)


def _build_values(case: ValidationCase, validation: RuleVerdict, samples_sha256: str | None) -> RowValues:
    correctness = get_known(case.measurement.correctness)
    return {
        "rules_version": RULES_VERSION,
        "verdict": validation.verdict,
        "findings": [_finding_to_document(finding) for finding in validation.findings],
        "unchecked": [unchecked._asdict() for unchecked in validation.unchecked],
        "agreeing_run_ids": [],
        "samples_sha256": samples_sha256,
        "checksum": None if correctness is None else get_known(correctness.checksum),
        "seed": case.result.seed,
    }


def _finding_to_document(finding: RuleFinding) -> RowValues:
    return {name: value for name, value in finding._asdict().items() if value is not None}


def _parse_finding(written: Mapping[str, Any]) -> RuleFinding:
    return RuleFinding(**{**written, "verdict": ResultVerdict(written["verdict"])})


def examine_run(session: Reader, tenant_id: str, run_id: str, *, again: bool = False) -> list[ExaminedResult]:
    """Returns validations of the results of a run that have none under these rules, or of all (``again``)."""
    rows = repository.list_measured_results(session, tenant_id, [run_id])
    done = set() if again else repository.list_validated_ids(session, tenant_id, run_id, RULES_VERSION)
    run = benchmarks.get_run(session, tenant_id, run_id)
    suite = BenchmarkSuite.model_validate(run.suite) if run else None
    examiner = _Examiner(session, tenant_id, rows, suite)
    return [examiner.examine_result(row) for row in rows if row.id not in done]


def store_examined(
    session: Writer, tenant_id: str, run_id: str, examined: Sequence[ExaminedResult]
) -> WriteOutcome | None:
    """Stores validations, confirms runs that agree, and starts a run that measures suspects again.

    Returns the outcome of that run for the audit, or None.
    """
    rows = repository.list_measured_results(session, tenant_id, [run_id])
    standings = {row.id: row.lease for row in rows}
    for one in examined:
        # The attempt of a result may have completed the run meanwhile; then another validation is under way.
        if standings.get(one.result_id) == one.lease:
            repository.store_validation(session, tenant_id, one.result_id, one.values)
    run = benchmarks.get_run(session, tenant_id, run_id)
    if run is None:
        return None
    family = repository.list_run_family(session, tenant_id, run.re_run_of or run.id)
    suspects = _confirm_family(session, tenant_id, family)
    for node_id in sorted({one.node_id for one in examined}):
        calibration_jobs.enqueue_calibration(session, tenant_id, node_id, because=uuid4().hex)
    if examined:
        comparing.enqueue_comparison(session, tenant_id, run_id, because=uuid4().hex)
    if examined and family[-1].id == run_id and len(family) <= MOST_RE_RUNS:
        return _rerun_suspects(session, run, suspects.get(run_id, set()))
    return None


def _confirm_family(
    session: Writer, tenant_id: str, family: Sequence[BenchmarkRunRow]
) -> dict[str, set[str]]:
    """Lifts suspicions of runs that agree, and returns the benchmarks that stay suspect by run."""
    rows = repository.list_measured_results(session, tenant_id, [run.id for run in family])
    validations = repository.get_validations(session, tenant_id, [row.id for row in rows])
    works = {
        one.name: one.work for run in family for one in BenchmarkSuite.model_validate(run.suite).benchmarks
    }
    suspects: dict[str, set[str]] = {}
    for alike in _group_comparable_results(rows):
        usable = [
            row for row in alike if row.id in validations and _is_confirming(validations[row.id].findings)
        ]
        figures = _compute_run_figures(usable)
        for row in alike:
            if row.id not in validations:
                continue
            validation = validations[row.id]
            findings = [_parse_finding(one) for one in validation.findings]
            work = works.get(row.benchmark)
            is_on_host = work is not None and work.is_on_host
            most = resolve_limits(row.device, is_on_host=is_on_host).repeat_spread
            agreeing = _list_agreeing_runs(figures, row.run_id, most) if row in usable else []
            verdict = compute_confirmed_verdict(findings) if agreeing else compute_verdict(findings)
            if (validation.verdict, validation.agreeing_run_ids) != (verdict, agreeing):
                validation.verdict, validation.agreeing_run_ids = verdict, agreeing
            if verdict is ResultVerdict.SUSPECT:
                suspects.setdefault(row.run_id, set()).add(row.benchmark)
    session.flush()
    return suspects


def _group_comparable_results(rows: Sequence[BenchmarkResultRow]) -> Iterator[list[BenchmarkResultRow]]:
    """Yields groups of counted results of equal work on the same device, of any run."""
    groups: dict[tuple[Any, ...], list[BenchmarkResultRow]] = {}
    for row in rows:
        if row.is_counted:
            index = row.conditions.get("accelerator_index")
            key = (row.node_id, row.benchmark, row.work_sha256, row.metric, row.hardware_sha256, index)
            groups.setdefault(key, []).append(row)
    yield from groups.values()


def _is_confirming(findings: Sequence[Mapping[str, Any]]) -> bool:
    """Returns true if a result has no findings but suspicions by statistics. It can confirm another then."""
    return compute_confirmed_verdict([_parse_finding(one) for one in findings]) is ResultVerdict.ACCEPTED


def _compute_run_figures(rows: Sequence[BenchmarkResultRow]) -> dict[str, float]:
    by_run: dict[str, list[float]] = {}
    for row in rows:
        by_run.setdefault(row.run_id, []).append(row.counted_figure)
    return {run_id: median(figures) for run_id, figures in by_run.items()}


def _list_agreeing_runs(figures: Mapping[str, float], own_run_id: str, most: float) -> list[str]:
    """Returns the other runs whose figure agrees with a run's within the share that repeats may differ."""
    own = figures[own_run_id]
    return [
        run_id
        for run_id, figure in figures.items()
        if run_id != own_run_id and abs(figure - own) <= most * max(figure, own)
    ]


def _rerun_suspects(session: Writer, run: BenchmarkRunRow, names: set[str]) -> WriteOutcome | None:
    """Starts a run of nothing but the suspects on the node of a completed run."""
    standing = nodes.list_standings(session, run.tenant_id, [run.id])[run.id]
    node_id = standing.node_id
    if not names or standing.state != "completed" or node_id is None:
        return None
    if not nodes.is_known_node(session, run.tenant_id, node_id, run.device):
        return None
    suite = BenchmarkSuite.model_validate(run.suite)
    again = [benchmark for benchmark in suite.benchmarks if benchmark.name in names]
    row = asking.store_run(
        session,
        run.tenant_id,
        suite.model_copy(update={"benchmarks": again}),
        node_id=node_id,
        note=NOTE,
        re_run_of=run.re_run_of or run.id,
    )
    after = {"id": row.id, "re_run_of": row.re_run_of, "node_id": node_id, "benchmarks": sorted(names)}
    return WriteOutcome(resource=f"benchmark-runs/{row.id}", after=after)
