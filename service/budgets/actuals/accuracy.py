"""Accuracy of quotes against their bills."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean, median
from typing import Any, NamedTuple

from service.budgets.actuals import repository
from service.budgets.actuals.comparison import compare_charges
from service.budgets.actuals.repository import QuoteCharge
from service.budgets.actuals.schemas import (
    ActualsAccuracy,
    QuoteAccuracy,
    QuoteAccuracyGroup,
    QuoteActuals,
)
from service.kit.database.engine import Reader
from service.quotes import service as quotes
from service.resolve.catalog import CatalogView


class _QuoteComparison(NamedTuple):
    """A quote and its billed charges."""

    quote: Mapping[str, Any]
    actuals: QuoteActuals


def compare_quote_actuals(
    session: Reader, tenant_id: str, quote_id: str, catalog: CatalogView
) -> QuoteActuals:
    """Returns the billed charges of one quote, compared with the quote."""
    quotes.get_quote(session, tenant_id, quote_id)  # raises if there is none
    charges = repository.list_charged(session, tenant_id, quote_id)
    (found,) = _compare_quotes(session, tenant_id, {quote_id: charges}, catalog)
    return found.actuals


def compute_accuracy(session: Reader, tenant_id: str, catalog: CatalogView) -> ActualsAccuracy:
    """Returns the errors of every quote with billed charges."""
    by_quote: dict[str, list[QuoteCharge]] = defaultdict(list)
    for charge in repository.list_charged(session, tenant_id):
        by_quote[charge.quote_id].append(charge)
    every = list(_compare_quotes(session, tenant_id, by_quote, catalog))
    known = [each for each in every if "ratio" in each.actuals]
    reasons = Counter(each.actuals["gaps"][0]["code"] for each in every if "ratio" not in each.actuals)
    return {
        **_compute_errors(known),
        "partly_billed_count": sum(each.actuals["covered_share"] < 1.0 for each in known),
        "without_figure_count": len(every) - len(known),
        "without_figure": [{"code": code, "quote_count": count} for code, count in sorted(reasons.items())],
        "by_operation": _group_errors(known, "operation"),
        "by_accelerator": _group_errors(known, "accelerator_id"),
    }


def _compare_quotes(
    session: Reader, tenant_id: str, charges: Mapping[str, list[QuoteCharge]], catalog: CatalogView
) -> Iterator[_QuoteComparison]:
    periods = repository.list_periods(session, tenant_id)
    versions: dict[str, list[tuple[Mapping[str, Any], str | None]]] = defaultdict(list)
    for version in quotes.list_exports(session, tenant_id, charges.keys()):
        versions[version[0]["id"]].append(version)
    for quote_id, of_quote_ in sorted(versions.items()):
        approved = [version for version in of_quote_ if version[0]["state"] == "approved"]
        quote, focus = (approved or of_quote_)[-1]
        actuals = compare_charges(quote, focus, charges[quote_id], periods, catalog.exchange_rates)
        yield _QuoteComparison(quote, actuals)


def _compute_errors(compared_: Iterable[_QuoteComparison]) -> QuoteAccuracy:
    actuals = [each.actuals for each in compared_]
    if not actuals:
        return {"quote_count": 0}
    errors = [each["ratio"] - 1.0 for each in actuals]
    return {
        "quote_count": len(errors),
        "median_absolute_error": median(map(abs, errors)),
        "bias": fmean(errors),
        "interval_coverage": fmean(each["is_within_interval"] for each in actuals),
    }


def _group_errors(compared_: Iterable[_QuoteComparison], member: str) -> list[QuoteAccuracyGroup]:
    groups: dict[str, list[_QuoteComparison]] = defaultdict(list)
    for each in compared_:
        if member in each.quote:
            groups[each.quote[member]].append(each)
    return [{"name": name, **_compute_errors(group)} for name, group in sorted(groups.items())]
