"""Memory of the fullest device, the limits of each dimension, and changes that make a case fit."""

from service.planning.cases import InferenceCase, TrainingCase
from service.planning.estimates.memory.footprint import MemoryFootprint, RequestCache
from service.planning.estimates.memory.serving import estimate_concurrency, estimate_inference
from service.planning.estimates.memory.totals import find_setting
from service.planning.estimates.memory.training import estimate_training
from service.planning.notes import AnswerNotes

__all__ = [
    "MemoryFootprint",
    "RequestCache",
    "estimate_concurrency",
    "estimate_memory",
    "find_setting",
]


def estimate_memory(case: TrainingCase | InferenceCase, notes: AnswerNotes) -> MemoryFootprint:
    """Estimates the memory of the fullest device, whether the case fits, and the limits of each dimension."""
    if isinstance(case, TrainingCase):
        return estimate_training(case, notes)
    return estimate_inference(estimate_concurrency(case, notes), notes)
