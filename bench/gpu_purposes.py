"""`make gpu-purposes`: why each benchmark of an accelerator is measured; writes docs/gpu-purposes.md.

No purpose is declared. Constants are those whose calibration rests on a benchmark where every benchmark reads
what planning estimates, on any of :data:`DEVICES`. Bounds are :data:`bench.gpu_suite.CEILINGS`. Validation is
asked: a benchmark validates another one if its figure changes what the rules find of the other.
"""

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from bench.gpu_planned import Planned, device, find_scaled_format
from bench.gpu_suite import bounds_of, suite_of
from service.benchmarks.validation.case import SiblingResult
from service.benchmarks.validation.cross_metric import check_cross_metric
from service.benchmarks.verdicts import RuleFinding
from service.calibrations.fitting import BenchmarkObservation, compute_figures
from service.calibrations.fitting.device import FORMATS
from service.planning.precision import NumberFormat
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import AttentionWork, GemmWork
from service.protocol.work.products import BlockScaledGemmWork

DEVICES: Final = ("a100-sxm-80gb", "h100-sxm", "b200-sxm", "l4")
"""Devices of the generations that data centers have, and one whose products are bound otherwise."""
PURPOSEFUL: Final = ("gpu-quick", "gpu-standard")
"""Suites in which every benchmark has a purpose."""
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "gpu-purposes.md"
BELOW_LIMIT: Final = 0.9
"""Share of its limit that a device draws: one at its limit does not tell what products would draw."""
EXTREMES: Final = (1e-30, 1e30)


class Purpose(NamedTuple):
    """Purposes of one benchmark of a suite."""

    constants: tuple[str, ...] = ()
    """Constants of a calibration that its figure moves."""
    instead: tuple[str, ...] = ()
    """Constants that it moves where the back ends that would are missing."""
    bounds: tuple[str, ...] = ()
    """Benchmarks with a purpose that cannot be faster."""
    validates: tuple[str, ...] = ()
    """Benchmarks with a purpose whose verdict depends on its figure."""

    @property
    def estimates(self) -> tuple[str, ...]:
        """Estimates that its constants move. Costs and bills follow from throughput."""
        return tuple(sorted({get_estimate(name) for name in (*self.constants, *self.instead)}))


def get_estimate(constant: str) -> str:
    """Returns the estimate that a constant moves first."""
    if constant in ("memory_bytes", "context_bytes"):
        return "memory"
    return "utility bill" if constant.startswith("power.") else "throughput"


@cache
def find_purposes(suite_id: str) -> dict[str, Purpose]:
    """Returns the purposes of every benchmark of a suite."""
    benchmarks = suite_of(suite_id).benchmarks
    found = {name: Purpose(constants) for name, constants in find_constants(benchmarks).items()}
    found |= {name: Purpose(instead=names) for name, names in find_stand_ins(benchmarks, found).items()}
    rest = [one for one in benchmarks if one.name not in found]
    alone = {one.name: find_failed(one, None, 1.0) for one in benchmarks}
    while added := {one.name: held for one in rest if any(held := hold(one, benchmarks, found, alone))}:
        found |= added
        rest = [one for one in rest if one.name not in found]
    return {one.name: found.get(one.name, Purpose()) for one in benchmarks}


def hold(
    one: Benchmark, benchmarks: Sequence[Benchmark], known: Container[str], alone: Mapping[str, set[str]]
) -> Purpose:
    """Returns what a benchmark bounds and validates among those with a known purpose."""
    others = [each for each in benchmarks if each.name in known]
    return Purpose(
        bounds=tuple(each.name for each in others if one.name in bounds_of(each.name)[1]),
        validates=tuple(
            each.name
            for each in others
            if any(find_failed(each, one, figure) - alone[each.name] for figure in EXTREMES)
        ),
    )


def find_constants(benchmarks: Sequence[Benchmark]) -> dict[str, tuple[str, ...]]:
    """Returns the constants that rest on each benchmark of a suite that was measured whole."""
    found: dict[str, set[str]] = {}
    for name in DEVICES:
        planned = plan_device(name)
        observed = [observe(planned, one) for one in benchmarks if is_supported(planned, one)]
        for figure in compute_figures(observed, planned.device).figures:
            for benchmark in figure.rests_on.benchmarks:
                found.setdefault(benchmark, set()).add(figure.name)
    return {name: tuple(sorted(each)) for name, each in found.items()}


@cache
def plan_device(name: str) -> Planned:
    """Returns a device of the catalog as planning estimates it."""
    return Planned(device(name))


def find_stand_ins(benchmarks: Sequence[Benchmark], known: Container[str]) -> dict[str, tuple[str, ...]]:
    """Returns the constants that each further back end moves, were those before it not installed."""
    found: dict[str, tuple[str, ...]] = {}
    rest = [one for one in benchmarks if isinstance(one.work, AttentionWork) and one.name not in known]
    while rest and (added := find_constants(rest)):
        found |= added
        rest = [one for one in rest if one.name not in added]
    return found


def is_supported(planned: Planned, benchmark: Benchmark) -> bool:
    """Returns true if a device multiplies in the format of a benchmark."""
    work, known = benchmark.work, planned.machine.peak_flops_per_second
    if isinstance(work, BlockScaledGemmWork):
        # Multipliers that apply scales of short blocks came with those of 4 bits, in place of blocks of 128.
        applies = NumberFormat.FP4 in known
        return find_scaled_format(work) in known and applies is (work.number_format != "fp8_blocks")
    return not isinstance(work, GemmWork) or FORMATS[work.dtype] in known


def observe(planned: Planned, benchmark: Benchmark) -> BenchmarkObservation:
    """Returns a benchmark as it would read on a device, below its power limit."""
    figure = planned.figure(benchmark.work, benchmark.metric)
    if benchmark.metric == "watts":
        figure = min(figure, BELOW_LIMIT * (planned.device.power_limit_watts or figure))
    warmup = get_warmup(benchmark)
    one = (benchmark.name, benchmark.work, benchmark.metric, warmup, (figure,), figure, figure)
    return BenchmarkObservation(*one, ("result",), ("run",))


def find_failed(benchmark: Benchmark, other: Benchmark | None, figure: float) -> set[str]:
    """Returns the rules that a benchmark fails beside the figure of another one."""
    case: Any = SimpleNamespace(
        is_accelerator=not benchmark.work.is_on_host,
        work=benchmark.work,
        result=SimpleNamespace(benchmark=benchmark),
        measurement=SimpleNamespace(warmup_seconds=get_warmup(benchmark)),
        figure=1.0,
        bytes_per_second=1.0,
        accelerator=None,
        telemetry=SimpleNamespace(energy_power_watts=1.0, pcie_generation=None, pcie_width=None),
        device_siblings=[build_sibling(other, figure)] if other else [],
    )
    return {one.rule for one in check_cross_metric(case) if isinstance(one, RuleFinding)}


def get_warmup(benchmark: Benchmark) -> float:
    """Returns the longest warm-up of a benchmark."""
    return max(benchmark.sampling.warmup_seconds, benchmark.sampling.most_warmup_seconds)


def build_sibling(benchmark: Benchmark, figure: float) -> SiblingResult:
    """Returns a result of a benchmark, of the same attempt as another."""
    now = datetime.now(UTC)
    warmup = get_warmup(benchmark)
    return SiblingResult(benchmark.name, 1, benchmark.work, benchmark.metric, figure, 0, warmup, now, now)


MOST_NAMES: Final = 3
_INTRODUCTION: Final = """# Purposes of the benchmarks of an accelerator

`make gpu-purposes` writes this page, `tests/worker/cuda/test_gpu_purposes.py` holds it. A benchmark of
`gpu-quick` and `gpu-standard` moves a constant of a calibration, bounds a benchmark that does, or
decides whether the figure of one is accepted. What does none of it is in `gpu-deep` alone: controls of
correctness, and what a person wants to know of a device.

Purposes are read off the code. A benchmark **moves** the constants that rest on it where every benchmark
of its suite reads what planning estimates, on one of
{devices}.
A back end of attention that moves none beside another may where that is not installed. A benchmark **bounds**
what `make gpu-suite` holds against it, and **validates** results whose verdict depends on its figure. A
constant moves the estimate that is named, and the costs and bills that follow from it.
"""


def write_page() -> str:
    """Returns the page."""
    lines = [_INTRODUCTION.format(devices=", ".join(f"`{name}`" for name in DEVICES))]
    for suite_id in PURPOSEFUL:
        lines += write_table(suite_id)
    return "\n".join(lines)


def write_table(suite_id: str) -> Iterator[str]:
    """Returns the lines of the table of a suite."""
    suite, purposes = suite_of(suite_id), find_purposes(suite_id)
    yield f"## {suite_id}\n"
    yield f"{suite.planned_seconds:.0f} s planned.\n"
    yield "| benchmark | seconds | estimate | moves, bounds or validates |"
    yield "|---|---:|---|---|"
    for one in suite.benchmarks:
        purpose = purposes[one.name]
        cells = [f"`{one.name}`", f"{one.planned_seconds('cuda'):.0f}", ", ".join(purpose.estimates) or "-"]
        yield f"| {' | '.join([*cells, describe(purpose)])} |"
    yield ""


def describe(purpose: Purpose) -> str:
    """Returns the purposes of a benchmark in words."""
    if purpose.constants:
        return join_names(purpose.constants, len(purpose.constants))
    if purpose.instead:
        return f"{join_names(purpose.instead)} where other back ends are missing"
    parts = {"bounds": purpose.bounds, "validates": purpose.validates}
    return "; ".join(f"{word} {join_names(names)}" for word, names in parts.items() if names) or "-"


def join_names(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Returns a few names, and how many more there are."""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def main() -> None:
    """Writes the page."""
    PAGE.write_text(write_page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(PAGE.parents[1])}\n")


if __name__ == "__main__":
    main()
