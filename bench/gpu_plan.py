"""`make gpu-first-contact` and its sisters: everything out of a GPU that is there for half an hour.

Each step ends by itself within its time. Called again, it measures what has no record yet, then what failed.
It leaves a folder and one archive of it: records, logs, what `nvidia-smi` says of devices and links before
and after, `comparison.json`, and `page.md`, which says what the step showed and what it did not.
"""

import argparse
import fnmatch
import importlib
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench import gpu_checks, gpu_kit, gpu_suite

FOLDER = Path("gpu-plan")


class Step(NamedTuple):
    """One command of the plan: benchmarks of a suite by name, each measured once and briefly."""

    title: str
    limit_seconds: float
    """Seconds after which it has ended."""
    names: tuple[str, ...]
    sampling: dict[str, float]
    suite: str = "gpu-standard"
    controls: tuple[str, ...] = ()
    """Further benchmarks, of `gpu-deep`."""
    left_out: tuple[str, ...] = ("*_sustained",)
    compares: bool = False
    """True if products and copies are timed through PyTorch too."""
    diagnoses: bool = False
    """True if DCGM and compute-sanitizer are asked too."""

    @property
    def kept_back_seconds(self) -> float:
        """Seconds of the limit in which no benchmark is measured."""
        comparison = gpu_suite.COMPARISON_SECONDS if self.compares else 0.0
        return gpu_suite.ENDING_SECONDS + comparison + (gpu_checks.SECONDS if self.diagnoses else 0.0)


STEPS = {
    "first-contact": Step(
        "One benchmark of every kind and format: does the library take the call, is the result right",
        516.0, ("*",), {"warmup_seconds": 0.5, "least_seconds": 0.2, "most_seconds": 1.0},
        left_out=("*_sustained", "power.*", "gemm_weight_only.int4_m16"),
        controls=(
            "gemm_skinny.fp8_m16", "hbm.write", "hbm.strided_128", "link.d2h", "link.h2d_pageable",
            "link.h2d_latency", "attention.prefill_own", "attention.decode_own", "fft.fp32", "fft.fp32_3d",
            "launch.stream", "memory.context", "divergence.1", "divergence.32", "bank_conflict.1",
            "bank_conflict.32", "occupancy.64", "optimizer.adamw", "gradients.accumulate_bf16",
            "gradients.compress_int8", "gradients.compress_top_k", "training.step", "decode.graph",
            "enqueue.c", "enqueue.cuda_bindings", "hbm.copy_driver", "latency.memory",
            "attention.decode_cudnn_mla", "storage.to_device_cufile",
        ),
    ),
    "proof": Step(
        "Correctness and bias: products, copies and attention, beside each other and PyTorch",
        490.0,
        (
            "gemm.*", "hbm.read", "hbm.copy", "attention.*", "gemm_shape.bf16_512x512x512",
            "gemm_shape.bf16_1536x1536x1536", "gemm_skinny.bf16_m1", "cache.read", "launch.graph",
        ),
        {"warmup_seconds": 1.0, "least_seconds": 0.5, "most_seconds": 2.0},
        left_out=("*_sustained", "*_flashinfer*", "*_flash3*", "*_cudnn_paged", "*_mla", "gemm.fp64"),
        controls=(
            "gemm.bf16_16384", "gemm.fp8_16384", "gemm_skinny.fp8_m16", "attention.prefill_own",
            "attention.decode_own",
        ),
        compares=True,
        diagnoses=True,
    ),
    "figures": Step(
        "Constants that a calibration is drawn of",
        455.0,
        (
            "gemm*", "hbm.*", "link.h2d", "attention.*_flash", "attention.*_cudnn*", "launch.graph",
            "memory.*", "host.copy", "storage.*",
        ),
        {"warmup_seconds": 1.0, "least_seconds": 0.5, "most_seconds": 3.0},
        # Peaks are drawn of the sustained products; of the others, one stands beside the shapes.
        left_out=(
            *(f"gemm.{name}" for name in ("fp16", "fp8", "int8", "tf32", "fp32", "fp64")),
            *(f"gemm_scaled.{name}" for name in ("nvfp4", "mxfp8", "fp8_blocks")),
        ),
    ),
    "power": Step(
        "Power when idle, with a context and under loads, in windows of 20 s",
        335.0, ("power.*",), {}, suite="gpu-deep", left_out=(),
    ),
}  # fmt: skip
SUSTAINED = {"warmup_seconds": 6.0, "least_seconds": 2.0, "most_seconds": 3.0, "most_samples": 100}
"""Sampling of a sustained product: longer than that of the others of any step, and at the power limit."""
BRIEF = {"window_seconds": 20.0, "settle_seconds": 15.0}
"""Window of a reading of power; the benchmark has another name than that of the suite."""


def planned_suite(name: str) -> Any:  # noqa: ANN401  # imported where its packages are
    """Returns the benchmarks of a step as a suite."""
    step, suite = STEPS[name], gpu_suite.suite_of(STEPS[name].suite)
    chosen = [one for one in suite.benchmarks if is_chosen(one, step)]
    controls = [one for one in gpu_suite.suite_of("gpu-deep").benchmarks if one.name in step.controls]
    benchmarks = [briefly(one, step.sampling) for one in (*chosen, *controls)]
    return suite.model_copy(
        update={"id": f"gpu-{name}", "version": 1, "title": step.title, "benchmarks": benchmarks}
    )


def is_chosen(benchmark: Any, step: Step) -> bool:  # noqa: ANN401
    """Returns true for a benchmark of one GPU that a step names."""
    wanted, left_out = (
        any(fnmatch.fnmatch(benchmark.name, name) for name in names) for names in (step.names, step.left_out)
    )
    return wanted and not (left_out or benchmark.concurrent or benchmark.work.is_joint)


def briefly(benchmark: Any, sampling: dict[str, float]) -> Any:  # noqa: ANN401
    """Returns a benchmark that is measured by one process and in less time."""
    if benchmark.work.kind == "power":
        work = benchmark.work.model_copy(update=BRIEF)
        return benchmark.model_copy(update={"name": f"{benchmark.name}_brief", "work": work, "windows": []})
    own = SUSTAINED if benchmark.name.endswith("_sustained") else sampling
    rule = benchmark.sampling.model_copy(update={**own, "most_warmup_seconds": 0.0})
    return benchmark.model_copy(update={"repeats": 1, "sampling": rule})


def recorded(folder: Path) -> dict[str, list[Any]]:
    """Returns the records of each benchmark of a step, from the last call that measured it."""
    found: dict[str, list[Any]] = {}
    for number in range(1, len(list(folder.glob("run-*"))) + 1):
        found |= gpu_suite.records(folder / f"run-{number}")
    return found


def measure_rest(folder: Path, suite: Any, seconds: float) -> str | None:  # noqa: ANN401
    """Measures what has no record yet, then what failed; returns what ended it early."""
    states = {name: records[0].status for name, records in recorded(folder).items()}
    rest = [one for one in suite.benchmarks if states.get(one.name) not in ("ok", "unsupported")]
    rest.sort(key=lambda one: one.name in states)
    if not rest:
        return None
    run = folder / f"run-{len(list(folder.glob('run-*'))) + 1}"
    run.mkdir(parents=True)
    ends_at = time.monotonic() + seconds
    gpu_checks.ask(run, gpu_checks.BEFORE)
    try:
        measure = importlib.import_module("bench.gpu_measure").measure
        rest_of_suite = suite.model_copy(update={"benchmarks": rest})
        ended: str | None = measure(rest_of_suite, run, ends_at - time.monotonic())
        return ended
    finally:
        gpu_checks.ask(run, gpu_checks.AFTER)


def page(name: str, device: str, suite: Any, comparison: dict[str, Any]) -> Iterator[str]:  # noqa: ANN401
    """Returns the lines of what a step showed and did not."""
    rows, names = comparison["benchmarks"], [one.name for one in suite.benchmarks]
    figures = [row for row in rows if "figure" in row]
    missing = [each for each in names if each not in {row["name"] for row in rows}]
    yield f"# gpu-{name}: {STEPS[name].title}"
    yield ""
    yield f"{device}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    yield f"{len(figures)} of {len(names)} benchmarks have a figure."
    for title, lines in (
        ("Figures", list(gpu_suite.table(figures, []))),
        ("Beside what bounds them", list(gpu_suite.table([], [], comparison["ceilings"]))),
        ("Beside PyTorch", list(gpu_suite.table([], comparison.get("torch") or []))),
        ("Beside other programs", comparison.get("checks") or []),
        ("Without a figure", list(gpu_suite.table([row for row in rows if "figure" not in row], []))),
        ("Not measured yet: call the command again", missing),
        ("Ended early", [text for text in (comparison["ended"], comparison.get("torch_ended")) if text]),
    ):
        if lines:
            yield from ("", f"## {title}", "", "```", *lines, "```")


def run_step(name: str, folder: Path, limit: float) -> int:
    """Runs a step, or what is left of it. Returns 1 where something failed or is missing."""
    step, suite = STEPS[name], planned_suite(name)
    ends_at = time.monotonic() + limit - gpu_suite.ENDING_SECONDS
    device = gpu_suite.device_name()
    known = gpu_suite.catalogued(device)
    known_id = known["id"] if known else None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        kept_back = step.kept_back_seconds - gpu_suite.ENDING_SECONDS
        ended = measure_rest(folder, suite, ends_at - time.monotonic() - kept_back)
        found = recorded(folder)
        rows = [gpu_suite.row(*item, known_id) for item in found.items()]
        comparison = {"device": device, "accelerator_id": known_id, "ended": ended}
        comparison |= {"benchmarks": rows, "ceilings": gpu_suite.ceilings(found, known)}
        gpu_suite.write_comparison(folder, comparison)
        if step.compares:
            left = ends_at - time.monotonic() - (gpu_checks.SECONDS if step.diagnoses else 0.0)
            pairs, torch_ended = gpu_suite.against_torch(folder, list(found), left)
            comparison |= {"torch": pairs, "torch_ended": torch_ended}
            gpu_suite.write_comparison(folder, comparison)
            comparison["torch"] = gpu_suite.verdicts(pairs)
            gpu_suite.write_comparison(folder, comparison)
        if step.diagnoses:
            gpu_checks.diagnose(folder, ends_at - time.monotonic())
            comparison["checks"] = list(gpu_checks.lines(folder))
            gpu_suite.write_comparison(folder, comparison)
        text = "\n".join(page(name, device, suite, comparison)) + "\n"
        (folder / "page.md").write_text(text)
    finally:
        print(f"all of it is in {gpu_suite.archived(folder)}")
    print(text)
    return int(not is_whole(suite, comparison) or (step.diagnoses and not gpu_checks.is_sound(folder)))


def is_whole(suite: Any, comparison: dict[str, Any]) -> bool:  # noqa: ANN401
    """Returns true if every benchmark was tried, none failed, and PyTorch is not faster than it may be."""
    states = {row["name"]: row["status"] for row in comparison["benchmarks"]}
    return (
        all(states.get(one.name) in ("ok", "unsupported") for one in suite.benchmarks)
        and not comparison["ended"]
        and not comparison.get("torch_ended")
        and all(pair["passed"] for pair in comparison.get("torch") or [])
    )


def main() -> int:
    """Runs one step. Returns 1 after a failure, 2 if nothing could run."""
    parser = argparse.ArgumentParser(prog="gpu-plan", description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--out", type=Path, help="folder of the step, by default below gpu-plan/")
    parser.add_argument("--limit", type=float, help="seconds after which it ends")
    parser.add_argument("--kit", type=Path, default=gpu_kit.KIT, help="folder of carried wheels")
    options = parser.parse_args()
    gpu_kit.use(options.kit)
    try:
        gpu_suite.demand(gpu_suite.missing())
        limit = options.limit or STEPS[options.step].limit_seconds
        return run_step(options.step, options.out or FOLDER / options.step, limit)
    except gpu_suite.MissingDependency as error:
        print(f"gpu-{options.step}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
