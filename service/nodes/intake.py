"""How much a node hands in a day (UTC): what it sends is kept for ever, so each day has an end to it."""

from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from service.kit.database.engine import Writer
from service.kit.security.principals import Principal
from service.nodes import repository
from service.nodes.errors import NodeQuotaSpent
from service.nodes.tables import NodeIntakeRow


class IntakeQuota(NamedTuple):
    """What one node may hand in a day; 0 for any number."""

    results: int
    result_bytes: int
    inventories: int
    inventory_bytes: int


def open_intake(session: Writer, node: Principal) -> NodeIntakeRow:
    """What a node has handed in today, locked until the transaction ends: the same is never counted twice."""
    row = repository.lock_intake(session, node.tenant_id, node.id)
    today = repository.get_time(session).astimezone(UTC).date().isoformat()
    if row.day != today:
        row.day = today
        row.results = row.result_bytes = row.inventories = row.inventory_bytes = 0
    return row


def count_result(session: Writer, row: NodeIntakeRow, size: int, quota: IntakeQuota) -> None:
    """Count one more result of so many bytes; refused where the day has no room for it."""
    row.results, row.result_bytes = row.results + 1, row.result_bytes + size
    _check_quota(session, (row.results, quota.results), (row.result_bytes, quota.result_bytes))


def count_inventory(session: Writer, row: NodeIntakeRow, size: int, quota: IntakeQuota) -> None:
    """Count one more inventory of so many bytes; refused where the day has no room for it."""
    row.inventories, row.inventory_bytes = row.inventories + 1, row.inventory_bytes + size
    _check_quota(session, (row.inventories, quota.inventories), (row.inventory_bytes, quota.inventory_bytes))


def _check_quota(session: Writer, *counts: tuple[int, int]) -> None:
    if any(most and count > most for count, most in counts):
        seconds = _count_seconds_left(repository.get_time(session))
        detail = "The node has handed in what it may in a day (UTC): send the same again tomorrow"
        raise NodeQuotaSpent(detail, headers={"Retry-After": str(seconds)})
    session.flush()


def _count_seconds_left(at: datetime) -> int:
    """Whole seconds until the day is over."""
    tomorrow = datetime.combine(at.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return max(1, int((tomorrow - at).total_seconds()) + 1)
