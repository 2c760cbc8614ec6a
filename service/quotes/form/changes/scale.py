"""Charts of a training run on other numbers of devices: its speed, and its cost against its time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.kit.http.html import Form
from service.kit.locales import format_count
from service.kit.reports.charts.drawing import ChartLabel, ChartMark
from service.kit.reports.charts.series import ChartSeries, PlotAxis, SeriesPoint, render_series
from service.kit.reports.numbers import (
    SECONDS,
    UnitLadder,
    UnitScale,
    build_money_figure,
    build_quantity_figure,
    format_number,
    format_value,
    select_scale,
)
from service.kit.reports.scaling import (
    ChartAxis,
    build_doubling_axis,
    build_linear_axis,
    build_logarithmic_axis,
)
from service.kit.reports.shapes import ReportChart, ReportTable
from service.quotes.form.changes.variants import (
    AnsweredCurve,
    CurvePoint,
    VariedField,
    WorkTime,
    answer_curve,
    list_quantities,
)
from service.quotes.report.money import build_money_ladder
from service.resolve.catalog import CatalogView

_DEVICES: Final = VariedField("accelerator_count", "devices or instances")
_COUNT: Final = UnitScale(1.0, "")
_FITTING, _FULL = "Fits the memory", "Does not fit the memory"


def build_scale_charts(
    form: Form, name: str, catalog: CatalogView, left: WorkTime
) -> tuple[list[ReportChart], AnsweredCurve | None]:
    """Returns the charts over the number of devices, and the curve that they are drawn from."""
    names = ("memory", "throughput") if name == "throughput" else ("memory", "throughput", "cost")
    curve = answer_curve(form, _DEVICES, names, catalog, left)
    if curve is None:
        return [], None
    charts = (_build_scaling_chart(curve), _build_deadline_chart(curve))
    return [chart for chart in charts if chart is not None], curve


def _build_scaling_chart(curve: AnsweredCurve) -> ReportChart | None:
    """Returns the tokens per second over the devices, beside twice as many from twice the devices."""
    found = list(list_quantities(curve, "throughput", "tokens_per_second"))
    if len(found) <= 1:
        return None
    base, rate = next((one for one in found if one[0].value == curve.asked), found[0])
    per_device = rate["value"] / base.devices
    ideal = [SeriesPoint(point.devices, per_device * point.devices) for point, _ in found]
    series = [
        *_split_by_fit(
            [
                (point, SeriesPoint(point.devices, each["value"], each["low"], each["high"]))
                for point, each in found
            ]
        ),
        ChartSeries(f"Ideal: each device as fast as of {format_count(base.devices)}", ideal, "line"),
    ]
    asked = [
        ChartMark(f"asked: {format_count(one.devices)}", one.devices)
        for one, _ in found
        if one.value == curve.asked
    ]
    counts = [point.devices for point, _ in found]
    ends = [end for _, each in found for end in (each["low"], each["high"])] + [one.y for one in ideal]
    caption = "Speed against the number of devices"
    rates = "; ".join(
        f"{format_count(point.devices)} devices {format_number(each['value'])} tokens per second"
        for point, each in found
    )
    chart = render_series(
        ChartLabel("scaling", caption, f"On logarithmic axes: {rates}."),
        series,
        PlotAxis("Devices", build_doubling_axis(*counts), _COUNT, asked),
        PlotAxis("Speed", build_logarithmic_axis(*ends), UnitScale(1.0, "tokens per second")),
    )
    rows = [
        (
            format_count(point.devices),
            build_quantity_figure("tokens_per_second", each).stacked,
            f"{each['value'] / (per_device * point.devices):.0%}",
            _format_fit(point),
        )
        for point, each in found
    ]
    head = ("Devices", "Tokens per second", "Of the ideal", "Fits")
    note = "Upright lines through points are 80% intervals. The batch of a step stays that of the question."
    return ReportChart(caption, chart, ReportTable(caption, head, rows, frozenset({1, 2})), note)


def _list_asked(curve: AnsweredCurve) -> list[int]:
    return [point.devices for point in curve.points if point.value == curve.asked]


def _split_by_fit(found: Sequence[tuple[CurvePoint, SeriesPoint]]) -> list[ChartSeries]:
    """Returns points that fit the memory as one series, and those that do not as another."""
    fitting = [one for point, one in found if _is_fitting(point) is not False]
    full = [one for point, one in found if _is_fitting(point) is False]
    series = [ChartSeries(_FITTING, fitting)] if fitting else []
    return [*series, ChartSeries(_FULL, full, "points")] if full else series


def _is_fitting(point: CurvePoint) -> bool | None:
    found: bool | None = point.answers["memory"].get("fits")
    return found


def _format_fit(point: CurvePoint) -> str:
    return {True: "yes", False: "no", None: "not known"}[_is_fitting(point)]


def _build_deadline_chart(curve: AnsweredCurve) -> ReportChart | None:
    """Returns the total over the time of the run, a point for each number of devices."""
    found = [
        (point, total, point.answers["cost"]["duration_seconds"])
        for point, total in list_quantities(curve, "cost", "total")
        if "duration_seconds" in point.answers["cost"]
    ]
    if len(found) <= 1 or len({total["currency_code"] for _, total, _ in found}) > 1:
        return None
    placed = [(point, _place_run(point, total, time)) for point, total, time in found]
    asked = [
        one._replace(low=None, high=None, name="") for point, one in placed if point.value == curve.asked
    ]
    times, amounts = [one.x for _, one in placed], [float(total["high"]) for _, total, _ in found]
    unit = select_scale(SECONDS, min(times))
    ladder = build_money_ladder(found[0][1]["currency_code"])
    caption = "Cost against deadline"
    chart = render_series(
        ChartLabel("deadline", caption, _describe_runs(found)),
        [*_split_by_fit(placed), *([ChartSeries("As asked", asked, "points")] if asked else [])],
        PlotAxis("Time of the run", build_logarithmic_axis(*times, unit=unit.factor), unit),
        PlotAxis("Cost", _build_money_axis(amounts, ladder), select_scale(ladder, max(amounts))),
    )
    rows = [
        (
            format_count(point.devices),
            build_quantity_figure("duration_seconds", time).stacked,
            build_money_figure("total", total).stacked,
            _format_fit(point),
        )
        for point, total, time in found
    ]
    note = (
        "Numbers beside points are devices, upright lines 80% intervals of the cost. For a deadline, take the"
        " cheapest point to the left of it."
    )
    head = ("Devices", "Time", "Cost", "Fits")
    return ReportChart(caption, chart, ReportTable(caption, head, rows, frozenset({1, 2})), note)


def _place_run(point: CurvePoint, total: Mapping[str, Any], time: Mapping[str, Any]) -> SeriesPoint:
    amount, low, high = (float(total[end]) for end in ("amount", "low", "high"))
    return SeriesPoint(time["value"], amount, low, high, format_count(point.devices))


def _build_money_axis(amounts: Sequence[float], ladder: UnitLadder) -> ChartAxis:
    return build_linear_axis(*amounts, unit=select_scale(ladder, max(amounts)).factor)


def _describe_runs(found: Sequence[tuple[CurvePoint, Mapping[str, Any], Mapping[str, Any]]]) -> str:
    runs = "; ".join(
        f"{format_count(point.devices)} devices {format_value(time['value'], SECONDS)} for "
        f"{build_money_figure('total', total).shown}"
        for point, total, time in found
    )
    return f"The time is on a logarithmic axis: {runs}."
