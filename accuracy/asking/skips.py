"""Why a row cannot be asked: a closed list."""

from enum import StrEnum


class SkipReason(StrEnum):
    """Why a row is not estimated. All but the last two are facts in neither the row nor the catalog."""

    MODEL_SHAPE_UNKNOWN = "MODEL_SHAPE_UNKNOWN"
    ACCELERATOR_UNKNOWN = "ACCELERATOR_UNKNOWN"
    LAYOUT_UNKNOWN = "LAYOUT_UNKNOWN"
    BATCH_UNKNOWN = "BATCH_UNKNOWN"
    LENGTHS_UNKNOWN = "LENGTHS_UNKNOWN"
    METRIC_NOT_ANSWERED = "METRIC_NOT_ANSWERED"
    """The metric is read from no answer yet; such rows count for nothing."""
    NOT_MODELLED_YET = "NOT_MODELLED_YET"
    """The question's shape, or the model of it, does not take a fact of the row."""


class SkippedRowError(Exception):
    """A row that cannot be asked."""

    def __init__(self, reason: SkipReason, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")
