"""Daily limits (UTC) of the data that a node submits, since it is stored permanently."""

from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from service.kit.database.engine import Writer
from service.kit.security.principals import Principal
from service.nodes import repository
from service.nodes.errors import NodeQuotaSpent
from service.nodes.tables import NodeIntakeRow


class IntakeQuota(NamedTuple):
    """Limits of one node per day; 0 for no limit."""

    results: int
    result_bytes: int
    inventories: int
    inventory_bytes: int


def open_intake(session: Writer, node: Principal) -> NodeIntakeRow:
    """Returns the counts of a node for today, locked until the transaction ends."""
    row = repository.lock_intake(session, node.tenant_id, node.id)
    today = repository.get_time(session).astimezone(UTC).date().isoformat()
    if row.day != today:
        row.day = today
        row.results = row.result_bytes = row.inventories = row.inventory_bytes = 0
    return row


def count_result(session: Writer, row: NodeIntakeRow, size: int, quota: IntakeQuota) -> None:
    """Counts a result of this size. Raises NodeQuotaSpent above the daily limit."""
    row.results, row.result_bytes = row.results + 1, row.result_bytes + size
    _check_quota(session, (row.results, quota.results), (row.result_bytes, quota.result_bytes))


def count_inventory(session: Writer, row: NodeIntakeRow, size: int, quota: IntakeQuota) -> None:
    """Counts an inventory of this size. Raises NodeQuotaSpent above the daily limit."""
    row.inventories, row.inventory_bytes = row.inventories + 1, row.inventory_bytes + size
    _check_quota(session, (row.inventories, quota.inventories), (row.inventory_bytes, quota.inventory_bytes))


def _check_quota(session: Writer, *counts: tuple[int, int]) -> None:
    if any(most and count > most for count, most in counts):
        seconds = _count_seconds_left(repository.get_time(session))
        detail = "The node has reached its daily limit (UTC): send the same request again tomorrow"
        raise NodeQuotaSpent(detail, headers={"Retry-After": str(seconds)})
    session.flush()


def _count_seconds_left(at: datetime) -> int:
    """Returns the whole seconds until the end of the day."""
    tomorrow = datetime.combine(at.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return max(1, int((tomorrow - at).total_seconds()) + 1)
