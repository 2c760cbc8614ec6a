"""The electricity bill: by charge, by kind of charge and by billing period."""

from service.quotes.report.money import break_even_table, lines_picture, lines_table
from service.quotes.report.numbers import figures, money_figure
from service.quotes.report.shapes import Block, Figures, Section, shown_blocks
from service.quotes.report.utility_bill.charges import all_lines, charges_table
from service.quotes.report.utility_bill.months import kinds_table, periods_picture
from service.schemas.bill_answers import ElectricityAnswer, UtilityBillAnswer

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
    "incremental": " It is what the run adds to the bill of the load that is there already.",
    "standalone": " It is the bill of the run alone, for every billing period that it touches.",
}


def bill_section(answer: UtilityBillAnswer) -> Section:
    """The electricity bill: by charge and by billing period."""
    electricity = answer["electricity"]
    total = electricity.get("total")
    lines = electricity["lines"]
    blocks: list[Block | None] = []
    if electricity.get("periods"):
        blocks += [periods_picture(electricity), kinds_table(electricity)]
        blocks += [charges_table(lines), all_lines(lines)]
    elif lines:
        picture = lines_picture("electricity", "Electricity by equipment", lines, total)
        blocks.append(picture or lines_table("Electricity", dict(electricity)))
    blocks.append(Figures("Rent or buy", figures(answer, without=_BILL_TOLD)))
    blocks.append(break_even_table(answer.get("break_even", [])))
    return Section("bill", "Electricity bill", _bill_lead(electricity), shown_blocks(*blocks))


def _bill_lead(electricity: ElectricityAnswer) -> str:
    if "total" not in electricity:
        return "What the electricity costs is not known."
    total = money_figure("total", electricity["total"])
    text = f"The electricity costs {total.shown}"
    if total.low:
        text += f" (80% interval {total.low} to {total.high})"
    return f"{text}.{_WHOSE.get(electricity.get('allocation', ''), '')}"
