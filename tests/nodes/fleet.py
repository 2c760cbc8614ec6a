"""Nodes without a worker: rows of them, and what they ask of their leases."""

from uuid import uuid4

from sqlalchemy import select

from service.kit.security.principals import NODE_SCOPES, Principal, PrincipalKind
from service.nodes import leases
from service.nodes.service import request_run
from service.nodes.tables import LeaseGrantRow, LeaseRow, NodeRow
from service.protocol.leases import LeaseClaimRequest, LeaseCompletionRequest, LeaseRenewalRequest
from service.protocol.suites import BenchmarkSuite
from tests.clocks import START

INVENTORY = "c" * 64
SUITE = BenchmarkSuite.model_validate(
    {
        "id": "cpu-tiny",
        "version": 1,
        "title": "One small product",
        "device": "cpu",
        "benchmarks": [
            {
                "name": "gemm.fp64",
                "work": {"kind": "gemm", "dtype": "fp64", "m": 64, "n": 64, "k": 64},
                "metric": "flops_per_second",
                "direction": "higher",
                "formula": "2 m n k",
                "repeats": 2,
                "timeout_seconds": 100.0,
            }
        ],
    }
)
RUNTIME_SECONDS = 2 * (100.0 + leases.STARTING_SECONDS)


def subject(node_id, tenant="default"):
    return Principal(PrincipalKind.NODE, node_id, tenant, NODE_SCOPES)


def add_node(database, node_id, *, tenant="default", device="cpu", state="active"):
    """A node that has enrolled and sent its inventory."""
    row = NodeRow(
        tenant_id=tenant,
        id=node_id,
        name=node_id,
        device=device,
        state=state,
        installation_id=uuid4().hex,
        worker_version="1",
        inventory_sha256=INVENTORY,
        boots=[],
        rotate_requested=False,
        created_at=START,
        version=1,
    )
    with database.open_writer() as session:
        session.add(row)
    return subject(node_id, tenant)


def add_run(database, run_id, *, tenant="default", device="cpu", target=None, suite=SUITE):
    with database.open_writer() as session:
        request_run(
            session,
            run_id=run_id,
            tenant_id=tenant,
            device=device,
            target_node_id=target,
            suite=suite,
            seed=7,
        )
    return run_id


def request_id():
    return uuid4().hex


def claim(database, node, request=None, inventory=INVENTORY, **members):
    asked = LeaseClaimRequest(request_id=request or request_id(), inventory_sha256=inventory, **members)
    with database.open_writer() as session:
        return leases.claim_lease(session, node, asked)


def renew(database, node, lease, **members):
    renewal = LeaseRenewalRequest(fencing_token=lease.fencing_token, **members)
    with database.open_writer() as session:
        return leases.renew_lease(session, node, lease.id, renewal)


def complete(database, node, lease, outcome="completed", *, is_whole=False, **members):
    completion = LeaseCompletionRequest(fencing_token=lease.fencing_token, outcome=outcome, **members)
    with database.open_writer() as session:
        ended = leases.complete_lease(session, node, lease.id, completion, is_whole=lambda: is_whole)
        return ended.state


def cancel(database, run_id, tenant="default"):
    with database.open_writer() as session:
        return leases.cancel_run(session, tenant, run_id)


def settle(database):
    with database.open_writer() as session:
        return leases.expire_abandoned(session)


def at_receipt(database, node, lease, nonce=None):
    with database.open_writer() as session:
        return at_receipt_within(session, node, lease, nonce)


def at_receipt_within(session, node, lease, nonce=None):
    return leases.resolve_receipt_state(
        session,
        tenant_id=node.tenant_id,
        node_id=node.id,
        run_id=lease.id,
        fencing_token=lease.fencing_token,
        nonce=nonce or lease.nonce,
    )


def standing(database, run_id, tenant="default"):
    with database.open_reader() as session:
        return leases.list_standings(session, tenant, [run_id])[run_id]


def stored(database):
    """Every lease by id."""
    with database.open_reader() as session:
        return {row.id: row for row in session.scalars(select(LeaseRow))}


def grants(database, run_id=None):
    """The grants of a run, or of every run."""
    found = select(LeaseGrantRow).order_by(LeaseGrantRow.fencing_token)
    with database.open_reader() as session:
        return list(session.scalars(found.where(LeaseGrantRow.lease_id == run_id) if run_id else found))
