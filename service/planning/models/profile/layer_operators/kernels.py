"""Kernels that a block is run with, and what sets the time of an operator."""

from enum import StrEnum
from typing import NamedTuple

from service.planning.models.profile.activations import TrainedMatrices


class OperatorKind(StrEnum):
    """Property that sets the time of an operator."""

    GEMM = "gemm"
    GROUPED_GEMM = "grouped_gemm"
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    SCAN = "scan"
    MEMORY = "memory"
    GATHER = "gather"


class OperatorFusion(StrEnum):
    """Fusion of memory-bound operators into kernels: none, chains by hand, or chains by a compiler."""

    EAGER = "eager"
    FUSED = "fused"
    COMPILED = "compiled"


class FusedAttention(StrEnum):
    """Releases of fused attention: FlashAttention, FlashAttention-2, or for the device's own instructions."""

    FIRST = "first"
    SECOND = "second"
    NATIVE = "native"


class KernelChoice(NamedTuple):
    """Kernels that a block is run with. ``trained`` is None if all matrices are trained.

    ``one_norm_kernel`` is true if even unfused norms are one kernel, as PyTorch's layer norm is. ``serves``
    is true if no gradient follows: there is no dropout, and a batch norm has its statistics beforehand.
    ``built`` marks an engine that was built for one model: in addition to the work of a compiler, it joins
    matrices with the same input, computes an activation where its matrix is written, and locates the tokens
    of experts in few kernels.
    """

    flash: bool = True
    fused: FusedAttention = FusedAttention.SECOND
    fusion: OperatorFusion = OperatorFusion.FUSED
    rotary: bool = True
    one_norm_kernel: bool = False
    trained: TrainedMatrices | None = None
    serves: bool = False
    built: bool = False

    @property
    def joins(self) -> bool:
        """True if matrices that read the same input are joined into one."""
        return self.fusion is OperatorFusion.FUSED or self.built
