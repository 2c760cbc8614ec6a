"""The charges of a quote in one shape, whatever bill they stand on, and what each takes of the total."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

from service.planning.cost import round_amount

QuoteDocument = Mapping[str, Any]
BillPart = Literal["cost", "electricity"]

_OF_DEVICES: Final = ("device_hour", "device_term", "device")
"""Units that count devices: hours of one kind of them are not hours of another."""


class LinePurpose(NamedTuple):
    """What a line is for: those of two quotes that agree in all of it are compared."""

    part: BillPart
    name: str
    resource: str
    """The accelerator that is counted, or the tariff whose periods and tiers are named."""
    start_date: str
    end_date: str
    price_period: str
    tier: int


class PurposeLine(NamedTuple):
    """All charges of one purpose: their sum, and quantity and price where they share a unit and a price."""

    amount: Decimal
    currency_code: str
    paid: Decimal | None
    """What it takes of the quote's total, in the currency of that; None where that is not known."""
    quantity: Decimal | None = None
    unit: str | None = None
    unit_price: Decimal | None = None
    rate: Decimal = Decimal(1)
    """What a unit of its currency is of the total."""

    @property
    def is_product(self) -> bool:
        """Whether the amount is quantity times price, but for rounding."""
        if self.quantity is None or self.unit_price is None:
            return False
        off = abs(self.amount - self.quantity * self.unit_price)
        return off <= get_minor_unit(self.currency_code) + abs(self.amount) * _NOISE


_NOISE: Final = Decimal("1e-6")
"""Quantities and prices of tariffs are shown with so many digits that their product is better than this."""


def sum_lines(quote: QuoteDocument) -> dict[LinePurpose, PurposeLine]:
    """The lines of a quote by what they are for; those without an amount are none."""
    found: dict[LinePurpose, PurposeLine] = {}
    for part, charged, paid in _list_parts(quote):
        own: dict[LinePurpose, PurposeLine] = {}
        for line in charged:
            purpose = _build_purpose(part, line, quote)
            own[purpose] = _join_lines(own.get(purpose), _parse_line(line))
        found |= _apportion_paid(own, paid)
    return found


def _list_parts(quote: QuoteDocument) -> Iterator[tuple[BillPart, list[QuoteDocument], QuoteDocument | None]]:
    """Each bill: its lines, and how much of the quote's total it is."""
    answers, total = quote["answers"], quote["headlines"].get("total")
    cost: QuoteDocument = answers.get("cost", {})
    electricity: QuoteDocument = answers.get("utility_bill", {}).get("electricity", {})
    of_cost = of_electricity = None
    if total is not None:
        code = total["currency_code"]
        of_cost = cost.get("total", {"amount": "0", "currency_code": code})
        # The total adds electricity to own devices alone, in its own currency: the rest of it is that.
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
    """What the devices are: an accelerator of the catalog, or the name that its specification has."""
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
    """Each line with its share of what is paid; the largest takes what rounding leaves."""
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
    """The least amount that is written of a currency."""
    return Decimal(1).scaleb(int(round_amount(Decimal(0), currency_code).as_tuple().exponent))
