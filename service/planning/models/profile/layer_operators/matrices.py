"""Matrices of a layer, the low-rank ones that adapt them, and the gradients of biases."""

from collections.abc import Iterable, Iterator

from service.planning.models.layers import LayerTensor, TensorSplit
from service.planning.models.profile.layer_operators.kernels import KernelChoice
from service.planning.models.profile.layer_operators.templates import (
    MatrixTemplate,
    MovedElements,
    StreamedTemplate,
)


def _build_low_rank(tensor: LayerTensor, choice: KernelChoice, copies: float) -> Iterator[MatrixTemplate]:
    """Yields the two low-rank matrices that adapt a frozen one (Hu et al. 2021)."""
    if choice.trained is None or tensor.name not in choice.trained.names:
        return
    inputs, outputs = tensor.shape[-2:]
    into = tensor.split if tensor.split is not TensorSplit.COLUMN else TensorSplit.NONE
    out = tensor.split if tensor.split is not TensorSplit.ROW else TensorSplit.NONE
    yield MatrixTemplate("low_rank_in", inputs, choice.trained.rank, into, copies)
    yield MatrixTemplate("low_rank_out", choice.trained.rank, outputs, out, copies)


def _build_matrix(
    tensor: LayerTensor, choice: KernelChoice, *, least: float = 0.0, rows_of: str = "entering"
) -> MatrixTemplate:
    """Builds a matrix that every token multiplies; further leading axes are equal diagonal blocks."""
    copies, depth, columns = 1.0, *tensor.shape[-2:]
    for side in tensor.shape[:-2]:
        copies *= side
    return MatrixTemplate(
        tensor.name, depth, columns, tensor.split, copies, choice.trained is None, least, rows_of
    )


def build_matrices(
    tensors: Iterable[LayerTensor],
    choice: KernelChoice,
    *,
    least: float = 0.0,
    source: frozenset[str] = frozenset(),
) -> Iterator[MatrixTemplate]:
    """Yields the matrices that tokens multiply. ``source`` are those that multiply the context instead."""
    for tensor in tensors:
        if not tensor.multiplied_by_text or tensor.split is TensorSplit.EXPERT:
            continue
        rows_of = "context" if tensor.name in source else "entering"
        replicated = least if tensor.name in ("key", "value") else 0.0
        yield _build_matrix(tensor, choice, least=replicated, rows_of=rows_of)
        yield from _build_low_rank(tensor, choice, 1.0)


_JOINED = (
    ("query_key_value", frozenset({"query", "key", "value"})),
    ("gate_up", frozenset({"gate", "up"})),
    ("shared_gate_up", frozenset({"shared_gate", "shared_up"})),
)


def join_matrices(matrices: Iterable[MatrixTemplate], choice: KernelChoice) -> Iterator[MatrixTemplate]:
    """Yields matrices with the same input as one, as frameworks with fused kernels store them."""
    rest = list(matrices)
    if not choice.joins:
        yield from rest
        return
    for name, parts in _JOINED:
        found = [each for each in rest if each.name in parts and each.split is TensorSplit.COLUMN]
        alike = {(each.depth, each.rows_of, each.trained) for each in found}
        if len(found) < 2 or len(alike) > 1:  # noqa: PLR2004
            continue
        least = min((each.least for each in found), default=0.0)
        yield found[0]._replace(name=name, columns=sum(each.columns for each in found), least=least)
        rest = [each for each in rest if each not in found]
    yield from rest


def build_bias_gradients(tensors: Iterable[LayerTensor]) -> Iterator[StreamedTemplate]:
    """Yields sums of output gradients over all tokens, one for each bias."""
    for tensor in tensors:
        if tensor.name.endswith("bias") and len(tensor.shape) == 1:
            split = tensor.split is not TensorSplit.NONE
            each = MovedElements(
                split=tensor.shape[0] * split, whole=tensor.shape[0] * (not split), kernels=1
            )
            yield StreamedTemplate("bias_gradients", MovedElements(), each)
