"""Hints for the recipe of a training run: learning rate, warm-up, and where small work stops scaling."""

from typing import NamedTuple

from service.planning.cases import TrainingCase
from service.planning.precision import Optimizer
from service.planning.training.scaling import (
    LAYERWISE_BATCH,
    SMALL_DEVICE_BATCH,
    SMALL_MODEL_PARAMETERS,
    linear_learning_rate,
    square_root_learning_rate,
)

_PLAIN = frozenset({Optimizer.SGD, Optimizer.MOMENTUM})
"""Optimizers that do not divide by the size of the gradient."""
_LAYERWISE = frozenset({Optimizer.LARS, Optimizer.LAMB})


class RecipeHint(NamedTuple):
    """A change of the recipe; of a learning rate with its factor, and with the rate where one is known."""

    code: str
    detail: str
    factor: float | None = None
    learning_rate: float | None = None


def list_recipe_hints(case: TrainingCase) -> list[RecipeHint]:
    """Lists the changes that a batch of this size asks for; the estimate does not depend on them."""
    if not case.batch_known:
        return []
    workload, devices = case.workload, case.cluster.accelerator_count
    batch, known = case.step_sequences, case.learning_rate
    held = workload.micro_batch_size * workload.micro_batches
    factor = batch / (held if known is None else known.batch_size)
    found = _list_learning_rates(case, factor)
    if factor > 1.0:
        detail = "raise the learning rate from near 0 over the first steps, 5 to 10 epochs of small datasets"
        found.append(RecipeHint("WARM_UP", detail))
    if batch > LAYERWISE_BATCH and workload.optimizer not in _LAYERWISE:
        detail = f"{batch} sequences of a step exceed {LAYERWISE_BATCH}: LARS or LAMB, with warm-up"
        found.append(RecipeHint("LAYERWISE_LEARNING_RATES", detail))
    if devices > 1 and case.profile.parameter_count < SMALL_MODEL_PARAMETERS:
        detail = "models below 100 million parameters scale poorly: their steps are short"
        found.append(RecipeHint("SMALL_MODEL", detail))
    if devices > 1 and batch / devices < SMALL_DEVICE_BATCH:
        detail = f"{batch / devices:.3g} sequences of a step on a device; strong scaling ends at 1 to 8"
        found.append(RecipeHint("SMALL_DEVICE_BATCH", detail))
    return found


def _list_learning_rates(case: TrainingCase, factor: float) -> list[RecipeHint]:
    if factor == 1.0:
        return []
    rate = None if case.learning_rate is None else case.learning_rate.rate
    linear = RecipeHint(
        "LINEAR_LEARNING_RATE",
        "the learning rate in proportion to the batch, the rule for SGD",
        linear_learning_rate(1.0, factor),
        None if rate is None else linear_learning_rate(rate, factor),
    )
    root = RecipeHint(
        "SQUARE_ROOT_LEARNING_RATE",
        "the learning rate with the square root of the batch, the rule for adaptive optimizers",
        square_root_learning_rate(1.0, factor),
        None if rate is None else square_root_learning_rate(rate, factor),
    )
    return [linear, root] if case.workload.optimizer in _PLAIN else [root, linear]
