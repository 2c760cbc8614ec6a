"""What a serving engine reaches of operators and links, and what it adds to them in every iteration.

Constants of any engine are what is known where it is not named; those of an engine are habits of software:
how many kernels beside operators a layer has, how fast its host program prepares an iteration. Those of a
generation of an engine's versions stand beside those of the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare, find_nearest_share, get_or_build
from service.planning.software.engines import EngineName


class ServingQuantity(StrEnum):
    """The constants of an iteration of a serving engine."""

    WEIGHT_BANDWIDTH = "weight_bandwidth"
    """Rate at which matrices stream their weights over that of a streaming kernel."""
    UNIT_BANDWIDTH = "unit_bandwidth"
    """Bytes per second of weights that the kernels of a matrix stream through one multiprocessor at most."""
    EXPERT_BANDWIDTH = "expert_bandwidth"
    """The same for the matrices of routed experts, which start anew with each expert."""
    SCALED_BANDWIDTH = "scaled_bandwidth"
    """The same for experts of 8 bits with a scale for each block, over others."""
    WIDENED_BANDWIDTH = "widened_bandwidth"
    """Rate at which weights stream that are widened before they multiply, over that of others."""
    CACHE_BANDWIDTH = "cache_bandwidth"
    """The same for attention over the pages of a cache."""
    MATRIX_SHARE = "matrix_share"
    """Rate of large multiplications over that of a multiplication alone: scales, casts and layouts beside."""
    EXPERT_SHARE = "expert_share"
    """The same for the matrices of routed experts."""
    SCALED_SHARE = "scaled_share"
    """The share of the multipliers' rate that is left where inputs have a scale for each block."""
    DECODE_ATTENTION = "decode_attention"
    """Share of the dense rate that attention over a cache reaches."""
    WIDENING_SHARE = "widening_share"
    """The share of the multipliers' rate that is left where weights are widened before they multiply."""
    KERNEL_SECONDS = "kernel_seconds"
    """Time of a kernel beside its work where the launches of an iteration are replayed from a graph."""
    LAUNCH_SECONDS = "launch_seconds"
    """Time in which the host program launches one kernel where they are not."""
    LAYER_KERNELS = "layer_kernels"
    """Kernels of an attention layer that are no operator: places in the cache, casts, partial sums."""
    CAST_KERNELS = "cast_kernels"
    """Kernels that cast the input of a matrix which has a scale for each block of its inputs."""
    EXPERT_KERNELS = "expert_kernels"
    """The same of a layer with experts: counts, order and places of its tokens."""
    WIDENED_KERNELS = "widened_kernels"
    """Further kernels of a layer with experts whose weights are widened."""
    COLLECTIVE_SECONDS = "collective_seconds"
    """Start of a collective, and the wait of its devices for one another."""
    SUM_BANDWIDTH = "sum_bandwidth"
    """Rate at which an engine's own kernels sum over a link, over that of long messages."""
    HOST_SECONDS = "host_seconds"
    """What the host program adds to an iteration, whatever the batch."""
    REQUEST_SECONDS = "request_seconds"
    """What it adds for each request of the iteration."""
    FRONTEND_SECONDS = "frontend_seconds"
    """What passes between a request and its place in an iteration: connection, tokens, queues."""
    COLD_SECONDS = "cold_seconds"
    """What the first requests of a run wait for that begins cold: kernels are compiled, chosen and loaded."""
    HANDOFF_SECONDS = "handoff_seconds"
    """From the last kernel of a prompt on one replica until another may decode it, beside the transfer of its
    cache: it is announced, room is found, and it joins an iteration."""
    EXPERT_IMBALANCE = "expert_imbalance"
    """Standard deviation of the tokens of an expert over their mean, beside that of chance."""
    EXPERT_VARIETY = "expert_variety"
    """Share of a further token's choices of experts that do not depend on those of the tokens before it."""


class ServingRates(NamedTuple):
    """The constants of one engine as numbers."""

    weight_bandwidth: float
    unit_bandwidth: float
    expert_bandwidth: float
    scaled_bandwidth: float
    widened_bandwidth: float
    cache_bandwidth: float
    matrix_share: float
    expert_share: float
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
        """The constant of the generation of the engine, else that of the engine, else that of any."""
        keys = (quantity, engine, generation), (quantity, engine, None), (quantity, None, None)
        return find_nearest_share(self.constants, keys, quantity)

    def get_rates(self, engine: EngineName | None, generation: str | None = None) -> ServingRates:
        """The constants of an engine."""
        return get_or_build(
            self._known,
            (engine, generation),
            lambda: ServingRates(
                **{each.value: self.find_share(each, engine, generation).value for each in ServingQuantity}
            ),
        )

    def drop_engines(self) -> "ServingCalibration":
        """The set without the constants of named engines."""
        pooled = {key: share for key, share in self.constants.items() if key[1] is None}
        return replace(self, constants=pooled, _known={})
