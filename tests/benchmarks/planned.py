"""Benchmarks as they would read on a device of which planning's estimates are true."""

from pydantic import TypeAdapter

from bench.gpu_planned import CALIBRATION, Planned, device
from service.calibrations.fitting import BenchmarkObservation
from service.protocol.work import BenchmarkWork

__all__ = ["CALIBRATION", "Planned", "device"]
WORK: TypeAdapter[BenchmarkWork] = TypeAdapter(BenchmarkWork)


def work(kind, **members):
    """Work of a kind."""
    return WORK.validate_python({"kind": kind, **members})


def gemm(rows, columns, depth, dtype="bf16"):
    """A product."""
    return work("gemm", dtype=dtype, m=rows, n=columns, k=depth)


def prompt(back_end, context=4096, head=128):
    """Attention of prompts."""
    return attention("prefill", back_end, 4, context, head)


def cached(back_end, context=8192):
    """Attention over a cache."""
    return attention("decode", back_end, 16, context, 128)


def attention(phase, back_end, batch, context, head, **more):
    """Attention as Llama 3 has it."""
    shape = {"batch": batch, "query_heads": 32, "kv_heads": 8, "head_size": head, "context_tokens": context}
    return work("attention", phase=phase, back_end=back_end, dtype="bf16", **shape, **more)


def together(operation, devices, size):
    """A collective."""
    return work("collective", operation=operation, devices=devices, payload_bytes=size)


def power(load):
    """A load for its power."""
    return work("power", load=load, window_seconds=10.0, settle_seconds=1.0)


def observed(name, of_work, metric, *figures, warmup=2.0, **conditions):
    """An observation of one run for each figure."""
    runs = tuple(f"run-{place}" for place, _ in enumerate(figures))
    results = tuple(f"{name}-{run}" for run in runs)
    return BenchmarkObservation(
        name, of_work, metric, warmup, figures, min(figures), max(figures), results, runs, conditions
    )


SIDES = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (1536, 1536, 1536),
    (256, 256, 2048),
    (640, 1152, 4096),
    (1152, 1152, 2048),
)
"""Shapes of the suites that tiles bound."""
SUITE = (
    *((f"gemm.{dtype}", gemm(8192, 8192, 8192, dtype), "flops_per_second") for dtype in ("bf16", "fp8_e4m3")),
    *((f"shape.{m}x{n}x{k}", gemm(m, n, k), "flops_per_second") for m, n, k in SIDES),
    ("skinny", gemm(16, 14336, 8192), "bytes_per_second"),
    ("experts", work("grouped_gemm", dtype="bf16", groups=64, m=4, n=4096, k=2048), "bytes_per_second"),
    ("copy", work("stream", pattern="copy", array_bytes=2**32), "bytes_per_second"),
    ("triad", work("stream", pattern="triad", array_bytes=2**32), "bytes_per_second"),
    ("prefill.flash", prompt("flash"), "flops_per_second"),
    ("prefill.cudnn", prompt("cudnn"), "flops_per_second"),
    ("backward.cudnn", attention("backward", "cudnn", 4, 4096, 128), "flops_per_second"),
    ("decode.flash", cached("flash"), "bytes_per_second"),
    *((f"power.{load}", power(load), "watts") for load in ("context", "stream", "gemm")),
)
COLLECTIVES = tuple(
    (f"{operation}.{devices}.{size}", together(operation, devices, size), "seconds")
    for operation in ("all_reduce", "all_gather")
    for devices, sizes in ((2, (2**16, 2**30)), (8, (2**16, 2**20, 2**26, 2**33)))
    for size in sizes
)


def observations(planned, suite=SUITE, **options):
    """Every benchmark of a suite as it would read."""
    return [
        observed(name, of_work, metric, planned.figure(of_work, metric), **options)
        for name, of_work, metric in suite
    ]
