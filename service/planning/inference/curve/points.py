"""Points of the curve of a replica.

With b requests decoding on average, each of N iterations, and m iterations with prompt tokens to a request:

    D = N T(b) + (1 - 1/c) (b + x S) m (T(b, prompt) - T(b))   seconds that a request decodes
    x = b / D                                                  requests per second (Little 1961)
    S = the iterations with its own prompt, W = its wait for those of others
    c = b + x (S + W + R + F)                                  requests in all (Little 1961)

D holds because each of the others starts once during a request's lifetime, and not within its own prompt; an
iteration full of prompts takes no more. An engine that prefills in separate iterations adds T(prompt) in
place of the difference. All are functions of b, so that arrays over b hold the whole curve of a server: a
closed loop is the point with c requests, an open one the point with rate x, saturation the point where no
place is left or every iteration is full of prompts.

W is the mean wait in M/G/m (Sakasegawa 1977) for m prompts that an iteration takes, with the arrival theorem
in Schweitzer's approximation (Reiser and Lavenberg 1980, Schweitzer 1979); R is the rest of the iteration
that an arrival meets, F the time of the front end.
"""

from typing import Generic, NamedTuple, TypeVar, cast

import numpy as np

from service.planning.inference.curve.iterations import (
    IterationTimes,
    compute_iteration_moments,
    compute_iteration_times,
    compute_residual_seconds,
    select_iteration,
)
from service.planning.inference.curve.moments import NOTHING, Array, LoadTokens, compute_load_moments
from service.planning.inference.curve.prompts import (
    BatchIterations,
    compute_prompt_shape,
    compute_token_budget,
    count_prompt_chunks,
    estimate_arrival_variance,
)
from service.planning.inference.iteration import IterationTime
from service.planning.inference.load import ReplicaLoad, ReplicaServer
from service.planning.inference.speculation import IterationSource

Figures = TypeVar("Figures")


class ReplicaCurve(NamedTuple, Generic[Figures]):
    """A replica at ascending mean batches; each member is an array with an entry for each, or one number.

    Units are seconds, tokens and requests.
    """

    batch: Figures
    """Mean number of decoding requests."""
    requests_per_second: Figures
    decode_seconds: Figures
    """Seconds of an iteration that only decodes."""
    added_seconds: Figures
    """Seconds that prompt tokens add to an iteration."""
    full_seconds: Figures
    """Seconds that the maximum of prompt tokens adds to an iteration."""
    own_seconds: Figures
    """Seconds of the iterations with a request's own prompt."""
    shared: Figures
    """Prompts in these iterations, the request's own included."""
    iterations: Figures
    """Iterations with prompt tokens per request; less than one where they hold several prompts."""
    decoding_seconds: Figures
    """Seconds from a request's first token to its last."""
    wait_seconds: Figures
    """Seconds of waiting for prompts of others."""
    residual_seconds: Figures
    """Rest of the iteration that an arrival meets, in seconds."""
    prompt_load: Figures
    """Prompt tokens over the number that could be computed; 1 where no more can be."""
    tokens: Figures
    """Prompt tokens of an iteration that has some."""
    budget: Figures
    """Maximum of ``tokens``."""
    requests: Figures
    """All requests except those that wait for a place."""
    inside: Figures
    """Requests that hold a place: prefilling or decoding."""


def compute_curve(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, batch: Array, alone: Array | None = None
) -> ReplicaCurve[Array]:
    """Computes the replica at each of the mean batches ``batch``, by one call of the iteration model.

    Lengths, prefix hits and, in a closed loop, the number of requests are taken from ``load``; speculation
    has to be part of ``model`` (:class:`SpeculativeIterations`). ``alone`` is a column with the share that
    one request is of each of several closed loops; the result then has a row for each.
    """
    asked = compute_load_moments(server, load)
    if alone is not None:
        asked = asked._replace(alone=cast("float", alone))
    if not asked.decodes:
        return _compute_prefill_only_curve(model, server, load, asked, batch)
    shape = compute_prompt_shape(server, load, asked, batch)
    none = np.zeros_like(shape.seen)
    beside = shape.seen if server.mixed_prefill else none
    decoding = np.stack([shape.seen, beside, beside])
    prefilled = np.stack([none, shape.computed, shape.budget])
    alike, both, full = np.asarray(compute_iteration_times(model, asked, decoding, prefilled).seconds)
    return _assemble_curve(server, load, asked, shape, IterationTimes(alike, both, full, both, alike))


def compute_point(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, batch: float
) -> tuple[ReplicaCurve[float], IterationTime]:
    """Computes the curve at one batch, without the neglect of what a request itself adds, and its iterations.

    The iterations are one that decodes, and one with prompts.
    """
    asked, there = compute_load_moments(server, load), np.asarray([batch])
    if not asked.decodes:
        only = _compute_prefill_only_curve(model, server, load, asked, there)
        times = compute_iteration_times(model, asked, np.zeros((2, 1)), np.stack([only.tokens, only.tokens]))
    else:
        only, times = compute_points(model, server, load, there, np.asarray([asked.alone]))
    return select_point(only, 0), select_iteration(times, 0)


def compute_points(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, batch: Array, alone: Array
) -> tuple[ReplicaCurve[Array], IterationTime]:
    """Computes ``compute_point`` at several batches by one call; ``alone`` has an entry for each."""
    asked = compute_load_moments(server, load)._replace(alone=cast("float", alone))
    shape = compute_prompt_shape(server, load, asked, batch)
    none = np.zeros_like(shape.seen)
    beside = (shape.seen, shape.others) if server.mixed_prefill else (none, none)
    times = compute_iteration_times(
        model,
        asked,
        np.stack([shape.seen, beside[0], beside[0], beside[1], shape.others]),
        np.stack([none, shape.computed, shape.budget, shape.computed, none]),
    )
    return _assemble_curve(server, load, asked, shape, IterationTimes(*np.asarray(times.seconds))), times


def select_point(found: ReplicaCurve[Array], place: int) -> ReplicaCurve[float]:
    """Returns one of several points."""
    return ReplicaCurve(*(float(figures[place]) for figures in found))


def _assemble_curve(
    server: ReplicaServer,
    load: ReplicaLoad,
    asked: LoadTokens,
    shape: BatchIterations,
    times: IterationTimes,
) -> ReplicaCurve[Array]:
    added = np.maximum(times.both - times.alike, 0.0) if server.mixed_prefill else times.both
    iterations = asked.prompt / shape.tokens
    # None of the others' prompts falls into the own one: x S more of them follow it.
    others = shape.others * iterations * added
    behind_own = others * shape.pieces * times.own / shape.together
    steps = asked.passes * times.alike + others
    decoding = (steps + np.sqrt(steps * steps + 4.0 * behind_own)) / 2.0
    full = (
        np.maximum(times.full - times.alike, added) if server.mixed_prefill else np.maximum(times.full, added)
    )
    if server.mixed_prefill:
        decoding = np.minimum(decoding, asked.passes * (times.alike + full))
    rate = shape.batch / decoding
    taken = asked.prompt / shape.budget * (full + (times.alike if server.mixed_prefill else 0.0))
    prompt_load = rate * taken
    behind = np.minimum((1.0 - asked.alone) * prompt_load, 1.0 - 1e-6)
    # An iteration takes m prompts; for m = 1 this is the formula of Pollaczek and Khinchine.
    abreast = np.maximum(shape.budget / asked.prompt, 1.0)
    queued = behind ** (np.sqrt(2.0 * (abreast + 1.0)) - 1.0)
    wait = (
        queued
        * taken
        * (estimate_arrival_variance(load, asked) + load.inputs.variation)
        / 2.0
        / (1.0 - behind)
    )
    mean, half = compute_iteration_moments(server, shape, times, iterations / max(asked.passes, NOTHING))
    residual = compute_residual_seconds(server, load, shape, mean, half)
    # Prompts that arrived in the same, longer than average iteration share it with the own prompt.
    meanwhile = 2.0 * half * rate if load.concurrency is None else shape.others / max(asked.passes, 1.0)
    shared = np.minimum(1.0 + meanwhile, abreast)
    own = shape.pieces * (
        times.own + _estimate_added_seconds(added, full, shape, (shared - shape.together) * asked.prompt)
    )
    inside = shape.batch + rate * own
    requests = inside + rate * (wait + residual + server.frontend_seconds)
    return ReplicaCurve(
        shape.batch,
        rate,
        times.alike,
        added,
        full,
        own,
        shared,
        iterations,
        decoding,
        wait,
        residual,
        prompt_load,
        shape.tokens,
        shape.budget,
        requests,
        inside,
    )


def _estimate_added_seconds(added: Array, full: Array, shape: BatchIterations, tokens: Array) -> Array:
    """Returns the seconds that ``tokens`` add beyond those of an iteration, interpolated to a full one."""
    slope = (full - added) / np.maximum(shape.budget - shape.computed, 1.0)
    return np.asarray(np.maximum(tokens, 0.0) / shape.pieces * slope)


def compute_prompt_seconds(there: ReplicaCurve[float], tokens: Array) -> Array:
    """Returns the seconds that ``tokens`` prompt tokens add to an iteration.

    Linear to a full one, and to zero.
    """
    few = there.added_seconds * tokens / there.tokens
    slope = (there.full_seconds - there.added_seconds) / max(there.budget - there.tokens, 1.0)
    return np.asarray(
        np.where(tokens < there.tokens, few, there.added_seconds + slope * (tokens - there.tokens))
    )


def _compute_prefill_only_curve(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, asked: LoadTokens, batch: Array
) -> ReplicaCurve[Array]:
    """Computes ``compute_curve`` for requests that end with their first token.

    ``batch`` are the requests in or before a pass. A pass takes the requests that arrived since the last one,
    as far as the engine batches them.
    """
    none = np.zeros_like(batch)
    budget = compute_token_budget(server, load, none)
    pieces = count_prompt_chunks(server, load, asked, budget)
    most = np.maximum(1.0, np.floor(budget / asked.prompt))
    closed = load.concurrency is not None
    # Of y arrivals per pass, the next one finds some with probability 1 - e^-y.
    meets = np.ones_like(batch) if closed else -np.expm1(-batch)
    together = np.clip(batch / meets, 1.0, most)
    computed = asked.prompt * np.maximum(together, server.ranks) / pieces
    own = pieces * np.asarray(compute_iteration_times(model, asked, none, computed).seconds)
    rate = np.minimum(batch, together if closed else most) / own
    wait = np.maximum(batch / rate - own, 0.0) if closed else meets * own / 2.0
    inside = rate * own
    requests = inside + rate * (wait + server.frontend_seconds)
    return ReplicaCurve(
        batch,
        rate,
        none,
        own / pieces,
        own / pieces * np.maximum(most / together, 1.0),
        own,
        together,
        pieces / together,
        none,
        wait,
        none,
        batch / most,
        asked.prompt * together / pieces,
        budget,
        requests,
        inside,
    )
