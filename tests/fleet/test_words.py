"""Words and numbers of the pages: units of their size, signs, ages, reasons."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.fleet import words

TIME = datetime(2026, 11, 28, 12, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (3.0234e12, "bytes_per_second", "3.02 TB/s"),
        (55.07e9, "bytes_per_second", "55.1 GB/s"),
        (999.9e9, "bytes_per_second", "1,000 GB/s"),
        (989e12, "flops_per_second", "989 TFLOP/s"),
        (2.14e-6, "seconds", "2.14 µs"),
        (85_520_809_984, "bytes", "79.6 GiB"),
        (693.4, "watts", "693 W"),
        (4.12e-11, "joules_per_byte", "41.2 pJ/B"),
        (0.305, "share", "30.5 %"),
        (4096.0, "tokens", "4,096 tokens"),
    ],
)
def test_figures_are_in_the_unit_of_their_size(value, unit, shown):
    assert words.format_figure(value, unit).replace("\N{NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (-0.141, "\N{MINUS SIGN}14%"),
        (0.25, "+25%"),
        (-0.0504, "\N{MINUS SIGN}5.0%"),
        (0.0003, "0.0%"),
        (12.0, "+1,200%"),
    ],
)
def test_changes_have_their_sign(change, shown):
    assert words.format_change(change) == shown


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(seconds=3), "less than a minute ago"),
        (timedelta(seconds=95), "1 min ago"),
        (timedelta(hours=1, minutes=59), "119 min ago"),
        (timedelta(hours=30), "30 hours ago"),
        (timedelta(days=3), "25 November 2026, 12:00 UTC"),
    ],
)
def test_ages_end_after_two_days(age, shown):
    assert f">{shown}</time>" in words.format_ago(TIME - age, TIME)
    assert words.format_ago((TIME - age).isoformat(), TIME) == words.format_ago(TIME - age, TIME)


def test_a_range_has_its_unit_once():
    low, high = (words.format_figure(value, "bytes_per_second") for value in (2.5e12, 2.51e12))
    assert words.format_range(low, high) == "2.50 to 2.51\N{NO-BREAK SPACE}TB/s"
    assert words.format_range(low, low) == ""


REASON = re.compile(r'(?:reason=|RunEnding\("\w+", |(?:Error|Short|Result|Failed): )"([A-Z_]+)"')


@pytest.mark.parametrize(
    ("paths", "words_of"),
    [
        (("service/nodes/leases.py", "service/worker/agent.py"), words._RUN_REASONS),
        (("service/worker/running.py", "service/worker/measure.py"), words._RESULT_REASONS),
    ],
)
def test_every_reason_of_the_service_and_the_worker_has_words(paths, words_of):
    """A code that is new in the code gets a sentence."""
    written = {reason for path in paths for reason in REASON.findall((ROOT / path).read_text())}
    assert len(written) >= 6
    assert written - words_of.keys() == set()


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"status": "unsupported"}, "The device or its software does not support it"),
        ({"status": "timeout"}, "It took too long and was stopped"),
        ({"status": "failed"}, "It failed"),
        ({"status": "failed", "reason": "OUT_OF_MEMORY"}, "Memory ran out"),
        ({"status": "failed", "reason": "NEVER_HEARD_OF"}, "Never heard of"),
    ],
)
def test_failures_are_told_in_words(result, said):
    assert words.describe_failure(result) == said
