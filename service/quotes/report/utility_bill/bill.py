"""Section of the electricity bill: by charge, by kind of charge and by billing period."""

from service.kit.reports.numbers import build_money_figure, list_figures
from service.kit.reports.shapes import FigureList, ReportBlock, ReportSection, select_blocks
from service.quotes.report.money import build_break_even_table, build_lines_picture, build_lines_table
from service.quotes.report.utility_bill.charges import build_all_lines_table, build_charges_table
from service.quotes.report.utility_bill.months import build_kinds_table, build_periods_picture
from service.schemas.bill_answers import ElectricityBill, UtilityBill

_BILL_TOLD = frozenset(
    {
        "total_flops",
        "peak_flops_per_second_per_device",
        "duration_seconds",
        "device_hours",
        "water_liters",
    }
)
_WHOSE = {
    "incremental": " It is the increase of the bill of the baseline load.",
    "standalone": " It is the bill of the run alone, for every billing period of the run.",
}


def build_bill_section(answer: UtilityBill) -> ReportSection:
    """Returns the section of the electricity bill: by charge and by billing period."""
    electricity = answer["electricity"]
    total = electricity.get("total")
    lines = electricity["lines"]
    blocks: list[ReportBlock | None] = []
    if electricity.get("periods"):
        blocks += [build_periods_picture(electricity), build_kinds_table(electricity)]
        blocks += [build_charges_table(lines), build_all_lines_table(lines)]
    elif lines:
        picture = build_lines_picture("electricity", "Electricity by equipment", lines, total)
        blocks.append(picture or build_lines_table("Electricity", dict(electricity)))
    blocks.append(FigureList("Rent or buy", list_figures(answer, without=_BILL_TOLD)))
    blocks.append(build_break_even_table(answer.get("break_even", [])))
    return ReportSection("bill", "Electricity bill", _format_bill_lead(electricity), select_blocks(*blocks))


def _format_bill_lead(electricity: ElectricityBill) -> str:
    if "total" not in electricity:
        return "The cost of the electricity is unknown."
    total = build_money_figure("total", electricity["total"])
    text = f"The electricity costs {total.shown}"
    if total.low:
        text += f" (80% interval {total.low} to {total.high})"
    return f"{text}.{_WHOSE.get(electricity.get('allocation', ''), '')}"
