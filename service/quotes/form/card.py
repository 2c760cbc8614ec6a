"""Card of an answer: what a person wants to know first, in whole numbers and words."""

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from service.kit.locales import format_count, localize_number
from service.kit.reports.numbers import (
    BYTES,
    KWH,
    UnitLadder,
    UnitScale,
    format_number,
    select_ladder,
    select_scale,
)

_MONTH_SECONDS: Final = 730 * 3600
_WHOLE_FROM: Final = 1000
_CENT_FROM: Final = 1
_SURE: Final = 0.95
_DIGITS: Final = 3
_SPACE: Final = "\N{NO-BREAK SPACE}"


class CardFigure(NamedTuple):
    """A figure of the card. ``likely`` is its 80% interval, ``note`` what it counts or why it is absent."""

    name: str
    shown: str
    value: float | None = None
    likely: str = ""
    note: str = ""
    currency_code: str = ""


class AnswerCard(NamedTuple):
    """Verdict on the memory, and the figures."""

    verdict: str
    tone: str
    """Class of the verdict: good, bad or empty."""
    detail: str
    figures: list[CardFigure]

    @property
    def sentence(self) -> str:
        """The card in a sentence, for readers who cannot see that it changed."""
        shown = [f"{figure.name}: {figure.shown}" for figure in self.figures if figure.value is not None]
        return f"{self.verdict}. {'; '.join(shown[:4])}."


def build_card(quote: Mapping[str, Any]) -> AnswerCard:
    """Returns the card of an answered question, which is given in JSON form."""
    answers = quote["answers"]
    memory = answers.get("memory", {})
    verdict, tone, detail = _judge_memory(memory)
    figures = [*_list_capacity(memory, quote), *_list_speed(answers.get("throughput", {}), quote)]
    figures += [*_list_price(quote), *_list_bill(answers.get("utility_bill", {}), quote)]
    return AnswerCard(verdict, tone, detail, figures)


def _judge_memory(memory: Mapping[str, Any]) -> tuple[str, str, str]:
    total = memory.get("per_device", {}).get("total_bytes")
    if total is None:
        return "Memory not known", "", ""
    needed, likely = _format_quantity(total, BYTES)
    if "fits" not in memory:
        return f"Needs {needed}", "", f"{likely[:1].upper()}{likely[1:]}." if likely else ""
    usable = memory["usable_bytes"]
    detail = f"{needed} of the {_format_size(usable, select_scale(BYTES, usable))} that a device has for it"
    chance = memory.get("fit_probability", 1.0)
    if 1 - _SURE < chance < _SURE:
        detail += f"; fits in about {round(chance * 100)} of 100 such cases"
    if memory["fits"]:
        return "Fits", "good", f"{detail}."
    advice = memory.get("advice", [])
    told = f" {advice[0]['detail'][:1].upper()}{advice[0]['detail'][1:]}." if advice else ""
    return "Does not fit", "bad", f"{detail}.{told}"


def _list_capacity(memory: Mapping[str, Any], quote: Mapping[str, Any]) -> Iterator[CardFigure]:
    most = memory.get("limits", {}).get("max_concurrency")
    if most is not None and _get_workload(quote).get("kind") == "inference":
        yield CardFigure(
            "Room for",
            f"{format_count(most)} requests at a time",
            float(most),
            note="of this length, in memory",
        )


def _list_speed(speed: Mapping[str, Any], quote: Mapping[str, Any]) -> Iterator[CardFigure]:
    if not speed:
        return
    if _get_workload(quote).get("kind") == "training":
        yield _build_figure("Time of the run", speed, "duration_seconds", quote)
        yield _build_figure("Speed", speed, "tokens_per_second", quote, unit=" tokens per second")
        yield _build_figure("Utilization", speed, "model_flops_utilization", quote, note="of the peak rate")
        return
    if "output_tokens_per_second" in speed:
        yield _build_figure("Speed", speed, "output_tokens_per_second", quote, unit=" tokens per second")
        yield _build_figure("First token after", speed, "time_to_first_token_seconds", quote)
        yield _build_figure("Then a token every", speed, "time_per_output_token_seconds", quote)
    else:
        yield _build_figure("Speed", speed, "requests_per_second", quote, unit=" requests per second")


def _list_price(quote: Mapping[str, Any]) -> Iterator[CardFigure]:
    cost = quote["answers"].get("cost")
    if cost is None:
        return
    duration = quote["headlines"].get("duration_seconds", {}).get("value")
    is_service = _get_workload(quote).get("kind") == "inference"
    days = f"for {format_number(duration / 86400)} days" if is_service and duration else "for the run"
    total = quote["headlines"].get("total")
    yield _build_money("Price", total, quote, "total", days)
    if is_service and duration and total is not None and "purchase" not in cost:
        share = Decimal(_MONTH_SECONDS / duration)
        month = {end: str(Decimal(total[end]) * share) for end in ("amount", "low", "high")}
        yield _build_money("A month", total | month, quote, "total", "of 730 hours")
    unit = cost.get("cost_per_million_tokens")
    if unit is not None:
        yield _build_money(
            "A million tokens", unit, quote, "", "read or written" if is_service else "trained on"
        )


def _list_bill(bill: Mapping[str, Any], quote: Mapping[str, Any]) -> Iterator[CardFigure]:
    if not bill:
        return
    energy = bill.get("energy", {}).get("facility_kwh")
    note = f"{_format_quantity(energy, KWH)[0]} at the meter" if energy else ""
    yield _build_money("Electricity", bill.get("electricity", {}).get("total"), quote, "electricity", note)
    yield _build_figure("Emissions", bill.get("carbon", {}), "location_based_kg_co2e", quote)


def _build_figure(
    name: str,
    part: Mapping[str, Any],
    member: str,
    quote: Mapping[str, Any],
    *,
    unit: str = "",
    note: str = "",
) -> CardFigure:
    if member not in part:
        return CardFigure(name, "not known", note=_find_reason(quote, member))
    shown, likely = _format_quantity(part[member], select_ladder(member))
    return CardFigure(name, shown + unit, part[member]["value"], likely, note)


def _build_money(
    name: str, money: Mapping[str, Any] | None, quote: Mapping[str, Any], member: str, note: str
) -> CardFigure:
    if money is None:
        return CardFigure(name, "not known", note=_find_reason(quote, member))
    shown, low, high = (format_amount(money[end]) for end in ("amount", "low", "high"))
    likely = "" if low == high else _format_likely(low, high)
    code = money["currency_code"]
    return CardFigure(name, f"{shown}{_SPACE}{code}", float(money["amount"]), likely, note, code)


def _format_quantity(quantity: Mapping[str, Any], ladder: UnitLadder) -> tuple[str, str]:
    """Returns a quantity and its interval, in the unit of its size."""
    scale = select_scale(ladder, quantity["value"])
    shown, low, high = (_format_size(quantity[end], scale) for end in ("value", "low", "high"))
    return shown, "" if low == high else _format_likely(low, high)


def _format_size(value: float, scale: UnitScale) -> str:
    """Returns a value in a unit with three digits, which is more than its interval is sure of."""
    rounded = float(f"{value / scale.factor:.{_DIGITS}g}")
    places = max(0, _DIGITS - 1 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    text = f"{rounded:,.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{localize_number(text)}{_SPACE}{scale.unit}".rstrip(_SPACE)


def _format_likely(low: str, high: str) -> str:
    """Returns an interval in words. A unit that both ends have is said once."""
    _, _, unit = low.partition(_SPACE)
    shared = unit and high.endswith(f"{_SPACE}{unit}")
    return f"likely {low.removesuffix(f'{_SPACE}{unit}') if shared else low} to {high}"


def format_amount(amount: str) -> str:
    """Returns an amount without cents from a thousand on, and with four digits below one."""
    value = Decimal(amount)
    if abs(value) >= _WHOLE_FROM:
        return localize_number(f"{value:,.0f}")
    if abs(value) >= _CENT_FROM or not value:
        return localize_number(f"{value:,.2f}")
    return format_number(float(value))


def _find_reason(quote: Mapping[str, Any], member: str) -> str:
    """Returns why a figure is absent, or an empty string."""
    found = [gap for gap in quote["gaps"] if member and f"/{member}" in gap["pointer"]]
    return str(min(found, key=lambda gap: len(gap["pointer"]))["detail"]) if found else ""


def _get_workload(quote: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(iter(quote["requests"].values()))["workload"]
    return found
