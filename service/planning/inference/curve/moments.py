"""Moments of a load, and the requests that find room at a time."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.load import ReplicaLoad, ReplicaServer

Array: TypeAlias = NDArray[np.float64]
MOST_REQUESTS = 16384.0
"""Batch where neither the engine nor its cache limits it."""
NOTHING = 1e-12


class LoadTokens(NamedTuple):
    """Moments of a load that the formulas need, in tokens."""

    prompt: float
    """Prompt tokens to compute."""
    context: float
    """Mean context while a request decodes."""
    attended: float
    """Mean tokens that a prompt token attends to."""
    decodes: float
    """Tokens after the first."""
    passes: float
    """Iterations that decode them."""
    alone: float
    """Share that one request is of all requests of a closed loop; 0 in an open one."""
    positions: float
    """Positions of a decoding request in an iteration."""


def compute_load_moments(server: ReplicaServer, load: ReplicaLoad) -> LoadTokens:
    """Returns the moments of ``load``."""
    speculation = server.speculation
    decodes = load.decodes
    return LoadTokens(
        load.computed_tokens,
        load.decoding_context,
        load.prefill_context,
        decodes,
        decodes / (speculation.tokens_per_pass if speculation else 1.0),
        0.0 if load.concurrency is None else 1.0 / max(1.0, load.concurrency),
        speculation.positions if speculation else 1.0,
    )


class ServerSetting(NamedTuple):
    """A server, its load, and the number of requests that find room."""

    server: ReplicaServer
    load: ReplicaLoad
    asked: LoadTokens
    places: float


def compute_request_capacity(server: ReplicaServer, load: ReplicaLoad) -> float:
    """Returns the requests that find room at a time.

    The engine's limit, or cache over the size of a request.
    """
    limits = [MOST_REQUESTS]
    if server.most_requests is not None:
        limits.append(float(server.most_requests))
    if server.cache_tokens is not None:
        whole = load.inputs.mean + load.outputs.mean
        context = load.decoding_context
        held = max(context + server.reserved_output * (whole - context), load.inputs.mean)
        limits.append(max(1.0, server.cache_tokens / (held + server.block_tokens / 2.0)))
    return min(limits)
