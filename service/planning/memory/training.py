"""Memory of one device in training, itemised, and the limits that follow from it. All figures are bytes.

State: bytes per parameter by recipe and optimizer, spread by tensor, pipeline and expert parallelism and
by sharding (Rajbhandari et al. 2020). Activations: the coefficients of ``profile`` (Korthikanti et al.
2022, equations 1 to 4, per operator and so for gated, grouped-query and expert layers too), for the
micro-batches that a pipeline stage holds. The fullest pipeline stage is reported.
"""

import math
from typing import NamedTuple

from service.planning.memory.stages import stage_share, stage_start, whole_units
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import (
    ELEMENT_BYTES,
    OPTIMIZER_STATES,
    NumberFormat,
    Optimizer,
    TrainingRecipe,
)
from service.planning.profile import ActivationTerms, Profile, StageParameters
from service.planning.workload import AttentionKernel, Recomputation, TrainingWorkload

LOSS_BYTES_PER_LOGIT = 8.0
"""FP32 logits and their FP32 log-probabilities, which the loss keeps beside narrower logits."""


class StateBytes(NamedTuple):
    """Bytes of the training state, of one parameter or of a device."""

    weights: float
    gradients: float
    master_weights: float
    optimizer_states: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.weights + self.gradients + self.master_weights + self.optimizer_states


def state_bytes_per_parameter(recipe: TrainingRecipe, optimizer: Optimizer) -> StateBytes:
    """Bytes that each parameter costs: 16 for mixed-precision and for pure FP32 Adam."""
    return StateBytes(
        weights=ELEMENT_BYTES[recipe.weights],
        gradients=ELEMENT_BYTES[recipe.gradients],
        master_weights=ELEMENT_BYTES[recipe.master] if recipe.master else 0.0,
        optimizer_states=OPTIMIZER_STATES[optimizer] * ELEMENT_BYTES[recipe.optimizer_states],
    )


def sharded_state_bytes(
    parameters: StageParameters, per_parameter: StateBytes, layout: Parallelism
) -> StateBytes:
    """Training state of one device of a stage that holds ``parameters`` in all."""
    dense = parameters.split / layout.tensor + parameters.whole
    shards = layout.shards(layout.replicas)
    weights, gradients, states = (dense / shard for shard in shards)
    if parameters.expert:
        expert = parameters.expert / (layout.tensor * layout.expert)
        shards = layout.shards(layout.replicas // layout.expert)
        weights += expert / shards.weights
        gradients += expert / shards.gradients
        states += expert / shards.optimizer_states
    return StateBytes(
        weights=per_parameter.weights * weights,
        gradients=per_parameter.gradients * gradients,
        master_weights=per_parameter.master_weights * states,
        optimizer_states=per_parameter.optimizer_states * states,
    )


class TokenBytes(NamedTuple):
    """Bytes per token, and per token and token of its sequence (a stored score matrix)."""

    linear: float
    quadratic: float

    def at(self, sequence_length: float) -> float:
        """Bytes of one token in a sequence."""
        return self.linear + self.quadratic * sequence_length


def activation_bytes_per_token(
    terms: ActivationTerms,
    *,
    element_bytes: float,
    kernel: AttentionKernel,
    tensor: int = 1,
    sequence_parallel: bool = False,
) -> TokenBytes:
    """Saved activations of one token of a micro-batch.

    For a GPT layer at 16 bit with a kernel that stores scores this is Korthikanti et al. 2022,
    equation 1: h (34 + 5 a s / h) bytes; with tensor parallelism t, equation 2: h (10 + 24 / t +
    5 a s / (h t)); with sequence parallelism, equation 4: all of it over t.
    """
    whole = element_bytes * terms.whole_elements + terms.whole_bytes
    split = element_bytes * terms.split_elements
    scores = 0.0
    if kernel is AttentionKernel.FLASH:
        split += terms.statistics_bytes
    else:
        scores = (element_bytes * terms.score_elements + terms.score_bytes) / tensor
    if sequence_parallel:
        return TokenBytes((whole + split) / tensor, scores)
    return TokenBytes(whole + split / tensor, scores)


class StageMemory(NamedTuple):
    """What the devices of one pipeline stage hold at the peak of a training step.

    ``parameters`` are those of the stage before sharding. ``activations`` and ``logits_bytes_per_token``
    are per token of a micro-batch on the device; ``tokens`` is how many a device has of one micro-batch.
    """

    state: StateBytes
    parameters: StageParameters
    per_parameter: StateBytes
    layout: Parallelism
    workspace: float
    activations: TokenBytes
    logits_bytes_per_token: float
    sequence_length: float
    tokens: float

    @property
    def unsharded_state(self) -> StateBytes:
        """What the state would be without sharding."""
        return sharded_state_bytes(
            self.parameters, self.per_parameter, self.layout._replace(sharding=Sharding.NONE)
        )

    @property
    def activation_bytes(self) -> float:
        """Saved activations of all micro-batches in flight."""
        return self.activations.at(self.sequence_length) * self.tokens

    @property
    def logits_bytes(self) -> float:
        """Logits and what the loss keeps of them."""
        return self.logits_bytes_per_token * self.tokens

    @property
    def fixed_bytes(self) -> float:
        """What no batch changes."""
        return self.state.total + self.workspace

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return self.fixed_bytes + self.activation_bytes + self.logits_bytes


def _stage_parameters(profile: Profile, layout: Parallelism, stage: int) -> StageParameters:
    if not profile.shapes_known:
        return StageParameters(profile.parameter_count / layout.pipeline, 0.0, 0.0)
    low = profile.prefixes[stage_start(profile, layout, stage)]
    high = profile.prefixes[stage_start(profile, layout, stage + 1)]
    split, whole, expert = (high[i] - low[i] for i in range(3))
    if stage == 0:
        split += profile.embedding.split
        whole += profile.embedding.whole
    if stage == layout.pipeline - 1:
        split += profile.head.split
        whole += profile.head.whole
        if stage:
            # A tied head on another stage than its table keeps a copy of it.
            split += profile.tied_parameters
    return StageParameters(split, whole, expert)


def _stage_activations(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> TokenBytes:
    """Saved activations of a stage, over all micro-batches in flight, per token of one of them."""
    element_bytes = ELEMENT_BYTES[workload.recipe.activations]
    full = workload.recomputation is Recomputation.FULL
    linear, quadratic = activation_bytes_per_token(
        profile.deepest_activations if full else profile.activations,
        element_bytes=element_bytes,
        kernel=workload.kernel,
        tensor=layout.tensor,
        sequence_parallel=layout.sequence_parallel,
    )
    in_flight = layout.micro_batches_in_flight(workload.micro_batches, stage)
    held = in_flight * stage_share(profile, layout, stage)
    split = layout.tensor if layout.sequence_parallel else 1
    if full:
        # Every block's input for all micro-batches, and one block's activations at work.
        linear += element_bytes * profile.width_elements * held / split
    else:
        linear *= held
        quadratic *= held
    if stage == 0:
        linear += profile.embedding_mask_bytes * in_flight / split
    return TokenBytes(linear, quadratic)


def logits_bytes_per_token(
    profile: Profile, element_bytes: float, tensor: int = 1, *, sequence_parallel: bool = False
) -> float:
    """Logits of one token, what a loss in FP32 keeps of them, and the inputs of last norm and head.

    Sequence parallelism divides those inputs too (Korthikanti et al. 2022, section 4.3).
    """
    narrow = element_bytes if element_bytes < ELEMENT_BYTES[NumberFormat.FP32] else 0.0
    logits = profile.vocabulary_size / tensor * (LOSS_BYTES_PER_LOGIT + narrow)
    shared = tensor if sequence_parallel else 1
    return logits + profile.head_saved_elements * element_bytes / shared


def _gathered_bytes(profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: int) -> float:
    """Weights that a step gathers whole where they are sharded (Zhao et al. 2023, section 3.1).

    Those of the block at work and of the next; token table and head stay gathered throughout.
    """
    if layout.shards(layout.replicas).weights == 1.0:
        return 0.0
    largest = max(
        (
            block.split_parameters / layout.tensor
            + block.whole_parameters
            + block.expert_parameters / (layout.tensor * layout.expert)
            for block in profile.blocks
        ),
        default=0.0,
    )
    outer = 0.0
    if stage == 0:
        outer += profile.embedding.split / layout.tensor + profile.embedding.whole
    if stage == layout.pipeline - 1:
        outer += profile.head.split / layout.tensor + profile.head.whole
    return (2.0 * largest + outer) * ELEMENT_BYTES[workload.recipe.weights]


def stage_memory(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> StageMemory:
    """Memory of the devices of pipeline stage ``stage`` (0 is the first)."""
    logits = 0.0
    if stage == layout.pipeline - 1:
        element_bytes = ELEMENT_BYTES[workload.recipe.activations]
        logits = logits_bytes_per_token(
            profile, element_bytes, layout.tensor, sequence_parallel=layout.sequence_parallel
        )
    parameters = _stage_parameters(profile, layout, stage)
    per_parameter = state_bytes_per_parameter(workload.recipe, workload.optimizer)
    return StageMemory(
        state=sharded_state_bytes(parameters, per_parameter, layout),
        parameters=parameters,
        per_parameter=per_parameter,
        layout=layout,
        workspace=_gathered_bytes(profile, workload, layout, stage),
        activations=_stage_activations(profile, workload, layout, stage),
        logits_bytes_per_token=logits,
        sequence_length=workload.sequence_length,
        tokens=workload.micro_batch_size * workload.sequence_length / layout.context,
    )


def training_memory(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism
) -> tuple[StageMemory, ...]:
    """Memory of the stages among which the fullest is, the fullest first.

    The first stage holds most micro-batches and the token table, the last the head and the logits;
    a middle stage can only lead where blocks differ.
    """
    stages = {0, layout.pipeline // 2, layout.pipeline - 1} if profile.shapes_known else {0}
    memories = [stage_memory(profile, workload, layout, stage) for stage in sorted(stages)]
    return tuple(sorted(memories, key=lambda memory: -memory.total_bytes))


def largest_micro_batch(stages: tuple[StageMemory, ...], usable_bytes: float, *, context: int) -> int:
    """Most sequences per micro-batch that every stage holds in ``usable_bytes``; 0 if none."""

    def fitting(stage: StageMemory) -> float:
        sequence = stage.activations.at(stage.sequence_length) + stage.logits_bytes_per_token
        tokens = (usable_bytes - stage.fixed_bytes) / sequence if sequence else math.inf
        return tokens * context / stage.sequence_length

    return whole_units(min(fitting(stage) for stage in stages))


def longest_sequence(
    stages: tuple[StageMemory, ...], usable_bytes: float, *, context: int, micro_batch_size: int
) -> int:
    """Longest sequence that every stage holds in ``usable_bytes`` at the same micro-batch size."""

    def fitting(stage: StageMemory) -> float:
        room = usable_bytes - stage.fixed_bytes
        batch = micro_batch_size / context
        linear = (stage.activations.linear + stage.logits_bytes_per_token) * batch
        quadratic = stage.activations.quadratic * batch
        if room <= 0.0 or not linear:
            return 0.0
        # The positive root of quadratic s^2 + linear s = room, stable at quadratic = 0.
        return 2.0 * room / (linear + math.sqrt(linear * linear + 4.0 * quadratic * room))

    return whole_units(min(fitting(stage) for stage in stages))
