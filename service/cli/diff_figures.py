"""Differences between the figures of two questions, and the settings that cause them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from service.cli.diff_questions import (
    ChangedSetting,
    FilePair,
    FileQuestion,
    apply_settings,
    list_changed_settings,
)
from service.cli.plan_answer import format_layout
from service.quotes.compare import list_changed_headlines

HEADLINES: Final = (
    "total",
    "duration_seconds",
    "accelerators",
    "device_hours",
    "facility_kwh",
    "peak_kw",
    "location_based_kg_co2e",
    "water_liters",
    "total_bytes",
    "fits",
    "step_seconds",
    "tokens_per_second",
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "output_tokens_per_second",
    "supply",
    "layout",
)
"""Figures in the order in which they are shown."""
MOST_CAUSES: Final = 12
"""Most settings that are tried one by one."""
_FREE: Final = ("memory", "throughput")
"""Operations that have no cost."""
_SIDES: Final = {"added": ("after",), "removed": ("before",), "changed": ("before", "after")}
_SMALL_SHARE: Final = Decimal("0.01")
_RATES: Final = HEADLINES[HEADLINES.index("step_seconds") : HEADLINES.index("supply")]


class QuestionRefusedError(Exception):
    """A question has no answer; each line is shown to the user."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


class AnsweredQuestion(NamedTuple):
    """The answer to a question: figures, warnings, gaps and versions."""

    figures: Mapping[str, Any]
    warnings: Sequence[Mapping[str, str]]
    gaps: Sequence[Mapping[str, str]]
    catalog_revision: int
    method_version: str


AnswerQuestion = Callable[[FileQuestion], AnsweredQuestion]
"""Answers a question, or raises QuestionRefusedError."""


def extract_quote_figures(quote: Mapping[str, Any]) -> AnsweredQuestion:
    """Extracts the figures of a quote: its headlines, its devices and its rates."""
    figures = dict(quote["headlines"])
    if "accelerator_count" in quote:
        count, name = quote["accelerator_count"], quote.get("accelerator_id", "accelerators")
        figures["accelerators"] = f"{count:,} x {name}"
    rates = quote["answers"].get("throughput", {})
    figures |= {name: rates[name] for name in _RATES if name in rates}
    return AnsweredQuestion(
        figures, quote["warnings"], quote["gaps"], quote["catalog_revision"], quote["method_version"]
    )


def extract_plan_figures(answer: Mapping[str, Any]) -> AnsweredQuestion:
    """Extracts the figures of the first row of a plan.

    Raises:
        QuestionRefusedError: No configuration satisfies the constraints.
    """
    if not answer["rows"]:
        raise QuestionRefusedError("no configuration satisfies the constraints")
    row = answer["rows"][0]
    figures = {name: row[name] for name in HEADLINES if isinstance(row.get(name), dict)}
    figures["accelerators"] = f"{row['accelerator_count']:,} x {row['accelerator_id']}"
    figures["supply"], figures["layout"] = row["supply"]["name"], format_layout(row)
    if "cost" in row:
        figures["total"] = row["cost"]
    evidence = answer["evidence"]
    gaps = [gap for gap in answer["gaps"] if not gap["pointer"].startswith("/rows/") or _is_first(gap)]
    return AnsweredQuestion(
        figures, answer["warnings"], gaps, evidence["catalog_revision"], evidence["method_version"]
    )


def _is_first(gap: Mapping[str, str]) -> bool:
    return gap["pointer"].startswith("/rows/0/")


def compute_difference(name: str, before: Any, after: Any) -> dict[str, Any]:  # noqa: ANN401  # figures are of every kind
    """Returns both sides of a figure, if known, and their difference as in a comparison of quotes."""
    sides = (("before", before), ("after", after))
    found = {"name": name, **{side: value for side, value in sides if value is not None}}
    documents = ({} if value is None else {name: value} for value in (before, after))
    for changed in list_changed_headlines(*documents):
        found |= {each: value for each, value in changed.items() if each not in found}
    return found


def list_differences(
    before: AnsweredQuestion | None, after: AnsweredQuestion | None
) -> Iterator[dict[str, Any]]:
    """Yields the difference of every figure that either side has."""
    for name in HEADLINES:
        sides = [None if side is None else side.figures.get(name) for side in (before, after)]
        if sides != [None, None]:
            yield compute_difference(name, *sides)


def compare_pair(pair: FilePair, ask: AnswerQuestion) -> dict[str, Any]:
    """Returns the comparison of a file before and after the change."""
    sides = {"before": pair.before, "after": pair.after}
    answers: dict[str, AnsweredQuestion | None] = {}
    last = pair.after or pair.before
    found: dict[str, Any] = {
        "file": pair.name,
        "change": _classify_change(pair),
        "operation": last and last.operation,
    }
    for side, asked in sides.items():
        answers[side] = None
        if asked is not None:
            try:
                answers[side] = ask(asked)
            except QuestionRefusedError as refused:
                found.setdefault("refused", {})[side] = list(refused.lines)
    before, after = answers["before"], answers["after"]
    found["figures"] = list(list_differences(before, after))
    if pair.before and pair.after and pair.before.operation == pair.after.operation:
        changes = list_changed_settings(pair.before.question, pair.after.question)
        found["settings"] = [_describe_setting(change) for change in changes]
        if before and after:
            found |= _attribute_settings(pair.before, before, after, changes, ask)
    if after is not None:
        known = before or after._replace(warnings=(), gaps=())
        found["new_warnings"] = [each for each in after.warnings if each not in known.warnings]
        found["new_gaps"] = [each for each in after.gaps if each not in known.gaps]
        found["catalog_revision"], found["method_version"] = after.catalog_revision, after.method_version
    return found


def _classify_change(pair: FilePair) -> str:
    return "added" if pair.before is None else "removed" if pair.after is None else "changed"


def _describe_setting(change: ChangedSetting) -> dict[str, Any]:
    sides = (("before", change.before), ("after", change.after))
    return {"pointer": change.pointer, **{name: side[0] for name, side in sides if side}}


def _attribute_settings(
    asked: FileQuestion,
    before: AnsweredQuestion,
    after: AnsweredQuestion,
    changes: list[ChangedSetting],
    ask: AnswerQuestion,
) -> dict[str, Any]:
    """Returns the effect of each setting alone; settings without an answer alone are tried together."""
    if len(changes) < 2:  # noqa: PLR2004  # a single setting causes the whole difference
        return {}
    causes: list[dict[str, Any]] = []
    tied: list[ChangedSetting] = []
    for change in changes[:MOST_CAUSES]:
        found = _apply_changes(asked, before, [change], ask)
        if found is None:
            tied.append(change)
        else:
            causes.append(found)
    together = _apply_changes(asked, before, tied, ask) if len(tied) > 1 else None
    causes += [together] if together is not None else []
    rest = _compute_rest(list(list_differences(before, after)), causes)
    tried = {pointer for cause in causes for pointer in cause["pointers"]}
    found = {"causes": causes, "untried": [each.pointer for each in changes if each.pointer not in tried]}
    return found | ({"interplay": rest} if rest else {})


def _apply_changes(
    asked: FileQuestion, before: AnsweredQuestion, changes: list[ChangedSetting], ask: AnswerQuestion
) -> dict[str, Any] | None:
    try:
        answered = ask(FileQuestion(asked.operation, apply_settings(asked.question, changes)))
    except QuestionRefusedError:
        return None
    moved = [each for each in list_differences(before, answered) if is_moved(each)]
    return {"pointers": [change.pointer for change in changes], "figures": moved}


def is_moved(figure: Mapping[str, Any]) -> bool:
    """Returns true if the sides of a figure differ."""
    return bool(figure.get("before") != figure.get("after"))


def _compute_rest(whole: list[dict[str, Any]], causes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the part of each difference that no single setting causes."""
    found = []
    for figure in whole:
        parts = [each for cause in causes for each in cause["figures"] if each["name"] == figure["name"]]
        if not parts or any("difference" not in each for each in parts):
            continue
        if is_moved(figure) and "difference" not in figure:
            continue
        moved, *alone = (Decimal(each.get("difference", 0)) for each in (figure, *parts))
        left = moved - sum(alone)
        if abs(left) > _SMALL_SHARE * max(map(abs, (moved, *alone))):
            unit = {name: value for name, value in parts[0].items() if name == "currency_code"}
            found.append({"name": figure["name"], "difference": f"{left:f}" if unit else float(left), **unit})
    return found


def sum_totals(files: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sums the cost of the files by currency; files with an unknown cost on an existing side are left out."""
    sums: dict[str, list[Decimal]] = {}
    for file in files:
        total: Mapping[str, Any] = next((each for each in file["figures"] if each["name"] == "total"), {})
        if any(side not in total for side in _SIDES[file["change"]]):
            continue
        for place, side in enumerate(("before", "after")):
            if side in total:
                code = total[side]["currency_code"]
                sums.setdefault(code, [Decimal(0), Decimal(0)])[place] += Decimal(total[side]["amount"])
    return [
        {"currency_code": code, "before": str(old), "after": str(new), "difference": str(new - old)}
        for code, (old, new) in sorted(sums.items())
    ]


def list_unknown(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns files whose cost after the change is unknown, though it was known or was asked for."""
    return [file["file"] for file in files if file["change"] != "removed" and _lacks_total(file)]


def _lacks_total(file: Mapping[str, Any]) -> bool:
    sides: set[str] = next((set(each) for each in file["figures"] if each["name"] == "total"), set())
    return "after" not in sides and ("before" in sides or file["operation"] not in _FREE)
