"""Tables of the bill by charge: over all billing periods, and line by line."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from service.kit.locales import format_count
from service.kit.reports.numbers import NOT_KNOWN, format_money, format_quantity, to_title
from service.kit.reports.shapes import ReportTable
from service.quotes.report.money import format_amount
from service.quotes.report.utility_bill.months import format_period, sum_amounts
from service.schemas.bill_answers import ElectricityBillLine

_MOST_LINES = 24


def _format_name(line: ElectricityBillLine) -> str:
    parts = [to_title(line["name"])]
    if "price_period" in line:
        parts.append(to_title(line["price_period"]))
    if "tier" in line:
        parts.append(f"tier {line['tier']}")
    if line.get("after_run"):
        parts.append("after the run")
    return ", ".join(parts)


def build_charges_table(lines: Sequence[ElectricityBillLine]) -> ReportTable:
    """Returns a table of each charge over all billing periods, the largest first."""
    groups: defaultdict[tuple[str, str], list[ElectricityBillLine]] = defaultdict(list)
    for line in lines:
        groups[_format_name(line), line["unit"]].append(line)
    known = all("amount" in line for line in lines)

    def compute_sort_key(item: tuple[tuple[str, str], list[ElectricityBillLine]]) -> Decimal:
        return -abs(sum((Decimal(line["amount"]["amount"]) for line in item[1]), Decimal(0)))

    ordered = sorted(groups.items(), key=compute_sort_key) if known else list(groups.items())
    rows = [
        (name, str(len(each)), _format_prices(each), sum_amounts(each, "amount") or NOT_KNOWN)
        for (name, _), each in ordered
    ]
    caption = "Bill by charge, over all billing periods"
    head = ("Charge", "Lines", "Unit price", "Amount")
    return ReportTable(
        caption, head, rows, frozenset({1, 2, 3}), ("Together", "", "", sum_amounts(lines, "amount"))
    )


def _format_prices(lines: Sequence[ElectricityBillLine]) -> str:
    prices = [line["unit_price"] for line in lines if "unit_price" in line]
    if not prices:
        return ""
    amounts = sorted({Decimal(price["amount"]) for price in prices})
    code = prices[0]["currency_code"]
    unit = lines[0]["unit"].replace("_", " ")
    ends = dict.fromkeys((amounts[0], amounts[-1]))
    return " to ".join(format_money(amount, code) for amount in ends) + f" per {unit}"


def build_all_lines_table(lines: Sequence[ElectricityBillLine]) -> ReportTable:
    """Returns a table of every line of every billing period."""
    rows = [
        (
            format_period(line["billing_period"]) if "billing_period" in line else "",
            _format_name(line) + (f" ({line['note']})" if "note" in line else ""),
            f"{format_quantity(line['quantity'])} {line['unit'].replace('_', ' ')}",
            format_money(**line["unit_price"]) if "unit_price" in line else "",
            format_amount(line),
        )
        for line in lines
    ]
    head = ("Billing period", "Charge", "Quantity", "Unit price", "Amount")
    caption = f"All {format_count(len(rows))} lines of the bill"
    return ReportTable(caption, head, rows, frozenset({2, 3, 4}), is_folded=len(rows) > _MOST_LINES)
