"""Activations that a pipeline stage holds, the backward pass's additions to them, and the logits.

The coefficients are those of ``profile.activations`` (Korthikanti et al. 2022, equations 1 to 4, per operator
and so for gated, grouped-query, latent, recurrent and expert layers too). Recomputation of whole blocks saves
the input of every k-th block and, while the backward pass is in it, the activations of k blocks (Chen et al.
2016).
"""

from typing import NamedTuple

from service.planning.figures import rounded_up, smaller
from service.planning.memory.adaptation import LOW_RANK, PREFIXED, TRAINS_NORMS
from service.planning.memory.stages import count_blocks_within, stage_start
from service.planning.models.profile import (
    ActivationTerms,
    BlockProfile,
    ModelProfile,
    TrainedMatrices,
    block_activations,
)
from service.planning.models.profile.saved import sampled_activations
from service.planning.parallelism import Parallelism
from service.planning.precision import (
    ELEMENT_BYTES,
    LOW_PRECISION_BYTES,
    NumberFormat,
    TrainingRecipe,
)
from service.planning.software.frameworks import TRAITS, Framework, FrameworkTraits
from service.planning.workload import (
    PAIRED,
    WHOLE_BLOCKS,
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    FrozenWeightFormat,
    LossImplementation,
    Recomputation,
    TrainingStateLocation,
    TrainingWorkload,
)

LOSS_BYTES_PER_LOGIT = 8.0
"""Bytes of FP32 logits and their FP32 log-probabilities, which the loss holds beside narrower logits."""

LOSS_CHUNKS = 8
"""Chunks in which a chunked loss widens the logits."""

GENERIC = TRAITS[Framework.GENERIC]
_TERMS = len(ActivationTerms._fields)
_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]


class TokenBytes(NamedTuple):
    """Bytes per token, and per token and token of its sequence (a stored score matrix)."""

    linear: float
    quadratic: float

    def compute_bytes(self, sequence_length: float) -> float:
        """Returns the bytes of one token in a sequence."""
        return self.linear + self.quadratic * sequence_length

    def scale(self, factor: float) -> "TokenBytes":
        """Returns both multiplied by ``factor``."""
        return TokenBytes(self.linear * factor, self.quadratic * factor)

    def add(self, other: "TokenBytes") -> "TokenBytes":
        """Returns the sum of both."""
        return TokenBytes(self.linear + other.linear, self.quadratic + other.quadratic)


def activation_bytes_per_token(
    terms: ActivationTerms,
    *,
    element_bytes: float,
    kernel: AttentionKernel,
    tensor: int = 1,
    sequence_parallel: bool = False,
    traits: FrameworkTraits = GENERIC,
    input_bytes: float | None = None,
    trains_norms: bool = True,
    compiled: bool = False,
) -> TokenBytes:
    """Returns the saved activations of one token of a micro-batch, in bytes.

    For a GPT layer at 16 bit with a kernel that stores scores this is Korthikanti et al. 2022, equation 1: h
    (34 + 5 a s / h) bytes; with tensor parallelism t, equation 2: h (10 + 24 / t + 5 a s / (h t)); with
    sequence parallelism, equation 4: all of it over t. ``input_bytes`` is the width in which inputs of matrix
    multiplications are saved, where it differs from ``element_bytes``. An eager RMS norm saves its input in
    FP32 in place of the narrow one, and the normed one where its weight is trained.
    """
    whole = element_bytes * terms.whole_elements + terms.whole_bytes
    split = element_bytes * terms.split_elements
    if traits.eager_norms and not compiled:
        result = _FP32_BYTES if traits.wide_norms else element_bytes
        beside = _FP32_BYTES - element_bytes + result * trains_norms
        whole += beside * terms.whole_normed
        split += beside * terms.split_normed
    if compiled:
        whole -= element_bytes * terms.unread_elements
    if traits.fused_projection:
        split += element_bytes * terms.fused_elements
    if traits.fused_gates:
        split -= element_bytes * terms.gates
    if input_bytes is not None:
        whole -= (element_bytes - input_bytes) * terms.whole_inputs
        split -= (element_bytes - input_bytes) * terms.split_inputs
    scores = 0.0
    if kernel is AttentionKernel.FLASH:
        split += terms.statistics_bytes
    else:
        split += element_bytes * terms.expanded_elements
        scores = (element_bytes * terms.score_elements + terms.score_bytes) / tensor
        if traits.eager_scores and element_bytes < _FP32_BYTES:
            # The softmax is taken in FP32, of which one score element has its result saved.
            scores += _FP32_BYTES * (terms.score_elements - terms.score_bytes) / tensor
    if sequence_parallel:
        return TokenBytes((whole + split) / tensor, scores)
    return TokenBytes(whole + split / tensor, scores)


def logits_bytes_per_token(
    profile: ModelProfile,
    element_bytes: float,
    tensor: int = 1,
    *,
    sequence_parallel: bool = False,
    loss: LossImplementation = LossImplementation.FP32,
    loss_bytes: float = LOSS_BYTES_PER_LOGIT,
    compiled: bool = False,
) -> float:
    """Returns the bytes of one token's logits, of their FP32 loss, and of the inputs of last norm and head.

    Sequence parallelism divides those inputs too (Korthikanti et al. 2022, section 4.3). A loss at the width
    of the activations holds logits and their gradient, a chunked one widens a part at a time, a fused one
    holds only the gradient of its input. A compiled part becomes its gradient without being widened.
    """
    narrow = element_bytes if element_bytes < _FP32_BYTES else 0.0
    shared = tensor if sequence_parallel else 1
    behind = profile.head_saved_elements * element_bytes / shared
    match loss:
        case LossImplementation.FUSED:
            return behind * 2.0
        case LossImplementation.CHUNKED:
            part = 2.0 * element_bytes if compiled else loss_bytes + narrow
            each = element_bytes + part / LOSS_CHUNKS
        case LossImplementation.NARROW:
            each = 2.0 * element_bytes
        case _:
            each = loss_bytes + narrow
    return profile.vocabulary_size / tensor * each + behind


def select_trained_matrices(
    adaptation: Adaptation, traits: FrameworkTraits = GENERIC
) -> TrainedMatrices | None:
    """Returns the matrices that need their inputs; None where all are trained."""
    kind = adaptation.kind
    if kind is AdaptationKind.FULL:
        return None
    return TrainedMatrices(
        adaptation.targets if kind in LOW_RANK else frozenset(),
        adaptation.rank,
        keeps_inputs=adaptation.base is not FrozenWeightFormat.PLAIN and traits.keeps_packed_inputs,
        dropout=traits.low_rank_dropout and kind in LOW_RANK,
        copies_updates=traits.fused_projection,
        scales=kind is AdaptationKind.SCALE,
        attends_apart=traits.gated_prefixes and kind in PREFIXED,
    )


def _build_block_activations(block: BlockProfile, trained: TrainedMatrices) -> ActivationTerms:
    """Returns the activations of one repetition of a block in which only some matrices are trained."""
    if block.positions is None:
        return block_activations(block.block, trained)
    return sampled_activations(block.block, block.positions, trained)


class StageTerms(NamedTuple):
    """Activation terms of the blocks of a stage, selectively saved ones, and their widths."""

    terms: ActivationTerms
    selected: ActivationTerms
    width: float
    depth: float


def _build_stage_terms(
    profile: ModelProfile, trained: TrainedMatrices | None, layout: Parallelism, stage: int
) -> StageTerms:
    start, end = stage_start(profile, layout, stage), stage_start(profile, layout, stage + 1)
    low, high = profile.activation_prefixes[start], profile.activation_prefixes[end]
    sums = [last - first for first, last in zip(low, high, strict=True)]
    terms = ActivationTerms(*sums[:_TERMS])
    if trained is not None:
        terms = ActivationTerms()
        for block in profile.blocks:
            saved = _build_block_activations(block, trained)
            terms = terms.add_scaled(saved, count_blocks_within(block, start, end))
    return StageTerms(terms, ActivationTerms(*sums[_TERMS:-1]), sums[-1], end - start)


class StageActivations(NamedTuple):
    """Activations per token of a micro-batch on a device.

    ``stored`` is held for all micro-batches in flight, ``working`` in addition while the backward pass is in
    a block, ``offloaded`` on the host.
    """

    stored: TokenBytes
    working: TokenBytes
    offloaded: TokenBytes


NO_ACTIVATIONS = StageActivations(TokenBytes(0.0, 0.0), TokenBytes(0.0, 0.0), TokenBytes(0.0, 0.0))


def input_width(recipe: TrainingRecipe, traits: FrameworkTraits) -> float | None:
    """Returns the bytes of saved inputs of matrix multiplications, None for those of the activations."""
    return LOW_PRECISION_BYTES[recipe.low] if recipe.low and traits.scales_inputs else None


def _compute_checkpoint_interval(workload: TrainingWorkload, depth: float) -> float:
    """Returns the blocks from one saved input to the next."""
    match workload.recomputation:
        case Recomputation.SQRT:
            return rounded_up(depth**0.5)
        case Recomputation.EVERY_K:
            return smaller(float(workload.interval), depth)
        case _:
            return smaller(1.0, depth)


def _compute_working_bytes(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, of_block: ActivationTerms
) -> TokenBytes:
    """Returns the gradients of the block at work, and its activations gathered from the tensor group."""
    element_bytes = ELEMENT_BYTES[workload.recipe.activations]
    shared = layout.tensor if layout.sequence_parallel else 1
    elements = 2.0 * profile.widest_elements / shared + profile.inner_elements / layout.tensor
    if TRAITS[workload.framework].gathers_inputs:
        # The inputs of divided matrices, and as much for a gradient and a sum before it is scattered.
        elements += (of_block.whole_inputs + 2.0 * profile.widest_elements) * (1.0 - 1.0 / shared)
    return TokenBytes(element_bytes * elements, 0.0)


def _compute_sent_bytes(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> float:
    """Returns the bytes per token that a stage holds for its sent output and its gradient."""
    traits = TRAITS[workload.framework]
    if profile.deepest is None or not (traits.keeps_outputs or traits.keeps_all_outputs):
        return 0.0
    piped = (layout.pipeline > 1) * ELEMENT_BYTES[workload.recipe.activations]
    width = profile.deepest.width_elements / (layout.tensor if layout.sequence_parallel else 1)
    if traits.keeps_outputs:
        return piped * width * layout.micro_batches_in_flight(workload.micro_batches, stage)
    # The last stage sends nothing: its outputs are the logits, of which one is at work.
    last = (stage == layout.pipeline - 1) * 1.0
    logits = profile.vocabulary_size / layout.tensor * (workload.micro_batches - 1.0)
    rooms = 2.0 * layout.virtual_stages * workload.micro_batches
    return piped * ((1.0 - last) * width * rooms + last * logits)


def compute_stage_activations(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> StageActivations:
    """Returns the activations of a stage for its micro-batches in flight, and of its backward pass."""
    if profile.deepest is None:
        return NO_ACTIVATIONS
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    element_bytes = ELEMENT_BYTES[recipe.activations]
    strategy = workload.recomputation

    def compute_saved_bytes(terms: ActivationTerms, kernel: AttentionKernel = workload.kernel) -> TokenBytes:
        return activation_bytes_per_token(
            terms,
            element_bytes=element_bytes,
            kernel=kernel,
            tensor=layout.tensor,
            sequence_parallel=layout.sequence_parallel,
            traits=traits,
            input_bytes=input_width(recipe, traits),
            trains_norms=workload.adaptation.kind in TRAINS_NORMS,
            compiled=workload.compiled,
        )

    trained = select_trained_matrices(workload.adaptation, traits)
    held = _build_stage_terms(profile, trained, layout, stage)
    in_flight = layout.micro_batches_in_flight(workload.micro_batches, stage)
    shared = layout.tensor if layout.sequence_parallel else 1
    of_block = profile.deepest.activations
    if trained is not None:
        of_block = _build_block_activations(profile.deepest, trained)
    every, deepest = compute_saved_bytes(held.terms), compute_saved_bytes(of_block)
    working = _compute_working_bytes(profile, workload, layout, of_block)
    if strategy in WHOLE_BLOCKS:
        interval = _compute_checkpoint_interval(workload, held.depth)
        kept = rounded_up(held.depth / interval) / held.depth
        inputs = element_bytes * held.width / shared
        stored = TokenBytes(inputs * kept * in_flight, 0.0 * every.quadratic)
        # The first of the blocks at work has its input among the saved ones.
        again = deepest.scale(interval)
        own = element_bytes * profile.deepest.width_elements / shared
        working = working.add(again._replace(linear=again.linear - own))
    elif strategy is Recomputation.SELECTIVE and traits.recomputes_attention:
        stored = compute_saved_bytes(held.terms, AttentionKernel.FLASH).scale(in_flight)
        working = working.add(TokenBytes(0.0, deepest.quadratic))
    elif strategy is Recomputation.SELECTIVE:
        stored = compute_saved_bytes(held.selected, AttentionKernel.FLASH).scale(in_flight)
        kept_of_block = compute_saved_bytes(profile.deepest.selected, AttentionKernel.FLASH)
        working = working.add(deepest).add(kept_of_block.scale(-1.0))
    else:
        stored = every.scale(in_flight)
    mask = (stage == 0) * profile.embedding_mask_bytes * in_flight / shared
    stored = stored._replace(linear=stored.linear + mask)
    sent = TokenBytes(_compute_sent_bytes(profile, workload, layout, stage), 0.0)
    pairs = 2.0 if workload.objective in PAIRED else 1.0
    stored, working, sent = stored.scale(pairs), working.scale(pairs), sent.scale(pairs)
    if workload.offload.activations is TrainingStateLocation.NONE:
        return StageActivations(stored.add(sent), working, TokenBytes(0.0, 0.0))
    # The block at work and the one in transfer stay.
    staying = smaller(1.0, 2.0 / (held.depth * in_flight))
    return StageActivations(stored.scale(staying).add(sent), working, stored.scale(1.0 - staying))
