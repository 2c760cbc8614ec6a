"""A replica with continuous batching over its mean batch: the closed form behind ``serving``.

With b requests decoding on average, each of N iterations, and m iterations with prompt tokens to a request:

    D = N T(b) + (1 - 1/c) (b + x S) m (T(b, prompt) - T(b))   seconds that a request decodes
    x = b / D                                                  requests per second (Little 1961)
    S = the iterations with its own prompt, W = its wait for those of others
    c = b + x (S + W + R + F)                                  requests in all (Little 1961)

D holds because each of the others starts once while a request is there, and not within its own prompt; an
iteration that is full of prompts takes no more. An engine that prefills in iterations of their own adds
T(prompt) in place of the difference. All are functions of b, so that arrays over b hold the whole curve of a
server: a closed loop is read where the requests are c, an open one where the rate is x, saturation where no
place is left or every iteration is full of prompts.

W is the mean wait in M/G/m (Sakasegawa 1977) for m prompts that an iteration takes, with the arrival theorem
in Schweitzer's approximation (Reiser and Lavenberg 1980, Schweitzer 1979); R is what is left of the
iteration that an arrival meets, F the front end.
"""

from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.iteration import Batch, IterationTime
from service.planning.inference.load import Load, Server
from service.planning.inference.speculation import Iterations

Array: TypeAlias = NDArray[np.float64]

MOST_REQUESTS = 16384.0
"""Where neither the engine nor its cache limits a batch."""
NOTHING = 1e-12


class Asked(NamedTuple):
    """What of a load the formulas need, in tokens."""

    prompt: float
    """To be computed."""
    context: float
    """Mean context while a request decodes."""
    attended: float
    """Mean tokens that a prompt token attends to."""
    decodes: float
    """Tokens behind the first."""
    passes: float
    """Iterations in which they come."""
    alone: float
    """Of the requests in a closed loop, the share that one is; 0 in an open one."""
    positions: float
    """Of a decoding request in an iteration."""


def asked_of(server: Server, load: Load) -> Asked:
    """The moments of ``load``."""
    speculation = server.speculation
    decodes = load.decodes
    return Asked(
        load.computed_tokens,
        load.decoding_context,
        load.prefill_context,
        decodes,
        decodes / (speculation.tokens_per_pass if speculation else 1.0),
        0.0 if load.concurrency is None else 1.0 / max(1.0, load.concurrency),
        speculation.positions if speculation else 1.0,
    )


class Setting(NamedTuple):
    """A server, what it is asked, and how many requests find room."""

    server: Server
    load: Load
    asked: Asked
    places: float


Figures = TypeVar("Figures")


class Curve(NamedTuple, Generic[Figures]):
    """A replica at rising mean batches; arrays of one entry for each, or one number.

    In seconds, tokens and requests.
    """

    batch: Figures
    """Requests that decode, on average."""
    requests_per_second: Figures
    decode_seconds: Figures
    """An iteration that only decodes."""
    added_seconds: Figures
    """What one with prompt tokens adds for those that decode."""
    full_seconds: Figures
    """What one adds whose prompt tokens are as many as can be."""
    own_seconds: Figures
    """The iterations with a request's own prompt."""
    shared: Figures
    """Prompts that a request finds in them, its own included."""
    iterations: Figures
    """Iterations with prompt tokens to a request; less than one where they hold several prompts."""
    decoding_seconds: Figures
    """From a request's first token to its last."""
    wait_seconds: Figures
    """For prompts of others."""
    residual_seconds: Figures
    """Left of the iteration that an arrival meets."""
    prompt_load: Figures
    """Share of the prompt tokens that could be computed, 1 where no more can be."""
    tokens: Figures
    """Prompt tokens of an iteration that has some."""
    budget: Figures
    """The most of these."""
    requests: Figures
    """In all, but those that wait for a place."""
    inside: Figures
    """Those that hold a place: prefilling or decoding."""


def places_of(server: Server, load: Load) -> float:
    """Requests that find room at a time: the engine's limit, or the cache over what a request holds."""
    limits = [MOST_REQUESTS]
    if server.most_requests is not None:
        limits.append(float(server.most_requests))
    if server.cache_tokens is not None:
        whole = load.inputs.mean + load.outputs.mean
        context = load.decoding_context
        held = max(context + server.reserved_output * (whole - context), load.inputs.mean)
        limits.append(max(1.0, server.cache_tokens / (held + server.block_tokens / 2.0)))
    return min(limits)


def curve(
    model: Iterations, server: Server, load: Load, batch: Array, alone: Array | None = None
) -> Curve[Array]:
    """The replica at each of the mean batches ``batch``, by one call of the iteration model.

    Lengths, prefix hits and, of a closed loop, the number of requests are those of ``load``; speculation
    has to be part of ``model`` (``Speculating``). ``alone`` is the share that one request is of several
    closed loops, a column: then there is a row for each of them.
    """
    asked = asked_of(server, load)
    if alone is not None:
        asked = asked._replace(alone=cast("float", alone))
    if not asked.decodes:
        return _prompts_only(model, server, load, asked, batch)
    shape = _shape(server, load, asked, batch)
    none = np.zeros_like(shape.seen)
    beside = shape.seen if server.mixed_prefill else none
    decoding = np.stack([shape.seen, beside, beside])
    prefilled = np.stack([none, shape.computed, shape.budget])
    alike, both, full = np.asarray(iteration_times(model, asked, decoding, prefilled).seconds)
    return _curve(server, load, asked, shape, _Times(alike, both, full, both, alike))


def point(model: Iterations, server: Server, load: Load, batch: float) -> tuple[Curve[float], IterationTime]:
    """``curve`` at one batch, without its neglect of what a request itself adds, and its iterations.

    These are one that decodes, and one with prompts.
    """
    asked, there = asked_of(server, load), np.asarray([batch])
    if not asked.decodes:
        only = _prompts_only(model, server, load, asked, there)
        times = iteration_times(model, asked, np.zeros((2, 1)), np.stack([only.tokens, only.tokens]))
    else:
        only, times = points(model, server, load, there, np.asarray([asked.alone]))
    return entry(only, 0), entry_of(times, 0)


def points(
    model: Iterations, server: Server, load: Load, batch: Array, alone: Array
) -> tuple[Curve[Array], IterationTime]:
    """``point`` at several, by one call: ``alone`` as in ``curve``, one entry for each of ``batch``."""
    asked = asked_of(server, load)._replace(alone=cast("float", alone))
    shape = _shape(server, load, asked, batch)
    none = np.zeros_like(shape.seen)
    beside = (shape.seen, shape.others) if server.mixed_prefill else (none, none)
    times = iteration_times(
        model,
        asked,
        np.stack([shape.seen, beside[0], beside[0], beside[1], shape.others]),
        np.stack([none, shape.computed, shape.budget, shape.computed, none]),
    )
    return _curve(server, load, asked, shape, _Times(*np.asarray(times.seconds))), times


def entry(found: Curve[Array], place: int) -> Curve[float]:
    """One of several points."""
    return Curve(*(float(figures[place]) for figures in found))


def entry_of(times: IterationTime, place: int) -> IterationTime:
    """The iterations of one of several points."""
    columns = (np.asarray(part)[:, place] for part in times)
    return IterationTime(*(cast("float", column) for column in columns))


class _Shape(NamedTuple):
    """Iterations at each batch."""

    batch: Array
    others: Array
    """Requests that decode beside one."""
    seen: Array
    """Requests of an iteration in which one decodes."""
    pieces: Array
    """Iterations that a prompt is cut into."""
    together: Array
    """Prompts of an iteration that has some, or of the pieces' iterations."""
    tokens: Array
    """Prompt tokens of an iteration that has some."""
    computed: Array
    """The same as the slowest of the attention ranks has them, times their number."""
    budget: Array


class _Times(NamedTuple):
    """Iterations that one decodes in, with prompts, full of them, with its own prompt, and met; seconds."""

    alike: Array
    both: Array
    full: Array
    own: Array
    before: Array


def _shape(server: Server, load: Load, asked: Asked, batch: Array) -> _Shape:
    """How prompts are cut and joined.

    Of short prompts an iteration takes those that have come since the last one: of y arrivals an
    iteration, Poisson, y / (1 - e^-y) where there is any; each iteration ends 1 / N of what decodes. Of a
    long one the last piece leaves room, which the next prompt fills if it is there. Attention ranks take
    whole prompts each, and the others wait for the one with the most.
    """
    others = batch * (1.0 - asked.alone)
    budget = token_budget(server, load, others * asked.positions)
    pieces = pieces_of(server, load, asked, budget)
    arriving = np.maximum(others / max(asked.passes, 1.0), NOTHING)
    # Ranks whose requests are all alike end and begin together; others do so by chance.
    chance = _apart(load, asked) if server.ranks > 1 else 1.0
    together = chance * _found(arriving)
    if server.ranks > 1:
        step = np.minimum(server.ranks * _found(arriving / server.ranks), others + 1.0)
        together = together + (1.0 - chance) * step
    together = np.minimum(together, np.maximum(budget / asked.prompt, 1.0))
    fullest = asked.prompt / budget
    busy = np.minimum(arriving * fullest, 1.0)
    iterations = np.where(pieces > 1.0, pieces + busy * (fullest - pieces), 1.0)
    tokens = asked.prompt * together / iterations
    computed = np.minimum(asked.prompt * np.maximum(together, server.ranks) / iterations, budget)
    return _Shape(batch, others, others + 1.0, pieces, together, tokens, computed, budget)


def _found(arriving: Array) -> Array:
    """Prompts of an iteration that has some, of a Poisson number."""
    return np.asarray(arriving / -np.expm1(-arriving))


def _apart(load: Load, asked: Asked) -> Array | float:
    """How far ranks are from ending and beginning together: 1 where arrivals are chance."""
    return 1.0 if load.concurrency is None else _chance(load, asked)


def token_budget(server: Server, load: Load, decoded: Array) -> Array:
    """Prompt tokens that an iteration takes beside ``decoded`` positions, of all attention ranks."""
    budget = np.full_like(decoded, float(server.batched_tokens))
    if not server.chunked_prefill:
        return np.maximum(budget, load.inputs.longest * server.ranks)
    if server.mixed_prefill:
        return np.maximum(budget - decoded, float(server.block_tokens * server.ranks))
    return budget


def pieces_of(server: Server, load: Load, asked: Asked, budget: Array) -> Array:
    """Iterations that a prompt is cut into, on average."""
    rank = budget / server.ranks
    if load.inputs.longest <= float(rank.min()):
        return np.ones_like(budget)
    computed = np.asarray(load.inputs.values) * (asked.prompt / load.inputs.mean)
    weights = np.asarray(load.inputs.weights)
    return np.tensordot(weights, np.ceil(np.multiply.outer(computed, 1.0 / rank)), axes=1)


def iteration_times(model: Iterations, asked: Asked, decoding: Array, prefilled: Array) -> IterationTime:
    """Iterations with so many requests that decode and so many prompt tokens."""
    return model.time(
        Batch(
            cast("float", decoding),
            cast("float", decoding * asked.context),
            cast("float", prefilled),
            cast("float", np.where(prefilled > 0.0, asked.attended, 0.0)),
            cast("float", prefilled / asked.prompt),
        )
    )


def mean_iteration(times: IterationTime, first: int, second: int, weight: float) -> IterationTime:
    """The entries ``first`` and ``second`` of ``times``, the second with ``weight``."""
    return IterationTime(
        *(
            (1.0 - weight) * float(part[first]) + weight * float(part[second])
            for part in cast("list[Array]", times)
        )
    )


def _curve(server: Server, load: Load, asked: Asked, shape: _Shape, times: _Times) -> Curve[Array]:
    added = np.maximum(times.both - times.alike, 0.0) if server.mixed_prefill else times.both
    iterations = asked.prompt / shape.tokens
    # None of the others' prompts falls into the own one: x S more of them come behind it.
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
    # Of m prompts an iteration; for m = 1 this is the formula of Pollaczek and Khinchine.
    abreast = np.maximum(shape.budget / asked.prompt, 1.0)
    queued = behind ** (np.sqrt(2.0 * (abreast + 1.0)) - 1.0)
    wait = queued * taken * (_chance(load, asked) + load.inputs.variation) / 2.0 / (1.0 - behind)
    mean, half = _met(server, shape, times, iterations / max(asked.passes, NOTHING))
    residual = _residual(server, load, shape, mean, half)
    # Beside its own prompt are those that came in the same iteration, which is longer than most.
    meanwhile = 2.0 * half * rate if load.concurrency is None else shape.others / max(asked.passes, 1.0)
    shared = np.minimum(1.0 + meanwhile, abreast)
    own = shape.pieces * (times.own + _more(added, full, shape, (shared - shape.together) * asked.prompt))
    inside = shape.batch + rate * own
    requests = inside + rate * (wait + residual + server.frontend_seconds)
    return Curve(
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


def _chance(load: Load, asked: Asked) -> Array | float:
    """Variance of the gaps between arrivals at the prompts' queue over their squared mean.

    In a closed loop with lengths that are all alike requests keep the distance at which they have been served
    once. A deviation of the outputs breaks it as far as it reaches beyond the distance, a c-th of a cycle.
    """
    if load.concurrency is None:
        return load.arrivals.variation
    return cast("Array", np.minimum(1.0, load.outputs.variation**0.5 / 2.0 / asked.alone))


def _more(added: Array, full: Array, shape: _Shape, tokens: Array) -> Array:
    """What ``tokens`` add beyond those of an iteration, between it and a full one."""
    slope = (full - added) / np.maximum(shape.budget - shape.computed, 1.0)
    return np.asarray(np.maximum(tokens, 0.0) / shape.pieces * slope)


def prompt_seconds(there: Curve[float], tokens: Array) -> Array:
    """What an iteration with ``tokens`` prompt tokens adds: linear to a full one, and below it to nothing."""
    few = there.added_seconds * tokens / there.tokens
    slope = (there.full_seconds - there.added_seconds) / max(there.budget - there.tokens, 1.0)
    return np.asarray(
        np.where(tokens < there.tokens, few, there.added_seconds + slope * (tokens - there.tokens))
    )


def _met(server: Server, shape: _Shape, times: _Times, each: Array) -> tuple[Array, Array]:
    """Mean iteration, and what is left of the one that an arrival meets, E[T^2] / (2 E[T]); seconds."""
    prompts = shape.others * each
    with_prompts = np.minimum(prompts if server.mixed_prefill else prompts / (1.0 + prompts), 1.0)
    mean = times.before + with_prompts * (times.own - times.before)
    square = times.before**2 + with_prompts * (times.own**2 - times.before**2)
    return np.asarray(mean), np.asarray(square / mean / 2.0)


def _residual(server: Server, load: Load, shape: _Shape, mean: Array, half: Array) -> Array:
    """Seconds until the iteration ends that an arrival meets, if any.

    In a closed loop a request ends with an iteration; its successor meets the next one as far as the
    front end has taken.
    """
    if load.concurrency is not None and not server.frontend_seconds:
        return np.zeros_like(half)
    meets = -np.expm1(-shape.others)
    if load.concurrency is None:
        return np.asarray(meets * half)
    return np.asarray(meets * np.maximum(mean - server.frontend_seconds, half))


def _prompts_only(model: Iterations, server: Server, load: Load, asked: Asked, batch: Array) -> Curve[Array]:
    """``curve`` of requests that end with their first token; ``batch`` are those in or before a pass.

    A pass takes what has come since the last one, as far as the engine batches it.
    """
    none = np.zeros_like(batch)
    budget = token_budget(server, load, none)
    pieces = pieces_of(server, load, asked, budget)
    most = np.maximum(1.0, np.floor(budget / asked.prompt))
    closed = load.concurrency is not None
    # Of y arrivals a pass the next one finds some with 1 - e^-y.
    meets = np.ones_like(batch) if closed else -np.expm1(-batch)
    together = np.clip(batch / meets, 1.0, most)
    computed = asked.prompt * np.maximum(together, server.ranks) / pieces
    own = pieces * np.asarray(iteration_times(model, asked, none, computed).seconds)
    rate = np.minimum(batch, together if closed else most) / own
    wait = np.maximum(batch / rate - own, 0.0) if closed else meets * own / 2.0
    inside = rate * own
    requests = inside + rate * (wait + server.frontend_seconds)
    return Curve(
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
