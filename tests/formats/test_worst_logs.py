"""The worst lines of every log format: a byte of a long line costs what one of a short line does.

A pattern that begins again at each of its heads and reads to the end of the line every time takes eight times
as long for the same bytes in lines that are eight times as long; a bound of four tells the two apart.
"""

import json
import time
from contextlib import suppress

import pytest

from service.formats.grid.entsoe import read_entsoe_prices
from service.formats.measurements import READERS
from service.formats.measurements.readings import MOST_LINES, MOST_PARTS
from service.formats.offers.listed import RowError
from service.planning.errors import PlanningError

LONG, SHORT, BYTES = 1920, 240, 200_000
LEAST_SECONDS = 0.02
"""What a short run takes beside a busy machine: below it no ratio says anything."""
REFUSED = (PlanningError, RowError, ValueError, ArithmeticError)


def seconds(read, content):
    """The least time of three readings."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        with suppress(*REFUSED):
            read(content)
        taken.append(time.perf_counter() - start)
    return min(taken)


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
def test_long_lines_of_a_log_cost_what_short_ones_do(kind, unit):
    short, long = (seconds(READERS[kind], filled(unit, length)) for length in (SHORT, LONG))
    assert long < 4.0 * max(short, LEAST_SECONDS)


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
def test_long_parts_of_a_line_cost_what_short_ones_do(kind, head, unit, tail):
    def lines(length):
        room = length - len(head) - len(tail) - 1
        return (head + (unit * room)[:room] + tail + "\n") * (BYTES // length)

    short, long = (seconds(READERS[kind], lines(length)) for length in (SHORT, LONG))
    assert long < 4.0 * max(short, LEAST_SECONDS)


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
        (READERS["nvbandwidth"], spaced_name, 20_000),
        (READERS["nvbandwidth"], summed, 2000),
        (READERS["own_csv"], own_rows, MOST_PARTS // 8),
        (READERS["llama_bench"], wide_table, MOST_PARTS // 8),
        (READERS["nsight_compute"], wide_details, 5000),
        (READERS["aiperf_csv"], lambda count: "a," * count + "Metric\n" + "a\n" * count, 5000),
        (read_entsoe_prices, open_comments, 10_000),
    ],
)
def test_seven_times_the_content_does_not_take_the_square(read, content, count):
    short, long = (seconds(read, content(times * count)) for times in (1, 7))
    assert long < 25.0 * max(short, LEAST_SECONDS / 4.0)


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
