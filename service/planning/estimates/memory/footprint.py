"""Memory of the fullest device, as an estimate answers it."""

from typing import NamedTuple

from service.planning.estimates.advice import Advice
from service.planning.memory.capacity import CacheWaste
from service.planning.quantity import Quantity


class MemoryPart(NamedTuple):
    """A part of the memory of the fullest device."""

    name: str
    size_bytes: int


class DimensionLimits(NamedTuple):
    """Largest value of each dimension that still fits, the others unchanged; None where not known."""

    max_micro_batch_size: int | None = None
    max_concurrency: int | None = None
    """Concurrent requests over the whole cluster."""
    kv_cache_tokens: int | None = None
    """Tokens of the whole cluster's cache, as the engine counts them."""
    max_sequence_length: int | None = None


class RequestCache(NamedTuple):
    """KV cache of one request on the fullest device, and the bytes of a token over the whole model."""

    is_paged: bool
    block_tokens: int
    waste: CacheWaste
    model_bytes_per_token: float


class OffloadedBytes(NamedTuple):
    """Bytes that a training step keeps outside of each device."""

    memory: float
    nvme: float


class MemoryFootprint(NamedTuple):
    """Memory of the fullest device. A member is None where it is not known or does not apply."""

    components: tuple[MemoryPart, ...]
    known_bytes: int
    """Sum of the components, in bytes."""
    total: Quantity | None = None
    """None where a component is not known."""
    limits: DimensionLimits = DimensionLimits()
    capacity: Quantity | None = None
    """Memory that the driver of the device reports, in bytes."""
    usable_bytes: float | None = None
    headroom_bytes: int | None = None
    """Usable bytes less the total; below 0 where the case does not fit."""
    fits: bool | None = None
    fit_probability: float | None = None
    stored_weight_bytes: float | None = None
    """Bytes of the stored weights of a served model."""
    cache: RequestCache | None = None
    """Cache of a request, for a served model that keeps one."""
    trained_parameter_count: int | None = None
    """Number of trained parameters, for a model in training."""
    host: OffloadedBytes | None = None
    """Bytes outside of the device; None where nothing leaves it."""
    advice: tuple[Advice, ...] = ()
    """Changes that make the case fit: for training one set, for serving several alternatives."""
