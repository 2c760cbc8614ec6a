"""Rules of hardware prices."""

from decimal import Decimal
from typing import NamedTuple

from service.catalog.offers.service import check_days
from service.catalog.rows import RowDocument
from service.planning.cost.prices import format_price
from service.planning.errors import PlanningError


class DevicePrice(NamedTuple):
    """Price of one device of a product, with its range if one is published."""

    amount: Decimal
    currency_code: str
    low: Decimal | None = None
    high: Decimal | None = None


def compute_device_price(document: RowDocument) -> DevicePrice:
    """Returns the price of one device. Refuses a price that lies outside its range, or no price at all."""
    count = document.get("accelerator_count", 1)
    stated, ends = document.get("price"), document.get("price_range")
    if ends is None:
        if stated is None:
            raise PlanningError("PRICE_PARTS", "/price", "give the price, its range or both")
        return DevicePrice(_read_amount(stated, "/price") / count, stated["currency_code"])
    low, high = (_read_amount(ends[end], f"/price_range/{end}") for end in ("low", "high"))
    amount = (low + high) / 2 if stated is None else _read_amount(stated, "/price")
    if not low <= amount <= high:
        raise PlanningError("PRICE_RANGE", "/price_range", "the price lies outside its range")
    return DevicePrice(amount / count, _get_currency(document), low / count, high / count)


def _read_amount(money: RowDocument, pointer: str) -> Decimal:
    amount = Decimal(money["amount"])
    if not amount:
        raise PlanningError("PRICE_ZERO", pointer, "a price of 0 is an unknown price")
    return amount


def _get_currency(document: RowDocument) -> str:
    ends = document["price_range"]
    monies = [ends["low"], ends["high"], *([document["price"]] if "price" in document else [])]
    codes = {money["currency_code"] for money in monies}
    if len(codes) > 1:
        raise PlanningError("CURRENCY_MISMATCH", "/price_range", "the amounts of a price are of one currency")
    return str(codes.pop())


def derive_price(document: RowDocument) -> RowDocument:
    """Returns the members that follow from a price. Refuses one that contradicts itself."""
    check_days(document)
    price = compute_device_price(document)
    return {"price_per_device": {"amount": format_price(price.amount), "currency_code": price.currency_code}}
