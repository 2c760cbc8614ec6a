"""Comparison of two quotes, from their documents."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from service.kit.http.problems import build_pointer
from service.quotes.contributions import compute_contributions
from service.quotes.differences import QuotedRowChange, QuoteHeadlineChange, QuoteValueChange
from service.quotes.lines import QuoteDocument
from service.quotes.schemas import (
    QuoteComparison,
    QuoteSummary,
)

_TERMS: Final = ("name", "note", "cost_center_id", "owns_devices", "catalog_revision", "method_version")
_KINDS: Final = ("offer", "tariff", "token_price", "hardware_price", "exchange_rate", "site", "grid")
"""Order of rows: those with prices, then those of the site, then all others."""
_OF_EVERY_VERSION: Final = frozenset({"/version", "/revision", "/created_at"})
_PRICES: Final = ("price", "amount", "rate", "charge")


def compare_quotes(before: QuoteDocument, after: QuoteDocument) -> QuoteComparison:
    """Returns the differences between two quotes, prices of rows first."""
    charges = compute_contributions(before, after)
    found: QuoteComparison = {
        "before": _build_summary(before),
        "after": _build_summary(after),
        "terms": list_changed_values(
            *({name: q[name] for name in _TERMS if name in q} for q in (before, after))
        ),
        "requests": list_changed_values(before["requests"], after["requests"]),
        "inputs": list_changed_rows(before["inputs"], after["inputs"]),
        "headlines": list_changed_headlines(before["headlines"], after["headlines"]),
        "lines": charges.lines,
        "warnings": charges.warnings,
        "gaps": charges.gaps,
    }
    if charges.total is not None:
        found["total_change"] = charges.total
    return found


def _build_summary(quote: QuoteDocument) -> QuoteSummary:
    shown = {name: quote[name] for name in QuoteSummary.__annotations__ if name in quote}
    summary: QuoteSummary = shown  # type: ignore[assignment]
    return summary


def list_changed_values(before: object, after: object) -> list[QuoteValueChange]:
    """Returns the values that differ between two JSON documents, by pointer."""
    then, now = dict(_list_leaves(before, ())), dict(_list_leaves(after, ()))
    found: list[QuoteValueChange] = []
    for place in dict.fromkeys([*then, *now]):
        if place in then and place in now and then[place] == now[place]:
            continue
        changed: QuoteValueChange = {"pointer": place}
        if place in then:
            changed["before"] = then[place]
        if place in now:
            changed["after"] = now[place]
        found.append(changed)
    return found


def _list_leaves(value: object, path: tuple[object, ...]) -> Iterator[tuple[str, Any]]:
    """Yields the values without members, with their pointers."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _list_leaves(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _list_leaves(inner, (*path, place))
    else:
        yield build_pointer(path), value


def list_changed_rows(
    before: Iterable[QuoteDocument], after: Iterable[QuoteDocument]
) -> list[QuotedRowChange]:
    """Returns the catalog rows that only one of two quotes uses, or that have other values."""
    then, now = ({(row["kind"], row["id"]): row for row in rows} for rows in (before, after))
    found: list[QuotedRowChange] = []
    for key in sorted({*then, *now}, key=_build_sort_key):
        old, new = then.get(key), now.get(key)
        changed: QuotedRowChange = {"kind": key[0], "id": key[1], "changes": []}
        if old is not None:
            changed["version_before"] = old["version"]
        if new is not None:
            changed["version_after"] = new["version"]
        if old is not None and new is not None:
            changed["changes"] = _list_value_changes(old["row"], new["row"])
            if old["version"] == new["version"] and not changed["changes"]:
                continue
        found.append(changed)
    return found


def _build_sort_key(key: tuple[str, str]) -> tuple[int, str, str]:
    kind, row_id = key
    return (_KINDS.index(kind) if kind in _KINDS else len(_KINDS), kind, row_id)


def _list_value_changes(before: QuoteDocument, after: QuoteDocument) -> list[QuoteValueChange]:
    changes = (
        each for each in list_changed_values(before, after) if each["pointer"] not in _OF_EVERY_VERSION
    )
    return sorted(changes, key=lambda each: not any(word in each["pointer"] for word in _PRICES))


def list_changed_headlines(before: QuoteDocument, after: QuoteDocument) -> list[QuoteHeadlineChange]:
    """Returns the headlines that differ: money, quantities with intervals, and plain values."""
    names = dict.fromkeys([*before, *after])
    return [
        _compare_headline(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _compare_headline(name: str, before: Any, after: Any) -> QuoteHeadlineChange:  # noqa: ANN401
    found: QuoteHeadlineChange = {"name": name}
    if before is not None:
        found["before"] = _get_value(before)
    if after is not None:
        found["after"] = _get_value(after)
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return found
    if before.get("currency_code") != after.get("currency_code"):
        return found
    (then, low_then, high_then), (now, low_now, high_now) = _parse_interval(before), _parse_interval(after)
    found["difference"] = f"{now - then:f}" if "amount" in before else float(now - then)
    if "amount" in before:
        found["currency_code"] = before["currency_code"]
    if then:
        found["ratio"] = float(now / then)
    found["is_beyond_intervals"] = low_now > high_then or high_now < low_then
    return found


def _get_value(headline: Any) -> Any:  # noqa: ANN401
    if not isinstance(headline, Mapping):
        return headline
    return headline["amount"] if "amount" in headline else headline["value"]


def _parse_interval(headline: QuoteDocument) -> tuple[Decimal, Decimal, Decimal]:
    middle = _get_value(headline)
    value, low, high = (Decimal(str(each)) for each in (middle, headline["low"], headline["high"]))
    return value, low, high
