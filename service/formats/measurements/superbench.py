"""Results and baselines of SuperBench: flat names of ``benchmark/metric`` and, in results, ``:rank``.

Units are those of its documentation: GFLOP/s of ``gemm-flops``, GB/s of ``mem-bw``, ``nccl-bw`` and
``ib-*``, milliseconds of ``kernel-launch``. A return code other than 0 says that a benchmark failed.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    build_facts,
    read_mapping,
    read_number,
    read_part_lines,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document
from service.planning.errors import PlanningError

FLOPS: Final = "flops_per_second"
BYTES: Final = "bytes_per_second"
LAUNCH: Final = "kernel_launch_seconds"
TIME: Final = "collective_seconds"

_NAME = re.compile(r"(?P<benchmark>[\w-]+?)(?::[\w.-]+)?/(?P<metric>[^:]+?)(?::(?P<rank>\d+))?")
_RULES: Final = (
    (re.compile(r"gemm-flops"), re.compile(r".*flops|.*iops"), FLOPS, 1e9),
    (re.compile(r"mem-bw|gpu-copy-bw"), re.compile(r".*_bw"), BYTES, 1e9),
    (re.compile(r"(?:nccl|rccl)-bw"), re.compile(r".*_(?:busbw|algbw)"), BYTES, 1e9),
    (re.compile(r"(?:nccl|rccl)-bw"), re.compile(r".*_time"), TIME, 1e-6),
    (re.compile(r"ib-(?:loopback|traffic)"), re.compile(r".*_bw"), BYTES, 1e9),
    (re.compile(r"kernel-launch"), re.compile(r"(?:event|wall)_time"), LAUNCH, 1e-3),
)


def measurements_from_superbench(content: str) -> FileMeasurements:
    """One run for each node of results as JSON lines, or one for a baseline; raises PlanningError else.

    Readings are ``of`` benchmark, metric and rank; names of other benchmarks are left out.
    """
    read = FileMeasurements()
    for pointer, node in _read_nodes(content):
        failed = {
            benchmark for benchmark, name, _, value in _read_figures(node) if name == "return_code" and value
        }
        for benchmark in sorted(failed):
            read.record_refusal(
                f"{pointer}/{benchmark}", RowError("TEST_FAILED", "a benchmark of the file failed")
            )
        readings = [
            FigureReading(
                f"{pointer}/{benchmark}~1{name}",
                metric,
                value * scale,
                of=_build_labels(benchmark, name, rank),
            )
            for benchmark, name, rank, value in _read_figures(node)
            if benchmark not in failed
            for whose, which, metric, scale in _RULES
            if whose.fullmatch(benchmark) and which.fullmatch(name) and value > 0.0
        ]
        named = node.get("node")
        if readings:
            read.runs.append(
                MeasuredFileRun(
                    pointer, tuple(readings), build_facts(node_name=str(named) if named else None)
                )
            )
    return require_results(read, "metrics of SuperBench that this reader knows")


def _build_labels(benchmark: str, name: str, rank: str | None) -> dict[str, str | int | float]:
    of: dict[str, str | int | float] = {"benchmark": benchmark, "metric": name}
    return of if rank is None else {**of, "rank": int(rank)}


def _read_nodes(content: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    try:
        whole = parse_document(content)
    except PlanningError:
        yield from (
            (pointer, read_mapping(parse_document(line))) for pointer, line in read_part_lines(content)
        )
        return
    yield "", read_mapping(whole)


def _read_figures(node: Mapping[str, object]) -> Iterator[tuple[str, str, str | None, float]]:
    for key, value in node.items():
        match = _NAME.fullmatch(key)
        if match is None:
            continue
        try:
            yield match["benchmark"], match["metric"], match["rank"], read_number(value)
        except RowError:
            continue
