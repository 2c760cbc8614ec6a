"""Sections of warnings, gaps, assumptions and sources."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.kit.locales import format_count
from service.kit.reports.numbers import PERCENT, format_figure_title, format_value, to_plain_words, to_title
from service.kit.reports.shapes import ReportRemarks, ReportSection, ReportTable, select_blocks
from service.quotes.report.headlines import NAMES
from service.quotes.report.names import RowNames
from service.schemas.base import AnswerWarning, EstimateGap

_MOST_SHOWN = 8
_NAMES = {"focus_digest": "Charges as rows of FOCUS", "fits": "Fit in memory"}
_TRAINED_WITHOUT = {
    "reliability": "No device fails, and nothing is restarted.",
    "checkpointing": "No checkpoint is written.",
    "data_pipeline": "The devices never wait for data.",
}
_SPOT_CHECKPOINTS = "Checkpoints are written as often as loses the least time to interruptions."
_SERVED_WITHOUT = {
    "engine": "No serving engine is named: a model that generates tokens is taken to run on vLLM.",
    "arrivals": "Requests arrive independently of each other (Poisson).",
}
_ANSWERS = ("cost", "headlines")
"""Answers whose totals are named without a prefix."""
_DEGREES = ("tensor", "pipeline", "data", "context", "expert")


def list_first_notes(
    quote: Mapping[str, Any], question: Mapping[str, Any], total_text: str
) -> list[ReportRemarks]:
    """Returns the notes that an approver sees next to the headlines."""
    gaps = sorted(quote["gaps"], key=_rank_gap)
    left_out = [f"{_get_figure_name(gap)}: {gap['detail']}" for gap in gaps]
    if total_text:
        left_out.insert(0, total_text)
    warnings = [warning["detail"] for warning in quote["warnings"]]
    found = (
        ReportRemarks("Omissions", _shorten_notes(left_out)),
        ReportRemarks("Warnings", _shorten_notes(warnings)),
        ReportRemarks("Assumptions", list(_list_assumptions(question, quote["answers"]))),
    )
    return [each for each in found if each.items]


def _shorten_notes(texts: Sequence[str]) -> list[str]:
    items = list(dict.fromkeys(_to_sentence(text) for text in texts))
    if len(items) <= _MOST_SHOWN:
        return items
    return [*items[:_MOST_SHOWN], f"And {len(items) - _MOST_SHOWN} more, see “Warnings and gaps”."]


def _to_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _rank_gap(gap: EstimateGap) -> int:
    """Returns a sort key that puts gaps of headlines first."""
    *_, parent, name = ["", *gap["pointer"].split("/")]
    if name == "total":
        return 0 if parent in _ANSWERS else len(NAMES)
    return list(NAMES).index(name) if name in NAMES else len(NAMES)


def _get_figure_name(gap: EstimateGap) -> str:
    *_, parent, name = ["", *gap["pointer"].split("/")]
    if name == "total" and parent not in _ANSWERS:
        return f"{to_title(parent)}, total"
    return _NAMES.get(name) or format_figure_title(name)


def _list_assumptions(question: Mapping[str, Any], answers: Mapping[str, Any]) -> Iterator[str]:
    """Yields the assumptions that the question states or that follow from its defaults."""
    efficiency = question.get("efficiency", {})
    if efficiency.get("source") == "assumed":
        share = format_value(efficiency["utilization"], PERCENT)
        yield f"The utilization of {share} is given, not estimated."
    layout = next((each["parallelism"] for each in answers.values() if "parallelism" in each), None)
    if layout and "parallelism" not in question:
        degrees = [
            f"{to_plain_words(name)} {format_count(layout[name])}"
            for name in _DEGREES
            if layout.get(name, 1) != 1
        ]
        if degrees:
            yield f"The layout is chosen by the service: {', '.join(degrees)}."
    workload = question.get("workload", {})
    if "throughput" in answers and workload:
        is_training = workload["kind"] == "training"
        without = dict(_TRAINED_WITHOUT if is_training else _SERVED_WITHOUT)
        if is_training and "spot" in question.get("rental", {}):
            without["checkpointing"] = _SPOT_CHECKPOINTS
        yield from (text for name, text in without.items() if name not in workload)


def build_notes_section(warnings: Sequence[AnswerWarning], gaps: Sequence[EstimateGap]) -> ReportSection:
    """Returns the section of warnings and unknown figures."""
    return ReportSection(
        "notes",
        "Warnings and gaps",
        f"{_format_count(warnings, 'warning')}; {_format_count(gaps, 'figure')} not known.",
        select_blocks(
            _build_remarks_table(warnings, "All warnings"),
            _build_remarks_table(gaps, "Unknown figures, which do not count as 0"),
        ),
    )


def _format_count(items: Sequence[object], name: str) -> str:
    return f"{len(items) or 'No'} {name}{'' if len(items) == 1 else 's'}"


def _build_remarks_table(notes: Sequence[AnswerWarning] | Sequence[EstimateGap], where: str) -> ReportTable:
    rows = [(note["detail"], f"{note['code']} {note['pointer']}".strip()) for note in notes]
    return ReportTable(where, ("Note", "Code and place"), rows)


def build_sources_section(inputs: Sequence[Mapping[str, Any]]) -> ReportSection:
    """Returns the section of the catalog rows that the answers use."""
    names = RowNames(inputs)
    rows = [
        (
            f"{to_title(row['kind'])}: {names.get_name(row['kind'], row['id'])}",
            f"{row['id']}, version {row['version']}, {row['origin']}",
            row["citation"],
        )
        for row in inputs
    ]
    head = ("Row", "Id, version and origin", "Source of its values")
    table = ReportTable("Rows of the catalog", head, rows)
    lead = "Rows of the catalog that the answers use, in the versions of that time."
    return ReportSection("sources", "Sources", lead, select_blocks(table))
