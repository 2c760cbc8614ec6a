"""Elementary layers: norms, products, convolutions, look-ups and what a condition modulates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from service.planning.errors import PlanningError
from service.planning.models.layers.tensors import LayerTensor, TensorSplit, build_matrix, build_vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalization:
    """A norm with a learned scale (``rms``) or with scale and shift (``layer``, ``group``, ``batch``)."""

    kind: ClassVar[Literal["normalization"]] = "normalization"
    size: int
    """Width of the normalized vector."""
    norm: Literal["rms", "layer", "group", "batch"] = "rms"
    """Kind of norm, by the values that are normalized together."""
    learned: bool = True
    """True if the norm has parameters."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Scale and shift."""
        yield from build_vectors(self.learned, "scale", self.size)
        yield from build_vectors(self.learned and self.norm != "rms", "shift", self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A smooth function of each element, whose backward pass needs its input; no parameters.

    A function whose backward pass needs only its result, such as ReLU, is no layer: the layer that reads the
    result keeps it.
    """

    kind: ClassVar[Literal["activation"]] = "activation"
    size: int
    """Number of elements of a token."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """No tensors."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """One matrix on every token."""

    kind: ClassVar[Literal["linear"]] = "linear"
    input_size: int
    """Width of the input."""
    output_size: int
    """Width of the output."""
    bias: bool = False
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The matrix and its bias."""
        yield build_matrix("weight", self.input_size, self.output_size)
        yield from build_vectors(self.bias, "bias", self.output_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution over frames, height and width; a kernel side of 1 leaves that axis out."""

    kind: ClassVar[Literal["convolution"]] = "convolution"
    input_channels: int
    """Number of channels of the input."""
    output_channels: int
    """Number of channels of the output."""
    kernel_height: int
    """Number of rows that the kernel sees."""
    kernel_width: int
    """Number of columns that the kernel sees."""
    kernel_frames: int = 1
    """Number of frames that the kernel sees."""
    stride: int = 1
    """Step of the kernel over height and width."""
    frame_stride: int = 1
    """Step of the kernel over frames."""
    groups: int = 1
    """Number of groups of channels that do not mix."""
    bias: bool = False
    padded: bool = True
    """True if the border is covered: n cells become ceil(n / stride), otherwise floor((n - kernel) / stride)
    + 1, as for patches."""
    shortcut: bool = False
    """True if it runs beside the other layers of its block, on the input of the block."""
    upsamples: bool = False
    """True if the stride enlarges the grid (transposed convolution)."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Kernel and bias."""
        if self.input_channels % self.groups or self.output_channels % self.groups:
            raise PlanningError("GROUPS", "/groups", "groups must divide input and output channels")
        kernel = (self.kernel_frames, self.kernel_height, self.kernel_width)
        shape = (self.output_channels, self.input_channels // self.groups, *kernel)
        yield LayerTensor("kernel", shape, TensorSplit.NONE, multiplied=1.0)
        yield from build_vectors(self.bias, "bias", self.output_channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """Pooling or merging (factor above 1) or up-sampling (below 1) of the spatial axes; no parameters."""

    kind: ClassVar[Literal["resampling"]] = "resampling"
    factor: float
    """Length of an axis before over its length after."""
    frame_factor: float = 1.0
    """Number of frames before over their number after."""
    drops_extra_tokens: bool = False
    """True if class tokens are left behind."""
    channels: int | None = None
    """Number of channels of a maximum pooling, which keeps its input and the places of the maxima; absent for
    other resamplings."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """No tensors."""
        return iter(())


VectorPurpose: TypeAlias = Literal[
    "positions",
    "relative_positions",
    "class_tokens",
    "query_tokens",
    "mask_token",
    "layer_scale",
    "bias",
    "scale",
    "modulation",
    "tokens",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedVectors:
    """Learned vectors that no matrix multiplication reads.

    ``positions`` are added to each position, ``relative_positions`` to the scores of attention or to
    its keys, ``class_tokens`` stand in front of the sequence and lengthen it, ``query_tokens`` are a
    sequence of their own, ``layer_scale`` multiplies the output of a layer, ``bias`` is one that another
    layer has in part only (queries and values without keys), ``scale`` is a single factor, ``modulation``
    is a row for each shift, scale and gate, added to those of a condition, ``tokens`` is a further look-up
    table.
    """

    kind: ClassVar[Literal["learned_vectors"]] = "learned_vectors"
    purpose: VectorPurpose
    """Purpose of the vectors; class tokens lengthen the sequence."""
    rows: int = 1
    """Number of vectors."""
    size: int
    """Width of a vector."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The table."""
        yield LayerTensor(self.purpose, (self.rows, self.size), TensorSplit.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingTable:
    """A look-up table of a recommender's sparse feature."""

    kind: ClassVar[Literal["embedding_table"]] = "embedding_table"
    rows: int
    """Number of rows of the table."""
    size: int
    """Width of a row."""
    lookups_per_sample: float = 1.0
    """Mean number of rows that a sample reads."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The table."""
        yield LayerTensor("table", (self.rows, self.size), TensorSplit.VOCABULARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """Pairwise dot products of feature vectors; no parameters."""

    kind: ClassVar[Literal["interaction"]] = "interaction"
    features: int
    """Number of feature vectors."""
    size: int
    """Width of a vector."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """No tensors."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Modulation:
    """Shifts, scales and gates computed from a condition vector (adaptive norm of a DiT)."""

    kind: ClassVar[Literal["modulation"]] = "modulation"
    condition_size: int
    """Width of the condition vector."""
    hidden_size: int
    vectors: int = 6
    """Number of shifts, scales and gates together."""
    streams: int = 1
    """Number of sequences that have vectors of their own among these."""
    bias: bool = True
    shared: bool = False
    """True if the vectors come from a matrix that stands elsewhere and serves many layers."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The projection of the condition and its bias; none if other layers share it."""
        if self.shared:
            return
        width = self.vectors * self.hidden_size
        yield build_matrix("projection", self.condition_size, width)
        if self.bias:
            yield LayerTensor("bias", (width,), TensorSplit.NONE)
