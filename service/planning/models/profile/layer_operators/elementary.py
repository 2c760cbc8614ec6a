"""Operators of single norms, convolutions, tables and other layers of one step."""

from collections.abc import Iterator

from service.planning.models.layers import (
    Activation,
    Convolution,
    EmbeddingTable,
    Interaction,
    LearnedVectors,
    Modulation,
    Normalization,
    Resampling,
)
from service.planning.models.profile.layer_operators.kernels import KernelChoice, OperatorFusion
from service.planning.models.profile.layer_operators.matrices import build_matrices
from service.planning.models.profile.layer_operators.templates import (
    ConvolutionTemplate,
    InteractionTemplate,
    LookupTemplate,
    MovedElements,
    OperatorTemplate,
    StreamedTemplate,
)
from service.planning.models.profile.layer_operators.traffic import (
    build_activation,
    build_residual,
    compute_norm_traffic,
    unsplit_operator,
)


def list_normalization_operators(layer: Normalization, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the norm; a batch norm brings the activation after it."""
    if layer.norm == "batch" and choice.serves:
        # A compiler folds shift and scale into the convolution before it and applies the activation after it.
        if choice.fusion is not OperatorFusion.COMPILED:
            each = MovedElements(whole=2.0 * layer.size, kernels=1, flops=2.0 * layer.size)
            yield StreamedTemplate("norm", each, each)
            yield StreamedTemplate("activation", each, each)
        return
    yield StreamedTemplate("norm", *compute_norm_traffic(layer.size, layer.norm, choice))
    if layer.norm == "batch":
        # The activation runs in a separate kernel, which has no layer of its own.
        yield unsplit_operator(build_activation(layer.size, choice, gated=False))


def list_activation_operators(layer: Activation, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields an activation function that stands alone."""
    yield unsplit_operator(build_activation(layer.size, choice, gated=False))


def list_resampling_operators(layer: Resampling, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the pooling of channels."""
    del choice
    if layer.channels:
        # A maximum reads its input and writes less; backward, the input's size is written again.
        moved = MovedElements(whole=1.25 * layer.channels, kernels=1)
        yield StreamedTemplate("pooling", moved, moved)


def list_convolution_operators(layer: Convolution, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the convolution, the gradients of its bias, and the sum with a shortcut."""
    places = layer.kernel_frames * layer.kernel_height * layer.kernel_width
    depth = layer.input_channels // layer.groups * places
    trained = choice.trained is None
    yield ConvolutionTemplate("convolution", layer.input_channels, layer.output_channels, depth, trained)
    if layer.bias and trained:
        yield StreamedTemplate(
            "bias_gradients", MovedElements(), MovedElements(whole=layer.output_channels, kernels=1)
        )
    if layer.shortcut:
        yield build_residual(layer.output_channels, choice.fusion)


def list_modulation_operators(layer: Modulation, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the matrix that each sample multiplies once, and shifts and scales of the stream."""
    for matrix in build_matrices(layer.list_tensors(), choice):
        yield matrix._replace(rows_of="sample")
    # Of three vectors, two shift and scale after a norm and one scales the addition to the stream.
    kernels = 1.0 if choice.fusion is OperatorFusion.EAGER else 0.5
    moved = (4.0 if choice.fusion is OperatorFusion.EAGER else 2.0) * layer.hidden_size * layer.vectors / 3.0
    each = MovedElements(
        whole=moved, kernels=kernels * layer.vectors, flops=layer.hidden_size * layer.vectors
    )
    yield StreamedTemplate("modulation", each, each.add_scaled(each, 0.5))


def list_interaction_operators(layer: Interaction, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the products of every two features."""
    del choice
    yield InteractionTemplate("interaction", layer.features, layer.size)


def list_embedding_table_operators(layer: EmbeddingTable, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the lookups of a sample."""
    del choice
    yield LookupTemplate("embedding_table", layer.lookups_per_sample, layer.size)


def list_learned_vectors_operators(layer: LearnedVectors, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the sum with positions, or the scale of a layer."""
    if layer.purpose in ("positions", "layer_scale"):
        yield build_residual(layer.size, choice.fusion)
