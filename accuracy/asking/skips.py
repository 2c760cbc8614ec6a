"""Reasons for skipping a row, as a closed list."""

from enum import StrEnum


class SkipReason(StrEnum):
    """Reason for skipping a row. All but the last two are facts in neither the row nor the catalog."""

    MODEL_SHAPE_UNKNOWN = "MODEL_SHAPE_UNKNOWN"
    ACCELERATOR_UNKNOWN = "ACCELERATOR_UNKNOWN"
    LAYOUT_UNKNOWN = "LAYOUT_UNKNOWN"
    BATCH_UNKNOWN = "BATCH_UNKNOWN"
    LENGTHS_UNKNOWN = "LENGTHS_UNKNOWN"
    METRIC_NOT_ANSWERED = "METRIC_NOT_ANSWERED"
    """No answer has the metric yet. Such rows do not count."""
    NOT_MODELLED_YET = "NOT_MODELLED_YET"
    """The shape of the question, or the model behind it, does not support a fact of the row."""


class SkippedRowError(Exception):
    """A row that has no question."""

    def __init__(self, reason: SkipReason, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")
