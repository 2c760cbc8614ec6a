"""The cheapest set of techniques that makes a training step fit.

Techniques are tried in the order of their cost to a run: first free ones, then communication, then
recomputation, then precision of the optimizer, then transfers to the host, and last training fewer
parameters. They are added one by one until the step fits; techniques that turn out to be unnecessary are
removed again, the most expensive first. Each total is that of ``estimate_training_memory``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from service.planning.memory.training import estimate_layout_memory, estimate_training_memory
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import Optimizer
from service.planning.software.overhead import DeviceOverhead
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    LossImplementation,
    Recomputation,
    TrainingStateLocation,
    TrainingWorkload,
)

LORA_RANK = 16
"""Rank of the recommended low-rank matrices."""

MOST_TENSOR = 64
"""Widest recommended tensor parallelism; no wider one is known."""


class StepLayout(NamedTuple):
    """A training step on a layout."""

    workload: TrainingWorkload
    layout: Parallelism


class AdvisedTechnique(NamedTuple):
    """A technique, and the bytes of the fullest device with it and all before it."""

    code: str
    detail: str
    total_bytes: float


class _Technique(NamedTuple):
    code: str
    detail: str
    applied: Callable[[StepLayout], StepLayout | None]
    """Returns the step with the technique, or None where it is in use already or does not apply."""


def _use_flash_attention(step: StepLayout) -> StepLayout | None:
    if step.workload.kernel is AttentionKernel.FLASH:
        return None
    return step._replace(workload=step.workload._replace(kernel=AttentionKernel.FLASH))


def _use_sequence_parallelism(step: StepLayout) -> StepLayout | None:
    if step.layout.tensor == 1 or step.layout.sequence_parallel:
        return None
    return step._replace(layout=step.layout._replace(sequence_parallel=True))


_STAGES = (Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3)


def _build_sharding_change(sharding: Sharding) -> Callable[[StepLayout], StepLayout | None]:
    def apply_sharding(step: StepLayout) -> StepLayout | None:
        current = step.layout.sharding
        if step.layout.replicas == 1 or current is Sharding.HYBRID:
            return None
        if _STAGES.index(current) >= _STAGES.index(sharding):
            return None
        return step._replace(layout=step.layout._replace(sharding=sharding))

    return apply_sharding


def _use_single_sequence(step: StepLayout) -> StepLayout | None:
    workload = step.workload
    if workload.micro_batch_size == 1 or workload.steps_in_backward:
        return None
    micro_batches = workload.micro_batches * workload.micro_batch_size
    return step._replace(workload=workload._replace(micro_batch_size=1, micro_batches=micro_batches))


def _use_chunked_loss(step: StepLayout) -> StepLayout | None:
    if step.workload.loss is not LossImplementation.FP32:
        return None
    return step._replace(workload=step.workload._replace(loss=LossImplementation.CHUNKED))


def _build_recomputation_change(
    strategy: Recomputation, *instead_of: Recomputation
) -> Callable[[StepLayout], StepLayout | None]:
    def apply_recomputation(step: StepLayout) -> StepLayout | None:
        if step.workload.recomputation not in instead_of:
            return None
        return step._replace(workload=step.workload._replace(recomputation=strategy))

    return apply_recomputation


def _use_8bit_optimizer(step: StepLayout) -> StepLayout | None:
    if step.workload.optimizer not in (Optimizer.ADAM, Optimizer.ADAMW):
        return None
    return step._replace(workload=step.workload._replace(optimizer=Optimizer.ADAM_8BIT))


def _build_offload_change(part: str) -> Callable[[StepLayout], StepLayout | None]:
    def apply_offload(step: StepLayout) -> StepLayout | None:
        offload = step.workload.offload
        if getattr(offload, part) is not TrainingStateLocation.NONE:
            return None
        moved = offload._replace(**{part: TrainingStateLocation.CPU})
        return step._replace(workload=step.workload._replace(offload=moved))

    return apply_offload


def _use_low_rank(step: StepLayout) -> StepLayout | None:
    if step.workload.adaptation.kind is not AdaptationKind.FULL:
        return None
    adaptation = Adaptation(AdaptationKind.LORA, LORA_RANK, frozenset({"query", "value"}))
    return step._replace(workload=step.workload._replace(adaptation=adaptation))


class _TechniqueSearch(NamedTuple):
    """Inputs of the search: the model, the bound of tensor parallelism, and the usable memory."""

    profile: ModelProfile
    per_node: int
    usable_bytes: float
    overhead: DeviceOverhead

    def list_degrees(self, layout: Parallelism) -> list[int]:
        """Returns wider degrees of tensor parallelism that take their devices from the replicas."""
        heads = [work.query_heads for work in self.profile.attention]
        return [
            degree
            for degree in range(2 * layout.tensor, min(self.per_node, MOST_TENSOR) + 1, layout.tensor)
            if layout.data % (degree // layout.tensor) == 0
            and layout.data * layout.tensor // degree % layout.expert == 0
            and all(count % degree == 0 for count in heads)
        ]

    def widen_tensor(self, step: StepLayout) -> StepLayout | None:
        """Returns the narrowest tensor parallelism that suffices, else the one with the least memory."""
        layout, workload = step.layout, step.workload
        degrees = self.list_degrees(layout)
        if not degrees:
            return None
        tensor = np.array(degrees)
        factor = tensor // layout.tensor

        def build_step(tensor: int, factor: int) -> StepLayout:
            wider = layout._replace(tensor=tensor, data=layout.data // factor)
            return StepLayout(workload._replace(micro_batches=workload.micro_batches * factor), wider)

        many = build_step(cast("int", tensor), cast("int", factor))
        totals = estimate_layout_memory(self.profile, many.workload, many.layout, self.overhead)
        fitting = np.flatnonzero(totals <= self.usable_bytes)
        chosen = int(fitting[0]) if len(fitting) else int(np.argmin(totals))
        return build_step(degrees[chosen], degrees[chosen] // layout.tensor)


def _list_techniques(search: _TechniqueSearch) -> Iterator[_Technique]:
    """Yields all techniques, the cheapest first."""
    yield _Technique(
        "FLASH_ATTENTION", "an attention kernel that does not store scores", _use_flash_attention
    )
    yield _Technique(
        "SEQUENCE_PARALLEL", "dividing what tensor parallelism leaves whole", _use_sequence_parallelism
    )
    yield _Technique(
        "ZERO_1", "sharding the optimizer states (ZeRO 1)", _build_sharding_change(Sharding.ZERO_1)
    )
    yield _Technique("MICRO_BATCH_1", "micro-batches of one sequence, more of them", _use_single_sequence)
    yield _Technique("CHUNKED_LOSS", "taking the loss in parts", _use_chunked_loss)
    selective = _build_recomputation_change(Recomputation.SELECTIVE, Recomputation.NONE)
    yield _Technique("SELECTIVE_RECOMPUTATION", "recomputing cheap activations", selective)
    yield _Technique("ZERO_2", "sharding the gradients too (ZeRO 2)", _build_sharding_change(Sharding.ZERO_2))
    yield _Technique(
        "ZERO_3",
        "sharding weights, gradients and optimizer states (ZeRO 3)",
        _build_sharding_change(Sharding.ZERO_3),
    )
    full = _build_recomputation_change(
        Recomputation.FULL,
        Recomputation.NONE,
        Recomputation.SELECTIVE,
        Recomputation.EVERY_K,
        Recomputation.SQRT,
    )
    yield _Technique("FULL_RECOMPUTATION", "recomputing all activations", full)
    yield _Technique("MORE_TENSOR", "{tensor} devices for each layer", search.widen_tensor)
    yield _Technique("ADAM_8BIT", "optimizer states of 8 bits", _use_8bit_optimizer)
    yield _Technique(
        "OFFLOAD_OPTIMIZER", "optimizer states in host memory", _build_offload_change("optimizer")
    )
    yield _Technique(
        "OFFLOAD_ACTIVATIONS", "saved activations in host memory", _build_offload_change("activations")
    )
    yield _Technique("OFFLOAD_PARAMETERS", "weights in host memory", _build_offload_change("parameters"))
    yield _Technique("LORA", "training low-rank matrices beside query and value only", _use_low_rank)


def find_cheapest_techniques(
    profile: ModelProfile,
    step: StepLayout,
    *,
    per_node: int,
    usable_bytes: float,
    overhead: DeviceOverhead,
) -> tuple[AdvisedTechnique, ...]:
    """Returns the techniques that together bring ``step`` below ``usable_bytes``; none if all do not suffice.

    ``per_node`` bounds tensor parallelism. No technique of the result can be left out.
    """
    search = _TechniqueSearch(profile, per_node, usable_bytes, overhead)

    def apply_techniques(chosen: Sequence[_Technique]) -> tuple[StepLayout, float] | None:
        """Returns the step with all of ``chosen`` and its bytes.

        None where one does not apply after the others.
        """
        current = step
        for technique in chosen:
            changed = technique.applied(current)
            if changed is None:
                return None
            current = changed
        return current, estimate_training_memory(profile, current.workload, current.layout, overhead)[
            0
        ].total_bytes

    def is_sufficient(chosen: Sequence[_Technique]) -> bool:
        found = apply_techniques(chosen)
        return found is not None and found[1] <= usable_bytes

    chosen: list[_Technique] = []
    for technique in _list_techniques(search):
        if apply_techniques([*chosen, technique]) is None:
            continue
        chosen.append(technique)
        if is_sufficient(chosen):
            break
    else:
        return ()
    for technique in reversed(chosen[:-1]):
        without = [kept for kept in chosen if kept is not technique]
        if is_sufficient(without):
            chosen = without
    return tuple(_list_advice(chosen, apply_techniques))


def _list_advice(
    chosen: Sequence[_Technique], taken: Callable[[Sequence[_Technique]], tuple[StepLayout, float] | None]
) -> Iterator[AdvisedTechnique]:
    for end, technique in enumerate(chosen):
        found = taken(chosen[: end + 1])
        if found is not None:
            detail = technique.detail.format(tensor=found[0].layout.tensor)
            yield AdvisedTechnique(technique.code, detail, found[1])
