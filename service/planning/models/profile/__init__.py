"""Coefficients of an architecture that every estimate multiplies, derived once per model."""

from service.planning.models.profile.activations import (
    ActivationTerms,
    TrainedMatrices,
    activation_terms,
    block_activations,
)
from service.planning.models.profile.attention import AttentionWork
from service.planning.models.profile.derivation import build_profile
from service.planning.models.profile.layer_operators import (
    FusedAttention,
    KernelChoice,
    OperatorCatalog,
    OperatorFusion,
    OperatorKind,
)
from service.planning.models.profile.model import (
    BlockProfile,
    ModelProfile,
    StageParameters,
    build_profile_from_count,
)
from service.planning.models.profile.weights import StoredWeights, WeightInventory

__all__ = [
    "ActivationTerms",
    "AttentionWork",
    "BlockProfile",
    "FusedAttention",
    "KernelChoice",
    "ModelProfile",
    "OperatorCatalog",
    "OperatorFusion",
    "OperatorKind",
    "StageParameters",
    "StoredWeights",
    "TrainedMatrices",
    "WeightInventory",
    "activation_terms",
    "block_activations",
    "build_profile",
    "build_profile_from_count",
]
