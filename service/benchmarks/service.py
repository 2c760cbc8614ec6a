"""The rules of benchmark runs and results."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from pydantic import MISSING
from sqlalchemy import ColumnElement, or_
from sqlalchemy.orm import Session

from service.audit.service import Change
from service.benchmarks import asking, repository
from service.benchmarks.conditions import Hardware, conditions, hardware
from service.benchmarks.errors import (
    NotAsAsked,
    NothingToCompare,
    ResultDiffers,
    ResultNotFound,
    ResultsMissing,
    RunNotFound,
    RunNotGranted,
)
from service.benchmarks.figures import (
    READ_METRICS,
    Measured,
    Standing,
    fits_metric,
    measured,
    run_figure,
    verdict,
)
from service.benchmarks.repository import Comparable
from service.benchmarks.schemas import (
    BenchmarkResult,
    BenchmarkRunInput,
    BenchmarkRunQuery,
    ComparisonQuery,
    ResultFilter,
    ResultValidation,
)
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation import jobs as validation
from service.benchmarks.validation import repository as validations
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.benchmarks.verdicts import Verdict, worst
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import ERROR_LIMIT, FieldError, Unprocessable
from service.kit.jobs import leases
from service.kit.security.subjects import Subject
from service.nodes import service as nodes
from service.protocol.canonical import digest
from service.protocol.leases import Completed, Completion
from service.protocol.results import Receipt, Result, content_sha256
from service.protocol.suites import Suite
from service.protocol.summary import Summary


def ask(session: Writer, tenant_id: str, body: BenchmarkRunInput, suites: Mapping[str, Suite]) -> Change:
    """Store a new run, which waits for its node."""
    suite = suites.get(body.suite_id)
    if suite is None:
        field = FieldError("/suite_id", "UNKNOWN_REFERENCE", "there is no suite of this id")
        raise Unprocessable("A member refers to nothing", field)
    row = asking.add_run(
        session,
        tenant_id,
        suite,
        node_id=None if body.node_id is MISSING else body.node_id,
        note=None if body.note is MISSING else body.note,
    )
    shown = shown_run(session, row)
    location = {"Location": f"/v1/benchmark-runs/{row.id}"}
    resource = f"benchmark-runs/{row.id}"
    return Change(resource=resource, status=201, body=shown, headers=location, after=shown)


def cancel(session: Writer, tenant_id: str, run_id: str) -> Change:
    """Let a run end: at once while it waits, or when its node hears of it."""
    row = _run(session, tenant_id, run_id)
    before = shown_run(session, row)
    nodes.cancel(session, tenant_id, run_id)
    after = shown_run(session, row)
    return Change(resource=f"benchmark-runs/{run_id}", body=after, before=before, after=after)


def _run(session: Session, tenant_id: str, run_id: str) -> BenchmarkRunRow:
    row = repository.run(session, tenant_id, run_id)
    if row is None:
        raise RunNotFound
    return row


def shown_runs(session: Session, tenant_id: str, rows: Sequence[BenchmarkRunRow]) -> list[dict[str, Any]]:
    """Runs as callers see them in a list."""
    standings = nodes.standing(session, tenant_id, [row.id for row in rows])
    return [_shown_run(row, standings[row.id]) for row in rows]


def shown_run(session: Session, row: BenchmarkRunRow) -> dict[str, Any]:
    """A run as callers see it, without its figures."""
    return shown_runs(session, row.tenant_id, [row])[0]


def whole_run(session: Reader, tenant_id: str, run_id: str) -> dict[str, Any]:
    """A run with its figures."""
    run = _run(session, tenant_id, run_id)
    rows = latest_attempt(repository.counted(session, tenant_id, run_id))
    found = validations.of_results(session, tenant_id, [row.id for row in rows])
    return {
        **shown_run(session, run),
        "figures": [_with_verdict(one, rows, found) for one in figures_of(rows)],
    }


def _with_verdict(
    figure: dict[str, Any], rows: Sequence[BenchmarkResultRow], found: Mapping[str, BenchmarkValidationRow]
) -> dict[str, Any]:
    repeats = [row.id for row in rows if row.benchmark == figure["benchmark"]]
    if not found.keys() >= set(repeats):
        return figure
    return {**figure, "result_verdict": worst(Verdict(found[result_id].verdict) for result_id in repeats)}


def validate_again(session: Writer, tenant_id: str, run_id: str) -> Change:
    """Ask for a run to be validated with what is known now: other peers, another catalog."""
    shown = shown_run(session, _run(session, tenant_id, run_id))
    validation.ask(session, tenant_id, run_id, because=uuid4().hex, again=True)
    return Change(resource=f"benchmark-runs/{run_id}", status=202, body=shown)


def _shown_run(row: BenchmarkRunRow, standing: nodes.Standing) -> dict[str, Any]:
    shown = {
        "id": row.id,
        "suite_id": row.suite_id,
        "suite_version": row.suite_version,
        "device": row.device,
        "seed": row.seed,
        "node_id": standing.node_id or row.node_id,
        "note": row.note,
        "re_run_of": row.re_run_of,
        "state": standing.state,
        "attempt": standing.attempt,
        "cancel_requested": standing.cancel_requested,
        "progress": standing.progress.get("steps", []),
        "reason": standing.reason,
        "detail": standing.detail,
        "created_at": row.created_at,
        "begun_at": standing.begun_at,
        "finished_at": standing.finished_at,
    }
    return {name: value for name, value in shown.items() if value is not None}


def run_conditions(query: BenchmarkRunQuery) -> list[ColumnElement[bool]]:
    """What the runs of a list must meet."""
    wanted: list[ColumnElement[bool]] = []
    if query.suite_id:
        wanted.append(BenchmarkRunRow.suite_id.in_(query.suite_id))
    if query.state:
        wanted.append(nodes.stands(BenchmarkRunRow.id, states=query.state))
    if query.node_id:
        wanted.append(or_(*(nodes.stands(BenchmarkRunRow.id, node_id=one) for one in query.node_id)))
    return wanted


def latest_attempt(rows: Sequence[BenchmarkResultRow]) -> list[BenchmarkResultRow]:
    """Of the results of one run those of its last attempt: two attempts may be two nodes."""
    last = max((row.fencing_token for row in rows), default=0)
    return [row for row in rows if row.fencing_token == last]


def slowest(rows: Sequence[BenchmarkResultRow]) -> list[BenchmarkResultRow]:
    """Of the accelerators that measured a repeat at the same time the worst, where all of them are there."""
    beside: dict[tuple[str, int], list[BenchmarkResultRow]] = {}
    for row in rows:
        beside.setdefault((row.benchmark, row.repeat), []).append(row)
    return [
        (min if each[0].direction == "higher" else max)(each, key=lambda row: row.figure or 0.0)
        for each in beside.values()
        if len(each) >= each[0].conditions.get("concurrent_accelerators", 1)
    ]


def figures_of(rows: Sequence[BenchmarkResultRow]) -> list[dict[str, Any]]:
    """The figure of each benchmark, from the results of a run that count."""
    by_benchmark: dict[str, list[BenchmarkResultRow]] = {}
    for row in slowest(latest_attempt(rows)):
        by_benchmark.setdefault(row.benchmark, []).append(row)
    return [
        {
            "benchmark": name,
            "metric": repeats[0].metric,
            "direction": repeats[0].direction,
            **figure_of(repeats),
        }
        for name, repeats in by_benchmark.items()
    ]


def figure_of(repeats: Sequence[BenchmarkResultRow]) -> dict[str, Any]:
    """The figure of the repeats of a run."""
    figure = run_figure([row.figure for row in repeats if row.figure is not None])
    shown = figure._asdict()
    return shown if figure.relative_spread is None else {**shown, "relative_spread": figure.relative_spread}


def read(node: Subject, result: Result, content: bytes) -> dict[str, Any]:
    """What a record says, to be stored; refused if it is of another node, or contradicts itself."""
    if result.node_id != node.id:
        raise NotAsAsked("", FieldError("/node_id", "ANOTHER_NODE", "is not the node that sends the record"))
    if not fits_metric(result):
        kind = "readings" if result.benchmark.metric in READ_METRICS else "samples_ns"
        detail = f"the figure of this metric is computed from {kind}"
        raise NotAsAsked("", FieldError("/measurement", "SAMPLES_OF_ANOTHER_KIND", detail))
    samples = measured(result)
    copied = ("run_id", "attempt", "fencing_token", "repeat", "suite_id", "suite_version", "device")
    return {
        **{name: getattr(result, name) for name in (*copied, "status", "started_at", "finished_at")},
        "tenant_id": node.tenant_id,
        "id": result.result_id,
        "content_sha256": content_sha256(content),
        "content": content.decode(),
        "benchmark": result.benchmark.name,
        "accelerator_index": 0 if result.accelerator_index is MISSING else result.accelerator_index,
        "node_id": node.id,
        "work_sha256": digest(result.benchmark.work),
        "metric": result.benchmark.metric,
        "direction": result.benchmark.direction,
        "reason": None if result.failure is MISSING else result.failure.reason,
        "figure": samples and samples.figure,
        "summary": samples and samples.summary._asdict(),
        "conditions": conditions(result),
    }


def keep(
    session: Writer, node: Subject, result: Result, values: Mapping[str, Any], quota: nodes.Quota
) -> Receipt:
    """Store what was read of a result, once, and say under which lease it was measured.

    Whatever became of the lease, the result is kept; refused is what its run did not ask for, what is of no
    run that the node was granted, and what is more than it may hand in a day.
    """
    run = repository.run(session, node.tenant_id, result.run_id)
    if run is not None:
        _check_run(run, result)
    intake = nodes.open_intake(session, node)
    if repository.result(session, node.tenant_id, result.result_id) is None:
        _check_granted(session, node, result)
        nodes.take_result(session, intake, len(values["content"].encode()), quota)
    part = _hardware(session, node, result)
    found = {
        **values,
        "lease": nodes.lease_at_receipt(
            session,
            tenant_id=node.tenant_id,
            node_id=node.id,
            run_id=result.run_id,
            fencing_token=result.fencing_token,
            nonce=result.nonce,
        ),
        "hardware": part and part.name,
        "hardware_sha256": part and part.sha256,
        "received_at": leases.now(),
    }
    row = repository.keep_result(session, {n: value for n, value in found.items() if value is not None})
    if row.lease != "current":
        # Its run may have been validated long ago, or never be.
        validation.ask(session, node.tenant_id, row.run_id, because=row.id)
    if row.content_sha256 != values["content_sha256"]:
        raise ResultDiffers
    return Receipt.model_validate(
        {"result_id": row.id, "content_sha256": row.content_sha256, "lease": row.lease}
    )


def _check_granted(session: Writer, node: Subject, result: Result) -> None:
    if not nodes.has_held(session, tenant_id=node.tenant_id, node_id=node.id, run_id=result.run_id):
        raise RunNotGranted("", FieldError("/run_id", "UNKNOWN_REFERENCE", "the node was never granted it"))


def _check_run(run: BenchmarkRunRow, result: Result) -> None:
    suite = Suite.model_validate(run.suite)
    benchmark = suite.benchmark(result.benchmark.name)
    asked = {
        "suite_id": suite.id,
        "suite_version": suite.version,
        "device": suite.device,
        "seed": run.seed,
        "benchmark": benchmark,
        "repeat": min(result.repeat, benchmark.repeats) if benchmark else result.repeat,
    }
    errors = [
        FieldError(f"/{name}", "NOT_AS_ASKED", "is not that of the run")
        for name, value in asked.items()
        if getattr(result, name) != value
    ]
    if errors:
        raise NotAsAsked("", *errors)


def _hardware(session: Writer, node: Subject, result: Result) -> Hardware | None:
    inventory = nodes.inventory(session, node.id, result.inventory_sha256)
    return None if inventory is None else hardware(inventory, result)


def complete(session: Writer, node: Subject, lease_id: str, completion: Completion) -> Completed:
    """End a lease, once every result that its node names is stored; else nothing is written."""
    completed = nodes.complete(session, node, lease_id, completion)
    digests = {named.content_sha256 for named in completion.results}
    stored = repository.stored(session, node.tenant_id, digests)
    missing = [
        FieldError(f"/results/{place}", "NOT_STORED", "send the result first")
        for place, named in enumerate(completion.results)
        if named.result_id not in stored.get(named.content_sha256, ())
    ]
    if missing:
        raise ResultsMissing("", *missing[:ERROR_LIMIT])
    validation.ask(session, node.tenant_id, lease_id, because=str(completion.fencing_token))
    return completed


def missing_results(session: Session, node: Subject, digests: Sequence[str]) -> list[str]:
    """Of the digests of results that a node has had acknowledged, those that are not stored."""
    stored = repository.stored(session, node.tenant_id, digests) if digests else {}
    return [digest for digest in digests if digest not in stored]


def listed_results(
    session: Reader, tenant_id: str, query: ResultFilter, *, after: repository.After | None, limit: int
) -> list[dict[str, Any]]:
    """Results as callers see them in a list, the last received first."""
    conditions = [validations.is_of_verdict(query.verdict)] if query.verdict else []
    rows = repository.results(session, tenant_id, query.allowed(), *conditions, after=after, limit=limit)
    found = validations.of_results(session, tenant_id, [row.id for row in rows])
    return [_shown_result(row, found.get(row.id)) for row in rows]


def _shown_result(row: BenchmarkResultRow, validation: BenchmarkValidationRow | None) -> dict[str, Any]:
    members = {name: getattr(row, name) for name in BenchmarkResult.model_fields if name != "validation"}
    shown = {name: value for name, value in members.items() if value is not None}
    if validation is not None:
        names = ResultValidation.model_fields
        shown["validation"] = {name: getattr(validation, name) for name in names}
    return shown


def whole_result(session: Reader, tenant_id: str, result_id: str) -> tuple[dict[str, Any], str]:
    """A result, and its record as text."""
    row = repository.result(session, tenant_id, result_id)
    if row is None:
        raise ResultNotFound
    found = validations.of_results(session, tenant_id, [result_id])
    return _shown_result(row, found.get(result_id)), repository.content(session, tenant_id, result_id)


def compare(session: Reader, tenant_id: str, query: ComparisonQuery) -> dict[str, Any]:
    """The runs of one benchmark on equal hardware, each beside a baseline."""
    run_id = query.baseline_run_id or None
    node_id = query.node_id or None
    first = repository.first_counted(
        session, tenant_id, query.benchmark, run_id=run_id, node_id=None if run_id else node_id
    )
    if first is None:
        raise NothingToCompare
    # Of hardware that nobody knows one can only say that a node is like itself.
    is_known = first.hardware_sha256 is not None
    comparable = Comparable(
        tenant_id=tenant_id,
        benchmark=first.benchmark,
        work_sha256=first.work_sha256,
        metric=first.metric,
        hardware_sha256=first.hardware_sha256,
        node_id=node_id if is_known else first.node_id,
    )
    run_ids = repository.latest_runs(session, comparable, limit=query.runs)
    own = comparable._replace(node_id=first.node_id)
    (baseline,) = by_run(repository.compared(session, own, [first.run_id]))
    runs = by_run(repository.compared(session, comparable, run_ids))
    return {
        "benchmark": first.benchmark,
        "metric": first.metric,
        "direction": first.direction,
        "work_sha256": first.work_sha256,
        **({"hardware": first.hardware, "hardware_sha256": first.hardware_sha256} if is_known else {}),
        "baseline": _point(baseline, baseline),
        "runs": [_point(run, baseline) for run in runs],
    }


def by_run(rows: Iterable[BenchmarkResultRow]) -> list[list[BenchmarkResultRow]]:
    """The repeats of the last attempt of each run, in the order in which their first came."""
    runs: dict[str, list[BenchmarkResultRow]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    return [slowest(latest_attempt(run)) for run in runs.values()]


def standing_of(repeats: Sequence[BenchmarkResultRow]) -> Standing:
    """How the repeats of a run stand."""
    return Standing.of([_measured(row) for row in repeats])


def _measured(row: BenchmarkResultRow) -> Measured:
    clock = row.conditions.get("sm_clock_hz", row.conditions.get("cpu_clock_hz"))
    return Measured(row.counted_figure, Summary(**(row.summary or {})), clock)


def _point(repeats: Sequence[BenchmarkResultRow], baseline: Sequence[BenchmarkResultRow]) -> dict[str, Any]:
    first, standing, beside = repeats[0], standing_of(repeats), standing_of(baseline)
    figure, base = figure_of(repeats), figure_of(baseline)
    has_clocks = standing.cycles is not None and beside.cycles is not None
    shown = {
        "run_id": first.run_id,
        "node_id": first.node_id,
        "suite_version": first.suite_version,
        "received_at": first.received_at,
        **figure,
        "sample_minimum": standing.samples.minimum,
        "sample_median": standing.samples.median,
        "sample_q3": standing.samples.q3,
        "has_clocks": has_clocks,
        "verdict": verdict(beside, standing, is_time=first.metric not in READ_METRICS),
    }
    return {**shown, "relative_change": figure["value"] / base["value"] - 1} if base["value"] else shown
