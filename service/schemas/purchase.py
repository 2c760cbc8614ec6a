"""What bought devices cost, and what owning them costs each year."""

from typing import Annotated

from pydantic import MISSING, Field

from service.schemas.base import Degree, Factor, MoneyInput, Share, StrictModel
from service.schemas.rental import IdleShare, PriceRange

Rate = Annotated[float, Field(ge=0, le=1)]


class PurchasedHosts(StrictModel):
    """Servers around the devices, without these."""

    price_per_host: MoneyInput
    """Price of one."""
    devices_per_host: Degree | MISSING = MISSING
    """Defaults to the devices of a node of the cluster. Hosts are bought whole."""


class Ownership(StrictModel):
    """How a purchase becomes a cost of each year, and of the run: its share of the device-hours used."""

    years: Annotated[float, Field(gt=0, le=50)]
    """Years of use over which the purchase is written off in equal parts."""
    residual_share: IdleShare = 0.0
    """Share of the purchase that the devices are worth at the end."""
    interest_rate: Rate = 0.0
    """Rate per year at which the purchase is financed; paid back in equal yearly amounts (an annuity)."""
    maintenance_share: Rate = 0.0
    """Maintenance in a year as a share of the purchase."""
    utilization: Share = 1.0
    """Share of the hours of a year in which the devices run something."""
    staff_per_year: MoneyInput | MISSING = MISSING
    """Who runs them."""
    space_per_year: MoneyInput | MISSING = MISSING
    """Floor, racks and cooling, without electricity."""


class Purchase(StrictModel):
    """What the bought cluster costs."""

    price_per_device: MoneyInput
    """Price of one device."""
    price_range: PriceRange | MISSING = MISSING
    """Ends of that price; the interval of the total includes them."""
    price_factor: Factor | MISSING = MISSING
    """What that price and its ends are multiplied by: a discount, or a price that moves."""
    hosts: PurchasedHosts | MISSING = MISSING
    """Servers; in the price of a device when left out."""
    network_per_device: MoneyInput | MISSING = MISSING
    """Adapters, cables and switches, shared out among the devices."""
    storage: MoneyInput | MISSING = MISSING
    """Storage of the cluster."""
    ownership: Ownership | MISSING = MISSING
    """What owning costs each year and the run; without it the purchase is only a total."""
