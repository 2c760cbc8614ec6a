"""Hints for the recipe of a training run: learning rate, warm-up, and where small work stops scaling."""

from service.planning.cases import TrainingCase
from service.planning.precision import Optimizer
from service.planning.training.scaling import (
    LAYERWISE_BATCH,
    SMALL_DEVICE_BATCH,
    SMALL_MODEL_PARAMETERS,
    linear_learning_rate,
    square_root_learning_rate,
)
from service.schemas.run_answers import RecipeHint

_PLAIN = frozenset({Optimizer.SGD, Optimizer.MOMENTUM})
"""Optimizers that do not divide by the size of the gradient."""

_LAYERWISE = frozenset({Optimizer.LARS, Optimizer.LAMB})


def list_hints(case: TrainingCase) -> list[RecipeHint]:
    """What a batch of this size asks of the recipe; the estimate does not depend on it."""
    workload, devices = case.workload, case.cluster.accelerator_count
    batch, known = case.step_sequences, case.learning_rate
    held = workload.micro_batch_size * workload.micro_batches
    factor = batch / (held if known is None else known.batch_size)
    found = _list_learning_rates(case, factor)
    if factor > 1.0:
        detail = "raise the learning rate from near 0 over the first steps, 5 to 10 epochs of small datasets"
        found.append({"code": "WARM_UP", "detail": detail})
    if batch > LAYERWISE_BATCH and workload.optimizer not in _LAYERWISE:
        detail = f"{batch} sequences of a step exceed {LAYERWISE_BATCH}: LARS or LAMB, with warm-up"
        found.append({"code": "LAYERWISE_LEARNING_RATES", "detail": detail})
    if devices > 1 and case.profile.parameter_count < SMALL_MODEL_PARAMETERS:
        detail = "models below 100 million parameters scale poorly: their steps are short"
        found.append({"code": "SMALL_MODEL", "detail": detail})
    if devices > 1 and batch / devices < SMALL_DEVICE_BATCH:
        detail = f"{batch / devices:.3g} sequences of a step on a device; strong scaling ends at 1 to 8"
        found.append({"code": "SMALL_DEVICE_BATCH", "detail": detail})
    return found


def _list_learning_rates(case: TrainingCase, factor: float) -> list[RecipeHint]:
    if factor == 1.0:
        return []
    linear: RecipeHint = {
        "code": "LINEAR_LEARNING_RATE",
        "detail": "the learning rate in proportion to the batch, the rule for SGD",
        "factor": linear_learning_rate(1.0, factor),
    }
    root: RecipeHint = {
        "code": "SQUARE_ROOT_LEARNING_RATE",
        "detail": "the learning rate with the square root of the batch, the rule for adaptive optimizers",
        "factor": square_root_learning_rate(1.0, factor),
    }
    if case.learning_rate is not None:
        linear["learning_rate"] = linear_learning_rate(case.learning_rate.rate, factor)
        root["learning_rate"] = square_root_learning_rate(case.learning_rate.rate, factor)
    return [linear, root] if case.workload.optimizer in _PLAIN else [root, linear]
