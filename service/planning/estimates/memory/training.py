"""Memory of a training step: its components, limits and warnings."""

from collections.abc import Iterator

from service.planning.cases import TrainingCase
from service.planning.estimates.advice import Advice
from service.planning.estimates.calibrations import note_memory
from service.planning.estimates.devices import get_usable_bytes
from service.planning.estimates.memory.advice import list_training_advice
from service.planning.estimates.memory.footprint import DimensionLimits, MemoryFootprint, OffloadedBytes
from service.planning.estimates.memory.totals import correct_total, find_unknown, judge_fit, sum_components
from service.planning.memory.adaptation import count_trained_parameters
from service.planning.memory.caches import key_value_bytes
from service.planning.memory.sampled import find_longest_sampled_sequence, has_variable_length
from service.planning.memory.stages import stage_share
from service.planning.memory.training import (
    StageMemory,
    estimate_training_memory,
    find_largest_micro_batch,
    find_longest_sequence,
)
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, PAGED, NumberFormat
from service.planning.quantity import EvidenceBasis
from service.planning.software.frameworks import Framework
from service.planning.units import GIGABYTE_BYTES
from service.planning.workload import Offload, TrainingObjective, TrainingStateLocation, TrainingWorkload

_TRAINING_UNKNOWN = frozenset({"activations", "logits"})
_STATE = frozenset({"weights", "gradients", "master_weights", "optimizer_states"})
"""Components of a training step that are listed even if they take no memory."""
_TRANSIENT = frozenset(
    {"activations", "logits", "gathered_weights", "gradient_buffers", "workspace", "fragmentation"}
)


def estimate_training(case: TrainingCase, notes: AnswerNotes) -> MemoryFootprint:
    """Estimates the memory of a training step on the fullest stage."""
    profile, workload, layout = case.profile, case.workload, case.layout
    unknown = find_unknown(case, profile, _TRAINING_UNKNOWN, notes)
    usable = get_usable_bytes(case.cluster, workload)
    stages = estimate_training_memory(profile, workload, layout, case.curves.training_memory.overhead)
    limits = DimensionLimits()
    if usable is not None and not unknown:
        limits = _compute_training_limits(case, stages, usable, notes)
    fullest = stages[0]
    estimate = sum_components(_list_training_components(fullest, unknown), unknown)
    note_memory(case.device, notes, has_context=True)
    if not unknown:
        total = case.curves.training_memory.total.around(float(estimate.known_bytes), EvidenceBasis.REFERENCE)
        # The framework is not known: it may keep gradients in FP32.
        total = total._replace(high=total.high + _count_high_precision_gradients(fullest, workload))
        estimate = estimate._replace(total=correct_total(case, total, notes))
    estimate = judge_fit(estimate._replace(limits=limits), case.cluster, usable, notes)
    if estimate.fits and estimate.headroom_bytes is not None:
        _warn_of_high_precision_gradients(estimate.headroom_bytes, fullest, workload, notes)
    if workload.objective in (TrainingObjective.PPO, TrainingObjective.GRPO) and not unknown:
        _warn_of_generation(profile, workload, layout, notes)
    is_moved = workload.offload != Offload() or workload.optimizer in PAGED
    host = None
    if is_moved and not (unknown and workload.offload.activations is not TrainingStateLocation.NONE):
        host = OffloadedBytes(fullest.host_state if unknown else fullest.host_bytes, fullest.nvme_state)
    advice: tuple[Advice, ...] = ()
    if usable is not None and estimate.fits is False and not unknown:
        advice = tuple(list_training_advice(case, usable))
    trained = count_trained_parameters(profile, workload.adaptation)
    return estimate._replace(trained_parameter_count=trained, host=host, advice=advice)


def _list_training_components(stage: StageMemory, unknown: frozenset[str]) -> Iterator[tuple[str, float]]:
    """Yields the components of the fullest moment; without transient ones where activations are unknown."""
    for name, size in stage.components.items():
        if not (unknown and name in _TRANSIENT) and (size or name in _STATE):
            yield name, size


def _compute_training_limits(
    case: TrainingCase, stages: tuple[StageMemory, ...], usable: float, notes: AnswerNotes
) -> DimensionLimits:
    profile, workload, layout, sample = case.profile, case.workload, case.layout, case.sample
    longest = None
    if sample is None:
        longest = find_longest_sequence(
            stages, usable, context=layout.context, micro_batch_size=workload.micro_batch_size
        )
    elif has_variable_length(profile):
        overhead = case.curves.training_memory.overhead
        longest = find_longest_sampled_sequence(
            profile, sample, workload, layout, usable_bytes=usable, overhead=overhead
        )
    else:
        detail = "the model takes no sequence whose length is open"
        notes.add_gap("/limits/max_sequence_length", "NOT_APPLICABLE", detail)
    most = find_largest_micro_batch(stages, usable, context=layout.context)
    return DimensionLimits(max_micro_batch_size=most, max_sequence_length=longest)


def _count_high_precision_gradients(stage: StageMemory, workload: TrainingWorkload) -> float:
    """Returns the extra bytes if a framework keeps narrow gradients in FP32; 0 for a named framework."""
    recipe = workload.recipe
    if workload.framework is not Framework.GENERIC or not recipe.master:
        return 0.0
    if recipe.gradients is NumberFormat.FP32:
        return 0.0
    return stage.state.gradients * ELEMENT_BYTES[NumberFormat.FP32] / ELEMENT_BYTES[recipe.gradients]


def _warn_of_high_precision_gradients(
    headroom: float, stage: StageMemory, workload: TrainingWorkload, notes: AnswerNotes
) -> None:
    """Warns that FP32 gradients would not fit; Megatron-LM and DeepSpeed accumulate bf16 gradients so."""
    wide = _count_high_precision_gradients(stage, workload)
    if wide > headroom:
        notes.warn(
            "GRADIENTS_MAY_BE_WIDE",
            "/workload/precision",
            f"a framework that accumulates gradients in FP32 takes {wide / GIGABYTE_BYTES:.1f} GB more, "
            "which would not fit",
        )


def _warn_of_generation(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, notes: AnswerNotes
) -> None:
    """Warns of the generation between steps, whose cache then takes the place of activations."""
    token = key_value_bytes(profile, 1.0, NumberFormat.BF16, tensor=layout.tensor)
    batch = workload.micro_batch_size * workload.sequence_length
    cache = stage_share(profile, layout) * token * batch
    notes.warn(
        "GENERATION_NOT_COUNTED",
        "/workload/objective",
        f"generating the sequences of a micro-batch holds {cache / GIGABYTE_BYTES:.1f} GB of KV cache "
        "instead of activations; an engine that generates beside the step takes its own share of the "
        "device: ask for it as inference",
    )
