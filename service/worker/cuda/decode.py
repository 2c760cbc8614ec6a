"""Tokens of a small decoder, one after the other: products of cuBLASLt and own kernels, as a graph or not."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import Attention, DecodeLoop
from service.worker.benchmark import Prepared, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.attention import Decoding, decode_launch, decode_units, most_splits
from service.worker.cuda.cublaslt import Product
from service.worker.cuda.decoder import Net, Queue, in_turn
from service.worker.cuda.device import Device
from service.worker.decoder import Weights, cache_number, forward, tolerance

CHECKED_STEPS = 2
BLOCKS_EACH = 2
"""Blocks that read the cache, for each multiprocessor: enough that none waits for the last."""


class TokensInTurn:
    """Steps over weights and a cache that grows by a token each; every execution begins with the same."""

    def __init__(self, device: Device, work: DecodeLoop, seed: int, stack: ExitStack) -> None:
        self._device, self._work, self._seed = device, work, seed
        self._net = net = Net(device, work, seed, stack)
        self._capacity = work.context_tokens + work.steps
        needed = work.element_bytes * (
            work.matrix_parameters
            + work.vocabulary * work.hidden
            + 2 * work.layers * work.batch * work.kv_heads * self._capacity * work.head_size
        )
        if needed > device.free_bytes():
            raise Unsupported(f"needs {needed} bytes, {device.free_bytes()} are free")
        net.fill_weights()
        batch = work.batch
        self._words, self._ids = net.array(3, 8), net.array(batch, 4)
        self._history = net.array(batch * work.steps, 4)
        self._first = net.uploaded(net.token_ids(batch))
        self._scores = net.array(batch * work.vocabulary)
        self._begin = net.plain("first_step", self._words, self._ids, self._first, work.context_tokens, batch)
        self._begin()
        step = self._packed()
        # Once before it is captured: code that is loaded when it is first used may not be loaded meanwhile.
        step()
        device.synchronize()
        self._step = device.captured(step) if work.uses_graph else step
        self.facts = net.facts(
            own="decoder and attention", working_set_bytes=needed, uses_graph=work.uses_graph
        )

    def execute(self, iterations: int) -> int:
        """Nanoseconds of ``iterations`` times all steps; a flush comes first, and the cache is as it was."""
        return sum(self._time() for _ in range(iterations))

    def check(self) -> Correctness:
        """Scores of one sequence in the first steps against float64 of the same weights, cache, tokens."""
        net, work, limit = self._net, self._work, tolerance(self._work)
        sequence = int(numbers.random_bits(self._seed, np.array([1]))[0]) % work.batch
        steps, found = min(work.steps, CHECKED_STEPS), []
        ids = [int(net.token_ids(work.batch)[sequence])]
        self._begin()
        for step in range(steps):
            self._step()
            at = self._scores + sequence * work.vocabulary * work.element_bytes
            found.append(net.values(at, work.vocabulary))
            chosen = np.empty(1, np.uint32)
            self._device.to_host(chosen, self._history + 4 * (step * work.batch + sequence))
            ids.append(int(chosen[0]))
        passed = forward(
            work,
            Weights(work, self._seed),
            np.array(ids[:-1]),
            context=work.context_tokens,
            sequence=sequence,
            capacity=self._capacity,
        )
        scale = np.sqrt(np.mean(passed.scores**2))
        largest = float(np.abs(np.stack(found) - passed.scores).max() / scale)
        is_largest = [int(np.argmax(row)) for row in found] == ids[1:]
        largest = min(largest, 1e30) if is_largest and np.isfinite(largest) else 1e30
        return Correctness(
            method=f"scores of {steps} steps of a sequence against float64 of the same numbers, next tokens",
            largest_error=largest,
            tolerance=limit,
            passed=largest <= limit,
        )

    def _time(self) -> int:
        self._begin()
        self._device.flush()

        def work() -> None:
            for _ in range(self._work.steps):
                self._step()

        return self._device.timed(work)

    def _packed(self) -> Queue:
        """All launches of a step."""
        net, work, batch = self._net, self._work, self._work.batch
        x, y = net.array(batch * work.hidden), net.array(batch * work.hidden)
        factors = net.array(batch, 4)
        gates, fed = net.array(2 * batch * work.feed_forward), net.array(batch * work.feed_forward)
        norm = net.rows("norm", batch, y, factors, x, batch, work.hidden)
        gate = net.over("gate", batch * work.feed_forward, fed, gates, batch, work.feed_forward)
        launches = [net.over("embed", batch * work.hidden, x, net.table, self._ids, batch, work.hidden)]
        attention = self._attention(y)
        for layer in range(work.layers):
            launches += [norm, *attention(layer), self._product(f"out.{layer}", self._mixed, x, adds=True)]
            launches += [norm, self._product(f"gate_up.{layer}", y, gates), gate]
            launches.append(self._product(f"down.{layer}", fed, x, adds=True))
        launches += [norm, self._product("head", y, self._scores)]
        launches.append(
            net.rows(
                "choose", batch, self._ids, self._history, self._scores, self._words, batch, work.vocabulary
            )
        )
        launches.append(net.plain("next_step", self._words))
        return in_turn(launches)

    def _product(self, name: str, x: int, y: int, *, adds: bool = False) -> Queue:
        each = self._net.matrices[name]
        shape = Product(
            self._work.dtype, self._work.batch, each.rows, each.columns,
            alpha=each.scale, beta=1.0 if adds else 0.0,
        )  # fmt: skip
        return self._net.product(shape, x, self._net.weights[name], y)

    def _attention(self, y: int) -> Callable[[int], list[Queue]]:
        """The launches of the attention of a layer, of which the result lies in ``_mixed``."""
        net, work, batch = self._net, self._work, self._work.batch
        heads = work.query_heads * work.head_size
        qkv = net.array(batch * (work.query_heads + 2 * work.kv_heads) * work.head_size)
        q, self._mixed = net.array(batch * heads), net.array(batch * heads)
        turns = net.angles(self._capacity)
        shape = (1, self._capacity, work.query_heads, work.kv_heads, work.head_size)
        splits = _splits(self._device, work)
        sums, tops = net.array(batch * heads * splits, 4), net.array(batch * work.query_heads * splits, 8)
        counts = batch * work.kv_heads * self._capacity * work.head_size
        decoding = Decoding(
            work.dtype, work.head_size, batch, work.query_heads, work.kv_heads, self._capacity, splits
        )

        def launches(layer: int) -> list[Queue]:
            k, v = net.array(counts), net.array(counts)
            for which, address in enumerate((k, v)):
                net.fill(address, cache_number(work, layer, which), counts)
            pairs = batch * (work.query_heads + 2 * work.kv_heads) * work.head_size // 2
            return [
                self._product(f"qkv.{layer}", y, qkv),
                net.over("rotate", pairs, q, k, v, qkv, turns, self._words, batch, *shape),
                decode_launch(self._device, decoding, (q, k, v, self._mixed), (sums, tops, self._words + 8)),
            ]

        return launches


def _splits(device: Device, work: DecodeLoop) -> int:
    """Parts of the context, so that there are blocks for the whole device."""
    like = Attention(
        kind="attention", phase="decode", back_end="own", dtype=work.dtype, batch=work.batch,
        query_heads=work.query_heads, kv_heads=work.kv_heads, head_size=work.head_size,
        context_tokens=work.context_tokens,
    )  # fmt: skip
    wanted = BLOCKS_EACH * device.multiprocessors / decode_units(work.batch, work.query_heads, work.kv_heads)
    return max(min(round(wanted), most_splits(like)), 1)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[Prepared]:
    """Weights and a cache filled from the seed; raises :class:`Unsupported` where they do not fit."""
    if not isinstance(benchmark.work, DecodeLoop):
        raise Unsupported(f"{benchmark.work.kind} is not a decode loop")
    with devices.opened(index) as device, ExitStack() as stack:
        yield TokensInTurn(device, benchmark.work, seed, stack)
