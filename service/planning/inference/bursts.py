"""Closed loop of N requests that starts cold: c of them at once, each later one as another ends.

A benchmark does this, with N of about 10 c, and so does a batch job, with N = c. Unlike in the steady state

- the first p requests (as many as find a place) have their prompts computed one after the other, so that
  the i-th has its first token after the integral of T(b, full) / n over b from 0 to i, n prompts an
  iteration;
- the requests after them wait for others to end. If all lengths are equal, the i-th request of a wave starts
  when the i-th of the wave before has ended; if they are spread like an exponential distribution, starts are
  even in time. Between the two the wait is interpolated by the variance of the outputs over their squared
  mean, as in the asymptotic renewal function (Cox 1962);
- later waves arrive as the first one ended: within the time of its prompts and a window of the outputs'
  deviation, sqrt(12 w) sigma after w waves. They arrive faster than in the steady state, though in step
  with their service, so that the wait is that of M/D/1 times the random share of the window;
- no prompts follow the requests of the last wave, and the batch drains.
"""

import math
from typing import NamedTuple

import numpy as np

from service.planning.inference.curve import (
    NOTHING,
    Array,
    LoadTokens,
    ReplicaCurve,
    ServerSetting,
    compute_prompt_seconds,
)
from service.planning.inference.load import ReplicaLoad, ReplicaServer
from service.planning.inference.sampling import NORMAL, OUTPUT, PLACE, SAMPLES, WAIT, sample_waits

_WAVES = 12
"""Waves that are computed one by one; later ones are taken to equal the last of them."""


class RequestBurst(NamedTuple):
    """Samples of the requests of a run, and its rates per second."""

    first_token_seconds: Array
    per_token_seconds: Array
    """Seconds per output token; NaN where there is no second token."""
    request_seconds: Array
    requests_per_second: float
    decoding_seconds: float


class _FirstWave(NamedTuple):
    """First wave: positions in the queue of prompts, and seconds until their first tokens."""

    order: Array
    seconds: Array
    whole: float
    """Seconds of all prompts."""
    beside: float
    """Part of ``whole`` that iterations take for decoding."""


class _LaterWaves(NamedTuple):
    """Waves after the first: seconds from a place to the first token, and the wait for others in them."""

    seconds: float
    wait: float
    window: float
    """Seconds within which the last of these waves arrive."""
    apart: float
    """Share of the other requests whose prompts fall within a request's decoding."""


def estimate_burst(
    setting: ServerSetting, there: ReplicaCurve[float], grid: ReplicaCurve[Array]
) -> RequestBurst:
    """Estimates the run of ``load.burst_requests``; ``there`` is the steady state, ``grid`` the curve."""
    server, load, asked, places = setting
    requests = max(load.burst_requests or 0.0, 1.0)
    concurrency = min(load.concurrency or 1.0, requests)
    held = max(1.0, min(concurrency, places))
    waves = max(1.0, requests / held)
    start = _estimate_burst_start(server, asked, grid, held)

    batch = (
        there.batch + (held * _compute_batch_overlap(load) - there.batch) / waves
        if asked.decodes
        else there.batch
    )
    step = float(np.interp(batch, grid.batch, grid.decode_seconds))
    met = max(0.0, there.decoding_seconds - asked.passes * there.decode_seconds)
    later = _estimate_later_waves(
        setting, there, start, _BurstRun(held, waves, step, asked.passes * step + met)
    )
    # Half of the others of a wave come after a request, unless they come when it has ended.
    met *= (1.0 + later.apart) / 2.0
    # A request of the last wave meets the prompts after its own, at most in every pass.
    left = np.minimum(1.0 - start.order / held, 1.0)
    behind_last = np.minimum(left * max(start.whole - start.beside, 0.0), asked.passes * there.full_seconds)
    decoding = asked.passes * step + met * (1.0 - 1.0 / waves) + float(np.mean(behind_last)) / waves
    # No wave is shorter than its prompts take.
    cycle = max(later.seconds + decoding + server.frontend_seconds, start.whole - start.beside)

    place = PLACE * requests
    wave = np.floor(place / held)
    within = place - wave * held
    ahead = np.interp(within, start.order, start.seconds)
    joined = later.seconds - later.wait + sample_waits(WAIT, later.wait, 1.0)
    first = np.where(wave < 1.0, ahead + server.cold_seconds, joined)
    # Requests sent at once wait for their turn in order; a later one waits for as many as precede it.
    regular = max(0.0, 1.0 - load.outputs.variation)
    alike = server.cold_seconds + ahead + wave * cycle - later.seconds
    even = server.cold_seconds + start.whole / 2.0 + (place / held - 1.0) * cycle
    turn = np.where(wave < 1.0, 0.0, regular * alike + (1.0 - regular) * even)
    backlog = (concurrency / held - 1.0) * cycle
    first = server.frontend_seconds + first + np.maximum(0.0, np.where(place < concurrency, turn, backlog))

    behind = np.maximum(load.outputs.get_quantiles(OUTPUT) - 1.0, 0.0)
    last = place >= requests - held
    extra = np.where(
        last, np.interp(within, start.order, behind_last), met * behind / max(asked.decodes, NOTHING)
    )
    pace = _sample_token_seconds(setting, there, step, extra, np.where(last, 0.0, 1.0))
    whole = first + behind * np.nan_to_num(pace)

    longest = max(0.0, load.outputs.compute_mean_longest(held) - load.outputs.mean) * asked.passes
    draining = (
        longest
        / max(asked.decodes, NOTHING)
        * float(np.interp(1.0 + held / 4.0, grid.batch, grid.decode_seconds))
    )
    in_step = start.whole / max(later.window, start.whole, NOTHING)
    lasting = (
        (waves - 1.0) * cycle + asked.passes * step + draining + server.frontend_seconds + server.cold_seconds
    )
    lasting += start.whole if waves <= 1.0 else start.whole * in_step + later.seconds
    lasting = max(lasting, (start.whole - start.beside) * waves)
    return RequestBurst(first, pace, whole, requests / lasting, decoding)


def _estimate_burst_start(
    server: ReplicaServer, asked: LoadTokens, grid: ReplicaCurve[Array], held: float
) -> _FirstWave:
    order = np.linspace(0.0, held, 24)
    decoding = order if asked.decodes else np.zeros_like(order)

    def interpolate(figures: Array) -> Array:
        return np.interp(decoding, grid.batch, figures)

    beside = interpolate(grid.decode_seconds) if server.mixed_prefill else np.zeros_like(order)
    budget, tokens, added, full = (
        interpolate(f) for f in (grid.budget, grid.tokens, grid.added_seconds, grid.full_seconds)
    )
    # Prompts in an iteration; less than one where a prompt takes several iterations.
    taken = np.minimum(budget / asked.prompt, held)
    taken = np.where(taken < 1.0, 1.0 / np.ceil(1.0 / taken), taken)
    slope = (full - added) / np.maximum(budget - tokens, 1.0)
    prompts = np.maximum(added + slope * (taken * asked.prompt - tokens), 0.0)
    each = (beside + prompts) / taken
    passed = np.append(0.0, np.cumsum((each[1:] + each[:-1]) / 2.0 * np.diff(order)))
    half = (beside + prompts) * np.maximum(1.0, 1.0 / taken) / 2.0
    # The last iteration is as full as the remaining prompts.
    seconds = np.minimum(passed + half, np.maximum(passed[-1], half))
    return _FirstWave(order, seconds, float(passed[-1]), float(np.mean(beside / taken)) * held)


def _compute_batch_overlap(load: ReplicaLoad) -> float:
    """Returns the mean batch that a token is decoded in, over requests that start together.

    E[min(n, n')] / E[n].
    """
    values = np.maximum(np.asarray(load.outputs.values) - 1.0, 0.0)
    weights = np.asarray(load.outputs.weights)
    smaller = np.minimum(values[:, None], values[None, :])
    return float(weights @ smaller @ weights / max(float(weights @ values), NOTHING))


class _BurstRun(NamedTuple):
    """Requests that hold places, waves, and seconds of a decoding iteration and of a request's decoding."""

    held: float
    waves: float
    step: float
    decoding: float


def _estimate_later_waves(
    setting: ServerSetting, there: ReplicaCurve[float], start: _FirstWave, run: _BurstRun
) -> _LaterWaves:
    server, load, asked, _ = setting
    held, waves, step, decoding = run
    if waves <= 1.0:
        return _LaterWaves(there.own_seconds, 0.0, start.whole, 1.0)
    passed = np.arange(1.0, max(2.0, min(math.ceil(waves), _WAVES)))
    chance = math.sqrt(12.0 * load.outputs.variation) * decoding * np.sqrt(passed)
    mixed = server.mixed_prefill
    # An engine that decodes nothing beside prompts lets all requests of a wave continue together.
    spacing = start.whole if mixed else 0.0
    cycle = max(decoding + (there.own_seconds if mixed else 0.0), start.whole)
    window = np.minimum(spacing + chance, cycle)
    rate = (held - 1.0) / np.maximum(window, NOTHING)
    most = max(1.0, there.budget / asked.prompt)
    beside = step if mixed else 0.0
    together = np.ones_like(window)
    for _ in range(3):
        lasting = beside + compute_prompt_seconds(there, together * asked.prompt) if mixed else step
        arriving = np.minimum(rate * lasting, held - 1.0)
        together = np.clip(1.0 + arriving, 1.0, min(most, held))
    pieces = max(1.0, math.ceil(asked.prompt / there.budget))
    own = pieces * (beside + compute_prompt_seconds(there, together * asked.prompt / pieces))
    taken = (beside + there.full_seconds) * asked.prompt / there.budget
    if mixed:
        busy = np.minimum((1.0 - asked.alone) * rate * taken, 1.0)
        share = chance / np.maximum(spacing + chance, NOTHING)
        queued = busy ** (math.sqrt(2.0 * (most + 1.0)) - 1.0)
        wait = (
            queued * taken * (1.0 + load.inputs.variation) / 2.0 * share / np.maximum(1.0 - busy, 0.5 / held)
        )
        wait = np.minimum(wait, start.whole / 2.0)
        apart = 1.0
    else:
        # Of requests that arrive in one iteration some wait for others, half of them on average.
        wait = np.maximum(1.0 + arriving - together, 0.0) / 2.0 * taken
        apart = 1.0 - float(np.mean(arriving)) / max(held - 1.0, NOTHING)
    residual = np.zeros_like(window)
    if server.frontend_seconds:
        met = beside + compute_prompt_seconds(there, np.minimum(arriving, together) * asked.prompt)
        meets = -math.expm1(-(held - 1.0))
        residual = meets * np.maximum(met - server.frontend_seconds, met / 2.0)
    return _LaterWaves(
        float(np.mean(own + wait + residual)), float(np.mean(wait)), float(window[-1]), max(0.0, apart)
    )


def _sample_token_seconds(
    setting: ServerSetting, there: ReplicaCurve[float], step: float, extra: Array, noisy: Array
) -> Array:
    """Returns seconds per token with ``extra`` seconds of prompts in a lifetime, a Poisson number."""
    asked = setting.asked
    behind = np.maximum(setting.load.outputs.get_quantiles(OUTPUT) - 1.0, 0.0)
    if not asked.decodes:
        return np.full(SAMPLES, np.nan)
    passes = behind * (asked.passes / asked.decodes)
    extra = np.minimum(extra, passes * there.full_seconds)
    noise = np.sqrt(extra * there.added_seconds) * noisy * NORMAL
    with np.errstate(divide="ignore", invalid="ignore"):
        paced = (passes * step + np.maximum(extra + noise, 0.0)) / behind
    return np.asarray(np.where(behind > 0.0, paced, np.nan))
