"""Weights, gradients, master weights and optimizer states: bytes of a parameter, of a tensor, of a device.

Optimizers: Kingma and Ba 2015 (Adam); Shazeer and Stern 2018 (Adafactor: one row and one column of means for
a matrix); Dettmers et al. 2022 (8 bits a state with an FP32 scale for 256 of them, tensors below 4,096
elements in FP32); Chen et al. 2023 (Lion); You et al. 2017, 2020 (LARS, LAMB); Gupta et al. 2018 with the
blocks of Shi et al. 2023 (Shampoo); Jordan et al. 2024 (Muon: one momentum for matrices inside blocks,
AdamW for the rest); Zhao et al. 2024 (GaLore, table 1: m r + 2 n r for an m x n matrix, m the smaller side).
"""

from collections.abc import Iterable
from typing import NamedTuple

from service.planning.figures import rounded_up
from service.planning.models.layers import LayerTensor, TensorSplit
from service.planning.models.profile import StageParameters
from service.planning.parallelism import Parallelism
from service.planning.precision import (
    ELEMENT_BYTES,
    OPTIMIZER_STATES,
    NumberFormat,
    Optimizer,
    TrainingRecipe,
)

EIGHT_BIT_ADAM_BYTES = 2.0 * (1.0 + 4.0 / 256)
"""Bytes of two states of 8 bits, each with an FP32 scale for a block of 256."""

LEAST_8BIT_ELEMENTS = 4096
"""Elements below which tensors have FP32 states."""

SHAMPOO_BLOCK = 1024
"""Side of the largest preconditioner; larger tensors are split into blocks."""

EIGHT_BIT = frozenset({Optimizer.ADAM_8BIT, Optimizer.PAGED_ADAMW_8BIT})


class StateBytes(NamedTuple):
    """Bytes of the training state, of one parameter or of a device."""

    weights: float
    gradients: float
    master_weights: float
    optimizer_states: float

    @property
    def total(self) -> float:
        """Sum of all members."""
        return self.weights + self.gradients + self.master_weights + self.optimizer_states


class ResidentParameters(NamedTuple):
    """Parameters of which a device holds the weight, the gradient and the optimizer state."""

    weights: float
    gradients: float
    states: float


def _get_element_bytes(number_format: NumberFormat | None) -> float:
    return ELEMENT_BYTES[number_format] if number_format else 0.0


def state_bytes_per_parameter(recipe: TrainingRecipe, optimizer: Optimizer) -> StateBytes:
    """Returns the bytes of each parameter: 16 for mixed-precision and for pure FP32 Adam.

    Applies to optimizers with equal states for each parameter, and to 8-bit Adam in tensors that are not
    small.
    """
    if optimizer in EIGHT_BIT:
        states = EIGHT_BIT_ADAM_BYTES
    else:
        states = OPTIMIZER_STATES[optimizer] * ELEMENT_BYTES[recipe.optimizer_states]
    return StateBytes(
        weights=ELEMENT_BYTES[recipe.weights],
        gradients=ELEMENT_BYTES[recipe.gradients]
        + _get_element_bytes(recipe.accumulated_gradients)
        + _get_element_bytes(recipe.main_gradients),
        master_weights=_get_element_bytes(recipe.master),
        optimizer_states=states,
    )


def shard_parameters(parameters: StageParameters, layout: Parallelism) -> ResidentParameters:
    """Returns one device's part of the ``parameters`` of a stage (Rajbhandari et al. 2020, section 5)."""
    dense = parameters.split / layout.tensor + parameters.whole
    tables = parameters.tables / layout.tensor
    shards = layout.compute_shards(layout.replicas)
    expert = parameters.expert / (layout.tensor * layout.expert)
    expert_shards = layout.compute_shards(layout.replicas // layout.expert)
    return ResidentParameters(
        weights=dense / shards.weights + expert / expert_shards.weights + tables,
        gradients=dense / shards.gradients + expert / expert_shards.gradients + tables,
        states=dense / shards.optimizer_states + expert / expert_shards.optimizer_states + tables,
    )


def state_bytes(held: ResidentParameters, recipe: TrainingRecipe, optimizer_states: float) -> StateBytes:
    """Returns the training state on a device whose optimizer has ``optimizer_states`` bytes."""
    gradients = ELEMENT_BYTES[recipe.gradients] + _get_element_bytes(recipe.accumulated_gradients)
    return StateBytes(
        weights=held.weights * ELEMENT_BYTES[recipe.weights],
        gradients=held.gradients * gradients + held.states * _get_element_bytes(recipe.main_gradients),
        master_weights=held.states * _get_element_bytes(recipe.master),
        optimizer_states=optimizer_states,
    )


def tensor_state_bytes(  # noqa: PLR0911 - one optimizer a case
    tensor: LayerTensor, optimizer: Optimizer, *, element_bytes: float, rank: int, inside: bool
) -> float:
    """Returns the bytes of an optimizer's state for one whole tensor; ``inside`` a block or not."""
    size, shape = float(tensor.size), tensor.shape
    adam = 2.0 * size * element_bytes
    if optimizer in EIGHT_BIT:
        return size * EIGHT_BIT_ADAM_BYTES if size >= LEAST_8BIT_ELEMENTS else 2.0 * size * 4.0
    if optimizer in OPTIMIZER_STATES:
        return OPTIMIZER_STATES[optimizer] * size * element_bytes
    if optimizer is Optimizer.SHAMPOO:
        return _shampoo_elements(shape) * element_bytes
    if len(shape) < 2:  # noqa: PLR2004
        return size * element_bytes if optimizer is Optimizer.ADAFACTOR else adam
    rows, columns = shape[-2:]
    match optimizer:
        case Optimizer.ADAFACTOR:
            return size * (1.0 / rows + 1.0 / columns) * element_bytes
        case Optimizer.MUON:
            return size * element_bytes if inside else adam
        case Optimizer.GALORE if inside and rank < min(rows, columns):
            low = size / (rows * columns) * rank * (min(rows, columns) + 2.0 * max(rows, columns))
            return low * element_bytes
        case _:
            return adam


def _shampoo_elements(shape: tuple[int, ...]) -> float:
    """Returns both preconditioners and their roots of each block, and the momentum."""
    size, factors = 1.0, 0.0
    for side in shape:
        size *= side
    for side in shape[-2:]:
        blocks = rounded_up(side / SHAMPOO_BLOCK)
        # Blocks along this side for each strip along the other.
        other = size / side / (shape[0] if len(shape) > 2 else 1.0)  # noqa: PLR2004
        strips = rounded_up(other / SHAMPOO_BLOCK)
        factors += 2.0 * (side / blocks) ** 2 * blocks * strips
    leading = shape[0] if len(shape) > 2 else 1.0  # noqa: PLR2004
    return factors * leading + size


def optimizer_bytes(
    tensors: Iterable[tuple[LayerTensor, float]],
    optimizer: Optimizer,
    layout: Parallelism,
    *,
    element_bytes: float,
    rank: int,
    inside: bool,
) -> float:
    """Returns a device's bytes for ``tensors``, each with its number of occurrences, over its shards."""
    shards = layout.compute_shards(layout.replicas).optimizer_states
    expert_shards = layout.compute_shards(layout.replicas // layout.expert).optimizer_states
    total = 0.0
    for tensor, count in tensors:
        size = count * tensor_state_bytes(
            tensor, optimizer, element_bytes=element_bytes, rank=rank, inside=inside
        )
        match tensor.split:
            case TensorSplit.NONE:
                total += size / shards
            case TensorSplit.EXPERT:
                total += size / (layout.tensor * layout.expert * expert_shards)
            case _:
                total += size / (layout.tensor * shards)
    return total
