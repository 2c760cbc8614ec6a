"""Runs of a simulated replica, and the events of each request."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.load import BatchScheduler, ReplicaLoad, ReplicaServer
from service.planning.inference.simulation.replica import SimulatedReplica
from service.planning.inference.simulation.requests import SimulatedRequests, sample_requests
from service.planning.inference.speculation import IterationSource, SpeculativeIterations
from service.planning.inference.table import IterationTable


class SimulatedRun(NamedTuple):
    """Events of a run: one entry for each request that was sent, in order.

    NaN for an event that did not occur.
    """

    sent_seconds: NDArray[np.float64]
    admitted_seconds: NDArray[np.float64]
    first_token_seconds: NDArray[np.float64]
    ended_seconds: NDArray[np.float64]
    output_tokens: NDArray[np.float64]
    prompt_tokens: NDArray[np.float64]
    """Prompt tokens to compute."""
    passes: NDArray[np.float64]
    """Decoding iterations of each request."""
    seconds: float
    """Time at which the run ended."""
    computed_tokens: float
    """Prompt tokens that were computed, including those recomputed after a preemption."""
    repeated_tokens: float
    """Prompt tokens that were recomputed."""
    decoded_tokens: float
    preemptions: int
    decode_iterations: int
    prompt_iterations: int
    busy_seconds: float
    prompt_seconds: float
    """Seconds that prompts added to their iterations."""
    decoding_request_seconds: float
    """Time integral of the number of decoding requests."""
    warm: int
    counted: int
    """Requests from ``warm`` to ``counted`` are measured."""


def simulate_requests(
    model: IterationSource,
    server: ReplicaServer,
    load: ReplicaLoad,
    *,
    seed: int,
    requests: int,
    between: Callable[[], object] = object,
) -> SimulatedRun:
    """Simulates every request of one replica, without pipeline, in seconds and tokens."""
    if server.speculation:
        model = SpeculativeIterations(model, server.speculation)
    random = np.random.default_rng(seed)
    asked = sample_requests(server, load, random, requests)
    longest = max(asked.inputs) if not server.chunked_prefill else 0.0
    table = IterationTable(model, load, max(float(server.batched_tokens), longest))
    engine = SimulatedReplica(table, server, load, asked)
    static = server.scheduler is BatchScheduler.STATIC
    if load.concurrency is not None:
        at_once = math.ceil(load.concurrency)
        if load.burst_requests is None and not static:
            engine.begin_mid_run(at_once, random)
        else:
            cold = server.cold_seconds if load.burst_requests is not None else 0.0
            for _ in range(min(at_once, asked.counted)):
                engine.coming.append((server.frontend_seconds + cold, engine.send_request(0.0)))
    engine.run(between)
    return _build_run(engine, asked)


def _build_run(engine: SimulatedReplica, asked: SimulatedRequests) -> SimulatedRun:
    sent = len(engine.sent)
    shapes = np.arange(sent) % len(asked.inputs)
    hits = 1.0 - engine.load.prefix_hit_rate
    return SimulatedRun(
        sent_seconds=np.asarray(engine.sent),
        admitted_seconds=np.asarray(engine.admitted),
        first_token_seconds=np.asarray(engine.first),
        ended_seconds=np.asarray(engine.ended),
        output_tokens=np.asarray(asked.outputs)[shapes],
        prompt_tokens=np.maximum(1.0, np.asarray(asked.inputs)[shapes] * hits),
        passes=np.asarray(asked.passes, dtype=np.float64)[shapes],
        seconds=engine.now,
        computed_tokens=engine.computed,
        repeated_tokens=engine.repeated,
        decoded_tokens=engine.decoded,
        preemptions=engine.preemptions,
        decode_iterations=engine.decode_iterations,
        prompt_iterations=engine.prompt_iterations,
        busy_seconds=engine.busy,
        prompt_seconds=engine.prompt_seconds,
        decoding_request_seconds=engine.request_seconds,
        warm=asked.warm,
        counted=asked.counted,
    )
