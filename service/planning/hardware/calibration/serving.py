"""Constants of serving engines: their efficiency on operators and links, and the overhead of an iteration.

Constants of any engine apply where none is named; those of a named engine are properties of its software: the
number of kernels beside operators in a layer, the speed at which its host program prepares an iteration.
Constants of a generation of an engine's versions come in addition to those of the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare, find_nearest_share, get_or_build
from service.planning.software.engines import EngineName


class ServingQuantity(StrEnum):
    """Constants of an iteration of a serving engine."""

    WEIGHT_BANDWIDTH = "weight_bandwidth"
    """Rate at which matrices stream their weights over that of a streaming kernel."""
    UNIT_BANDWIDTH = "unit_bandwidth"
    """Bytes per second of weights that matrix kernels stream through one multiprocessor at most."""
    EXPERT_BANDWIDTH = "expert_bandwidth"
    """``weight_bandwidth`` of the matrices of routed experts, which restart with each expert."""
    SCALED_BANDWIDTH = "scaled_bandwidth"
    """``expert_bandwidth`` of experts of 8 bits with a scale for each block, over that of others."""
    WIDENED_BANDWIDTH = "widened_bandwidth"
    """Rate at which weights stream that are widened before they multiply, over that of other weights."""
    CACHE_BANDWIDTH = "cache_bandwidth"
    """Rate at which attention streams the pages of a cache over that of a streaming kernel."""
    MATRIX_SHARE = "matrix_share"
    """Rate of large multiplications over that of a multiplication alone, due to scales, casts and layouts."""
    EXPERT_SHARE = "expert_share"
    """``matrix_share`` of the matrices of routed experts."""
    EXPERT_ROWS = "expert_rows"
    """Rows that grouped kernels compute in addition to those of each expert, to fill their tiles."""
    EXPERT_COPIES = "expert_copies"
    """Passes over each copy of a token for its experts that are no operator: order, scales, sums."""
    SCALED_SHARE = "scaled_share"
    """Share of the multipliers' rate that remains where inputs have a scale for each block."""
    DECODE_ATTENTION = "decode_attention"
    """Share of the dense rate that attention over a cache reaches."""
    WIDENING_SHARE = "widening_share"
    """Share of the multipliers' rate that remains where weights are widened before they multiply."""
    KERNEL_SECONDS = "kernel_seconds"
    """Seconds of a kernel in addition to its work where a graph replays the launches of an iteration."""
    LAUNCH_SECONDS = "launch_seconds"
    """Seconds in which the host program launches one kernel without a graph."""
    LAYER_KERNELS = "layer_kernels"
    """Kernels of an attention layer that are no operator: cache positions, casts, partial sums."""
    CAST_KERNELS = "cast_kernels"
    """Kernels that cast the input of a matrix which has a scale for each block of its inputs."""
    EXPERT_KERNELS = "expert_kernels"
    """Kernels of a layer with experts that are no operator: counts, order and positions of its tokens."""
    WIDENED_KERNELS = "widened_kernels"
    """Additional kernels of a layer with experts whose weights are widened."""
    COLLECTIVE_SECONDS = "collective_seconds"
    """Start of a collective, and the wait of its devices for each other."""
    SUM_BANDWIDTH = "sum_bandwidth"
    """Rate at which an engine's own kernels sum over a link, over the rate of long messages."""
    HOST_SECONDS = "host_seconds"
    """Seconds that the host program adds to an iteration, whatever the batch."""
    REQUEST_SECONDS = "request_seconds"
    """Seconds that the host program adds for each request of the iteration."""
    FRONTEND_SECONDS = "frontend_seconds"
    """Seconds between a request and its place in an iteration: connection, tokenization, queues."""
    COLD_SECONDS = "cold_seconds"
    """Seconds that the first requests of a cold run wait: kernels are compiled, chosen and loaded."""
    HANDOFF_SECONDS = "handoff_seconds"
    """Seconds from the last kernel of a prompt on one replica until another may decode it, without the

    transfer of its cache: the request is announced, room is found, and it joins an iteration.
    """
    EXPERT_IMBALANCE = "expert_imbalance"
    """Standard deviation of the tokens of an expert over their mean, in addition to that of chance."""
    EXPERT_VARIETY = "expert_variety"
    """Share of a further token's choices of experts that do not depend on those of the tokens before it."""


class ServingRates(NamedTuple):
    """Constants of one engine as numbers."""

    weight_bandwidth: float
    unit_bandwidth: float
    expert_bandwidth: float
    scaled_bandwidth: float
    widened_bandwidth: float
    cache_bandwidth: float
    matrix_share: float
    expert_share: float
    expert_rows: float
    expert_copies: float
    scaled_share: float
    decode_attention: float
    widening_share: float
    kernel_seconds: float
    launch_seconds: float
    layer_kernels: float
    cast_kernels: float
    expert_kernels: float
    widened_kernels: float
    collective_seconds: float
    sum_bandwidth: float
    host_seconds: float
    request_seconds: float
    frontend_seconds: float
    cold_seconds: float
    handoff_seconds: float
    expert_imbalance: float
    expert_variety: float


ServingKey = tuple[ServingQuantity, EngineName | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCalibration:
    """Constants by quantity, engine and generation of its versions; None stands for any of them."""

    constants: Mapping[ServingKey, AchievedShare]
    _known: dict[tuple[EngineName | None, str | None], ServingRates] = field(
        default_factory=dict, repr=False, compare=False
    )

    def find_share(
        self, quantity: ServingQuantity, engine: EngineName | None, generation: str | None = None
    ) -> AchievedShare:
        """Returns the constant of the engine's generation, else that of the engine, else that of any."""
        keys = (quantity, engine, generation), (quantity, engine, None), (quantity, None, None)
        return find_nearest_share(self.constants, keys, quantity)

    def get_rates(self, engine: EngineName | None, generation: str | None = None) -> ServingRates:
        """Returns the constants of an engine."""
        return get_or_build(
            self._known,
            (engine, generation),
            lambda: ServingRates(
                **{each.value: self.find_share(each, engine, generation).value for each in ServingQuantity}
            ),
        )
