"""`make gpu-suite`: the benchmarks of an accelerator, against what was published, their ceilings and PyTorch.

Needs a machine with an NVIDIA GPU and, in the interpreter that runs it, the package's dependencies and its
`cuda` extra. PyTorch is compared with where it is installed. Writes records, `summary.json` and
`comparison.json` to a folder and prints a short table. Where a machine is there for minutes only, the suite
is run in parts that are planned to take no longer.
"""

import argparse
import fnmatch
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

NEEDED = {
    "numpy": "numpy",
    "pydantic": "pydantic",
    "httpx": "httpx",
    "typer": "typer",
    "rich": "rich",
    "pynvml": "nvidia-ml-py",
    "cuda.bindings.driver": "cuda-bindings",
    "cuda.bindings.nvrtc": "cuda-bindings",
    "nvmath.bindings.cublasLt": "nvmath-python",
}
CEILINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "attention.prefill_": ("flops", ("attention.prefill_flash", "attention.prefill_cudnn", "gemm.bf16")),
    "attention.decode_": ("moved_bytes", ("hbm.read",)),
    "training.": ("flops", ("gemm.bf16",)),
    "decode.": ("moved_bytes", ("hbm.read",)),
    "optimizer.": ("moved_bytes", ("hbm.triad", "hbm.copy")),
    "gradients.": ("moved_bytes", ("hbm.triad", "hbm.copy")),
    "occupancy.": ("moved_bytes", ("hbm.copy",)),
    "gemm_skinny.": ("moved_bytes", ("hbm.read",)),
    "gemm_shape.": ("flops", ("gemm.bf16",)),
    "peer.one_way_kernel": ("moved_bytes", ("peer.one_way_copy_engine",)),
    "peer.both_kernel": ("moved_bytes", ("peer.both_copy_engine",)),
    "divergence.": ("flops", ("divergence.1",)),
    "bank_conflict.": ("moved_bytes", ("bank_conflict.1",)),
    "concurrent.gemm.bf16": ("flops", ("gemm.bf16",)),
    "concurrent.hbm.copy": ("moved_bytes", ("hbm.copy",)),
    "concurrent.link.h2d": ("moved_bytes", ("link.h2d",)),
}
"""Bound of benchmarks by prefix of their name: the amount that counts, and the first measured bound."""
MAIN = "from service.cli.main import main; main()"
PART_SECONDS = 420.0
"""Planned seconds of a part, so that it ends within ten minutes with its bounds and the comparison."""
GEMM_TOLERANCE = 0.02
COPY_SHARE = 0.92
MOST_SHARE = 1.05
"""Share of the bound of a figure above which one of the two is wrong."""
NO_TORCH = 3


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
    nvml = importlib.import_module("service.worker.nvml")
    unsupported = importlib.import_module("service.worker.benchmark").Unsupported
    try:
        with nvml.open_nvml() as bindings:
            return nvml.decode_text(bindings.nvmlDeviceGetName(nvml.get_handle(bindings, 0)))
    except unsupported as error:
        raise MissingDependency(f"no NVIDIA GPU: {error}") from None


def catalogued(name: str) -> dict[str, Any] | None:
    """Returns a device of the catalog by its name or an alias, or None."""
    text = files("service.catalog.accelerators").joinpath("shipped.json").read_text("utf-8")
    for entry in json.loads(text):
        if name in (entry["name"], *entry["aliases"]):
            return entry
    return None


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
    return [*(one for one in suite_of("gpu-standard").benchmarks if one.name in bounds), *kept]


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


def chosen(suite: Any, patterns: Sequence[str], part: int | None, folder: Path) -> str:  # noqa: ANN401
    """Returns the suite, or a file with its benchmarks that match a name or belong to one part."""
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
    if len(kept) == len(suite.benchmarks):
        return suite.id
    file = folder / "suite.json"
    file.write_text(suite.model_copy(update={"benchmarks": kept}).model_dump_json())
    return str(file)


def records(folder: Path) -> dict[str, list[Any]]:
    """Every record of a run, by benchmark."""
    result = importlib.import_module("service.protocol.results").Result
    found = {}
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
    return record.benchmark.compute_figure(measurement.values, inner_iterations=measurement.inner_iterations)


def row(name: str, repeats: list[Any], device: str | None) -> dict[str, Any]:
    """One benchmark: its figure over the repeats, their spread, its place in the window."""
    benchmark = repeats[0].benchmark
    measured = [repeat for repeat in repeats if repeat.status == "ok"]
    if not measured:
        failure = repeats[0].failure
        return {"name": name, "status": repeats[0].status, "detail": f"{failure.reason}: {failure.detail}"}
    beside = {}
    for repeat in measured:
        beside.setdefault(repeat.repeat, []).append(figure_of(repeat))
    # If accelerators measured at once, the slowest counts for the node.
    figures = [(min if benchmark.direction == "higher" else max)(each) for each in beside.values()]
    figure = median(figures)
    place, window = against_window(benchmark, figure, device)
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


def against_torch(folder: Path, patterns: Sequence[str]) -> list[dict[str, Any]] | None:
    """Returns the same calls through PyTorch, in turns with the worker's, or None without PyTorch."""
    command = [sys.executable, "-m", "bench.gpu_torch", "--out", str(folder / "torch.json")]
    done = subprocess.run([*command, *patterns], check=False)
    if done.returncode == NO_TORCH:
        return None
    if done.returncode:
        raise MissingDependency(f"the comparison with PyTorch ended with {done.returncode}")
    return json.loads((folder / "torch.json").read_text())


def verdicts(pairs: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Requirements of the comparison with PyTorch: products within 2%, the own copy at least 92%."""
    found = []
    for pair in pairs or []:
        ratio = pair["figure"] / pair["torch_figure"]
        if pair["kind"] == "gemm":
            passed = abs(ratio - 1) <= GEMM_TOLERANCE
            demand = "within 2% of PyTorch"
        else:
            passed = ratio >= COPY_SHARE
            demand = "at least 92% of the best copy"
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


def measured(folder: Path, suite: str) -> dict[str, list[Any]]:
    """Runs a suite by the worker's own command. Its output is the result, regardless of its exit status."""
    command = [sys.executable, "-c", MAIN, "worker", "measure", "--suite", suite, "--out", str(folder)]
    subprocess.run(command, check=False)
    found = records(folder)
    if not found:
        raise MissingDependency("the worker wrote no record")
    return found


def _demand(lacking: list[str]) -> None:
    if lacking:
        names = ", ".join(lacking)
        raise MissingDependency(f"{sys.executable} lacks {names}: install the package with its cuda extra")


def main() -> int:
    """Measures, compares, writes and prints. Returns 1 after a failure, 2 if nothing could run."""
    parser = argparse.ArgumentParser(prog="gpu-suite", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a new folder, by default below gpu-suite/")
    parser.add_argument("--suite", default="gpu-standard", help="gpu-quick, gpu-standard or gpu-deep")
    parser.add_argument("--part", type=int, help="one part of at most ten minutes, counted from 1")
    parser.add_argument("--plan", action="store_true", help="say how many parts there are and what they hold")
    parser.add_argument("patterns", nargs="*", help="names of benchmarks, such as hbm.* or gemm.bf16")
    options = parser.parse_args()
    try:
        if options.plan:
            print("\n".join(planned(suite_of(options.suite))))
            return 0
        _demand(missing())
        name = device_name()
        folder = options.out or Path("gpu-suite") / f"{datetime.now(UTC):%Y%m%dt%H%M%S}"
        folder.mkdir(parents=True, exist_ok=True)
        device = catalogued(name)
        device_id = device and device["id"]
        suite = chosen(suite_of(options.suite), options.patterns, options.part, folder)
        found = measured(folder, suite)
        rows = [row(*item, device_id) for item in found.items()]
        pairs = against_torch(folder, list(found))
    except MissingDependency as error:
        print(f"gpu-suite: {error}", file=sys.stderr)
        return 2
    judged, shares = verdicts(pairs), ceilings(found, device)
    comparison = {
        "device": name, "accelerator_id": device_id, "benchmarks": rows, "ceilings": shares, "torch": judged,
    }  # fmt: skip
    (folder / "comparison.json").write_text(json.dumps(comparison, indent=2))
    print(f"{name} ({device_id or 'not in the catalog'}); records in {folder}")
    print("\n".join(table(rows, judged, shares)))
    if pairs is None:
        print("PyTorch is not installed here: nothing was compared with it")
    failed = [found for found in rows if found["status"] not in ("ok", "unsupported")]
    return int(bool(failed) or not all(pair["passed"] for pair in judged))


if __name__ == "__main__":
    sys.exit(main())
