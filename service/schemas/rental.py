"""What rented devices cost, and on what terms."""

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
    """How low and how high a price may turn out, in its own currency."""

    low: DecimalText
    """Lowest."""
    high: DecimalText
    """Highest."""


class RentalBillingTerms(StrictModel):
    """How the time of an instance is counted."""

    increment_seconds: Positive | MISSING = MISSING
    """Time is rounded up to whole increments, such as 60 or 3600; it is counted exactly when left out."""
    minimum_seconds: NotNegative = 0.0
    """The least that an instance is charged for."""


class SpotTerms(StrictModel):
    """Devices that the provider may take back. An interruption of one instance stops a training run."""

    interruptions_per_hour: NotNegative
    """Mean number of interruptions of one instance in an hour."""
    restart_seconds: NotNegative | MISSING = MISSING
    """From an interruption until training starts to load its checkpoint, or until another instance serves.
    Defaults to the workload's reliability, and without it to that of published runs."""


class CommitmentTerms(StrictModel):
    """Devices that are paid for a term, whether they are used or not."""

    term_hours: Positive
    """How long the commitment lasts, such as 8766 for a year."""
    upfront_per_device: MoneyInput | MISSING = MISSING
    """Paid once for each device and term, beside the price of an hour."""
    idle_share: IdleShare | MISSING = MISSING
    """Share of the term in which nothing uses the devices; the run bears its part of the used hours. Left
    out, the run is all that uses them and bears whole terms."""


class CapacityBlockTerms(StrictModel):
    """Devices that are paid in whole blocks of time, before they start."""

    block_hours: Positive
    """Length of one block, such as 24."""


class Rental(StrictModel):
    """What a rented device costs: a price, or an offer of the catalog.

    Terms of an offer hold where the question gives none; at most one of spot, commitment and capacity block
    applies.
    """

    price_per_device_hour: MoneyInput | MISSING = MISSING
    """Price of one device for an hour."""
    price_range: PriceRange | MISSING = MISSING
    """Ends of that price; the interval of the total includes them."""
    offer_id: CatalogName | MISSING = MISSING
    """Offer of the catalog."""
    purchase_option: Text | MISSING = MISSING
    """Refuses an offer of another kind, such as spot for on_demand."""
    devices_per_instance: Degree | MISSING = MISSING
    """Devices of an instance, which is rented whole: those that the run leaves are charged too. Defaults to
    the offer's, and for a price to 1."""
    billing: RentalBillingTerms | MISSING = MISSING
    """How time is counted; exactly, when neither this nor the offer says."""
    spot: SpotTerms | MISSING = MISSING
    """Devices that may be taken back."""
    commitment: CommitmentTerms | MISSING = MISSING
    """Devices that are paid for a term."""
    capacity_block: CapacityBlockTerms | MISSING = MISSING
    """Devices that are paid in whole blocks."""
    price_factor: Factor | MISSING = MISSING
    """What all prices of the rental are multiplied by: a discount, or a price that moves."""
