"""Coefficients of an architecture per token, which every estimate multiplies.

They are derived once per architecture by ``derivation.build_profile``; a catalog model keeps its profile.
"""

from typing import NamedTuple

from service.planning.hardware.traffic import ExpertChoice
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import LayerTensor
from service.planning.models.positions import BlockPositions, SampleShape
from service.planning.models.profile.activations import ActivationTerms
from service.planning.models.profile.attention import AttentionWork
from service.planning.models.profile.iteration import IterationElements
from service.planning.models.profile.layer_operators import OperatorCatalog
from service.planning.models.profile.runs import RunningSums, running_sums
from service.planning.models.profile.weights import WeightInventory


class BlockProfile(NamedTuple):
    """One block, counted once; the model has ``repeats`` of it in a row."""

    repeats: int
    split_parameters: int
    whole_parameters: int
    expert_parameters: int
    activations: ActivationTerms
    width_elements: float
    """Elements per token of the block's input, which recomputation saves."""
    selected: ActivationTerms
    """Tensors that selective recomputation by operator saves."""
    block: LayerBlock
    start: int
    """Number of single blocks before it."""
    positions: BlockPositions | None = None
    """Positions that the coefficients are summed over; None where they are per token."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Split, whole and expert parameters."""
        return self.split_parameters, self.whole_parameters, self.expert_parameters


class StageParameters(NamedTuple):
    """Parameters of a run of blocks, by how tensor and expert parallelism divide them.

    ``tables`` are embedding tables of the fullest replica, which no other replica holds.
    """

    split: float
    whole: float
    expert: float
    tables: float = 0.0


class ModelProfile(NamedTuple):
    """Coefficients of a whole model."""

    parameter_count: int
    active_parameter_count: int
    blocks: tuple[BlockProfile, ...]
    block_count: int
    prefixes: RunningSums
    """Running sums over single blocks: split, whole and expert parameters."""
    activations: ActivationTerms
    """Sum over all blocks."""
    activation_prefixes: RunningSums
    """Running sums over single blocks: the activation terms, those that selective recomputation saves, and

    the width of the input.
    """
    deepest: BlockProfile | None
    """The block with the largest activations."""
    block_sizes: tuple[tuple[int, int, int], ...]
    """Distinct triples of split, whole and expert parameters of a block."""
    width_elements: float
    """Sum over all blocks of the elements per token of their input."""
    embedding: StageParameters
    head: StageParameters
    """Parameters of the heads, without tied tensors, and of the layers outside blocks."""
    table_tensors: tuple[LayerTensor, ...]
    head_tensors: tuple[tuple[LayerTensor, int], ...]
    """Tensors of the heads and of the layers outside blocks, each with its number of occurrences."""
    tied_tensors: tuple[LayerTensor, ...]
    tied_parameters: int
    vocabulary_size: int
    head_saved_elements: float
    """Elements per token that the backward pass needs after the last block: inputs of norm and head."""
    embedding_mask_bytes: float
    matmul_flops_per_token: float
    """Forward FLOPs per token of all matrix multiplications with weights: 2 per active weight."""
    head_flops_per_token: float
    """Part of ``matmul_flops_per_token`` in the language-model head."""
    attention: tuple[AttentionWork, ...]
    quantisable_parameters: int
    """Weights of matrices inside blocks, which quantised checkpoints store narrow."""
    expert_parameters: int
    """Weights of routed experts; quantised checkpoints store them narrow."""
    expert_count: int
    experts_per_token: int
    expert_choice: ExpertChoice
    """Experts of a token, and the groups that they lie in."""
    widest_elements: int
    """Largest width of a block's input."""
    generates: bool
    """True if the model decodes token by token and stores keys and values.

    Causal attention does, if a head yields tokens, or if blocks alone are described, without embeddings.
    """
    inner_elements: float
    """Largest live intermediate per token of any layer, divided by tensor parallelism."""
    unmodelled_kinds: frozenset[str]
    """Kinds of layers whose work and caches are not known."""
    unserved_kinds: frozenset[str]
    """Unmodelled kinds that a decoder of tokens needs, so that the model cannot be served."""
    weights: WeightInventory
    operators: OperatorCatalog
    """Matrix products and memory traffic of the blocks, in their order."""
    iteration_elements: IterationElements = IterationElements()
    """Largest intermediates per token under inference."""
    expert_blocks: int = 0
    """Blocks with routed experts."""
    encodes: bool = False
    """True if an encoder reads the input and a decoder only its own output, by cross-attention."""
    shapes_known: bool = True
    """False for a model of which only the number of parameters is known."""
    sampled: Architecture | None = None
    """Architecture of a model whose memory is estimated by the sample.

    None if per-token coefficients suffice.
    """
    sample: SampleShape | None = None
    """Sample that one token of the profile stands for; None if a token is a token."""
    passed: Architecture | None = None
    """Architecture of a model served by forward passes over whole requests; None for a model that decodes."""
    described: Architecture | None = None
    """Architecture of the model, before padding; None where only the number of parameters is known."""
    image_expert_share: float = 0.0
    """Share of the weights of routed experts that positions of images alone multiply."""
    is_padded: bool = False
    """True if the coefficients are those of more heads or experts than the model has."""


_NO_PARAMETERS = StageParameters(0.0, 0.0, 0.0)
_SHAPELESS = ModelProfile(
    parameter_count=0,
    active_parameter_count=0,
    blocks=(),
    block_count=0,
    prefixes=running_sums((), 3),
    activations=ActivationTerms(),
    activation_prefixes=running_sums((), 0),
    deepest=None,
    block_sizes=(),
    width_elements=0.0,
    embedding=_NO_PARAMETERS,
    head=_NO_PARAMETERS,
    table_tensors=(),
    head_tensors=(),
    tied_tensors=(),
    tied_parameters=0,
    vocabulary_size=0,
    head_saved_elements=0.0,
    embedding_mask_bytes=0.0,
    matmul_flops_per_token=0.0,
    head_flops_per_token=0.0,
    attention=(),
    quantisable_parameters=0,
    expert_parameters=0,
    expert_count=0,
    experts_per_token=0,
    expert_choice=ExpertChoice(0.0),
    widest_elements=0,
    generates=False,
    inner_elements=0.0,
    unmodelled_kinds=frozenset(),
    unserved_kinds=frozenset(),
    weights=WeightInventory(),
    operators=OperatorCatalog(),
    shapes_known=False,
)


def build_profile_from_count(parameter_count: int) -> ModelProfile:
    """Builds the profile of a model of which only the number of parameters is known.

    Dense, without shapes.
    """
    return _SHAPELESS._replace(
        parameter_count=parameter_count,
        active_parameter_count=parameter_count,
        matmul_flops_per_token=2.0 * parameter_count,
        quantisable_parameters=parameter_count,
        weights=WeightInventory(parameter_count=parameter_count),
    )
