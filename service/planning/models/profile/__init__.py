"""What an architecture costs: the coefficients that every estimate multiplies, derived once a model."""

from service.planning.models.profile.activations import (
    ActivationTerms,
    Trained,
    activation_terms,
    block_activations,
)
from service.planning.models.profile.attention import AttentionWork
from service.planning.models.profile.layer_operators import (
    Choice,
    FusedAttention,
    Fusion,
    OperatorBook,
    OperatorKind,
)
from service.planning.models.profile.weights import StoredWeights, WeightInventory
from service.planning.models.profile.whole import (
    BlockProfile,
    Profile,
    StageParameters,
    profile_of,
    profile_of_count,
)

__all__ = [
    "ActivationTerms",
    "AttentionWork",
    "BlockProfile",
    "Choice",
    "FusedAttention",
    "Fusion",
    "OperatorBook",
    "OperatorKind",
    "Profile",
    "StageParameters",
    "StoredWeights",
    "Trained",
    "WeightInventory",
    "activation_terms",
    "block_activations",
    "profile_of",
    "profile_of_count",
]
