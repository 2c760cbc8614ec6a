"""Observations of one device, built from the results of its last runs of each benchmark."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from service.benchmarks.tables import BenchmarkResultRow
from service.calibrations.fitting import BenchmarkObservation
from service.calibrations.fitting.observations import join_conditions
from service.protocol.suites import Benchmark, BenchmarkSuite

RUNS_READ = 5
"""Most runs that are used. A device changes with firmware and age; its last runs show its current state."""
_CONDITIONS = (
    "library",
    "algorithm",
    "math_mode",
    "data",
    "timer",
    "worker_version",
    "concurrent_accelerators",
    "uses_graph",
    "sm_clock_hz",
    "memory_clock_hz",
    "cpu_clock_hz",
    "temperature_celsius",
    "power_watts",
    "energy_power_watts",
    "throttle_sw_power_cap_seconds",
    "throttle_sw_thermal_seconds",
    "throttle_hw_thermal_seconds",
    "window_seconds",
    "threads",
)


class _BenchmarkKey(NamedTuple):
    """Key of one benchmark: its name, work and metric."""

    benchmark: str
    work_sha256: str
    metric: str


def build_observations(
    rows: Sequence[BenchmarkResultRow], suites: Mapping[str, BenchmarkSuite]
) -> Iterator[BenchmarkObservation]:
    """Yields the observations of one device from its results in order of receipt, by suite of each run.

    Of a benchmark whose size was reduced in some of the runs, those of the largest size count.
    """
    groups: dict[_BenchmarkKey, dict[str, list[BenchmarkResultRow]]] = {}
    for row in rows:
        runs = groups.setdefault(_BenchmarkKey(row.benchmark, row.work_sha256, row.metric), {})
        runs.setdefault(row.run_id, []).append(row)
    measured: dict[tuple[str, str], dict[int, list[BenchmarkObservation]]] = {}
    for key, runs in groups.items():
        benchmark = suites[next(reversed(runs))].find_benchmark(key.benchmark)
        if benchmark is not None:
            sizes = benchmark.map_sizes()
            halvings = list(sizes).index(key.work_sha256) if key.work_sha256 in sizes else 0
            size = sizes.get(key.work_sha256, benchmark)
            one = _build_observation(size, dict(list(runs.items())[-RUNS_READ:]))
            by_size = measured.setdefault((key.benchmark, key.metric), {})
            by_size.setdefault(halvings, []).append(one)
    for by_size in measured.values():
        yield from by_size[min(by_size)]


def _build_observation(
    benchmark: Benchmark, runs: Mapping[str, Sequence[BenchmarkResultRow]]
) -> BenchmarkObservation:
    used = [_select_last_attempt(rows) for rows in runs.values()]
    repeats = [_list_repeat_figures(rows, benchmark.direction) for rows in used]
    rows = [row for of_run in used for row in of_run]
    return BenchmarkObservation(
        benchmark=benchmark.name,
        work=benchmark.work,
        metric=benchmark.metric,
        warmup_seconds=max(benchmark.sampling.warmup_seconds, benchmark.sampling.most_warmup_seconds),
        figures=tuple(median(figures) for figures in repeats),
        low=min(min(figures) for figures in repeats),
        high=max(max(figures) for figures in repeats),
        result_ids=tuple(row.id for row in rows),
        run_ids=tuple(runs),
        conditions=join_conditions([_select_conditions(row.conditions) for row in rows]),
    )


def _select_last_attempt(rows: Sequence[BenchmarkResultRow]) -> list[BenchmarkResultRow]:
    last = max(row.fencing_token for row in rows)
    return [row for row in rows if row.fencing_token == last]


def _list_repeat_figures(rows: Iterable[BenchmarkResultRow], direction: str) -> list[float]:
    """Returns the figure of each repeat; the worst where several devices measured it at once."""
    repeats: dict[int, list[float]] = {}
    for row in rows:
        if row.figure is not None:
            repeats.setdefault(row.repeat, []).append(row.figure)
    worst = min if direction == "higher" else max
    return [worst(figures) for figures in repeats.values()]


def _select_conditions(stored: Mapping[str, Any]) -> dict[str, float | str]:
    known = {name: stored[name] for name in _CONDITIONS if name in stored}
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in known.items()}
