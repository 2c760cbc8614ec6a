"""`make gpu-suite`: the benchmarks of an accelerator, against what was published, their ceilings and PyTorch.

Needs a machine with an NVIDIA GPU and, in the interpreter that runs it or in the kit that was carried there,
NumPy, pydantic and the packages of the `cuda` extra. PyTorch is compared with where it is installed. Writes
records, `log.txt`, `summary.json` and `comparison.json` to a folder, all of it once more as an archive beside
the folder, and prints a short table. Where a machine is there for minutes only, the suite is run in parts of
at most so long; what was measured until a limit is kept.
"""

import argparse
import fnmatch
import importlib
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from bench import gpu_kit

NEEDED = {
    "numpy": "numpy",
    "pydantic": "pydantic",
    "pynvml": "nvidia-ml-py",
    "cuda.bindings.driver": "cuda-bindings",
    "cuda.bindings.nvrtc": "cuda-bindings",
    "nvmath.bindings.cublasLt": "nvmath-python",
}
CEILINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "attention.prefill_own": ("flops", ("attention.prefill_cudnn", "attention.prefill_flash", "gemm.bf16")),
    "attention.prefill_": ("flops", ("gemm.bf16",)),
    "attention.decode_cudnn_mla": ("flops", ("gemm.bf16",)),
    "attention.decode_": ("moved_bytes", ("hbm.read",)),
    "training.": ("flops", ("gemm.bf16",)),
    "decode.": ("moved_bytes", ("hbm.read",)),
    "optimizer.": ("moved_bytes", ("hbm.triad", "hbm.copy")),
    "gradients.": ("moved_bytes", ("hbm.triad", "hbm.copy")),
    "occupancy.": ("moved_bytes", ("hbm.copy",)),
    "gemm_skinny.": ("moved_bytes", ("hbm.read",)),
    "gemm_shape.bf16_512x512x512": ("parts", ("launch.graph",)),
    "gemm_shape.": ("flops", ("gemm.bf16",)),
    "gemm_grouped.bf16_8x2048": ("flops", ("gemm.bf16",)),
    "gemm_grouped.": ("moved_bytes", ("hbm.read",)),
    "gemm_weight_only.": ("moved_bytes", ("hbm.read",)),
    "gemm_scaled.nvfp4_m16": ("moved_bytes", ("hbm.read",)),
    "collective.all_gather_": ("moved_bytes", ("peer.one_way_copy_engine",)),
    "collective.reduce_scatter_": ("moved_bytes", ("peer.one_way_copy_engine",)),
    "collective.all_to_all_": ("moved_bytes", ("peer.one_way_copy_engine",)),
    "peer.one_way_kernel": ("moved_bytes", ("peer.one_way_copy_engine",)),
    "peer.both_kernel": ("moved_bytes", ("peer.both_copy_engine",)),
    "divergence.": ("flops", ("divergence.1",)),
    "bank_conflict.": ("moved_bytes", ("bank_conflict.1",)),
    "concurrent.gemm.bf16": ("flops", ("gemm.bf16",)),
    "concurrent.hbm.copy": ("moved_bytes", ("hbm.copy",)),
    "concurrent.link.h2d": ("moved_bytes", ("link.h2d",)),
}
"""Bound of benchmarks by prefix of their name: the amount that counts, and the first measured bound."""
PART_SECONDS = 400.0
"""Planned seconds of a part, so that it ends within ten minutes with its bounds and the comparison."""
COMPARISON_SECONDS = 50.0
"""Seconds of a limit that are left for PyTorch."""
ENDING_SECONDS = 10.0
"""Seconds of a limit that are left to kill a process and to write the archive."""
LEAST_SHARES = {"gemm": 0.98, "stream": 0.98}
"""Least share of PyTorch's speed; a faster choice is no failure."""
MOST_SHARE = 1.05
"""Share of the bound of a figure above which one of the two is wrong."""
NO_TORCH = 3
MOST_SECONDS = 7200.0


class MissingDependency(Exception):
    """Missing requirement of this machine or interpreter, in one line."""


def missing() -> list[str]:
    """Returns the missing packages of this interpreter, by the name to install them by."""
    lacking = []
    for module, package in NEEDED.items():
        try:
            importlib.import_module(module)
        except ImportError:
            lacking.append(package)
    return list(dict.fromkeys(lacking))


def device_name() -> str:
    """Returns the driver's name of the first accelerator."""
    nvml, device = map(importlib.import_module, ("service.worker.nvml", "service.worker.cuda.device"))
    unsupported = importlib.import_module("service.worker.benchmark").Unsupported
    try:
        device.load_driver()
        with nvml.open_nvml() as bindings:
            name: str = nvml.decode_text(bindings.nvmlDeviceGetName(nvml.get_handle(bindings, 0)))
            return name
    except unsupported as error:
        raise MissingDependency(f"no NVIDIA GPU: {error}") from None


def catalogued(name: str) -> dict[str, Any] | None:
    """Returns a device of the catalog by its name or an alias, or None."""
    text = files("service.catalog.accelerators").joinpath("shipped.json").read_text("utf-8")
    entries: list[dict[str, Any]] = json.loads(text)
    return next((entry for entry in entries if name in (entry["name"], *entry["aliases"])), None)


def suite_of(suite_id: str) -> Any:  # noqa: ANN401  # imported where its packages are
    """A suite for accelerators."""
    shipped = importlib.import_module("service.protocol.suites").shipped_suites()
    if suite_id not in shipped or shipped[suite_id].device != "cuda":
        raise MissingDependency(f"no suite for accelerators is called {suite_id}")
    return shipped[suite_id]


def bounds_of(name: str) -> tuple[str, tuple[str, ...]]:
    """Returns the amount of a benchmark that counts, and its possible bounds."""
    return next((each for prefix, each in CEILINGS.items() if name.startswith(prefix)), ("moved_bytes", ()))


def with_bounds(kept: Sequence[Any]) -> list[Any]:
    """Returns benchmarks, preceded by their bounds if those are not among them."""
    names = {one.name for one in kept}
    bounds = {above[-1] for one in kept if (above := bounds_of(one.name)[1])} - names
    brief = {one.name: one for one in suite_of("gpu-standard").benchmarks}
    every = suite_of("gpu-deep").benchmarks
    return [*(brief.get(one.name, one) for one in every if one.name in bounds), *kept]


def parts(benchmarks: Sequence[Any], most_seconds: float = PART_SECONDS) -> list[list[Any]]:
    """Returns benchmarks in order, in parts within the planned time. A single one may exceed it."""
    found: list[list[Any]] = []
    left = 0.0
    for benchmark in benchmarks:
        seconds = benchmark.planned_seconds("cuda")
        if seconds > left:
            found.append([])
            left = most_seconds
        found[-1].append(benchmark)
        left -= seconds
    return found


def planned(suite: Any) -> Iterator[str]:  # noqa: ANN401
    """Returns the contents and the planned time of each part of a suite."""
    for number, part in enumerate(parts(suite.benchmarks), start=1):
        seconds = sum(benchmark.planned_seconds("cuda") for benchmark in with_bounds(part))
        yield f"part {number}: {len(part)} benchmarks, {part[0].name} to {part[-1].name}, {seconds:.0f} s"


def chosen(suite: Any, patterns: Sequence[str], part: int | None) -> Any:  # noqa: ANN401
    """Returns a suite with its benchmarks that match a name or belong to one part."""
    kept = [
        one for one in suite.benchmarks if any(fnmatch.fnmatch(one.name, name) for name in patterns or ["*"])
    ]
    if not kept:
        raise MissingDependency(f"no benchmark is called {' or '.join(patterns)}")
    if part is not None:
        divided = parts(kept)
        if not 1 <= part <= len(divided):
            raise MissingDependency(f"there are {len(divided)} parts")
        kept = with_bounds(divided[part - 1])
    return suite.model_copy(update={"benchmarks": kept})


def records(folder: Path) -> dict[str, list[Any]]:
    """Every record of a run, by benchmark."""
    result = importlib.import_module("service.protocol.results").BenchmarkResultReport
    found: dict[str, list[Any]] = {}
    for file in sorted((folder / "records").glob("*.json")):
        record = result.model_validate_json(file.read_bytes())
        found.setdefault(record.benchmark.name, []).append(record)
    return found


def against_window(
    benchmark: Any,  # noqa: ANN401  # imported where its packages are
    figure: float,
    device: str | None,
) -> tuple[str, dict[str, Any] | None]:
    """Returns a word for the position of a figure, and the window of the device."""
    window = next((w for w in benchmark.windows if w.accelerator_id == device), None)
    if window is None:
        return "no window", None
    low = window.model_dump().get("low", 0.0)
    place = "below" if figure < low else "above" if figure > window.high else "inside"
    return place + (" (provisional)" if window.is_provisional else ""), window.model_dump(mode="json")


def figure_of(record: Any) -> float:  # noqa: ANN401
    """The figure of one record."""
    measurement = record.measurement
    times = measurement.inner_iterations
    figure: float = record.benchmark.compute_figure(measurement.values, inner_iterations=times)
    return figure


def row(name: str, repeats: list[Any], device: str | None) -> dict[str, Any]:
    """One benchmark: its figure over the repeats, their spread, its place in the window."""
    measured = [repeat for repeat in repeats if repeat.status == "ok"]
    if not measured:
        failure = repeats[0].failure
        return {"name": name, "status": repeats[0].status, "detail": f"{failure.reason}: {failure.detail}"}
    benchmark = measured[-1].benchmark
    beside: dict[int, list[float]] = {}
    for repeat in measured:
        if repeat.benchmark != benchmark:
            continue  # of a larger size, before memory became short
        beside.setdefault(repeat.repeat, []).append(figure_of(repeat))
    # If accelerators measured at once, the slowest counts for the node.
    figures = [(min if benchmark.direction == "higher" else max)(each) for each in beside.values()]
    figure = median(figures)
    place, window = against_window(benchmark, figure, device)
    reduced = next((gap.detail for gap in measured[-1].gaps if gap.code == "reduced-size"), None)
    if reduced:
        place = f"smaller than asked for: {reduced}"
    return {
        "name": name,
        "status": "ok" if len(measured) == len(repeats) else "some repeats failed",
        "metric": benchmark.metric,
        "figure": figure,
        "spread_between_repeats": (max(figures) - min(figures)) / figure,
        "place": place,
        "window": window,
    }


def ceilings(found: dict[str, list[Any]], datasheet: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Returns each benchmark as a share of its bound: another one of the same run, or the data sheet."""
    shares = []
    for name, repeats in found.items():
        amount, above = bounds_of(name)
        reached = rate(repeats, amount)
        measured = {other: rate(found.get(other, []), amount) for other in above if other != name}
        bound = next(((other, each) for other, each in measured.items() if each), None)
        if name.startswith("hbm.") and "strided" not in name and datasheet is not None:
            bound = ("the datasheet", datasheet["memory_bandwidth_bytes_per_second"])
        if reached and bound:
            shares.append({"name": name, "of": bound[0], "share": reached / bound[1]})
    return shares


def rate(repeats: Sequence[Any], amount: str) -> float | None:
    """Returns the work divided by the median time of the repeats, or None without times."""
    times = [
        median(one.measurement.values) / one.measurement.inner_iterations
        for one in repeats
        if one.status == "ok" and one.benchmark.metric not in ("bytes", "watts")
    ]
    return getattr(repeats[0].benchmark.work.count_work(), amount) / median(times) if times else None


def against_torch(
    folder: Path, patterns: Sequence[str], seconds: float
) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Returns the same calls through PyTorch, in turns with the worker's, and what ended them early.

    There is None in place of the calls without PyTorch.
    """
    out, ended = folder / "torch.json", None
    command = [sys.executable, "-m", "bench.gpu_torch", "--out", str(out), *patterns]
    try:
        done = subprocess.run(command, check=False, timeout=max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        ended = f"the comparison with PyTorch was stopped after {seconds:.0f} s"
    else:
        if done.returncode == NO_TORCH:
            return None, None
        if done.returncode:
            ended = f"the comparison with PyTorch ended with {done.returncode}"
    return json.loads(out.read_text()) if out.exists() else [], ended


def verdicts(pairs: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Requirements of the comparison with PyTorch: products and the own copy at least 98%."""
    found = []
    for pair in pairs or []:
        ratio = pair["figure"] / pair["torch_figure"]
        least = LEAST_SHARES[pair["kind"]]
        demand, passed = f"at least {least:.0%} of it", ratio >= least
        found.append({**pair, "ratio": ratio, "demand": demand, "passed": passed})
    return found


def table(
    rows: list[dict[str, Any]], pairs: list[dict[str, Any]], shares: Sequence[dict[str, Any]] = ()
) -> Iterator[str]:
    """Returns the lines of the report."""
    scale = {
        "flops_per_second": (1e12, "TFLOP/s"),
        "bytes_per_second": (1e9, "GB/s"),
        "seconds": (1e-6, "us"),
    }
    scale |= {"bytes": (2**20, "MiB"), "watts": (1.0, "W")}
    for found in rows:
        if "figure" not in found:
            yield f"{found['name']:24} {found['status']}: {found['detail']}"
            continue
        unit, symbol = scale[found["metric"]]
        yield (
            f"{found['name']:24} {found['figure'] / unit:12.2f} {symbol:8}"
            f" spread {found['spread_between_repeats']:6.2%}  {found['place']}"
        )
    for share in shares:
        doubt = "" if share["share"] <= MOST_SHARE else ": MORE THAN BOUNDS IT"
        yield f"{share['name']:34} {share['share']:8.3f} of {share['of']}{doubt}"
    for pair in pairs:
        verdict = "yes" if pair["passed"] else "NO"
        yield f"{pair['name']:24} {pair['ratio']:12.4f} of {pair['call']}: {pair['demand']}: {verdict}"


def measured(folder: Path, suite: Any, seconds: float) -> tuple[dict[str, list[Any]], str | None]:  # noqa: ANN401
    """Returns the records of a suite as the worker measures it, and what ended it early."""
    (folder / "suite.json").write_text(suite.model_dump_json())
    ended = importlib.import_module("bench.gpu_measure").measure(suite, folder, seconds)
    found = records(folder)
    if not found:
        raise MissingDependency(f"the worker wrote no record{f': {ended}' if ended else ''}")
    return found, ended


def archived(folder: Path) -> Path:
    """Writes all of a folder to one file beside it."""
    file = folder.with_name(f"{folder.name}.tar.gz")
    unfinished = file.with_suffix(".part")
    with tarfile.open(unfinished, "w:gz") as archive:
        archive.add(folder, folder.name)
    return unfinished.replace(file)


def demand(lacking: list[str]) -> None:
    if lacking:
        names = ", ".join(lacking)
        raise MissingDependency(f"{sys.executable} lacks {names}: install the package with its cuda extra")


def compared(folder: Path, suite: Any, limit: float) -> int:  # noqa: ANN401
    """Measures, compares, writes and prints; what is known is written before it is judged."""
    ends_at = time.monotonic() + limit - ENDING_SECONDS
    name = device_name()
    device = catalogued(name)
    device_id = device["id"] if device else None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        found, ended = measured(folder, suite, ends_at - time.monotonic() - COMPARISON_SECONDS)
        rows = [row(*item, device_id) for item in found.items()]
        shares = ceilings(found, device)
        comparison = {"device": name, "accelerator_id": device_id, "ended": ended}
        comparison |= {"benchmarks": rows, "ceilings": shares}
        write_comparison(folder, comparison)
        print(f"{name} ({device_id or 'not in the catalog'}); records in {folder}")
        print("\n".join(table(rows, [], shares)))
        pairs, torch_ended = against_torch(folder, list(found), ends_at - time.monotonic())
        write_comparison(folder, comparison | {"torch": pairs, "torch_ended": torch_ended})
        judged = verdicts(pairs)
        write_comparison(folder, comparison | {"torch": judged, "torch_ended": torch_ended})
    finally:
        print(f"all of it is in {archived(folder)}")
    print("\n".join(table([], judged)))
    if pairs is None:
        print("PyTorch is not installed here: nothing was compared with it")
    for line in filter(None, (ended, torch_ended)):
        print(f"gpu-suite: {line}", file=sys.stderr)
    failed = [found for found in rows if found["status"] not in ("ok", "unsupported")]
    return int(bool(failed or ended or torch_ended) or not all(pair["passed"] for pair in judged))


def write_comparison(folder: Path, comparison: dict[str, Any]) -> None:
    """Writes the figures that are known so far."""
    (folder / "comparison.json").write_text(json.dumps(comparison, indent=2))


def main() -> int:
    """Measures and compares. Returns 1 after a failure, 2 if nothing could run."""
    parser = argparse.ArgumentParser(prog="gpu-suite", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a new folder, by default below gpu-suite/")
    parser.add_argument("--suite", default="gpu-standard", help="gpu-quick, gpu-standard or gpu-deep")
    parser.add_argument("--part", type=int, help="one part of at most ten minutes, counted from 1")
    parser.add_argument("--plan", action="store_true", help="say how many parts there are and what they hold")
    parser.add_argument("--limit", type=float, default=MOST_SECONDS, help="seconds after which it ends")
    parser.add_argument("--kit", type=Path, default=gpu_kit.KIT, help="folder of carried wheels")
    parser.add_argument("patterns", nargs="*", help="names of benchmarks, such as hbm.* or gemm.bf16")
    options = parser.parse_args()
    gpu_kit.use(options.kit)
    try:
        demand(missing())
        suite = suite_of(options.suite)
        if options.plan:
            print("\n".join(planned(suite)))
            return 0
        folder = options.out or Path("gpu-suite") / f"{datetime.now(UTC):%Y%m%dt%H%M%S}"
        return compared(folder, chosen(suite, options.patterns, options.part), options.limit)
    except MissingDependency as error:
        print(f"gpu-suite: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
