"""Saved activations and live intermediates of a layer, per token.

Elements are counted where PyTorch's autograd saves them: the input of each matrix multiplication, of each
norm and of each activation function, once per consumer that needs it (Korthikanti et al. 2022, section 4.1,
which this reproduces for GPT layers: 34 bytes per token and hidden unit at 16 bit, plus 5 bytes per head and
pair of tokens without a fused attention kernel). A weight that is not trained needs no input: in such a layer
only the tensors that other operators need are saved.
"""

from functools import singledispatch
from typing import NamedTuple

from service.planning.models.architecture import LayerBlock, ModelLayer
from service.planning.models.layers import (
    Attention,
    CompressedAttention,
    FeedForward,
    LatentAttention,
    Linear,
    LinearAttention,
    MixtureOfExperts,
    Normalization,
    StateSpace,
)

_KEPT_BY_ACTIVATION = {"smooth": 1, "relu": 0, "quick_gelu": 2, "gelu_new": 4}
"""Tensors that an activation function saves beside its result: its input, a sigmoid of it, or the input, its

half, a tanh and one more than that.
"""

CHUNK_TOKENS = 64
"""Tokens of a chunk of linear attention, each of which stores one state (Yang et al. 2024, section 3.3)."""


class ActivationTerms(NamedTuple):
    """Tensors that the backward pass of one layer needs, per token of a micro-batch.

    ``split`` parts are divided by the tensor-parallel degree, ``whole`` parts only under sequence
    parallelism. ``score`` parts are per token and token of context and exist only where the kernel stores the
    score matrix, as do ``expanded_elements``, the keys and values repeated for each query head;
    ``statistics_bytes`` only where a fused kernel stores its row sums. ``inputs`` are the part of the
    elements that only a matrix multiplication reads, ``gates`` the part that a fused gate does not save,
    ``normed`` the part that an eager RMS norm saves again in FP32, ``fused_elements`` the query and the key
    that stay with the values where one multiplication gives all three and the rotary embedding copies two,
    ``unread_elements`` the part that selective recomputation saves and no backward pass reads.
    """

    whole_elements: float = 0.0
    split_elements: float = 0.0
    whole_bytes: float = 0.0
    statistics_bytes: float = 0.0
    score_elements: float = 0.0
    score_bytes: float = 0.0
    expanded_elements: float = 0.0
    whole_inputs: float = 0.0
    split_inputs: float = 0.0
    gates: float = 0.0
    whole_normed: float = 0.0
    split_normed: float = 0.0
    fused_elements: float = 0.0
    unread_elements: float = 0.0

    def add_scaled(self, other: "ActivationTerms", times: float = 1) -> "ActivationTerms":
        """Returns the sum of both, the other multiplied by ``times``."""
        return ActivationTerms(*[a + b * times for a, b in zip(self, other, strict=True)])


class TrainedMatrices(NamedTuple):
    """Trained matrices, or matrices adapted by low-rank ones of ``rank``, and the tensors that they save.

    ``keeps_inputs`` marks a kernel that unpacks 4-bit weights and saves its input though the weight is frozen
    (bitsandbytes, ``MatMul4Bit``). ``dropout`` copies the input of low-rank matrices under a mask.
    ``copies_updates`` marks updates of a fused query, key and value that are placed by an indexed copy, which
    saves its source. ``scales`` trains a factor after every matrix, which saves its result. ``attends_apart``
    adds a second result of attention, over virtual tokens, under a trained gate.
    """

    names: frozenset[str]
    rank: int
    keeps_inputs: bool = False
    dropout: bool = False
    copies_updates: bool = False
    scales: bool = False
    attends_apart: bool = False

    def count_low_rank(self, *names: str) -> float:
        """Returns 1 where low-rank matrices adapt a matrix of these names, else 0."""
        return 1.0 if self.names.intersection(names) else 0.0

    def count_saved_inputs(self, *names: str) -> float:
        """Returns the number of times that the input of matrices of these names is saved."""
        beside = self.count_low_rank(*names)
        if self.keeps_inputs:
            return 1.0 + beside * self.dropout
        return beside

    def count_low_rank_elements(self, *names: str) -> float:
        """Returns the elements per token between the low-rank matrices of these names."""
        return float(self.rank * sum(name in self.names for name in names))

    def count_update_elements(self, **sizes: float) -> float:
        """Returns the elements that an indexed copy puts into a fused result, unless it fills all of it."""
        if not self.copies_updates or self.names >= sizes.keys():
            return 0.0
        return sum(size for name, size in sizes.items() if name in self.names)


ALL_TRAINED = TrainedMatrices(frozenset(), 0)
"""Adaptation of a model whose parameters are all trained: none."""


def count_saved_inputs(trained: TrainedMatrices | None, *names: str) -> float:
    """Returns how many of the inputs of matrices are saved for their gradients; 1 without an adaptation."""
    return 1.0 if trained is None else trained.count_saved_inputs(*names)


def _count_low_rank_elements(trained: TrainedMatrices | None, *names: str) -> float:
    return 0.0 if trained is None else trained.count_low_rank_elements(*names)


@singledispatch
def activation_terms(layer: object, trained: TrainedMatrices | None = None) -> ActivationTerms:
    """Returns the saved activations of one layer; zero for kinds outside :data:`ACTIVATION_KINDS`."""
    del layer, trained
    return ActivationTerms()


@activation_terms.register
def _(layer: Attention, trained: TrainedMatrices | None = None) -> ActivationTerms:
    value_size = layer.value_head_size or layer.head_size
    query, result = layer.query_heads * layer.head_size, layer.query_heads * value_size
    # Keys and values of an earlier layer are saved there.
    heads = 0 if layer.key_value == "shared" else layer.key_value_heads
    key, value = heads * layer.head_size, heads * value_size
    # The gate after its sigmoid, and the result that it has scaled.
    gated = {"none": 0, "head": layer.query_heads + result, "element": 2 * result}[layer.gate]
    normed = query + key if layer.query_key_norm != "none" else 0
    normed += result if layer.output_norm else 0
    dropped = 1.0 if layer.dropout else 0.0
    beside = trained or ALL_TRAINED
    added = beside.count_update_elements(query=query, key=key, value=value) + beside.attends_apart * result
    added += beside.scales * (query + key + value + layer.hidden_size)
    names = ("query_down" if layer.query_rank else "query", "key", "value")
    mask = beside.dropout * beside.count_low_rank(*names)
    inputs = layer.hidden_size * count_saved_inputs(trained, *names)
    # The compressed query before its norm, and behind it.
    rank = layer.query_rank or 0
    between = rank * count_saved_inputs(trained, "query_up")
    source = (layer.cross_size or 0) * count_saved_inputs(trained, "key", "value")
    return ActivationTerms(
        whole_elements=inputs
        + source
        + rank
        + between
        + _count_low_rank_elements(trained, *names, *(("query_up",) if rank else ()), "output"),
        split_elements=query + key + value + result + gated + normed + added,
        whole_bytes=layer.hidden_size * (dropped + mask),
        statistics_bytes=4.0 * layer.query_heads,
        score_elements=layer.query_heads * (1.0 + dropped),
        score_bytes=layer.query_heads * dropped,
        expanded_elements=float(query - key + result - value),
        whole_inputs=inputs + source + between,
        whole_normed=rank,
        split_normed=0 if layer.query_key_norm_shift else normed,
        fused_elements=float(0 if layer.cross_size else query + key),
    )


@activation_terms.register
def _(layer: LatentAttention, trained: TrainedMatrices | None = None) -> ActivationTerms:
    query_key = layer.query_heads * (layer.rotary_head_size + layer.plain_head_size)
    value = layer.query_heads * layer.value_head_size
    ranks = layer.key_value_rank + (layer.query_rank or 0)
    inputs = layer.hidden_size * count_saved_inputs(trained, "query", "query_down", "key_value_down")
    between = (layer.query_rank or 0) * count_saved_inputs(trained, "query_up")
    between += layer.key_value_rank * count_saved_inputs(trained, "key_value_up")
    names = ("query", "query_down", "query_up", "key_value_down", "key_value_up", "output")
    return ActivationTerms(
        # Input of both compressions, and each compressed vector before and after its norm.
        whole_elements=inputs + ranks + between + _count_low_rank_elements(trained, *names),
        # Query, key with its rotary part, and value as the kernel reads them, and its result.
        split_elements=2 * query_key + 2 * value,
        statistics_bytes=4.0 * layer.query_heads,
        score_elements=float(layer.query_heads),
        whole_inputs=inputs + between,
        whole_normed=ranks,
    )


@activation_terms.register
def _(layer: CompressedAttention, trained: TrainedMatrices | None = None) -> ActivationTerms:
    query, gathered = layer.query_heads * layer.head_size, layer.output_groups * layer.output_rank
    compressed = layer.series * (layer.head_size + (layer.index_head_size or 0)) if layer.compression else 0
    compressing = ("compressor_key_value", "compressor_gate", "index_key_value", "index_gate", "index_weight")
    inputs = layer.hidden_size * count_saved_inputs(trained, "query_down", "key_value", *compressing)
    between = layer.query_rank * count_saved_inputs(trained, "query_up", "index_query")
    grouped = gathered * count_saved_inputs(trained, "output_up")
    names = ("query_down", "key_value", "query_up", "index_query", "output_down", "output_up", *compressing)
    return ActivationTerms(
        # Input of the projections, the compressed query and the key before and after their norms, and the
        # vectors and weights of the compressor.
        whole_elements=inputs
        + between
        + layer.query_rank
        + 2 * layer.head_size
        + 2 * compressed
        + _count_low_rank_elements(trained, *names),
        # Query before and after its norm, the result, and the result of each group.
        split_elements=3 * query + grouped,
        statistics_bytes=4.0 * layer.query_heads,
        score_elements=float(layer.query_heads),
        whole_inputs=inputs + between,
        split_inputs=grouped,
        whole_normed=layer.query_rank + layer.head_size,
        split_normed=query,
    )


@activation_terms.register
def _(layer: LinearAttention, trained: TrainedMatrices | None = None) -> ActivationTerms:
    key = layer.key_heads * layer.key_head_size
    value = layer.value_heads * layer.value_head_size
    states = layer.value_heads * layer.key_head_size * layer.value_head_size / CHUNK_TOKENS
    inputs = layer.hidden_size * count_saved_inputs(trained, "query_key_value_gate", "step_and_decay")
    gated = value * count_saved_inputs(trained, "output")
    return ActivationTerms(
        whole_elements=inputs,
        # Input and output of the convolution, the gate, the result before and after its norm, the state of
        # each chunk and the triangle of each chunk's keys.
        split_elements=(2 * key + value) * 2
        + value
        + value
        + gated
        + states
        + layer.value_heads * CHUNK_TOKENS,
        statistics_bytes=8.0 * layer.value_heads,
        whole_inputs=inputs,
        split_inputs=gated,
        split_normed=value,
    )


@activation_terms.register
def _(layer: StateSpace, trained: TrainedMatrices | None = None) -> ActivationTerms:
    states = layer.groups * layer.state_size
    inputs = layer.hidden_size * count_saved_inputs(trained, "input")
    scanned = layer.inner_size * count_saved_inputs(trained, "output")
    # Fused kernels save the output of the input projection and the result of the scan (Gu and Dao 2023,
    # section 3.3.2: the states are recomputed).
    projected = 2 * layer.inner_size + layer.inner_size
    projected += 2 * states + (layer.heads or layer.time_step_rank or 0)
    return ActivationTerms(
        whole_elements=inputs,
        split_elements=projected + scanned,
        whole_inputs=inputs,
        split_inputs=scanned,
        split_normed=layer.inner_size if layer.heads else 0,
    )


@activation_terms.register
def _(layer: FeedForward, trained: TrainedMatrices | None = None) -> ActivationTerms:
    inputs = layer.hidden_size * count_saved_inputs(trained, "gate", "up")
    product = layer.inner_size * count_saved_inputs(trained, "down")
    beside = trained or ALL_TRAINED
    results = layer.inner_size * (2 if layer.gated else 1) + layer.hidden_size
    mask = beside.dropout * beside.count_low_rank("gate", "up")
    dropped = layer.inner_dropout
    kept = layer.inner_size * (_KEPT_BY_ACTIVATION[layer.activation] + (2 if layer.gated else 0))
    if layer.activation == "relu" and not layer.gated and (dropped or not product):
        # ReLU saves its result, a tensor that the second matrix does not read, or the only one saved.
        kept = layer.inner_size
    return ActivationTerms(
        whole_elements=inputs + _count_low_rank_elements(trained, "gate", "up", "down"),
        split_elements=kept + product + beside.scales * results,
        whole_bytes=layer.hidden_size * ((1.0 if layer.dropout else 0.0) + mask)
        + layer.inner_size * (1.0 if dropped else 0.0),
        whole_inputs=inputs,
        split_inputs=product,
        gates=layer.inner_size if layer.gated else 0,
    )


@activation_terms.register
def _(layer: MixtureOfExperts, trained: TrainedMatrices | None = None) -> ActivationTerms:
    routed = layer.rows_per_token * layer.expert_inner_size
    shared = layer.shared_inner_size or 0
    up, down = ("expert_gate", "expert_up"), ("expert_down",)
    router = layer.hidden_size * count_saved_inputs(
        trained, "router", "shared_router", "shared_gate", "shared_up"
    )
    width = layer.latent_size or layer.hidden_size
    copies = width * layer.rows_per_token * count_saved_inputs(trained, *up)
    products = routed * count_saved_inputs(trained, *down) + shared * count_saved_inputs(
        trained, "shared_down"
    )
    return ActivationTerms(
        # Router input, each expert's copy of its tokens, and each expert's output before weighting.
        whole_elements=router + copies + width * layer.rows_per_token + (layer.latent_size or 0),
        split_elements=(routed + shared) * (3 if layer.gated else 1) + products,
        whole_bytes=4.0 * layer.expert_count,
        whole_inputs=router + copies,
        split_inputs=products,
        gates=routed + shared if layer.gated else 0,
    )


@activation_terms.register
def _(layer: Normalization, trained: TrainedMatrices | None = None) -> ActivationTerms:
    del trained
    return ActivationTerms(whole_elements=layer.size, whole_normed=layer.size if layer.norm == "rms" else 0)


@activation_terms.register
def _(layer: Linear, trained: TrainedMatrices | None = None) -> ActivationTerms:
    inputs = layer.input_size * count_saved_inputs(trained, "weight")
    return ActivationTerms(whole_elements=inputs, whole_inputs=inputs)


ACTIVATION_KINDS = frozenset(
    kind.kind
    for kind in (
        Attention,
        LatentAttention,
        CompressedAttention,
        LinearAttention,
        StateSpace,
        FeedForward,
        MixtureOfExperts,
        Normalization,
        Linear,
    )
)
"""Kinds whose saved activations are modelled."""


def selected_terms(layer: ModelLayer, terms: ActivationTerms) -> ActivationTerms:
    """Returns the tensors of a layer with ``terms`` that selective recomputation by operator saves.

    These are the result of attention and of every second matrix multiplication; norms, activation functions
    and scores are recomputed.
    """
    match layer:
        case Attention():
            query = layer.query_heads * layer.head_size
            key_value = layer.key_value_heads * layer.head_size
            return ActivationTerms(
                split_elements=2 * query + key_value, statistics_bytes=4.0 * layer.query_heads
            )
        case FeedForward():
            behind = layer.hidden_size if layer.gated else 0
            return ActivationTerms(
                whole_elements=behind, split_elements=layer.inner_size, unread_elements=behind
            )
        case Normalization():
            return ActivationTerms()
        case _:
            return ActivationTerms(
                whole_elements=terms.whole_elements / 2.0,
                split_elements=terms.split_elements / 2.0,
                statistics_bytes=terms.statistics_bytes,
            )


def inner_elements(layer: ModelLayer) -> float:  # noqa: PLR0911 - one kind a case
    """Returns the elements of the largest live intermediate of a layer; 0 for kinds that are not modelled."""
    match layer:
        case Attention():
            return (2 * layer.query_heads + 2 * layer.key_value_heads) * layer.head_size
        case LatentAttention():
            heads = layer.rotary_head_size + layer.plain_head_size + layer.value_head_size
            return 2 * layer.query_heads * heads
        case CompressedAttention():
            return 2 * layer.query_heads * layer.head_size
        case LinearAttention():
            return 2 * (layer.key_heads * layer.key_head_size + layer.value_heads * layer.value_head_size)
        case StateSpace():
            return 2 * layer.inner_size + 2 * layer.groups * layer.state_size
        case FeedForward():
            return layer.inner_size * (2 if layer.gated else 1)
        case MixtureOfExperts():
            routed = layer.rows_per_token * layer.widest_inner_size
            return (routed + (layer.shared_inner_size or 0)) * (2 if layer.gated else 1)
        case _:
            return 0.0


def block_activations(block: LayerBlock, trained: TrainedMatrices | None = None) -> ActivationTerms:
    """Returns the saved activations of one repetition of a block."""
    terms = ActivationTerms()
    for layer in block.layers:
        terms = terms.add_scaled(activation_terms(layer, trained), layer.count)
    return terms


def selected_activations(block: LayerBlock, width: float) -> ActivationTerms:
    """Returns the tensors of a block that selective recomputation saves, its input included."""
    terms = ActivationTerms(whole_elements=width)
    for layer in block.layers:
        terms = terms.add_scaled(selected_terms(layer, activation_terms(layer)), layer.count)
    return terms
