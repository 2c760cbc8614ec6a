"""Latencies of requests at an operating point, sampled on a lattice."""

import math
from typing import NamedTuple

import numpy as np

from service.planning.inference.bursts import estimate_burst
from service.planning.inference.curve import NOTHING, Array, ReplicaCurve, ServerSetting
from service.planning.inference.load import ReplicaLoad, RequestLatencies
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
from service.planning.inference.serving.operating_point import WorkingPoint, estimate_fluctuation

_FEW = 20.0
"""Mean above which a Poisson number is approximated by a normal one."""


class MeanFigures(NamedTuple):
    """Mean seconds to the first token, of each further one, of a request, and of its decoding."""

    first: float
    each: float
    whole: float
    decoding: float


def sample_steady_state(
    setting: ServerSetting, there: ReplicaCurve[float], at: WorkingPoint
) -> tuple[RequestLatencies, MeanFigures, float]:
    """Samples latencies of a load that lasts; returns them with their means and the rate."""
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
    return outcomes, MeanFigures(mean, each, mean + decoding, decoding), at.rate


def sample_cold_start(
    setting: ServerSetting, there: ReplicaCurve[float], at: WorkingPoint
) -> tuple[RequestLatencies, MeanFigures, float]:
    """Samples latencies of a closed loop that begins with a queue of prompts."""
    first, each, whole, rate, decoding = estimate_burst(setting, there, at.grid)
    decodes = setting.asked.decodes
    paced = each[~np.isnan(each)]
    outcomes = RequestLatencies(first, each if decodes else None, whole)
    pace = float(paced.mean()) if decodes else 0.0
    return outcomes, MeanFigures(float(first.mean()), pace, float(whole.mean()), decoding), rate


def _sample_queue_waits(load: ReplicaLoad, at: WorkingPoint) -> Array:
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
        free = 1.0 / estimate_fluctuation(grid, there.batch)[1]
        kept = 2.0 * (math.expm1(-free) + free) / free**2
        moving = max(0.0, 1.0 - free) * each
        relative = math.sqrt(math.log1p(kept / free / max(there.batch, 1.0)))
        # The part that grows with the batch moves with it, apart from the deviation of the prefills.
        paced += moving * (np.exp(relative * INDEPENDENT - relative**2 / 2.0) - 1.0)
    return np.asarray(np.where(behind > 0.0, paced, np.nan))
