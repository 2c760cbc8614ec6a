"""What a benchmark does, by kind: its parameters within bounds, and how much work one execution is."""

from typing import Annotated

from pydantic import Field

from service.protocol.work.arithmetic import GEMM_BYTES, AttentionWork, FftWork, GemmWork
from service.protocol.work.base import DType, WorkAmount
from service.protocol.work.device import LaunchLatencyWork, PowerWork
from service.protocol.work.links import (
    CollectiveWork,
    ExternalToolWork,
    HostLinkWork,
    PeerLinkWork,
    StorageWork,
)
from service.protocol.work.memory import (
    STREAM_ARRAYS,
    WORD_BYTES,
    BankConflictWork,
    CacheStreamWork,
    CapacityWork,
    ContextMemoryWork,
    DivergenceWork,
    HostStreamWork,
    OccupancyWork,
    StreamWork,
    StridedReadWork,
)
from service.protocol.work.training import (
    OPTIMIZER_BYTES,
    DecodeLoopWork,
    GradientAccumulationWork,
    GradientCompressionWork,
    OptimizerStepWork,
    TrainingStepWork,
)

__all__ = [
    "GEMM_BYTES",
    "OPTIMIZER_BYTES",
    "STREAM_ARRAYS",
    "WORD_BYTES",
    "AttentionWork",
    "BankConflictWork",
    "BenchmarkWork",
    "CacheStreamWork",
    "CapacityWork",
    "CollectiveWork",
    "ContextMemoryWork",
    "DType",
    "DecodeLoopWork",
    "DivergenceWork",
    "ExternalToolWork",
    "FftWork",
    "GemmWork",
    "GradientAccumulationWork",
    "GradientCompressionWork",
    "HostLinkWork",
    "HostStreamWork",
    "LaunchLatencyWork",
    "OccupancyWork",
    "OptimizerStepWork",
    "PeerLinkWork",
    "PowerWork",
    "StorageWork",
    "StreamWork",
    "StridedReadWork",
    "TrainingStepWork",
    "WorkAmount",
]

BenchmarkWork = Annotated[
    GemmWork
    | AttentionWork
    | FftWork
    | StreamWork
    | StridedReadWork
    | CacheStreamWork
    | HostStreamWork
    | BankConflictWork
    | DivergenceWork
    | OccupancyWork
    | CapacityWork
    | ContextMemoryWork
    | HostLinkWork
    | PeerLinkWork
    | CollectiveWork
    | ExternalToolWork
    | StorageWork
    | LaunchLatencyWork
    | PowerWork
    | OptimizerStepWork
    | GradientAccumulationWork
    | GradientCompressionWork
    | TrainingStepWork
    | DecodeLoopWork,
    Field(discriminator="kind"),
]
