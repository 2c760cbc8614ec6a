"""What devices cost, rented or bought."""

from pydantic import MISSING

from service.questions.base import CatalogName, Input, MoneyInput, Text


class Rental(Input):
    """What a rented device costs: a price, or an offer of the catalog."""

    price_per_device_hour: MoneyInput | MISSING = MISSING
    """Price of one device for an hour."""
    offer_id: CatalogName | MISSING = MISSING
    """Offer of the catalog."""
    purchase_option: Text | MISSING = MISSING
    """Refuses an offer of another kind, such as spot for on_demand."""


class Purchase(Input):
    """What a bought device costs."""

    price_per_device: MoneyInput
    """Price of one device."""
