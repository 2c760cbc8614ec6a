"""Prompts of an iteration: how they are split and joined, and the budget that they share."""

from typing import NamedTuple, cast

import numpy as np

from service.planning.inference.curve.moments import NOTHING, Array, LoadTokens
from service.planning.inference.load import ReplicaLoad, ReplicaServer


class BatchIterations(NamedTuple):
    """Composition of iterations at each batch."""

    batch: Array
    others: Array
    """Requests that decode beside one request."""
    seen: Array
    """Requests of an iteration in which one decodes."""
    pieces: Array
    """Iterations that a prompt is split into."""
    together: Array
    """Prompts of an iteration that has some, or of the iterations of the pieces."""
    tokens: Array
    """Prompt tokens of an iteration that has some."""
    computed: Array
    """Prompt tokens of the slowest attention rank, times the number of ranks."""
    budget: Array


def compute_prompt_shape(
    server: ReplicaServer, load: ReplicaLoad, asked: LoadTokens, batch: Array
) -> BatchIterations:
    """Splits and joins prompts.

    An iteration takes the short prompts that arrived since the last one: of y Poisson arrivals per iteration,
    y / (1 - e^-y) where there is any; each iteration ends 1 / N of the decoding requests. The last piece of a
    long prompt leaves room, which the next waiting prompt fills. Each attention rank takes whole prompts, and
    the others wait for the rank with the most.
    """
    others = batch * (1.0 - asked.alone)
    budget = compute_token_budget(server, load, others * asked.positions)
    pieces = count_prompt_chunks(server, load, asked, budget)
    arriving = np.maximum(others / max(asked.passes, 1.0), NOTHING)
    # Ranks whose requests are all equal end and begin together; others do so by chance.
    chance = _estimate_rank_spread(load, asked) if server.ranks > 1 else 1.0
    together = chance * _compute_mean_arrivals(arriving)
    if server.ranks > 1:
        step = np.minimum(server.ranks * _compute_mean_arrivals(arriving / server.ranks), others + 1.0)
        together = together + (1.0 - chance) * step
    together = np.minimum(together, np.maximum(budget / asked.prompt, 1.0))
    fullest = asked.prompt / budget
    busy = np.minimum(arriving * fullest, 1.0)
    iterations = np.where(pieces > 1.0, pieces + busy * (fullest - pieces), 1.0)
    tokens = asked.prompt * together / iterations
    computed = np.minimum(asked.prompt * np.maximum(together, server.ranks) / iterations, budget)
    return BatchIterations(batch, others, others + 1.0, pieces, together, tokens, computed, budget)


def _compute_mean_arrivals(arriving: Array) -> Array:
    """Returns the mean number of prompts of an iteration that has some, for Poisson arrivals."""
    return np.asarray(arriving / -np.expm1(-arriving))


def _estimate_rank_spread(load: ReplicaLoad, asked: LoadTokens) -> Array | float:
    """Returns the randomness of ranks that end and begin.

    1 where arrivals are random, 0 where they are aligned.
    """
    return 1.0 if load.concurrency is None else estimate_arrival_variance(load, asked)


def estimate_arrival_variance(load: ReplicaLoad, asked: LoadTokens) -> Array | float:
    """Returns the variance of the gaps between arrivals at the prompts' queue over their squared mean.

    In a closed loop with equal lengths, requests keep the distance at which they have been served once. A
    deviation of the outputs breaks it as far as it exceeds the distance, a c-th of a cycle.
    """
    if load.concurrency is None:
        return load.arrivals.variation
    return cast("Array", np.minimum(1.0, load.outputs.variation**0.5 / 2.0 / asked.alone))


def compute_token_budget(server: ReplicaServer, load: ReplicaLoad, decoded: Array) -> Array:
    """Returns the prompt tokens that an iteration of all ranks takes beside ``decoded`` positions."""
    budget = np.full_like(decoded, float(server.batched_tokens))
    if not server.chunked_prefill:
        return np.maximum(budget, load.inputs.longest * server.ranks)
    if server.mixed_prefill:
        return np.maximum(budget - decoded, float(server.block_tokens * server.ranks))
    return budget


def count_prompt_chunks(server: ReplicaServer, load: ReplicaLoad, asked: LoadTokens, budget: Array) -> Array:
    """Returns the mean number of iterations that a prompt is split into."""
    rank = budget / server.ranks
    if load.inputs.longest <= float(rank.min()):
        return np.ones_like(budget)
    computed = np.asarray(load.inputs.values) * (asked.prompt / load.inputs.mean)
    weights = np.asarray(load.inputs.weights)
    return np.tensordot(weights, np.ceil(np.multiply.outer(computed, 1.0 / rank)), axes=1)
