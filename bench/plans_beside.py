"""Writes docs/plans.md: published configurations beside those that plans choose for the same work.

``make plans``. Each file of tests/data/plans has a question, the configurations that were published for it,
what was measured of them, and a sentence for every setting in which the first row may differ.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from service.estimates.service import answer_question
from service.estimates.throughput import estimate_throughput
from service.evidence.snapshot import build_shipped_snapshot
from service.plans.service import estimate_plan
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.plan_answers import PlanResult
from service.schemas.plans import PlanRequest

ROOT: Final = Path(__file__).resolve().parent.parent
QUESTIONS: Final = sorted((ROOT / "tests" / "data" / "plans").glob("*.json"))
PAGE: Final = ROOT / "docs" / "plans.md"
SHOWN_ROWS: Final = 3
SETTINGS: Final = (
    "accelerator_count",
    "precision",
    "weight_format",
    "kv_cache_precision",
    "micro_batch_size",
    "recomputation",
)
LAYOUT: Final = {
    "tensor": "t",
    "pipeline": "p",
    "data": "d",
    "context": "c",
    "expert": "e",
    "expert_tensor": "et",
    "sharding": "",
    "pipeline_schedule": "",
    "virtual_stages": "v",
    "sequence_parallel": "sp",
}
PLAIN: Final = ("one_f_one_b", "none", False)
_WRITE = TypeAdapter(PlanResult).serializer.to_json
_GIB: Final = 2**30


class ComparedPlan(NamedTuple):
    """A file, and the answer to its question."""

    name: str
    file: Mapping[str, Any]
    answer: Mapping[str, Any]

    @property
    def best(self) -> Mapping[str, Any]:
        """The first row."""
        first: Mapping[str, Any] = self.answer["rows"][0]
        return first

    @property
    def published(self) -> Mapping[str, Any]:
        """The first configuration that was published and that nothing rules out."""
        return next(row for row in self.answer["given"] if "ruled_out_by" not in row)

    @property
    def is_training(self) -> bool:
        """True if a model is trained."""
        return bool(self.file["question"]["workload"]["kind"] == "training")


def asked(path: Path) -> ComparedPlan:
    """The file of a question with its answer, as a caller reads it."""
    file = json.loads(path.read_text())
    question = PlanRequest.model_validate_json(json.dumps(file["question"]))
    return ComparedPlan(
        path.stem,
        file,
        json.loads(_WRITE(answer_question(estimate_plan, question, build_shipped_snapshot()))),
    )


def settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the choices of a row by name."""
    chosen = {name: row[name] for name in SETTINGS if name in row}
    return {**chosen, **{name: row["parallelism"][name] for name in LAYOUT if name in row["parallelism"]}}


def differing(beside: ComparedPlan) -> list[str]:
    """Settings in which the first row and the published configuration differ."""
    ours, theirs = settings(beside.best), settings(beside.published)
    return [name for name in ours if name in theirs and ours[name] != theirs[name]]


def layout(row: Mapping[str, Any]) -> str:
    """Degrees in short."""
    parts = []
    for name, short in LAYOUT.items():
        chosen = row["parallelism"].get(name, 1)
        if chosen in PLAIN or (chosen == 1 and chosen is not True):
            continue
        parts.append(short if chosen is True else f"{short}{chosen}")
    return " ".join(parts) or "one device"


def span(quantity: Mapping[str, float], digits: int = 3) -> str:
    """A figure with its interval."""
    value, low, high = (f"{quantity[end]:,.{digits}g}" for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def per_device(row: Mapping[str, Any]) -> float:
    """Tokens that a device trains on in a second."""
    return float(row["tokens_per_second"]["value"] / row["accelerator_count"])


def figure(row: Mapping[str, Any], name: str) -> float:
    """A figure of a row by the name that files give it."""
    if name == "tokens_per_second_per_device":
        return per_device(row)
    if name == "total_gib":
        return float(row["total_bytes"]["value"] / _GIB)
    return float(row[name]["value"])


def _place(beside: ComparedPlan, row: Mapping[str, Any]) -> str:
    if "ruled_out_by" in row:
        return f"- ({row['ruled_out_by']})"
    depth = beside.file["question"]["search"].get("depth", math.inf)
    return f"{row['rank']}" if row["rank"] <= depth else f"> {depth}"


def _training_line(beside: ComparedPlan, name: str, row: Mapping[str, Any]) -> str:
    cells = (
        name,
        _place(beside, row),
        layout(row),
        row["micro_batch_size"],
        row["recomputation"],
        f"{figure(row, 'total_gib'):.1f}",
        span(row["step_seconds"]),
        f"{per_device(row):,.0f}",
        f"{row['model_flops_utilization']['value']:.3f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def _serving_line(beside: ComparedPlan, name: str, row: Mapping[str, Any]) -> str:
    cells = (
        name,
        _place(beside, row),
        row["accelerator_count"],
        layout(row),
        f"{figure(row, 'total_gib'):.1f}",
        span(row["time_to_first_token_seconds"]),
        span(row["time_per_output_token_seconds"]),
        f"{row['service_level_share']['value']:.3f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


_TRAINING_HEAD = (
    "| | rank | layout | micro-batch | recomputation | GiB | step, s | tokens/s and device | MFU |\n"
    "|---|---|---|---:|---|---:|---|---:|---:|"
)
_SERVING_HEAD = (
    "| | rank | devices | layout | GiB | first token, s | next tokens, s | share within |\n"
    "|---|---|---:|---|---:|---|---|---:|"
)


def _rows(beside: ComparedPlan) -> Iterator[str]:
    yield _TRAINING_HEAD if beside.is_training else _SERVING_HEAD
    line = _training_line if beside.is_training else _serving_line
    for row in beside.answer["rows"][:SHOWN_ROWS]:
        yield line(beside, "the plan" if row["rank"] == 1 else "", row)
    for row in beside.answer["given"]:
        yield line(beside, row["name"], row)


def _counted(counts: Sequence[Mapping[str, Any]], what: str) -> str:
    return ", ".join(f"{each[what]} {each['candidates']:,}" for each in counts) or "none"


def _counts(beside: ComparedPlan) -> str:
    found = beside.answer["candidates"]
    return (
        f"{found['considered']:,} configurations, {found['scored']:,} scored, "
        f"{found['feasible']:,} feasible. "
        f"Ruled out: {_counted(found['ruled_out'], 'constraint')}. "
        f"Decided by a bound: {_counted(found['pruned'], 'rule')}."
    )


def _measured(beside: ComparedPlan) -> Iterator[str]:
    """Returns measured figures and other estimates next to the estimates of the same configurations."""
    rows = {row["name"]: row for row in beside.answer["given"]}
    stated = [("measured", each) for each in beside.file["published"]["measured"]]
    stated += [("estimated elsewhere", each) for each in beside.file["published"].get("elsewhere", ())]
    if not stated:
        return
    yield "\n| configuration | figure | | value | estimate | estimate over it | source |"
    yield "|---|---|---|---:|---:|---:|---|"
    for kind, each in stated:
        ours = figure(rows[each["given"]], each["name"])
        yield (
            f"| {each['given']} | {each['name']} | {kind} | {each['value']:,.5g} | {ours:,.5g} "
            f"| {ours / each['value']:.2f} | {each['stated']} |"
        )


def _phases(beside: ComparedPlan) -> Iterator[str]:
    """Returns the phases of both, with the figures of the throughput question of each row."""
    split = []
    for row in (beside.best, beside.published):
        question = ThroughputEstimateRequest.model_validate_json(json.dumps(row["requests"]["throughput"]))
        found = estimate_throughput(question, build_shipped_snapshot())["breakdown"]
        split.append({part["phase"]: part["seconds"]["value"] for part in found})
    ours, theirs = split
    yield f"\n| seconds | the plan | {beside.published['name']} |\n|---|---:|---:|"
    for name in dict.fromkeys([*ours, *theirs]):
        yield f"| {name} | {ours.get(name, 0.0):.3f} | {theirs.get(name, 0.0):.3f} |"


def _why(beside: ComparedPlan) -> Iterator[str]:
    names = differing(beside)
    if not names:
        yield "\nThe plan is the published configuration."
        return
    sentences = beside.file["differences"]
    missing = [name for name in names if name not in sentences]
    if missing:
        raise SystemExit(f"{beside.name}: no sentence for {', '.join(missing)}")
    yield ""
    ours, theirs = settings(beside.best), settings(beside.published)
    for name in names:
        yield f"- `{name}` {ours[name]} for {theirs[name]}: {sentences[name]}"


def section(beside: ComparedPlan) -> Iterator[str]:
    """One question."""
    told = beside.file["published"]
    yield f"\n## {beside.file['title']}\n"
    goal = beside.file["question"]["goal"]
    yield f"Question: `tests/data/plans/{beside.name}.json`, goal `{goal}`. {_counts(beside)}\n"
    yield f"Published ({told['source']}): {told['states']}.\n"
    yield f"Left open there: {told['open']}.\n"
    yield from _rows(beside)
    yield from _measured(beside)
    yield from _phases(beside)
    yield from _why(beside)
    if "remarks" in beside.file:
        yield f"\n{beside.file['remarks']}"


HEAD: Final = """# Plans beside what was used

Written by `make plans`. Each question has the work, devices and batch of a published run or service; the plan
is free in everything else. Published configurations are given with the question (`given`), so that the same
estimates judge both. A rank is that among the hundred best of a number of devices; a configuration that is
ruled out has none, and the constraint beside it. Layouts: t tensor, p pipeline, d data, c context, e experts,
v chunks of a stage, sp sequence parallel. Intervals are 80%.
"""


def page(besides: Sequence[ComparedPlan]) -> str:
    """Returns the whole page."""
    lines = [HEAD]
    for beside in besides:
        lines.extend(section(beside))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the page, or prints the sections of the named questions."""
    if sys.argv[1:]:
        print("\n".join(line for name in sys.argv[1:] for line in section(asked(Path(name)))))
        return
    PAGE.write_text(page([asked(path) for path in QUESTIONS]))


if __name__ == "__main__":
    main()
