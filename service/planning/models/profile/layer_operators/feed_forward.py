"""Operators of a feed-forward layer and of a mixture of experts."""

from collections.abc import Iterator
from functools import partial

from service.planning.models.layers import FeedForward, MixtureOfExperts
from service.planning.models.profile.layer_operators.kernels import KernelChoice, OperatorFusion
from service.planning.models.profile.layer_operators.matrices import (
    build_bias_gradients,
    build_matrices,
    join_matrices,
)
from service.planning.models.profile.layer_operators.templates import (
    ExpertsTemplate,
    MovedElements,
    OperatorTemplate,
    StreamedTemplate,
)
from service.planning.models.profile.layer_operators.traffic import (
    SOFTMAX_FLOPS,
    build_activation,
    build_dropout,
    build_residual,
    compute_norm_traffic,
    split_traffic,
)


def list_feed_forward_operators(layer: FeedForward, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields matrices, and the activation between them."""
    tensors = list(layer.list_tensors())
    yield from join_matrices(build_matrices(tensors, choice), choice)
    if choice.trained is None:
        yield from build_bias_gradients(tensors)
    yield build_activation(layer.inner_size, choice, gated=layer.gated)
    if layer.inner_norm:
        yield StreamedTemplate(
            "norm", *split_traffic(compute_norm_traffic(layer.inner_size, "layer", choice))
        )
    if layer.dropout and not choice.serves:
        yield build_dropout(layer.hidden_size, choice.fusion)
    yield build_residual(layer.hidden_size, choice.fusion)


_ROUTING_KERNELS = {OperatorFusion.EAGER: 12.0, OperatorFusion.COMPILED: 8.0, OperatorFusion.FUSED: 6.0}
"""Kernels of routing: softmax, choice of the largest, counts and order of the tokens of each expert."""


def _build_expert_matrices(layer: MixtureOfExperts, choice: KernelChoice) -> Iterator[ExpertsTemplate]:
    width, inner = layer.latent_size or layer.hidden_size, layer.expert_inner_size
    ups = 2.0 if layer.gated else 1.0
    columns, times = (ups * inner, 1.0) if choice.joins else (inner, ups)
    build_template = partial(
        ExpertsTemplate,
        experts=layer.expert_count,
        chosen=layer.rows_per_token,
        trained=choice.trained is None,
        is_even=layer.routing.is_even,
    )
    yield build_template("expert_up", width, columns, inward=False, times=times)
    yield build_template("expert_down", inner, width, inward=True)


def list_experts_operators(layer: MixtureOfExperts, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields router, routed and shared experts, and the movement of tokens to experts and back."""
    yield from join_matrices(build_matrices(layer.list_tensors(), choice), choice)
    width, chosen = layer.latent_size or layer.hidden_size, layer.rows_per_token
    inner, count = layer.expert_inner_size, layer.expert_count
    yield from _build_expert_matrices(layer, choice)
    if layer.image_expert_inner_size is not None and choice.serves:
        # An engine's iteration holds both kinds of positions; elsewhere each passes a layer of its own.
        for template in _build_expert_matrices(layer.for_images, choice):
            yield template._replace(of_images=True)
    kernels = 2.0 if choice.built else _ROUTING_KERNELS[choice.fusion]
    routing = MovedElements(whole_wide=4.0 * count, kernels=kernels, flops=SOFTMAX_FLOPS * count)
    yield StreamedTemplate("routing", routing, routing._replace(kernels=kernels / 2.0))
    # Each token's copies are written and read; outputs come back weighted.
    sent = 1.0 if choice.built else 2.0
    copies = MovedElements(whole=(1.0 + 3.0 * chosen + 1.0) * width, kernels=sent, flops=2.0 * chosen * width)
    yield StreamedTemplate("dispatch", copies, copies._replace(kernels=3.0), gathers=width)
    yield build_activation(chosen * inner, choice, gated=layer.gated)
    if layer.shared_inner_size:
        yield build_activation(layer.shared_inner_size, choice, gated=layer.gated)
    yield build_residual(layer.hidden_size, choice.fusion)
