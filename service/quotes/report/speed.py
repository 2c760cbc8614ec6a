"""Section of the speed: phases of a step or a request, and operators under the roofline."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.kit.reports.charts.bars import ChartBar, render_bars, stack_bars
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.charts.roofline import RooflinePoint, render_roofline
from service.kit.reports.numbers import (
    FLOPS_PER_SECOND,
    PERCENT,
    SECONDS,
    UnitScale,
    add_unit,
    build_quantity_figure,
    format_in_scale,
    format_number,
    format_value,
    list_figures,
    select_scale,
    to_title,
)
from service.kit.reports.rounding import PrintedSum, is_sum_of, round_to_sum
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import (
    FigureList,
    ReportBlock,
    ReportChart,
    ReportRemarks,
    ReportSection,
    ReportTable,
    select_blocks,
)
from service.schemas.answers import OperatorEstimate, PhaseTime, ThroughputEstimate

_GB = UnitScale(1e9, "GB/s")
_BOUND = {
    "compute": "the rate at which devices compute",
    "memory": "the bandwidth of the devices' memory",
    "communication": "communication between devices",
    "waiting": "waiting",
    "host": "the hosts",
    "data": "the data pipeline",
}
_TOLD = frozenset({"parallelism", "evidence", "bottleneck", "scaling"})


def build_speed_section(answer: ThroughputEstimate) -> ReportSection:
    """Returns the section of rates, phases and the bottleneck."""
    hints = [hint["detail"] for hint in answer.get("hints", [])]
    bottleneck = answer.get("bottleneck")
    advice = [each["detail"] for each in bottleneck["advice"]] if bottleneck else []
    return ReportSection(
        "speed",
        "Speed",
        _format_lead(answer),
        [
            *select_blocks(
                _build_phases_picture(answer),
                FigureList("Rates and times", list_figures(answer)),
                _build_percentiles_table(answer),
                _build_iterations_table(answer["breakdown"]),
                ReportRemarks("Ways to make it faster", advice),
                _build_roofline_picture(answer),
            ),
            *select_blocks(*_build_scaling_tables(answer)),
            *select_blocks(*_list_parts(answer), ReportRemarks("Hints for the recipe", hints)),
        ],
    )


def _format_lead(answer: ThroughputEstimate) -> str:
    bottleneck = answer.get("bottleneck")
    if bottleneck is None:
        return "The limit of the speed is unknown."
    return f"Most of the time is limited by {_BOUND.get(bottleneck['bound'], bottleneck['bound'])}."


def _list_parts(answer: Mapping[str, Any], within: str = "") -> Iterator[FigureList]:
    """Yields lists of figures for members that have figures of their own, recursively."""
    for name, value in answer.items():
        if isinstance(value, Mapping) and name not in _TOLD and "basis" not in value:
            if name.endswith("_percentiles"):
                continue
            caption = f"{within}{to_title(name)}"
            yield FigureList(caption, list_figures(value))
            yield from _list_parts(value, f"{caption}: ")


def _find_total(answer: ThroughputEstimate) -> tuple[str, Mapping[str, Any]] | None:
    """Returns name and quantity of the total that the phases add up to, or None."""
    for name, member in (("Step", "step_seconds"), ("Request", "request_seconds")):
        if member in answer:
            whole: Mapping[str, Any] = answer[member]  # type: ignore[literal-required]
            if is_sum_of([phase["seconds"]["value"] for phase in answer["breakdown"]], whole["value"]):
                return name, whole
    return None


def _build_phases_picture(answer: ThroughputEstimate) -> ReportChart | None:
    phases = answer["breakdown"]
    if not phases:
        return None
    whole = _find_total(answer)
    longest = max(phase["seconds"]["value"] for phase in phases)
    scale = select_scale(SECONDS, whole[1]["value"] if whole else longest)
    texts = _format_phase_times(phases, whole, scale)
    described = [
        (to_title(phase["phase"]), add_unit(text, scale), phase["seconds"])
        for phase, text in zip(phases, texts.parts, strict=True)
    ]
    if whole:
        rows = stack_bars([(name, text, q["value"]) for name, text, q in described])
        name, total = whole
        shown_total = add_unit(texts.whole, scale)
        title = f"{name}, with its 80% interval"
        rows.append(
            ChartBar(title, shown_total, 0.0, total["value"], total["low"], total["high"], is_total=True)
        )
    else:
        rows = [ChartBar(name, text, 0.0, q["value"], q["low"], q["high"]) for name, text, q in described]
    caption = f"Time of a {whole[0].lower()} by phase" if whole else "Time by phase"
    ends = [end for row in rows for end in (row.end, row.high or 0.0)]
    description = "; ".join(f"{name} {text}" for name, text, _ in described)
    axis = build_linear_axis(*ends, unit=scale.factor)
    chart = render_bars(ChartLabel("phases", caption, description), rows, axis, scale)
    return ReportChart(caption, chart, _build_phase_table(caption, phases, whole, scale))


def _format_phase_times(
    phases: Sequence[PhaseTime], whole: tuple[str, Mapping[str, Any]] | None, scale: UnitScale
) -> PrintedSum:
    seconds = [phase["seconds"]["value"] / scale.factor for phase in phases]
    return round_to_sum(seconds, whole[1]["value"] / scale.factor if whole else max(seconds))


def _build_phase_table(
    caption: str, phases: Sequence[PhaseTime], whole: tuple[str, Mapping[str, Any]] | None, scale: UnitScale
) -> ReportTable:
    def build_row(name: str, seconds: Mapping[str, Any], text: str, bound: str) -> tuple[str, ...]:
        low, high = (format_number(seconds[end] / scale.factor) for end in ("low", "high"))
        interval = f"{low} to {high}"
        return (name, text, interval, bound)

    texts = _format_phase_times(phases, whole, scale)
    return ReportTable(
        caption,
        ("Phase", scale.unit, f"80% interval, {scale.unit}", "Limited by"),
        [
            build_row(to_title(phase["phase"]), phase["seconds"], text, phase["bound"])
            for phase, text in zip(phases, texts.parts, strict=True)
        ],
        frozenset({1, 2}),
        build_row(*whole, texts.whole, "") if whole else (),
    )


def _build_percentiles_table(answer: Mapping[str, Any]) -> ReportTable:
    rows = [
        (
            to_title(name.removesuffix("_seconds_percentiles")),
            *(format_value(value[at], SECONDS) for at in ("p50", "p95", "p99")),
        )
        for name, value in answer.items()
        if name.endswith("_seconds_percentiles")
    ]
    head = ("Time", "half of the requests", "95 %", "99 %")
    return ReportTable("Percentiles of request times", head, rows, frozenset({1, 2, 3}))


def _build_iterations_table(phases: Sequence[PhaseTime]) -> ReportTable:
    rows = [
        (to_title(phase["phase"]), to_title(part["part"]), format_value(part["seconds"], SECONDS))
        for phase in phases
        for part in phase.get("parts", ())
    ]
    caption = "Time of a request by part of its iterations"
    return ReportTable(caption, ("Phase", "Part", "Time"), rows, frozenset({2}))


def _build_scaling_tables(answer: ThroughputEstimate) -> list[ReportBlock]:
    scaling = answer.get("scaling")
    if scaling is None:
        return []
    tables: list[ReportBlock] = []
    for caption, curve in (
        ("The same step on more accelerators (strong scaling)", scaling["strong"]),
        ("A step that grows with them (weak scaling)", scaling["weak"]),
    ):
        rows = [
            (
                format_number(point["accelerator_count"]),
                build_quantity_figure("step_seconds", point["step_seconds"]).cell,
                format_number(point["speedup"]),
                format_value(point["efficiency"], PERCENT),
            )
            for point in curve["points"]
        ]
        head = ("Accelerators", "Step", "Speed-up", "Efficiency")
        tables.append(ReportTable(caption, head, rows, frozenset({1, 2, 3})))
    return tables


def _build_roofline_picture(answer: ThroughputEstimate) -> ReportChart | None:
    operators = answer.get("operators", [])
    drawn = [(number, each) for number, each in enumerate(operators, 1) if _is_chartable(each)]
    if not drawn:
        return None
    peak = max(each["attainable_flops_per_second"] for _, each in drawn)
    peak = max(peak, answer["peak_flops_per_second_per_device"])
    # The attainable rate of an operator that memory limits is its intensity times the bandwidth.
    slopes = [
        each["attainable_flops_per_second"] / each["flops_per_byte"]
        for _, each in drawn
        if each["bound"] == "memory"
    ]
    bandwidth = max(slopes) if slopes else None
    points = [
        RooflinePoint(
            number,
            each["flops_per_byte"],
            each["achieved_flops_per_second"],
            each["bound"] == "compute",
            each["direction"] == "forward",
        )
        for number, each in drawn
    ]
    scale = select_scale(FLOPS_PER_SECOND, peak)
    caption = "Operators of one block under the roofline"
    description = (
        f"{len(points)} operators by FLOPs per byte and achieved rate, on logarithmic axes, under a "
        f"roof of {format_in_scale(peak, scale)}{_format_ridge(peak, bandwidth)}."
    )
    chart = render_roofline(ChartLabel("roofline", caption, description), points, peak, bandwidth, scale)
    note = (
        "One block, one device, one micro-batch. Circles are bound by compute, squares by memory; filled are "
        "forward, hollow backward; numbers are those of the table, left out where they would overlap. "
        f"The line is what the data sheet allows: {format_in_scale(peak, scale)}"
        f"{_format_ridge(peak, bandwidth)}."
    )
    return ReportChart(caption, chart, _build_operator_table(caption, operators), note)


def _format_ridge(peak: float, bandwidth: float | None) -> str:
    """Returns the position of the roofline's ridge, or an empty string if it is unknown."""
    if not bandwidth:
        return ""
    ridge = format_number(peak / bandwidth)
    return f" and {format_in_scale(bandwidth, _GB)}, which meet at {ridge} FLOP per byte"


def _is_chartable(operator: OperatorEstimate) -> bool:
    return operator["flops_per_byte"] > 0 and operator["achieved_flops_per_second"] > 0


def _build_operator_table(caption: str, operators: Sequence[OperatorEstimate]) -> ReportTable:
    rows = [
        (
            f"{number} {to_title(each['operator'])}, {each['direction']}",
            format_number(each["flops_per_byte"]),
            format_number(each["achieved_flops_per_second"] / 1e12),
            format_number(each["attainable_flops_per_second"] / 1e12),
            format_number(each["seconds"] * 1e6),
            each["bound"],
        )
        for number, each in enumerate(operators, 1)
    ]
    head = ("Operator", "FLOP/byte", "Achieved, TFLOP/s", "At most, TFLOP/s", "Time, µs", "Bound")
    return ReportTable(caption, head, rows, frozenset({1, 2, 3, 4}))
