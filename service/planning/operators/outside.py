"""Operators outside the blocks: token table, head and loss, and the optimizer's step."""

from collections.abc import Iterator
from typing import NamedTuple

from service.planning.models.profile import KernelChoice, ModelProfile, OperatorFusion
from service.planning.operators.kinds import OperatorKind, OperatorWork
from service.planning.operators.shapes import DeviceShard, PassFormats, build_gemm, build_operators
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.software.frameworks import Framework
from service.planning.workload import LossImplementation

_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]


class LossPasses(NamedTuple):
    """Passes of a loss over the logits: at the width of the activations, and in FP32."""

    narrow: float
    wide: float
    kernels: float


LOSS_PASSES = {
    OperatorFusion.EAGER: (LossPasses(1.0, 3.0, 3.0), LossPasses(1.0, 5.0, 4.0)),
    OperatorFusion.FUSED: (LossPasses(1.0, 9.0, 8.0), LossPasses(1.0, 3.0, 3.0)),
    OperatorFusion.COMPILED: (LossPasses(2.0, 0.0, 2.0), LossPasses(2.0, 0.0, 1.0)),
}
"""Forward and backward. Eager: the logits are widened (r, W) and their log-probabilities taken (R, W);

backward a gradient of zeros is filled (W), taken through the softmax (2 R, W) and narrowed (R, w). Fused is
Megatron's loss over a divided vocabulary: widened, largest taken, subtracted, exponentiated, summed and
divided in separate kernels, and multiplied by the gradient and narrowed backward. A compiler leaves them
narrow.
"""

FUSED_LOSS = (LossPasses(1.0, 0.0, 1.0), LossPasses(2.0, 0.0, 1.0))
"""A kernel for the whole loss reads the logits, and backward writes the gradient over them."""

CHUNKS = 8.0
"""Chunks into which a chunked loss splits the logits."""


def embedding_operators(
    profile: ModelProfile, shard: DeviceShard, widths: PassFormats, *, backward: bool = False
) -> Iterator[OperatorWork]:
    """Rows of the token table for each position, and backward their gradients added to it."""
    if not profile.table_tensors:
        return
    size = float(profile.table_tensors[0].shape[-1])
    tokens = shard.tokens / shard.shared
    moved = tokens * size * (widths.element + (2.0 * widths.gradient if backward else widths.element))
    yield OperatorWork(
        "embedding_gradient" if backward else "embedding",
        OperatorKind.GATHER,
        widths.wide,
        0.0,
        moved,
        2.0 if backward else 1.0,
        row_bytes=size * widths.element,
        backward=backward,
    )


def head_operators(
    profile: ModelProfile,
    shard: DeviceShard,
    widths: PassFormats,
    choice: KernelChoice,
    *,
    loss: LossImplementation,
    backward: bool = False,
) -> Iterator[OperatorWork]:
    """Yields the operators after the blocks, the logits of every position and the loss.

    Tensor parallelism divides the vocabulary. The head is multiplied in the format of the activations.
    """
    wide = widths._replace(matrix=widths.wide, operand=widths.element, cast=0.0, packed=0.0, master=0.0)
    yield from build_operators(
        profile.operators.get_outside_templates(choice), shard, wide, backward=backward
    )
    if not profile.vocabulary_size:
        return
    vocabulary = profile.vocabulary_size / shard.tensor
    inputs = profile.head_flops_per_token / (2.0 * profile.vocabulary_size)
    rows, kernels = shard.tokens, 1.0
    if loss in (LossImplementation.CHUNKED, LossImplementation.FUSED):
        rows, kernels = rows / CHUNKS, CHUNKS
    format_of, element = widths.wide, widths.element

    def build_product(name: str, shape: tuple[float, float, float], result: float) -> OperatorWork:
        return build_gemm(name, shape, format_of, operand=element, result=result, kernels=kernels)

    if not backward:
        yield build_product("head", (rows, vocabulary, inputs), element)
    else:
        yield build_product("head_input_gradient", (rows, inputs, vocabulary), element)
    if backward and choice.trained is None:
        yield build_product("head_weight_gradient", (inputs, vocabulary, rows), 2.0 * widths.gradient)
    yield loss_operator(
        shard.tokens * vocabulary, widths, choice.fusion, loss=loss, chunks=kernels, backward=backward
    )


def loss_operator(
    logits: float,
    widths: PassFormats,
    fusion: OperatorFusion,
    *,
    loss: LossImplementation,
    chunks: float = 1.0,
    backward: bool = False,
) -> OperatorWork:
    """Returns the loss over ``logits`` elements on one device, in ``chunks``."""
    element = widths.element
    passes = (FUSED_LOSS if loss is LossImplementation.FUSED else LOSS_PASSES[fusion])[backward]
    wide_bytes = _FP32_BYTES if loss is not LossImplementation.NARROW else element
    return OperatorWork(
        "loss_gradient" if backward else "loss",
        OperatorKind.MEMORY,
        widths.wide,
        5.0 * logits,
        logits * (passes.narrow * element + passes.wide * wide_bytes),
        passes.kernels * chunks,
        backward=backward,
    )


_FUSED_STEP = frozenset(
    {
        Framework.MEGATRON_LM,
        Framework.MEGATRON_CORE,
        Framework.INTERNEVO,
        Framework.MEGATRON_DEEPSPEED,
        Framework.DEEPSPEED,
        Framework.TORCHTUNE,
    }
)
STEP_PASSES = 3.0
"""Passes of PyTorch's step by lists of tensors for each pass of a fused step."""


def optimizer_operators(
    *,
    gradient_bytes: float,
    master_bytes: float,
    weight_bytes: float,
    state_bytes: float,
    framework: Framework,
) -> Iterator[OperatorWork]:
    """Yields the norm of the gradients and the update of one device's state, given in bytes.

    The update reads gradients, master weights (or weights where there are none) and states, and writes
    masters, weights and states.
    """
    yield OperatorWork(
        "gradient_norm", OperatorKind.MEMORY, NumberFormat.FP32, 0.0, 3.0 * gradient_bytes, 4.0
    )
    updated = gradient_bytes + 2.0 * state_bytes + 2.0 * master_bytes + weight_bytes
    passes = 1.0 if framework in _FUSED_STEP else STEP_PASSES
    yield OperatorWork(
        "optimizer", OperatorKind.MEMORY, NumberFormat.FP32, 0.0, passes * updated, 4.0 * passes
    )
