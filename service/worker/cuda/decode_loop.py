"""Tokens of a small decoder, one after the other: products of cuBLASLt and own kernels, as a graph or not.

The scores of a sequence in two steps are checked against the host's, and that the largest is chosen.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import AttentionWork
from service.protocol.work.training import DecodeLoopWork
from service.worker.benchmark import PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.attention import (
    DecodeQuery,
    build_decode_launch,
    compute_most_splits,
    count_decode_units,
)
from service.worker.cuda.cublaslt import MatrixProduct
from service.worker.cuda.decoder import CudaDecoder, QueueLaunch, chain_launches
from service.worker.cuda.device import CudaDevice
from service.worker.decoder import HeldWeights, compute_tolerance, get_cache_number, run_forward

CHECKED_STEPS = 2
BLOCKS_EACH = 2
"""Blocks that read the cache, for each multiprocessor: enough that none waits for the last."""


class TokensInTurn:
    """Steps over weights and a cache that grows by a token each, from the same state in every execution."""

    def __init__(self, device: CudaDevice, work: DecodeLoopWork, seed: int, stack: ExitStack) -> None:
        self._device, self._work, self._seed = device, work, seed
        self._net = net = CudaDecoder(device, work, seed, stack)
        self._capacity = work.context_tokens + work.steps
        needed = work.element_bytes * (
            work.matrix_parameters
            + work.vocabulary * work.hidden
            + 2 * work.layers * work.batch * work.kv_heads * self._capacity * work.head_size
        )
        device.demand_room(needed)
        net.fill_weights()
        batch = work.batch
        self._words, self._ids = net.allocate_array(3, 8), net.allocate_array(batch, 4)
        self._history = net.allocate_array(batch * work.steps, 4)
        self._first = net.upload_array(net.generate_token_ids(batch))
        self._scores = net.allocate_array(batch * work.vocabulary)
        self._begin = net.build_plain_launch(
            "first_step", self._words, self._ids, self._first, work.context_tokens, batch
        )
        self._begin()
        step = self._build_step()
        # Run once before capture: code that is loaded on first use may not be loaded during it.
        step()
        device.synchronize()
        self._step = device.capture_graph(step) if work.uses_graph else step
        self.facts = net.build_facts(
            own="decoder and attention", working_set_bytes=needed, uses_graph=work.uses_graph
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` times all steps, after a flush and with the initial cache."""
        return sum(self._time_steps() for _ in range(iterations))

    def check(self) -> CorrectnessCheck:
        """Compares scores of one sequence in the first steps with those of the host, and rows of the weights.

        The host multiplies the weights that the device holds, in fp32, and computes the rest in float64.
        """
        net, work, limit = self._net, self._work, compute_tolerance(self._work)
        sequence = int(numbers.generate_bits(self._seed, np.array([1]))[0]) % work.batch
        steps, found = min(work.steps, CHECKED_STEPS), []
        ids = [int(net.generate_token_ids(work.batch)[sequence])]
        self._begin()
        for step in range(steps):
            self._step()
            at = self._scores + sequence * work.vocabulary * work.element_bytes
            found.append(net.read_values(at, work.vocabulary))
            chosen = np.empty(1, np.uint32)
            self._device.to_host(chosen, self._history + 4 * (step * work.batch + sequence))
            ids.append(int(chosen[0]))
        weights = HeldWeights(work, self._seed, net.read_weights)
        passed = run_forward(
            work,
            weights,
            np.array(ids[:-1]),
            context=work.context_tokens,
            sequence=sequence,
            capacity=self._capacity,
        )
        scale = np.sqrt(np.mean(passed.scores**2))
        largest = float(np.abs(np.stack(found) - passed.scores).max() / scale)
        is_largest = [int(np.argmax(row)) for row in found] == ids[1:]
        is_right = is_largest and not weights.count_differences() and np.isfinite(largest)
        largest = min(largest, 1e30) if is_right else 1e30
        return CorrectnessCheck(
            method=f"scores of {steps} steps of a sequence against the host's, next tokens, weights",
            largest_error=largest,
            tolerance=limit,
            passed=largest <= limit,
        )

    def _time_steps(self) -> int:
        self._begin()
        self._device.flush_cache()

        def enqueue_steps() -> None:
            for _ in range(self._work.steps):
                self._step()

        return self._device.time_work(enqueue_steps)

    def _build_step(self) -> QueueLaunch:
        """Builds all launches of a step."""
        net, work, batch = self._net, self._work, self._work.batch
        x, y = net.allocate_array(batch * work.hidden), net.allocate_array(batch * work.hidden)
        factors = net.allocate_array(batch, 4)
        gates, fed = (
            net.allocate_array(2 * batch * work.feed_forward),
            net.allocate_array(batch * work.feed_forward),
        )
        norm = net.build_row_launch("norm", batch, y, factors, x, batch, work.hidden)
        gate = net.build_element_launch(
            "gate", batch * work.feed_forward, fed, gates, batch, work.feed_forward
        )
        launches = [
            net.build_element_launch(
                "embed", batch * work.hidden, x, net.table, self._ids, batch, work.hidden
            )
        ]
        attention = self._build_attention(y)
        for layer in range(work.layers):
            launches += [
                norm,
                *attention(layer),
                self._build_product(f"out.{layer}", self._mixed, x, adds=True),
            ]
            launches += [norm, self._build_product(f"gate_up.{layer}", y, gates), gate]
            launches.append(self._build_product(f"down.{layer}", fed, x, adds=True))
        launches += [norm, self._build_product("head", y, self._scores)]
        launches.append(
            net.build_row_launch(
                "choose", batch, self._ids, self._history, self._scores, self._words, batch, work.vocabulary
            )
        )
        launches.append(net.build_plain_launch("next_step", self._words))
        return chain_launches(launches)

    def _build_product(self, name: str, x: int, y: int, *, adds: bool = False) -> QueueLaunch:
        each = self._net.matrices[name]
        shape = MatrixProduct(
            self._work.dtype, self._work.batch, each.rows, each.columns,
            alpha=each.scale, beta=1.0 if adds else 0.0,
        )  # fmt: skip
        return self._net.build_product(shape, x, self._net.weights[name], y)

    def _build_attention(self, y: int) -> Callable[[int], list[QueueLaunch]]:
        """Builds the launches of the attention of a layer, whose result is in ``_mixed``."""
        net, work, batch = self._net, self._work, self._work.batch
        heads = work.query_heads * work.head_size
        qkv = net.allocate_array(batch * (work.query_heads + 2 * work.kv_heads) * work.head_size)
        q, self._mixed = net.allocate_array(batch * heads), net.allocate_array(batch * heads)
        turns = net.upload_angles(self._capacity)
        shape = (1, self._capacity, work.query_heads, work.kv_heads, work.head_size)
        splits = _compute_splits(self._device, work)
        sums, tops = (
            net.allocate_array(batch * heads * splits, 4),
            net.allocate_array(batch * work.query_heads * splits, 8),
        )
        counts = batch * work.kv_heads * self._capacity * work.head_size
        decoding = DecodeQuery(
            work.dtype, work.head_size, batch, work.query_heads, work.kv_heads, self._capacity, splits
        )

        def build_launches(layer: int) -> list[QueueLaunch]:
            k, v = net.allocate_array(counts), net.allocate_array(counts)
            for which, address in enumerate((k, v)):
                net.fill_array(address, get_cache_number(work, layer, which), counts)
            pairs = batch * (work.query_heads + 2 * work.kv_heads) * work.head_size // 2
            return [
                self._build_product(f"qkv.{layer}", y, qkv),
                net.build_element_launch("rotate", pairs, q, k, v, qkv, turns, self._words, batch, *shape),
                build_decode_launch(
                    self._device, decoding, (q, k, v, self._mixed), (sums, tops, self._words + 8)
                ),
            ]

        return build_launches


def _compute_splits(device: CudaDevice, work: DecodeLoopWork) -> int:
    """Computes the parts of the context, so that blocks fill the whole device."""
    like = AttentionWork(
        kind="attention", phase="decode", back_end="own", dtype=work.dtype, batch=work.batch,
        query_heads=work.query_heads, kv_heads=work.kv_heads, head_size=work.head_size,
        context_tokens=work.context_tokens,
    )  # fmt: skip
    wanted = (
        BLOCKS_EACH * device.multiprocessors / count_decode_units(work.batch, work.query_heads, work.kv_heads)
    )
    return max(min(round(wanted), compute_most_splits(like)), 1)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares weights and a cache from the seed; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, DecodeLoopWork):
        raise Unsupported(f"{benchmark.work.kind} is not a decode loop")
    with devices.open_device(index) as device, ExitStack() as stack:
        yield TokensInTurn(device, benchmark.work, seed, stack)
