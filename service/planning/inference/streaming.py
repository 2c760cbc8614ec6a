"""Operators of an iteration that stream activations: norms, rotations, activations, routing, sampling."""

from typing import NamedTuple

from service.planning.inference.matrices import CountedTemplate
from service.planning.models.profile import ModelProfile
from service.planning.models.profile.layer_operators import StreamedTemplate
from service.planning.operators import (
    DeviceMachine,
    OperatorKind,
    OperatorTime,
    OperatorWork,
    operator_seconds,
)
from service.planning.precision import ELEMENT_BYTES, NumberFormat

SAMPLED_PASSES = 4.0
"""Passes over FP32 logits in sampling a token: widened, penalised, softmax, drawn."""

_WIDE_BYTES = 2.0
_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]


class StreamedActivations(NamedTuple):
    """Seconds, FLOPs and bytes of each row of streamed activations, and launches of a pass."""

    seconds: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0
    kernels: float = 0.0

    def add_operator(self, operator: OperatorWork, time: OperatorTime) -> "StreamedActivations":
        """Adds an operator that is given for one row."""
        return StreamedActivations(
            self.seconds + time.memory_seconds,
            self.flops + operator.flops,
            self.moved_bytes + operator.moved_bytes,
            self.kernels + operator.kernels,
        )


def build_streaming(
    templates: list[CountedTemplate], machine: DeviceMachine, wide: NumberFormat, tensor: float
) -> StreamedActivations:
    """Returns norms, rotations, activation functions and routing of one position."""
    found = StreamedActivations()
    for template, count in templates:
        if isinstance(template, StreamedTemplate):
            traffic = template.forward
            elements = traffic.whole + traffic.split / tensor
            moved = elements * _WIDE_BYTES + (traffic.whole_wide + traffic.split_wide / tensor) * _FP32_BYTES
            operator = OperatorWork(
                template.name,
                OperatorKind.GATHER if template.gathers else OperatorKind.MEMORY,
                wide,
                count * traffic.flops,
                count * moved,
                count * traffic.kernels,
                row_bytes=template.gathers * _WIDE_BYTES,
            )
            found = found.add_operator(operator, operator_seconds(operator, machine))
    return found


def build_sampling_streaming(
    profile: ModelProfile, machine: DeviceMachine, wide: NumberFormat, tensor: float
) -> StreamedActivations:
    """Returns the streaming of the sampling of one token."""
    moved = profile.vocabulary_size * _FP32_BYTES * SAMPLED_PASSES / tensor
    kernels = SAMPLED_PASSES * bool(profile.vocabulary_size)
    operator = OperatorWork("draw", OperatorKind.MEMORY, wide, 0.0, moved, kernels)
    return StreamedActivations().add_operator(operator, operator_seconds(operator, machine))
