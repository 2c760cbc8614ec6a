"""Card of an answer: what a person wants to know first, in whole numbers and words."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from service.kit.locales import format_count
from service.kit.reports.numbers import BYTES, KWH, format_number, select_ladder
from service.kit.reports.rounded import round_in_unit, round_money, round_quantity

_MONTH_SECONDS: Final = 730 * 3600
_SURE: Final = 0.95


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
    needed, likely = round_quantity(total, BYTES)
    if "fits" not in memory:
        return f"Needs {needed}", "", f"{likely[:1].upper()}{likely[1:]}." if likely else ""
    usable = memory["usable_bytes"]
    detail = f"{needed} of the {round_in_unit(usable, BYTES)} that a device has for it"
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
    note = f"{round_quantity(energy, KWH).shown} at the meter" if energy else ""
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
    shown, likely = round_quantity(part[member], select_ladder(member))
    return CardFigure(name, shown + unit, part[member]["value"], likely, note)


def _build_money(
    name: str, money: Mapping[str, Any] | None, quote: Mapping[str, Any], member: str, note: str
) -> CardFigure:
    if money is None:
        return CardFigure(name, "not known", note=_find_reason(quote, member))
    shown, likely = round_money(money)
    return CardFigure(name, shown, float(money["amount"]), likely, note, money["currency_code"])


def _find_reason(quote: Mapping[str, Any], member: str) -> str:
    """Returns why a figure is absent, or an empty string."""
    found = [gap for gap in quote["gaps"] if member and f"/{member}" in gap["pointer"]]
    return str(min(found, key=lambda gap: len(gap["pointer"]))["detail"]) if found else ""


def _get_workload(quote: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(iter(quote["requests"].values()))["workload"]
    return found
