"""Price and terms of rented devices."""

from typing import Annotated

from pydantic import MISSING, Field

from service.schemas.base import (
    CatalogName,
    DecimalText,
    Degree,
    Factor,
    MoneyInput,
    NotNegative,
    Positive,
    StrictModel,
    Text,
)

IdleShare = Annotated[float, Field(ge=0, le=0.99)]


class PriceRange(StrictModel):
    """Range of a price, in the currency of the price."""

    low: DecimalText
    """Lowest price."""
    high: DecimalText
    """Highest price."""


class RentalBillingTerms(StrictModel):
    """Billing of the time of an instance."""

    increment_seconds: Positive | MISSING = MISSING
    """Increment to which time is rounded up, such as 60 or 3600. By default time is billed exactly."""
    minimum_seconds: NotNegative = 0.0
    """Shortest time that an instance is charged for."""


class SpotTerms(StrictModel):
    """Terms of devices that the provider may reclaim. Interrupting one instance stops a training run."""

    interruptions_per_hour: NotNegative
    """Mean number of interruptions of one instance in an hour."""
    restart_seconds: NotNegative | MISSING = MISSING
    """Time from an interruption until training starts to load its checkpoint, or until another instance
    serves. Defaults to the workload's `reliability`, and without it to the value of published runs."""


class CommitmentTerms(StrictModel):
    """Terms of devices that are paid for a term, whether they are used or not."""

    term_hours: Positive
    """Length of the term, such as 8766 for a year."""
    upfront_per_device: MoneyInput | MISSING = MISSING
    """Amount that is paid once for each device and term, in addition to the hourly price."""
    idle_share: IdleShare | MISSING = MISSING
    """Share of the term in which the devices are idle; the run bears its part of the used hours. By default
    only the run uses the devices, and it bears whole terms."""


class CapacityBlockTerms(StrictModel):
    """Terms of devices that are paid in whole blocks of time, in advance."""

    block_hours: Positive
    """Length of one block, such as 24."""


class Rental(StrictModel):
    """Price of a rented device, given directly or by an offer of the catalog.

    Terms of the offer apply where the request gives none. At most one of spot, commitment and capacity block
    applies.
    """

    price_per_device_hour: MoneyInput | MISSING = MISSING
    """Price of one device for an hour."""
    price_range: PriceRange | MISSING = MISSING
    """Range of the price. The interval of the total includes it."""
    offer_id: CatalogName | MISSING = MISSING
    """Id of an offer of the catalog."""
    purchase_option: Text | MISSING = MISSING
    """Expected purchase option of the offer. An offer with another one is refused, such as spot for
    on_demand."""
    devices_per_instance: Degree | MISSING = MISSING
    """Devices of an instance. An instance is rented whole, and devices that the run does not use are charged
    too. Defaults to the value of the offer, and with a price to 1."""
    billing: RentalBillingTerms | MISSING = MISSING
    """Billing of time. Defaults to the billing of the offer, else to exact time."""
    spot: SpotTerms | MISSING = MISSING
    """Terms of spot devices, which the provider may reclaim."""
    commitment: CommitmentTerms | MISSING = MISSING
    """Terms of devices that are paid for a term."""
    capacity_block: CapacityBlockTerms | MISSING = MISSING
    """Terms of devices that are paid in whole blocks."""
    price_factor: Factor | MISSING = MISSING
    """Factor of all prices of the rental: a discount, or a price that moves."""
