"""Comparison of billed charges with the quote, over the time that bills cover.

A month of a year's run is compared with that month: until bills cover the whole run, charges of other days
are left out and reported. Once they do, everything counts, even of a run that took longer. Bills cover a
billing period even if they have no charge in it, so that a run that ends early is cheaper, not shorter.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from service.budgets.actuals.repository import QuoteCharge
from service.budgets.actuals.schemas import (
    ExcludedCharges,
    ExcludedChargesCode,
    QuoteActuals,
    ServiceCategoryActuals,
)
from service.budgets.actuals.tables import ActualsPeriodRow
from service.budgets.money import to_decimal, to_micros, to_money
from service.budgets.periods import Period, resolve_run_period
from service.formats.focus import ONE_TIME, read_focus
from service.planning.cost.exchange import ExchangeRates
from service.schemas.base import EstimateGap

_LEFT_OUT: Final[Mapping[ExcludedChargesCode, str]] = {
    "OUTSIDE_RUN": "charges of days outside of the run as quoted, which is not yet billed to its end",
    "NOT_COVERED": "charges, such as corrections, of days of the run that no bill covers",
}
_TICK: Final = timedelta(microseconds=1)
_GAPS: Final = {
    "NO_ACTUALS": ("/effective", "no bill that counts has a charge for this quote"),
    "RATE_UNKNOWN": ("/effective", "a charge is in a currency without an exchange rate to that of the quote"),
    "TOTAL_UNKNOWN": ("/expected", "the quote has no total"),
    "DURATION_UNKNOWN": ("/covered_share", "the quote has no duration of the run"),
    "NOTHING_EXPECTED": ("/ratio", "the quote expects no cost in the billed time"),
}


class ExpectedCharge(NamedTuple):
    """An expected charge of a quote: an amount that falls due over a period, or at once at its start."""

    service_category: str | None
    amount: Decimal
    period: Period
    at_once: bool


def compare_charges(
    quote: Mapping[str, Any],
    focus: str | None,
    charges: Sequence[QuoteCharge],
    periods: Iterable[ActualsPeriodRow],
    rates: ExchangeRates,
) -> QuoteActuals:
    """Compares a quote with its charges. ``focus`` are the charges that the quote expects."""
    total = quote["headlines"].get("total")
    answer: QuoteActuals = {
        "quote_id": quote["id"],
        "quote_version": quote["version"],
        "state": quote["state"],
        "left_out": [],
        "services": [],
        "import_ids": list(dict.fromkeys(charge.import_id for charge in charges)),
        "gaps": [],
    }
    if total is None:
        return _add_gap(answer, "TOTAL_UNKNOWN")
    answer["total"] = total
    if not charges:
        return _add_gap(answer, "NO_ACTUALS")
    spent = _sum_spent(charges, total["currency_code"], rates)
    if spent is None:
        return _add_gap(answer, "RATE_UNKNOWN")
    answer["billed"] = to_money(sum(each.billed for each in spent.values()), total["currency_code"])
    effective = sum(each.effective for each in spent.values())
    answer["effective"] = to_money(effective, total["currency_code"])
    run = resolve_run_period(quote, _to_midnight(min(charge.day for charge in charges)))
    sources = {charge.source for charge in charges}
    covered = _merge_periods(
        [Period(each.starts_at, each.covered_until) for each in periods if each.source in sources]
    )
    if run.start == run.end:
        answer["services"] = _build_services(spent, {}, total["currency_code"])
        return _add_gap(answer, "DURATION_UNKNOWN")
    parts = _build_expected_parts(focus, total, run)
    shares = [_compute_covered_share(part.period, covered, at_once=part.at_once) for part in parts]
    expected: dict[str | None, Decimal] = defaultdict(Decimal)
    for part, share in zip(parts, shares, strict=True):
        expected[part.service_category] += part.amount * share
    answer["starts_at"], answer["ends_at"] = run
    covered_share = _compute_covered_share(run, covered)
    answer["covered_share"] = float(covered_share)
    # Purchases are charged at the order, not at the start of the run.
    all_counts = covered_share == 1 or any(part.at_once and part.amount for part in parts)
    left_out = {} if all_counts else _group_left_out(charges, run, covered)
    answer["left_out"] = [
        _build_left_out(code, each, total["currency_code"], rates) for code, each in left_out.items()
    ]
    apart = {id(charge) for each in left_out.values() for charge in each}
    kept = (
        _sum_spent((each for each in charges if id(each) not in apart), total["currency_code"], rates) or {}
    )
    comparable = sum(each.effective for each in kept.values())
    answer["compared"] = to_money(comparable, total["currency_code"])
    answer["services"] = _build_services(kept, expected, total["currency_code"])
    return _compare_total(answer, total, sum(expected.values(), Decimal(0)), to_decimal(comparable))


def _group_left_out(
    charges: Iterable[QuoteCharge], run: Period, covered: Sequence[Period]
) -> dict[ExcludedChargesCode, list[QuoteCharge]]:
    """Returns charges of days for which the expectation of the quote is not yet known."""
    found: dict[ExcludedChargesCode, list[QuoteCharge]] = defaultdict(list)
    for charge in charges:
        start = _to_midnight(charge.day)
        within = Period(max(start, run.start), min(start + timedelta(days=1), run.end))
        if within.start >= within.end:
            found["OUTSIDE_RUN"].append(charge)
        elif not any(max(each.start, within.start) < min(each.end, within.end) for each in covered):
            found["NOT_COVERED"].append(charge)
    return found


def _build_left_out(
    code: ExcludedChargesCode, charges: Iterable[QuoteCharge], currency_code: str, rates: ExchangeRates
) -> ExcludedCharges:
    spent = _sum_spent(charges, currency_code, rates) or {}
    effective = to_money(sum(each.effective for each in spent.values()), currency_code)
    return {"code": code, "effective": effective, "detail": _LEFT_OUT[code]}


def _add_gap(answer: QuoteActuals, code: str) -> QuoteActuals:
    pointer, detail = _GAPS[code]
    gap: EstimateGap = {"pointer": pointer, "code": code, "detail": detail}
    answer["gaps"].append(gap)
    return answer


def _compare_total(
    answer: QuoteActuals, total: Mapping[str, str], expected: Decimal, effective: Decimal
) -> QuoteActuals:
    currency, whole = total["currency_code"], Decimal(total["amount"])
    if expected <= 0 or whole <= 0:
        return _add_gap(answer, "NOTHING_EXPECTED")
    low, high = (expected * Decimal(total[end]) / whole for end in ("low", "high"))
    texts = [to_money(to_micros(amount), currency)["amount"] for amount in (expected, low, high)]
    answer["expected"] = {
        "amount": texts[0],
        "low": texts[1],
        "high": texts[2],
        "currency_code": currency,
    }
    answer["ratio"] = float(effective / expected)
    answer["is_within_interval"] = low <= effective <= high
    return answer


class _BilledAmounts(NamedTuple):
    billed: int
    effective: int


def _sum_spent(
    charges: Iterable[QuoteCharge], currency_code: str, rates: ExchangeRates
) -> dict[str | None, _BilledAmounts] | None:
    """Returns charges by service category in one currency, or None if a rate is unknown."""
    spent: dict[str | None, _BilledAmounts] = {}
    for charge in charges:
        on = charge.imported_at.date()
        rate = rates.convert(Decimal(1), charge.currency_code, currency_code, on)
        if rate is None:
            return None
        known = spent.get(charge.service_category, _BilledAmounts(0, 0))
        spent[charge.service_category] = _BilledAmounts(
            known.billed + to_micros(to_decimal(charge.billed_micros) * rate.rate),
            known.effective + to_micros(to_decimal(charge.effective_micros) * rate.rate),
        )
    return spent


def _to_midnight(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def _merge_periods(periods: Iterable[Period]) -> list[Period]:
    """Merges periods that overlap or touch."""
    apart: list[Period] = []
    for period in sorted(periods):
        if apart and period.start <= apart[-1].end:
            apart[-1] = Period(apart[-1].start, max(apart[-1].end, period.end))
        else:
            apart.append(period)
    return apart


def _compute_covered_share(period: Period, covered: Iterable[Period], *, at_once: bool = False) -> Decimal:
    """Returns the covered share of a period, 0 or 1 for a charge that falls due at once."""
    if at_once or period.start == period.end:
        return Decimal(any(each.start <= period.start < each.end for each in covered))
    met = (min(each.end, period.end) - max(each.start, period.start) for each in covered)
    ticks = sum(max(length, timedelta(0)) // _TICK for length in met)
    return Decimal(ticks) / Decimal((period.end - period.start) // _TICK)


def _build_expected_parts(focus: str | None, total: Mapping[str, str], run: Period) -> list[ExpectedCharge]:
    """Returns the charges of a quote, or its total spread over the run if they do not add up to it."""
    whole = Decimal(total["amount"])
    rows = [] if focus is None else read_focus(focus).rows
    same = all(row.currency_code == total["currency_code"] for row in rows)
    if not rows or not same or sum(row.effective for row in rows) != whole:
        return [ExpectedCharge(None, whole, run, at_once=False)]
    return [
        ExpectedCharge(
            row.service_category,
            row.effective,
            Period(row.charge_start, row.charge_end),
            at_once=row.frequency == ONE_TIME,
        )
        for row in rows
    ]


def _build_services(
    spent: Mapping[str | None, _BilledAmounts], expected: Mapping[str | None, Decimal], currency_code: str
) -> list[ServiceCategoryActuals]:
    # An expectation without a category covers all categories.
    by_service = {} if set(expected) == {None} else expected
    names = sorted({*spent, *by_service}, key=lambda name: name or "")
    return [_build_service(name, spent.get(name), by_service.get(name), currency_code) for name in names]


def _build_service(
    name: str | None, spent: _BilledAmounts | None, expected: Decimal | None, currency_code: str
) -> ServiceCategoryActuals:
    service: ServiceCategoryActuals = {}
    if name is not None:
        service["service_category"] = name
    if expected is not None:
        service["expected"] = to_money(to_micros(expected), currency_code)
    if spent is not None:
        service["billed"] = to_money(spent.billed, currency_code)
        service["effective"] = to_money(spent.effective, currency_code)
    return service
