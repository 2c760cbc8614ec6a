"""Rules of leases: request, claim, renewal, completion, cancellation and loss.

Every write of a holder carries its fencing token, and every write that takes a lease from its holder raises
it. Locks are taken in the order node, lease.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from pydantic import MISSING
from sqlalchemy import ColumnElement, exists
from sqlalchemy.orm import Session

from service.kit.database.engine import Writer
from service.kit.http.problems import Conflict, FieldError, Unprocessable
from service.kit.jobs import leases
from service.kit.jobs.leases import RUNNING, WAITING, LeaseLost, RowLease
from service.kit.jobs.notifier import notify_after_commit
from service.kit.security.principals import Principal
from service.nodes import repository
from service.nodes.errors import (
    InventoryUnknown,
    LeaseNotFound,
    NodeBusy,
    NodeNotActive,
    NodeNotFound,
    RunEnded,
    StaleLease,
)
from service.nodes.tables import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    DRAINING,
    FAILED,
    LOST,
    LeaseGrantRow,
    LeaseRow,
)
from service.protocol.leases import BenchmarkLease as Granted
from service.protocol.leases import (
    LeaseClaimRequest,
    LeaseCompletion,
    LeaseCompletionRequest,
    LeaseRenewal,
    LeaseRenewalRequest,
)
from service.protocol.results import LeaseStanding
from service.protocol.suites import BenchmarkSuite

LEASE_SECONDS = 90.0
RENEW_SECONDS = 30.0
GRACE_SECONDS = 30.0
"""Seconds between the end of a lease and its next grant, since the node's clock may be late."""
MOST_LOSSES = 3
"""Number of lost attempts after which a run is dead."""
MOST_ATTEMPTS = 50
"""Limit of attempts with any ending, so that a run that is repeatedly released also ends."""
RELEASED_SECONDS = 30.0
"""Seconds before a released run is granted again."""
STARTING_SECONDS = 60.0
"""Seconds for the start of a repeat's process, in addition to the timeout of the suite."""
OVERRUN_SECONDS = 300.0
"""Seconds for a node to end a run after its runtime. After that it cannot renew."""
LONGEST_WAIT = timedelta(days=7)
"""Longest wait of a run for its grant, from its request."""
_HELD_SECONDS = LEASE_SECONDS + GRACE_SECONDS
_BUSY_SECONDS = 30
_AT_ONCE = 100
_FINAL = frozenset({COMPLETED, FAILED, CANCELLED, DEAD})

RunState = Literal["waiting", "running", "completed", "failed", "cancelled", "dead"]


class RunStanding(NamedTuple):
    """State of a run."""

    run_id: str
    state: RunState
    attempt: int
    cancel_requested: bool
    progress: Mapping[str, Any]
    node_id: str | None
    reason: str | None
    detail: str | None
    begun_at: datetime | None
    finished_at: datetime | None


def request_run(
    session: Writer,
    *,
    run_id: str,
    tenant_id: str,
    device: str,
    target_node_id: str | None,
    suite: BenchmarkSuite,
    seed: int,
) -> None:
    """Requests a run on one node, or on any node of the tenant that measures ``device``."""
    if target_node_id is not None and not repository.is_known_node(
        session, tenant_id, target_node_id, device
    ):
        detail = f"there is no node with this id that measures {device}"
        raise Unprocessable("A member refers to nothing", FieldError("/node_id", "UNKNOWN_REFERENCE", detail))
    repeats = sum(benchmark.repeats for benchmark in suite.benchmarks)
    row = LeaseRow(
        id=run_id,
        tenant_id=tenant_id,
        state=WAITING,
        due_at=leases.get_database_time(),
        span_seconds=0.0,
        target_node_id=target_node_id,
        device=device,
        suite=suite.model_dump(mode="json"),
        seed=seed,
        runtime_seconds=suite.longest_seconds + repeats * STARTING_SECONDS,
        created_at=leases.get_database_time(),
    )
    session.add(row)
    session.flush()
    notify_after_commit(session)


def claim_lease(session: Writer, node: Principal, asked: LeaseClaimRequest) -> Granted | None:
    """Returns a granted lease, or None. Repeating the request returns the lease that it was granted."""
    row = repository.lock_node(session, node.tenant_id, node.id)
    if row is None:
        raise NodeNotFound
    expire_lapsed(session, LeaseRow.tenant_id == node.tenant_id)
    held = _find_running_lease(session, node)
    if held is not None:
        if held.claim_request_id != asked.request_id:
            raise NodeBusy(headers={"Retry-After": str(_BUSY_SECONDS)})
        renewed = leases.renew_lease(session, LeaseRow, held.lease, seconds=_HELD_SECONDS)
        return _to_lease(session, renewed, asked.suite_form)
    if row.state != ACTIVE:
        raise NodeNotActive(headers={"Retry-After": str(_BUSY_SECONDS)})
    if row.inventory_sha256 != asked.inventory_sha256:
        raise InventoryUnknown("", FieldError("/inventory_sha256", "UNKNOWN_REFERENCE", "send it first"))
    granted = leases.claim_row(
        session,
        LeaseRow,
        *repository.build_claimable_conditions(row),
        seconds=_HELD_SECONDS,
        node_id=node.id,
        nonce=secrets.token_hex(16),
        claim_request_id=asked.request_id,
        begun_at=leases.get_database_time(),
        progress={},
        reason=None,
        detail=None,
    )
    if granted is None:
        return None
    grant = LeaseGrantRow(
        tenant_id=granted.tenant_id,
        lease_id=granted.id,
        fencing_token=granted.fencing_token,
        node_id=node.id,
        attempt=granted.attempt,
        nonce=granted.nonce,
        granted_at=leases.get_database_time(),
    )
    session.add(grant)
    session.flush()
    return _to_lease(session, granted, asked.suite_form)


def _find_running_lease(session: Writer, node: Principal) -> LeaseRow | None:
    """Returns the lease that a node holds, unless it has lapsed."""
    held = repository.lock_running_lease(session, node.id)
    if held is None or held.due_at is None or held.due_at > repository.get_time(session):
        return held
    _mark_lost(session, held)  # another transaction held its lock when lapsed leases were expired
    return None


def _to_lease(session: Writer, row: LeaseRow, suite_form: int) -> Granted:
    """Returns a lease with the benchmarks that the node reads."""
    suite = BenchmarkSuite.model_validate(row.suite).narrow_to_form(suite_form)
    granted = {
        "id": row.id,
        "fencing_token": row.fencing_token,
        "nonce": row.nonce,
        "attempt": row.attempt,
        "lease_seconds": LEASE_SECONDS,
        "renew_seconds": RENEW_SECONDS,
        "runtime_seconds": row.runtime_seconds,
        "seed": row.seed,
        "suite": suite,
        "server_time": repository.get_time(session).isoformat(),
    }
    return Granted.model_validate(granted)


def renew_lease(
    session: Writer, node: Principal, lease_id: str, renewal: LeaseRenewalRequest
) -> LeaseRenewal:
    """Renews a lease, unless it has ended or has exceeded its runtime by too much."""
    held = RowLease(lease_id, renewal.fencing_token)
    values = _to_progress(renewal)
    try:
        row = leases.renew_lease(
            session, LeaseRow, held, *_build_owner_conditions(node), seconds=_HELD_SECONDS, **values
        )
    except LeaseLost:
        raise _build_stale_error(session, node, lease_id) from None
    over = _compute_overrun_seconds(session, row)
    if over > OVERRUN_SECONDS:
        raise StaleLease("The runtime has been exceeded, so the lease is not renewed")
    return LeaseRenewal(lease_seconds=LEASE_SECONDS, cancel=row.cancel_requested or over > 0)


def complete_lease(
    session: Writer,
    node: Principal,
    lease_id: str,
    completion: LeaseCompletionRequest,
    *,
    is_whole: Callable[[], bool],
) -> LeaseCompletion:
    """Ends a lease with the outcome of its holder.

    Repeating it under the same token returns the same answer. An attempt whose lease has lapsed completes its
    run as well, if the run is open and ``is_whole`` says that every result of the attempt has come.
    """
    held = RowLease(lease_id, completion.fencing_token)
    reason = None if completion.reason is MISSING else completion.reason
    detail = None if completion.detail is MISSING else completion.detail
    values = {**_to_progress(completion), "reason": reason, "detail": detail}
    try:
        row = leases.write_row(session, LeaseRow, held, *_build_owner_conditions(node), **values)
    except LeaseLost:
        return _complete_late(session, node, held, completion, values=values, is_whole=is_whole)
    state = _resolve_state(session, row, completion)
    if state == WAITING:
        leases.release_row(session, LeaseRow, held, delay=RELEASED_SECONDS, node_id=None)
        notify_after_commit(session)
    else:
        leases.finish_row(session, LeaseRow, held, state, finished_at=leases.get_database_time())
    repository.end_grant(session, held, completion.outcome, state)
    return LeaseCompletion.model_validate({"state": state})


def _resolve_state(session: Writer, row: LeaseRow, completion: LeaseCompletionRequest) -> str:
    match completion.outcome:
        case "completed":
            return COMPLETED
        case "failed":
            return FAILED
        case "cancelled":
            is_overrun = not row.cancel_requested and _compute_overrun_seconds(session, row) > 0
            return FAILED if is_overrun else CANCELLED
        case "released":
            if row.cancel_requested:
                return CANCELLED
            return DEAD if row.attempt >= MOST_ATTEMPTS else WAITING


def _complete_late(
    session: Writer,
    node: Principal,
    held: RowLease,
    completion: LeaseCompletionRequest,
    *,
    values: Mapping[str, Any],
    is_whole: Callable[[], bool],
) -> LeaseCompletion:
    """Returns the answer of an earlier completion, or completes an open run by an attempt that had lapsed.

    Whoever holds the run meanwhile loses it, so that one attempt alone counts.
    """
    holder = repository.get_node(session, node.tenant_id, node.id)
    row = repository.lock_lease(session, node.tenant_id, held.id)
    grant = repository.get_grant(session, held, node.tenant_id, node.id)
    if holder is None or row is None or grant is None:
        raise _build_stale_error(session, node, held.id)
    if grant.outcome == completion.outcome:
        return LeaseCompletion.model_validate({"state": grant.state_after})
    is_late = (grant.outcome, completion.outcome) == (LOST, COMPLETED) and holder.state in (ACTIVE, DRAINING)
    if not is_late or row.state in _FINAL or not is_whole():
        raise _build_stale_error(session, node, held.id)
    ended = {"node_id": node.id, "begun_at": grant.granted_at, **values}
    if row.state == RUNNING:
        _end_lease(session, row, "superseded", COMPLETED, **ended)
    else:
        repository.end_waiting_lease(session, row, COMPLETED, **ended)
    grant.outcome = grant.state_after = COMPLETED
    session.flush()
    return LeaseCompletion.model_validate({"state": COMPLETED})


def _compute_overrun_seconds(session: Writer, row: LeaseRow) -> float:
    """Returns the seconds by which an attempt has exceeded its runtime, negative before that."""
    begun_at = row.begun_at or repository.get_time(session)
    return (repository.get_time(session) - begun_at).total_seconds() - row.runtime_seconds


def _build_owner_conditions(node: Principal) -> tuple[ColumnElement[bool], ...]:
    return LeaseRow.tenant_id == node.tenant_id, LeaseRow.node_id == node.id


def _to_progress(said: LeaseRenewalRequest | LeaseCompletionRequest) -> dict[str, Any]:
    return {} if said.progress is MISSING else {"progress": said.progress.model_dump(mode="json")}


def _build_stale_error(session: Session, node: Principal, lease_id: str) -> Conflict | LeaseNotFound:
    if repository.was_granted(session, node.tenant_id, node.id, lease_id):
        return StaleLease("", FieldError("/fencing_token", "STALE", "the lease is not held under this token"))
    return LeaseNotFound()


def expire_lapsed(session: Writer, *conditions: ColumnElement[bool]) -> int:
    """Marks lapsed leases as lost: their runs wait for the next attempt, or are dead.

    Returns their number.
    """
    lapsed = repository.lock_free_leases(
        session, repository.build_lapsed_condition(), *conditions, limit=_AT_ONCE
    )
    for row in lapsed:
        _mark_lost(session, row)
    return len(lapsed)


def _mark_lost(session: Writer, row: LeaseRow) -> None:
    losses = row.losses + 1
    is_poison = row.lost_by is not None and row.lost_by != row.node_id
    counted = {"losses": losses, "lost_by": row.node_id}
    if row.cancel_requested:
        _end_lease(session, row, LOST, CANCELLED, **counted)
    elif is_poison:
        _end_lease(session, row, LOST, DEAD, reason="LOST_ON_TWO_NODES", **counted)
    elif losses >= MOST_LOSSES or row.attempt >= MOST_ATTEMPTS:
        _end_lease(session, row, LOST, DEAD, reason="ATTEMPTS_SPENT", **counted)
    else:
        _end_lease(session, row, LOST, WAITING, reason="LEASE_LOST", **counted)


def withdraw_lease(session: Writer, node_id: str) -> None:
    """Withdraws the lease of a node. The attempt does not count as lost."""
    row = repository.lock_running_lease(session, node_id)
    if row is not None:
        state = CANCELLED if row.cancel_requested else WAITING
        _end_lease(session, row, "withdrawn", state, reason="NODE_WITHDRAWN")


def _end_lease(session: Writer, row: LeaseRow, outcome: str, state: str, **values: Any) -> None:  # noqa: ANN401
    held = row.lease
    if state == WAITING:
        due = {"due_at": leases.get_database_time(), "span_seconds": 0.0, "node_id": None}
        notify_after_commit(session)
    else:
        due = {"due_at": None, "span_seconds": None, "finished_at": leases.get_database_time()}
    repository.close_lease(session, held, state=state, **due, **values)
    repository.end_grant(session, held, outcome, state)


def fail_targeted_runs(session: Writer, tenant_id: str, node_id: str) -> None:
    """Fails the runs that wait for a node that is revoked."""
    for row in repository.lock_targeted_leases(session, tenant_id, node_id):
        repository.end_waiting_lease(session, row, FAILED, reason="NODE_REVOKED")


def cancel_run(session: Writer, tenant_id: str, run_id: str) -> RunStanding:
    """Cancels a run, immediately if it waits. A running one ends when its node receives the request."""
    row = repository.lock_lease(session, tenant_id, run_id)
    if row is None:
        raise LeaseNotFound
    if row.state == WAITING:
        row = repository.end_waiting_lease(session, row, CANCELLED, cancel_requested=True)
    elif row.state == RUNNING:
        row.cancel_requested = True
        session.flush()
    elif row.state != CANCELLED:
        raise RunEnded
    return _to_standing(row)


def list_standings(session: Session, tenant_id: str, run_ids: Iterable[str]) -> dict[str, RunStanding]:
    """Returns the states of runs of a tenant, by id."""
    return {row.id: _to_standing(row) for row in repository.list_leases(session, tenant_id, run_ids)}


def build_standing_condition(
    run_id: ColumnElement[str] | Any,  # noqa: ANN401
    *,
    states: Sequence[RunState] = (),
    node_id: str | None = None,
) -> ColumnElement[bool]:
    """Returns a condition for lists of runs: state of the run with ``run_id`` in ``states``, and its node."""
    conditions = [LeaseRow.id == run_id]
    if states:
        conditions.append(LeaseRow.state.in_(states))
    if node_id is not None:
        conditions.append((LeaseRow.node_id == node_id) | (LeaseRow.target_node_id == node_id))
    return exists().where(*conditions)


def _to_standing(row: LeaseRow) -> RunStanding:
    return RunStanding(
        run_id=row.id,
        state=row.state,  # type: ignore[arg-type]  # the column holds nothing else
        attempt=row.attempt,
        cancel_requested=row.cancel_requested,
        progress=row.progress,
        node_id=row.node_id,
        reason=row.reason,
        detail=row.detail,
        begun_at=row.begun_at,
        finished_at=row.finished_at,
    )


def resolve_receipt_state(
    session: Writer, *, tenant_id: str, node_id: str, run_id: str, fencing_token: int, nonce: str
) -> LeaseStanding:
    """Returns the state of the lease of a measurement, which is locked until the transaction ends."""
    repository.lock_lease_shared(session, tenant_id, run_id)
    grant = repository.get_grant(session, RowLease(run_id, fencing_token), tenant_id, node_id)
    if grant is None or not secrets.compare_digest(grant.nonce, nonce):
        return "unknown"
    return "current" if grant.outcome is None else "late"


def was_granted_run(session: Session, *, tenant_id: str, node_id: str, run_id: str) -> bool:
    """Returns true if a node was ever granted a run, under any token."""
    return repository.was_granted(session, tenant_id, node_id, run_id)


def find_grant_time(
    session: Session, *, tenant_id: str, node_id: str, run_id: str, fencing_token: int
) -> datetime | None:
    """Returns the time at which a node was granted a run under a token, or None."""
    grant = repository.get_grant(session, RowLease(run_id, fencing_token), tenant_id, node_id)
    return None if grant is None else grant.granted_at


def is_known_node(session: Session, tenant_id: str, node_id: str, device: str) -> bool:
    """Returns true if a tenant has a node that is not revoked and measures ``device``."""
    return repository.is_known_node(session, tenant_id, node_id, device)


def expire_abandoned(session: Writer) -> dict[str, int]:
    """Expires lapsed leases and fails runs that have waited too long. Returns their numbers."""
    leases.repair_spans(session, LeaseRow)
    lost = expire_lapsed(session)
    since = leases.get_time_after(-LONGEST_WAIT.total_seconds())
    late = (LeaseRow.state == WAITING, LeaseRow.created_at <= since)
    waiting = repository.lock_free_leases(session, *late, limit=_AT_ONCE)
    for row in waiting:
        reason = "NOT_BEGUN" if row.begun_at is None else "NOT_FINISHED"
        repository.end_waiting_lease(session, row, FAILED, reason=reason)
    return {"lost": lost, "failed": len(waiting)}
