"""`make gpu-suite`: every benchmark of an accelerator, against what was published and against PyTorch.

Needs a machine with an NVIDIA GPU and, in the interpreter that runs it, the package's dependencies and its
`cuda` extra. PyTorch is compared with where it is installed. Writes records, `summary.json` and
`comparison.json` to a folder and prints a short table.
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
MAIN = "from service.cli import main; main()"
GEMM_TOLERANCE = 0.02
COPY_SHARE = 0.92
NO_TORCH = 3


class NotHere(Exception):
    """What this machine or this interpreter lacks, in one line."""


def missing() -> list[str]:
    """Packages that this interpreter lacks, by the name to install them by."""
    lacking = []
    for module, package in NEEDED.items():
        try:
            importlib.import_module(module)
        except ImportError:
            lacking.append(package)
    return list(dict.fromkeys(lacking))


def device_name() -> str:
    """What the driver calls the first accelerator."""
    nvml = importlib.import_module("service.worker.nvml")
    unsupported = importlib.import_module("service.worker.benchmark").Unsupported
    try:
        with nvml.opened() as bindings:
            return nvml.text(bindings.nvmlDeviceGetName(nvml.device(bindings, 0)))
    except unsupported as error:
        raise NotHere(f"no NVIDIA GPU: {error}") from None


def accelerator_id(name: str) -> str | None:
    """Id in the catalog of a device by its name or an alias; None for one that is not there."""
    text = files("service.catalog.accelerators").joinpath("shipped.json").read_text("utf-8")
    for entry in json.loads(text):
        if name in (entry["name"], *entry["aliases"]):
            return entry["id"]
    return None


def chosen(patterns: Sequence[str], folder: Path) -> str:
    """The suite, or a file of the part of it whose names match."""
    suite = importlib.import_module("service.protocol.suites").shipped_suites()["gpu-standard"]
    if not patterns:
        return "gpu-standard"
    kept = [b for b in suite.benchmarks if any(fnmatch.fnmatch(b.name, pattern) for pattern in patterns)]
    if not kept:
        raise NotHere(f"no benchmark is called {' or '.join(patterns)}")
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
    """Where a figure lies, in a word, and the window of the device."""
    window = next((w for w in benchmark.windows if w.accelerator_id == device), None)
    if window is None:
        return "no window", None
    low = window.model_dump().get("low", 0.0)
    place = "below" if figure < low else "above" if figure > window.high else "inside"
    return place + (" (provisional)" if window.is_provisional else ""), window.model_dump(mode="json")


def row(name: str, repeats: list[Any], device: str | None) -> dict[str, Any]:
    """One benchmark: its figure over the repeats, their spread, its place in the window."""
    benchmark = repeats[0].benchmark
    measured = [repeat for repeat in repeats if repeat.status == "ok"]
    if not measured:
        failure = repeats[0].failure
        return {"name": name, "status": repeats[0].status, "detail": f"{failure.reason}: {failure.detail}"}
    figures = [
        benchmark.figure(repeat.measurement.values, inner_iterations=repeat.measurement.inner_iterations)
        for repeat in measured
    ]
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


def against_torch(folder: Path, patterns: Sequence[str]) -> list[dict[str, Any]] | None:
    """The same calls through PyTorch, in turns with the worker's in one process; None without PyTorch."""
    command = [sys.executable, "-m", "bench.gpu_torch", "--out", str(folder / "torch.json")]
    done = subprocess.run([*command, *patterns], check=False)
    if done.returncode == NO_TORCH:
        return None
    if done.returncode:
        raise NotHere(f"the comparison with PyTorch ended with {done.returncode}")
    return json.loads((folder / "torch.json").read_text())


def verdicts(pairs: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """What the comparison with PyTorch has to show: products within 2%, the own copy at least 92%."""
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


def table(rows: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> Iterator[str]:
    """Lines for people."""
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
    for pair in pairs:
        verdict = "yes" if pair["passed"] else "NO"
        yield f"{pair['name']:24} {pair['ratio']:12.4f} of {pair['call']}: {pair['demand']}: {verdict}"


def measured(folder: Path, patterns: Sequence[str]) -> dict[str, list[Any]]:
    """Run the suite by the worker's own command; what it wrote is the result, whatever its status says."""
    suite = chosen(patterns, folder)
    command = [sys.executable, "-c", MAIN, "worker", "measure", "--suite", suite, "--out", str(folder)]
    subprocess.run(command, check=False)
    found = records(folder)
    if not found:
        raise NotHere("the worker wrote no record")
    return found


def _demand(lacking: list[str]) -> None:
    if lacking:
        names = ", ".join(lacking)
        raise NotHere(f"{sys.executable} lacks {names}: install the package with its cuda extra")


def main() -> int:
    """Measure, compare, write, print: 1 if something failed or fell short, 2 if nothing could run."""
    parser = argparse.ArgumentParser(prog="gpu-suite", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a new folder, by default below gpu-suite/")
    parser.add_argument("patterns", nargs="*", help="names of benchmarks, such as hbm.* or gemm.bf16")
    options = parser.parse_args()
    try:
        _demand(missing())
        name = device_name()
        folder = options.out or Path("gpu-suite") / f"{datetime.now(UTC):%Y%m%dt%H%M%S}"
        folder.mkdir(parents=True, exist_ok=True)
        device = accelerator_id(name)
        rows = [row(*item, device) for item in measured(folder, options.patterns).items()]
        pairs = against_torch(folder, options.patterns)
    except NotHere as error:
        print(f"gpu-suite: {error}", file=sys.stderr)
        return 2
    judged = verdicts(pairs)
    comparison = {"device": name, "accelerator_id": device, "benchmarks": rows, "torch": judged}
    (folder / "comparison.json").write_text(json.dumps(comparison, indent=2))
    print(f"{name} ({device or 'not in the catalog'}); records in {folder}")
    print("\n".join(table(rows, judged)))
    if pairs is None:
        print("PyTorch is not installed here: nothing was compared with it")
    failed = [found for found in rows if found["status"] not in ("ok", "unsupported")]
    return int(bool(failed) or not all(pair["passed"] for pair in judged))


if __name__ == "__main__":
    sys.exit(main())
