"""Forward, backward and recomputed work of the blocks of a model on one device."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.planning.models.architecture import Block
from service.planning.models.layers import FeedForward, Normalization
from service.planning.models.profile import Choice, FusedAttention, Fusion, Profile, Trained
from service.planning.models.profile.layer_operators import Core, Template
from service.planning.operators.kinds import Operator, OperatorKind
from service.planning.operators.machine import Machine
from service.planning.operators.shapes import Shard, Widths, operators
from service.planning.operators.timing import operator_seconds
from service.planning.software.frameworks import TRAITS, Framework
from service.planning.workload import (
    WHOLE_BLOCKS,
    AdaptationKind,
    AttentionKernel,
    Recomputation,
    TrainingWorkload,
)

FUSION: Mapping[Framework, Fusion] = {
    Framework.GENERIC: Fusion.FUSED,
    Framework.MEGATRON_LM: Fusion.FUSED,
    Framework.MEGATRON_CORE: Fusion.FUSED,
    Framework.MEGATRON_DEEPSPEED: Fusion.FUSED,
    Framework.INTERNEVO: Fusion.FUSED,
    Framework.DEEPSPEED: Fusion.EAGER,
    Framework.DDP: Fusion.EAGER,
    Framework.FSDP: Fusion.EAGER,
    Framework.TORCHTITAN: Fusion.EAGER,
    Framework.TORCHTUNE: Fusion.EAGER,
    Framework.LITGPT: Fusion.EAGER,
    Framework.TRANSFORMERS: Fusion.EAGER,
}
"""How frameworks run memory-bound operators where nothing else is said: Megatron with the kernels of Apex and
Transformer Engine, PyTorch's own one kernel a step."""


FUSED_ATTENTION: Mapping[Framework, FusedAttention] = {
    Framework.MEGATRON_CORE: FusedAttention.NATIVE,
    Framework.MEGATRON_LM: FusedAttention.FIRST,
    Framework.MEGATRON_DEEPSPEED: FusedAttention.FIRST,
}
"""Release of the fused attention of frameworks that have not the second: cuDNN's by Transformer Engine, and
the one that Megatron-LM and Megatron-DeepSpeed took up in 2022."""


class Work(NamedTuple):
    """Sums over the operators of a pass, in seconds, launches, FLOPs and bytes."""

    seconds: float
    compute_bound_seconds: float
    """The part of ``seconds`` in operators whose limit is compute."""
    kernels: float
    flops: float
    """Of matrices, attention and scans, as executed."""
    moved_bytes: float

    def plus(self, other: "Work", times: float = 1.0) -> "Work":
        """The sum of both, the other taken ``times`` times."""
        return Work(*[a + b * times for a, b in zip(self, other, strict=True)])


NO_WORK = Work(0.0, 0.0, 0.0, 0.0, 0.0)
_STREAMING = (OperatorKind.MEMORY, OperatorKind.GATHER)


def work_of(found: Iterable[Operator], machine: Machine) -> Work:
    """Times and sums of operators that run one after the other."""
    seconds = bound = kernels = flops = moved = 0.0
    for operator in found:
        time = operator_seconds(operator, machine)
        each = time.seconds
        seconds += each
        kernels += operator.kernels
        moved += operator.moved_bytes
        if operator.kind not in _STREAMING:
            bound += each * (time.compute_seconds >= time.memory_seconds)
            flops += operator.flops
    return Work(seconds, bound, kernels, flops, moved)


class BlockTimes(NamedTuple):
    """One repetition of a block on one device, over one micro-batch."""

    forward: Work
    backward: Work
    recomputed: Work


def _is_plain(block: Block) -> bool:
    """Whether a feed-forward without gate stands behind norms without shift."""
    ungated = any(isinstance(layer, FeedForward) and not layer.gated for layer in block.layers)
    norms = [layer for layer in block.layers if isinstance(layer, Normalization)]
    return ungated and bool(norms) and all(layer.norm == "rms" for layer in norms)


def choice_of(
    profile: Profile,
    workload: TrainingWorkload,
    fusion: Fusion | None = None,
    fused: FusedAttention | None = None,
) -> Choice:
    """The kernels that ``workload`` runs with: those of its framework unless stated.

    Architectures do not say what has no parameters. A decoder without positions is taken to rotate queries
    and keys, unless its embeddings have a norm (BLOOM) or its norms have no shift beside a feed-forward
    without gate (MPT): such ones bias their scores, and the latter's norms are layer norms without shift.
    """
    trained = None
    tables = {tensor.name for tensor in profile.table_tensors}
    plain = bool(profile.blocks) and _is_plain(profile.blocks[0].block)
    if workload.adaptation.kind is not AdaptationKind.FULL:
        trained = Trained(workload.adaptation.targets, workload.adaptation.rank)
    return Choice(
        flash=workload.kernel is AttentionKernel.FLASH,
        fused=fused or FUSED_ATTENTION.get(workload.framework, FusedAttention.SECOND),
        fusion=fusion or workload.fusion or FUSION[workload.framework],
        rotary=not (tables & {"positions", "scale"} or plain),
        one_norm_kernel=plain,
        trained=trained,
    )


def recomputed_operators(
    templates: tuple[Template, ...], shard: Shard, widths: Widths, workload: TrainingWorkload
) -> list[Operator]:
    """What the backward pass of a block runs again before it."""
    if workload.recomputation in WHOLE_BLOCKS:
        return operators(templates, shard, widths)
    if workload.recomputation is not Recomputation.SELECTIVE:
        return []
    if TRAITS[workload.framework].recomputes_attention:
        return operators([each for each in templates if isinstance(each, Core)], shard, widths)
    again = operators([each for each in templates if not isinstance(each, Core)], shard, widths)
    # Every second matrix multiplication is kept.
    return [
        operator
        if operator.kind in _STREAMING
        else operator._replace(
            flops=operator.flops / 2.0, moved_bytes=operator.moved_bytes / 2.0, kernels=operator.kernels / 2.0
        )
        for operator in again
    ]


def block_times(
    templates: tuple[Template, ...],
    shard: Shard,
    widths: Widths,
    workload: TrainingWorkload,
    machine: Machine,
) -> BlockTimes:
    """Times of one repetition of a block."""
    forward = work_of(operators(templates, shard, widths), machine)
    backward = work_of(operators(templates, shard, widths, backward=True), machine)
    if workload.recomputation in WHOLE_BLOCKS:
        return BlockTimes(forward, backward, forward)
    recomputed = work_of(recomputed_operators(templates, shard, widths, workload), machine)
    return BlockTimes(forward, backward, recomputed)
