"""A server over the iteration model, in closed form.

With b requests decoding on average, each of N iterations, and m iterations with prompt tokens to a request:

    D = N T(b) + (1 - 1/c) b m (T(b, prompt) - T(b))      seconds that a request decodes
    x = b / D                                             requests per second (Little 1961)
    S = seconds of its own prefill, W = its wait for those of others
    c = b + x (S + W + R + F)                             requests in all (Little 1961)

D holds because each of the others starts once while a request decodes. An engine that prefills in
iterations of their own adds T(prompt) in place of the difference. Every term is a function of b, so one
array over b holds the whole curve of a server: a closed loop is read where the requests are c, an open one
where x is the rate, saturation where no place is left or every iteration has prompts in it.

W is the wait of Pollaczek and Khinchine with the arrival theorem in Schweitzer's approximation
(Reiser and Lavenberg 1980, Schweitzer 1979), the wait for a place that of G/G/m (Sakasegawa 1977, Allen and
Cunneen 1990), R what is left of the iteration that an arrival meets, F the front end.
"""

import math
from statistics import NormalDist
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.iteration import Batch, IterationTime
from service.planning.inference.load import (
    Load,
    Outcomes,
    Scheduler,
    Served,
    Server,
    percentiles,
)
from service.planning.inference.speculation import Iterations, Speculating

Array: TypeAlias = NDArray[np.float64]

_GRID = 28
_MOST_REQUESTS = 16384.0
"""Where neither the engine nor its cache limits a batch."""
_SAMPLES = 512
_NOTHING = 1e-12


class Curve(NamedTuple):
    """A continuous-batching replica over rising mean batches; arrays of one entry for each."""

    batch: Array
    """Requests that decode, on average."""
    requests_per_second: Array
    decode_seconds: Array
    """An iteration that only decodes."""
    prefill_seconds: Array
    """What an iteration with prompt tokens adds for those that decode."""
    own_seconds: Array
    """The iterations in which a request has its own prompt computed."""
    iterations: Array
    """Iterations with prompt tokens, to a request; less than one where they hold several prompts."""
    decoding_seconds: Array
    """From a request's first token to its last."""
    wait_seconds: Array
    """For prompts of others."""
    residual_seconds: Array
    """What is left of the iteration that an arrival meets."""
    prefill_load: Array
    """Share of the time in which prompts are computed, 1 where no more can be."""
    tokens: Array
    """Prompt tokens of an iteration that has some."""
    requests: Array
    """In all, those that wait included, but not those that wait for a place."""
    inside: Array
    """Those that hold a place: prefilling or decoding."""


def served(model: Iterations, server: Server, load: Load) -> Served:
    """What ``server`` does under ``load``: latencies in seconds, rates per second, of one replica.

    Of a pipeline, each of its stages works for a group of requests of its own, so that it is as many
    servers, each with a share of requests, rate and cache and the whole pass as its iteration.

    Raises:
        ValueError: neither or both of concurrency and rate are given.
    """
    if (load.concurrency is None) == (load.rate_per_second is None):
        raise ValueError("give either a concurrency or a rate")
    if server.speculation:
        model = Speculating(model, server.speculation)
    if server.pipeline > 1:
        groups = _groups(server, load)
        return _together(served_by_group(model, *_group(server, load, groups)), groups)
    return served_by_group(model, server, load)


def served_by_group(model: Iterations, server: Server, load: Load) -> Served:
    """``served`` for one group of a pipeline, speculation already part of ``model``."""
    if server.scheduler is Scheduler.STATIC:
        return _served_in_batches(model, server, load)
    return _served_continuously(model, server, load)


def curve(model: Iterations, server: Server, load: Load, batch: Array) -> Curve:
    """The state of a replica at each of the mean batches ``batch``, whatever its load's size.

    Lengths, prefix hits and, in a closed loop, the number of requests are those of ``load``. One call of
    the iteration model.
    """
    alone = 1.0 / max(1.0, load.concurrency) if load.concurrency is not None else 0.0
    positions = server.speculation.positions if server.speculation else 1.0
    decodes, prompt = _iterations(server, load), load.computed_tokens
    others = batch * (1.0 - alone)
    if not decodes:
        return _prompts_only(model, server, load, batch)
    seen = others + 1.0
    pieces, tokens = _prefill_tokens(server, load, others, decodes, positions)
    iterations = prompt / tokens

    mixed = server.mixed_prefill
    none = np.zeros_like(batch)
    decoding = np.concatenate([seen, seen if mixed else none, others if mixed else none, others])
    prefilled = np.concatenate([none, tokens, tokens, none])
    alike, both, own, before = _seconds(model, load, decoding, prefilled).reshape(4, -1)
    added = np.maximum(both - alike, 0.0) if mixed else both
    decoding_seconds = decodes * alike + others * iterations * added
    rate = batch / decoding_seconds
    busy = rate * iterations * own

    variation = load.inputs.variation
    behind = np.minimum((1.0 - alone) * busy, 1.0 - 1e-9)
    wait = behind * iterations * own * (1.0 + variation) / 2.0 / (1.0 - behind)
    residual = _residual(server, load, before, others)
    own_seconds = pieces * own
    inside = batch + rate * own_seconds
    requests = inside + rate * (wait + residual + server.frontend_seconds)
    return Curve(
        batch,
        rate,
        alike,
        added,
        own_seconds,
        iterations,
        decoding_seconds,
        wait,
        residual,
        busy,
        tokens,
        requests,
        inside,
    )


def _iterations(server: Server, load: Load) -> float:
    """Iterations in which a request decodes."""
    return load.decodes / (server.speculation.tokens_per_pass if server.speculation else 1.0)


def _prompts_only(model: Iterations, server: Server, load: Load, batch: Array) -> Curve:
    """``curve`` of requests that end with their first token; ``batch`` are those in or before a pass.

    A pass takes what has come since the last one, as far as the engine batches it.
    """
    none, prompt = np.zeros_like(batch), load.computed_tokens
    pieces, _ = _prefill_tokens(server, load, none, 1.0, 1.0)
    most = np.maximum(1.0, np.floor(server.batched_tokens / prompt))
    together = np.clip(batch, 1.0, most)
    own = _seconds(model, load, none, prompt * together / pieces)
    passing = pieces * own
    rate = np.minimum(batch, together) / passing
    wait = np.maximum(batch / rate - passing, 0.0)
    busy = batch / most
    if load.concurrency is None:
        # Of y arrivals a pass the next one finds some with 1 - e^-y, and they come in its midst.
        meets = -np.expm1(-batch)
        together = np.minimum(batch / meets, most)
        own = _seconds(model, load, none, prompt * together / pieces)
        passing = pieces * own
        rate, wait = np.minimum(batch, most) / passing, meets * passing / 2.0
    inside = rate * passing
    requests = inside + rate * (wait + server.frontend_seconds)
    return Curve(
        batch,
        rate,
        none,
        own,
        passing,
        pieces / together,
        none,
        wait,
        none,
        busy,
        prompt * together / pieces,
        requests,
        inside,
    )


def _prefill_tokens(
    server: Server, load: Load, others: Array, decodes: float, positions: float
) -> tuple[Array, Array]:
    """Iterations that a prompt is cut into, and prompt tokens of an iteration that has some.

    Of short prompts an iteration takes those that have come since the last one: of y arrivals an
    iteration, Poisson, y / (1 - e^-y) where there is any; each iteration ends 1 / N of what decodes.
    """
    prompt = load.computed_tokens
    budget = np.full_like(others, float(server.batched_tokens))
    if server.chunked_prefill and server.mixed_prefill:
        budget = np.maximum(budget - others * positions, float(server.block_tokens))
    if not server.chunked_prefill:
        budget = np.maximum(budget, load.inputs.longest)
    computed = np.asarray(load.inputs.values) * (prompt / load.inputs.mean)
    pieces = np.ceil(computed[:, None] / budget) * np.asarray(load.inputs.weights)[:, None]
    cut = np.asarray(pieces.sum(axis=0))
    arriving = np.maximum(others / max(decodes, 1.0), _NOTHING)
    together = np.minimum(arriving / -np.expm1(-arriving), np.maximum(budget / prompt, 1.0))
    return cut, prompt * together / cut


def _seconds(model: Iterations, load: Load, decoding: Array, prefilled: Array) -> Array:
    """Of iterations with so many requests that decode and so many prompt tokens."""
    batch = Batch(
        cast("float", decoding),
        cast("float", decoding * load.decoding_context),
        cast("float", prefilled),
        cast("float", np.where(prefilled > 0.0, load.prefill_context, 0.0)),
        cast("float", prefilled / load.computed_tokens),
    )
    return cast("Array", model.time(batch).seconds)


def _residual(server: Server, load: Load, before: Array, others: Array) -> Array:
    """Seconds until the iteration ends that an arrival meets.

    In a closed loop a request ends with an iteration; its successor meets the next one as far as the
    front end has taken.
    """
    meets = -np.expm1(-others)
    if load.concurrency is None:
        return np.asarray(meets * before / 2.0)
    if not server.frontend_seconds:
        return np.zeros_like(before)
    return np.asarray(meets * np.maximum(before - server.frontend_seconds, before / 2.0))


def places_of(server: Server, load: Load) -> float:
    """Requests that find room at a time: the engine's limit, or the cache over what a request holds."""
    limits = [_MOST_REQUESTS]
    if server.most_requests is not None:
        limits.append(float(server.most_requests))
    if server.cache_tokens is not None:
        whole = load.inputs.mean + load.outputs.mean
        held = load.decoding_context + server.reserved_output * (whole - load.decoding_context)
        held = max(held, load.inputs.mean) + server.block_tokens / 2.0
        limits.append(max(1.0, server.cache_tokens / held))
    return min(limits)


class _Point(NamedTuple):
    """Where on ``grid`` a server works: the mean batch, what waits for a place, the limit of its rate."""

    grid: Curve
    batch: float
    rate: float
    place_seconds: float
    queued_share: float
    saturated: bool
    most: float


def _served_continuously(model: Iterations, server: Server, load: Load) -> Served:
    places = places_of(server, load)
    steps = np.concatenate([[0.02, 0.1, 0.25, 0.5, 0.75], np.geomspace(1.0, max(places, 1.001), _GRID)])
    grid = curve(model, server, load, steps)
    point = _closed(grid, places, load.concurrency) if load.concurrency else _open(grid, places, load)
    there = _at(curve(model, server, load, np.asarray([point.batch])), 0)
    return _answer(model, server, load, there, point)


def _limit(grid: Curve, places: float) -> tuple[float, float]:
    """The largest mean batch and the rate there: no place left, or every iteration full of prompts."""
    batch = min(
        float(np.interp(places, grid.inside, grid.batch)),
        float(np.interp(1.0, np.maximum.accumulate(grid.prefill_load), grid.batch)),
    )
    rates = np.maximum.accumulate(grid.requests_per_second)
    return batch, float(np.interp(batch, grid.batch, rates))


def _closed(grid: Curve, places: float, concurrency: float) -> _Point:
    """A closed loop: the batch at which the requests are ``concurrency``; the others wait for a place."""
    batch, most = _limit(grid, places)
    held = float(np.interp(batch, grid.batch, grid.requests))
    if concurrency >= held:
        return _Point(
            grid, batch, most, (concurrency - held) / most, 1.0, saturated=concurrency > held, most=most
        )
    batch = float(np.interp(concurrency, grid.requests, grid.batch))
    rate = float(np.interp(batch, grid.batch, grid.requests_per_second))
    return _Point(grid, batch, rate, 0.0, 0.0, saturated=False, most=most)


def _open(grid: Curve, places: float, load: Load) -> _Point:
    """An open loop: the batch at which the rate is that of the arrivals.

    W = (Ca^2 + Cs^2) / 2 u^(sqrt(2 (m + 1)) - 1) / (1 - u) / most for m places. A queue comes to this after
    a relaxation time of about (Ca^2 + Cs^2) / 2 / (1 - u)^2 / most (Odoni and Roth 1983); u is taken no
    further than where that is the time looked at, and beyond capacity half of (1 - most / rate) of that
    time is added.
    """
    batch, most = _limit(grid, places)
    rate = load.rate_per_second or 0.0
    load_share = rate / most
    variation = (load.arrivals.variation + _service_variation(load)) / 2.0
    settled = 1.0 - math.sqrt(max(variation, 0.05) / max(most * load.open_seconds, 1.0))
    share = min(load_share, max(settled, 0.5))
    queued = share ** (math.sqrt(2.0 * (places + 1.0)) - 1.0)
    wait = variation * queued / (1.0 - share) / most
    saturated = load_share >= 1.0
    wait += load.open_seconds / 2.0 * max(0.0, 1.0 - 1.0 / load_share) if saturated else 0.0
    if not saturated:
        rates = np.maximum.accumulate(grid.requests_per_second)
        batch = min(batch, float(np.interp(rate, np.append(0.0, rates), np.append(0.0, grid.batch))))
    return _Point(grid, batch, min(rate, most), wait, min(1.0, queued), saturated=saturated, most=most)


def _service_variation(load: Load) -> float:
    return load.outputs.variation if load.decodes else load.inputs.variation


def _at(grid: Curve, place: int) -> Curve:
    return Curve(*(values[place] for values in grid))


# Points of a sequence that fills the cube evenly (Roberts 2018): the answer depends on no seed.
_ROOT = 1.1127756842787055
"""The root above 1 of x^7 = x + 1, for six dimensions."""
_LATTICE = (0.5 + np.outer(np.arange(1, _SAMPLES + 1), [_ROOT**-k for k in range(1, 7)])) % 1.0
_INPUT, _OUTPUT, _WAIT, _PLACE, _PHASE, _PACE = (_LATTICE[:, k].copy() for k in range(6))
_NORMAL = np.asarray([NormalDist().inv_cdf(min(max(u, 1e-4), 1.0 - 1e-4)) for u in _PACE])


def _answer(model: Iterations, server: Server, load: Load, there: Curve, point: _Point) -> Served:
    decodes = load.decodes
    arrival = server.frontend_seconds + there.residual_seconds
    first = arrival + there.wait_seconds + there.own_seconds + point.place_seconds
    each = there.decoding_seconds / decodes if decodes else 0.0
    rate = point.rate
    first_samples = (
        server.frontend_seconds
        + there.residual_seconds * (2.0 * _PHASE if load.concurrency is None else 1.0)
        + _waits(_WAIT, float(there.wait_seconds), float(there.prefill_load))
        + _waits(_PLACE, point.place_seconds, point.queued_share)
        + _own_samples(load, there)
    )
    each_samples, behind = _pace_samples(server, load, there, point.grid)
    whole_samples = first_samples + (behind * np.nan_to_num(each_samples) if decodes else 0.0)
    inside = float(there.inside)
    present = inside + rate * float(there.wait_seconds + there.residual_seconds)
    iteration, share = _mean_iteration(model, server, load, there)
    return Served(
        percentiles(first_samples)._replace(mean=float(first)),
        percentiles(each_samples)._replace(mean=float(each)) if decodes else None,
        percentiles(whole_samples)._replace(mean=float(first + there.decoding_seconds)),
        rate,
        rate * load.outputs.mean,
        float(there.batch) if decodes else 0.0,
        rate * (float(there.wait_seconds + there.residual_seconds) + point.place_seconds),
        _busy_share(load, present),
        point.saturated,
        point.most,
        0.0,
        share,
        iteration,
        Outcomes(first_samples, each_samples if decodes else None, whole_samples),
    )


def _waits(shares: Array, mean: float, waiting: float) -> Array:
    """Samples of a wait that a share ``waiting`` of the requests has, exponential among them."""
    waiting = min(max(waiting, 1e-3), 1.0)
    tail = np.maximum(1.0 - shares, 1e-4) / waiting
    return np.asarray(np.where(tail < 1.0, -np.log(np.minimum(tail, 1.0)), 0.0) * (mean / waiting))


def _own_samples(load: Load, there: Curve) -> Array:
    """Samples of the own prefill: what it adds to an iteration grows with the prompt."""
    beside = np.minimum(there.decode_seconds, there.own_seconds)
    longer = load.inputs.of(_INPUT) / load.inputs.mean
    return np.asarray(beside + (there.own_seconds - beside) * longer)


def _pace_samples(server: Server, load: Load, there: Curve, grid: Curve) -> tuple[Array, Array]:
    """Samples of the seconds per token behind the first, and of the number of these.

    Prefills within the decoding of a request are a Poisson number. In an open loop so are the requests
    beside it; over its own life two thirds of their variance are left.
    """
    behind = np.maximum(load.outputs.of(_OUTPUT) - 1.0, 0.0)
    if not load.decodes:
        return np.zeros(_SAMPLES), behind
    iterations = _iterations(server, load)
    each = float(there.decoding_seconds) / load.decodes
    least = float(there.decode_seconds) * iterations / load.decodes
    between = float(there.decoding_seconds - iterations * there.decode_seconds)
    prefills = max(0.0, between) / max(float(there.prefill_seconds), _NOTHING) * behind / load.decodes
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = float(there.prefill_seconds) * np.sqrt(prefills) / behind
    if load.concurrency is None:
        slope = np.interp(there.batch, grid.batch, np.gradient(grid.decoding_seconds, grid.batch))
        deviation = np.hypot(
            deviation, float(slope) / load.decodes * math.sqrt(2.0 / 3.0 * float(there.batch))
        )
    paced = np.maximum(each + _NORMAL * deviation, min(least, each))
    return np.asarray(np.where(behind > 0.0, paced, np.nan)), behind


def _busy_share(load: Load, present: float) -> float:
    """Share of the time in which a request is there to be worked on."""
    if load.concurrency is None:
        return -math.expm1(-present)
    absent = max(0.0, 1.0 - present / load.concurrency)
    return float(1.0 - absent**load.concurrency)


def _mean_iteration(
    model: Iterations, server: Server, load: Load, there: Curve
) -> tuple[IterationTime, float]:
    """The mean of the iterations with and without prompts, and the share of the time that prompts take."""
    prompt, tokens = load.computed_tokens, float(there.tokens)
    batch = float(there.batch) if load.decodes else 0.0
    iterations = _iterations(server, load)
    beside = batch if server.mixed_prefill else 0.0
    context = load.decoding_context
    both = model.time(Batch(beside, beside * context, tokens, load.prefill_context, tokens / prompt))
    if not load.decodes:
        return both, 1.0
    alike = model.time(Batch(max(batch, 1.0), max(batch, 1.0) * context))
    with_prompts = batch * float(there.iterations) / iterations
    weight = min(1.0, with_prompts) if server.mixed_prefill else with_prompts / (1.0 + with_prompts)
    mean = IterationTime(*(a + weight * (b - a) for a, b in zip(alike, both, strict=True)))
    added = max(0.0, both.seconds - alike.seconds) if server.mixed_prefill else both.seconds
    return mean, min(1.0, weight * added / mean.seconds)


def _groups(server: Server, load: Load) -> float:
    """Groups of a pipeline that have requests: with fewer requests than stages some of these wait."""
    groups = float(server.pipeline)
    return groups if load.concurrency is None else min(groups, max(1.0, load.concurrency))


def _group(server: Server, load: Load, groups: float) -> tuple[Server, Load]:
    """One of the groups of a pipeline, and what it is asked."""
    return (
        server._replace(
            most_requests=None
            if server.most_requests is None
            else max(1, round(server.most_requests / groups)),
            cache_tokens=None if server.cache_tokens is None else server.cache_tokens / groups,
            pipeline=1,
        ),
        load._replace(
            concurrency=None if load.concurrency is None else max(1.0, load.concurrency / groups),
            rate_per_second=None if load.rate_per_second is None else load.rate_per_second / groups,
            burst_requests=None if load.burst_requests is None else load.burst_requests / groups,
        ),
    )


def _together(one: Served, groups: float) -> Served:
    """All groups of a pipeline, of which each does as ``one``."""
    return one._replace(
        requests_per_second=one.requests_per_second * groups,
        output_tokens_per_second=one.output_tokens_per_second * groups,
        decoding=one.decoding * groups,
        waiting=one.waiting * groups,
        most_requests_per_second=one.most_requests_per_second * groups,
    )


def _served_in_batches(model: Iterations, server: Server, load: Load) -> Served:
    """Static batching: a batch starts once the last has ended whole.

    T(B) = prefill of B prompts + (longest of B outputs - 1) iterations over all B. A closed loop starts
    min(c, B) each time; an open one what has come meanwhile, b = rate T(b).
    """
    places = places_of(server._replace(reserved_output=1.0), load)
    sizes = np.geomspace(1.0, max(places, 1.001), _GRID)
    per_pass = server.speculation.tokens_per_pass if server.speculation else 1.0
    prompt, context = load.computed_tokens, load.decoding_context
    longest = np.asarray([load.outputs.longest_of(size) for size in sizes])
    budget = max(float(server.batched_tokens), prompt)
    tokens = np.minimum(sizes * prompt, budget)
    zero = np.zeros_like(sizes)
    pair = _seconds(model, load, np.concatenate([sizes, zero]), np.concatenate([zero, tokens]))
    step, prefill = pair[:_GRID], pair[_GRID:] * sizes * prompt / tokens
    lasting = prefill + np.maximum(longest - 1.0, 0.0) / per_pass * step
    rates = np.maximum.accumulate(sizes / lasting)
    most = float(rates[-1])
    wait, size, saturated = 0.0, places, False
    if load.concurrency is not None:
        size = min(load.concurrency, places)
        saturated = load.concurrency > places
    else:
        rate = load.rate_per_second or 0.0
        saturated = rate >= most
        size = float(np.interp(rate, rates, sizes))
    taken = float(np.interp(size, sizes, lasting))
    filling, each = float(np.interp(size, sizes, prefill)), float(np.interp(size, sizes, step))
    decodes = load.decodes / per_pass
    if load.concurrency is not None:
        rate = size / taken
        wait = max(0.0, load.concurrency / rate - filling - decodes * each - server.frontend_seconds)
        busy = 1.0
    else:
        rate = min(load.rate_per_second or 0.0, most)
        busy = min(1.0, rate * taken / size)
        wait = busy * taken / 2.0
        if saturated:
            wait += load.open_seconds / 2.0 * (1.0 - most / (load.rate_per_second or most))
    first = np.asarray(server.frontend_seconds + 2.0 * wait * _PHASE + filling)
    behind = np.maximum(load.outputs.of(_OUTPUT) - 1.0, 0.0)
    pace = np.where(behind > 0.0, each / per_pass, np.nan)
    whole = first + behind * np.nan_to_num(pace)
    alike = model.time(Batch(size, size * context))
    both = model.time(Batch(0.0, 0.0, min(size * prompt, budget), load.prefill_context, size))
    share = filling / taken
    weight = min(1.0, share * alike.seconds / max(both.seconds, _NOTHING))
    mean = server.frontend_seconds + wait + filling
    return Served(
        percentiles(first)._replace(mean=mean),
        percentiles(pace)._replace(mean=each / per_pass) if decodes else None,
        percentiles(whole)._replace(mean=mean + decodes * each),
        rate,
        rate * load.outputs.mean,
        rate * decodes * each,
        rate * wait,
        busy,
        saturated,
        most,
        0.0,
        share,
        IterationTime(*(a + weight * (b - a) for a, b in zip(alike, both, strict=True))),
        Outcomes(first, pace if decodes else None, whole),
    )
