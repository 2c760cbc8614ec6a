"""An operator with its shape on one device, and its seconds."""

from typing import NamedTuple

from service.planning.figures import larger
from service.planning.models.profile import FusedAttention, OperatorKind
from service.planning.precision import NumberFormat

__all__ = ["OperatorKind", "OperatorTime", "OperatorWork"]


class OperatorWork(NamedTuple):
    """Work of one name on one device in one pass over one micro-batch.

    ``flops`` and ``moved_bytes`` are sums over all ``kernels`` launches. Each launch of a matrix operator
    multiplies ``batch`` pairs of rows x depth and depth x columns. Figures may be arrays, one entry per
    layout.
    """

    name: str
    kind: OperatorKind
    number_format: NumberFormat
    flops: float
    moved_bytes: float
    kernels: float = 1.0
    rows: float = 0.0
    columns: float = 0.0
    depth: float = 0.0
    batch: float = 1.0
    context: float = 0.0
    """Mean tokens of context of an attention, whose head size is ``columns``."""
    row_bytes: float = 0.0
    """Bytes of each row that a gather reads."""
    deviations: float = 0.0
    """Standard deviations of an expert's tokens by which the busiest device exceeds the mean."""
    backward: bool = False
    fused: FusedAttention = FusedAttention.SECOND
    """Release of a fused attention kernel."""


class OperatorTime(NamedTuple):
    """Seconds of an operator against each limit, and of its launches."""

    compute_seconds: float
    memory_seconds: float
    launch_seconds: float

    @property
    def seconds(self) -> float:
        """The longer of both limits, and the launches."""
        return larger(self.compute_seconds, self.memory_seconds) + self.launch_seconds
