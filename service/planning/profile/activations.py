"""What the backward pass of a layer needs, and what is live at once inside it, per token.

Elements are counted where PyTorch's autograd saves them: the input of each matrix multiplication, of each
norm and of each activation function, once per consumer that needs it (Korthikanti et al. 2022, section 4.1,
which this reproduces for GPT layers: 34 bytes per token and hidden unit at 16 bit, plus 5 bytes per head and
pair of tokens without a fused attention kernel).
"""

from functools import singledispatch
from typing import NamedTuple

from service.planning.architecture import Block, Layer
from service.planning.layers import Attention, FeedForward, Linear, MixtureOfExperts, Normalization


class ActivationTerms(NamedTuple):
    """What the backward pass of one layer needs, per token of a micro-batch.

    ``split`` parts are divided by the tensor-parallel degree, ``whole`` parts only under sequence
    parallelism. ``score`` parts are per token and token of context and exist only where the kernel
    stores the score matrix; ``statistics_bytes`` only where a fused kernel stores its row sums.
    """

    whole_elements: float = 0.0
    split_elements: float = 0.0
    whole_bytes: float = 0.0
    statistics_bytes: float = 0.0
    score_elements: float = 0.0
    score_bytes: float = 0.0

    def plus(self, other: "ActivationTerms", times: int = 1) -> "ActivationTerms":
        """The sum of both, the other taken ``times`` times."""
        return ActivationTerms(*[a + b * times for a, b in zip(self, other, strict=True)])


@singledispatch
def activation_terms(layer: object) -> ActivationTerms:
    """Saved activations of one layer; zero for kinds outside the modelled ones."""
    del layer
    return ActivationTerms()


@activation_terms.register
def _(layer: Attention) -> ActivationTerms:
    query = layer.query_heads * layer.head_size
    key_value = layer.key_value_heads * layer.head_size
    normed = query + key_value if layer.query_key_norm != "none" else 0
    dropped = 1.0 if layer.dropout else 0.0
    return ActivationTerms(
        whole_elements=layer.hidden_size + (layer.cross_size or 0),
        split_elements=2 * query + 2 * key_value + normed,
        whole_bytes=layer.hidden_size * dropped,
        statistics_bytes=4.0 * layer.query_heads,
        score_elements=layer.query_heads * (1.0 + dropped),
        score_bytes=layer.query_heads * dropped,
    )


@activation_terms.register
def _(layer: FeedForward) -> ActivationTerms:
    return ActivationTerms(
        whole_elements=layer.hidden_size,
        split_elements=layer.inner_size * (4 if layer.gated else 2),
        whole_bytes=layer.hidden_size * (1.0 if layer.dropout else 0.0),
    )


@activation_terms.register
def _(layer: MixtureOfExperts) -> ActivationTerms:
    saved = 4 if layer.gated else 2
    inner = layer.experts_per_token * layer.expert_inner_size + (layer.shared_inner_size or 0)
    # Router input, each expert's copy of its tokens, and each expert's output before weighting.
    copies = 1 + 2 * layer.experts_per_token
    return ActivationTerms(
        whole_elements=layer.hidden_size * copies,
        split_elements=inner * saved,
        whole_bytes=4.0 * layer.expert_count,
    )


@activation_terms.register
def _(layer: Normalization) -> ActivationTerms:
    return ActivationTerms(whole_elements=layer.size)


@activation_terms.register
def _(layer: Linear) -> ActivationTerms:
    return ActivationTerms(whole_elements=layer.input_size)


def inner_elements(layer: Layer) -> float:
    """Largest live intermediate of a layer; 0 for kinds outside the modelled ones."""
    match layer:
        case Attention():
            return (2 * layer.query_heads + 2 * layer.key_value_heads) * layer.head_size
        case FeedForward():
            return layer.inner_size * (2 if layer.gated else 1)
        case MixtureOfExperts():
            routed = layer.experts_per_token * layer.expert_inner_size
            return (routed + (layer.shared_inner_size or 0)) * (2 if layer.gated else 1)
        case _:
            return 0.0


def block_activations(block: Block) -> ActivationTerms:
    """Saved activations of one repetition of a block."""
    terms = ActivationTerms()
    for layer in block.layers:
        terms = terms.plus(activation_terms(layer), layer.count)
    return terms
