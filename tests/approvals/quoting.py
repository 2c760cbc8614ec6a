"""Quotes as budgets and actuals read them."""

from uuid import uuid4

from service.approvals.tables import ApprovalRow
from service.kit.clock import now


def usd(amount):
    return {"amount": amount, "currency_code": "USD"}


def quoted(total="1000", *, starts_at="2027-01-01T00:00:00Z", days=10.0, currency="USD", **members):
    """A quote of a total over some days, of the cost centre ``research``."""
    headlines = {"duration_seconds": {"value": days * 86400.0}} if days else {}
    if total:
        headlines["total"] = {"amount": total, "low": total, "high": total, "currency_code": currency}
    made = {"id": uuid4().hex, "version": 1, "cost_center_id": "research", "headlines": headlines}
    return made | ({"starts_at": starts_at} if starts_at else {}) | members


def approval_of(quote, tenant_id="default"):
    """An approval of a quote that nobody has to be asked about, as the database has it."""
    return ApprovalRow(
        tenant_id=tenant_id,
        id=uuid4().hex,
        state="approved",
        quote_id=quote["id"],
        quote_version=quote["version"],
        content_digest="0" * 64,
        name="a run",
        cost_center_id=quote.get("cost_center_id"),
        headlines="{}",
        judged={},
        requester="token:alice",
        asked_by=[],
        barred=[],
        budgets=[],
        warnings=[],
        valid_until=now(),
        submitted_at=now(),
        version=1,
    )
