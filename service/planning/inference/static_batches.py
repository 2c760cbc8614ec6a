"""Static batching: a batch starts once all requests of the last have ended.

    T(B) = prefill of B prompts + (longest of B outputs - 1) iterations over all B

A closed loop starts min(c, B) each time; an open one the requests that arrived meanwhile, b = rate T(b).
"""

import numpy as np

from service.planning.inference.curve import (
    Array,
    average_iterations,
    compute_iteration_times,
    compute_load_moments,
    compute_request_capacity,
)
from service.planning.inference.load import (
    ReplicaLoad,
    ReplicaServer,
    RequestLatencies,
    ServedLoad,
    compute_percentiles,
)
from service.planning.inference.sampling import OUTPUT, PHASE
from service.planning.inference.speculation import IterationSource

_GRID = 24


def estimate_static_batching(model: IterationSource, server: ReplicaServer, load: ReplicaLoad) -> ServedLoad:
    """Estimates a replica with static batches; speculation has to be part of ``model``."""
    asked = compute_load_moments(server, load)
    places = compute_request_capacity(server._replace(reserved_output=1.0), load)
    sizes = np.geomspace(1.0, max(places, 1.001), _GRID)
    longest = np.asarray([load.outputs.compute_mean_longest(size) for size in sizes])
    budget = max(float(server.batched_tokens), asked.prompt)
    tokens = np.minimum(sizes * asked.prompt, budget)
    none = np.zeros_like(sizes)
    times = compute_iteration_times(model, asked, np.append(sizes, none), np.append(none, tokens)).seconds
    step, prefill = np.asarray(times).reshape(2, -1)
    prefill = prefill * sizes * asked.prompt / tokens
    per_pass = asked.decodes / asked.passes if asked.passes else 1.0
    lasting = prefill + np.maximum(longest - 1.0, 0.0) / per_pass * step
    rates = np.maximum.accumulate(sizes / lasting)
    most = float(rates[-1])

    rate = load.rate_per_second or 0.0
    if load.concurrency is not None:
        size, saturated = min(load.concurrency, places), load.concurrency > places
    else:
        size, saturated = float(np.interp(rate, rates, sizes)), rate >= most
    taken, filling, each = (float(np.interp(size, sizes, values)) for values in (lasting, prefill, step))
    decoding = asked.passes * each
    if load.concurrency is not None:
        rate, busy = size / taken, 1.0
        wait = max(0.0, load.concurrency / rate - filling - decoding - server.frontend_seconds)
    else:
        wait = load.open_seconds / 2.0 * (1.0 - most / rate) if saturated else 0.0
        rate = min(rate, most)
        busy = min(1.0, rate * taken / size)
        wait += busy * taken / 2.0
    first = np.asarray(server.frontend_seconds + 2.0 * wait * PHASE + filling)
    behind = np.maximum(load.outputs.get_quantiles(OUTPUT) - 1.0, 0.0)
    pace: Array = np.where(behind > 0.0, each / per_pass, np.nan)
    whole = first + behind * np.nan_to_num(pace)
    share = filling / taken
    pair = compute_iteration_times(
        model, asked, np.asarray([size, 0.0]), np.asarray([0.0, min(size * asked.prompt, budget)])
    )
    # Weighted by their number: the share of the time over the duration of one.
    lengths = np.asarray(pair.seconds)
    weight = share / lengths[1] / (share / lengths[1] + (1.0 - share) / lengths[0])
    mean = server.frontend_seconds + wait + filling
    return ServedLoad(
        compute_percentiles(first)._replace(mean=mean),
        compute_percentiles(pace)._replace(mean=each / per_pass) if asked.decodes else None,
        compute_percentiles(whole)._replace(mean=mean + decoding),
        rate,
        rate * load.outputs.mean,
        rate * decoding,
        rate * wait,
        busy,
        saturated,
        most,
        0.0,
        share,
        average_iterations(pair, 0, 1, float(weight)),
        RequestLatencies(first, pace if asked.decodes else None, whole),
        size,
    )
