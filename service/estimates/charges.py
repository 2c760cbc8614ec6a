"""Charges as they are answered."""

from service.planning.cost.charges import ChargeLine, Charges, Money
from service.schemas.answer import money
from service.schemas.base import Line, MoneyQuantity
from service.schemas.cost_answers import MoneyTotal


def to_money(amount: Money) -> MoneyQuantity:
    """A headline amount."""
    return money(*amount)


def to_lines(charged: Charges) -> list[Line]:
    """The lines of charges."""
    return [_to_line(line) for line in charged.lines]


def _to_line(line: ChargeLine) -> Line:
    currency = line.currency_code
    answer: Line = {
        "name": line.name,
        "quantity": line.quantity,
        "unit": line.unit,
        "unit_price": {"amount": f"{line.unit_price:f}", "currency_code": currency},
        "amount": {"amount": f"{line.amount:f}", "currency_code": currency},
        "source": line.source,
    }
    if line.category:
        answer["category"] = line.category
    return answer


def to_money_total(charged: Charges) -> MoneyTotal:
    """Charges and their sum."""
    return {"lines": to_lines(charged), "total": to_money(charged.total)}
