"""What has changed between two quotes, read from their documents alone."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from service.kit.http.problems import pointer
from service.quotes.contributions import contributions
from service.quotes.differences import ChangedHeadline, ChangedRow, ChangedValue
from service.quotes.lines import Document
from service.quotes.schemas import (
    QuoteComparison,
    QuoteSummary,
)

_TERMS: Final = ("name", "note", "cost_center_id", "owns_devices", "catalog_revision", "method_version")
_KINDS: Final = ("offer", "tariff", "token_price", "exchange_rate", "site", "grid")
"""Rows with prices first, then those of the building; all else behind."""
_OF_EVERY_VERSION: Final = frozenset({"/version", "/revision", "/created_at"})
_PRICES: Final = ("price", "amount", "rate", "charge")


def compared(before: Document, after: Document) -> QuoteComparison:
    """What differs between two quotes, the prices of rows first."""
    charges = contributions(before, after)
    found: QuoteComparison = {
        "before": _summary(before),
        "after": _summary(after),
        "terms": changed_values(*({name: q[name] for name in _TERMS if name in q} for q in (before, after))),
        "requests": changed_values(before["requests"], after["requests"]),
        "inputs": changed_rows(before["inputs"], after["inputs"]),
        "headlines": changed_headlines(before["headlines"], after["headlines"]),
        "lines": charges.lines,
        "warnings": charges.warnings,
        "gaps": charges.gaps,
    }
    if charges.total is not None:
        found["total_change"] = charges.total
    return found


def _summary(quote: Document) -> QuoteSummary:
    shown = {name: quote[name] for name in QuoteSummary.__annotations__ if name in quote}
    summary: QuoteSummary = shown  # type: ignore[assignment]
    return summary


def changed_values(before: object, after: object) -> list[ChangedValue]:
    """Values that differ between two JSON documents, by their pointers."""
    then, now = dict(_leaves(before, ())), dict(_leaves(after, ()))
    found: list[ChangedValue] = []
    for place in dict.fromkeys([*then, *now]):
        if place in then and place in now and then[place] == now[place]:
            continue
        changed: ChangedValue = {"pointer": place}
        if place in then:
            changed["before"] = then[place]
        if place in now:
            changed["after"] = now[place]
        found.append(changed)
    return found


def _leaves(value: object, path: tuple[object, ...]) -> Iterator[tuple[str, Any]]:
    """Values that have no members, with their pointers."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    else:
        yield pointer(path), value


def changed_rows(before: Iterable[Document], after: Iterable[Document]) -> list[ChangedRow]:
    """Rows of the catalog that one of two quotes rests on, or both with other values."""
    then, now = ({(row["kind"], row["id"]): row for row in rows} for rows in (before, after))
    found: list[ChangedRow] = []
    for key in sorted({*then, *now}, key=_place):
        old, new = then.get(key), now.get(key)
        changed: ChangedRow = {"kind": key[0], "id": key[1], "changes": []}
        if old is not None:
            changed["version_before"] = old["version"]
        if new is not None:
            changed["version_after"] = new["version"]
        if old is not None and new is not None:
            changed["changes"] = _changes(old["row"], new["row"])
            if old["version"] == new["version"] and not changed["changes"]:
                continue
        found.append(changed)
    return found


def _place(key: tuple[str, str]) -> tuple[int, str, str]:
    kind, row_id = key
    return (_KINDS.index(kind) if kind in _KINDS else len(_KINDS), kind, row_id)


def _changes(before: Document, after: Document) -> list[ChangedValue]:
    changes = (each for each in changed_values(before, after) if each["pointer"] not in _OF_EVERY_VERSION)
    return sorted(changes, key=lambda each: not any(word in each["pointer"] for word in _PRICES))


def changed_headlines(before: Document, after: Document) -> list[ChangedHeadline]:
    """Headlines that differ: money, quantities with intervals, and plain values."""
    names = dict.fromkeys([*before, *after])
    return [
        _headline(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _headline(name: str, before: Any, after: Any) -> ChangedHeadline:  # noqa: ANN401
    found: ChangedHeadline = {"name": name}
    if before is not None:
        found["before"] = _value(before)
    if after is not None:
        found["after"] = _value(after)
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return found
    if before.get("currency_code") != after.get("currency_code"):
        return found
    (then, low_then, high_then), (now, low_now, high_now) = _ends(before), _ends(after)
    found["difference"] = f"{now - then:f}" if "amount" in before else float(now - then)
    if "amount" in before:
        found["currency_code"] = before["currency_code"]
    if then:
        found["ratio"] = float(now / then)
    found["is_beyond_intervals"] = low_now > high_then or high_now < low_then
    return found


def _value(headline: Any) -> Any:  # noqa: ANN401
    if not isinstance(headline, Mapping):
        return headline
    return headline["amount"] if "amount" in headline else headline["value"]


def _ends(headline: Document) -> tuple[Decimal, Decimal, Decimal]:
    middle = _value(headline)
    value, low, high = (Decimal(str(each)) for each in (middle, headline["low"], headline["high"]))
    return value, low, high
