"""Forward, backward and recomputed work of the blocks of a model on one device."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.planning.models.architecture import LayerBlock
from service.planning.models.layers import FeedForward, Normalization
from service.planning.models.profile import (
    FusedAttention,
    KernelChoice,
    ModelProfile,
    OperatorFusion,
    TrainedMatrices,
)
from service.planning.models.profile.layer_operators import AttentionTemplate, OperatorTemplate
from service.planning.operators.kinds import OperatorKind, OperatorWork
from service.planning.operators.machine import DeviceMachine
from service.planning.operators.shapes import DeviceShard, PassFormats, build_operators
from service.planning.operators.timing import operator_seconds
from service.planning.software.frameworks import TRAITS, Framework
from service.planning.workload import (
    WHOLE_BLOCKS,
    AdaptationKind,
    AttentionKernel,
    Recomputation,
    TrainingWorkload,
)

FUSION: Mapping[Framework, OperatorFusion] = {
    Framework.GENERIC: OperatorFusion.FUSED,
    Framework.MEGATRON_LM: OperatorFusion.FUSED,
    Framework.MEGATRON_CORE: OperatorFusion.FUSED,
    Framework.MEGATRON_DEEPSPEED: OperatorFusion.FUSED,
    Framework.INTERNEVO: OperatorFusion.FUSED,
    Framework.DEEPSPEED: OperatorFusion.EAGER,
    Framework.DDP: OperatorFusion.EAGER,
    Framework.FSDP: OperatorFusion.EAGER,
    Framework.TORCHTITAN: OperatorFusion.EAGER,
    Framework.TORCHTUNE: OperatorFusion.EAGER,
    Framework.LITGPT: OperatorFusion.EAGER,
    Framework.TRANSFORMERS: OperatorFusion.EAGER,
    Framework.MAXTEXT: OperatorFusion.COMPILED,
    Framework.NEURONX_DISTRIBUTED: OperatorFusion.COMPILED,
}
"""Default fusion of memory-bound operators by framework: Megatron has the kernels of Apex and Transformer

Engine, PyTorch runs one kernel per step, XLA and the compiler of Neuron fuse chains.
"""


def resolve_fusion(workload: TrainingWorkload) -> OperatorFusion:
    """Returns the fusion of memory-bound operators that is asked for, else that of the framework."""
    return workload.fusion or FUSION[workload.framework]


FUSED_ATTENTION: Mapping[Framework, FusedAttention] = {
    Framework.GENERIC: FusedAttention.NATIVE,
    Framework.MEGATRON_CORE: FusedAttention.NATIVE,
    Framework.MEGATRON_LM: FusedAttention.FIRST,
    Framework.MEGATRON_DEEPSPEED: FusedAttention.FIRST,
}
"""Release of the fused attention of frameworks without the second: cuDNN's by Transformer Engine, which a run
of no named framework has too, and the release that Megatron-LM and Megatron-DeepSpeed adopted in 2022."""


def get_fused_attention(framework: Framework) -> FusedAttention:
    """Returns the release of the fused attention that a framework brings: FlashAttention-2 with PyTorch's."""
    return FUSED_ATTENTION.get(framework, FusedAttention.SECOND)


class PassWork(NamedTuple):
    """Sums over the operators of a pass, in seconds, launches, FLOPs and bytes."""

    seconds: float
    compute_bound_seconds: float
    """Part of ``seconds`` in operators that compute bounds."""
    kernels: float
    flops: float
    """FLOPs of matrices, attention and scans, as executed."""
    moved_bytes: float
    routed_kernels: float = 0.0
    """Launches of kernels whose rows the routing of tokens decides, with all experts of a device in one."""
    expert_kernels: float = 0.0
    """Launches of the same kernels with one for each expert of a device."""

    def add_scaled(self, other: "PassWork", times: float = 1.0) -> "PassWork":
        """Returns the sum of both, the other multiplied by ``times``."""
        return PassWork(*[a + b * times for a, b in zip(self, other, strict=True)])


NO_WORK = PassWork(0.0, 0.0, 0.0, 0.0, 0.0)
_STREAMING = (OperatorKind.MEMORY, OperatorKind.GATHER)
_ROUTED = (OperatorKind.GROUPED_GEMM, OperatorKind.GATHER)


def sum_work(found: Iterable[OperatorWork], machine: DeviceMachine) -> PassWork:
    """Returns times and sums of operators that run one after the other."""
    seconds = bound = kernels = flops = moved = routed = experts = 0.0
    for operator in found:
        time = operator_seconds(operator, machine)
        each = time.seconds
        seconds += each
        kernels += operator.kernels
        moved += operator.moved_bytes
        if operator.kind in _ROUTED:
            routed += operator.kernels
            experts += operator.kernels * operator.batch
        if operator.kind not in _STREAMING:
            bound += each * (time.compute_seconds >= time.memory_seconds)
            flops += operator.flops
    return PassWork(seconds, bound, kernels, flops, moved, routed, experts)


class BlockTimes(NamedTuple):
    """Work of one repetition of a block on one device, over one micro-batch."""

    forward: PassWork
    backward: PassWork
    recomputed: PassWork


def _is_plain(block: LayerBlock) -> bool:
    """Returns true if the block has a feed-forward without gate and norms without shift."""
    ungated = any(isinstance(layer, FeedForward) and not layer.gated for layer in block.layers)
    norms = [layer for layer in block.layers if isinstance(layer, Normalization)]
    return ungated and bool(norms) and all(layer.norm == "rms" for layer in norms)


def resolve_choice(
    profile: ModelProfile, workload: TrainingWorkload, fusion: OperatorFusion | None = None
) -> KernelChoice:
    """Returns the kernels that ``workload`` runs with: those of its framework unless stated.

    Architectures do not describe what has no parameters. A decoder without positions is taken to rotate
    queries and keys, unless its embeddings have a norm (BLOOM) or its norms have no shift beside a
    feed-forward without gate (MPT): such models bias their scores, and the latter's norms are layer norms
    without shift.
    """
    trained = None
    tables = {tensor.name for tensor in profile.table_tensors}
    plain = bool(profile.blocks) and _is_plain(profile.blocks[0].block)
    if workload.adaptation.kind is not AdaptationKind.FULL:
        trained = TrainedMatrices(workload.adaptation.targets, workload.adaptation.rank)
    return KernelChoice(
        flash=workload.kernel is AttentionKernel.FLASH,
        fused=workload.fused or get_fused_attention(workload.framework),
        fusion=fusion or resolve_fusion(workload),
        rotary=not (tables & {"positions", "scale"} or plain),
        one_norm_kernel=plain,
        trained=trained,
    )


def recomputed_operators(
    templates: tuple[OperatorTemplate, ...],
    shard: DeviceShard,
    widths: PassFormats,
    workload: TrainingWorkload,
) -> list[OperatorWork]:
    """Returns the operators that a block runs again before its backward pass."""
    if workload.recomputation in WHOLE_BLOCKS:
        return build_operators(templates, shard, widths)
    if workload.recomputation is not Recomputation.SELECTIVE:
        return []
    if TRAITS[workload.framework].recomputes_attention:
        return build_operators(
            [each for each in templates if isinstance(each, AttentionTemplate)], shard, widths
        )
    again = build_operators(
        [each for each in templates if not isinstance(each, AttentionTemplate)], shard, widths
    )
    # Every second matrix multiplication is saved.
    return [
        operator
        if operator.kind in _STREAMING
        else operator._replace(
            flops=operator.flops / 2.0, moved_bytes=operator.moved_bytes / 2.0, kernels=operator.kernels / 2.0
        )
        for operator in again
    ]


def block_times(
    templates: tuple[OperatorTemplate, ...],
    shard: DeviceShard,
    widths: PassFormats,
    workload: TrainingWorkload,
    machine: DeviceMachine,
) -> BlockTimes:
    """Returns the times of one repetition of a block."""
    forward = sum_work(build_operators(templates, shard, widths), machine)
    backward = sum_work(build_operators(templates, shard, widths, backward=True), machine)
    if workload.recomputation in WHOLE_BLOCKS:
        return BlockTimes(forward, backward, forward)
    recomputed = sum_work(recomputed_operators(templates, shard, widths, workload), machine)
    return BlockTimes(forward, backward, recomputed)
