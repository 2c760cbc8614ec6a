"""Money and charges as they are answered."""

from service.planning.cost.charges import ChargeLine, CurrencyCharges, Money
from service.schemas.answer import to_money_quantity
from service.schemas.base import CostLine, MoneyQuantity
from service.schemas.cost_answers import CostBreakdown


def to_money(amount: Money) -> MoneyQuantity:
    """Maps a headline amount."""
    return to_money_quantity(*amount)


def to_lines(charged: CurrencyCharges) -> list[CostLine]:
    """Maps the lines of charges."""
    return [to_line(line) for line in charged.lines]


def to_line(line: ChargeLine) -> CostLine:
    """Maps one charge."""
    currency = line.currency_code
    answer: CostLine = {
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


def to_money_total(charged: CurrencyCharges) -> CostBreakdown:
    """Maps charges and their sum."""
    return {"lines": to_lines(charged), "total": to_money(charged.total)}
