"""The worker's products and copies, in turns with PyTorch's in one process: same shapes, clock and heat.

Writes the pairs after each of them. Ends with 1 after a failure, with 3 where PyTorch is not installed.
"""

import argparse
import fnmatch
import json
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

SEED = 20_261_121
SAMPLE_NS = 20_000_000
SAMPLES = 40
FIRST_DROPPED = 10
FLUSH_BYTES = 512 * 2**20
NO_TORCH = 3

TorchCall = Callable[[int], Any]


class TorchDevice:
    """Calls of PyTorch on one device, timed as the worker times its own."""

    def __init__(self, torch: Any) -> None:  # noqa: ANN401
        self.torch = torch
        self.flush = torch.ones(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def timed(self, call: TorchCall, iterations: int) -> float:
        """Returns nanoseconds of some calls between two events, after a flush."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        # Read and not written, as the worker does: written lines would go to memory during the calls.
        self.flush.amax()
        start.record()
        for turn in range(iterations):
            call(turn)
        stop.record()
        stop.synchronize()
        nanoseconds: float = start.elapsed_time(stop) * 1e6
        return nanoseconds

    def product(self, work: Any, sets: int) -> tuple[TorchCall, str]:  # noqa: ANN401
        """Returns C = A B^T by PyTorch, on as many sets of matrices as the worker uses in turn, and its
        name.
        """
        torch, kind = self.torch, work.dtype
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        a, b = ([self._matrix(kind, rows, work.k) for _ in range(sets)] for rows in (work.m, work.n))
        if kind == "fp8_e4m3":
            one = torch.ones((), device="cuda")

            def call(turn: int) -> None:
                torch._scaled_mm(  # noqa: SLF001  # there is no public one
                    a[turn % sets], b[turn % sets].t(), scale_a=one, scale_b=one,
                    out_dtype=torch.bfloat16, use_fast_accum=True,
                )  # fmt: skip

            return call, "torch._scaled_mm"
        if kind == "int8":
            return lambda turn: torch._int_mm(a[turn % sets], b[turn % sets].t()), "torch._int_mm"  # noqa: SLF001
        return lambda turn: torch.nn.functional.linear(a[turn % sets], b[turn % sets]), "torch linear"

    def _matrix(self, kind: str, rows: int, columns: int) -> Any:  # noqa: ANN401
        torch = self.torch
        if kind == "int8":
            return torch.randint(-64, 64, (rows, columns), dtype=torch.int8, device="cuda")
        types = {
            "fp64": torch.float64,
            "bf16": torch.bfloat16,
            "fp16": torch.float16,
            "fp8_e4m3": torch.float8_e4m3fn,
        }
        return torch.randn(rows, columns, device="cuda").to(types.get(kind, torch.float32))

    def copies(self, size: int) -> dict[str, TorchCall]:
        """Returns the copies of an array that PyTorch has, by name."""
        torch = self.torch
        source = torch.randint(0, 2**22, (size // 4,), dtype=torch.int32, device="cuda")
        target = torch.empty_like(source)
        return {
            "Tensor.copy_": lambda _: target.copy_(source),
            "torch.add(out=)": lambda _: torch.add(source, 1, out=target),
        }


def in_turns(ours: Callable[[int], float], theirs: Callable[[int], float]) -> list[float]:
    """Returns median nanoseconds of one call of each, in samples that take turns."""
    sizes = [max(round(SAMPLE_NS / max(call(3) / 3, 1)), 1) for call in (ours, theirs)]
    samples = [(ours(sizes[0]) / sizes[0], theirs(sizes[1]) / sizes[1]) for _ in range(SAMPLES)]
    return [median(column) for column in zip(*samples[FIRST_DROPPED:], strict=True)]


def compared(torch: Any, benchmark: Any) -> dict[str, Any]:  # noqa: ANN401
    """Returns the pairs of one benchmark: the worker's figure and PyTorch's, in the benchmark's metric."""
    from service.worker.benchmark import TimedBenchmark  # noqa: PLC0415
    from service.worker.cuda import PREPARE  # noqa: PLC0415

    work, theirs = benchmark.work, TorchDevice(torch)
    with PREPARE[work.kind](benchmark, SEED, 0) as timed:
        if work.kind == "gemm":
            calls = dict([theirs.product(work, timed.facts.rotated_buffers)[::-1]])
        else:
            calls = theirs.copies(work.array_bytes)
        if not isinstance(timed, TimedBenchmark):
            raise TypeError(f"{benchmark.name} is not timed")
        found = {}
        for name, call in calls.items():
            found[name] = in_turns(timed.execute, partial(theirs.timed, call))
    best = min(found, key=lambda name: found[name][1])
    mine, other = (benchmark.compute_figure([ns / 1e9], inner_iterations=1) for ns in found[best])
    return {
        "name": benchmark.name,
        "kind": work.kind,
        "metric": benchmark.metric,
        "figure": mine,
        "torch_figure": other,
        "call": best,
        "algorithm": timed.facts.algorithm,
    }


def main() -> int:
    """Writes the comparison."""
    parser = argparse.ArgumentParser(prog="gpu-torch", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    try:
        import torch  # noqa: PLC0415
    except ImportError:
        return NO_TORCH
    from service.protocol.suites import shipped_suites  # noqa: PLC0415
    from service.worker.benchmark import Unsupported  # noqa: PLC0415

    pairs, failed = [], False
    for benchmark in shipped_suites()["gpu-deep"].benchmarks:
        if not is_compared(benchmark, options.patterns or ["*"]):
            continue
        try:
            pairs.append(compared(torch, benchmark))
        except Unsupported as error:
            print(f"{benchmark.name}: {error}", file=sys.stderr)
        except Exception:  # noqa: BLE001  # one that fails is no reason to compare nothing else
            print(f"{benchmark.name}: {traceback.format_exc()}", file=sys.stderr)
            failed = True
        else:
            options.out.write_text(json.dumps(pairs, indent=2))
        torch.cuda.empty_cache()
    options.out.write_text(json.dumps(pairs, indent=2))
    return int(failed)


def is_compared(benchmark: Any, patterns: list[str]) -> bool:  # noqa: ANN401
    """Returns true for the products and copies of one accelerator with a matching name."""
    is_copy = benchmark.work.kind == "stream" and benchmark.work.pattern == "copy"
    is_peak = benchmark.name.startswith("gemm.") and benchmark.sampling.least_seconds < 1
    return (
        not benchmark.concurrent
        and (is_copy or is_peak)
        and any(fnmatch.fnmatch(benchmark.name, pattern) for pattern in patterns)
    )


if __name__ == "__main__":
    sys.exit(main())
