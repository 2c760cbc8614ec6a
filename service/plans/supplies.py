"""Where devices come from."""

from service.plans.space import Space
from service.questions.catalog import Catalog
from service.questions.plans import PlanQuestion


def space_of(question: PlanQuestion, catalog: Catalog) -> Space:
    """The clusters of a question and their supplies."""
    raise NotImplementedError
