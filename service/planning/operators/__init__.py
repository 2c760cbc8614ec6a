"""What a model executes on a device: operators with shapes, their FLOPs and bytes, and their seconds."""

from service.planning.operators.flops import (
    StepFlops,
    forward_flops_per_token,
    mean_context_tokens,
    step_flops,
)
from service.planning.operators.kinds import Operator, OperatorKind, OperatorTime
from service.planning.operators.machine import Machine, machine_of
from service.planning.operators.outside import (
    embedding_operators,
    head_operators,
    loss_operator,
    optimizer_operators,
)
from service.planning.operators.passes import (
    FUSION,
    NO_WORK,
    BlockTimes,
    Work,
    block_times,
    choice_of,
    recomputed_operators,
    work_of,
)
from service.planning.operators.roofline import (
    Bound,
    Phase,
    Roofline,
    RooflinePoint,
    arithmetic_intensity,
    ridge_point,
    roofline,
    roofline_point,
)
from service.planning.operators.samples import (
    SampleOperators,
    Station,
    block_operators,
    block_sample_times,
    sample_head_operators,
    sample_operators_of,
)
from service.planning.operators.shapes import Shard, Widths, gemm, operators, shard_of, widths_of
from service.planning.operators.timing import (
    Multipliers,
    matrix_seconds,
    multipliers_of,
    operator_seconds,
    tiled_seconds,
    wave_rounds,
)

__all__ = [
    "FUSION",
    "NO_WORK",
    "BlockTimes",
    "Bound",
    "Machine",
    "Multipliers",
    "Operator",
    "OperatorKind",
    "OperatorTime",
    "Phase",
    "Roofline",
    "RooflinePoint",
    "SampleOperators",
    "Shard",
    "Station",
    "StepFlops",
    "Widths",
    "Work",
    "arithmetic_intensity",
    "block_operators",
    "block_sample_times",
    "block_times",
    "choice_of",
    "embedding_operators",
    "forward_flops_per_token",
    "gemm",
    "head_operators",
    "loss_operator",
    "machine_of",
    "matrix_seconds",
    "mean_context_tokens",
    "multipliers_of",
    "operator_seconds",
    "operators",
    "optimizer_operators",
    "recomputed_operators",
    "ridge_point",
    "roofline",
    "roofline_point",
    "sample_head_operators",
    "sample_operators_of",
    "shard_of",
    "step_flops",
    "tiled_seconds",
    "wave_rounds",
    "widths_of",
    "work_of",
]
