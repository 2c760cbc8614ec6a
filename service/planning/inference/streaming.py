"""What streams activations in an iteration: norms, rotations, activation functions, routing, drawing."""

from typing import NamedTuple

from service.planning.inference.matrices import Counted
from service.planning.models.profile import Profile
from service.planning.models.profile.layer_operators import Streamed
from service.planning.operators import Machine, Operator, OperatorKind, OperatorTime, operator_seconds
from service.planning.precision import ELEMENT_BYTES, NumberFormat

SAMPLED_PASSES = 4.0
"""How often drawing a token passes over FP32 logits: widened, penalised, softmax, drawn."""

_WIDE_BYTES = 2.0
_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]


class Streaming(NamedTuple):
    """What streams activations: seconds, FLOPs and bytes of each row, and launches of a pass."""

    seconds: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0
    kernels: float = 0.0

    def plus(self, operator: Operator, time: OperatorTime) -> "Streaming":
        """With an operator that is given for one row."""
        return Streaming(
            self.seconds + time.memory_seconds,
            self.flops + operator.flops,
            self.moved_bytes + operator.moved_bytes,
            self.kernels + operator.kernels,
        )


def streaming_of(templates: list[Counted], machine: Machine, wide: NumberFormat, tensor: float) -> Streaming:
    """Norms, rotations, activation functions and routing of one position."""
    found = Streaming()
    for template, count in templates:
        if isinstance(template, Streamed):
            traffic = template.forward
            elements = traffic.whole + traffic.split / tensor
            moved = elements * _WIDE_BYTES + (traffic.whole_wide + traffic.split_wide / tensor) * _FP32_BYTES
            operator = Operator(
                template.name,
                OperatorKind.GATHER if template.gathers else OperatorKind.MEMORY,
                wide,
                count * traffic.flops,
                count * moved,
                count * traffic.kernels,
                row_bytes=template.gathers * _WIDE_BYTES,
            )
            found = found.plus(operator, operator_seconds(operator, machine))
    return found


def drawing_of(profile: Profile, machine: Machine, wide: NumberFormat, tensor: float) -> Streaming:
    """What drawing one token passes over."""
    moved = profile.vocabulary_size * _FP32_BYTES * SAMPLED_PASSES / tensor
    kernels = SAMPLED_PASSES * bool(profile.vocabulary_size)
    operator = Operator("draw", OperatorKind.MEMORY, wide, 0.0, moved, kernels)
    return Streaming().plus(operator, operator_seconds(operator, machine))
