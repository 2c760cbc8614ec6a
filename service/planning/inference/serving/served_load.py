"""Closed-form estimate of a server under a load (``compute_curve``), with percentiles."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from service.planning.inference.curve import (
    NOTHING,
    Array,
    ReplicaCurve,
    ServerSetting,
    average_iterations,
    compute_curve,
    compute_load_moments,
    compute_point,
    compute_points,
    compute_request_capacity,
    select_iteration,
    select_point,
)
from service.planning.inference.iteration import IterationTime
from service.planning.inference.load import (
    BatchScheduler,
    ReplicaLoad,
    ReplicaServer,
    ServedLoad,
    compute_percentiles,
)
from service.planning.inference.serving.groups import combine_groups, count_active_groups, split_group
from service.planning.inference.serving.latencies import sample_cold_start, sample_steady_state
from service.planning.inference.serving.operating_point import (
    WorkingPoint,
    solve_closed_loop,
    solve_open_loop,
)
from service.planning.inference.serving.preemption import apply_preemptions, estimate_preemptions
from service.planning.inference.speculation import IterationSource, SpeculativeIterations
from service.planning.inference.static_batches import estimate_static_batching

_STEPS = np.arange(18) / 17.0
_SMALL = np.asarray([0.02, 0.25, 0.6])


def estimate_served_load(model: IterationSource, server: ReplicaServer, load: ReplicaLoad) -> ServedLoad:
    """Estimates ``server`` under ``load``: latencies in seconds, rates per second, of one replica.

    Each stage of a pipeline works for its own group of requests, so that a pipeline equals as many servers,
    each with a share of requests, rate and cache and the whole pass as its iteration.

    Raises:
        ValueError: Neither or both of concurrency and rate are given.
    """
    if (load.concurrency is None) == (load.rate_per_second is None):
        raise ValueError("give either a concurrency or a rate")
    if server.speculation:
        model = SpeculativeIterations(model, server.speculation)
    groups, stages = count_active_groups(server, load), float(server.pipeline)
    if server.pipeline > 1:
        server, load = split_group(server, load, groups)
    if server.scheduler is BatchScheduler.STATIC:
        return combine_groups(estimate_static_batching(model, server, load), groups, stages)
    return combine_groups(_estimate_continuous_batching(model, server, load), groups, stages)


def estimate_closed_loops(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, concurrencies: Sequence[float]
) -> list[ServedLoad]:
    """Estimates closed loops of ``concurrencies`` requests each, all else as in ``load``."""
    loads = [load._replace(concurrency=requests, rate_per_second=None) for requests in concurrencies]
    return estimate_similar_loads(model, server, loads)


def estimate_similar_loads(
    model: IterationSource, server: ReplicaServer, loads: Sequence[ReplicaLoad]
) -> list[ServedLoad]:
    """Returns ``estimate_served_load`` for loads that differ only in concurrency, rate, or burst.

    They are all closed loops or all open ones. The iteration model is called once for all of them, which
    takes a fraction of the time.
    """
    if server.scheduler is BatchScheduler.STATIC or len(loads) <= 1 or not loads[0].decodes:
        return [estimate_served_load(model, server, each) for each in loads]
    shared = SpeculativeIterations(model, server.speculation) if server.speculation else model
    one, grouped = server, list(loads)
    if server.pipeline > 1:
        one, _ = split_group(server, loads[0], 1.0)
        grouped = [split_group(server, each, count_active_groups(server, each))[1] for each in loads]
    loops = _estimate_each_open_loop if loads[0].concurrency is None else _estimate_each_closed_loop
    stages = float(server.pipeline)
    return [
        combine_groups(found, count_active_groups(server, each), stages)
        for found, each in zip(loops(shared, one, grouped), loads, strict=True)
    ]


def _estimate_continuous_batching(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad
) -> ServedLoad:
    setting = ServerSetting(
        server, load, compute_load_moments(server, load), compute_request_capacity(server, load)
    )
    grid = compute_curve(model, server, load, _build_batch_grid(setting.places))
    at = (
        solve_open_loop(grid, setting)
        if load.concurrency is None
        else solve_closed_loop(grid, setting, load.concurrency)
    )
    there, times = compute_point(model, server, load, at.batch)
    return _estimate_operating_point(setting, there, at, times)


def _estimate_each_closed_loop(
    model: IterationSource, server: ReplicaServer, loads: Sequence[ReplicaLoad]
) -> Iterator[ServedLoad]:
    """Estimates closed loops that differ in their concurrency alone."""
    load, places = loads[0], compute_request_capacity(server, loads[0])
    alike = ServerSetting(server, load, compute_load_moments(server, load), places)
    requests = [each.concurrency or 1.0 for each in loads]
    alone = 1.0 / np.maximum(1.0, np.asarray(requests))
    batches = _build_batch_grid(places)
    found = compute_curve(model, server, load, batches, alone[:, None])
    rows = ReplicaCurve(*(np.broadcast_to(figures, (len(requests), len(batches))) for figures in found))
    stood = [
        solve_closed_loop(ReplicaCurve(*(figures[place] for figures in rows)), alike, count)
        for place, count in enumerate(requests)
    ]
    settings = [ServerSetting(server, each, compute_load_moments(server, each), places) for each in loads]
    return _estimate_operating_points(model, settings, stood, alone)


def _estimate_each_open_loop(
    model: IterationSource, server: ReplicaServer, loads: Sequence[ReplicaLoad]
) -> Iterator[ServedLoad]:
    """Estimates open loops that differ in their rate alone, which share one curve."""
    places = compute_request_capacity(server, loads[0])
    settings = [ServerSetting(server, each, compute_load_moments(server, each), places) for each in loads]
    grid = compute_curve(model, server, loads[0], _build_batch_grid(places))
    stood = [solve_open_loop(grid, setting) for setting in settings]
    return _estimate_operating_points(model, settings, stood, np.zeros(len(loads)))


def _estimate_operating_points(
    model: IterationSource, settings: Sequence[ServerSetting], stood: Sequence[WorkingPoint], alone: Array
) -> Iterator[ServedLoad]:
    """Estimates servers of loads that differ in their requests, each at its operating point."""
    server, load, *_ = settings[0]
    there, times = compute_points(model, server, load, np.asarray([at.batch for at in stood]), alone)
    for place, (setting, at) in enumerate(zip(settings, stood, strict=True)):
        yield _estimate_operating_point(
            setting, select_point(there, place), at, select_iteration(times, place)
        )


def _build_batch_grid(places: float) -> Array:
    return np.append(_SMALL, max(places, 1.001) ** _STEPS)


def _estimate_operating_point(
    setting: ServerSetting, there: ReplicaCurve[float], at: WorkingPoint, times: IterationTime
) -> ServedLoad:
    """Estimates a server at its operating point."""
    load = setting.load
    if at.saturated:
        there = apply_preemptions(setting, there, at)
    if load.concurrency is None and not at.saturated and setting.asked.decodes:
        # By Little's law: the mean batch over the rate, as it fluctuates.
        there = there._replace(decoding_seconds=at.batch / at.rate)
    elif load.concurrency is not None:
        # Also by Little's law, from the latency at the point itself, not interpolated on the grid.
        # The highest rate may be that of a smaller batch: at this one it may take more requests than exist.
        latency = there.requests / there.requests_per_second
        rate = min(load.concurrency / latency, at.most)
        at = at._replace(rate=rate, place_seconds=max(0.0, load.concurrency / rate - latency))
    return _build_served_load(setting, there, at, times)


def _build_served_load(
    setting: ServerSetting, there: ReplicaCurve[float], at: WorkingPoint, times: IterationTime
) -> ServedLoad:
    server, load = setting.server, setting.load
    cold = load.concurrency is not None and load.burst_requests is not None and setting.asked.decodes > 0.0
    sampled = sample_cold_start if cold else sample_steady_state
    outcomes, means, rate = sampled(setting, there, at)
    iteration, prompt_share = _compute_mean_iteration(setting, there, times)
    arriving = there.wait_seconds + there.residual_seconds
    inside = there.own_seconds + means.decoding
    each = outcomes.per_token_seconds
    waited = means.first - there.own_seconds - server.frontend_seconds
    return ServedLoad(
        compute_percentiles(outcomes.first_token_seconds)._replace(mean=means.first),
        compute_percentiles(each)._replace(mean=means.each) if each is not None else None,
        compute_percentiles(outcomes.request_seconds)._replace(mean=means.whole),
        rate,
        rate * load.outputs.mean,
        there.batch if at.repeated < 1.0 and not cold else rate * means.decoding,
        rate * (waited if waited > NOTHING * means.first else 0.0),
        _compute_busy_share(load, at.rate * (arriving + inside)),
        at.saturated,
        at.most,
        estimate_preemptions(setting) * at.filled if at.repeated < 1.0 else 0.0,
        prompt_share,
        iteration,
        outcomes,
        _find_knee(at.grid, setting.places),
    )


def _find_knee(grid: ReplicaCurve[Array], places: float) -> float:
    """Returns the requests at which rate over latency, x^2 / c, is largest (Kleinrock 1979)."""
    power = grid.requests_per_second**2 / grid.requests
    power = np.where(grid.inside <= places * 1.0001, power, 0.0)
    best = int(np.argmax(power))
    if not 0 < best < len(power) - 1 or not power[best + 1]:
        return float(grid.requests[best])
    # The top of the parabola through three points, over the logarithm of the requests.
    logs = np.log(grid.requests[best - 1 : best + 2])
    heights = np.log(power[best - 1 : best + 2])
    left, right = logs[1] - logs[0], logs[2] - logs[1]
    if min(left, right) <= NOTHING:
        return float(grid.requests[best])
    down, up = (heights[1] - heights[0]) / left, (heights[2] - heights[1]) / right
    bend = (down - up) / (left + right)
    top = logs[1] + (up * left + down * right) / (left + right) / (2.0 * bend) if bend > NOTHING else logs[1]
    return float(np.exp(np.clip(top, logs[0], logs[2])))


def _compute_busy_share(load: ReplicaLoad, present: float) -> float:
    """Returns the share of the time in which a request is present."""
    if load.concurrency is None:
        return -math.expm1(-present)
    absent = max(0.0, 1.0 - present / load.concurrency)
    return float(1.0 - absent**load.concurrency)


def _compute_mean_iteration(
    setting: ServerSetting, there: ReplicaCurve[float], times: IterationTime
) -> tuple[IterationTime, float]:
    """Returns the mean of iterations with and without prompts, and the prompts' share of the time."""
    mixed, asked = setting.server.mixed_prefill, setting.asked
    if not asked.decodes:
        return average_iterations(times, 0, 1, 1.0), 1.0
    with_prompts = there.batch * there.iterations / asked.passes
    weight = min(1.0, with_prompts) if mixed else with_prompts / (1.0 + with_prompts)
    mean = average_iterations(times, 0, 1, weight)
    return mean, min(1.0, weight * there.added_seconds / mean.seconds)
