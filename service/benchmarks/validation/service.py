"""The rules applied to stored results: what they read, what is kept of them, what is measured again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from statistics import median
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic_core import to_json

from service.audit.service import Change
from service.benchmarks import asking, calibration_jobs, comparing
from service.benchmarks import repository as benchmarks
from service.benchmarks.datasheets import Document, datasheet
from service.benchmarks.figures import measured
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation import repository
from service.benchmarks.validation.case import LEAST_BITS, Case, Earlier, Sibling, information_bits, known
from service.benchmarks.validation.limits import limits_of
from service.benchmarks.validation.rules import RULES_VERSION, Validation, confirmed, validate
from service.benchmarks.verdicts import Finding, Verdict, verdict_of
from service.catalog import service as catalog
from service.kit.database.engine import Reader, Writer
from service.nodes import service as nodes
from service.protocol.nodes import Accelerator, Inventory
from service.protocol.results import Result
from service.protocol.suites import Suite
from service.protocol.work import Work

MOST_RE_RUNS = 2
"""Of one run: with it three, of which two have to agree (benchmark-worker.md, 10.5, stage 7)."""
NOTE = "suspects of a run, measured again"
Values = dict[str, Any]


class Examined(NamedTuple):
    """What is to be kept of one result."""

    result_id: str
    node_id: str
    values: Values


@dataclass(slots=True)
class _Examiner:
    """Reads what the rules need of one run; what several results share is read once."""

    session: Reader
    tenant_id: str
    rows: Sequence[BenchmarkResultRow]
    suite: Suite | None
    inventories: dict[tuple[str, str], Inventory | None] = field(default_factory=dict)
    grants: dict[tuple[str, int], datetime | None] = field(default_factory=dict)
    peers: dict[tuple[str | None, ...], list[float]] = field(default_factory=dict)
    documents: dict[str, list[Document]] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)
    """Ids of the results of this run that came before, by the digest of their samples."""

    def examine(self, row: BenchmarkResultRow) -> Examined:
        record = Result.model_validate_json(benchmarks.content(self.session, self.tenant_id, row.id))
        case, samples_sha256 = self._case(row, record)
        validation = validate(case)
        if samples_sha256:
            self.samples.setdefault(samples_sha256, row.id)
        return Examined(row.id, row.node_id, _values(case, validation, samples_sha256))

    def _case(self, row: BenchmarkResultRow, record: Result) -> tuple[Case, str | None]:
        read, measurement = measured(record), known(record.measurement)
        if read is None or measurement is None:
            raise ValueError("only a result with a measurement is examined")
        says_enough = information_bits(measurement, read.summary) >= LEAST_BITS
        digest = sha256(to_json(measurement.samples_ns)).hexdigest() if says_enough else None
        inventory = self._inventory(row.node_id, record.inventory_sha256)
        part = _part(inventory, record)
        correctness = known(measurement.correctness)
        checksum = None if correctness is None else known(correctness.checksum)
        case = Case(
            result=record,
            measurement=measurement,
            figure=read.figure,
            summary=read.summary,
            lease=row.lease,
            is_displaced=row.conflicts_with is not None,
            received_at=row.received_at,
            granted_at=self._granted_at(row),
            is_inventory_known=inventory is not None,
            accelerator=part,
            datasheet=None
            if part is None
            else datasheet(part, self._documents("accelerators"), self._documents("links")),
            siblings=list(self._siblings(row)),
            peers=self._peers(row),
            earlier=Earlier(
                with_these_samples=digest and self._with_samples(row, digest),
                with_this_checksum=None
                if checksum is None
                else repository.with_checksum(self.session, row, checksum=checksum, seed=record.seed),
            ),
        )
        return case, digest

    def _inventory(self, node_id: str, digest: str) -> Inventory | None:
        key = (node_id, digest)
        if key not in self.inventories:
            self.inventories[key] = nodes.inventory(self.session, node_id, digest)
        return self.inventories[key]

    def _granted_at(self, row: BenchmarkResultRow) -> datetime | None:
        key = (row.node_id, row.fencing_token)
        if key not in self.grants:
            self.grants[key] = nodes.granted_at(
                self.session,
                tenant_id=self.tenant_id,
                node_id=row.node_id,
                run_id=row.run_id,
                fencing_token=row.fencing_token,
            )
        return self.grants[key]

    def _documents(self, noun: str) -> list[Document]:
        if noun not in self.documents:
            self.documents[noun] = [*catalog.seen(self.session, noun, self.tenant_id)]
        return self.documents[noun]

    def _siblings(self, row: BenchmarkResultRow) -> Iterator[Sibling]:
        for other in self.rows:
            is_of_attempt = other.fencing_token == row.fencing_token and other.node_id == row.node_id
            work = self._work(other.benchmark)
            if other is row or not other.is_counted or not is_of_attempt or work is None:
                continue
            yield Sibling(
                benchmark=other.benchmark,
                repeat=other.repeat,
                work=work,
                metric=other.metric,
                figure=other.counted_figure,
                accelerator_index=other.conditions.get("accelerator_index"),
                warmup_seconds=other.conditions.get("warmup_seconds"),
                started_at=other.started_at,
                finished_at=other.finished_at,
            )

    def _work(self, name: str) -> Work | None:
        benchmark = self.suite.benchmark(name) if self.suite else None
        return None if benchmark is None else benchmark.work

    def _peers(self, row: BenchmarkResultRow) -> list[float]:
        """The median of each other node's accepted figures."""
        if row.hardware_sha256 is None:
            return []
        key = (row.benchmark, row.work_sha256, row.metric, row.hardware_sha256, row.node_id)
        if key not in self.peers:
            by_node: dict[str, list[float]] = {}
            for node_id, figure in repository.peers(self.session, row):
                by_node.setdefault(node_id, []).append(figure)
            self.peers[key] = [median(figures) for figures in by_node.values()]
        return self.peers[key]

    def _with_samples(self, row: BenchmarkResultRow, digest: str) -> str | None:
        if digest in self.samples:
            return self.samples[digest]
        return repository.with_samples(self.session, self.tenant_id, digest, row.id)


def _part(inventory: Inventory | None, record: Result) -> Accelerator | None:
    if inventory is None or record.device == "cpu":
        return None
    index = known(record.accelerator_index)
    if index is None and len({part.name for part in inventory.accelerators}) == 1:
        return inventory.accelerators[0]  # all of them took part, and they are alike
    return next((part for part in inventory.accelerators if part.index == index), None)


def _values(case: Case, validation: Validation, samples_sha256: str | None) -> Values:
    correctness = known(case.measurement.correctness)
    return {
        "rules_version": RULES_VERSION,
        "verdict": validation.verdict,
        "findings": [_written(finding) for finding in validation.findings],
        "unchecked": [unchecked._asdict() for unchecked in validation.unchecked],
        "agreeing_run_ids": [],
        "samples_sha256": samples_sha256,
        "checksum": None if correctness is None else known(correctness.checksum),
        "seed": case.result.seed,
    }


def _written(finding: Finding) -> Values:
    return {name: value for name, value in finding._asdict().items() if value is not None}


def _read(written: Mapping[str, Any]) -> Finding:
    return Finding(**{**written, "verdict": Verdict(written["verdict"])})


def examine(session: Reader, tenant_id: str, run_id: str, *, again: bool = False) -> list[Examined]:
    """What the rules say of every result of a run that they have not been applied to, or of all of them."""
    rows = repository.measured(session, tenant_id, [run_id])
    done = set() if again else repository.validated(session, tenant_id, run_id, RULES_VERSION)
    run = benchmarks.run(session, tenant_id, run_id)
    suite = Suite.model_validate(run.suite) if run else None
    examiner = _Examiner(session, tenant_id, rows, suite)
    return [examiner.examine(row) for row in rows if row.id not in done]


def keep(session: Writer, tenant_id: str, run_id: str, examined: Sequence[Examined]) -> Change | None:
    """Keep what the rules said, see which runs agree, and ask for suspects to be measured again.

    Answers with the run that is to measure them, for the audit.
    """
    for one in examined:
        repository.put(session, tenant_id, one.result_id, one.values)
    run = benchmarks.run(session, tenant_id, run_id)
    if run is None:
        return None
    family = repository.family(session, tenant_id, run.re_run_of or run.id)
    suspects = _settle(session, tenant_id, family)
    for node_id in sorted({one.node_id for one in examined}):
        calibration_jobs.ask(session, tenant_id, node_id, because=uuid4().hex)
    if examined:
        comparing.ask(session, tenant_id, run_id, because=uuid4().hex)
    if examined and family[-1].id == run_id and len(family) <= MOST_RE_RUNS:
        return _run_again(session, run, suspects.get(run_id, set()))
    return None


def _settle(session: Writer, tenant_id: str, family: Sequence[BenchmarkRunRow]) -> dict[str, set[str]]:
    """Let runs of a family confirm each other; the benchmarks that stay suspect, by run."""
    rows = repository.measured(session, tenant_id, [run.id for run in family])
    validations = repository.of_results(session, tenant_id, [row.id for row in rows])
    kinds = {one.name: one.work.kind for run in family for one in Suite.model_validate(run.suite).benchmarks}
    suspects: dict[str, set[str]] = {}
    for alike in _alike(rows):
        usable = [row for row in alike if row.id in validations and _is_usable(validations[row.id].findings)]
        figures = _figures_by_run(usable)
        for row in alike:
            if row.id not in validations:
                continue
            validation = validations[row.id]
            findings = [_read(one) for one in validation.findings]
            most = limits_of(row.device, kinds.get(row.benchmark, "")).repeat_spread
            agreeing = _agreeing(figures, row.run_id, most) if row in usable else []
            verdict = confirmed(findings) if agreeing else verdict_of(findings)
            if (validation.verdict, validation.agreeing_run_ids) != (verdict, agreeing):
                validation.verdict, validation.agreeing_run_ids = verdict, agreeing
            if verdict is Verdict.SUSPECT:
                suspects.setdefault(row.run_id, set()).add(row.benchmark)
    session.flush()
    return suspects


def _alike(rows: Sequence[BenchmarkResultRow]) -> Iterator[list[BenchmarkResultRow]]:
    """Counted results of equal work on the same device, of any run."""
    groups: dict[tuple[Any, ...], list[BenchmarkResultRow]] = {}
    for row in rows:
        if row.is_counted:
            index = row.conditions.get("accelerator_index")
            key = (row.node_id, row.benchmark, row.work_sha256, row.metric, row.hardware_sha256, index)
            groups.setdefault(key, []).append(row)
    yield from groups.values()


def _is_usable(findings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether nothing but statistics speaks against a result, so that it can confirm another."""
    return confirmed([_read(one) for one in findings]) is Verdict.ACCEPTED


def _figures_by_run(rows: Sequence[BenchmarkResultRow]) -> dict[str, float]:
    by_run: dict[str, list[float]] = {}
    for row in rows:
        by_run.setdefault(row.run_id, []).append(row.counted_figure)
    return {run_id: median(figures) for run_id, figures in by_run.items()}


def _agreeing(figures: Mapping[str, float], own_run_id: str, most: float) -> list[str]:
    """The other runs whose figure is that of this one, within the share that repeats may differ by."""
    own = figures[own_run_id]
    return [
        run_id
        for run_id, figure in figures.items()
        if run_id != own_run_id and abs(figure - own) <= most * max(figure, own)
    ]


def _run_again(session: Writer, run: BenchmarkRunRow, names: set[str]) -> Change | None:
    """Ask the node of a completed run for its suspects, and nothing else."""
    standing = nodes.standing(session, run.tenant_id, [run.id])[run.id]
    node_id = standing.node_id
    if not names or standing.state != "completed" or node_id is None:
        return None
    if not nodes.is_known(session, run.tenant_id, node_id, run.device):
        return None
    suite = Suite.model_validate(run.suite)
    again = [benchmark for benchmark in suite.benchmarks if benchmark.name in names]
    row = asking.add_run(
        session,
        run.tenant_id,
        suite.model_copy(update={"benchmarks": again}),
        node_id=node_id,
        note=NOTE,
        re_run_of=run.re_run_of or run.id,
    )
    after = {"id": row.id, "re_run_of": row.re_run_of, "node_id": node_id, "benchmarks": sorted(names)}
    return Change(resource=f"benchmark-runs/{row.id}", after=after)
