"""How fast will it go? Phases of a step or a request, and operators under the roofline."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.quotes.report.charts import About, Bar, Point, bars, roofline, stacked
from service.quotes.report.numbers import (
    FLOPS_PER_SECOND,
    PERCENT,
    SECONDS,
    Scale,
    digits,
    figures,
    in_scale,
    quantity_figure,
    scale_of,
    shown,
    with_unit,
    words,
)
from service.quotes.report.rounding import Printed, are_parts, printed
from service.quotes.report.scaling import linear
from service.quotes.report.shapes import Block, Figures, Picture, Remarks, Section, Table, shown_blocks
from service.schemas.answers import OperatorAnswer, PhaseAnswer, ThroughputAnswer

_GB = Scale(1e9, "GB/s")
_BOUND = {
    "compute": "the rate at which devices compute",
    "memory": "the bandwidth of the devices' memory",
    "communication": "communication between devices",
    "waiting": "waiting",
    "host": "the hosts",
    "data": "the data pipeline",
}
_TOLD = frozenset({"parallelism", "evidence", "bottleneck", "scaling"})


def speed_section(answer: ThroughputAnswer) -> Section:
    """Rates, where the time goes, and what limits it."""
    hints = [hint["detail"] for hint in answer.get("hints", [])]
    bottleneck = answer.get("bottleneck")
    advice = [each["detail"] for each in bottleneck["advice"]] if bottleneck else []
    return Section(
        "speed",
        "Speed",
        _lead(answer),
        [
            *shown_blocks(
                _phases(answer),
                Figures("Rates and times", figures(answer)),
                _percentiles(answer),
                _iterations(answer["breakdown"]),
                Remarks("What would make it faster", advice),
                _operators(answer),
            ),
            *shown_blocks(*_scaling(answer)),
            *shown_blocks(*_parts(answer), Remarks("Hints for the recipe", hints)),
        ],
    )


def _lead(answer: ThroughputAnswer) -> str:
    bottleneck = answer.get("bottleneck")
    if bottleneck is None:
        return "What limits the speed is not known."
    return f"Most of the time is set by {_BOUND.get(bottleneck['bound'], bottleneck['bound'])}."


def _parts(answer: Mapping[str, Any], within: str = "") -> Iterator[Figures]:
    """Members that have figures of their own, and those within them."""
    for name, value in answer.items():
        if isinstance(value, Mapping) and name not in _TOLD and "basis" not in value:
            if name.endswith("_percentiles"):
                continue
            caption = f"{within}{words(name)}"
            yield Figures(caption, figures(value))
            yield from _parts(value, f"{caption}: ")


def _whole(answer: ThroughputAnswer) -> tuple[str, Mapping[str, Any]] | None:
    """What the phases are parts of, if they sum to it."""
    for name, member in (("Step", "step_seconds"), ("Request", "request_seconds")):
        if member in answer:
            whole: Mapping[str, Any] = answer[member]  # type: ignore[literal-required]
            if are_parts([phase["seconds"]["value"] for phase in answer["breakdown"]], whole["value"]):
                return name, whole
    return None


def _phases(answer: ThroughputAnswer) -> Picture | None:
    phases = answer["breakdown"]
    if not phases:
        return None
    whole = _whole(answer)
    longest = max(phase["seconds"]["value"] for phase in phases)
    scale = scale_of(SECONDS, whole[1]["value"] if whole else longest)
    texts = _texts(phases, whole, scale)
    described = [
        (words(phase["phase"]), with_unit(text, scale), phase["seconds"])
        for phase, text in zip(phases, texts.parts, strict=True)
    ]
    if whole:
        rows = stacked([(name, text, q["value"]) for name, text, q in described])
        name, total = whole
        shown_total = with_unit(texts.whole, scale)
        title = f"{name}, with its 80% interval"
        rows.append(Bar(title, shown_total, 0.0, total["value"], total["low"], total["high"], is_total=True))
    else:
        rows = [Bar(name, text, 0.0, q["value"], q["low"], q["high"]) for name, text, q in described]
    caption = f"Where the time of a {whole[0].lower()} goes" if whole else "Where the time goes"
    ends = [end for row in rows for end in (row.end, row.high or 0.0)]
    description = "; ".join(f"{name} {text}" for name, text, _ in described)
    axis = linear(*ends, unit=scale.factor)
    chart = bars(About("phases", caption, description), rows, axis, scale)
    return Picture(caption, chart, _phase_table(caption, phases, whole, scale))


def _texts(
    phases: Sequence[PhaseAnswer], whole: tuple[str, Mapping[str, Any]] | None, scale: Scale
) -> Printed:
    seconds = [phase["seconds"]["value"] / scale.factor for phase in phases]
    return printed(seconds, whole[1]["value"] / scale.factor if whole else max(seconds))


def _phase_table(
    caption: str, phases: Sequence[PhaseAnswer], whole: tuple[str, Mapping[str, Any]] | None, scale: Scale
) -> Table:
    def row(name: str, seconds: Mapping[str, Any], text: str, bound: str) -> tuple[str, ...]:
        interval = f"{digits(seconds['low'] / scale.factor)} to {digits(seconds['high'] / scale.factor)}"
        return (name, text, interval, bound)

    texts = _texts(phases, whole, scale)
    return Table(
        caption,
        ("Phase", scale.unit, f"80% interval, {scale.unit}", "Set by"),
        [
            row(words(phase["phase"]), phase["seconds"], text, phase["bound"])
            for phase, text in zip(phases, texts.parts, strict=True)
        ],
        frozenset({1, 2}),
        row(*whole, texts.whole, "") if whole else (),
    )


def _percentiles(answer: Mapping[str, Any]) -> Table:
    rows = [
        (
            words(name.removesuffix("_seconds_percentiles")),
            *(shown(value[at], SECONDS) for at in ("p50", "p95", "p99")),
        )
        for name, value in answer.items()
        if name.endswith("_seconds_percentiles")
    ]
    head = ("Time", "half of the requests", "95 %", "99 %")
    return Table("What requests take at most", head, rows, frozenset({1, 2, 3}))


def _iterations(phases: Sequence[PhaseAnswer]) -> Table:
    rows = [
        (words(phase["phase"]), words(part["part"]), shown(part["seconds"], SECONDS))
        for phase in phases
        for part in phase.get("parts", ())
    ]
    caption = "What the iterations of a request spend its time on"
    return Table(caption, ("Phase", "Part", "Time"), rows, frozenset({2}))


def _scaling(answer: ThroughputAnswer) -> list[Block]:
    scaling = answer.get("scaling")
    if scaling is None:
        return []
    tables: list[Block] = []
    for caption, curve in (
        ("The same step on more accelerators (strong scaling)", scaling["strong"]),
        ("A step that grows with them (weak scaling)", scaling["weak"]),
    ):
        rows = [
            (
                digits(point["accelerator_count"]),
                quantity_figure("step_seconds", point["step_seconds"]).cell,
                digits(point["speedup"]),
                shown(point["efficiency"], PERCENT),
            )
            for point in curve["points"]
        ]
        head = ("Accelerators", "Step", "Speed-up", "Efficiency")
        tables.append(Table(caption, head, rows, frozenset({1, 2, 3})))
    return tables


def _operators(answer: ThroughputAnswer) -> Picture | None:
    operators = answer.get("operators", [])
    drawn = [(number, each) for number, each in enumerate(operators, 1) if _is_drawn(each)]
    if not drawn:
        return None
    peak = max(each["attainable_flops_per_second"] for _, each in drawn)
    peak = max(peak, answer["peak_flops_per_second_per_device"])
    # What is attainable by an operator that memory bounds is its intensity times the bandwidth.
    slopes = [
        each["attainable_flops_per_second"] / each["flops_per_byte"]
        for _, each in drawn
        if each["bound"] == "memory"
    ]
    bandwidth = max(slopes) if slopes else None
    points = [
        Point(
            number,
            each["flops_per_byte"],
            each["achieved_flops_per_second"],
            each["bound"] == "compute",
            each["direction"] == "forward",
        )
        for number, each in drawn
    ]
    scale = scale_of(FLOPS_PER_SECOND, peak)
    caption = "Operators of one block under the roofline"
    description = (
        f"{len(points)} operators by FLOPs per byte and what they achieve, on logarithmic axes, under a "
        f"roof of {in_scale(peak, scale)}{_ridge(peak, bandwidth)}."
    )
    chart = roofline(About("roofline", caption, description), points, peak, bandwidth, scale)
    note = (
        "One block, one device, one micro-batch. Circles are bound by compute, squares by memory; filled are "
        "forward, hollow backward; numbers are those of the table, left out where they would overlap. "
        f"The line is what the data sheet allows: {in_scale(peak, scale)}{_ridge(peak, bandwidth)}."
    )
    return Picture(caption, chart, _operator_table(caption, operators), note)


def _ridge(peak: float, bandwidth: float | None) -> str:
    """Where the roof bends, as far as that is known."""
    if not bandwidth:
        return ""
    return f" and {in_scale(bandwidth, _GB)}, which meet at {digits(peak / bandwidth)} FLOP per byte"


def _is_drawn(operator: OperatorAnswer) -> bool:
    return operator["flops_per_byte"] > 0 and operator["achieved_flops_per_second"] > 0


def _operator_table(caption: str, operators: Sequence[OperatorAnswer]) -> Table:
    rows = [
        (
            f"{number} {words(each['operator'])}, {each['direction']}",
            digits(each["flops_per_byte"]),
            digits(each["achieved_flops_per_second"] / 1e12),
            digits(each["attainable_flops_per_second"] / 1e12),
            digits(each["seconds"] * 1e6),
            each["bound"],
        )
        for number, each in enumerate(operators, 1)
    ]
    head = ("Operator", "FLOP/byte", "Achieved, TFLOP/s", "At most, TFLOP/s", "Time, µs", "Bound")
    return Table(caption, head, rows, frozenset({1, 2, 3, 4}))
