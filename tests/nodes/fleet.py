"""Nodes without a worker: rows of them, and what they ask of their leases."""

from uuid import uuid4

from sqlalchemy import select

from service.kit.security.subjects import NODE_SCOPES, Subject, SubjectKind
from service.nodes import leases
from service.nodes.service import ask
from service.nodes.tables import LeaseGrantRow, LeaseRow, NodeRow
from service.protocol.leases import Claim, Completion, Renewal
from service.protocol.suites import Suite
from tests.clocks import START

INVENTORY = "c" * 64
SUITE = Suite.model_validate(
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
    return Subject(SubjectKind.NODE, node_id, tenant, NODE_SCOPES)


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
    with database.writing() as session:
        session.add(row)
    return subject(node_id, tenant)


def add_run(database, run_id, *, tenant="default", device="cpu", target=None):
    with database.writing() as session:
        ask(
            session,
            run_id=run_id,
            tenant_id=tenant,
            device=device,
            target_node_id=target,
            suite=SUITE,
            seed=7,
        )
    return run_id


def request_id():
    return uuid4().hex


def claim(database, node, request=None, inventory=INVENTORY):
    asked = Claim(request_id=request or request_id(), inventory_sha256=inventory)
    with database.writing() as session:
        return leases.claim(session, node, asked)


def renew(database, node, lease, **members):
    renewal = Renewal(fencing_token=lease.fencing_token, **members)
    with database.writing() as session:
        return leases.renew(session, node, lease.id, renewal)


def complete(database, node, lease, outcome="completed", **members):
    completion = Completion(fencing_token=lease.fencing_token, outcome=outcome, **members)
    with database.writing() as session:
        return leases.complete(session, node, lease.id, completion).state


def cancel(database, run_id, tenant="default"):
    with database.writing() as session:
        return leases.cancel(session, tenant, run_id)


def settle(database):
    with database.writing() as session:
        return leases.settle_abandoned(session)


def at_receipt(database, node, lease, nonce=None):
    with database.writing() as session:
        return at_receipt_within(session, node, lease, nonce)


def at_receipt_within(session, node, lease, nonce=None):
    return leases.lease_at_receipt(
        session,
        tenant_id=node.tenant_id,
        node_id=node.id,
        run_id=lease.id,
        fencing_token=lease.fencing_token,
        nonce=nonce or lease.nonce,
    )


def standing(database, run_id, tenant="default"):
    with database.reading() as session:
        return leases.standing(session, tenant, [run_id])[run_id]


def stored(database):
    """Every lease by id."""
    with database.reading() as session:
        return {row.id: row for row in session.scalars(select(LeaseRow))}


def grants(database, run_id):
    with database.reading() as session:
        found = select(LeaseGrantRow).where(LeaseGrantRow.lease_id == run_id)
        return list(session.scalars(found.order_by(LeaseGrantRow.fencing_token)))
