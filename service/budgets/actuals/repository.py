"""Queries of actuals."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, delete, func, insert, or_, select
from sqlalchemy.orm import Session

from service.budgets.actuals.tables import ActualChargeRow, ActualsImportRow, ActualsPeriodRow
from service.kit.database.engine import Reader, Writer, insert_new

PageCursor = tuple[datetime, str]
"""Time and id of the row before a page."""
_UNIT = 1_000_000
_AT_A_TIME = 1000


def get_import(session: Session, tenant_id: str, import_id: str) -> ActualsImportRow | None:
    """Returns an import of a tenant, or None."""
    return session.get(ActualsImportRow, (tenant_id, import_id))


def list_page(
    session: Reader, tenant_id: str, after: PageCursor | None, limit: int
) -> Sequence[ActualsImportRow]:
    """Returns imports of a tenant, the newest first."""
    statement = select(ActualsImportRow).where(ActualsImportRow.tenant_id == tenant_id)
    if after is not None:
        created_at, import_id = after
        earlier = and_(ActualsImportRow.created_at == created_at, ActualsImportRow.id < import_id)
        statement = statement.where(or_(ActualsImportRow.created_at < created_at, earlier))
    ordered = statement.order_by(ActualsImportRow.created_at.desc(), ActualsImportRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def find_by_content(session: Session, tenant_id: str, content_sha256: str) -> ActualsImportRow | None:
    """Returns the last import of a table that is not withdrawn, or None."""
    own = select(ActualsImportRow).where(
        ActualsImportRow.tenant_id == tenant_id,
        ActualsImportRow.content_sha256 == content_sha256,
        ActualsImportRow.withdrawn_at.is_(None),
    )
    last = own.order_by(ActualsImportRow.created_at.desc(), ActualsImportRow.id).limit(1)
    return session.scalars(last).one_or_none()


def list_counting_ids(session: Session, tenant_id: str, import_ids: Collection[str]) -> set[str]:
    """Returns the ids of the imports that count in a billing period."""
    own = select(ActualsPeriodRow.import_id).where(
        ActualsPeriodRow.tenant_id == tenant_id, ActualsPeriodRow.import_id.in_(import_ids)
    )
    return set(session.scalars(own.distinct()))


def lock_period(session: Writer, tenant_id: str, source: str, starts_at: datetime) -> ActualsPeriodRow:
    """Returns a billing period of a source, locked until the transaction ends. A new one has no import."""
    key = {"tenant_id": tenant_id, "source": source, "starts_at": starts_at}
    insert_new(session, ActualsPeriodRow, **key, covered_until=starts_at, import_id="", charges_sha256="")
    own = select(ActualsPeriodRow).where(
        ActualsPeriodRow.tenant_id == tenant_id,
        ActualsPeriodRow.source == source,
        ActualsPeriodRow.starts_at == starts_at,
    )
    return session.scalars(own.with_for_update(), execution_options={"populate_existing": True}).one()


def lock_imports(session: Writer, tenant_id: str, import_ids: Iterable[str]) -> Sequence[ActualsImportRow]:
    """Returns imports, locked until the transaction ends. The locks follow those of their billing periods."""
    own = select(ActualsImportRow).where(
        ActualsImportRow.tenant_id == tenant_id, ActualsImportRow.id.in_(list(import_ids))
    )
    fresh = {"populate_existing": True}
    return session.scalars(own.order_by(ActualsImportRow.id).with_for_update(), execution_options=fresh).all()


def list_import_periods(session: Session, tenant_id: str, import_id: str) -> Sequence[ActualsPeriodRow]:
    """Returns the billing periods in which an import counts."""
    return session.scalars(_select_import_periods(tenant_id, import_id)).all()


def _select_import_periods(tenant_id: str, import_id: str) -> Select[ActualsPeriodRow]:
    own = select(ActualsPeriodRow).where(
        ActualsPeriodRow.tenant_id == tenant_id, ActualsPeriodRow.import_id == import_id
    )
    ordered = own.order_by(ActualsPeriodRow.source, ActualsPeriodRow.starts_at)
    return ordered.execution_options(populate_existing=True)


def lock_import_periods(session: Writer, tenant_id: str, import_id: str) -> Sequence[ActualsPeriodRow]:
    """Returns the billing periods in which an import counts, locked until the transaction ends."""
    return session.scalars(_select_import_periods(tenant_id, import_id).with_for_update()).all()


def list_periods(session: Session, tenant_id: str) -> Sequence[ActualsPeriodRow]:
    """Returns every billing period of a tenant's bills."""
    return session.scalars(select(ActualsPeriodRow).where(ActualsPeriodRow.tenant_id == tenant_id)).all()


def delete_charges(session: Writer, tenant_id: str, import_id: str, starts_at: datetime) -> set[str]:
    """Deletes the charges of an import in a billing period.

    Returns the cost centres that they belonged to.
    """
    own = delete(ActualChargeRow).where(
        ActualChargeRow.tenant_id == tenant_id,
        ActualChargeRow.import_id == import_id,
        ActualChargeRow.billing_starts_at == starts_at,
    )
    centers = session.scalars(own.returning(ActualChargeRow.cost_center_id)).all()
    return {center for center in centers if center is not None}


def insert_charges(session: Writer, charges: Iterable[dict[str, Any]]) -> None:
    """Inserts charges."""
    rows = list(charges)
    if rows:
        session.execute(insert(ActualChargeRow), rows)


def list_all_charges(session: Reader, tenant_id: str) -> Iterator[ActualChargeRow]:
    """Yields every charge of a tenant in batches, ordered by import and billing period."""
    row = ActualChargeRow
    own = select(row).where(row.tenant_id == tenant_id)
    ordered = own.order_by(row.import_id, row.billing_starts_at, row.number)
    yield from session.scalars(ordered.execution_options(yield_per=_AT_A_TIME))


def list_all_imports(session: Reader, tenant_id: str) -> Sequence[ActualsImportRow]:
    """Returns all imports of a tenant."""
    return session.scalars(select(ActualsImportRow).where(ActualsImportRow.tenant_id == tenant_id)).all()


class QuoteCharge(NamedTuple):
    """Charge of an import for a quote on a day, in a service category and a currency."""

    quote_id: str
    import_id: str
    source: str
    imported_at: datetime
    service_category: str | None
    currency_code: str
    day: str
    billed_micros: int
    effective_micros: int


def list_charged(session: Session, tenant_id: str, quote_id: str | None = None) -> list[QuoteCharge]:
    """Returns the charges of one quote, or of all."""
    charge, bill = ActualChargeRow, ActualsImportRow
    keys: list[Any] = [charge.quote_id, charge.import_id, bill.source, bill.created_at]
    keys += [charge.service_category, charge.currency_code, charge.day]
    # Units and the remainder are summed separately, so that sums stay within 64 bits.
    sums = [
        part
        for amount in (charge.billed_micros, charge.effective_micros)
        for part in (func.sum(amount // _UNIT), func.sum(amount - (amount // _UNIT) * _UNIT))
    ]
    same = and_(bill.tenant_id == charge.tenant_id, bill.id == charge.import_id)
    statement = select(*keys, *sums).join(bill, same)
    statement = statement.where(charge.tenant_id == tenant_id)
    if quote_id is None:
        statement = statement.where(charge.quote_id.is_not(None))
    else:
        statement = statement.where(charge.quote_id == quote_id)
    found = session.execute(statement.group_by(*keys).order_by(charge.quote_id, bill.created_at, charge.day))
    return [
        QuoteCharge._make((*row[:-4], _join_micros(*row[-4:-2]), _join_micros(*row[-2:]))) for row in found
    ]


def _join_micros(units: int, rest: int) -> int:
    return int(units) * _UNIT + int(rest)
