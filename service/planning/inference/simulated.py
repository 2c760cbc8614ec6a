"""Discrete-event simulation of a server over the iteration model, iteration by iteration.

The scheduler is that of continuous batching (Orca, Yu et al. 2022; vLLM, Kwon et al. 2023): each iteration
decodes all requests that hold a place; prompts are taken in order of arrival within the limits of the
iteration's tokens, the places and the cache; when the cache is full, the latest request gives up its place
and has its context recomputed. Between arrivals, ends and prompts only the context changes, by the same
number of tokens in each iteration, so that k of them take

    k (a + s C) + s d k (k - 1) / 2

seconds, where a + s C is one iteration with C cached tokens and d are the tokens added. Random numbers come
from the seed alone.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.curve import (
    average_iterations,
    compute_iteration_times,
    compute_load_moments,
    compute_request_capacity,
)
from service.planning.inference.iteration import IterationTime
from service.planning.inference.load import (
    ArrivalProcess,
    BatchScheduler,
    ReplicaLoad,
    ReplicaServer,
    RequestLatencies,
    ServedLoad,
    compute_percentiles,
)
from service.planning.inference.serving import (
    combine_groups,
    count_active_groups,
    estimate_served_load,
    split_group,
)
from service.planning.inference.speculation import IterationSource, SpeculativeIterations
from service.planning.inference.table import IterationTable

_NEVER = math.inf
_WARM_SHARE = 0.1
"""Share of the requests of an open loop that are not counted: the server is still filling."""


class SimulatedRun(NamedTuple):
    """Events of a run: one entry for each request that was sent, in order.

    NaN for an event that did not occur.
    """

    sent_seconds: NDArray[np.float64]
    admitted_seconds: NDArray[np.float64]
    first_token_seconds: NDArray[np.float64]
    ended_seconds: NDArray[np.float64]
    output_tokens: NDArray[np.float64]
    prompt_tokens: NDArray[np.float64]
    """Prompt tokens to compute."""
    passes: NDArray[np.float64]
    """Decoding iterations of each request."""
    seconds: float
    """Time at which the run ended."""
    computed_tokens: float
    """Prompt tokens that were computed, including those recomputed after a preemption."""
    repeated_tokens: float
    """Prompt tokens that were recomputed."""
    decoded_tokens: float
    preemptions: int
    decode_iterations: int
    prompt_iterations: int
    busy_seconds: float
    prompt_seconds: float
    """Seconds that prompts added to their iterations."""
    decoding_request_seconds: float
    """Time integral of the number of decoding requests."""
    warm: int
    counted: int
    """Requests from ``warm`` to ``counted`` are measured."""


class _SimulatedRequests(NamedTuple):
    """Requests of a run: those after ``warm`` and before ``counted`` are measured."""

    inputs: list[float]
    passes: list[int]
    """Decoding iterations of each request."""
    outputs: list[float]
    arrivals: list[float]
    """Arrival times of an open loop."""
    warm: int
    counted: int
    ends: bool
    """True if no further requests follow the counted ones."""


class _SimulatedReplica:
    """State of one replica; ``run`` continues until every counted request has ended."""

    def __init__(
        self, table: IterationTable, server: ReplicaServer, load: ReplicaLoad, asked: _SimulatedRequests
    ) -> None:
        self.table, self.server, self.load, self.asked = table, server, load, asked
        speculation = server.speculation
        self.per_pass = speculation.tokens_per_pass if speculation else 1.0
        self.positions = speculation.positions if speculation else 1.0
        static = server.scheduler is BatchScheduler.STATIC
        self.places = compute_request_capacity(
            server._replace(reserved_output=1.0) if static else server._replace(cache_tokens=None), load
        )
        self.room = _NEVER if server.cache_tokens is None else server.cache_tokens
        self.overhang = server.block_tokens / 2.0
        self.now = 0.0
        self.iteration = 0
        self.decoding = 0
        self.cached = 0.0
        self.ends: list[tuple[int, int]] = []
        self.end_of: dict[int, int] = {}
        self.newest: list[int] = []
        self.waiting: deque[int] = deque()
        self.coming: deque[tuple[float, int]] = deque()
        self.partial: tuple[int, float, float] | None = None
        """A request, its remaining prompt tokens, and the tokens before them."""
        self.prompt_held = 0.0
        self.committed = 0.0
        self.again: dict[int, tuple[float, int]] = {}
        """Context to recompute and remaining iterations, by preempted request."""
        self.sent: list[float] = []
        self.admitted: list[float] = []
        self.first: list[float] = []
        self.ended: list[float] = []
        self.left = asked.counted - asked.warm
        self.next_arrival = asked.arrivals[0] if asked.arrivals else _NEVER
        self.busy = self.prompt_seconds = self.request_seconds = 0.0
        self.computed = self.repeated = self.decoded = 0.0
        self.preemptions = self.prompt_iterations = self.decode_iterations = 0

    def run(self, between: Callable[[], object]) -> None:
        """Runs until the counted requests have ended."""
        static = self.server.scheduler is BatchScheduler.STATIC
        while self.left > 0:
            between()
            self._receive_arrivals()
            if static and self.waiting:
                self._run_static_batch()
            elif self.partial is not None or (self.waiting and self._has_room(self.waiting[0])):
                self._run_prompt_iteration()
            elif self.decoding:
                self._run_decode_iterations()
            else:
                self.now = self.coming[0][0] if self.coming else self.next_arrival

    def send_request(self, at: float) -> int:
        """Sends a request; the scheduler receives it after the time of the front end."""
        request = len(self.sent)
        self.sent.append(at)
        self.admitted.append(math.nan)
        self.first.append(math.nan)
        self.ended.append(math.nan)
        return request

    def _receive_arrivals(self) -> None:
        while self.next_arrival <= self.now:
            request = self.send_request(self.next_arrival - self.server.frontend_seconds)
            self.waiting.append(request)
            arrivals = self.asked.arrivals
            self.next_arrival = arrivals[request + 1] if request + 1 < len(arrivals) else _NEVER
        while self.coming and self.coming[0][0] <= self.now:
            self.waiting.append(self.coming.popleft()[1])

    def _get_shape_index(self, request: int) -> int:
        return request % len(self.asked.inputs)

    def _has_room(self, request: int) -> bool:
        if self.decoding + (self.partial is not None) + 1 > self.places:
            return False
        if self.room == _NEVER or (not self.decoding and self.prompt_held < 1.0):
            return True
        again = self.again.get(request)
        shape = self._get_shape_index(request)
        need = (again[0] if again else self.asked.inputs[shape]) + self.overhang
        reserved = self.server.reserved_output * self.asked.outputs[shape]
        used = self.cached + self.prompt_held + self.decoding * self.overhang
        return used + need <= self.room and self.committed + need + reserved <= self.room

    def _admit_request(self) -> tuple[int, float, float]:
        request = self.waiting.popleft()
        shape = self._get_shape_index(request)
        again = self.again.get(request)
        inputs = self.asked.inputs[shape]
        whole = again[0] if again else inputs
        before = inputs * self.load.prefix_hit_rate
        self.prompt_held += whole + self.overhang
        self.committed += inputs + self.overhang + self.server.reserved_output * self.asked.outputs[shape]
        if again is None:
            self.admitted[request] = self.now
        before = min(before, whole - 1.0)
        return request, whole - before, before

    def _run_prompt_iteration(self) -> None:
        """Runs one iteration that computes prompts, and decodes too where the engine mixes them."""
        tokens, attended, finished = self._take_prompt_tokens()
        decoding = 0
        if self.server.mixed_prefill and self.decoding:
            self._free_capacity(1)
            decoding = self.decoding
        base, slope = self.table.compute_decode_seconds(decoding)
        alone = base + slope * self.cached if decoding else 0.0
        # The ranks with fewer prompts wait for those with more.
        ranks = self.server.ranks
        share = ranks * math.ceil(max(len(finished), 1) / ranks) / max(len(finished), 1) if ranks > 1 else 1.0
        added = self.table.compute_prompt_seconds(decoding, tokens * share, attended * share) + (
            0.0 if decoding else base
        )
        self._advance_time(alone + added, added)
        self.computed += tokens
        self.prompt_iterations += 1
        if decoding:
            self._record_decoded_tokens(1)
        for request in finished:
            self._start_request(request)
        self._end_requests()

    def _take_prompt_tokens(self) -> tuple[float, float, list[int]]:
        """Returns an iteration's prompt tokens, the tokens that they attend to in sum, and ended prompts."""
        server = self.server
        budget = float(server.batched_tokens)
        if server.mixed_prefill and server.chunked_prefill:
            budget = max(budget - self.decoding * self.positions, float(server.block_tokens * server.ranks))
        tokens = attended = 0.0
        finished: list[int] = []
        while budget > 0.0:
            if self.partial is None:
                full = self.decoding + len(finished) + 1 > self.places
                if full or not self.waiting or not self._has_room(self.waiting[0]):
                    break
                self.partial = self._admit_request()
            request, remaining, before = self.partial
            if not server.chunked_prefill and tokens and remaining > budget:
                break
            piece = min(remaining, budget) if server.chunked_prefill else remaining
            tokens += piece
            budget -= piece
            attended += piece * (before + piece / 2.0)
            if piece < remaining:
                self.partial = (request, remaining - piece, before + piece)
                break
            self.partial = None
            finished.append(request)
        return tokens, attended, finished

    def _advance_time(self, seconds: float, prompts: float) -> None:
        self.now += seconds
        self.busy += seconds
        self.prompt_seconds += prompts
        self.request_seconds += seconds * self.decoding

    def _record_decoded_tokens(self, iterations: int) -> None:
        self.iteration += iterations
        self.decode_iterations += iterations
        further = iterations * self.decoding * self.per_pass
        self.cached += further
        self.decoded += further

    def _start_request(self, request: int) -> None:
        """Starts a request whose prompt is computed, and with it its first or next token."""
        shape = self._get_shape_index(request)
        again = self.again.pop(request, None)
        inputs = self.asked.inputs[shape]
        if again is None:
            self.first[request] = self.now
            context, passes = inputs, self.asked.passes[shape]
        else:
            context, passes = again[0], again[1] - 1
            self.repeated += context - min(inputs * self.load.prefix_hit_rate, context - 1.0)
        self.prompt_held -= context + self.overhang
        if passes <= 0:
            self._finish_request(request)
            return
        self.decoding += 1
        self.cached += context + self.per_pass
        end = self.iteration + passes
        self.end_of[request] = end
        heapq.heappush(self.ends, (end, request))
        if self.room != _NEVER:
            self.newest.append(request)

    def _compute_context(self, request: int, left: int) -> float:
        shape = self._get_shape_index(request)
        done = self.asked.passes[shape] - left
        return self.asked.inputs[shape] + (done + 1) * self.per_pass

    def _finish_request(self, request: int) -> None:
        shape = self._get_shape_index(request)
        self.ended[request] = self.now
        self.committed -= (
            self.asked.inputs[shape] + self.overhang + self.server.reserved_output * self.asked.outputs[shape]
        )
        if self.asked.warm <= request < self.asked.counted:
            self.left -= 1
        if self.load.concurrency is not None and not (
            self.asked.ends and len(self.sent) >= self.asked.counted
        ):
            self.coming.append((self.now + self.server.frontend_seconds, self.send_request(self.now)))

    def _end_requests(self) -> None:
        ends, iteration = self.ends, self.iteration
        while ends and ends[0][0] <= iteration:
            end, request = heapq.heappop(ends)
            if self.end_of.get(request) != end:
                continue
            del self.end_of[request]
            self.decoding -= 1
            self.cached -= self._compute_context(request, 0)
            self._finish_request(request)

    def _free_capacity(self, iterations: int) -> bool:
        """Returns true if ``iterations`` find room; for a single one, requests are preempted."""
        if self.room == _NEVER:
            return True
        while True:
            used = self.cached + self.prompt_held + self.decoding * self.overhang
            if used + iterations * self.decoding * self.per_pass <= self.room or self.decoding <= 1:
                return True
            if iterations > 1:
                return False
            self._preempt_request()

    def _preempt_request(self) -> None:
        while self.newest:
            request = self.newest.pop()
            end = self.end_of.pop(request, None)
            if end is None:
                continue
            left = end - self.iteration
            context = self._compute_context(request, left)
            self.decoding -= 1
            self.cached -= context
            shape = self._get_shape_index(request)
            reserved = self.server.reserved_output * self.asked.outputs[shape]
            self.committed -= self.asked.inputs[shape] + self.overhang + reserved
            self.again[request] = (context, left)
            self.waiting.appendleft(request)
            self.preemptions += 1
            return

    def _run_decode_iterations(self) -> None:
        """Runs iterations until a request ends or arrives, or the cache is full."""
        ends = self.ends
        while self.end_of.get(ends[0][1]) != ends[0][0]:
            heapq.heappop(ends)
        iterations = ends[0][0] - self.iteration
        if not self._free_capacity(iterations):
            used = self.cached + self.prompt_held + self.decoding * self.overhang
            iterations = int((self.room - used) / (self.decoding * self.per_pass))
            if iterations < 1:
                self._free_capacity(1)
                iterations = 1
        base, slope = self.table.compute_decode_seconds(self.decoding)
        growth = slope * self.decoding * self.per_pass / 2.0
        one = base + slope * self.cached
        coming = min(self.next_arrival, self.coming[0][0] if self.coming else _NEVER)
        if coming < _NEVER and not self.waiting and self.decoding < self.places:
            wait = coming - self.now
            linear = one - growth
            root = math.sqrt(linear * linear + 4.0 * growth * wait)
            needed = math.ceil(2.0 * wait / (linear + root))
            iterations = max(1, min(iterations, needed))
        self._advance_time(iterations * one + growth * iterations * (iterations - 1), 0.0)
        self._record_decoded_tokens(iterations)
        self._end_requests()

    def _run_static_batch(self) -> None:
        """Runs a static batch: prompts first, then iterations over all of it until the longest has ended."""
        requests: list[int] = []
        while self.waiting and len(requests) + 1 <= self.places:
            request = self.waiting.popleft()
            self.admitted[request] = self.now
            requests.append(request)
        shapes = [self._get_shape_index(request) for request in requests]
        inputs = [self.asked.inputs[shape] for shape in shapes]
        computed = [max(1.0, tokens * (1.0 - self.load.prefix_hit_rate)) for tokens in inputs]
        attended = sum(c * (i - c / 2.0) for i, c in zip(inputs, computed, strict=True))
        tokens, most = sum(computed), max(computed)
        pieces = max(1.0, tokens / max(self.server.batched_tokens, most))
        base = self.table.compute_decode_seconds(0)[0]
        prompts = pieces * (base + self.table.compute_prompt_seconds(0, tokens / pieces, attended / pieces))
        self._advance_time(prompts, prompts)
        self.computed += tokens
        self.prompt_iterations += math.ceil(pieces)
        begin, size = self.now, len(requests)
        base, slope = self.table.compute_decode_seconds(size)
        one = base + slope * (sum(inputs) + size * self.per_pass)
        growth = slope * size * self.per_pass / 2.0
        longest = max(self.asked.passes[shape] for shape in shapes)
        self.decode_iterations += longest
        self.busy += longest * one + growth * longest * (longest - 1)
        for request, shape in sorted(
            zip(requests, shapes, strict=True), key=lambda p: self.asked.passes[p[1]]
        ):
            passes = self.asked.passes[shape]
            self.first[request] = begin
            self.now = begin + passes * one + growth * passes * (passes - 1)
            self.decoded += passes * self.per_pass
            self.request_seconds += self.now - begin
            self._finish_request(request)

    def begin_mid_run(self, requests: int, random: np.random.Generator) -> None:
        """Starts a closed loop in its steady state, in which long requests are more likely to be decoding."""
        passes = np.asarray(self.asked.passes, dtype=np.float64)
        likely = passes / passes.sum() if passes.sum() else None
        shapes = random.choice(len(passes), size=requests, p=likely)
        shares = random.random(requests)
        for shape, share in zip(shapes.tolist(), shares.tolist(), strict=True):
            # The request replaces, in the lists, the one whose lengths it has.
            request = self.send_request(0.0)
            self.asked.inputs[request] = self.asked.inputs[shape]
            self.asked.passes[request] = self.asked.passes[shape]
            self.asked.outputs[request] = self.asked.outputs[shape]
            left = math.ceil(share * self.asked.passes[request])
            if left and self.decoding < self.places and self._has_room(request):
                self._begin_request(request, left)
            else:
                self.waiting.append(request)

    def _begin_request(self, request: int, left: int) -> None:
        shape = self._get_shape_index(request)
        self.admitted[request] = self.first[request] = 0.0
        self.committed += (
            self.asked.inputs[shape] + self.overhang + self.server.reserved_output * self.asked.outputs[shape]
        )
        self.decoding += 1
        self.cached += self._compute_context(request, left)
        self.end_of[request] = left
        heapq.heappush(self.ends, (left, request))
        if self.room != _NEVER:
            self.newest.append(request)


def _sample_requests(
    server: ReplicaServer, load: ReplicaLoad, random: np.random.Generator, requests: int
) -> _SimulatedRequests:
    """Draws lengths and arrivals at random; ``requests`` of them are counted."""
    closed, cold = load.concurrency is not None, load.burst_requests is not None
    trace = load.arrivals.process is ArrivalProcess.TRACE and not closed
    warm = 0
    if closed and not cold:
        warm = 2 * math.ceil(load.concurrency or 0.0)
    elif not closed and not trace:
        warm = int(_WARM_SHARE * requests)
    counted = warm + requests
    drawn = counted if cold or trace else counted + requests // 4 + 100
    outputs = np.floor(
        _sample_values(load.outputs.values, load.outputs.weights, random, drawn) + random.random(drawn)
    )
    per_pass = server.speculation.tokens_per_pass if server.speculation else 1.0
    passes = np.floor(np.maximum(outputs - 1.0, 0.0) / per_pass + random.random(drawn) * (per_pass != 1.0))
    return _SimulatedRequests(
        _sample_values(load.inputs.values, load.inputs.weights, random, drawn).tolist(),
        passes.astype(np.int64).tolist(),
        outputs.tolist(),
        [] if closed else _sample_arrivals(server, load, random, drawn),
        warm,
        counted,
        cold or trace,
    )


def _sample_values(
    values: tuple[float, ...], weights: tuple[float, ...], random: np.random.Generator, count: int
) -> NDArray[np.float64]:
    if len(values) == 1:
        return np.full(count, values[0])
    return np.asarray(random.choice(values, size=count, p=weights), dtype=np.float64)


def _sample_arrivals(
    server: ReplicaServer, load: ReplicaLoad, random: np.random.Generator, count: int
) -> list[float]:
    """Returns the times at which the scheduler receives requests of an open loop."""
    if load.arrivals.process is ArrivalProcess.TRACE:
        times = np.asarray(load.arrivals.at_seconds)
        return cast("list[float]", (times - times[0] + server.frontend_seconds).tolist())
    mean = 1.0 / (load.rate_per_second or 1.0)
    gaps = (
        random.exponential(mean, count)
        if load.arrivals.process is ArrivalProcess.POISSON
        else np.full(count, mean)
    )
    return cast("list[float]", (np.cumsum(gaps) + server.frontend_seconds).tolist())


def simulate_served_load(
    model: IterationSource,
    server: ReplicaServer,
    load: ReplicaLoad,
    *,
    seed: int,
    duration_seconds: float | None = None,
    requests: int | None = None,
    between: Callable[[], object] = object,
) -> ServedLoad:
    """Returns the figures of ``estimate_served_load`` from a simulation of each request.

    Counted are ``requests``, or those of ``duration_seconds`` at the requested or reached rate; of a burst
    and of a trace all. Saturation, the highest rate and the knee are those of ``estimate_served_load``. Of a
    pipeline one group is simulated. ``between`` is called between iterations of the engine, so that it can
    end a simulation by raising.

    Raises:
        ValueError: Neither or both of a duration and a number are given, or of concurrency and rate.
    """
    if (duration_seconds is None) == (requests is None):
        raise ValueError("give either a duration or a number of requests")
    expected = estimate_served_load(model, server, load)
    groups, stages = count_active_groups(server, load), float(server.pipeline)
    if server.pipeline > 1:
        server, load = split_group(server, load, groups)
    if requests is not None:
        counted = max(1, round(requests / groups))
    else:
        rate = load.rate_per_second or expected.requests_per_second / groups
        counted = max(1, math.ceil((duration_seconds or 0.0) * rate))
    if load.burst_requests is not None:
        counted = math.ceil(load.burst_requests)
    if load.concurrency is None and load.arrivals.process is ArrivalProcess.TRACE:
        counted = min(counted, len(load.arrivals.at_seconds))
    done = simulate_requests(model, server, load, seed=seed, requests=counted, between=between)
    one = _summarize_run(model, server, load, done, combine_groups(expected, 1.0 / groups, 1.0 / stages))
    return combine_groups(one, groups, stages)


def _summarize_run(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, done: SimulatedRun, expected: ServedLoad
) -> ServedLoad:
    counted = slice(done.warm, done.counted)
    sent, first, ended = (
        times[counted] for times in (done.sent_seconds, done.first_token_seconds, done.ended_seconds)
    )
    tokens = done.output_tokens[counted]
    behind = np.maximum(tokens - 1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(behind > 0.0, (ended - first) / behind, np.nan)
    decodes = bool((behind > 0.0).any())
    rate, output_rate = _compute_rates(done)
    waited = done.admitted_seconds[counted] - sent - server.frontend_seconds
    iteration = _compute_mean_pass(model, server, load, done)
    return expected._replace(
        time_to_first_token_seconds=compute_percentiles(first - sent),
        time_per_output_token_seconds=compute_percentiles(each) if decodes else None,
        request_seconds=compute_percentiles(ended - sent),
        requests_per_second=rate,
        output_tokens_per_second=output_rate,
        decoding=done.decoding_request_seconds / done.seconds,
        waiting=rate * float(np.maximum(waited, 0.0).mean()),
        utilization=done.busy_seconds / done.seconds,
        preemptions_per_request=done.preemptions / len(done.sent_seconds),
        prefill_share=done.prompt_seconds / done.busy_seconds,
        iteration=iteration,
        outcomes=RequestLatencies(first - sent, each if decodes else None, ended - sent),
    )


def _compute_rates(done: SimulatedRun) -> tuple[float, float]:
    """Returns requests and output tokens per second.

    Of a run that ends, or while counted requests are sent.
    """
    if done.warm == 0 and done.counted == len(done.sent_seconds):
        lasting = float(done.ended_seconds.max() - done.sent_seconds.min())
        return len(done.sent_seconds) / lasting, float(done.output_tokens.sum()) / lasting
    begin, end = done.sent_seconds[done.warm], done.sent_seconds[done.counted - 1]
    if end <= begin:
        begin, end = 0.0, done.seconds
    within = (done.ended_seconds > begin) & (done.ended_seconds <= end)
    lasting = float(end - begin)
    return float(within.sum()) / lasting, float(done.output_tokens[within].sum()) / lasting


def _compute_mean_pass(
    model: IterationSource, server: ReplicaServer, load: ReplicaLoad, done: SimulatedRun
) -> IterationTime:
    """Returns the mean iteration: at the mean batch, with the mean prompt tokens where there are some."""
    if server.speculation:
        model = SpeculativeIterations(model, server.speculation)
    asked = compute_load_moments(server, load)
    batch = done.decoded_tokens / max(done.decode_iterations, 1) * asked.passes / max(asked.decodes, 1e-9)
    tokens = done.computed_tokens / max(done.prompt_iterations, 1)
    beside = batch if server.mixed_prefill else 0.0
    times = compute_iteration_times(model, asked, np.asarray([batch, beside]), np.asarray([0.0, tokens]))
    alone = (
        max(done.decode_iterations - done.prompt_iterations, 0)
        if server.mixed_prefill
        else done.decode_iterations
    )
    return average_iterations(times, 0, 1, done.prompt_iterations / max(alone + done.prompt_iterations, 1))


def simulate_requests(
    model: IterationSource,
    server: ReplicaServer,
    load: ReplicaLoad,
    *,
    seed: int,
    requests: int,
    between: Callable[[], object] = object,
) -> SimulatedRun:
    """Simulates every request of one replica, without pipeline, in seconds and tokens."""
    if server.speculation:
        model = SpeculativeIterations(model, server.speculation)
    random = np.random.default_rng(seed)
    asked = _sample_requests(server, load, random, requests)
    longest = max(asked.inputs) if not server.chunked_prefill else 0.0
    table = IterationTable(model, load, max(float(server.batched_tokens), longest))
    engine = _SimulatedReplica(table, server, load, asked)
    static = server.scheduler is BatchScheduler.STATIC
    if load.concurrency is not None:
        at_once = math.ceil(load.concurrency)
        if load.burst_requests is None and not static:
            engine.begin_mid_run(at_once, random)
        else:
            cold = server.cold_seconds if load.burst_requests is not None else 0.0
            for _ in range(min(at_once, asked.counted)):
                engine.coming.append((server.frontend_seconds + cold, engine.send_request(0.0)))
    engine.run(between)
    return _build_run(engine, asked)


def _build_run(engine: _SimulatedReplica, asked: _SimulatedRequests) -> SimulatedRun:
    sent = len(engine.sent)
    shapes = np.arange(sent) % len(asked.inputs)
    hits = 1.0 - engine.load.prefix_hit_rate
    return SimulatedRun(
        sent_seconds=np.asarray(engine.sent),
        admitted_seconds=np.asarray(engine.admitted),
        first_token_seconds=np.asarray(engine.first),
        ended_seconds=np.asarray(engine.ended),
        output_tokens=np.asarray(asked.outputs)[shapes],
        prompt_tokens=np.maximum(1.0, np.asarray(asked.inputs)[shapes] * hits),
        passes=np.asarray(asked.passes, dtype=np.float64)[shapes],
        seconds=engine.now,
        computed_tokens=engine.computed,
        repeated_tokens=engine.repeated,
        decoded_tokens=engine.decoded,
        preemptions=engine.preemptions,
        decode_iterations=engine.decode_iterations,
        prompt_iterations=engine.prompt_iterations,
        busy_seconds=engine.busy,
        prompt_seconds=engine.prompt_seconds,
        decoding_request_seconds=engine.request_seconds,
        warm=asked.warm,
        counted=asked.counted,
    )
