"""What is shown at a terminal, and what a log holds."""

import io
import logging

import pytest
from rich.console import Console

from service.worker.figures import format_figures, format_value
from service.worker.redaction import extract_last_lines, redact_credentials, to_one_line
from service.worker.status import WorkerStatus
from service.worker.table import TableLogHandler, render_view, show_progress
from tests.worker.fake import secret
from tests.worker.records import failed, measured, suite, task


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (812.34e12, "flops_per_second", "812.3 TFLOP/s"),
        (3.35e12, "bytes_per_second", "3.35 TB/s"),
        (989e15, "flops_per_second", "989 PFLOP/s"),
        (5.12e-6, "seconds", "5.12 us"),
        (2.5e-10, "seconds", "0.25 ns"),
        (0.25, "seconds", "250 ms"),
        (512e6, "bytes", "512 MB"),
        (71.5, "watts", "71.5 W"),
        (0.0, "watts", "0 W"),
    ],
)
def test_figures_with_their_units(value, metric, text):
    assert format_value(value, metric) == text


def test_the_figure_of_repeats_is_their_median_and_says_how_far_they_lie_apart():
    assert format_figures([100e9, 104e9, 101e9], "bytes_per_second") == "101 GB/s, repeats within 4.0%"
    assert format_figures([100e9], "bytes_per_second") == "100 GB/s"


def drawn(board):
    console = Console(file=io.StringIO(), width=120)
    console.print(render_view(board.view))
    return console.file.getvalue()


def test_a_suite_as_it_runs():
    board, asked = WorkerStatus(), task()
    board.update_status(node="aaaa (cpu)", service="https://ironlaw.test: active", spool="2 waiting")
    board.start_suite(suite(), 1)
    board.start_repeat("gemm.0")
    board.record_repeat(measured(asked), is_last=False)
    board.record_repeat(measured(asked.model_copy(update={"repeat": 2})), is_last=True)
    other = asked.model_copy(update={"benchmark": suite().benchmarks[1]})
    board.start_repeat("gemm.1")
    board.record_repeat(failed(other, reason="OUT_OF_MEMORY"), is_last=True)
    board.update_status(notice="make some room")
    text = drawn(board)
    for line in ("node aaaa (cpu), idle", "2 waiting", "3 of 4 repeats", "out of memory", "make some room"):
        assert line in text
    # 2 x 64^3 operations in the median of 1.0, 1.1 and 1.2 us.
    assert "476.6 GFLOP/s, repeats within 0.0%" in text
    steps = board.progress.steps
    assert [(step.benchmark, step.state, step.repeat) for step in steps] == [
        ("gemm.0", "done", 2), ("gemm.1", "failed", 1),
    ]  # fmt: skip


def test_without_a_terminal_only_the_log_is_written():
    console = Console(file=io.StringIO(), width=100)
    board = WorkerStatus()
    board.start_suite(suite(), 1)
    with show_progress(board, console):
        board.start_repeat("gemm.0")
    assert console.file.getvalue() == ""


def test_a_log_holds_no_credential():
    console = Console(file=io.StringIO(), width=40)
    handler = TableLogHandler(console)
    try:
        int(f"Bearer {secret(1)}")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "", 0, f"with {secret(2)}", None, (type(error), error, None)
        )
    handler.emit(record)
    said = console.file.getvalue()
    assert said.count("[redacted]") == 2
    assert "ironlawnode_" not in said


@pytest.mark.parametrize(
    "text",
    [
        secret(1),
        f"Bearer {secret(1)}, and more",
        f"ironlawenrol_k3v9x2m4c7b1n5q8_{'A' * 49}",
        f"ironlaw_k3v9x2m4c7b1n5q8_{'A' * 49}",
        f"ironlawnode_k3v9x2m4c7b1n5q8_{'A' * 20}",
    ],
)
def test_credentials_are_taken_out_whole_or_cut_short(text):
    assert "[redacted]" in redact_credentials(text)
    assert "AAAA" not in redact_credentials(text)
    assert "0000000" not in redact_credentials(text)


def test_text_of_others_is_bounded_and_printable():
    assert extract_last_lines(b"a\x00b\x1b[31m\xff" + b"x" * 10_000, 100) == "x" * 100
    assert extract_last_lines(b"a\x00b\x1b[31m\xff\n", 100) == "ab[31m\ufffd\n"
    assert to_one_line("two\nlines\tand\x07 a bell" + "x" * 1000).startswith("two lines and a bell")
    assert len(to_one_line("x" * 1000)) == 500
