"""Example requests of the API document, the guides and the first start, with their answers."""

from typing import Any, Final

from service.app.examples import (
    access,
    approvals,
    budgets,
    catalog,
    estimates,
    evidence,
    nodes,
    plans,
    quotes,
    webhooks,
)
from service.app.examples.estimates import REFERENCE_QUESTION, REFERENCE_SITE
from service.catalog.registry import RESOURCES

__all__ = ["EXAMPLES", "EXAMPLE_IDS", "REFERENCE_QUESTION", "REFERENCE_SITE", "build_answers"]

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


def build_answers() -> dict[str, Any]:
    """Returns a fresh service's answers to the examples by operation, and by status if it has several."""
    return {
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
