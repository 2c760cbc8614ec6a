"""The cheapest set of techniques that makes a training step fit.

Techniques are tried in the order of what they cost a run: first what costs nothing, then communication, then
computing again, then precision of the optimizer, then transfers to the host, and last training fewer
parameters. They are added one by one until the step fits; what turns out not to be needed is taken out
again, the dearest first. Each total is that of ``training_memory``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from service.planning.memory.training import memory_of_layouts, training_memory
from service.planning.models.profile import Profile
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import Optimizer
from service.planning.software.overhead import DeviceOverhead
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    Loss,
    Place,
    Recomputation,
    TrainingWorkload,
)

LORA_RANK = 16
"""Rank of the low-rank matrices that are advised."""

MOST_TENSOR = 64
"""Widest tensor parallelism that is advised; none was seen wider."""


class Step(NamedTuple):
    """A training step on a layout."""

    workload: TrainingWorkload
    layout: Parallelism


class Advised(NamedTuple):
    """A technique, and the bytes of the fullest device with it and all before it."""

    code: str
    detail: str
    total_bytes: float


class _Technique(NamedTuple):
    code: str
    detail: str
    applied: Callable[[Step], Step | None]
    """The step with it, or None where it has it already or cannot have it."""


def _kernel(step: Step) -> Step | None:
    if step.workload.kernel is AttentionKernel.FLASH:
        return None
    return step._replace(workload=step.workload._replace(kernel=AttentionKernel.FLASH))


def _sequence_parallel(step: Step) -> Step | None:
    if step.layout.tensor == 1 or step.layout.sequence_parallel:
        return None
    return step._replace(layout=step.layout._replace(sequence_parallel=True))


_STAGES = (Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3)


def _sharded(sharding: Sharding) -> Callable[[Step], Step | None]:
    def applied(step: Step) -> Step | None:
        current = step.layout.sharding
        if step.layout.replicas == 1 or current is Sharding.HYBRID:
            return None
        if _STAGES.index(current) >= _STAGES.index(sharding):
            return None
        return step._replace(layout=step.layout._replace(sharding=sharding))

    return applied


def _single_sequence(step: Step) -> Step | None:
    workload = step.workload
    if workload.micro_batch_size == 1 or workload.steps_in_backward:
        return None
    micro_batches = workload.micro_batches * workload.micro_batch_size
    return step._replace(workload=workload._replace(micro_batch_size=1, micro_batches=micro_batches))


def _chunked_loss(step: Step) -> Step | None:
    if step.workload.loss is not Loss.FP32:
        return None
    return step._replace(workload=step.workload._replace(loss=Loss.CHUNKED))


def _recomputed(strategy: Recomputation, *instead_of: Recomputation) -> Callable[[Step], Step | None]:
    def applied(step: Step) -> Step | None:
        if step.workload.recomputation not in instead_of:
            return None
        return step._replace(workload=step.workload._replace(recomputation=strategy))

    return applied


def _narrow_optimizer(step: Step) -> Step | None:
    if step.workload.optimizer not in (Optimizer.ADAM, Optimizer.ADAMW):
        return None
    return step._replace(workload=step.workload._replace(optimizer=Optimizer.ADAM_8BIT))


def _offloaded(part: str) -> Callable[[Step], Step | None]:
    def applied(step: Step) -> Step | None:
        offload = step.workload.offload
        if getattr(offload, part) is not Place.NONE:
            return None
        moved = offload._replace(**{part: Place.CPU})
        return step._replace(workload=step.workload._replace(offload=moved))

    return applied


def _low_rank(step: Step) -> Step | None:
    if step.workload.adaptation.kind is not AdaptationKind.FULL:
        return None
    adaptation = Adaptation(AdaptationKind.LORA, LORA_RANK, frozenset({"query", "value"}))
    return step._replace(workload=step.workload._replace(adaptation=adaptation))


class _Search(NamedTuple):
    """What the search holds on to: the model, what tensor parallelism may divide, and the memory there is."""

    profile: Profile
    per_node: int
    usable_bytes: float
    overhead: DeviceOverhead

    def degrees(self, layout: Parallelism) -> list[int]:
        """Wider degrees of tensor parallelism that take their devices from the replicas."""
        heads = [work.query_heads for work in self.profile.attention]
        return [
            degree
            for degree in range(2 * layout.tensor, min(self.per_node, MOST_TENSOR) + 1, layout.tensor)
            if layout.data % (degree // layout.tensor) == 0
            and layout.data * layout.tensor // degree % layout.expert == 0
            and all(count % degree == 0 for count in heads)
        ]

    def wider(self, step: Step) -> Step | None:
        """The narrowest tensor parallelism that suffices, else that which takes least."""
        layout, workload = step.layout, step.workload
        degrees = self.degrees(layout)
        if not degrees:
            return None
        tensor = np.array(degrees)
        factor = tensor // layout.tensor

        def widened(tensor: int, factor: int) -> Step:
            wider = layout._replace(tensor=tensor, data=layout.data // factor)
            return Step(workload._replace(micro_batches=workload.micro_batches * factor), wider)

        many = widened(cast("int", tensor), cast("int", factor))
        totals = memory_of_layouts(self.profile, many.workload, many.layout, self.overhead)
        fitting = np.flatnonzero(totals <= self.usable_bytes)
        chosen = int(fitting[0]) if len(fitting) else int(np.argmin(totals))
        return widened(degrees[chosen], degrees[chosen] // layout.tensor)


def _techniques(search: _Search) -> Iterator[_Technique]:
    """All techniques, the cheapest first."""
    yield _Technique("FLASH_ATTENTION", "an attention kernel that does not store scores", _kernel)
    yield _Technique("SEQUENCE_PARALLEL", "dividing what tensor parallelism leaves whole", _sequence_parallel)
    yield _Technique("ZERO_1", "sharding the optimizer states (ZeRO 1)", _sharded(Sharding.ZERO_1))
    yield _Technique("MICRO_BATCH_1", "micro-batches of one sequence, more of them", _single_sequence)
    yield _Technique("CHUNKED_LOSS", "taking the loss in parts", _chunked_loss)
    selective = _recomputed(Recomputation.SELECTIVE, Recomputation.NONE)
    yield _Technique("SELECTIVE_RECOMPUTATION", "recomputing what is cheap to compute", selective)
    yield _Technique("ZERO_2", "sharding the gradients too (ZeRO 2)", _sharded(Sharding.ZERO_2))
    yield _Technique(
        "ZERO_3", "sharding weights, gradients and optimizer states (ZeRO 3)", _sharded(Sharding.ZERO_3)
    )
    full = _recomputed(
        Recomputation.FULL,
        Recomputation.NONE,
        Recomputation.SELECTIVE,
        Recomputation.EVERY_K,
        Recomputation.SQRT,
    )
    yield _Technique("FULL_RECOMPUTATION", "recomputing all activations", full)
    yield _Technique("MORE_TENSOR", "{tensor} devices for each layer", search.wider)
    yield _Technique("ADAM_8BIT", "optimizer states of 8 bits", _narrow_optimizer)
    yield _Technique("OFFLOAD_OPTIMIZER", "optimizer states in host memory", _offloaded("optimizer"))
    yield _Technique("OFFLOAD_ACTIVATIONS", "saved activations in host memory", _offloaded("activations"))
    yield _Technique("OFFLOAD_PARAMETERS", "weights in host memory", _offloaded("parameters"))
    yield _Technique("LORA", "training low-rank matrices beside query and value only", _low_rank)


def cheapest_techniques(
    profile: Profile,
    step: Step,
    *,
    per_node: int,
    usable_bytes: float,
    overhead: DeviceOverhead,
) -> tuple[Advised, ...]:
    """The techniques that together bring ``step`` below ``usable_bytes``; none where all do not suffice.

    ``per_node`` bounds tensor parallelism. None of them can be left out of the answer.
    """
    search = _Search(profile, per_node, usable_bytes, overhead)

    def taken(chosen: Sequence[_Technique]) -> tuple[Step, float] | None:
        """The step with all of ``chosen`` and its bytes; None where one does not apply behind the others."""
        current = step
        for technique in chosen:
            changed = technique.applied(current)
            if changed is None:
                return None
            current = changed
        return current, training_memory(profile, current.workload, current.layout, overhead)[0].total_bytes

    def suffices(chosen: Sequence[_Technique]) -> bool:
        found = taken(chosen)
        return found is not None and found[1] <= usable_bytes

    chosen: list[_Technique] = []
    for technique in _techniques(search):
        if taken([*chosen, technique]) is None:
            continue
        chosen.append(technique)
        if suffices(chosen):
            break
    else:
        return ()
    for technique in reversed(chosen[:-1]):
        without = [kept for kept in chosen if kept is not technique]
        if suffices(without):
            chosen = without
    return tuple(_advised(chosen, taken))


def _advised(
    chosen: Sequence[_Technique], taken: Callable[[Sequence[_Technique]], tuple[Step, float] | None]
) -> Iterator[Advised]:
    for end, technique in enumerate(chosen):
        found = taken(chosen[: end + 1])
        if found is not None:
            detail = technique.detail.format(tensor=found[0].layout.tensor)
            yield Advised(technique.code, detail, found[1])
