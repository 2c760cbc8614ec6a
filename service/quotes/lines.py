"""Charges of a quote in one shape for both bills, with their shares of the total."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

from service.planning.cost import round_amount

QuoteDocument = Mapping[str, Any]
BillPart = Literal["cost", "electricity"]

_OF_DEVICES: Final = ("device_hour", "device_term", "device")
"""Units of devices: hours of different accelerators are not comparable."""


class LinePurpose(NamedTuple):
    """Purpose of a line. Lines of two quotes with equal purposes are compared."""

    part: BillPart
    name: str
    resource: str
    """Accelerator of the devices, or tariff with the periods and tiers."""
    start_date: str
    end_date: str
    price_period: str
    tier: int


class PurposeLine(NamedTuple):
    """All charges of one purpose: their sum, with quantity and price if they share a unit and a price."""

    amount: Decimal
    currency_code: str
    paid: Decimal | None
    """Share of the quote's total in the currency of the total, or None if unknown."""
    quantity: Decimal | None = None
    unit: str | None = None
    unit_price: Decimal | None = None
    rate: Decimal = Decimal(1)
    """Exchange rate from the currency of the line to that of the total."""

    @property
    def is_product(self) -> bool:
        """True if the amount equals quantity times price, except for rounding."""
        if self.quantity is None or self.unit_price is None:
            return False
        off = abs(self.amount - self.quantity * self.unit_price)
        return off <= get_minor_unit(self.currency_code) + abs(self.amount) * _NOISE


_NOISE: Final = Decimal("1e-6")
"""Relative precision of the product of quantity and price: quantities and prices of tariffs have enough
digits.
"""


def sum_lines(quote: QuoteDocument) -> dict[LinePurpose, PurposeLine]:
    """Returns the lines of a quote by purpose. Lines without an amount are left out."""
    found: dict[LinePurpose, PurposeLine] = {}
    for part, charged, paid in _list_parts(quote):
        own: dict[LinePurpose, PurposeLine] = {}
        for line in charged:
            purpose = _build_purpose(part, line, quote)
            own[purpose] = _join_lines(own.get(purpose), _parse_line(line))
        found |= _apportion_paid(own, paid)
    return found


def _list_parts(quote: QuoteDocument) -> Iterator[tuple[BillPart, list[QuoteDocument], QuoteDocument | None]]:
    """Yields each bill with its lines and its share of the quote's total."""
    answers, total = quote["answers"], quote["headlines"].get("total")
    cost: QuoteDocument = answers.get("cost", {})
    electricity: QuoteDocument = answers.get("utility_bill", {}).get("electricity", {})
    of_cost = of_electricity = None
    if total is not None:
        code = total["currency_code"]
        of_cost = cost.get("total", {"amount": "0", "currency_code": code})
        # The total adds only the electricity of owned devices, in its own currency, so that is the remainder.
        left = Decimal(total["amount"]) - Decimal(of_cost["amount"]) if quote["owns_devices"] else Decimal(0)
        of_electricity = {"amount": left, "currency_code": code}
    for part, bill, paid in (("cost", cost, of_cost), ("electricity", electricity, of_electricity)):
        yield part, [line for line in bill.get("lines", ()) if "amount" in line], paid  # type: ignore[misc]


def _build_purpose(part: BillPart, line: QuoteDocument, quote: QuoteDocument) -> LinePurpose:
    period = line.get("billing_period", {})
    resource = ""
    if line["unit"] in _OF_DEVICES:
        resource = _get_accelerator_name(quote)
    elif "kind" in line:
        resource = line["source"]
    return LinePurpose(
        part,
        line["name"],
        resource,
        period.get("start_date", ""),
        period.get("end_date", ""),
        line.get("price_period", ""),
        line.get("tier", 0),
    )


def _get_accelerator_name(quote: QuoteDocument) -> str:
    """Returns the name of the devices: the accelerator's id, or the name of its specification."""
    if "accelerator_id" in quote:
        return str(quote["accelerator_id"])
    asked: QuoteDocument = (
        next(reversed(quote["requests"].values())).get("cluster", {}).get("accelerator", {})
    )
    return str(asked.get("specification", {}).get("name", ""))


def _parse_line(line: QuoteDocument) -> PurposeLine:
    price = line.get("unit_price")
    return PurposeLine(
        amount=Decimal(line["amount"]["amount"]),
        currency_code=line["amount"]["currency_code"],
        paid=None,
        quantity=Decimal(repr(line["quantity"])),
        unit=line["unit"],
        unit_price=Decimal(price["amount"]) if price else None,
    )


def _join_lines(known: PurposeLine | None, line: PurposeLine) -> PurposeLine:
    if known is None:
        return line
    joined = line._replace(amount=known.amount + line.amount)
    if known.unit != line.unit or known.quantity is None or line.quantity is None:
        return joined._replace(quantity=None, unit=None, unit_price=None)
    price = line.unit_price if line.unit_price == known.unit_price else None
    return joined._replace(quantity=known.quantity + line.quantity, unit_price=price)


def _apportion_paid(
    lines: Mapping[LinePurpose, PurposeLine], paid: QuoteDocument | None
) -> dict[LinePurpose, PurposeLine]:
    """Returns the lines with their shares of the paid amount. The largest takes the remainder of rounding."""
    if paid is None or not lines:
        return dict(lines)
    amount, code = Decimal(paid["amount"]), paid["currency_code"]
    whole = sum((line.amount for line in lines.values()), Decimal(0))
    if not whole and amount:
        return dict(lines)
    rate = amount / whole if whole else Decimal(1)
    shares = {each: round_amount(line.amount * rate, code) for each, line in lines.items()}
    largest = max(lines, key=lambda each: abs(lines[each].amount))
    shares[largest] += amount - sum(shares.values(), Decimal(0))
    return {each: line._replace(paid=shares[each], rate=rate) for each, line in lines.items()}


def get_minor_unit(currency_code: str) -> Decimal:
    """Returns the smallest amount of a currency."""
    return Decimal(1).scaleb(int(round_amount(Decimal(0), currency_code).as_tuple().exponent))
