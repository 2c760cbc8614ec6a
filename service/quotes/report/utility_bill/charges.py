"""The bill by charge: over all billing periods, and line by line."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from service.quotes.report.money import amount_of
from service.quotes.report.numbers import NOT_KNOWN, counted, money_text, words
from service.quotes.report.shapes import Table
from service.quotes.report.utility_bill.months import period_name, summed
from service.schemas.bill_answers import ElectricityLine

_MOST_LINES = 24


def _name_of(line: ElectricityLine) -> str:
    parts = [words(line["name"])]
    if "price_period" in line:
        parts.append(words(line["price_period"]))
    if "tier" in line:
        parts.append(f"tier {line['tier']}")
    if line.get("after_run"):
        parts.append("after the run")
    return ", ".join(parts)


def charges_table(lines: Sequence[ElectricityLine]) -> Table:
    """Each charge over all billing periods, the largest first."""
    groups: defaultdict[tuple[str, str], list[ElectricityLine]] = defaultdict(list)
    for line in lines:
        groups[_name_of(line), line["unit"]].append(line)
    known = all("amount" in line for line in lines)

    def size(item: tuple[tuple[str, str], list[ElectricityLine]]) -> Decimal:
        return -abs(sum((Decimal(line["amount"]["amount"]) for line in item[1]), Decimal(0)))

    ordered = sorted(groups.items(), key=size) if known else list(groups.items())
    rows = [
        (name, str(len(each)), _prices(each), summed(each, "amount") or NOT_KNOWN)
        for (name, _), each in ordered
    ]
    caption = "Bill by charge, over all billing periods"
    head = ("Charge", "Lines", "Price of one", "Amount")
    return Table(caption, head, rows, frozenset({1, 2, 3}), ("Together", "", "", summed(lines, "amount")))


def _prices(lines: Sequence[ElectricityLine]) -> str:
    prices = [line["unit_price"] for line in lines if "unit_price" in line]
    if not prices:
        return ""
    amounts = sorted({Decimal(price["amount"]) for price in prices})
    code = prices[0]["currency_code"]
    unit = lines[0]["unit"].replace("_", " ")
    ends = dict.fromkeys((amounts[0], amounts[-1]))
    return " to ".join(money_text(amount, code) for amount in ends) + f" per {unit}"


def all_lines(lines: Sequence[ElectricityLine]) -> Table:
    """Every line of every billing period."""
    rows = [
        (
            period_name(line["billing_period"]) if "billing_period" in line else "",
            _name_of(line) + (f" ({line['note']})" if "note" in line else ""),
            f"{counted(line['quantity'])} {line['unit'].replace('_', ' ')}",
            money_text(**line["unit_price"]) if "unit_price" in line else "",
            amount_of(line),
        )
        for line in lines
    ]
    head = ("Billing period", "Charge", "Quantity", "Price of one", "Amount")
    caption = f"All {len(rows):,} lines of the bill"
    return Table(caption, head, rows, frozenset({2, 3, 4}), is_folded=len(rows) > _MOST_LINES)
