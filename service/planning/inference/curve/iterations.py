"""Iterations of the model at mean batches, and what is left of the one that an arrival meets."""

from typing import NamedTuple, cast

import numpy as np

from service.planning.inference.curve.moments import Array, LoadTokens
from service.planning.inference.curve.prompts import BatchIterations
from service.planning.inference.iteration import IterationBatch, IterationTime
from service.planning.inference.load import ReplicaLoad, ReplicaServer
from service.planning.inference.speculation import IterationSource


class IterationTimes(NamedTuple):
    """Seconds of iterations: decoding, with prompts, full of prompts, with the own prompt, and as met."""

    alike: Array
    both: Array
    full: Array
    own: Array
    before: Array


def compute_iteration_times(
    model: IterationSource, asked: LoadTokens, decoding: Array, prefilled: Array
) -> IterationTime:
    """Computes iterations with the given decoding requests and prompt tokens."""
    return model.compute_time(
        IterationBatch(
            cast("float", decoding),
            cast("float", decoding * asked.context),
            cast("float", prefilled),
            cast("float", np.where(prefilled > 0.0, asked.attended, 0.0)),
            cast("float", prefilled / asked.prompt),
        )
    )


def average_iterations(times: IterationTime, first: int, second: int, weight: float) -> IterationTime:
    """Returns the mean of the entries ``first`` and ``second`` of ``times``, the second with ``weight``."""
    return IterationTime(
        *(
            (1.0 - weight) * float(part[first]) + weight * float(part[second])
            for part in cast("list[Array]", times)
        )
    )


def select_iteration(times: IterationTime, place: int) -> IterationTime:
    """Returns the iterations of one of several points."""
    columns = (np.asarray(part)[:, place] for part in times)
    return IterationTime(*(cast("float", column) for column in columns))


def compute_iteration_moments(
    server: ReplicaServer, shape: BatchIterations, times: IterationTimes, each: Array
) -> tuple[Array, Array]:
    """Returns the mean iteration and the rest of the one met, E[T^2] / (2 E[T]), in seconds."""
    prompts = shape.others * each
    with_prompts = np.minimum(prompts if server.mixed_prefill else prompts / (1.0 + prompts), 1.0)
    mean = times.before + with_prompts * (times.own - times.before)
    square = times.before**2 + with_prompts * (times.own**2 - times.before**2)
    return np.asarray(mean), np.asarray(square / mean / 2.0)


def compute_residual_seconds(
    server: ReplicaServer, load: ReplicaLoad, shape: BatchIterations, mean: Array, half: Array
) -> Array:
    """Returns the seconds until the iteration ends that an arrival meets, if any.

    In a closed loop a request ends with an iteration; its successor meets the next one, after the time of the
    front end.
    """
    if load.concurrency is not None and not server.frontend_seconds:
        return np.zeros_like(half)
    meets = -np.expm1(-shape.others)
    if load.concurrency is None:
        return np.asarray(meets * half)
    return np.asarray(meets * np.maximum(mean - server.frontend_seconds, half))
