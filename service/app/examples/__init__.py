"""Example requests of the API document, the guides and the first start, with their answers."""

from typing import Any, Final

from service.app.examples import (
    access,
    approvals,
    budgets,
    catalog,
    estimates,
    evidence,
    named,
    nodes,
    plans,
    quotes,
    webhooks,
)
from service.app.reference_question import REFERENCE_QUESTION, REFERENCE_SITE
from service.catalog.registry import RESOURCES

__all__ = [
    "EXAMPLES",
    "EXAMPLE_IDS",
    "NAMED_EXAMPLES",
    "REFERENCE_QUESTION",
    "REFERENCE_SITE",
    "build_answers",
    "round_figures",
]

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    **estimates.EXAMPLES,
    **catalog.EXAMPLES,
    **access.EXAMPLES,
    **nodes.EXAMPLES,
    **evidence.EXAMPLES,
    **plans.EXAMPLES,
    **quotes.EXAMPLES,
    **approvals.EXAMPLES,
    **budgets.EXAMPLES,
    **webhooks.EXAMPLES,
}
"""A request body for each operation that takes one."""
NAMED_EXAMPLES: Final = named.name_requests(EXAMPLES)
"""Request bodies by operation and name; the first is that of ``EXAMPLES``."""
EXAMPLE_IDS: Final[dict[str, str]] = {
    **{resource.path: resource.example["id"] for resource in RESOURCES.values()},
    **access.IDS,
    **nodes.IDS,
    **evidence.IDS,
    **plans.IDS,
    **quotes.IDS,
    **approvals.IDS,
    **budgets.IDS,
    **webhooks.IDS,
}
"""An id for the path of each collection."""


_FIGURE_DIGITS = 9
"""Significant digits of the figures in the document: the last ones of a float depend on the processor."""


def round_figures(answer: Any) -> Any:  # noqa: ANN401
    """Returns an answer as the document shows it, with its floats in nine significant digits."""
    if isinstance(answer, dict):
        return {name: round_figures(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [round_figures(value) for value in answer]
    return float(f"{answer:.{_FIGURE_DIGITS}g}") if isinstance(answer, float) else answer


def build_answers() -> dict[str, Any]:
    """Returns a fresh service's answers to the examples by operation, and by status if it has several."""
    answers = {
        **estimates.build_answers(),
        **catalog.build_answers(),
        **access.ANSWERED,
        **nodes.ANSWERED,
        **nodes.build_benchmarks(),
        **evidence.build_answers(),
        **plans.build_answers(),
        **quotes.build_answers(),
        **approvals.build_answers(),
        **budgets.ANSWERED,
        **webhooks.ANSWERED,
    }
    return {name: round_figures(answer) for name, answer in answers.items()}
