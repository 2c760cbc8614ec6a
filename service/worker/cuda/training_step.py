"""A whole training step of a small decoder: forward, backward, accumulation and AdamW, without a framework.

Attention keeps its weights (one for each query and key), so that all products are cuBLASLt's; the rest is
done by own kernels. Gradients and the states of the optimizer are fp32. The table of tokens is not trained.
Loss and rows of every gradient and update, of the first 16 tokens alone, are checked against the host's.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.training import TrainingStepWork
from service.worker.benchmark import PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.cublaslt import MatrixProduct
from service.worker.cuda.decoder import CudaDecoder, QueueLaunch, chain_launches
from service.worker.cuda.device import CudaDevice
from service.worker.decoder import (
    HeldWeights,
    SeededWeights,
    compute_entropy,
    compute_gradient_rows,
    compute_tolerance,
    run_backward,
    run_forward,
)

CHECKED_TOKENS = 16
CHECKED_ROWS = 4
OPTIMIZER_WIDTH = 16
"""Bytes of a parameter besides its weight: gradient, master weight and two moments of 4 bytes."""


@dataclass(frozen=True, slots=True)
class LayerBuffers:
    """Activations of a layer that the backward pass needs, by address."""

    middle: int
    a: int
    b: int
    factors_a: int
    factors_b: int
    q: int
    k: int
    v: int
    p: int
    mixed: int
    gates: int
    fed: int


class StepTimed:
    """Training steps on the same sequences, with weights that follow their gradients."""

    def __init__(self, device: CudaDevice, work: TrainingStepWork, seed: int, stack: ExitStack) -> None:
        self._device, self._work, self._seed = device, work, seed
        self._net = net = CudaDecoder(device, work, seed, stack)
        self._rows = work.sequence_length * work.micro_batch_size
        needed = _compute_needed_bytes(work)
        device.demand_room(needed)
        net.fill_weights()
        sides = {name: each.rows * each.columns for name, each in net.matrices.items()}
        self._gradients = {name: net.allocate_array(size, 4) for name, size in sides.items()}
        self._states = {name: [net.allocate_array(size, 4) for _ in range(3)] for name, size in sides.items()}
        self._start, self._steps = net.upload_array(np.zeros(1, np.uint64)), net.allocate_array(3, 8)
        self._ids, self._targets = self._upload_batches()
        self._losses = net.allocate_array(self._rows, 4)
        self._reset_state()
        parts = _MicroBatchBuffers(net, work, self._start)
        counted = self._rows * work.accumulation_steps
        # The first micro-batch writes its gradients, the others add theirs.
        self._micro_batches = [
            parts.build_micro_batch(
                ids, targets, self._losses, self._gradients, adds=bool(place), counted=self._rows, of=counted
            )
            for place, (ids, targets) in enumerate(zip(self._ids, self._targets, strict=True))
        ]
        self._checked = checked = min(CHECKED_TOKENS, work.sequence_length)
        self._prefix = parts.build_micro_batch(
            self._ids[0],
            self._targets[0],
            self._losses,
            self._gradients,
            adds=False,
            counted=checked,
            of=checked,
        )
        self._update = chain_launches(
            [net.build_plain_launch("next_step", self._steps), *[self._build_update(name) for name in sides]]
        )
        self.facts = net.build_facts(own="decoder", working_set_bytes=needed, uses_graph=False)

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` steps after a flush."""

        def enqueue_steps() -> None:
            for _ in range(iterations):
                for micro_batch in self._micro_batches:
                    micro_batch()
                self._update()

        self._device.flush_cache()
        return self._device.time_work(enqueue_steps)

    def check(self) -> CorrectnessCheck:
        """Compares loss, gradients and update of the first tokens of a sequence with those of the host.

        The host multiplies the weights that the device holds, of which rows are compared with the seed, in
        fp32, and computes the rest in float64.

        Only these tokens count in the loss. Later tokens and other sequences go through all kernels, but must
        not affect it. Rows of the gradient of every matrix are compared, over the root mean square of each
        row's matrix, and the update with that of the device's own gradient, which alone determines its sign.
        """
        work, limit = self._work, compute_tolerance(self._work)
        self._reset_state()
        self._prefix()
        ids = self._net.generate_token_ids(self._checked + 1)
        weights = HeldWeights(work, self._seed, self._net.read_weights)
        differ = weights.count_differences()
        passed = run_forward(work, weights, ids[:-1])
        losses, gradient = compute_entropy(passed.scores, ids[1:])
        run_backward(work, weights, passed, gradient)
        found = np.empty(self._checked, np.float32)
        self._device.to_host(found, self._losses)
        scale = float(np.sqrt(np.mean((passed.scores - passed.scores.mean()) ** 2)))
        errors = [float(np.abs(found - losses).max()) / scale]
        rows = {name: self._select_rows(each.rows) for name, each in self._net.matrices.items()}
        before = {name: self._read_gradient_rows(name, rows[name]) for name in rows}
        for name, chosen in rows.items():
            expected = compute_gradient_rows(weights, passed, name, chosen)
            size = np.sqrt(np.mean(expected**2)) or 1e-300
            errors.append(float(np.abs(before[name] - expected).max() / size))
        # The backward pass takes twice as long as the forward pass.
        limit *= 2
        self._update()
        errors += [
            self._compute_update_error(weights, name, rows[name], before[name]) * limit for name in rows
        ]
        largest = float(np.max(errors))
        largest = min(largest, 1e30) if np.isfinite(largest) and not differ else 1e30
        return CorrectnessCheck(
            method=f"loss, {CHECKED_ROWS} rows of gradients and updates, {self._checked} tokens, weights",
            largest_error=largest,
            tolerance=limit,
            passed=largest <= limit,
        )

    def _upload_batches(self) -> tuple[list[int], list[int]]:
        """Returns the addresses of the token ids of each micro-batch, and of the next tokens."""
        work, net = self._work, self._net
        length = work.sequence_length + 1
        whole = net.generate_token_ids(work.accumulation_steps * work.micro_batch_size * length)
        shaped = whole.reshape(work.accumulation_steps, work.micro_batch_size, length)
        return [net.upload_array(each[:, :-1]) for each in shaped], [
            net.upload_array(each[:, 1:]) for each in shaped
        ]

    def _reset_state(self) -> None:
        """Resets weights, master weights and moments to their initial values."""
        net = self._net
        net.refill_weights()
        self._device.to_device(self._steps, np.zeros(3, np.uint64))
        for name, each in net.matrices.items():
            size = each.rows * each.columns
            master, *moments = self._states[name]
            net.build_element_launch("widen", size, master, net.weights[name], size)()
            for moment in moments:
                devices.run_kernel(self._device, ("decoder.cu", "zero_fp32"), moment, size)

    def _build_update(self, name: str) -> QueueLaunch:
        net, each = self._net, self._net.matrices[name]
        size = each.rows * each.columns
        addresses = (net.weights[name], *self._states[name], self._gradients[name], self._steps)
        return net.build_element_launch("update", size, *addresses, size)

    def _read_gradient_rows(self, name: str, rows: np.ndarray) -> np.ndarray:
        columns = self._net.matrices[name].columns
        found = np.empty((len(rows), columns), np.float32)
        for place, row in enumerate(rows.tolist()):
            self._device.to_host(found[place], self._gradients[name] + 4 * row * columns)
        return found.astype(np.float64)

    def _select_rows(self, rows: int) -> np.ndarray:
        bits = numbers.generate_bits(self._seed ^ rows, np.arange(CHECKED_ROWS))
        return (bits % np.uint64(rows)).astype(np.int64)

    def _compute_update_error(
        self, weights: SeededWeights, name: str, rows: np.ndarray, gradient: np.ndarray
    ) -> float:
        """Returns the error of the weights against AdamW after one step; above 1 if they differ.

        The rate is 1e-4 and the decay 0.01, a first step is g / (|g| + 1e-8); a master weight of 4 bytes is
        off by one rounding of it at most.
        """
        each = weights.matrices[name]
        found = np.empty((len(rows), each.columns), np.float32)
        for place, row in enumerate(rows.tolist()):
            self._device.to_host(found[place], self._states[name][0] + 4 * row * each.columns)
        old = np.concatenate(
            [weights.generate_rows(each.number, each.columns, row, 1) for row in rows.tolist()]
        )
        expected = old * (1 - 1e-6) - 1e-4 * gradient / (np.abs(gradient) + 1e-8)
        return float(np.abs(found - expected).max() / (1e-6 + 2.0**-23 * np.abs(old).max()))


class _MicroBatchBuffers:
    """Buffers of a micro-batch, and the launches that use them."""

    def __init__(self, net: CudaDecoder, work: TrainingStepWork, start: int) -> None:
        self.net, self.work, self.start = net, work, start
        self.rows = rows = work.sequence_length * work.micro_batch_size
        self.heads = work.query_heads * work.head_size
        self.kv = work.kv_heads * work.head_size
        self.scores = work.micro_batch_size * work.query_heads * work.sequence_length**2
        self.turns = net.upload_angles(work.sequence_length)
        keeps_all = work.recomputation == "none"
        shared = self._allocate_activations()
        self.kept = [
            shared if not keeps_all or not layer else self._allocate_activations()
            for layer in range(work.layers)
        ]
        self.starts = [net.allocate_array(rows * work.hidden) for _ in range(work.layers + 1)]
        self.last, self.last_factors = net.allocate_array(rows * work.hidden), net.allocate_array(rows, 4)
        self.logits = net.allocate_array(rows * work.vocabulary)
        self.dx, self.dy = net.allocate_array(rows * work.hidden), net.allocate_array(rows * work.hidden)
        self.qkv, self.dqkv = (net.allocate_array(rows * (self.heads + 2 * self.kv)) for _ in range(2))
        self.dmixed, self.do, self.dq = (net.allocate_array(rows * self.heads) for _ in range(3))
        self.dk, self.dv = net.allocate_array(rows * self.kv), net.allocate_array(rows * self.kv)
        self.o = net.allocate_array(rows * self.heads)
        self.dp = net.allocate_array(self.scores)
        self.dfed, self.dgates = (
            net.allocate_array(rows * work.feed_forward),
            net.allocate_array(2 * rows * work.feed_forward),
        )

    def _allocate_activations(self) -> LayerBuffers:
        net, work, rows = self.net, self.work, self.rows
        return LayerBuffers(
            middle=net.allocate_array(rows * work.hidden),
            a=net.allocate_array(rows * work.hidden),
            b=net.allocate_array(rows * work.hidden),
            factors_a=net.allocate_array(rows, 4),
            factors_b=net.allocate_array(rows, 4),
            q=net.allocate_array(rows * self.heads),
            k=net.allocate_array(rows * self.kv),
            v=net.allocate_array(rows * self.kv),
            p=net.allocate_array(self.scores),
            mixed=net.allocate_array(rows * self.heads),
            gates=net.allocate_array(2 * rows * work.feed_forward),
            fed=net.allocate_array(rows * work.feed_forward),
        )

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """Shape arguments of the kernels of heads."""
        work = self.work
        return work.sequence_length, work.sequence_length, work.query_heads, work.kv_heads, work.head_size

    def build_micro_batch(
        self,
        ids: int,
        targets: int,
        losses: int,
        gradients: dict[str, int],
        *,
        adds: bool,
        counted: int,
        of: int,
    ) -> QueueLaunch:
        """Builds forward, loss and backward of a micro-batch; gradients are written, or added up."""
        net, work, rows = self.net, self.work, self.rows
        last = self.starts[-1]
        launches = [
            net.build_element_launch(
                "embed", rows * work.hidden, self.starts[0], net.table, ids, rows, work.hidden
            )
        ]
        for layer in range(work.layers):
            launches += self._build_forward(layer)
        launches.append(
            net.build_row_launch("norm", rows, self.last, self.last_factors, last, rows, work.hidden)
        )
        launches.append(self._build_product("head", self.last, self.logits))
        launches.append(
            net.build_row_launch(
                "entropy", rows, self.logits, losses, targets, rows, work.vocabulary, counted, of
            )
        )
        launches += self._build_matrix_backward("head", self.logits, self.last, self.dy, gradients, adds=adds)
        launches.append(net.build_element_launch("zero", rows * work.hidden, self.dx, rows * work.hidden))
        launches.append(
            net.build_row_launch(
                "norm_back", rows, self.dx, self.dy, last, self.last_factors, rows, work.hidden
            )
        )
        for layer in reversed(range(work.layers)):
            # The layer that went forward last is still in the shared buffers.
            if work.recomputation == "full" and layer < work.layers - 1:
                launches += self._build_forward(layer)
            launches += self._build_backward(layer, gradients, adds=adds)
        return chain_launches(launches)

    def _build_forward(self, layer: int) -> list[QueueLaunch]:
        net, work, rows, kept = self.net, self.work, self.rows, self.kept[layer]
        start, end = self.starts[layer], self.starts[layer + 1]
        group = work.query_heads // work.kv_heads * work.sequence_length
        of_softmax = work.micro_batch_size * work.query_heads * work.sequence_length
        pairs = rows * (self.heads + 2 * self.kv) // 2
        return [
            net.build_row_launch("norm", rows, kept.a, kept.factors_a, start, rows, work.hidden),
            self._build_product(f"qkv.{layer}", kept.a, self.qkv),
            net.build_element_launch(
                "rotate", pairs, kept.q, kept.k, kept.v, self.qkv, self.turns, self.start, rows, *self.shape
            ),
            self._build_head_products(
                (group, work.sequence_length, work.head_size), kept.q, kept.k, kept.p, scaled=True
            ),
            net.build_row_launch("softmax", of_softmax, kept.p, of_softmax, work.sequence_length),
            self._build_head_products(
                (group, work.head_size, work.sequence_length), kept.p, kept.v, self.o, b_is_turned=False
            ),
            net.build_element_launch("gather", rows * self.heads, kept.mixed, self.o, rows, *self.shape),
            self._build_product(f"out.{layer}", kept.mixed, kept.middle, added=start),
            net.build_row_launch("norm", rows, kept.b, kept.factors_b, kept.middle, rows, work.hidden),
            self._build_product(f"gate_up.{layer}", kept.b, kept.gates),
            net.build_element_launch(
                "gate", rows * work.feed_forward, kept.fed, kept.gates, rows, work.feed_forward
            ),
            self._build_product(f"down.{layer}", kept.fed, end, added=kept.middle),
        ]

    def _build_backward(self, layer: int, gradients: dict[str, int], *, adds: bool) -> list[QueueLaunch]:
        net, work, rows, kept = self.net, self.work, self.rows, self.kept[layer]
        group, tokens, head = (
            work.query_heads // work.kv_heads * work.sequence_length,
            work.sequence_length,
            work.head_size,
        )
        of_softmax = work.micro_batch_size * work.query_heads * tokens
        pairs = rows * (self.heads + 2 * self.kv) // 2
        hidden, fed = work.hidden, work.feed_forward
        return [
            *self._build_matrix_backward(f"down.{layer}", self.dx, kept.fed, self.dfed, gradients, adds=adds),
            net.build_element_launch("gate_back", rows * fed, self.dgates, self.dfed, kept.gates, rows, fed),
            *self._build_matrix_backward(
                f"gate_up.{layer}", self.dgates, kept.b, self.dy, gradients, adds=adds
            ),
            net.build_row_launch(
                "norm_back", rows, self.dx, self.dy, kept.middle, kept.factors_b, rows, hidden
            ),
            *self._build_matrix_backward(
                f"out.{layer}", self.dx, kept.mixed, self.dmixed, gradients, adds=adds
            ),
            net.build_element_launch("scatter", rows * self.heads, self.do, self.dmixed, rows, *self.shape),
            self._build_head_products((group, tokens, head), self.do, kept.v, self.dp),
            self._build_head_products(
                (tokens, head, group), kept.p, self.do, self.dv, a_is_turned=True, b_is_turned=False
            ),
            net.build_row_launch("softmax_back", of_softmax, self.dp, kept.p, of_softmax, tokens),
            self._build_head_products(
                (group, head, tokens), self.dp, kept.k, self.dq, b_is_turned=False, scaled=True
            ),
            self._build_head_products(
                (tokens, head, group),
                self.dp,
                kept.q,
                self.dk,
                a_is_turned=True,
                b_is_turned=False,
                scaled=True,
            ),
            net.build_element_launch(
                "rotate_back", pairs, self.dqkv, self.dq, self.dk, self.dv, self.turns, rows, *self.shape
            ),
            *self._build_matrix_backward(f"qkv.{layer}", self.dqkv, kept.a, self.dy, gradients, adds=adds),
            net.build_row_launch(
                "norm_back", rows, self.dx, self.dy, self.starts[layer], kept.factors_a, rows, hidden
            ),
        ]

    def _build_product(self, name: str, x: int, y: int, added: int | None = None) -> QueueLaunch:
        each = self.net.matrices[name]
        beta = 0.0 if added is None else 1.0
        shape = MatrixProduct(
            self.work.dtype, self.rows, each.rows, each.columns, alpha=each.scale, beta=beta
        )
        return self.net.build_product(shape, x, self.net.weights[name], y, added)

    def _build_matrix_backward(
        self, name: str, dy: int, x: int, dx: int, gradients: dict[str, int], *, adds: bool
    ) -> list[QueueLaunch]:
        """Builds the gradients of the input and of the weights of a matrix."""
        each, net = self.net.matrices[name], self.net
        through = MatrixProduct(
            self.work.dtype, self.rows, each.columns, each.rows, b_is_turned=False, alpha=each.scale
        )
        gradient = MatrixProduct(
            self.work.dtype, each.rows, each.columns, self.rows, a_is_turned=True, b_is_turned=False,
            alpha=each.scale, beta=1.0 if adds else 0.0, gives_fp32=True,
        )  # fmt: skip
        return [
            net.build_product(gradient, dy, x, gradients[name]),
            net.build_product(through, dy, net.weights[name], dx),
        ]

    def _build_head_products(
        self, sides: tuple[int, int, int], a: int, b: int, c: int, *,
        a_is_turned: bool = False, b_is_turned: bool = True, scaled: bool = False,
    ) -> QueueLaunch:  # fmt: skip
        """Builds products of all key heads at once; query heads that share one are rows of one product."""
        work = self.work
        alpha = 1 / float(np.sqrt(work.head_size)) if scaled else 1.0
        batch = work.micro_batch_size * work.kv_heads
        shape = MatrixProduct(work.dtype, *sides, batch, a_is_turned, b_is_turned, alpha)
        return self.net.build_product(shape, a, b, c)


def _compute_needed_bytes(work: TrainingStepWork) -> int:
    """Returns the bytes of weights with optimizer states, and of the activations of all layers or of one."""
    width, rows = work.element_bytes, work.sequence_length * work.micro_batch_size
    heads, kv = work.query_heads * work.head_size, work.kv_heads * work.head_size
    scores = work.micro_batch_size * work.query_heads * work.sequence_length**2
    layer = rows * (3 * work.hidden + 2 * heads + 2 * kv + 3 * work.feed_forward) + scores
    kept = layer * (work.layers if work.recomputation == "none" else 1)
    others = rows * ((work.layers + 4) * work.hidden + 5 * heads + 4 * kv + 3 * work.feed_forward)
    activations = kept + others + scores + rows * work.vocabulary
    weights = work.matrix_parameters * (width + OPTIMIZER_WIDTH) + work.vocabulary * work.hidden * width
    return weights + width * activations


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares weights, states and sequences; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, TrainingStepWork):
        raise Unsupported(f"{benchmark.work.kind} is not a training step")
    with devices.open_device(index) as device, ExitStack() as stack:
        yield StepTimed(device, benchmark.work, seed, stack)
