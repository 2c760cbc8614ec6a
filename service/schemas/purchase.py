"""Price of bought devices, and the yearly cost of owning them."""

from typing import Annotated

from pydantic import MISSING, Field

from service.schemas.base import CatalogName, Degree, Factor, MoneyInput, Share, StrictModel
from service.schemas.rental import IdleShare, PriceRange

Rate = Annotated[float, Field(ge=0, le=1)]


class PurchasedHosts(StrictModel):
    """Servers around the devices, priced without the devices."""

    price_per_host: MoneyInput
    """Price of one server."""
    devices_per_host: Degree | MISSING = MISSING
    """Devices of one server. Defaults to the devices of a node of the cluster. Servers are bought whole."""


class Ownership(StrictModel):
    """Terms that turn a purchase into a yearly cost; a run bears its share of the device-hours used."""

    years: Annotated[float, Field(gt=0, le=50)]
    """Years of use over which the purchase is depreciated in equal parts."""
    residual_share: IdleShare = 0.0
    """Share of the purchase that the devices are worth at the end."""
    interest_rate: Rate = 0.0
    """Rate per year at which the purchase is financed; paid back in equal yearly amounts (an annuity)."""
    maintenance_share: Rate = 0.0
    """Maintenance in a year as a share of the purchase."""
    utilization: Share = 1.0
    """Share of the hours of a year in which the devices run something."""
    staff_per_year: MoneyInput | MISSING = MISSING
    """Yearly cost of the staff that runs the devices."""
    space_per_year: MoneyInput | MISSING = MISSING
    """Yearly cost of floor, racks and cooling, without electricity."""


class Purchase(StrictModel):
    """Price of a bought cluster, given directly or by a hardware price of the catalog."""

    price_per_device: MoneyInput | MISSING = MISSING
    """Price of one device."""
    hardware_price_id: CatalogName | MISSING = MISSING
    """Id of a hardware price of the catalog, in place of the price of a device. Its products are bought
    whole, and its published range is that of the price unless `price_range` is given."""
    price_range: PriceRange | MISSING = MISSING
    """Range of the price of one device. The interval of the total includes it."""
    price_factor: Factor | MISSING = MISSING
    """Factor of the price and its range: a discount, or a price that moves."""
    hosts: PurchasedHosts | MISSING = MISSING
    """Servers around the devices. If left out, they are part of the price of a device; refused beside a
    hardware price that includes them."""
    network_per_device: MoneyInput | MISSING = MISSING
    """Adapters, cables and switches, divided among the devices."""
    storage: MoneyInput | MISSING = MISSING
    """Price of the storage of the cluster."""
    ownership: Ownership | MISSING = MISSING
    """Terms of ownership, for the cost of a year and of the run. Without it the purchase is only a total."""
