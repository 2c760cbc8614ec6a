"""Own kernels at small sizes, each once and checked: what `compute-sanitizer` runs, as one process.

Ends with 1 if a result is wrong. Products of libraries are among those of the decoders alone.
"""

import sys
from typing import Any

SEED = 20_261_121
_DECODER = {
    "layers": 2, "hidden": 24, "query_heads": 4, "kv_heads": 2, "head_size": 64, "feed_forward": 20,
    "vocabulary": 300,
}  # fmt: skip
_ATTENTION = {
    "kind": "attention", "back_end": "own", "batch": 1, "query_heads": 2, "kv_heads": 1,
    "context_tokens": 160,
}  # fmt: skip
WORKS: dict[str, dict[str, Any]] = {
    **{
        f"stream.{pattern}": {"kind": "stream", "pattern": pattern, "array_bytes": 2**18}
        for pattern in ("read", "write", "copy", "triad")
    },
    "strided_read": {"kind": "strided_read", "stride_bytes": 128, "array_bytes": 2**18},
    "cache.read": {"kind": "cache_stream", "pattern": "read", "array_bytes": 2**16, "passes": 3},
    "cache.copy": {"kind": "cache_stream", "pattern": "copy", "array_bytes": 2**16, "passes": 3},
    "occupancy": {"kind": "occupancy", "resident_warps": 8, "array_bytes": 2**18},
    "bank_conflict": {"kind": "bank_conflict", "stride_words": 32, "reads": 16, "threads": 2**9},
    "divergence": {"kind": "divergence", "paths": 32, "steps": 16, "threads": 2**9},
    "optimizer.adamw": {"kind": "optimizer_step", "optimizer": "adamw", "parameters": 2**14},
    "optimizer.sgd_momentum": {"kind": "optimizer_step", "optimizer": "sgd_momentum", "parameters": 2**14},
    **{
        f"accumulation.{dtype}": {
            "kind": "gradient_accumulation", "gradient_dtype": dtype, "parameters": 2**14
        }
        for dtype in ("bf16", "fp32")
    },
    **{
        f"compression.{method}": {"kind": "gradient_compression", "method": method, "parameters": 2**14}
        for method in ("int8", "sign", "top_k")
    },
    **{
        f"attention.{phase}_{dtype}_{head_size}": {
            **_ATTENTION, "phase": phase, "dtype": dtype, "head_size": head_size
        }
        for phase, dtypes in {"prefill": ("bf16", "fp16"), "decode": ("bf16", "fp16", "fp32")}.items()
        for dtype in dtypes
        for head_size in (64, 128)
    },
    **{
        f"decode_loop.{dtype}": {
            **_DECODER, "kind": "decode_loop", "dtype": dtype, "batch": 2, "context_tokens": 30, "steps": 2
        }
        for dtype in ("bf16", "fp32")
    },
    **{
        f"training_step.{dtype}": {
            **_DECODER, "kind": "training_step", "dtype": dtype, "sequence_length": 24, "micro_batch_size": 2,
            "accumulation_steps": 2, "recomputation": "full",
        }
        for dtype in ("bf16", "fp32")
    },
    **{
        f"weight_only.{m}": {
            "kind": "weight_only_gemm", "dtype": "bf16", "has_zero_points": zeros, "m": m, "n": 128, "k": 256
        }
        for m, zeros in ((1, False), (16, True))
    },
    "launches": {"kind": "launch_latency", "method": "graph", "launches": 4},
}  # fmt: skip
"""Works by name: together they launch every kernel that a benchmark times, and most of those that check."""


def run_work(work: dict[str, Any]) -> str:
    """Executes a work once and checks it; returns `ok`, or what is wrong or missing."""
    from service.protocol.suites import Benchmark  # noqa: PLC0415
    from service.worker.benchmark import Unsupported  # noqa: PLC0415
    from service.worker.cuda import PREPARE  # noqa: PLC0415

    benchmark = Benchmark.model_validate(
        {"name": "sanitized", "work": work, "metric": "seconds", "direction": "lower", "formula": "none"}
    )
    try:
        with PREPARE[work["kind"]](benchmark, SEED, 0) as prepared:
            prepared.execute(1)  # type: ignore[union-attr]  # all of these are timed
            found = prepared.check()  # type: ignore[union-attr]
    except Unsupported as error:
        return f"unsupported: {error}"
    return "ok" if found is None or found.passed else f"wrong: {found.largest_error} off"


def main() -> int:
    """Prints a line for each work."""
    said = []
    for name, work in WORKS.items():
        said.append(run_work(work))
        print(f"{name}: {said[-1]}", flush=True)
    return int(any(line.startswith("wrong") for line in said))


if __name__ == "__main__":
    sys.exit(main())
