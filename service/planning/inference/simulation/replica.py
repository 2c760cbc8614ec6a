"""One replica, iteration by iteration.

The scheduler is that of continuous batching (Orca, Yu et al. 2022; vLLM, Kwon et al. 2023): each iteration
decodes all requests that hold a place; prompts are taken in order of arrival within the limits of the
iteration's tokens, the places and the cache; when the cache is full, the latest request gives up its place
and has its context recomputed. Between arrivals, ends and prompts only the context changes, by the same
number of tokens in each iteration, so that k of them take

    k (a + s C) + s d k (k - 1) / 2

seconds, where a + s C is one iteration with C cached tokens and d are the tokens added.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable

import numpy as np

from service.planning.inference.curve import compute_request_capacity
from service.planning.inference.load import (
    BatchScheduler,
    ReplicaLoad,
    ReplicaServer,
)
from service.planning.inference.simulation.requests import SimulatedRequests
from service.planning.inference.table import IterationTable

_NEVER = math.inf


class SimulatedReplica:
    """State of one replica; ``run`` continues until every counted request has ended."""

    def __init__(
        self, table: IterationTable, server: ReplicaServer, load: ReplicaLoad, asked: SimulatedRequests
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

    def _compute_committed_tokens(self, shape: int) -> float:
        """Returns the tokens of cache that a request of this shape is promised."""
        reserved = self.server.reserved_output * self.asked.outputs[shape]
        return self.asked.inputs[shape] + self.overhang + reserved

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
        self.committed += self._compute_committed_tokens(shape)
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
        self._enter_batch(request, context + self.per_pass, self.iteration + passes)

    def _enter_batch(self, request: int, context: float, end: int) -> None:
        """Lets a request decode until iteration ``end``."""
        self.decoding += 1
        self.cached += context
        self.end_of[request] = end
        heapq.heappush(self.ends, (end, request))
        if self.room != _NEVER:
            self.newest.append(request)

    def _compute_context(self, request: int, left: int) -> float:
        shape = self._get_shape_index(request)
        done = self.asked.passes[shape] - left
        return self.asked.inputs[shape] + (done + 1) * self.per_pass

    def _finish_request(self, request: int) -> None:
        self.ended[request] = self.now
        self.committed -= self._compute_committed_tokens(self._get_shape_index(request))
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
            self.committed -= self._compute_committed_tokens(self._get_shape_index(request))
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
        self.admitted[request] = self.first[request] = 0.0
        self.committed += self._compute_committed_tokens(self._get_shape_index(request))
        self._enter_batch(request, self._compute_context(request, left), left)
