"""Learned tensors of a layer, and the side along which each is divided."""

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class TensorSplit(StrEnum):
    """Side along which tensor parallelism cuts a tensor; experts are also cut by expert parallelism."""

    NONE = "none"
    COLUMN = "column"
    ROW = "row"
    VOCABULARY = "vocabulary"
    EXPERT = "expert"


class LayerTensor(NamedTuple):
    """One learned tensor of a layer.

    ``multiplied`` is the share of tokens that multiply with it: 1 for a weight matrix, experts per
    token over experts for an expert, 0 for biases, norms and look-up tables. A tensor that is not
    ``stored`` belongs to an earlier layer: it is multiplied again but takes no room. With one ``of_images``
    only positions of images multiply, and ``multiplied`` is their share.
    """

    name: str
    shape: tuple[int, ...]
    split: TensorSplit
    multiplied: float = 0.0
    active: float = 1.0
    stored: bool = True
    of_images: bool = False

    @property
    def multiplied_by_text(self) -> float:
        """Share of the tokens of text that multiply with it."""
        return 0.0 if self.of_images else self.multiplied

    @property
    def elements(self) -> int:
        """Number of elements that are multiplied."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Number of elements that are stored."""
        return self.elements if self.stored else 0


def build_matrix(name: str, rows: int, columns: int, split: TensorSplit = TensorSplit.NONE) -> LayerTensor:
    """Builds a matrix that every token multiplies."""
    return LayerTensor(name, (rows, columns), split, multiplied=1.0)


def build_vectors(
    present: bool,  # noqa: FBT001
    name: str,
    size: int,
    split: TensorSplit = TensorSplit.NONE,
) -> Iterator[LayerTensor]:
    """Yields a vector if it is present."""
    if present:
        yield LayerTensor(name, (size,), split)
