"""The worst lines of every log format: a byte of a long line costs what one of a short line does.

A pattern that begins again at each of its heads and reads to the end of the line every time takes a hundred
times as long for the same bytes in lines that are a hundred times as long, where a linear one takes less: a
bound of ten tells the two apart. Times are of the processor.
"""

import json
from contextlib import suppress
from time import thread_time

import pytest

from service.formats.grid.entsoe import read_entsoe_prices
from service.formats.measurements import READERS, readings
from service.formats.measurements.readings import MOST_LINES, MOST_PARTS
from service.formats.offers.listed import RowError
from service.planning.errors import PlanningError

LONG, SHORT, BYTES = 24_000, 240, 200_000
PIECES, MOST_TIMES = 100, 10.0
LEAST_SECONDS = 0.002
"""Below it no ratio says anything."""
REFUSED = (PlanningError, RowError, ValueError, ArithmeticError)


@pytest.fixture
def whole_lines(monkeypatch):
    """Lines that are not cut, so that no cut hides what their length costs."""
    monkeypatch.setattr(readings, "_LONGEST_LINE", BYTES)


def seconds(read, content, times=1):
    """Processor time of so many readings, the least of three."""
    taken = []
    for _ in range(3):
        start = thread_time()
        for _ in range(times):
            with suppress(*REFUSED):
                read(content)
        taken.append(thread_time() - start)
    return max(min(taken), LEAST_SECONDS)


def filled(unit, length):
    line = (unit * (length // len(unit) + 1))[: length - 1] + "\n"
    return line * (BYTES // length)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        ("engine_log", "took 1 GB (Worker_TP1"),
        ("engine_log", "Available KV cache memory: 1 GB (Worker" + "_TP1" * 50 + "x"),
        ("engine_log", "Graph capturing finished in "),
        ("engine_log", "Load weight end."),
        ("engine_log", "Capture cuda graph end."),
        ("engine_log", "#tokens: 1, K size: 1 GB, V size: "),
        ("engine_log", " A1 KV buffer size =   "),
        ("engine_log", "1"),
        ("engine_log", " "),
        ("training_log", "step: 1 memory: "),
        ("training_log", "iteration 1/ 1 | elapsed time per iteration"),
        ("training_log", "[Rank 1] | max reserved: "),
        ("training_log", ": a ... b "),
        ("training_log", "1"),
        ("nccl_tests", "on a device 1 ["),
        ("nccl_tests", "/aaa"),
        ("nvbandwidth", "Process : Device 1: "),
        ("nvbandwidth", "1 "),
        ("nvbandwidth", "(ns)  "),
        ("dcgm_dmon", "GPU 1   "),
        ("dcgm_exporter", "a{}  1 "),
        ("mlperf_inference", "1.1 percentile latency (ns):"),
    ],
)
@pytest.mark.usefixtures("whole_lines")
def test_long_lines_of_a_log_cost_what_short_ones_do(kind, unit):
    short, long = (seconds(READERS[kind], filled(unit, length)) for length in (SHORT, LONG))
    assert long < MOST_TIMES * short


@pytest.mark.parametrize(
    ("kind", "head", "unit", "tail"),
    [
        ("nccl_tests", "#  Rank 1 Group 0 ", "on a device 1 [", ""),
        ("nccl_tests", "#  Rank 1 on a device 1 [] ", "a       ", ""),
        ("nvbandwidth", "Process ", ": Device 1: ", ""),
        ("dcgm_exporter", "DCGM_FI_DEV_POWER_USAGE{", " ", "} 1"),
        ("dcgm_exporter", "DCGM_FI_DEV_POWER_USAGE{", "a", "} 1"),
        ("engine_log", "KV cache size: 1 tokens (Worker", "_TP1", "x"),
    ],
)
@pytest.mark.usefixtures("whole_lines")
def test_long_parts_of_a_line_cost_what_short_ones_do(kind, head, unit, tail):
    def lines(length):
        room = length - len(head) - len(tail) - 1
        return (head + (unit * room)[:room] + tail + "\n") * (BYTES // length)

    short, long = (seconds(READERS[kind], lines(length)) for length in (SHORT, LONG))
    assert long < MOST_TIMES * short


def spaced_name(count):
    return json.dumps({"nvbandwidth": {"GPU Device list": ["a" + " " * count + "b"]}})


def summed(count):
    return "Running x\n(GB/s)\n" + "0 1 1 1 1\n" * count + "SUM x 1\n" * count


def own_rows(count):
    return "metric,value,run\n" + "step_seconds,1,a\n" * count


def wide_table(count):
    return "a," * count + "n_prompt,avg_ts\n" + "a\n" * count


def wide_details(count):
    names = "ID,Kernel Name,Section Name,Metric Name,Metric Unit,Metric Value"
    return "a," * count + names + "\n" + "a\n" * count


def open_comments(count):
    return "<a>" + "<!--" * count


@pytest.mark.parametrize(
    ("read", "content", "count"),
    [
        (READERS["nvbandwidth"], spaced_name, 140_000),
        (READERS["nvbandwidth"], summed, 14_000),
        (READERS["own_csv"], own_rows, MOST_PARTS * 7 // 8),
        (READERS["llama_bench"], wide_table, MOST_PARTS * 7 // 8),
        (READERS["nsight_compute"], wide_details, 35_000),
        (READERS["aiperf_csv"], lambda count: "a," * count + "Metric\n" + "a\n" * count, 35_000),
        (read_entsoe_prices, open_comments, 70_000),
    ],
)
def test_a_file_costs_what_a_hundred_of_a_hundredth_do(read, content, count):
    pieces = seconds(read, content(count // PIECES), PIECES)
    assert seconds(read, content(count)) < MOST_TIMES * pieces


@pytest.mark.parametrize(
    ("kind", "content", "code"),
    [
        ("engine_log", "\n" * (MOST_LINES + 1), "TOO_MANY_LINES"),
        ("training_log", "x\n" * (MOST_LINES + 1), "TOO_MANY_LINES"),
        ("aiperf_csv", "a\r" * (MOST_LINES + 1), "TOO_MANY_LINES"),
        ("own_csv", own_rows(MOST_PARTS), "TOO_MANY_LINES"),
        ("superbench", "{}\n" * (MOST_PARTS + 1), "TOO_MANY_LINES"),
        ("guidellm", json.dumps({"benchmarks": [{}] * (MOST_PARTS + 1)}), "TOO_MANY_PARTS"),
        ("llama_bench", json.dumps([{}] * (MOST_PARTS + 1)), "TOO_MANY_PARTS"),
        ("inferencex", json.dumps([{}] * (MOST_PARTS + 1)), "TOO_MANY_PARTS"),
    ],
)
def test_more_than_a_file_may_hold_is_refused(kind, content, code):
    with pytest.raises(PlanningError) as refused:
        READERS[kind](content)
    assert (refused.value.code, refused.value.pointer) == (code, "/content")
