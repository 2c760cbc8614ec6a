"""Budgets, cost centres, commitments and bills: whatever is changed beside the service is found."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, update

from service.approvals.service import find_deviations
from service.approvals.tables import ApprovalRow
from service.budgets.actuals.tables import ActualChargeRow, ActualsImportRow, ActualsPeriodRow
from service.budgets.tables import BudgetRow
from service.cost_centers.tables import CostCenterRow
from service.kit.database.engine import Reader
from tests.approvals.deciding import Actor, governed, policy, step
from tests.approvals.quoting import usd
from tests.budgets.bills import bill, row
from tests.prepared import ON_SQLITE

TENANT = "default"


@pytest.fixture
def stored(callers):
    """Something of all that is stored of money; imports in the order in which they were made."""
    asker, decider = Actor(callers), Actor(callers)
    asker.post("/v1/cost-centers", {"id": "research", "name": "Research", "accounts": ["1"]})
    today = datetime.now(UTC).date()
    body = {"id": "now", "name": "Now", "cost_center_id": "research", "starts_on": "2025-01-01"}
    body |= {"ends_on": str(today + timedelta(days=500)), "amount": usd("150"), "thresholds": [0.1, 0.5]}
    assert asker.post("/v1/budgets", body).status_code == 201
    assert governed(asker, policy(step(decider))).status_code == 201
    quote = asker.quote(cost_center_id="research")
    assert decider.decide(asker.submit(quote).json()).status_code == 200
    both = bill(row("1", "2025-02-01", "2025-03-01"), row("2"))
    imports = [
        asker.post("/v1/actuals:import", {"source": source, "content": content}).json()["id"]
        for source, content in (("cloud", both), ("cloud", bill(row("3"))), ("other", bill(row("4"))))
    ]
    withdrawn = asker.post(f"/v1/actuals/{imports[2]}:withdraw", {"reason": "not ours"})
    assert withdrawn.status_code == 200
    patch = {"amount": usd("300"), "enforcement": "block"}
    changed = asker.request("PATCH", "/v1/budgets/now", json=patch, headers={"If-Match": "*"})
    assert changed.status_code == 200
    named = asker.request("PATCH", "/v1/cost-centers/research", json={"name": "R"}, headers={"If-Match": "*"})
    assert named.status_code == 200
    return imports


def faults(database):
    with database.open_reader() as session:
        return set(find_deviations(session, TENANT))


def test_what_the_service_writes_is_as_it_was_recorded(callers, stored):
    asker, database = Actor(callers), callers.client.app.state.database
    assert faults(database) == set()
    for each in stored[:2]:
        asker.post(f"/v1/actuals/{each}:withdraw", {"reason": "again"})
    assert faults(database) == set()


@ON_SQLITE
def test_an_edit_is_found(callers, stored):
    database = callers.client.app.state.database
    first, second, third = (f"actuals/{each}" for each in stored)
    charges, period = ActualChargeRow, ActualsPeriodRow
    of_second = charges.import_id == stored[1]
    edits = [
        (update(CostCenterRow).values(accounts=["2"]), "cost-centers/research"),
        (delete(CostCenterRow), "cost-centers/research"),
        (update(BudgetRow).values(amount_micros=10**9), "budgets/now"),
        (update(BudgetRow).values(enforcement="warn"), "budgets/now"),
        (update(BudgetRow).values(told=[]), "budgets/now"),
        (delete(BudgetRow), "budgets/now"),
        (update(ApprovalRow).values(committed_micros=1), "approvals/"),
        (update(ApprovalRow).values(released_at=ApprovalRow.committed_at), "approvals/"),
        (update(ApprovalRow).values(due_from=ApprovalRow.submitted_at), "approvals/"),
        (update(ActualsImportRow).values(row_count=9), first),
        (delete(ActualsImportRow).where(ActualsImportRow.id == stored[2]), third),
        (update(charges).where(of_second).values(effective_micros=1), second),
        (update(charges).where(of_second).values(day="2024-03-01"), second),
        (delete(charges).where(of_second, charges.number == 0), second),
        (update(charges).where(of_second).values(import_id=stored[2]), third),
        (update(period).where(period.import_id == stored[0]).values(covered_until=period.starts_at), first),
        (update(period).where(period.import_id == "").values(import_id=stored[2]), third),
        (delete(period).where(period.import_id == stored[0]), first),
    ]
    for edit, resource in edits:
        with database.engine.connect() as connection:
            assert connection.execute(edit).rowcount
            with Reader(connection, autoflush=False) as session:
                found = list(find_deviations(session, TENANT))
            connection.rollback()
        assert any(each.startswith(resource) for each, _ in found), str(edit)
    assert faults(database) == set()
