"""The rules of leases: asked for, claimed, renewed, completed, cancelled, lost.

Every write of a holder carries its fencing token, and every write that takes a lease from its holder raises
it. Locks are taken in the order node, lease.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from pydantic import MISSING
from sqlalchemy import ColumnElement, exists
from sqlalchemy.orm import Session

from service.kit.database.engine import Writer
from service.kit.http.problems import Conflict, FieldError, Unprocessable
from service.kit.jobs import leases
from service.kit.jobs.bell import ring_after_commit
from service.kit.jobs.leases import RUNNING, WAITING, Lease, LeaseLost
from service.kit.security.subjects import Subject
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
    FAILED,
    LeaseGrantRow,
    LeaseRow,
)
from service.protocol.leases import Claim, Completed, Completion, Renewal, Renewed
from service.protocol.leases import Lease as Granted
from service.protocol.suites import Suite

LEASE_SECONDS = 90.0
RENEW_SECONDS = 30.0
GRACE_SECONDS = 30.0
"""After a lease has ended, before it is granted anew: the node's clock may be late."""
MOST_LOSSES = 3
"""Attempts that may be lost before a run is dead."""
MOST_ATTEMPTS = 50
"""Attempts of any ending, so that a run that is given back again and again ends too."""
RELEASED_SECONDS = 30.0
"""Before a run that was given back is granted again."""
STARTING_SECONDS = 60.0
"""Of every repeat, for its process to start, beside the timeout that the suite gives it."""
OVERRUN_SECONDS = 300.0
"""For a node to end a run whose runtime is over; later it cannot renew."""
LONGEST_WAIT = timedelta(days=7)
"""For a run to be granted, from when it was asked for."""
_HELD_SECONDS = LEASE_SECONDS + GRACE_SECONDS
_BUSY_SECONDS = 30
_AT_ONCE = 100
_FINAL = frozenset({COMPLETED, FAILED, CANCELLED, DEAD})

State = Literal["waiting", "running", "completed", "failed", "cancelled", "dead"]
AtReceipt = Literal["current", "late", "unknown"]


class Standing(NamedTuple):
    """How a run stands."""

    run_id: str
    state: State
    attempt: int
    cancel_requested: bool
    progress: Mapping[str, Any]
    node_id: str | None
    reason: str | None
    detail: str | None
    begun_at: datetime | None
    finished_at: datetime | None


def ask(
    session: Writer,
    *,
    run_id: str,
    tenant_id: str,
    device: str,
    target_node_id: str | None,
    suite: Suite,
    seed: int,
) -> None:
    """Ask for a run: on one node, or on any of the tenant that measures ``device``."""
    if target_node_id is not None and not repository.node_is_known(
        session, tenant_id, target_node_id, device
    ):
        detail = f"there is no node of this id that measures {device}"
        raise Unprocessable("A member refers to nothing", FieldError("/node_id", "UNKNOWN_REFERENCE", detail))
    repeats = sum(benchmark.repeats for benchmark in suite.benchmarks)
    row = LeaseRow(
        id=run_id,
        tenant_id=tenant_id,
        state=WAITING,
        due_at=leases.now(),
        span_seconds=0.0,
        target_node_id=target_node_id,
        device=device,
        suite=suite.model_dump(mode="json"),
        seed=seed,
        runtime_seconds=suite.longest_seconds + repeats * STARTING_SECONDS,
        created_at=leases.now(),
    )
    session.add(row)
    session.flush()
    ring_after_commit(session)


def claim(session: Writer, node: Subject, asked: Claim) -> Granted | None:
    """Something to run, or None. Asked again under the same id, it is the lease that is held already."""
    row = repository.locked_node(session, node.tenant_id, node.id)
    if row is None:
        raise NodeNotFound
    settle_lapsed(session, LeaseRow.tenant_id == node.tenant_id)
    held = _held(session, node)
    if held is not None:
        if held.claim_request_id != asked.request_id:
            raise NodeBusy(headers={"Retry-After": str(_BUSY_SECONDS)})
        return _granted(session, leases.renew(session, LeaseRow, held.lease, seconds=_HELD_SECONDS))
    if row.state != ACTIVE:
        raise NodeNotActive(headers={"Retry-After": str(_BUSY_SECONDS)})
    if row.inventory_sha256 != asked.inventory_sha256:
        raise InventoryUnknown("", FieldError("/inventory_sha256", "UNKNOWN_REFERENCE", "send it first"))
    granted = leases.claim(
        session,
        LeaseRow,
        *repository.claimable(row),
        seconds=_HELD_SECONDS,
        node_id=node.id,
        nonce=secrets.token_hex(16),
        claim_request_id=asked.request_id,
        begun_at=leases.now(),
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
        granted_at=leases.now(),
    )
    session.add(grant)
    session.flush()
    return _granted(session, granted)


def _held(session: Writer, node: Subject) -> LeaseRow | None:
    """The lease that a node holds, unless it has lapsed."""
    held = repository.locked_running_lease(session, node.id)
    if held is None or held.due_at is None or held.due_at > repository.time(session):
        return held
    _lose(session, held)  # another transaction had it locked when those that lapsed were settled
    return None


def _granted(session: Writer, row: LeaseRow) -> Granted:
    granted = {
        "id": row.id,
        "fencing_token": row.fencing_token,
        "nonce": row.nonce,
        "attempt": row.attempt,
        "lease_seconds": LEASE_SECONDS,
        "renew_seconds": RENEW_SECONDS,
        "runtime_seconds": row.runtime_seconds,
        "seed": row.seed,
        "suite": row.suite,
        "server_time": repository.time(session).isoformat(),
    }
    return Granted.model_validate(granted)


def renew(session: Writer, node: Subject, lease_id: str, renewal: Renewal) -> Renewed:
    """Hold on to a lease, unless it has ended or its node has overrun it by far."""
    held = Lease(lease_id, renewal.fencing_token)
    values = _progress(renewal)
    try:
        row = leases.renew(session, LeaseRow, held, *_own(node), seconds=_HELD_SECONDS, **values)
    except LeaseLost:
        raise _not_held(session, node, lease_id) from None
    over = _overrun_seconds(session, row)
    if over > OVERRUN_SECONDS:
        raise StaleLease("The runtime is over: the lease is not renewed")
    return Renewed(lease_seconds=LEASE_SECONDS, cancel=row.cancel_requested or over > 0)


def complete(session: Writer, node: Subject, lease_id: str, completion: Completion) -> Completed:
    """End a lease as its holder says. Said again under the same token, the answer is the same."""
    held = Lease(lease_id, completion.fencing_token)
    reason = None if completion.reason is MISSING else completion.reason
    detail = None if completion.detail is MISSING else completion.detail
    values = {**_progress(completion), "reason": reason, "detail": detail}
    try:
        row = leases.write(session, LeaseRow, held, *_own(node), **values)
    except LeaseLost:
        return _completed_before(session, node, held, completion)
    state = _state_after(session, row, completion)
    if state == WAITING:
        leases.release(session, LeaseRow, held, delay=RELEASED_SECONDS, node_id=None)
        ring_after_commit(session)
    else:
        leases.finish(session, LeaseRow, held, state, finished_at=leases.now())
    repository.end_grant(session, held, completion.outcome, state)
    return Completed.model_validate({"state": state})


def _state_after(session: Writer, row: LeaseRow, completion: Completion) -> str:
    match completion.outcome:
        case "completed":
            return COMPLETED
        case "failed":
            return FAILED
        case "cancelled":
            is_overrun = not row.cancel_requested and _overrun_seconds(session, row) > 0
            return FAILED if is_overrun else CANCELLED
        case "released":
            if row.cancel_requested:
                return CANCELLED
            return DEAD if row.attempt >= MOST_ATTEMPTS else WAITING


def _completed_before(session: Writer, node: Subject, held: Lease, completion: Completion) -> Completed:
    grant = repository.grant(session, held, node.tenant_id, node.id)
    if grant is None or grant.outcome != completion.outcome:
        raise _not_held(session, node, held.id)
    return Completed.model_validate({"state": grant.state_after})


def _overrun_seconds(session: Writer, row: LeaseRow) -> float:
    """By how long an attempt has outlasted its runtime; below 0 before that."""
    begun_at = row.begun_at or repository.time(session)
    return (repository.time(session) - begun_at).total_seconds() - row.runtime_seconds


def _own(node: Subject) -> tuple[ColumnElement[bool], ...]:
    return LeaseRow.tenant_id == node.tenant_id, LeaseRow.node_id == node.id


def _progress(said: Renewal | Completion) -> dict[str, Any]:
    return {} if said.progress is MISSING else {"progress": said.progress.model_dump(mode="json")}


def _not_held(session: Session, node: Subject, lease_id: str) -> Conflict | LeaseNotFound:
    if repository.was_granted(session, node.tenant_id, node.id, lease_id):
        return StaleLease("", FieldError("/fencing_token", "STALE", "the lease is not held under it"))
    return LeaseNotFound()


def settle_lapsed(session: Writer, *conditions: ColumnElement[bool]) -> int:
    """Count leases that ended unsaid as lost: their runs wait for the next attempt, or are dead."""
    lapsed = repository.free_leases(session, repository.lapsed(), *conditions, limit=_AT_ONCE)
    for row in lapsed:
        _lose(session, row)
    return len(lapsed)


def _lose(session: Writer, row: LeaseRow) -> None:
    losses = row.losses + 1
    is_poison = row.lost_by is not None and row.lost_by != row.node_id
    counted = {"losses": losses, "lost_by": row.node_id}
    if row.cancel_requested:
        _take(session, row, "lost", CANCELLED, **counted)
    elif is_poison:
        _take(session, row, "lost", DEAD, reason="LOST_ON_TWO_NODES", **counted)
    elif losses >= MOST_LOSSES or row.attempt >= MOST_ATTEMPTS:
        _take(session, row, "lost", DEAD, reason="ATTEMPTS_SPENT", **counted)
    else:
        _take(session, row, "lost", WAITING, reason="LEASE_LOST", **counted)


def withdraw(session: Writer, node_id: str) -> None:
    """Take the lease that a node holds from it; the attempt is not counted as lost."""
    row = repository.locked_running_lease(session, node_id)
    if row is not None:
        state = CANCELLED if row.cancel_requested else WAITING
        _take(session, row, "withdrawn", state, reason="NODE_WITHDRAWN")


def _take(session: Writer, row: LeaseRow, outcome: str, state: str, **values: Any) -> None:  # noqa: ANN401
    held = row.lease
    if state == WAITING:
        due = {"due_at": leases.now(), "span_seconds": 0.0, "node_id": None}
        ring_after_commit(session)
    else:
        due = {"due_at": None, "span_seconds": None, "finished_at": leases.now()}
    repository.close(session, held, state=state, **due, **values)
    repository.end_grant(session, held, outcome, state)


def abandon_targeted(session: Writer, tenant_id: str, node_id: str) -> None:
    """Fail the runs that wait for one node, which will never come."""
    for row in repository.locked_targeted(session, tenant_id, node_id):
        repository.end_waiting(session, row, FAILED, reason="NODE_REVOKED")


def cancel(session: Writer, tenant_id: str, run_id: str) -> Standing:
    """Cancel a run: at once while it waits; one that is running ends when its node hears of it."""
    row = repository.locked_lease(session, tenant_id, run_id)
    if row is None:
        raise LeaseNotFound
    if row.state == WAITING:
        row = repository.end_waiting(session, row, CANCELLED, cancel_requested=True)
    elif row.state == RUNNING:
        row.cancel_requested = True
        session.flush()
    elif row.state != CANCELLED:
        raise RunEnded
    return _standing(row)


def standing(session: Session, tenant_id: str, run_ids: Iterable[str]) -> dict[str, Standing]:
    """How runs of a tenant stand, by id."""
    return {row.id: _standing(row) for row in repository.leases_of(session, tenant_id, run_ids)}


def stands(
    run_id: ColumnElement[str] | Any,  # noqa: ANN401
    *,
    states: Sequence[State] = (),
    node_id: str | None = None,
) -> ColumnElement[bool]:
    """For a listing of runs: whether the one of ``run_id`` is in one of ``states``, and on a node."""
    conditions = [LeaseRow.id == run_id]
    if states:
        conditions.append(LeaseRow.state.in_(states))
    if node_id is not None:
        conditions.append((LeaseRow.node_id == node_id) | (LeaseRow.target_node_id == node_id))
    return exists().where(*conditions)


def _standing(row: LeaseRow) -> Standing:
    return Standing(
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


def lease_at_receipt(
    session: Writer, *, tenant_id: str, node_id: str, run_id: str, fencing_token: int, nonce: str
) -> AtReceipt:
    """What the lease under which something was measured is now, and stays until the transaction ends."""
    repository.hold_lease(session, tenant_id, run_id)
    grant = repository.grant(session, Lease(run_id, fencing_token), tenant_id, node_id)
    if grant is None or not secrets.compare_digest(grant.nonce, nonce):
        return "unknown"
    return "current" if grant.outcome is None else "late"


def has_held(session: Session, *, tenant_id: str, node_id: str, run_id: str) -> bool:
    """Whether a node was ever granted a run, under whichever token."""
    return repository.was_granted(session, tenant_id, node_id, run_id)


def granted_at(
    session: Session, *, tenant_id: str, node_id: str, run_id: str, fencing_token: int
) -> datetime | None:
    """When a node was granted a run under a token; None if it never was."""
    grant = repository.grant(session, Lease(run_id, fencing_token), tenant_id, node_id)
    return None if grant is None else grant.granted_at


def is_known(session: Session, tenant_id: str, node_id: str, device: str) -> bool:
    """Whether a tenant has a node, not revoked, that measures ``device``: it can be asked for a run."""
    return repository.node_is_known(session, tenant_id, node_id, device)


def settle_abandoned(session: Writer) -> dict[str, int]:
    """End what nobody claims: count lapsed leases as lost, and fail runs that have waited too long."""
    leases.mend(session, LeaseRow)
    lost = settle_lapsed(session)
    since = leases.after(-LONGEST_WAIT.total_seconds())
    late = (LeaseRow.state == WAITING, LeaseRow.created_at <= since)
    waiting = repository.free_leases(session, *late, limit=_AT_ONCE)
    for row in waiting:
        reason = "NOT_BEGUN" if row.begun_at is None else "NOT_FINISHED"
        repository.end_waiting(session, row, FAILED, reason=reason)
    return {"lost": lost, "failed": len(waiting)}
