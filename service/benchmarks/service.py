"""Rules of benchmark runs and results."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any
from uuid import uuid4

from pydantic import MISSING
from sqlalchemy import ColumnElement, or_
from sqlalchemy.orm import Session

from service.audit.service import WriteOutcome
from service.benchmarks import asking, repository
from service.benchmarks.conditions import MeasuredHardware, build_conditions, resolve_hardware
from service.benchmarks.errors import (
    NotAsAsked,
    NothingToCompare,
    ResultDiffers,
    ResultNotFound,
    ResultsMissing,
    RunNotFound,
    RunNotGranted,
)
from service.benchmarks.expectations import LastFigure, MiddleFigure, list_last_figures
from service.benchmarks.figures import READ_METRICS, compare_standings, compute_measured, is_metric_matching
from service.benchmarks.regressions import find_regressions
from service.benchmarks.repeats import (
    compute_figure,
    compute_figures,
    compute_standing,
    group_by_run,
    select_latest_attempt,
)
from service.benchmarks.repository import ComparisonKey
from service.benchmarks.schemas import (
    BenchmarkResult,
    BenchmarkResultValidation,
    BenchmarkRunQuery,
    BenchmarkRunRequest,
    ComparisonQuery,
    ResultFilter,
)
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation import jobs as validation
from service.benchmarks.validation import repository as validations
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.benchmarks.verdicts import ResultVerdict, select_worst
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import ERROR_LIMIT, FieldError, Unprocessable
from service.kit.jobs import leases
from service.kit.security.principals import Principal
from service.nodes import service as nodes
from service.protocol.canonical import compute_digest
from service.protocol.leases import LeaseCompletion, LeaseCompletionRequest
from service.protocol.results import BenchmarkResultReceipt, BenchmarkResultReport, content_sha256
from service.protocol.suites import Benchmark, BenchmarkSuite

__all__ = [
    "LastFigure",
    "MiddleFigure",
    "count_recent_results",
    "find_regressions",
    "list_last_figures",
]


def create_run(
    session: Writer, tenant_id: str, body: BenchmarkRunRequest, suites: Mapping[str, BenchmarkSuite]
) -> WriteOutcome:
    """Stores a new run, which waits for its node."""
    suite = suites.get(body.suite_id)
    if suite is None:
        field = FieldError("/suite_id", "UNKNOWN_REFERENCE", "there is no suite of this id")
        raise Unprocessable("A member refers to nothing", field)
    row = asking.store_run(
        session,
        tenant_id,
        suite,
        node_id=None if body.node_id is MISSING else body.node_id,
        note=None if body.note is MISSING else body.note,
    )
    shown = run_to_response(session, row)
    location = {"Location": f"/v1/benchmark-runs/{row.id}"}
    resource = f"benchmark-runs/{row.id}"
    return WriteOutcome(resource=resource, status=201, body=shown, headers=location, after=shown)


def cancel_run(session: Writer, tenant_id: str, run_id: str) -> WriteOutcome:
    """Cancels a run: at once while it waits, or when its node hears of it."""
    row = _get_run_row(session, tenant_id, run_id)
    before = run_to_response(session, row)
    nodes.cancel_run(session, tenant_id, run_id)
    after = run_to_response(session, row)
    return WriteOutcome(resource=f"benchmark-runs/{run_id}", body=after, before=before, after=after)


def _get_run_row(session: Session, tenant_id: str, run_id: str) -> BenchmarkRunRow:
    row = repository.get_run(session, tenant_id, run_id)
    if row is None:
        raise RunNotFound
    return row


def runs_to_response(
    session: Session, tenant_id: str, rows: Sequence[BenchmarkRunRow]
) -> list[dict[str, Any]]:
    """Returns runs as lists show them."""
    standings = nodes.list_standings(session, tenant_id, [row.id for row in rows])
    return [_run_to_response(row, standings[row.id]) for row in rows]


def list_newest_runs(
    session: Reader, tenant_id: str, query: BenchmarkRunQuery, *, limit: int
) -> list[dict[str, Any]]:
    """Returns the newest runs that a query allows, as lists show them."""
    rows = repository.list_runs(session, tenant_id, conditions=build_run_conditions(query), limit=limit)
    return runs_to_response(session, tenant_id, rows)


def get_runs(session: Reader, tenant_id: str, run_ids: Collection[str]) -> list[dict[str, Any]]:
    """Returns runs of a tenant by id as lists show them, newest first."""
    wanted = [BenchmarkRunRow.id.in_(run_ids)]
    rows = repository.list_runs(session, tenant_id, conditions=wanted, limit=len(run_ids)) if run_ids else []
    return runs_to_response(session, tenant_id, rows)


def count_recent_results(session: Reader, tenant_id: str, *, days: int) -> dict[str, Counter[str]]:
    """Returns the number of results that each node has reported in the last days, by verdict.

    Results without a verdict, which measured nothing or wait for their validation, are counted under ``""``.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for node_id, verdict, count in validations.count_recent_results(session, tenant_id, days=days):
        counts[node_id][verdict or ""] += count
    return counts


def run_to_response(session: Session, row: BenchmarkRunRow) -> dict[str, Any]:
    """Returns a run as the API shows it, without its figures."""
    return runs_to_response(session, row.tenant_id, [row])[0]


def get_run(session: Reader, tenant_id: str, run_id: str) -> dict[str, Any]:
    """Returns a run with its figures."""
    run = _get_run_row(session, tenant_id, run_id)
    rows = select_latest_attempt(repository.list_counted_results(session, tenant_id, run_id))
    found = validations.get_validations(session, tenant_id, [row.id for row in rows])
    return {
        **run_to_response(session, run),
        "figures": [_add_verdict(one, rows, found) for one in compute_figures(rows)],
    }


def _add_verdict(
    figure: dict[str, Any], rows: Sequence[BenchmarkResultRow], found: Mapping[str, BenchmarkValidationRow]
) -> dict[str, Any]:
    repeats = [row.id for row in rows if row.benchmark == figure["benchmark"]]
    if not found.keys() >= set(repeats):
        return figure
    return {
        **figure,
        "result_verdict": select_worst(ResultVerdict(found[result_id].verdict) for result_id in repeats),
    }


def request_validation(session: Writer, tenant_id: str, run_id: str) -> WriteOutcome:
    """Enqueues another validation of a run, with the current peers and catalog."""
    shown = run_to_response(session, _get_run_row(session, tenant_id, run_id))
    validation.enqueue_validation(session, tenant_id, run_id, because=uuid4().hex, again=True)
    return WriteOutcome(resource=f"benchmark-runs/{run_id}", status=202, body=shown)


def _run_to_response(row: BenchmarkRunRow, standing: nodes.RunStanding) -> dict[str, Any]:
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


def build_run_conditions(query: BenchmarkRunQuery) -> list[ColumnElement[bool]]:
    """Builds the conditions of the runs of a list."""
    wanted: list[ColumnElement[bool]] = []
    if query.suite_id:
        wanted.append(BenchmarkRunRow.suite_id.in_(query.suite_id))
    if query.state:
        wanted.append(nodes.build_standing_condition(BenchmarkRunRow.id, states=query.state))
    if query.node_id:
        wanted.append(
            or_(*(nodes.build_standing_condition(BenchmarkRunRow.id, node_id=one) for one in query.node_id))
        )
    return wanted


def parse_result(node: Principal, result: BenchmarkResultReport, content: bytes) -> dict[str, Any]:
    """Returns the columns of a record; refuses one of another node, or one that contradicts itself."""
    if result.node_id != node.id:
        raise NotAsAsked("", FieldError("/node_id", "ANOTHER_NODE", "is not the node that sent the record"))
    if not is_metric_matching(result):
        kind = "readings" if result.benchmark.metric in READ_METRICS else "samples_ns"
        detail = f"the figure of this metric is computed from {kind}"
        raise NotAsAsked("", FieldError("/measurement", "SAMPLES_OF_ANOTHER_KIND", detail))
    samples = compute_measured(result)
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
        "work_sha256": compute_digest(result.benchmark.work),
        "metric": result.benchmark.metric,
        "direction": result.benchmark.direction,
        "reason": None if result.failure is MISSING else result.failure.reason,
        "figure": samples and samples.figure,
        "summary": samples and asdict(samples.summary),
        "conditions": build_conditions(result),
    }


def keep(
    session: Writer,
    node: Principal,
    result: BenchmarkResultReport,
    values: Mapping[str, Any],
    quota: nodes.IntakeQuota,
) -> BenchmarkResultReceipt:
    """Stores a parsed result once, and returns its receipt with the state of its lease.

    The result is stored whatever became of the lease. Refused is a result that differs from the request of
    its run, of a run that the node was not granted, or beyond the daily quota of the node.
    """
    run = repository.get_run(session, node.tenant_id, result.run_id)
    if run is not None:
        _check_run(run, result)
    intake = nodes.open_intake(session, node)
    if repository.get_result(session, node.tenant_id, result.result_id) is None:
        _check_granted(session, node, result)
        nodes.count_result(session, intake, len(values["content"].encode()), quota)
    part = _resolve_hardware(session, node, result)
    found = {
        **values,
        "lease": nodes.resolve_receipt_state(
            session,
            tenant_id=node.tenant_id,
            node_id=node.id,
            run_id=result.run_id,
            fencing_token=result.fencing_token,
            nonce=result.nonce,
        ),
        "hardware": part and part.name,
        "hardware_sha256": part and part.sha256,
        "received_at": leases.get_database_time(),
    }
    row = repository.insert_result(session, {n: value for n, value in found.items() if value is not None})
    if row.lease == "current":
        repository.set_aside_attempts(session, node.tenant_id, row.run_id, row.fencing_token)
    else:
        # The run may have been validated long ago, or may never be.
        validation.enqueue_validation(session, node.tenant_id, row.run_id, because=row.id)
    if row.content_sha256 != values["content_sha256"]:
        raise ResultDiffers
    return BenchmarkResultReceipt.model_validate(
        {"result_id": row.id, "content_sha256": row.content_sha256, "lease": row.lease}
    )


def _check_granted(session: Writer, node: Principal, result: BenchmarkResultReport) -> None:
    if not nodes.was_granted_run(session, tenant_id=node.tenant_id, node_id=node.id, run_id=result.run_id):
        raise RunNotGranted(
            "", FieldError("/run_id", "UNKNOWN_REFERENCE", "the node was not granted this run")
        )


def _check_run(run: BenchmarkRunRow, result: BenchmarkResultReport) -> None:
    suite = BenchmarkSuite.model_validate(run.suite)
    benchmark = suite.find_benchmark(result.benchmark.name)
    asked = {
        "suite_id": suite.id,
        "suite_version": suite.version,
        "device": suite.device,
        "seed": run.seed,
        "benchmark": benchmark and _find_asked_size(benchmark, result.benchmark),
        "repeat": min(result.repeat, benchmark.repeats) if benchmark else result.repeat,
    }
    errors = [
        FieldError(f"/{name}", "NOT_AS_ASKED", "differs from the value of the run")
        for name, value in asked.items()
        if getattr(result, name) != value
    ]
    if errors:
        raise NotAsAsked("", *errors)


def _find_asked_size(benchmark: Benchmark, measured: Benchmark) -> Benchmark:
    """Returns the benchmark of a run, or that smaller size of it which a node has measured."""
    return measured if measured in benchmark.list_sizes() else benchmark


def _resolve_hardware(
    session: Writer, node: Principal, result: BenchmarkResultReport
) -> MeasuredHardware | None:
    inventory = nodes.get_inventory(session, node.id, result.inventory_sha256)
    return None if inventory is None else resolve_hardware(inventory, result)


def complete_lease(
    session: Writer, node: Principal, lease_id: str, completion: LeaseCompletionRequest
) -> LeaseCompletion:
    """Ends a lease if every result that its node names is stored; otherwise writes nothing.

    Once that ends the run, the results of this attempt alone count.
    """
    token = completion.fencing_token
    is_whole = partial(_is_whole, session, node.tenant_id, lease_id, token)
    completed = nodes.complete_lease(session, node, lease_id, completion, is_whole=is_whole)
    digests = {named.content_sha256 for named in completion.results}
    stored = repository.list_stored_ids(session, node.tenant_id, digests)
    missing = [
        FieldError(f"/results/{place}", "NOT_STORED", "the result must be sent first")
        for place, named in enumerate(completion.results)
        if named.result_id not in stored.get(named.content_sha256, ())
    ]
    if missing:
        raise ResultsMissing("", *missing[:ERROR_LIMIT])
    if completed.state != leases.WAITING:
        repository.count_attempt(session, node.tenant_id, lease_id, token)
    # Results that came late were validated as such.
    validation.enqueue_validation(session, node.tenant_id, lease_id, because=str(token), again=True)
    return completed


def _is_whole(session: Writer, tenant_id: str, run_id: str, fencing_token: int) -> bool:
    """Returns true if an attempt has handed in a result of every benchmark of its run."""
    run = repository.get_run(session, tenant_id, run_id)
    if run is None:
        return False
    asked = {benchmark.name for benchmark in BenchmarkSuite.model_validate(run.suite).benchmarks}
    return asked <= repository.list_reported_benchmarks(session, tenant_id, run_id, fencing_token)


def list_missing_results(session: Session, node: Principal, digests: Sequence[str]) -> list[str]:
    """Returns those digests of results that a node has had acknowledged that are not stored."""
    stored = repository.list_stored_ids(session, node.tenant_id, digests) if digests else {}
    return [digest for digest in digests if digest not in stored]


def list_results(
    session: Reader, tenant_id: str, query: ResultFilter, *, after: repository.PageCursor | None, limit: int
) -> list[dict[str, Any]]:
    """Returns results as lists show them, last received first."""
    conditions = [validations.build_verdict_condition(query.verdict)] if query.verdict else []
    rows = repository.list_results(
        session, tenant_id, query.get_allowed_values(), *conditions, after=after, limit=limit
    )
    found = validations.get_validations(session, tenant_id, [row.id for row in rows])
    return [_result_to_response(row, found.get(row.id)) for row in rows]


def _result_to_response(row: BenchmarkResultRow, validation: BenchmarkValidationRow | None) -> dict[str, Any]:
    members = {name: getattr(row, name) for name in BenchmarkResult.model_fields if name != "validation"}
    shown = {name: value for name, value in members.items() if value is not None}
    if validation is not None:
        names = BenchmarkResultValidation.model_fields
        shown["validation"] = {name: getattr(validation, name) for name in names}
    return shown


def get_result(session: Reader, tenant_id: str, result_id: str) -> tuple[dict[str, Any], str]:
    """Returns a result, and its record as text."""
    row = repository.get_result(session, tenant_id, result_id)
    if row is None:
        raise ResultNotFound
    found = validations.get_validations(session, tenant_id, [result_id])
    return _result_to_response(row, found.get(result_id)), repository.get_content(
        session, tenant_id, result_id
    )


def compare_runs(session: Reader, tenant_id: str, query: ComparisonQuery) -> dict[str, Any]:
    """Compares the runs of one benchmark on equal hardware, each with a baseline."""
    run_id = query.baseline_run_id or None
    node_id = query.node_id or None
    first = repository.find_first_counted(
        session, tenant_id, query.benchmark, run_id=run_id, node_id=None if run_id else node_id
    )
    if first is None:
        raise NothingToCompare
    # A node with unknown hardware is only comparable with itself.
    is_known = first.hardware_sha256 is not None
    comparable = ComparisonKey(
        tenant_id=tenant_id,
        benchmark=first.benchmark,
        work_sha256=first.work_sha256,
        metric=first.metric,
        hardware_sha256=first.hardware_sha256,
        node_id=node_id if is_known else first.node_id,
    )
    run_ids = repository.list_latest_runs(session, comparable, limit=query.runs)
    own = comparable._replace(node_id=first.node_id)
    of_first = group_by_run(repository.list_compared_results(session, own, [first.run_id]))
    runs = group_by_run(repository.list_compared_results(session, comparable, run_ids))
    baselines = of_first or ([] if run_id else runs)
    if not baselines:
        raise NothingToCompare
    baseline = baselines[0]
    return {
        "benchmark": first.benchmark,
        "metric": first.metric,
        "direction": first.direction,
        "work_sha256": first.work_sha256,
        **({"hardware": first.hardware, "hardware_sha256": first.hardware_sha256} if is_known else {}),
        "baseline": _build_compared_run(baseline, baseline),
        "runs": [_build_compared_run(run, baseline) for run in runs],
    }


def _build_compared_run(
    repeats: Sequence[BenchmarkResultRow], baseline: Sequence[BenchmarkResultRow]
) -> dict[str, Any]:
    first, standing, beside = repeats[0], compute_standing(repeats), compute_standing(baseline)
    figure, base = compute_figure(repeats), compute_figure(baseline)
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
        "verdict": compare_standings(beside, standing, is_time=first.metric not in READ_METRICS),
    }
    return {**shown, "relative_change": figure["value"] / base["value"] - 1} if base["value"] else shown
