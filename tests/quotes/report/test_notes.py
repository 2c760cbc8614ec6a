"""What somebody who signs has to see stands above the charts: what is left out, warnings, assumptions."""

import html
import re

from service.kit.http.html import format_moment
from service.quotes.report.service import render_report
from tests.asking import usd
from tests.quotes.reading import SERVED, TRAINED, UNKNOWN, quoted


def above(text):
    """The text of a report up to its first chart."""
    return html.unescape(text.partition("<svg")[0].partition("<body>")[2])


def listed(text, caption):
    """What is listed under a caption above the charts."""
    found = re.search(rf"<h3>{caption}</h3>\n<ul>\n(.*?)</ul>", above(text), flags=re.DOTALL)
    return re.findall("<li>(.*?)</li>", found.group(1)) if found else []


def test_total_what_is_left_out_and_what_it_rests_on_stand_above_the_charts():
    quote = quoted(TRAINED)
    text = render_report(quote)
    first = above(text)
    assert first.index("Headlines") < first.index("Omissions") < first.index("Warnings")
    left_out = listed(text, "Omissions")
    assert left_out[0] == "The total counts the charges of the run without electricity."
    assert "Market-based emissions: no contract or certificate of the electricity is known." in left_out
    assert len(left_out) == 1 + len(quote["gaps"])
    assert listed(text, "Warnings") == ["The total is the rent; break-even sets rent against purchase."]
    assert f"revision {quote['catalog_revision']} of the catalog" in first
    assert f"version {quote['method_version']} of the formulas" in first
    assert str(format_moment(quote["valid_until"])) in first


def test_assumptions_are_what_the_question_says_or_leaves_to_the_service():
    trained = listed(render_report(quoted(TRAINED)), "Assumptions")
    layout = quoted(TRAINED)["answers"]["throughput"]["parallelism"]
    degrees = [f"{name} {layout[name]}" for name in ("tensor", "pipeline", "data") if layout[name] != 1]
    assert trained == [
        f"The layout is chosen by the service: {', '.join(degrees)}.",
        "No device fails, and nothing is restarted.",
        "No checkpoint is written.",
        "The devices never wait for data.",
    ]
    given = {**TRAINED, "efficiency": {"source": "assumed", "utilization": 0.4}}
    given["parallelism"] = {"tensor": 8, "data": 128, "sharding": "zero_3"}
    given["workload"] = {**TRAINED["workload"], "reliability": {}, "checkpointing": {"stall_seconds": 1.0}}
    assert listed(render_report(quoted(given)), "Assumptions") == [
        "The utilization of 40\N{NO-BREAK SPACE}% is given, not estimated.",
        "The devices never wait for data.",
    ]
    assert len(listed(render_report(quoted(SERVED)), "Assumptions")) == 2
    spot = {**TRAINED, "rental": {**TRAINED["rental"], "spot": {"interruptions_per_hour": 0.01}}}
    assert "Checkpoints are written as often as loses the least time to interruptions." in listed(
        render_report(quoted(spot)), "Assumptions"
    )


def test_a_total_that_is_left_out_says_of_what():
    left_out = listed(render_report(quoted(SERVED)), "Omissions")
    assert "Purchase, total: the purchase is not known." in left_out
    assert not [each for each in left_out if each.startswith("Total:")]
    assert "Total: no rental or purchase price is given." in listed(
        render_report(quoted(UNKNOWN)), "Omissions"
    )


def test_no_more_notes_than_one_reads_stand_above_the_charts():
    quote = quoted(UNKNOWN)
    quote["warnings"] = [{"code": "X", "pointer": "", "detail": f"note {n}"} for n in range(30)]
    text = render_report(quote)
    warnings = listed(text, "Warnings")
    assert warnings[:2] == ["Note 0.", "Note 1."]
    assert warnings[8:] == ["And 22 more, see “Warnings and gaps”."]
    assert text.count("note 29") == 1


def test_a_quote_without_warnings_has_no_empty_list():
    quote = quoted({**TRAINED, "storage": {"price_per_gigabyte_month": usd("0.02"), "dataset_bytes": 1e12}})
    quote["warnings"] = []
    assert "<h3>Warnings</h3>" not in render_report(quote)
