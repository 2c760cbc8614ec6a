"""One update of parameters in mixed precision, by NumPy on every usable processor."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.training import OptimizerStepWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark
from service.worker.cpu.host_timed import (
    NUMPY,
    HostTimed,
    build_correctness,
    build_generator,
    build_rotation,
    compute_checksum,
)
from service.worker.cpu.stream import open_task_pool, split_elements
from service.worker.cuda.numbers import decode_bf16
from service.worker.gradients import RULES, UpdateRule, apply_rule, encode_bf16
from service.worker.host import usable_processors

BLOCK = 2**13
"""Parameters of one pass: with states and intermediate values they stay in the processor's own cache."""
SAFETY = 8
PARAMETER_BYTES = {"adamw": 16, "sgd_momentum": 12}

Arrays = dict[str, np.ndarray]


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares gradient and weight of bf16 as raw bits, and master weight and states of fp32."""
    del accelerator_index
    work = benchmark.get_work(OptimizerStepWork)
    rule, count = RULES[work.optimizer], work.parameters
    turns = build_rotation(PARAMETER_BYTES[work.optimizer] * count)
    drawn = _generate_arrays(build_generator(benchmark, seed), count, with_squares=work.optimizer == "adamw")
    sets = [{name: array.copy() for name, array in drawn.items()} for _ in range(turns.count)]
    parts = split_elements(count, len(usable_processors()))
    scratch = [_allocate_scratch() for _ in parts]
    tasks = [
        [_build_task(rule.to_fp32(), arrays, part, own) for part, own in zip(parts, scratch, strict=True)]
        for arrays in sets
    ]
    facts = MeasurementFacts(
        library=f"numpy {np.__version__} {work.optimizer}",
        algorithm=f"{BLOCK} parameters at a time",
        accumulation="fp32",
        data="normal(0, 1), the same in every buffer",
        timer="host_clock",
        working_set_bytes=turns.total_bytes,
        rotated_buffers=turns.count,
        threads=len(parts),
        software=(NUMPY,),
        gaps=turns.gaps,
    )
    with open_task_pool(tasks) as run:

        def verify_set(index: int) -> CorrectnessCheck:
            for name, array in sets[index].items():
                array[...] = drawn[name]
            run(index)
            return _verify_result(rule, drawn, sets[index])

        yield HostTimed(facts, run, verify_set)


def _generate_arrays(random: np.random.Generator, count: int, *, with_squares: bool) -> Arrays:
    def generate_normal() -> np.ndarray:
        return random.standard_normal(count, np.float32)

    # A weight of bf16 starts as NaN, so that one that is never written is noticed.
    drawn = {"gradient": encode_bf16(generate_normal()), "master": generate_normal(), "m": generate_normal()}
    if with_squares:
        drawn["v"] = generate_normal() ** 2
    return drawn | {"weight": np.full(count, 0xFFFF, np.uint16)}


def _allocate_scratch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32), np.empty(BLOCK, np.uint32)


def _build_task(
    rule: UpdateRule, arrays: Arrays, part: slice, scratch: tuple[np.ndarray, ...]
) -> Callable[[], object]:
    starts = range(part.start, part.stop, BLOCK)
    blocks = [
        {name: array[start : min(start + BLOCK, part.stop)] for name, array in arrays.items()}
        for start in starts
    ]

    def update_part() -> None:
        for block in blocks:
            _update_block(rule, block, *(own[: len(block["m"])] for own in scratch))

    return update_part


def _update_block(rule: UpdateRule, block: Arrays, t: np.ndarray, u: np.ndarray, bits: np.ndarray) -> None:
    """Updates a block in place once; ``t``, ``u`` and ``bits`` are scratch space."""
    w, m = block["master"], block["m"]
    np.left_shift(block["gradient"], 16, out=bits, dtype=np.uint32)
    gradient = bits.view(np.float32)
    np.multiply(m, rule.keep_m, out=m)
    np.multiply(gradient, rule.add_m, out=t)
    np.add(m, t, out=m)
    np.multiply(m, rule.rate, out=u)
    if "v" in block:
        v = block["v"]
        np.multiply(gradient, gradient, out=t)
        np.multiply(t, rule.add_v, out=t)
        np.multiply(v, rule.keep_v, out=v)
        np.add(v, t, out=v)
        np.multiply(v, rule.correct_v, out=t)
        np.sqrt(t, out=t)
        np.add(t, rule.epsilon, out=t)
        np.divide(u, t, out=u)
    np.multiply(w, rule.decay, out=w)
    np.subtract(w, u, out=w)
    np.right_shift(w.view(np.uint32), 16, out=bits)
    np.bitwise_and(bits, 1, out=bits)
    np.add(bits, 0x7FFF, out=bits)
    np.add(bits, w.view(np.uint32), out=bits)
    np.right_shift(bits, 16, out=block["weight"], casting="unsafe")


def _verify_result(rule: UpdateRule, before: Arrays, after: Arrays) -> CorrectnessCheck:
    """Every parameter against the formula in fp64, relative to the largest; a few roundings of fp32 each.

    A square root and a quotient come in between, so 8 units are let pass. The weight of bf16 is that of the
    master weight, bit by bit.
    """
    wide = {
        name: array.astype(np.float64) for name, array in before.items() if name not in ("gradient", "weight")
    }
    gradient = decode_bf16(before["gradient"]).astype(np.float64)
    wanted = apply_rule(rule, gradient, wide["master"], wide["m"], wide.get("v"))
    error = 0.0
    for name, values in zip(("master", "m", "v"), wanted, strict=True):
        if values is not None:
            error = np.maximum(error, np.max(np.abs(after[name] - values)) / np.max(np.abs(values)))
    wrong = np.count_nonzero(after["weight"] != encode_bf16(after["master"]))
    return build_correctness(
        "every parameter against the formula in fp64",
        float(error) + float(wrong),
        SAFETY * float(np.finfo(np.float32).eps) / 2,
        compute_checksum(after["weight"]),
    )
