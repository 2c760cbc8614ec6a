"""Figures of the candidates of a plan, as the card and the tables show them."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from service.kit.reports.numbers import BYTES, NOT_KNOWN, select_ladder
from service.kit.reports.rounded import (
    RoundedFigure,
    round_amount,
    round_in_unit,
    round_money,
    round_quantity,
)
from service.plans.words import format_time

TRAINING_TIMES: Final = ("duration_seconds",)
SERVING_TIMES: Final = (
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "request_seconds",
)
_SURE: Final = 0.95
_NEARLY_ONE: Final = 0.995


class CardFigure(NamedTuple):
    """A figure of the card. ``likely`` is its 80% interval, ``note`` what it counts or why it is absent."""

    name: str
    shown: str
    likely: str = ""
    note: str = ""
    tone: str = ""
    """Class of the note: good-text, warn-text or none."""


def is_training(question: Mapping[str, Any]) -> bool:
    """Returns true if the work of a question is a training run."""
    return bool(question["workload"]["kind"] == "training")


def get_figure(row: Mapping[str, Any], name: str) -> RoundedFigure | None:
    """Returns a figure of a candidate with its interval, or None."""
    if name not in row:
        return None
    if name == "cost":
        return round_money(row["cost"])
    if name == "headroom_bytes":
        return RoundedFigure(round_in_unit(row[name], BYTES))
    return round_quantity(row[name], select_ladder(name))


def format_chance(row: Mapping[str, Any]) -> str:
    """Returns the probability that a candidate fits, in whole percent that never read as certain."""
    chance = row.get("fit_probability")
    if chance is None:
        return NOT_KNOWN
    if 1 > chance >= _NEARLY_ONE:
        return "over 99%"
    return "under 1%" if 0 < chance <= 1 - _NEARLY_ONE else f"{chance:.0%}"


def list_card_figures(question: Mapping[str, Any], answer: Mapping[str, Any]) -> list[CardFigure]:
    """Returns the figures of the best candidate, with the limits that they keep."""
    row = answer["rows"][0]
    times = _list_training(question, row) if is_training(question) else _list_serving(question, row)
    reason = next((gap["detail"] for gap in answer["gaps"] if gap["pointer"] == "/rows/0/cost"), "")
    cost = _build_cost(question, row) if "cost" in row else CardFigure("Price", NOT_KNOWN, note=reason)
    return [cost, *times, _build_memory(row), *_list_energy(row)]


def _build(name: str, row: Mapping[str, Any], member: str, note: str = "", unit: str = "") -> CardFigure:
    figure = get_figure(row, member)
    if figure is None:
        return CardFigure(name, NOT_KNOWN)
    return CardFigure(name, f"{figure.shown}{unit}", figure.likely, note)


def _build_cost(question: Mapping[str, Any], row: Mapping[str, Any]) -> CardFigure:
    horizon = question["workload"].get("horizon", {}).get("duration_seconds")
    what = "for the run" if is_training(question) else "for the service"
    found = _build("Price", row, "cost", f"for {format_time(horizon)}" if horizon is not None else what)
    budget = question.get("constraints", {}).get("budget")
    cost = row.get("cost")
    if budget is None or cost is None or budget["currency_code"] != cost["currency_code"]:
        return found
    limit = f"of the budget of {round_amount(budget['amount'])}"
    share = Decimal(cost["amount"]) / Decimal(budget["amount"])
    if Decimal(cost["high"]) > Decimal(budget["amount"]):
        return found._replace(note=f"{share:.0%} {limit}; may exceed it", tone="warn-text")
    return found._replace(note=f"{share:.0%} {limit}")


def _list_training(question: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[CardFigure]:
    found = _build("Time of the run", row, "duration_seconds")
    deadline = question.get("constraints", {}).get("duration_seconds")
    if deadline is not None and "duration_seconds" in row:
        limit = f"the deadline of {format_time(deadline)}"
        is_late = row["duration_seconds"]["high"] > deadline
        found = found._replace(
            note=f"may miss {limit}" if is_late else f"likely within {limit}",
            tone="warn-text" if is_late else "good-text",
        )
    yield found
    yield _build("Speed", row, "tokens_per_second", unit=" tokens per second")
    if "model_flops_utilization" in row:
        yield _build("Utilization", row, "model_flops_utilization", "of the peak rate")


def _list_serving(question: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[CardFigure]:
    levels = question["workload"].get("service_levels", {})
    for name, member in zip(
        ("First token after", "Then a token every", "Whole request"), SERVING_TIMES, strict=True
    ):
        if member in row:
            yield _add_level(_build(name, row, member), row[member], levels.get(member))
    if "service_level_share" in row:
        yield _build("Within the service levels", row, "service_level_share", "of the requests")


def _add_level(figure: CardFigure, quantity: Mapping[str, Any], level: float | None) -> CardFigure:
    """Returns a time of a service with the level that it is held to."""
    if level is None:
        return figure
    limit = f"the {format_time(level)} asked for"
    if quantity["high"] > level:
        return figure._replace(note=f"may exceed {limit}", tone="warn-text")
    return figure._replace(note=f"likely within {limit}", tone="good-text")


def _build_memory(row: Mapping[str, Any]) -> CardFigure:
    if "headroom_bytes" not in row:
        return CardFigure("Memory left free", NOT_KNOWN)
    chance = row.get("fit_probability", 1.0)
    note = "of each device"
    if "total_bytes" in row:
        note += f"; {round_in_unit(row['total_bytes']['value'], BYTES)} used"
    if chance < _SURE:
        note += f"; fits in about {round(chance * 100)} of 100 such cases"
    tone = "warn-text" if chance < _SURE else ""
    return CardFigure("Memory left free", round_in_unit(row["headroom_bytes"], BYTES), "", note, tone)


def _list_energy(row: Mapping[str, Any]) -> Iterator[CardFigure]:
    if "facility_kwh" in row:
        yield _build("Energy", row, "facility_kwh", "at the meter")
    if "location_based_kg_co2e" in row:
        yield _build("Emissions", row, "location_based_kg_co2e")
