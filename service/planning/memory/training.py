"""Memory of one device in training, itemised, and the limits that follow from it. All figures are bytes.

State: ``states`` (Rajbhandari et al. 2020 for its sharding); activations: ``activations`` (Korthikanti et al.
2022). Four moments of a step are distinguished, and the fullest is reported: the loss, when the logits are
held beside all activations; the backward pass, when a block is recomputed and its gradients are not yet
scattered; its end, when all gradients are there and one block is at work; the optimizer's step. The fullest
pipeline stage is reported.

Degrees, micro-batch and sequence may be NumPy arrays, one entry for each layout:
:func:`estimate_layout_memory`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.figures import is_only, larger
from service.planning.memory.activations import (
    TokenBytes,
    compute_stage_activations,
    logits_bytes_per_token,
)
from service.planning.memory.holdings import compute_stage_states, count_stage_parameters
from service.planning.memory.stages import round_down_units
from service.planning.memory.states import (
    StateBytes,
    shard_parameters,
)
from service.planning.memory.transients import (
    compute_step_temporaries,
    compute_transients,
    compute_weight_copies,
    count_communicators,
)
from service.planning.models.profile import ModelProfile, StageParameters
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import (
    ELEMENT_BYTES,
    PAGED,
    NumberFormat,
)
from service.planning.software.frameworks import TRAITS
from service.planning.software.overhead import NO_OVERHEAD, DeviceOverhead
from service.planning.workload import (
    PAIRED,
    AdaptationKind,
    TrainingObjective,
    TrainingStateLocation,
    TrainingWorkload,
)

_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]


class StepMoment(NamedTuple):
    """A part of a step: bytes whatever the batch, and bytes per token of a micro-batch on the device."""

    fixed: float
    tokens: TokenBytes


class StageMemory(NamedTuple):
    """Memory of the devices of one pipeline stage in the course of a training step.

    Activations and ``logits_bytes_per_token`` are per token of a micro-batch on the device; ``tokens`` is the
    number of a device's tokens in one micro-batch.
    """

    stage: int
    state: StateBytes
    weight_copies: float
    auxiliary_models: float
    gathered_weights: float
    buckets: float
    """Gradients in addition to the state's, during the whole step."""
    block_gradients: float
    """Gradients of the block at work before they are scattered."""
    late_gradients: float
    """Gradients that do not exist before the backward pass computes them."""
    step_temporaries: float
    stored: TokenBytes
    working: TokenBytes
    logits_bytes_per_token: float
    overhead: DeviceOverhead
    communicators: float
    sequence_length: float
    tokens: float
    host_state: float
    nvme_state: float
    host_activations: TokenBytes

    @property
    def _constant_bytes(self) -> float:
        held = self.state.total + self.weight_copies + self.auxiliary_models
        beside = self.overhead.context + self.overhead.matrix_workspace
        return held + beside + self.communicators * self.overhead.communicator

    @property
    def moments(self) -> tuple[StepMoment, StepMoment, StepMoment, StepMoment]:
        """Loss, backward pass, its end and optimizer step, with the allocator's loss."""
        dynamic = 1.0 + self.overhead.fragmentation
        gathered = self._constant_bytes + (self.gathered_weights + self.buckets) * dynamic
        early = gathered - self.late_gradients
        loss = TokenBytes(self.stored.linear + self.logits_bytes_per_token, self.stored.quadratic)
        backward = self.stored.add(self.working)
        return (
            StepMoment(early, loss.scale(dynamic)),
            StepMoment(early + self.block_gradients * dynamic, backward.scale(dynamic)),
            StepMoment(gathered, self.working.scale(dynamic)),
            StepMoment(
                self._constant_bytes + (self.buckets + self.step_temporaries) * dynamic,
                self.stored.scale(0.0),
            ),
        )

    @property
    def moment_bytes(self) -> tuple[float, float, float, float]:
        """Bytes of each moment."""
        length, tokens, always = self.sequence_length, self.tokens, self._constant_bytes
        dynamic = 1.0 + self.overhead.fragmentation
        held = self.buckets + self.gathered_weights
        stored, working = (
            self.stored.compute_bytes(length) * tokens,
            self.working.compute_bytes(length) * tokens,
        )
        early = always - self.late_gradients
        return (
            early + (held + stored + self.logits_bytes_per_token * tokens) * dynamic,
            early + (held + stored + self.block_gradients + working) * dynamic,
            always + (held + working) * dynamic,
            always + (self.buckets + self.step_temporaries) * dynamic,
        )

    @property
    def total_bytes(self) -> float:
        """Bytes of the fullest moment."""
        loss, backward, end, step = self.moment_bytes
        return larger(larger(loss, backward), larger(end, step))

    @property
    def components(self) -> dict[str, float]:
        """Parts of the fullest moment, which add up to the total."""
        loss, backward, end, step = self.moment_bytes
        at_loss = (loss >= backward) * (loss >= end) * (loss >= step) * 1.0
        at_step = (step > loss) * (step > backward) * (step > end) * 1.0
        at_end = (end > loss) * (end > backward) * (end >= step) * 1.0
        at_backward = 1.0 - at_loss - at_end - at_step
        length, tokens = self.sequence_length, self.tokens
        stored = self.stored.compute_bytes(length) * tokens * (at_loss + at_backward)
        activations = stored + self.working.compute_bytes(length) * tokens * (at_backward + at_end)
        logits = self.logits_bytes_per_token * tokens * at_loss
        gathered = self.gathered_weights * (1.0 - at_step)
        buffers = self.buckets + self.block_gradients * at_backward
        temporaries = self.step_temporaries * at_step
        dynamic = activations + logits + gathered + buffers + temporaries
        return {
            "weights": self.state.weights,
            "gradients": self.state.gradients - self.late_gradients * (at_loss + at_backward),
            "master_weights": self.state.master_weights,
            "optimizer_states": self.state.optimizer_states,
            "weight_copies": self.weight_copies,
            "auxiliary_models": self.auxiliary_models,
            "activations": activations,
            "logits": logits,
            "gathered_weights": gathered,
            "gradient_buffers": buffers,
            "workspace": temporaries + self.overhead.matrix_workspace,
            "device_context": self.overhead.context + 0.0 * stored,
            "communication_buffers": self.communicators * self.overhead.communicator,
            "fragmentation": dynamic * self.overhead.fragmentation,
        }

    @property
    def host_bytes(self) -> float:
        """Bytes that the step holds in the memory of the host for this device."""
        return self.host_state + self.host_activations.compute_bytes(self.sequence_length) * self.tokens


def relative_size(parameters: int | None, profile: ModelProfile) -> float:
    """Returns the parameters of another model over those of the trained one; 1 where they are not given."""
    return 1.0 if parameters is None else parameters / max(profile.parameter_count, 1)


def _compute_auxiliary_bytes(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    base: StageParameters,
    state: StateBytes,
) -> float:
    """Returns the bytes of further models: frozen references and rewards, a critic, a teacher, an average.

    DPO holds a reference, PPO a reference, a reward model and a critic that is trained, GRPO a reference and
    a reward model where one is given, a distillation its teacher; adapters serve as their own reference.
    """
    held = shard_parameters(base, layout).weights
    frozen = held * ELEMENT_BYTES[workload.recipe.activations]
    adapted = workload.adaptation.kind is not AdaptationKind.FULL
    reference = 0.0 if adapted else frozen
    match workload.objective:
        case TrainingObjective.DPO:
            copies = reference
        case TrainingObjective.GRPO:
            rewarded = workload.reward_parameters or 0
            copies = reference + frozen * rewarded / max(profile.parameter_count, 1)
        case TrainingObjective.PPO:
            critic = relative_size(workload.critic_parameters, profile)
            reward = relative_size(workload.reward_parameters, profile)
            copies = reference + reward * frozen + critic * state.total
        case TrainingObjective.DISTILLATION:
            copies = frozen * relative_size(workload.teacher_parameters, profile)
        case _:
            copies = 0.0 * frozen
    return copies + (held * _FP32_BYTES if workload.weight_average else 0.0)


def is_gradient_offloaded(workload: TrainingWorkload, layout: Parallelism) -> bool:
    """Returns true if sharded gradients are offloaded together with the optimizer."""
    spread = layout.sharding in (Sharding.ZERO_2, Sharding.ZERO_3)
    return spread and workload.offload.optimizer is not TrainingStateLocation.NONE


class _StagePlacement(NamedTuple):
    device: StateBytes
    host: float
    nvme: float


def _split_offloaded_state(
    state: StateBytes, workload: TrainingWorkload, layout: Parallelism
) -> _StagePlacement:
    """Returns the state that stays on the device, and the bytes elsewhere (Ren et al. 2021)."""
    offload = workload.offload
    if workload.steps_in_backward:
        state = state._replace(gradients=0.0 * state.gradients)
    device, places = state, {TrainingStateLocation.CPU: 0.0, TrainingStateLocation.NVME: 0.0}
    if offload.optimizer is not TrainingStateLocation.NONE:
        places[offload.optimizer] += state.master_weights + state.optimizer_states
        device = device._replace(master_weights=0.0 * state.weights, optimizer_states=0.0 * state.weights)
        if is_gradient_offloaded(workload, layout):
            places[offload.optimizer] += state.gradients
            device = device._replace(gradients=0.0 * state.weights)
    elif workload.optimizer in PAGED:
        places[TrainingStateLocation.CPU] += state.optimizer_states
        device = device._replace(optimizer_states=0.0 * state.weights)
    if offload.parameters is not TrainingStateLocation.NONE:
        places[offload.parameters] += state.weights
        device = device._replace(weights=0.0 * state.weights)
    return _StagePlacement(device, places[TrainingStateLocation.CPU], places[TrainingStateLocation.NVME])


def _compute_freed_gradients(workload: TrainingWorkload, layout: Parallelism, state: StateBytes) -> float:
    """Returns the gradients that PyTorch frees before a step of one micro-batch.

    On one device they reuse the memory that activations free; those of collectives come from separate
    streams, whose memory the allocator separates.
    """
    alone = (layout.devices == 1) * (workload.micro_batches == 1)
    return TRAITS[workload.framework].frees_gradients * alone * state.gradients


def compute_stage_memory(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    overhead: DeviceOverhead = NO_OVERHEAD,
) -> StageMemory:
    """Returns the memory of the devices of pipeline stage ``stage`` (0 is the first)."""
    recipe, traits = workload.recipe, TRAITS[workload.framework]
    base = count_stage_parameters(profile, layout, stage)
    state = compute_stage_states(profile, workload, layout, stage, base)
    placed = _split_offloaded_state(state, workload, layout)
    passing = compute_transients(profile, workload, layout, stage, base)
    activations = compute_stage_activations(profile, workload, layout, stage)
    logits = logits_bytes_per_token(
        profile,
        ELEMENT_BYTES[recipe.activations],
        layout.tensor,
        sequence_parallel=layout.sequence_parallel,
        loss=workload.loss,
        compiled=workload.compiled,
        loss_bytes=traits.logit_bytes + (layout.tensor > 1) * traits.loss_parallel_bytes,
    )
    if workload.objective in PAIRED:
        logits *= 2.0
    if workload.objective is TrainingObjective.DISTILLATION:
        logits += profile.vocabulary_size / layout.tensor * _FP32_BYTES
    on_host = 1.0 if workload.offload.activations is TrainingStateLocation.CPU else 0.0
    return StageMemory(
        stage=stage,
        state=placed.device,
        weight_copies=compute_weight_copies(profile, workload, layout, base),
        auxiliary_models=_compute_auxiliary_bytes(profile, workload, layout, base, state),
        gathered_weights=passing.gathered,
        buckets=passing.buckets,
        block_gradients=passing.block_gradients,
        late_gradients=_compute_freed_gradients(workload, layout, placed.device),
        step_temporaries=compute_step_temporaries(profile, workload, layout, stage, base),
        stored=activations.stored,
        working=activations.working,
        logits_bytes_per_token=logits * (stage == layout.pipeline - 1),
        overhead=overhead.apply_eager_context(eager=traits.eager_context),
        communicators=count_communicators(layout, traits),
        sequence_length=workload.sequence_length,
        tokens=workload.micro_batch_size * workload.sequence_length / layout.context,
        host_state=placed.host,
        nvme_state=placed.nvme,
        host_activations=activations.offloaded.scale(on_host),
    )


def compute_device_state(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    *,
    with_tables: bool = True,
) -> StateBytes:
    """Returns weights, gradients and optimizer states that stay on one device of a stage.

    ``with_tables`` counts the embedding tables of a recommender, of which a step updates some rows only.
    """
    base = count_stage_parameters(profile, layout, stage)
    if not with_tables:
        base = base._replace(tables=0.0)
    return _split_offloaded_state(
        compute_stage_states(profile, workload, layout, stage, base), workload, layout
    ).device


def compute_unsharded_state(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> StateBytes:
    """Returns the state of a stage as it would be without sharding."""
    alone = layout._replace(sharding=Sharding.NONE)
    return compute_stage_states(
        profile, workload, alone, stage, count_stage_parameters(profile, alone, stage)
    )


def estimate_training_memory(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    overhead: DeviceOverhead = NO_OVERHEAD,
) -> tuple[StageMemory, ...]:
    """Returns the memory of the stages among which the fullest is, the fullest first.

    The first stage holds most micro-batches and the token table, the last the head and the logits; a middle
    stage can only lead where blocks differ.
    """
    stages = {0}
    if profile.shapes_known:
        stages.add(layout.pipeline - 1)
    if len(profile.blocks) > 1:
        stages.add(layout.pipeline // 2)
    memories = [compute_stage_memory(profile, workload, layout, stage, overhead) for stage in sorted(stages)]
    return tuple(sorted(memories, key=lambda memory: -memory.total_bytes))


def estimate_layout_memory(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layouts: Parallelism,
    overhead: DeviceOverhead = NO_OVERHEAD,
) -> NDArray[np.float64]:
    """Returns the bytes of the fullest device for each of many layouts, by the functions of a single one.

    Degrees of ``layouts`` and the micro-batch size, micro-batches and sequence length of ``workload`` may be
    arrays of equal length; sharding, schedule and recomputation are common to all of them. Every degree must
    divide as :func:`service.planning.parallelism.check_layout` requires.
    """
    last = layouts.pipeline - 1
    # With one stage all three are the same.
    single = is_only(layouts.pipeline, 1.0)
    fullest = 0.0
    for stage in (0,) if single else (0 * layouts.pipeline, layouts.pipeline // 2, last):
        fullest = larger(
            fullest, compute_stage_memory(profile, workload, layouts, stage, overhead).total_bytes
        )
    return np.asarray(fullest, dtype=np.float64)


def find_largest_micro_batch(stages: tuple[StageMemory, ...], usable_bytes: float, *, context: int) -> int:
    """Returns the most sequences per micro-batch that every stage holds in ``usable_bytes``; 0 if none."""

    def compute_fitting_tokens(moment: StepMoment, length: float) -> float:
        if moment.fixed > usable_bytes:
            return 0.0
        sequence = moment.tokens.compute_bytes(length)
        tokens = (usable_bytes - moment.fixed) / sequence if sequence else math.inf
        return tokens * context / length

    return round_down_units(
        min(compute_fitting_tokens(m, stage.sequence_length) for stage in stages for m in stage.moments)
    )


def find_longest_sequence(
    stages: tuple[StageMemory, ...], usable_bytes: float, *, context: int, micro_batch_size: int
) -> int:
    """Returns the longest sequence that every stage holds in ``usable_bytes``, at the same batch size."""

    def compute_fitting_length(moment: StepMoment) -> float:
        room = usable_bytes - moment.fixed
        if room < 0.0:
            return 0.0
        batch = micro_batch_size / context
        linear, quadratic = (part * batch for part in moment.tokens)
        if not linear:
            return math.inf
        # The positive root of quadratic s^2 + linear s = room, stable at quadratic = 0.
        return 2.0 * room / (linear + math.sqrt(linear * linear + 4.0 * quadratic * room))

    return round_down_units(
        min(compute_fitting_length(moment) for stage in stages for moment in stage.moments)
    )
