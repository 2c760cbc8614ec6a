"""Errors of questions without a sound answer."""

from typing import Final


class PlanningError(Exception):
    """A question that contradicts itself or leaves the range in which a formula holds.

    ``pointer`` is the JSON Pointer of the field at fault inside the question; ``code`` is stable.
    """

    def __init__(self, code: str, pointer: str, detail: str) -> None:
        super().__init__(detail)
        self.code: Final = code
        self.pointer: Final = pointer
        self.detail: Final = detail
