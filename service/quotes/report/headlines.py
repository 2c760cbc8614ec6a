"""Headlines of a quote with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.kit.locales import localize_number
from service.kit.reports.charts.bars import ChartBar, render_bars
from service.kit.reports.charts.drawing import ChartLabel, ChartMark
from service.kit.reports.numbers import NOT_KNOWN, TIMES, FormattedFigure, UnitScale, build_figure
from service.kit.reports.scaling import build_doubling_axis
from service.kit.reports.shapes import ReportChart, ReportTable
from service.schemas.base import EstimateGap

NAMES = {
    "total": "Total",
    "duration_seconds": "Time of the run",
    "device_hours": "Device-hours",
    "total_bytes": "Memory of the fullest device",
    "fits": "Fits",
    "facility_kwh": "Energy at the meter",
    "peak_kw": "Peak power at the meter",
    "location_based_kg_co2e": "Emissions (location-based)",
    "water_liters": "Water",
}
_EXPECTED = {
    "memory": ("total_bytes", "fits"),
    "throughput": ("duration_seconds",),
    "cost": ("total", "duration_seconds", "device_hours"),
    "utility_bill": ("facility_kwh", "peak_kw", "location_based_kg_co2e", "water_liters"),
}
"""Headlines that belong to each request."""
BASES = {
    "exact": "exact",
    "calibrated_node": "measured on this node",
    "calibrated_sku": "measured on such devices",
    "calibrated_generation": "measured on its generation",
    "reference": "reference measurements",
    "datasheet": "data sheets",
    "assumed": "given with the question",
}
_LEAST, _MOST = 2.0**-6, 2.0**6


def build_headline_rows(quote: Mapping[str, Any]) -> list[FormattedFigure]:
    """Returns all headlines. Those that were requested but are unknown have a reason."""
    expected = {name for request in quote["requests"] for name in _EXPECTED[request]}
    found: Mapping[str, Any] = quote["headlines"]
    rows: list[FormattedFigure] = []
    for name, title in NAMES.items():
        one = build_figure(name, found.get(name))
        if one is not None:
            rows.append(one._replace(name=title))
        elif name in expected:
            rows.append(FormattedFigure(title, NOT_KNOWN, basis=_find_reason(quote["gaps"], name)))
    return rows


def _find_reason(gaps: Sequence[EstimateGap], name: str) -> str:
    """Returns the detail of the gap of a headline, or of the figure with its name, or an empty string."""
    found = [gap for gap in gaps if gap["pointer"].endswith(f"/{name}")]
    return min(found, key=lambda gap: len(gap["pointer"]))["detail"] if found else ""


def format_total(quote: Mapping[str, Any]) -> str:
    """Returns a sentence on the charges that the total counts."""
    if "total" not in quote["headlines"]:
        return ""
    codes = {warning["code"] for warning in quote["warnings"]}
    has_bill = "utility_bill" in quote["answers"]
    if quote.get("owns_devices") and has_bill and "ELECTRICITY_NOT_IN_TOTAL" not in codes:
        return "The total counts the charges of the run and the electricity of its own devices."
    return "The total counts the charges of the run without electricity."


def _get_interval(value: Mapping[str, Any]) -> tuple[float, float, float]:
    """Returns low, middle and high of a headline."""
    return (float(value["low"]), float(value.get("value", value.get("amount"))), float(value["high"]))


def build_interval_chart(headlines: Mapping[str, Any]) -> ReportChart | None:
    """Returns a chart of the intervals of the headlines, relative to their estimates."""
    found: list[tuple[str, float, float]] = []
    for name, title in NAMES.items():
        value = headlines.get(name)
        if isinstance(value, Mapping):
            low, middle, high = _get_interval(value)
            if 0 < low < high:
                found.append((title, low / middle, high / middle))
    if not found:
        return None
    axis = build_doubling_axis(
        *(max(low, _LEAST) for _, low, _ in found), *(min(high, _MOST) for *_, high in found)
    )
    rows = [
        ChartBar(name, localize_number(f"{TIMES}{low:.2f} to {TIMES}{high:.2f}"), 1.0, 1.0, low, high)
        for name, low, high in found
    ]
    caption = "80% intervals of the headlines over their estimates"
    chart = render_bars(
        ChartLabel(
            "certainty",
            caption,
            "Points are the estimates, lines their intervals, on a logarithmic axis. "
            + "; ".join(f"{row.name} {row.shown}" for row in rows),
        ),
        rows,
        axis,
        UnitScale(1.0, "over the estimate, logarithmic"),
        [ChartMark("the estimate", 1.0)],
    )
    table = ReportTable(
        caption,
        ("Headline", "Low end", "High end"),
        [(name, *(localize_number(f"{TIMES}{end:.3f}") for end in (low, high))) for name, low, high in found],
        frozenset({1, 2}),
    )
    note = "In four of five cases the figure is expected within its interval."
    if any(low < _LEAST or high > _MOST for _, low, high in found):
        note += " Intervals beyond the axis are drawn to its end."
    return ReportChart(caption, chart, table, note)


def format_basis(basis: str) -> str:
    """Returns the words for a kind of evidence."""
    return BASES.get(basis, basis)
