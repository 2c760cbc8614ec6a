"""Closed-form estimate of a server under a load (``compute_curve``), with percentiles.

The batch of an open loop fluctuates: with D = D0 + D1 b the number of decoding requests has the variance b D
/ D0, and a request meets more of them than a mean batch has.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from service.planning.inference.bursts import estimate_burst
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
    RequestLatencies,
    ServedLoad,
    compute_percentiles,
)
from service.planning.inference.sampling import (
    INDEPENDENT,
    INDEPENDENT_SHARE,
    INPUT,
    NORMAL,
    OUTPUT,
    PHASE,
    PLACE,
    SAMPLES,
    WAIT,
    sample_waits,
)
from service.planning.inference.speculation import IterationSource, SpeculativeIterations
from service.planning.inference.static_batches import estimate_static_batching

_STEPS = np.arange(18) / 17.0
_FEW = 20.0
"""Mean above which a Poisson number is approximated by a normal one."""
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


def count_active_groups(server: ReplicaServer, load: ReplicaLoad) -> float:
    """Returns the groups of a pipeline that have requests.

    With fewer requests than stages some stages wait.
    """
    groups = float(server.pipeline)
    return groups if load.concurrency is None else min(groups, max(1.0, load.concurrency))


def split_group(server: ReplicaServer, load: ReplicaLoad, groups: float) -> tuple[ReplicaServer, ReplicaLoad]:
    """Returns one of the groups of a pipeline, and its load."""
    stages = float(server.pipeline)

    def divide_figure(figure: float | None, parts: float) -> float | None:
        return None if figure is None else figure / parts

    most = server.most_requests
    return (
        server._replace(
            most_requests=None if most is None else max(1, round(most / stages)),
            cache_tokens=divide_figure(server.cache_tokens, stages),
            pipeline=1,
        ),
        load._replace(
            concurrency=None if load.concurrency is None else max(1.0, load.concurrency / groups),
            rate_per_second=divide_figure(load.rate_per_second, groups),
            burst_requests=divide_figure(load.burst_requests, groups),
        ),
    )


def combine_groups(one: ServedLoad, groups: float, stages: float) -> ServedLoad:
    """Returns the served load of all groups of a pipeline, each as ``one``, and its highest rate."""
    return one._replace(
        requests_per_second=one.requests_per_second * groups,
        output_tokens_per_second=one.output_tokens_per_second * groups,
        decoding=one.decoding * groups,
        waiting=one.waiting * groups,
        most_requests_per_second=one.most_requests_per_second * stages,
        knee_requests=None if one.knee_requests is None else one.knee_requests * stages,
    )


class _WorkingPoint(NamedTuple):
    """Operating point of a server on ``grid``: mean batch, wait for a place, limit of its rate."""

    grid: ReplicaCurve[Array]
    batch: float
    rate: float
    most: float
    place_seconds: float = 0.0
    queued_share: float = 0.0
    saturated: bool = False
    repeated: float = 1.0
    """Ratio of the rate with contexts recomputed after preemption to the rate without."""
    filled: float = 1.0
    """Share of the room that requests leave which is taken at once."""


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
        _solve_open_loop(grid, setting)
        if load.concurrency is None
        else _solve_closed_loop(grid, setting, load.concurrency)
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
        _solve_closed_loop(ReplicaCurve(*(figures[place] for figures in rows)), alike, count)
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
    stood = [_solve_open_loop(grid, setting) for setting in settings]
    return _estimate_operating_points(model, settings, stood, np.zeros(len(loads)))


def _estimate_operating_points(
    model: IterationSource, settings: Sequence[ServerSetting], stood: Sequence[_WorkingPoint], alone: Array
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
    setting: ServerSetting, there: ReplicaCurve[float], at: _WorkingPoint, times: IterationTime
) -> ServedLoad:
    """Estimates a server at its operating point."""
    load = setting.load
    if at.saturated:
        there = _apply_preemptions(setting, there, at)
    if load.concurrency is None and not at.saturated and setting.asked.decodes:
        # By Little's law: the mean batch over the rate, as it fluctuates.
        there = there._replace(decoding_seconds=at.batch / at.rate)
    elif load.concurrency is not None:
        # Also by Little's law, from the latency at the point itself, not interpolated on the grid.
        latency = there.requests / there.requests_per_second
        rate = at.rate if at.saturated else min(load.concurrency / latency, at.most)
        at = at._replace(rate=rate, place_seconds=max(0.0, load.concurrency / rate - latency))
    return _build_served_load(setting, there, at, times)


class _BatchLimit(NamedTuple):
    """Largest mean batch, the rate there, and its ratio to the rate without preemption."""

    batch: float
    most: float
    repeated: float


def _find_capacity_limit(grid: ReplicaCurve[Array], setting: ServerSetting) -> _BatchLimit:
    """Returns the batch at which no place is left, or every iteration is full of prompts.

    An engine that admits a prompt as soon as it finds room, and has requests waiting, fills its cache; as
    contexts grow until a request ends, others have to be dropped, and as many tokens are recomputed as are
    generated.
    """
    server, load, asked, places = setting
    by_prompts = float(np.interp(1.0, np.maximum.accumulate(grid.prompt_load), grid.batch))
    batch = min(float(np.interp(places, grid.inside, grid.batch)), by_prompts)
    most = float(np.interp(batch, grid.batch, np.maximum.accumulate(grid.requests_per_second)))
    if server.cache_tokens is None or places == server.most_requests or batch == by_prompts:
        return _BatchLimit(batch, most, 1.0)
    again = (1.0 - server.reserved_output) * load.outputs.mean
    token_seconds = np.maximum(grid.added_seconds / grid.tokens, grid.full_seconds / grid.budget)
    whole, each = (float(np.interp(batch, grid.batch, f)) for f in (grid.decoding_seconds, token_seconds))
    more = batch * (1.0 - asked.alone) * again * each
    return _BatchLimit(batch, most, whole / (whole + more) if whole else 1.0)


_PROGRESS = 0.3
"""Share of its output that a request has when it is preempted, and of its decoding time that it then waits:

the last arrivals are dropped, and resume first. From the simulation.
"""
_FIRST_FILLED, _FILLING = 0.4, 3.0
"""Share of the room that requests leave which is taken at once when hardly a request waits, and its increase

for each waiting request per request inside. From the simulation.
"""
_AWAY = 0.67
"""Maximum share of the waiting that falls to preempted requests, in the simulation."""


def _estimate_preemptions(setting: ServerSetting) -> float:
    """Returns the preemptions per request while others wait.

    Tokens dropped over those of a dropped request.
    """
    load = setting.load
    dropped = (1.0 - setting.server.reserved_output) * load.outputs.mean
    return dropped / (load.inputs.mean + _PROGRESS * load.outputs.mean)


def _apply_preemptions(
    setting: ServerSetting, there: ReplicaCurve[float], at: _WorkingPoint
) -> ReplicaCurve[float]:
    """Returns ``there`` with contexts recomputed, and the waits of dropped requests."""
    if at.repeated >= 1.0:
        return there
    decoding = there.decoding_seconds / at.repeated
    rate = there.requests_per_second * at.repeated
    latency = there.requests / there.requests_per_second - there.decoding_seconds + decoding
    away = _PROGRESS * _estimate_preemptions(setting) * at.filled * decoding
    if setting.load.concurrency is not None:
        away = min(away, _AWAY * max(0.0, setting.load.concurrency / rate - latency))
    return there._replace(
        decoding_seconds=decoding + away, requests_per_second=rate, requests=rate * (latency + away)
    )


def _solve_closed_loop(
    grid: ReplicaCurve[Array], setting: ServerSetting, concurrency: float
) -> _WorkingPoint:
    """Returns the point of a closed loop with ``concurrency`` requests.

    Those above capacity wait for a place.
    """
    batch, most, repeated = _find_capacity_limit(grid, setting)
    held = float(np.interp(batch, grid.batch, grid.requests))
    if concurrency >= held:
        # The fewer requests wait, the longer a room that is too small for the next one stays free.
        filled = min(1.0, _FIRST_FILLED + _FILLING * (concurrency / held - 1.0))
        repeated = 1.0 / (1.0 + (1.0 / repeated - 1.0) * filled)
        rate, saturated = most * repeated, concurrency > held
        return _WorkingPoint(
            grid, batch, rate, rate, queued_share=1.0, saturated=saturated, repeated=repeated, filled=filled
        )
    batch = float(np.interp(concurrency, grid.requests, grid.batch))
    return _WorkingPoint(grid, batch, float(np.interp(batch, grid.batch, grid.requests_per_second)), most)


def _solve_open_loop(grid: ReplicaCurve[Array], setting: ServerSetting) -> _WorkingPoint:
    """Returns the point of an open loop whose rate is that of the arrivals.

    ``mixing`` is D / D0: a request meets b + D / D0 others on average, one more than b where the batch does
    not slow itself down.
    """
    load = setting.load
    most_batch, most, repeated = _find_capacity_limit(grid, setting)
    most *= repeated
    rate = load.rate_per_second or 0.0
    saturated = rate >= most
    rates = np.maximum.accumulate(grid.requests_per_second)
    steady = most_batch
    if not saturated:
        steady = float(np.interp(rate, np.append(0.0, rates), np.append(0.0, grid.batch)))
        excess, mixing = _estimate_fluctuation(grid, steady)
        # An expansion for large batches; for small ones it is bounded.
        further = min(excess * (mixing - 1.0), steady / 4.0) * (load.arrivals.variation + 1.0) / 2.0
        steady = min(most_batch, steady + further)
    wait, queued = _estimate_queue_wait(load, rate, most, steady, most_batch)
    if saturated:
        wait += load.open_seconds / 2.0 * (1.0 - most / rate)
    repeats = repeated if saturated else 1.0
    return _WorkingPoint(
        grid, steady, min(rate, most), most, wait, queued, saturated=saturated, repeated=repeats
    )


def _estimate_queue_wait(
    load: ReplicaLoad, rate: float, most: float, batch: float, places: float
) -> tuple[float, float]:
    """Returns the mean wait for one of ``places``, and the share of the requests that wait.

    The number of requests inside is a diffusion, drawn to its mean where places are free and by x_most - rate
    where none is: normal below ``places``, exponential above (Halfin and Whitt 1981). A queue reaches its
    steady state after about v rate / (x_most - rate)^2 (Odoni and Roth 1983), so that the difference is taken
    no smaller than the one whose time is the observed time.
    """
    lengths = load.outputs if load.decodes else load.inputs
    variance = rate * (load.arrivals.variation + (1.0 + lengths.variation) / 2.0)
    gap = max(most - rate, math.sqrt(variance / load.open_seconds))
    apart = max(places - batch, 0.0)
    deviation = math.sqrt(rate * max(apart, 1.0) / gap)
    normal = NormalDist()
    decay = 2.0 * gap / variance
    above = normal.pdf(apart / deviation) / (deviation * decay)
    queued = above / (above + normal.cdf(apart / deviation))
    return queued / decay / max(rate, NOTHING), queued


def _estimate_fluctuation(grid: ReplicaCurve[Array], batch: float) -> tuple[float, float]:
    """Returns D1 b / D0 and D / D0, for a time to decode D = D0 + D1 b."""
    whole = float(np.interp(batch, grid.batch, grid.decoding_seconds))
    if not whole or not batch:
        return 0.0, 1.0
    slope = (whole - float(grid.decoding_seconds[0])) / batch
    rest = max(whole - slope * batch, 0.1 * whole)
    return batch * slope / rest, whole / rest


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


def _build_served_load(
    setting: ServerSetting, there: ReplicaCurve[float], at: _WorkingPoint, times: IterationTime
) -> ServedLoad:
    server, load = setting.server, setting.load
    cold = load.concurrency is not None and load.burst_requests is not None and setting.asked.decodes > 0.0
    sampled = _sample_cold_start if cold else _sample_steady_state
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
        _estimate_preemptions(setting) * at.filled if at.repeated < 1.0 else 0.0,
        prompt_share,
        iteration,
        outcomes,
        _find_knee(at.grid, setting.places),
    )


class _MeanFigures(NamedTuple):
    first: float
    each: float
    whole: float
    decoding: float


def _sample_steady_state(
    setting: ServerSetting, there: ReplicaCurve[float], at: _WorkingPoint
) -> tuple[RequestLatencies, _MeanFigures, float]:
    server, load, asked, _ = setting
    first = (
        server.frontend_seconds
        + there.residual_seconds * (2.0 * PHASE if load.concurrency is None else 1.0)
        + sample_waits(WAIT, there.wait_seconds, there.prompt_load)
        + _sample_queue_waits(load, at)
        + _sample_prefill_seconds(setting, there)
    )
    behind = np.maximum(load.outputs.get_quantiles(OUTPUT) - 1.0, 0.0)
    pace = _sample_token_seconds(setting, there, at.grid, behind)
    decoding = there.decoding_seconds
    mean = server.frontend_seconds + there.residual_seconds + there.wait_seconds + there.own_seconds
    mean += at.place_seconds
    whole = first + behind * np.nan_to_num(pace)
    each = decoding / asked.decodes if asked.decodes else 0.0
    outcomes = RequestLatencies(first, pace if asked.decodes else None, whole)
    return outcomes, _MeanFigures(mean, each, mean + decoding, decoding), at.rate


def _sample_cold_start(
    setting: ServerSetting, there: ReplicaCurve[float], at: _WorkingPoint
) -> tuple[RequestLatencies, _MeanFigures, float]:
    first, each, whole, rate, decoding = estimate_burst(setting, there, at.grid)
    decodes = setting.asked.decodes
    paced = each[~np.isnan(each)]
    outcomes = RequestLatencies(first, each if decodes else None, whole)
    pace = float(paced.mean()) if decodes else 0.0
    return outcomes, _MeanFigures(float(first.mean()), pace, float(whole.mean()), decoding), rate


def _sample_queue_waits(load: ReplicaLoad, at: _WorkingPoint) -> Array:
    """Samples waits for a place: constant in a closed loop, growing evenly where the server is saturated."""
    if load.concurrency is not None:
        return np.full(SAMPLES, at.place_seconds)
    if at.saturated:
        return np.asarray(2.0 * PLACE * at.place_seconds)
    return sample_waits(PLACE, at.place_seconds, at.queued_share)


def _sample_prefill_seconds(setting: ServerSetting, there: ReplicaCurve[float]) -> Array:
    """Samples the own prefill, which grows with the prompt and a Poisson number of other prompts."""
    load = setting.load
    beside = min(there.decode_seconds, there.own_seconds)
    adds = np.full(SAMPLES, there.own_seconds - beside)
    if load.inputs.variation:
        adds = adds * load.inputs.get_quantiles(INPUT) / load.inputs.mean
    others = max(there.shared - 1.0, 0.0)
    if others:
        more = others + math.sqrt(others) * INDEPENDENT
        if others < _FEW:
            terms = np.arange(1.0, 9.0 + 3.0 * others)
            chances = np.cumsum(np.append(1.0, np.cumprod(others / terms))) * math.exp(-others)
            more = np.searchsorted(chances, INDEPENDENT_SHARE).astype(np.float64)
        adds = adds * ((1.0 + np.clip(more, 0.0, there.budget / setting.asked.prompt)) / there.shared)
    return np.asarray(beside + adds)


def _sample_token_seconds(
    setting: ServerSetting, there: ReplicaCurve[float], grid: ReplicaCurve[Array], behind: Array
) -> Array:
    """Returns seconds per token after the first, for requests with ``behind`` of them.

    The number of prefills within the life of a request is Poisson, and so is the number of requests beside it
    in an open loop, with deviations that last D / D0 times longer; over its own life a share h of their
    variance is left (an Ornstein-Uhlenbeck process averaged over a window).
    """
    load, asked = setting.load, setting.asked
    if not asked.decodes:
        return np.full(SAMPLES, np.nan)
    each = there.decoding_seconds / asked.decodes
    least = there.decode_seconds * asked.passes / asked.decodes
    between = max(0.0, there.decoding_seconds - asked.passes * there.decode_seconds)
    prefills = between / max(there.added_seconds, NOTHING) / asked.decodes
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = there.added_seconds * np.sqrt(prefills / behind)
    paced = np.maximum(each + NORMAL * deviation, min(least, each))
    if load.concurrency is None:
        free = 1.0 / _estimate_fluctuation(grid, there.batch)[1]
        kept = 2.0 * (math.expm1(-free) + free) / free**2
        moving = max(0.0, 1.0 - free) * each
        relative = math.sqrt(math.log1p(kept / free / max(there.batch, 1.0)))
        # The part that grows with the batch moves with it, apart from the deviation of the prefills.
        paced += moving * (np.exp(relative * INDEPENDENT - relative**2 / 2.0) - 1.0)
    return np.asarray(np.where(behind > 0.0, paced, np.nan))


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
