"""Charts of a served model under other loads: latencies, and what users and devices get of its speed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from service.kit.http.html import Form
from service.kit.reports.charts.drawing import ChartLabel, ChartMark
from service.kit.reports.charts.series import ChartSeries, PlotAxis, SeriesPoint, render_series
from service.kit.reports.numbers import (
    SECONDS,
    UnitScale,
    build_quantity_figure,
    format_number,
    format_value,
    select_scale,
)
from service.kit.reports.scaling import build_doubling_axis, build_linear_axis, build_logarithmic_axis
from service.kit.reports.shapes import ReportChart, ReportTable
from service.quotes.form.changes.variants import (
    AnsweredCurve,
    Answers,
    VariedField,
    WorkTime,
    answer_curve,
    list_quantities,
)
from service.resolve.catalog import CatalogView

_FIRST, _NEXT, _SPEED = (
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "output_tokens_per_second",
)
_LATENCIES: Final = ((_FIRST, "Time to the first token"), (_NEXT, "Time per output token"))
_COUNT: Final = UnitScale(1.0, "")
_PER_SECOND: Final = UnitScale(1.0, "tokens per second")


class _Load(NamedTuple):
    """Load of a service: its field of the form, its names for an axis and a table, and its limit."""

    field: str
    axis: str
    head: str
    limit: ChartMark | None


def build_load_charts(
    form: Form, question: Mapping[str, Any], answers: Answers, catalog: CatalogView, left: WorkTime
) -> tuple[list[ReportChart], AnsweredCurve | None]:
    """Returns the charts over the load, and the curve that they are drawn from."""
    load = _read_load(question, answers)
    curve = answer_curve(form, VariedField(load.field, load.head.lower()), ["throughput"], catalog, left)
    if curve is None:
        return [], None
    levels = question["workload"].get("service_levels", {})
    charts = [_build_latency_chart(curve, load, levels)]
    if load.field == "concurrency":
        charts.append(_build_frontier_chart(curve))
    return [chart for chart in charts if chart is not None], curve


def _read_load(question: Mapping[str, Any], answers: Answers) -> _Load:
    if "concurrency" in question["workload"]:
        room = answers.get("memory", {}).get("limits", {}).get("max_concurrency")
        limit = room and ChartMark(f"memory is full: {format_number(room)}", room)
        return _Load("concurrency", "Users, requests at a time", "Users", limit or None)
    most = answers["throughput"].get("saturation", {}).get("most_requests_per_second", {}).get("value")
    limit = most and ChartMark(f"at most {format_number(most)}", most)
    return _Load("requests_per_second", "Requests per second", "Requests per second", limit or None)


def _build_latency_chart(
    curve: AnsweredCurve, load: _Load, levels: Mapping[str, float]
) -> ReportChart | None:
    series = [
        ChartSeries(
            name,
            [
                SeriesPoint(point.value, found["value"], found["low"], found["high"])
                for point, found in list_quantities(curve, "throughput", member)
                if found["low"] > 0
            ],
        )
        for member, name in _LATENCIES
    ]
    if not all(len(one.points) > 1 for one in series):
        return None
    marks = [
        ChartMark(f"{name}: at most {format_value(levels[member], SECONDS)}", levels[member])
        for member, name in _LATENCIES
        if member in levels
    ]
    ends = [end for one in series for point in one.points for end in (point.low, point.high) if end]
    ends += [mark.value for mark in marks]
    scale = select_scale(SECONDS, min(ends))
    caption = "Latency against load"
    chart = render_series(
        ChartLabel("latency", caption, _describe_latencies(load, series)),
        series,
        _build_load_axis(curve, load),
        PlotAxis("Time", build_logarithmic_axis(*ends, unit=scale.factor), scale, marks),
    )
    note = "Upright lines through points are 80% intervals. Prompts and answers are as long as asked."
    return ReportChart(caption, chart, _build_latency_table(caption, curve, load), note)


def _build_load_axis(curve: AnsweredCurve, load: _Load) -> PlotAxis:
    axis = build_doubling_axis(*(point.value for point in curve.points))
    marks = [ChartMark(f"asked: {format_number(curve.asked)}", curve.asked)]
    if load.limit is not None and axis.low <= load.limit.value <= axis.high:
        marks.append(load.limit)
    return PlotAxis(load.axis, axis, _COUNT, marks)


def _describe_latencies(load: _Load, series: Sequence[ChartSeries]) -> str:
    first, last = series[0].points[0], series[0].points[-1]
    times = [(one.name, *(format_value(one.points[end].y, SECONDS) for end in (0, -1))) for one in series]
    told = "; ".join(f"{name} from {low} to {high}" for name, low, high in times)
    span = f"{format_number(first.x)} to {format_number(last.x)}"
    return f"{load.head} from {span}, on logarithmic axes. {told}."


def _build_latency_table(caption: str, curve: AnsweredCurve, load: _Load) -> ReportTable:
    rows = [
        (
            format_number(point.value),
            *(_format_cell(point.answers["throughput"], member) for member in (_FIRST, _NEXT, _SPEED)),
        )
        for point in curve.points
    ]
    head = (load.head, "First token", "Per token", "Tokens per second")
    return ReportTable(caption, head, rows, frozenset({1, 2, 3}))


def _format_cell(answer: Mapping[str, Any], member: str) -> str:
    return build_quantity_figure(member, answer[member]).stacked if member in answer else ""


def _build_frontier_chart(curve: AnsweredCurve) -> ReportChart | None:
    """Returns the tokens of a device against those of a user over the number of users."""
    found = [
        (point.value, 1.0 / each["value"], point.answers["throughput"][_SPEED]["value"] / point.devices)
        for point, each in list_quantities(curve, "throughput", _NEXT)
        if _SPEED in point.answers["throughput"] and each["value"] > 0
    ]
    if len(found) <= 1:
        return None
    points = [SeriesPoint(user, device, name=format_number(users)) for users, user, device in found]
    asked = [SeriesPoint(user, device) for users, user, device in found if users == curve.asked]
    series = [ChartSeries("The same devices, by the number of users", points)]
    if asked:
        series.append(ChartSeries("As asked", asked, "points"))
    caption = "What users and devices get: the frontier of serving"
    description = "; ".join(
        f"with {format_number(users)} users {format_number(user)} tokens per second for each and "
        f"{format_number(device)} on each device"
        for users, user, device in found
    )
    chart = render_series(
        ChartLabel("frontier", caption, description),
        series,
        PlotAxis("Of a user", build_linear_axis(*(user for _, user, _ in found)), _PER_SECOND),
        PlotAxis("Of a device", build_linear_axis(*(device for _, _, device in found)), _PER_SECOND),
    )
    rows = [tuple(map(format_number, each)) for each in found]
    head = ("Users", "Tokens/s per user", "Tokens/s per device")
    note = "Numbers beside points are users. More of them get more out of a device, and each waits longer."
    return ReportChart(caption, chart, ReportTable(caption, head, rows, frozenset({1, 2})), note)
