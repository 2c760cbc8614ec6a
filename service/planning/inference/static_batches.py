"""Static batching: a batch starts once the last has ended whole.

    T(B) = prefill of B prompts + (longest of B outputs - 1) iterations over all B

A closed loop starts min(c, B) each time; an open one what has come meanwhile, b = rate T(b).
"""

import numpy as np

from service.planning.inference.curve import Array, asked_of, iteration_times, mean_iteration, places_of
from service.planning.inference.load import Load, Outcomes, Served, Server, percentiles
from service.planning.inference.sampling import OUTPUT, PHASE
from service.planning.inference.speculation import Iterations

_GRID = 24


def served_in_batches(model: Iterations, server: Server, load: Load) -> Served:
    """What a replica with static batches does; speculation has to be part of ``model``."""
    asked = asked_of(server, load)
    places = places_of(server._replace(reserved_output=1.0), load)
    sizes = np.geomspace(1.0, max(places, 1.001), _GRID)
    longest = np.asarray([load.outputs.longest_of(size) for size in sizes])
    budget = max(float(server.batched_tokens), asked.prompt)
    tokens = np.minimum(sizes * asked.prompt, budget)
    none = np.zeros_like(sizes)
    times = iteration_times(model, asked, np.append(sizes, none), np.append(none, tokens)).seconds
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
    behind = np.maximum(load.outputs.of(OUTPUT) - 1.0, 0.0)
    pace: Array = np.where(behind > 0.0, each / per_pass, np.nan)
    whole = first + behind * np.nan_to_num(pace)
    share = filling / taken
    pair = iteration_times(
        model, asked, np.asarray([size, 0.0]), np.asarray([0.0, min(size * asked.prompt, budget)])
    )
    # By how many there are of each: the share of the time over how long one takes.
    lengths = np.asarray(pair.seconds)
    weight = share / lengths[1] / (share / lengths[1] + (1.0 - share) / lengths[0])
    mean = server.frontend_seconds + wait + filling
    return Served(
        percentiles(first)._replace(mean=mean),
        percentiles(pace)._replace(mean=each / per_pass) if asked.decodes else None,
        percentiles(whole)._replace(mean=mean + decoding),
        rate,
        rate * load.outputs.mean,
        rate * decoding,
        rate * wait,
        busy,
        saturated,
        most,
        0.0,
        share,
        mean_iteration(pair, 0, 1, float(weight)),
        Outcomes(first, pace if asked.decodes else None, whole),
        size,
    )
