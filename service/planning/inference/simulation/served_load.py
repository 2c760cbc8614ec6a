"""Figures of a served load from a simulation of its requests."""

import math
from collections.abc import Callable

import numpy as np

from service.planning.inference.curve import average_iterations, compute_iteration_times, compute_load_moments
from service.planning.inference.iteration import IterationTime
from service.planning.inference.load import (
    ArrivalProcess,
    ReplicaLoad,
    ReplicaServer,
    RequestLatencies,
    ServedLoad,
    compute_percentiles,
)
from service.planning.inference.serving import (
    combine_groups,
    count_active_groups,
    estimate_served_load,
    split_group,
)
from service.planning.inference.simulation.runs import SimulatedRun, simulate_requests
from service.planning.inference.speculation import IterationSource, SpeculativeIterations


def simulate_served_load(
    model: IterationSource,
    server: ReplicaServer,
    load: ReplicaLoad,
    *,
    seed: int,
    duration_seconds: float | None = None,
    requests: int | None = None,
    between: Callable[[], object] = object,
) -> ServedLoad:
    """Returns the figures of ``estimate_served_load`` from a simulation of each request.

    Counted are ``requests``, or those of ``duration_seconds`` at the requested or reached rate; of a burst
    and of a trace all. Saturation, the highest rate and the knee are those of ``estimate_served_load``. Of a
    pipeline one group is simulated. ``between`` is called between iterations of the engine, so that it can
    end a simulation by raising.

    Raises:
        ValueError: Neither or both of a duration and a number are given, or of concurrency and rate.
    """
    if (duration_seconds is None) == (requests is None):
        raise ValueError("give either a duration or a number of requests")
    expected = estimate_served_load(model, server, load)
    groups, stages = count_active_groups(server, load), float(server.pipeline)
    if server.pipeline > 1:
        server, load = split_group(server, load, groups)
    if requests is not None:
        counted = max(1, round(requests / groups))
    else:
        rate = load.rate_per_second or expected.requests_per_second / groups
        counted = max(1, math.ceil((duration_seconds or 0.0) * rate))
    if load.burst_requests is not None:
        counted = math.ceil(load.burst_requests)
    if load.concurrency is None and load.arrivals.process is ArrivalProcess.TRACE:
        counted = min(counted, len(load.arrivals.at_seconds))
    done = simulate_requests(model, server, load, seed=seed, requests=counted, between=between)
    one = _summarize_run(model, server, load, done, combine_groups(expected, 1.0 / groups, 1.0 / stages))
    return combine_groups(one, groups, stages)


def _summarize_run(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, done: SimulatedRun, expected: ServedLoad
) -> ServedLoad:
    counted = slice(done.warm, done.counted)
    sent, first, ended = (
        times[counted] for times in (done.sent_seconds, done.first_token_seconds, done.ended_seconds)
    )
    tokens = done.output_tokens[counted]
    behind = np.maximum(tokens - 1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(behind > 0.0, (ended - first) / behind, np.nan)
    decodes = bool((behind > 0.0).any())
    rate, output_rate = _compute_rates(done)
    waited = done.admitted_seconds[counted] - sent - server.frontend_seconds
    iteration = _compute_mean_pass(model, server, load, done)
    return expected._replace(
        time_to_first_token_seconds=compute_percentiles(first - sent),
        time_per_output_token_seconds=compute_percentiles(each) if decodes else None,
        request_seconds=compute_percentiles(ended - sent),
        requests_per_second=rate,
        output_tokens_per_second=output_rate,
        decoding=done.decoding_request_seconds / done.seconds,
        waiting=rate * float(np.maximum(waited, 0.0).mean()),
        utilization=done.busy_seconds / done.seconds,
        preemptions_per_request=done.preemptions / len(done.sent_seconds),
        prefill_share=done.prompt_seconds / done.busy_seconds,
        iteration=iteration,
        outcomes=RequestLatencies(first - sent, each if decodes else None, ended - sent),
    )


def _compute_rates(done: SimulatedRun) -> tuple[float, float]:
    """Returns requests and output tokens per second.

    Of a run that ends, or while counted requests are sent.
    """
    if done.warm == 0 and done.counted == len(done.sent_seconds):
        lasting = float(done.ended_seconds.max() - done.sent_seconds.min())
        return len(done.sent_seconds) / lasting, float(done.output_tokens.sum()) / lasting
    begin, end = done.sent_seconds[done.warm], done.sent_seconds[done.counted - 1]
    if end <= begin:
        begin, end = 0.0, done.seconds
    within = (done.ended_seconds > begin) & (done.ended_seconds <= end)
    lasting = float(end - begin)
    return float(within.sum()) / lasting, float(done.output_tokens[within].sum()) / lasting


def _compute_mean_pass(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, done: SimulatedRun
) -> IterationTime:
    """Returns the mean iteration: at the mean batch, with the mean prompt tokens where there are some."""
    if server.speculation:
        model = SpeculativeIterations(model, server.speculation)
    asked = compute_load_moments(server, load)
    batch = done.decoded_tokens / max(done.decode_iterations, 1) * asked.passes / max(asked.decodes, 1e-9)
    tokens = done.computed_tokens / max(done.prompt_iterations, 1)
    beside = batch if server.mixed_prefill else 0.0
    times = compute_iteration_times(model, asked, np.asarray([batch, beside]), np.asarray([0.0, tokens]))
    alone = (
        max(done.decode_iterations - done.prompt_iterations, 0)
        if server.mixed_prefill
        else done.decode_iterations
    )
    return average_iterations(times, 0, 1, done.prompt_iterations / max(alone + done.prompt_iterations, 1))
