"""The closed list of layer kinds, each with its shapes and the tensors that follow from them.

Every kind lists its tensors (``list_tensors``), which gives the parameter count, the active parameters
and the matrix-multiplication FLOPs at once. The work of a kind besides multiplying its tensors (scores of
attention, saved activations, cache) is added in ``operators`` and ``memory`` for the kinds in
``MODELLED_KINDS``; for the others those figures are unknown, never zero.

``hidden_size`` is the width of the residual stream, ``bias`` adds a learned vector to the products of a
layer, and ``count`` is the number of times that a layer stands in a row. The schemas of the API are derived
from these classes: the docstring of a member is its description there.

Sources of the shapes: Vaswani et al. 2017 (attention, feed-forward), Shazeer 2019 and Ainslie et al.
2023 (multi-query, grouped-query), Shazeer 2020 (gated feed-forward), Jiang et al. 2024 (mixture of
experts), DeepSeek-V2 2024 (latent attention), DeepSeek-V4 2026 (compressed attention), Gu and Dao 2023,
Dao and Gu 2024 (state space), Yang et al. 2024 (gated delta rule), Naumov et al. 2019 (DLRM), Peebles and
Xie 2022 (adaptive norm).
"""

from typing import TypeAlias

from service.planning.models.layers.attention import Attention, CompressedAttention, LatentAttention
from service.planning.models.layers.elementary import (
    Activation,
    Convolution,
    EmbeddingTable,
    Interaction,
    LearnedVectors,
    Linear,
    Modulation,
    Normalization,
    Resampling,
    VectorPurpose,
)
from service.planning.models.layers.feed_forward import (
    ActivationFunction,
    FeedForward,
    MixtureOfExperts,
    TokenRouting,
)
from service.planning.models.layers.recurrent import LinearAttention, StateSpace
from service.planning.models.layers.tensors import LayerTensor, TensorSplit, build_matrix, build_vectors

__all__ = [
    "Activation",
    "ActivationFunction",
    "Attention",
    "CompressedAttention",
    "Convolution",
    "EmbeddingTable",
    "FeedForward",
    "Interaction",
    "LatentAttention",
    "LayerTensor",
    "LearnedVectors",
    "Linear",
    "LinearAttention",
    "MixtureOfExperts",
    "Modulation",
    "Normalization",
    "Resampling",
    "SimpleLayer",
    "StateSpace",
    "TensorSplit",
    "TokenRouting",
    "VectorPurpose",
    "build_matrix",
    "build_vectors",
]

SimpleLayer: TypeAlias = (
    Attention
    | LatentAttention
    | CompressedAttention
    | LinearAttention
    | StateSpace
    | FeedForward
    | MixtureOfExperts
    | Normalization
    | Activation
    | Linear
    | Convolution
    | Resampling
    | LearnedVectors
    | EmbeddingTable
    | Interaction
    | Modulation
)
"""Every kind but the block that repeats them."""
