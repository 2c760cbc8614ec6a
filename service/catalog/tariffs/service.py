"""What a tariff must obey."""

from service.catalog.rows import Document
from service.questions.tariffs import terms_of, to_planning


def checked_terms(document: Document) -> Document:
    """Nothing to add; :class:`PlanningError` for terms that contradict themselves."""
    to_planning(terms_of(document))
    return {}
