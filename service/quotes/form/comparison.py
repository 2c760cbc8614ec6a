"""Comparison of a question with those that were kept beside it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from service.kit.reports.numbers import NOT_KNOWN
from service.quotes.form.card import AnswerCard, CardFigure

_LEAST_CHANGE: Final = 0.005


class ComparedAnswer(NamedTuple):
    """A column: a question in words, its address, and its card or the reason why it has none."""

    subject: str
    address: str
    card: AnswerCard | None
    refusal: str = ""
    removal: str = ""
    """Address of the page without the column; empty for the present question."""


class ComparedCell(NamedTuple):
    """A figure of a column, and its change against the first column."""

    shown: str
    change: str = ""


class ComparedRow(NamedTuple):
    """A figure over all columns."""

    name: str
    cells: Sequence[ComparedCell]


def compare_answers(columns: Sequence[ComparedAnswer]) -> list[ComparedRow]:
    """Returns a row for each figure that a column has, in the order of the cards."""
    cards = [column.card for column in columns]
    names = dict.fromkeys(figure.name for card in cards if card for figure in card.figures)
    verdicts = [ComparedCell(card.verdict if card else NOT_KNOWN) for card in cards]
    return [ComparedRow("Memory", verdicts), *(_compare_figure(name, cards) for name in names)]


def _compare_figure(name: str, cards: Sequence[AnswerCard | None]) -> ComparedRow:
    found = [_find_figure(name, card) for card in cards]
    first = found[0]
    cells = [
        ComparedCell(figure.shown, "" if figure is first else _format_change(first, figure))
        for figure in found
    ]
    return ComparedRow(name, cells)


def _find_figure(name: str, card: AnswerCard | None) -> CardFigure:
    figures = card.figures if card else []
    return next((figure for figure in figures if figure.name == name), CardFigure(name, "none"))


def _format_change(first: CardFigure, figure: CardFigure) -> str:
    if not first.value or figure.value is None or first.currency_code != figure.currency_code:
        return ""
    share = figure.value / first.value - 1
    if abs(share) < _LEAST_CHANGE:
        return "the same"
    return f"{abs(share):.0%} {'more' if share > 0 else 'less'}"
