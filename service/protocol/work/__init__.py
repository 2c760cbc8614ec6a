"""What a benchmark does, by kind: its parameters within bounds, and how much work one execution is."""

from typing import Annotated

from pydantic import Field

from service.protocol.work.arithmetic import GEMM_BYTES, Attention, Fft, Gemm
from service.protocol.work.base import Amount, DType
from service.protocol.work.device import LaunchLatency, Power
from service.protocol.work.links import Collective, ExternalTool, HostLink, PeerLink, Storage
from service.protocol.work.memory import (
    STREAM_ARRAYS,
    WORD_BYTES,
    BankConflict,
    CacheStream,
    Capacity,
    ContextMemory,
    Divergence,
    HostStream,
    Occupancy,
    Stream,
    StridedRead,
)
from service.protocol.work.training import (
    OPTIMIZER_BYTES,
    DecodeLoop,
    GradientAccumulation,
    GradientCompression,
    OptimizerStep,
    TrainingStep,
)

__all__ = [
    "GEMM_BYTES",
    "OPTIMIZER_BYTES",
    "STREAM_ARRAYS",
    "WORD_BYTES",
    "Amount",
    "Attention",
    "BankConflict",
    "CacheStream",
    "Capacity",
    "Collective",
    "ContextMemory",
    "DType",
    "DecodeLoop",
    "Divergence",
    "ExternalTool",
    "Fft",
    "Gemm",
    "GradientAccumulation",
    "GradientCompression",
    "HostLink",
    "HostStream",
    "LaunchLatency",
    "Occupancy",
    "OptimizerStep",
    "PeerLink",
    "Power",
    "Storage",
    "Stream",
    "StridedRead",
    "TrainingStep",
    "Work",
]

Work = Annotated[
    Gemm
    | Attention
    | Fft
    | Stream
    | StridedRead
    | CacheStream
    | HostStream
    | BankConflict
    | Divergence
    | Occupancy
    | Capacity
    | ContextMemory
    | HostLink
    | PeerLink
    | Collective
    | ExternalTool
    | Storage
    | LaunchLatency
    | Power
    | OptimizerStep
    | GradientAccumulation
    | GradientCompression
    | TrainingStep
    | DecodeLoop,
    Field(discriminator="kind"),
]
