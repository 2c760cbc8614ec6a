"""Disaggregated serving: replicas for prompts, replicas for answers, and the cache sent between them.

A prefill replica is a server of passes (``batching``): it takes as many waiting prompts as fit an iteration.
A decode replica runs iterations of b requests without prompts, so that each token takes T(b). With x requests
a second,

    b = x N T(b) / decode replicas          Little 1961, N tokens after the first
    TTFT = wait and prefill at x / prefill replicas + the exposed part of the transfer
    c = x (TTFT + N T(b))                   for a constant number of requests

and x is at most the rate of either side, or of the links between them: the least of the three is the limit
(Zhong et al. 2024, DistServe; Patel et al. 2024, Splitwise). The transfer takes

    seconds = messages x alpha + bytes / beta,     exposed = max(seconds / L, seconds - (1 - 1/L) x prefill)

where the cache of a layer leaves while later layers of L compute; else all of it is exposed.
"""

import math
from typing import NamedTuple

import numpy as np

from service.planning.hardware.collectives import LevelRate
from service.planning.hardware.storage import BlockFormat
from service.planning.inference.batching import BatchedPasses, Floats, estimate_open_batching
from service.planning.inference.iteration import IterationBatch, IterationTime
from service.planning.inference.load import (
    Percentiles,
    ReplicaLoad,
    ReplicaServer,
    RequestLatencies,
    ServedLoad,
    compute_percentiles,
)
from service.planning.inference.speculation import IterationSource, SpeculativeIterations
from service.planning.memory.caches import key_value_bytes
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat

_ROUNDS = 24
"""Halvings of the range in which the rate is sought."""
_NEAR = 1e-4
_POINTS = 48
"""Batches at which each side's seconds are computed; values between them are interpolated linearly."""
_LEAST = 1e-3
"""Smallest mean batch."""
_LOADS = np.array([0.02, 0.2, 0.4, 0.6, 0.75, 0.85, 0.93, 0.98])
"""Shares of the largest rate at which the queue of a prefill replica is computed."""
_REACHED = 0.98
"""Share of the largest rate from which a side counts as the limit."""
_FULL = 0.999
"""Largest share of its rate at which a side is evaluated; beyond it the queue is unbounded."""


class ReplicaPool(NamedTuple):
    """Equal replicas of one side."""

    model: IterationSource
    server: ReplicaServer
    replicas: float


class CacheTransfer(NamedTuple):
    """Transfer of a prompt's cache: its bytes and their seconds.

    ``handoff_seconds`` pass in addition before the other side decodes.
    """

    bytes_per_request: float
    """Bytes over all lanes."""
    seconds: float
    layers: float
    by_layer: bool
    handoff_seconds: float = 0.0

    def exposed_seconds(self, prefill_seconds: float) -> float:
        """Returns the seconds that a request waits after its prefill."""
        if not self.by_layer:
            return self.handoff_seconds + self.seconds
        behind = (1.0 - 1.0 / self.layers) * prefill_seconds
        return self.handoff_seconds + max(self.seconds / self.layers, self.seconds - behind)


def build_transfer(
    profile: ModelProfile,
    input_tokens: float,
    cache_format: NumberFormat | BlockFormat,
    *,
    prefill: Parallelism,
    decode: Parallelism,
    rail: LevelRate,
    by_layer: bool,
    handoff_seconds: float = 0.0,
) -> CacheTransfer:
    """Builds the transfer of a prompt's cache over one link of ``rail`` per device of the smaller side.

    Heads that are split finer on the decode side leave a device in parts; a cache that every device holds
    whole, such as a latent, is sent to each of them.
    """
    finer = max(1.0, decode.tensor / prefill.tensor)
    stages = min(prefill.pipeline, decode.pipeline)
    held = key_value_bytes(profile, input_tokens, cache_format, tensor=decode.tensor)
    lane = held * finer / stages
    layers = max(1.0, float(sum(work.layers for work in profile.attention if not work.joined)))
    messages = layers if by_layer else 1.0
    seconds = messages * (rail.hop_seconds + rail.chunk_seconds) + lane / rail.bytes_per_second
    return CacheTransfer(held * decode.tensor, seconds, layers, by_layer, handoff_seconds)


class DisaggregatedRates(NamedTuple):
    """Rates of both sides, over all of their replicas, at the rate that they reach together."""

    most_prefilled_per_second: float
    most_decoded_per_second: float
    most_sent_per_second: float
    prefill_utilization: float
    prefill_batch: float
    decode_utilization: float
    decode_batch: float
    """Mean number of requests that decode on a replica."""
    exposed_seconds: float
    """Seconds that a request waits between prefill and decode."""
    replicas: tuple[float, float]

    @property
    def most_requests_per_second(self) -> float:
        """Highest rate that both sides and the links sustain."""
        return min(self.most_prefilled_per_second, self.most_decoded_per_second, self.most_sent_per_second)

    def is_reached(self, rate: float) -> bool:
        """Returns true if ``rate`` is close to the highest."""
        return rate > _REACHED * self.most_requests_per_second

    @property
    def limit(self) -> str:
        """Side with the lowest rate."""
        rates = {
            "prefill": self.most_prefilled_per_second,
            "decode": self.most_decoded_per_second,
            "transfer": self.most_sent_per_second,
        }
        return min(rates, key=lambda side: rates[side])

    @property
    def balanced_ratio(self) -> float:
        """Ratio of prefill to decode replicas at which both sides are equally fast."""
        prefill, decode = self.replicas
        return (self.most_decoded_per_second / decode) / (self.most_prefilled_per_second / prefill)


class DisaggregatedResult(NamedTuple):
    """Load that the whole system serves, as one replica of a server, and the rates of its sides."""

    served: ServedLoad
    sides: DisaggregatedRates


def compute_prefill_seconds(pool: ReplicaPool, load: ReplicaLoad, prompts: Floats | float) -> Floats:
    """Returns the seconds of a pass over ``prompts`` prompts, in as many iterations as their tokens need."""
    tokens = np.asarray(prompts, dtype=np.float64) * load.computed_tokens
    chunks = np.maximum(1.0, tokens / pool.server.batched_tokens)
    batch = IterationBatch(0.0, 0.0, tokens / chunks, load.prefill_context, prompts / chunks)  # type: ignore[arg-type]
    return np.asarray(chunks * pool.model.compute_time(batch).seconds)


class _DisaggregatedSystem:
    """One system under one load, evaluated at a mean decode batch."""

    def __init__(
        self, prefill: ReplicaPool, decode: ReplicaPool, load: ReplicaLoad, transfer: CacheTransfer
    ) -> None:
        self.prefill, self.decode, self.load, self.transfer = prefill, decode, load, transfer
        fits = math.floor(prefill.server.batched_tokens / load.computed_tokens)
        most = prefill.server.most_requests
        self.prompts = float(max(1, fits if most is None else min(fits, most)))
        self._prompts = np.unique(np.round(np.geomspace(1.0, self.prompts, _POINTS)))
        self._prefills = compute_prefill_seconds(prefill, load, self._prompts)
        self.own_seconds = float(self._prefills[0])
        self.front_seconds = prefill.server.frontend_seconds
        self.exposed = transfer.exposed_seconds(self.own_seconds)
        self.stages = float(prefill.server.pipeline)
        rates = self._prompts / self._prefills
        self.prompts = float(self._prompts[np.argmax(rates)])
        self.most_prefilled = prefill.replicas * self.stages * float(np.max(rates))
        self.most_sent = math.inf
        if transfer.seconds:
            self.most_sent = min(prefill.replicas, decode.replicas) / transfer.seconds
        self.places = _compute_request_capacity(decode.server, load)
        self.groups = float(decode.server.pipeline)
        speculation = decode.server.speculation
        self.tokens_per_pass = speculation.tokens_per_pass if speculation else 1.0
        self._decoder = SpeculativeIterations(decode.model, speculation) if speculation else decode.model
        self._batches = np.geomspace(_LEAST, self.places, _POINTS)
        self._tokens = self.compute_token_seconds(self.compute_iteration(self._batches))
        self.most_decoded = self.compute_rate(self.places)
        self._lines = self._compute_queue_seconds()

    def compute_iteration(self, batch: float | Floats) -> IterationTime:
        """Computes an iteration of a decode replica with ``batch`` requests, one group per stage."""
        each = batch / self.groups
        return self._decoder.compute_time(IterationBatch(each, each * self.load.decoding_context))  # type: ignore[arg-type]

    def compute_token_seconds(self, iteration: IterationTime) -> Floats:
        """Returns the seconds from one token of a request to the next; a pass may yield several."""
        return np.asarray(iteration.seconds) * self.groups / self.tokens_per_pass

    def compute_rate(self, batch: float) -> float:
        """Returns the requests per second of all decode replicas at ``batch`` each."""
        decodes = self.load.decodes
        if not decodes:
            return math.inf
        return self.decode.replicas * batch / (decodes * float(np.interp(batch, self._batches, self._tokens)))

    def _compute_queue_seconds(self) -> Floats:
        """Returns the waits of a prefill replica times its idle share, at each of ``_LOADS``."""
        most = self.most_prefilled
        waits = [self.estimate_prefill(load * most).mean_seconds for load in _LOADS]
        return (np.array(waits) - self.own_seconds / self.stages) * (1.0 - _LOADS)

    @property
    def alone_seconds(self) -> float:
        """Seconds of a request that meets no other."""
        each = float(np.interp(1.0, self._batches, self._tokens))
        return self.front_seconds + self.own_seconds + self.exposed + self.load.decodes * each

    @property
    def max_rate(self) -> float:
        """Requests per second that both sides and the links sustain."""
        return min(self.most_prefilled, self.most_decoded, self.most_sent)

    def estimate_prefill(self, rate: float) -> BatchedPasses:
        """Estimates a prefill replica at its share of ``rate``.

        Each stage of a pipeline takes the next prompts.
        """
        share = rate / self.prefill.replicas
        seconds = self._prefills / self.stages
        return estimate_open_batching(
            lambda prompts: np.interp(prompts, self._prompts, seconds), share, self.prompts
        )

    def find_batch(self, rate: float) -> float:
        """Returns the decode batch that ends ``rate`` requests a second."""
        if not self.load.decodes:
            return 0.0
        rates = self.decode.replicas * self._batches / (self.load.decodes * self._tokens)
        return float(np.interp(rate, np.maximum.accumulate(rates), self._batches))

    def estimate_first_token_seconds(self, rate: float, requests: float) -> float:
        """Returns the time to the first token at ``rate``, with ``requests`` in the system."""
        load = min(rate / self.most_prefilled, _FULL)
        waited = float(np.interp(load, _LOADS, self._lines)) / (1.0 - load)
        # An arrival meets only the other requests (Schweitzer 1979).
        others = max(0.0, waited) * (1.0 - 1.0 / max(requests, 1.0))
        return self.front_seconds + self.own_seconds + others + self.exposed

    def count_requests(self, rate: float, requests: float) -> float:
        """Returns the requests in the system at ``rate`` (Little 1961)."""
        first = self.estimate_first_token_seconds(rate, requests)
        batch = self.find_batch(rate)
        return rate * first + self.decode.replicas * batch


def _compute_request_capacity(server: ReplicaServer, load: ReplicaLoad) -> float:
    """Returns the requests that a decode replica holds at a time."""
    places = float(server.most_requests or math.inf)
    if server.cache_tokens is not None:
        each = load.inputs.mean + 0.5 * load.outputs.mean + 0.5 * server.block_tokens
        places = min(places, server.cache_tokens / each)
    return max(1.0, min(places, 16_384.0))


def _solve_closed_rate(system: _DisaggregatedSystem, requests: float) -> float:
    """Returns the rate at which ``requests`` are in the system."""
    low, high = 0.0, _FULL * system.max_rate
    if system.count_requests(high, requests) <= requests:
        return high
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if system.count_requests(middle, requests) < requests else (low, middle)
        if high - low < _NEAR * high:
            break
    return 0.5 * (low + high)


class _OperatingPoint(NamedTuple):
    """Operating point of a system."""

    rate: float
    first_seconds: float
    """Mean time to the first token, without ``waiting_seconds``."""
    waiting_seconds: float
    """Wait of requests that neither side has room for."""
    batch: float
    line: BatchedPasses
    iteration: IterationTime
    saturated: bool


def _solve_operating_point(system: _DisaggregatedSystem) -> _OperatingPoint:
    load, asked, saturated = system.load, system.load.rate_per_second, False
    if load.concurrency is not None:
        requests = load.concurrency
        rate = _solve_closed_rate(system, requests)
    else:
        requests = math.inf
        asked = asked or 0.0
        saturated = asked >= _FULL * system.max_rate
        rate = min(asked, _FULL * system.max_rate)
    first, line = system.estimate_first_token_seconds(rate, requests), system.estimate_prefill(rate)
    batch = system.find_batch(rate)
    iteration = system.compute_iteration(batch)
    waiting = 0.0
    if load.concurrency is not None:
        held = rate * first + system.decode.replicas * batch
        waiting = max(0.0, load.concurrency - held) / rate
    elif saturated and asked is not None:
        waiting = (asked / rate - 1.0) * load.open_seconds / 2.0
    return _OperatingPoint(rate, first, waiting, batch, line, iteration, saturated)


def estimate_disaggregated(
    prefill: ReplicaPool, decode: ReplicaPool, load: ReplicaLoad, transfer: CacheTransfer
) -> DisaggregatedResult:
    """Estimates both sides together under ``load``, the load of the whole system.

    Requests that find no place wait in front: in a closed loop, those that remain by Little's law. A system
    that receives more than ``most_requests_per_second`` is saturated.
    """
    system = _DisaggregatedSystem(prefill, decode, load, transfer)
    found = _solve_operating_point(system)
    sides = DisaggregatedRates(
        system.most_prefilled,
        system.most_decoded,
        system.most_sent,
        found.line.utilization,
        found.line.batch,
        min(1.0, found.batch),
        found.batch,
        system.exposed,
        (prefill.replicas, decode.replicas),
    )
    return DisaggregatedResult(_build_served_load(system, found), sides)


_STRIDE = 89
"""Coprime to the number of samples, so that lengths do not correlate with waits."""


def _sample_outcomes(system: _DisaggregatedSystem, found: _OperatingPoint) -> RequestLatencies:
    """Samples latencies of requests, scaled from the queue, with the burst of a loop that starts cold."""
    load, line = system.load, found.line
    latencies = line.latencies
    if latencies is None:
        raise ArithmeticError("the queue grows without bound at a rate that the side reaches")
    scale = (found.first_seconds - system.exposed) / line.mean_seconds
    firsts = latencies * scale + system.exposed + found.waiting_seconds
    if load.burst_requests is not None and load.concurrency is not None:
        firsts = _add_burst_waits(system, firsts, load.concurrency, load.burst_requests)
    if not load.decodes:
        return RequestLatencies(firsts, None, firsts)
    count = len(firsts)
    shares = ((np.arange(count) * _STRIDE) % count + 0.5) / count
    behind = np.maximum(0.0, load.outputs.get_quantiles(shares) - 1.0)
    each = np.full(count, float(system.compute_token_seconds(found.iteration)))
    return RequestLatencies(firsts, each, firsts + behind * each)


def _add_burst_waits(
    system: _DisaggregatedSystem, firsts: Floats, concurrency: float, requests: float
) -> Floats:
    """Adds the waits of a cold start.

    The k-th of the first requests waits for the prompts of those before it.
    """
    count = len(firsts)
    kept = round(min(1.0, concurrency / requests) * count)
    if not kept:
        return firsts
    before = (np.arange(kept) + 0.5) / kept * concurrency
    together = before / system.most_prefilled + system.front_seconds + system.own_seconds + system.exposed
    others = firsts[np.linspace(0, count - 1, count - kept).astype(int)]
    return np.sort(np.concatenate([others, np.maximum(together, firsts[0])]))


def _build_served_load(system: _DisaggregatedSystem, found: _OperatingPoint) -> ServedLoad:
    load, prefill, decode = system.load, system.prefill, system.decode
    outcomes, line = _sample_outcomes(system, found), found.line
    prefilling = line.utilization * prefill.replicas
    decoding = min(1.0, found.batch) * decode.replicas
    each: Percentiles | None = None
    if outcomes.per_token_seconds is not None:
        each = compute_percentiles(outcomes.per_token_seconds)
    return ServedLoad(
        time_to_first_token_seconds=compute_percentiles(outcomes.first_token_seconds),
        time_per_output_token_seconds=each,
        request_seconds=compute_percentiles(outcomes.request_seconds),
        requests_per_second=found.rate,
        output_tokens_per_second=found.rate * load.outputs.mean,
        decoding=decode.replicas * found.batch,
        waiting=max(0.0, line.waiting) * prefill.replicas + found.waiting_seconds * found.rate,
        utilization=(prefilling + decoding) / (prefill.replicas + decode.replicas),
        saturated=found.saturated,
        most_requests_per_second=system.max_rate,
        preemptions_per_request=0.0,
        knee_requests=max(1.0, system.max_rate * system.alone_seconds),
        prefill_share=prefilling / (prefilling + decoding),
        iteration=found.iteration,
        outcomes=outcomes,
    )
