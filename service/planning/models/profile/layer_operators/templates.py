"""Shapes of an operator, independent of the layout."""

from typing import NamedTuple

from service.planning.models.layers import TensorSplit
from service.planning.models.profile.layer_operators.kernels import FusedAttention, OperatorFusion


class MatrixTemplate(NamedTuple):
    """A matrix that each token multiplies, ``copies`` of them at once and ``times`` one after the other.

    ``rows_of`` names the positions that multiply it.
    """

    name: str
    depth: float
    columns: float
    split: TensorSplit = TensorSplit.NONE
    copies: float = 1.0
    trained: bool = True
    least: float = 0.0
    """Columns below which tensor parallelism repeats the matrix: the size of a head of keys and values."""
    rows_of: str = "entering"
    times: float = 1.0


class ExpertsTemplate(NamedTuple):
    """Matrices of routed experts; each token multiplies those of ``chosen`` of ``experts``.

    ``is_even`` is true if every expert takes as many tokens.
    """

    name: str
    depth: float
    columns: float
    inward: bool
    """True if tensor parallelism splits the depth (the last matrix) rather than the columns."""
    experts: float
    chosen: float
    trained: bool = True
    times: float = 1.0
    is_even: bool = False
    of_images: bool = False
    """True if positions of images alone multiply them, in place of the others."""


class AttentionTemplate(NamedTuple):
    """Scores and weighted sum of one attention; FLOPs are per token and token of context."""

    name: str
    query_heads: float
    key_value_heads: float
    key_size: float
    value_size: float
    causal: bool
    window: float
    attended: float
    flash: bool
    fused: FusedAttention
    index_flops: float = 0.0
    fusion: OperatorFusion = OperatorFusion.FUSED
    dropout: bool = False
    cross: bool = False
    times: float = 1.0


class ScanTemplate(NamedTuple):
    """A recurrence over the positions: FLOPs and elements moved per token, divided by tensor parallelism."""

    name: str
    flops: float
    elements: float
    times: float = 1.0


class ConvolutionTemplate(NamedTuple):
    """A convolution: output channels times the depth of the kernel, at each position that leaves it."""

    name: str
    input_channels: float
    output_channels: float
    depth: float
    """Input channels of a group times the positions of the kernel."""
    trained: bool = True
    times: float = 1.0


class InteractionTemplate(NamedTuple):
    """Products of every two of ``features`` vectors of a sample."""

    name: str
    features: float
    size: float
    times: float = 1.0


class LookupTemplate(NamedTuple):
    """Rows of an embedding table that a sample looks up and sums."""

    name: str
    lookups: float
    size: float
    times: float = 1.0


class MovedElements(NamedTuple):
    """Elements (narrow) and FP32 elements (wide) read and written per token, in ``kernels`` kernels.

    ``split`` parts are divided by tensor parallelism, ``whole`` ones only under sequence parallelism.
    """

    whole: float = 0.0
    split: float = 0.0
    whole_wide: float = 0.0
    split_wide: float = 0.0
    kernels: float = 0.0
    flops: float = 0.0

    def add_scaled(self, other: "MovedElements", times: float = 1.0) -> "MovedElements":
        """Returns the sum of both, the other multiplied by ``times``."""
        return MovedElements(*[a + b * times for a, b in zip(self, other, strict=True)])


class StreamedTemplate(NamedTuple):
    """A memory-bound operator, forward and backward."""

    name: str
    forward: MovedElements
    backward: MovedElements
    gathers: float = 0.0
    """Elements of a row where rows are read in random order, else 0."""


OperatorTemplate = (
    MatrixTemplate
    | ExpertsTemplate
    | AttentionTemplate
    | ScanTemplate
    | ConvolutionTemplate
    | InteractionTemplate
    | LookupTemplate
    | StreamedTemplate
)
