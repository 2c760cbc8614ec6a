"""Memory traffic of norms, activations, residuals, dropout and rotations.

Bytes of memory-bound operators are counted in elements that their kernels read and write per token: eager
PyTorch runs one kernel per arithmetic step, fused kernels (Apex, Transformer Engine, Liger) and compiled
graphs one per chain (Ivanov et al. 2021 count the same for BERT).
"""

from service.planning.models.profile.layer_operators.kernels import KernelChoice, OperatorFusion
from service.planning.models.profile.layer_operators.templates import MovedElements, StreamedTemplate

_NORM_FLOPS = 5.0
_ACTIVATION_FLOPS = 8.0
SOFTMAX_FLOPS = 5.0


def compute_norm_traffic(size: float, kind: str, choice: KernelChoice) -> tuple[MovedElements, MovedElements]:
    """Returns a norm over ``size`` elements: one kernel in PyTorch, except for an unfused RMS norm."""
    flops, fusion = _NORM_FLOPS * size, choice.fusion
    if kind == "rms" and fusion is OperatorFusion.EAGER and not choice.one_norm_kernel:
        return (
            MovedElements(whole=4 * size, whole_wide=7 * size, kernels=6, flops=flops),
            MovedElements(whole=6 * size, whole_wide=12 * size, kernels=9, flops=2 * flops),
        )
    reads = 3.0 if kind in ("group", "batch") else 2.0
    behind = 3.0 if kind == "rms" or fusion is OperatorFusion.COMPILED else 5.0
    return (
        MovedElements(whole=reads * size, kernels=1, flops=flops),
        MovedElements(whole=behind * size, kernels=2, flops=2 * flops),
    )


def split_traffic(pair: tuple[MovedElements, MovedElements]) -> tuple[MovedElements, MovedElements]:
    """Returns the same traffic over elements that tensor parallelism divides."""
    first, second = (
        each._replace(split=each.whole, split_wide=each.whole_wide, whole=0.0, whole_wide=0.0)
        for each in pair
    )
    return first, second


def build_residual(size: float, fusion: OperatorFusion) -> StreamedTemplate:
    """Builds the sum of a layer's output and its input; a compiler writes it with the norm after it."""
    moved = 2.0 if fusion is OperatorFusion.COMPILED else 3.0
    kernels = 0.0 if fusion is OperatorFusion.COMPILED else 1.0
    each = MovedElements(whole=moved * size, kernels=kernels, flops=size)
    return StreamedTemplate("residual", each, each)


def build_dropout(size: float, fusion: OperatorFusion) -> StreamedTemplate:
    """Builds dropout: elements and a mask of one byte, half an element.

    Fused into the residual if possible.
    """
    if fusion is OperatorFusion.EAGER:
        return StreamedTemplate(
            "dropout", MovedElements(whole=2.5 * size, kernels=1), MovedElements(whole=2.5 * size, kernels=1)
        )
    return StreamedTemplate(
        "dropout", MovedElements(whole=0.5 * size), MovedElements(whole=2.5 * size, kernels=1)
    )


def build_activation(size: float, choice: KernelChoice, *, gated: bool) -> StreamedTemplate:
    """Builds the activation function, and the product with the gate."""
    fusion = choice.fusion
    if choice.built and not gated:
        return StreamedTemplate("activation", MovedElements(), MovedElements())
    flops = _ACTIVATION_FLOPS * size
    if not gated:
        forward, backward = (2.0, 1.0), (3.0, 1.0)
    elif fusion is OperatorFusion.EAGER:
        forward, backward = (5.0, 2.0), (9.0, 3.0)
    else:
        forward, backward = (3.0, 1.0), (5.0, 1.0)
    return StreamedTemplate(
        "activation",
        MovedElements(split=forward[0] * size, kernels=forward[1], flops=flops),
        MovedElements(split=backward[0] * size, kernels=backward[1], flops=2 * flops),
    )


def build_rotary(size: float, fusion: OperatorFusion) -> StreamedTemplate:
    """Builds the rotation of queries and keys: read and written once, or in five kernels each."""
    moved, kernels = (10.0, 10.0) if fusion is OperatorFusion.EAGER else (2.0, 2.0)
    if fusion is OperatorFusion.COMPILED:
        kernels = 1.0
    each = MovedElements(split=moved * size, kernels=kernels, flops=3.0 * size)
    return StreamedTemplate("rotary", each, each)


def unsplit_operator(streamed: StreamedTemplate) -> StreamedTemplate:
    """Returns the same work for a layer that tensor parallelism does not divide."""
    return StreamedTemplate(
        streamed.name, _unsplit_traffic(streamed.forward), _unsplit_traffic(streamed.backward)
    )


def _unsplit_traffic(traffic: MovedElements) -> MovedElements:
    return traffic._replace(whole=traffic.split, split=0.0)
