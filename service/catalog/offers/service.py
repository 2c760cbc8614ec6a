"""Hourly price of an offer, and the checks that its terms are consistent."""

from collections.abc import Iterator
from decimal import Decimal

from service.catalog.rows import RowDocument
from service.planning.cost.prices import (
    CommitmentTerm,
    compute_effective_price,
    device_price,
    format_price,
    parse_first_day,
    parse_last_day,
)
from service.planning.errors import PlanningError

_AMOUNTS = ("upfront_per_instance", "hourly_per_instance", "minimum_spend_per_hour")
_WITHOUT_TERM = ("on_demand", "spot")


def _get_amount(holder: RowDocument, member: str) -> Decimal | None:
    return Decimal(holder[member]["amount"]) if member in holder else None


def parse_term(document: RowDocument) -> CommitmentTerm | None:
    """Returns the term of an offer, if it has one."""
    commitment = document.get("commitment")
    if commitment is None:
        return None
    upfront, hourly, spend = (_get_amount(commitment, member) for member in _AMOUNTS)
    return CommitmentTerm(
        commitment["term_days"], upfront, hourly, commitment.get("minimum_instances"), spend
    )


def compute_instance_price(document: RowDocument) -> Decimal:
    """Returns the effective price of an instance for an hour."""
    return compute_effective_price(_get_amount(document, "price_per_instance_hour"), parse_term(document))


def get_currency(document: RowDocument) -> str:
    """Returns the currency of an offer, which all its amounts must have."""
    codes = dict(_list_currencies(document))
    code = next(iter(codes.values()), "")
    for pointer, other in codes.items():
        if other != code:
            raise PlanningError("CURRENCY_MISMATCH", pointer, "the amounts of an offer are of one currency")
    return code


def _list_currencies(document: RowDocument) -> Iterator[tuple[str, str]]:
    if "price_per_instance_hour" in document:
        yield "/price_per_instance_hour/currency_code", document["price_per_instance_hour"]["currency_code"]
    commitment = document.get("commitment", {})
    for member in _AMOUNTS:
        if member in commitment:
            yield f"/commitment/{member}/currency_code", commitment[member]["currency_code"]


def derive_prices(document: RowDocument) -> RowDocument:
    """Returns the members that follow from an offer. Refuses an offer that contradicts itself."""
    check_days(document)
    if "commitment" in document and document["purchase_option"] in _WITHOUT_TERM:
        raise PlanningError("TERM_NOT_EXPECTED", "/commitment", "on_demand and spot have no commitment")
    code = get_currency(document)
    each = compute_instance_price(document)
    device = device_price(each, document.get("accelerator_count", 1))
    return {
        "effective_price_per_instance_hour": {"amount": format_price(each), "currency_code": code},
        "price_per_device_hour": {"amount": format_price(device), "currency_code": code},
    }


def check_days(document: RowDocument) -> None:
    """Refuses dates that no calendar has, and a validity that ends before it begins."""
    for member in ("as_of", "valid_from", "valid_until"):
        if member in document:
            try:
                parse_last_day(document[member])
            except ValueError as error:
                detail = "there is no such day"
                raise PlanningError("DATE_INVALID", f"/{member}", detail) from error
    begins, ends = document.get("valid_from"), document.get("valid_until")
    if begins and ends and parse_last_day(ends) < parse_first_day(begins):
        raise PlanningError("VALIDITY_REVERSED", "/valid_until", "it ends before it begins")
