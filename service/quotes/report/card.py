"""The card of a quote: what somebody who signs reads first, each fact in one line."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, NamedTuple

from service.formats.providers import get_provider_name
from service.kit.locales import format_count, localize_number
from service.kit.reports.numbers import (
    SECONDS,
    TIMES,
    format_money,
    format_number,
    format_quantity,
    format_value,
    to_title,
)
from service.quotes.report.names import RowNames
from service.quotes.report.question import get_broadest_question
from service.quotes.schemas import QuoteComparison

_MONTH_SECONDS = 365 * 86400 / 12
_FEWEST_MONTHS = 2
_MOST_DRIVERS = 3
_HALF = 0.5
_LEAST_SHARE = 0.005
_CENT = Decimal("0.01")
_LEVELS = {
    "time_to_first_token_seconds": "first token within {}",
    "time_per_output_token_seconds": "{} a token",
    "request_seconds": "request within {}",
}


class CardRow(NamedTuple):
    """A fact of the card."""

    label: str
    value: str
    remark: str = ""
    tone: str = ""
    """Class of the value: good-text, warn-text, bad-text or none."""


def build_card(quote: Mapping[str, Any], changes: QuoteComparison | None = None) -> list[CardRow]:
    """Returns the facts of a quote in the order in which they are weighed.

    ``changes`` is the comparison with the version before, if there is one.
    """
    rows = (
        _build_amount(quote),
        _build_month(quote),
        _build_change(changes),
        *_build_devices(quote),
        *_build_drivers(quote),
        *_build_capacity(quote),
        _build_service_levels(quote),
        _build_token_cost(quote),
        _build_alternative(quote),
    )
    return [row for row in rows if row is not None]


def _format_share(share: float) -> str:
    """Returns a share in whole percent; one that is not zero never reads as zero."""
    return "less than 1%" if 0 < share < _LEAST_SHARE else f"{format_count(round(100 * share))}%"


def _build_amount(quote: Mapping[str, Any]) -> CardRow:
    total = quote["headlines"].get("total")
    if total is None:
        return CardRow("Amount to pay", "not known", tone="warn-text")
    code = total["currency_code"]
    interval = f"80% interval {format_money(total['low'], code)} to {format_money(total['high'], code)}"
    is_sure = Decimal(total["low"]) == Decimal(total["high"])
    return CardRow("Amount to pay", format_money(total["amount"], code), "" if is_sure else interval)


def _build_month(quote: Mapping[str, Any]) -> CardRow | None:
    """Returns the amount of a month, if the quote pays for several."""
    total, duration = (quote["headlines"].get(name) for name in ("total", "duration_seconds"))
    months = duration["value"] / _MONTH_SECONDS if duration else 0.0
    if total is None or months < _FEWEST_MONTHS:
        return None
    amount = (Decimal(total["amount"]) / Decimal(months)).quantize(_CENT, ROUND_HALF_EVEN)
    text = f"over {format_number(round(months, 1))} months"
    return CardRow("Per month", format_money(amount, total["currency_code"]), text)


def _build_change(changes: QuoteComparison | None) -> CardRow | None:
    if changes is None:
        return None
    label = f"Since version {changes['before']['version']}"
    moved = next((one for one in changes["headlines"] if one["name"] == "total"), None)
    if moved is None:
        return CardRow(label, "the amount is the same")
    before = moved.get("before")
    if "ratio" not in moved or before is None:
        return CardRow(label, "the amounts cannot be compared", tone="warn-text")
    was = format_money(str(before), moved["currency_code"])
    tone = "warn-text" if moved["ratio"] > 1 else "good-text"
    return CardRow(label, localize_number(f"{100 * (moved['ratio'] - 1):+.1f}%"), f"it was {was}", tone)


def _build_devices(quote: Mapping[str, Any]) -> Iterator[CardRow]:
    names = RowNames(quote["inputs"])
    count, accelerator = quote.get("accelerator_count"), quote.get("accelerator_id")
    if count is not None:
        kind = names.get_name("accelerator", accelerator) if accelerator else "devices"
        providers = ", ".join(map(get_provider_name, quote["providers"]))
        yield CardRow("Devices", f"{format_count(count)} {TIMES} {kind}", providers and f"from {providers}")


def _build_drivers(quote: Mapping[str, Any]) -> Iterator[CardRow]:
    """Yields the charges that make up most of the amount, each with its share."""
    lines = [line for line in _list_charges(quote) if "amount" in line]
    whole = sum((abs(Decimal(line["amount"]["amount"])) for line in lines), Decimal())
    if not whole:
        return
    lines.sort(key=lambda line: abs(Decimal(line["amount"]["amount"])), reverse=True)
    driven = [_format_driver(line, whole, is_alone=len(lines) == 1) for line in lines[:_MOST_DRIVERS]]
    yield CardRow("What it pays for", driven[0], "; ".join(driven[1:]))


def _format_driver(line: Mapping[str, Any], whole: Decimal, *, is_alone: bool) -> str:
    share = _format_share(float(abs(Decimal(line["amount"]["amount"])) / whole))
    return f"{to_title(line['name'])}{'' if is_alone else f' {share}'}{_format_product(line)}"


def _list_charges(quote: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    answers = quote["answers"]
    lines = list(answers.get("cost", {}).get("lines", ()))
    if quote.get("owns_devices"):
        lines += answers.get("utility_bill", {}).get("electricity", {}).get("lines", ())
    return lines


def _format_product(line: Mapping[str, Any]) -> str:
    if "unit_price" not in line or "quantity" not in line:
        return ""
    unit = line["unit"].replace("_", "-")
    return f": {format_quantity(line['quantity'])} {unit}s at {format_money(**line['unit_price'])}"


def _build_capacity(quote: Mapping[str, Any]) -> Iterator[CardRow]:
    """Yields how much of the load and of the memory of the devices the work takes."""
    answers = quote["answers"]
    rate = answers.get("throughput", {}).get("requests_per_second")
    load = answers.get("throughput", {}).get("saturation")
    if rate and load:
        most = load["most_requests_per_second"]["value"]
        share = rate["value"] / most
        text = f"{format_number(rate['value'])} of {format_number(most)} requests per second"
        tone = "bad-text" if load["saturated"] else "warn-text" if share < _HALF else ""
        yield CardRow("Capacity used", _format_share(share), text, tone)
    memory = answers.get("memory", {})
    taken, usable = memory.get("per_device", {}).get("total_bytes"), memory.get("usable_bytes")
    if taken and usable:
        share = _format_share(taken["value"] / usable)
        fits = memory.get("fits", False)
        yield CardRow("Memory used", share, "" if fits else "it does not fit", "" if fits else "bad-text")


def _build_service_levels(quote: Mapping[str, Any]) -> CardRow | None:
    answer = quote["answers"].get("throughput", {})
    workload = get_broadest_question(quote["requests"]).get("workload", {})
    if workload.get("kind") != "inference" or not answer:
        return None
    levels, met = workload.get("service_levels"), answer.get("service_level_goodput")
    if not levels or not met:
        return CardRow("Service levels", "none are asked for", tone="warn-text")
    asked = [
        text.format(format_value(levels[name], SECONDS)) for name, text in _LEVELS.items() if name in levels
    ]
    share = _format_share(met["share"]["value"])
    remark = f"{share} of the requests: {', '.join(asked)}"
    return CardRow(
        "Service levels",
        *(("met", remark, "good-text") if met["attained"] else ("not met", remark, "bad-text")),
    )


def _build_token_cost(quote: Mapping[str, Any]) -> CardRow | None:
    cost = quote["answers"].get("cost", {}).get("cost_per_million_tokens")
    if cost is None:
        return None
    places = Decimal(cost["amount"]).quantize(_CENT, ROUND_HALF_EVEN)
    # Small prices keep their digits: a rounded 0.00 would read as free.
    amount = places if places >= 1 else cost["amount"]
    return CardRow("Cost per million tokens", format_money(amount, cost["currency_code"]))


def _build_alternative(quote: Mapping[str, Any]) -> CardRow | None:
    """Returns the cheapest alternative, if the service looked for any."""
    found = quote.get("alternatives")
    if found is None or "total" not in quote["headlines"]:
        return None
    if not found:
        return CardRow("Cheapest alternative", "none was found")
    cheapest, total = found[0]["total"], quote["headlines"]["total"]
    share = _format_share(float(Decimal(cheapest["amount"]) / Decimal(total["amount"])))
    value = format_money(cheapest["amount"], cheapest["currency_code"])
    return CardRow("Cheapest alternative", value, f"{share} of the amount: {found[0]['detail']}", "warn-text")
