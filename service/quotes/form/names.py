"""Names of catalog rows as the form shows them."""

from service.resolve.titles import MOST_NAME_CHARACTERS, get_title, list_suggestions, list_titles

__all__ = ["MOST_NAME_CHARACTERS", "get_title", "list_suggestions", "list_titles"]
