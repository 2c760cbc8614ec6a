"""On what terms devices are rented or bought, and data are kept and sent: prices with every choice made."""

from typing import NamedTuple

from service.planning.cost.charges import UnitPrice
from service.planning.cost.currencies import TotalCurrency
from service.planning.cost.ownership import OwnershipTerms as YearlyTerms
from service.planning.cost.rent import count_paid_devices
from service.planning.quantity import Quantity


class SpotTerms(NamedTuple):
    """Devices that the provider may take back: how often it takes one instance, on average.

    ``restart_seconds`` is None for that of the run, or that of published runs.
    """

    interruptions_per_hour: float
    restart_seconds: Quantity | None = None


class RentalTerms(NamedTuple):
    """The terms of a rental; None where none is stated."""

    price: UnitPrice
    """Of one device for an hour."""
    option: str | None = None
    """Such as on_demand or spot."""
    devices_per_instance: int = 1
    increment_seconds: float | None = None
    minimum_seconds: float = 0.0
    term_hours: float | None = None
    upfront: UnitPrice | None = None
    """Of a device and term."""
    idle_share: float | None = None
    least_instances: int = 1
    least_spend_per_hour: UnitPrice | None = None
    """The least that a commitment costs in each of its hours."""
    block_hours: float | None = None
    spot: SpotTerms | None = None
    offer_id: str | None = None
    provider: str | None = None
    region: str | None = None
    zone: str | None = None

    def count_instances(self, devices: int) -> int:
        """Whole instances that hold so many devices."""
        paid = count_paid_devices(devices, self.devices_per_instance, self.least_instances)
        return paid // self.devices_per_instance


class PurchasedPart(NamedTuple):
    """What is bought: so many at a price."""

    name: str
    price: UnitPrice
    unit: str
    number: float


class OwnershipTerms(NamedTuple):
    """How a purchase becomes a cost of each year; ``utilization`` is the share of its hours that are used."""

    yearly: YearlyTerms
    utilization: float = 1.0
    staff_per_year: UnitPrice | None = None
    space_per_year: UnitPrice | None = None


class PurchaseTerms(NamedTuple):
    """What is bought, the devices first; without ``ownership`` the purchase is only a total."""

    parts: tuple[PurchasedPart, ...]
    ownership: OwnershipTerms | None = None


class StorageTerms(NamedTuple):
    """What is kept, and the price of a gigabyte and month.

    None for the data set and the checkpoints of the run, and for as long as it lasts.
    """

    price: UnitPrice
    dataset_bytes: float | None = None
    checkpoints_kept: float = 0.0
    checkpoint_bytes: float | None = None
    kept_seconds: float | None = None


class EgressTerms(NamedTuple):
    """What leaves over the whole run, or in each of its seconds, and the price of a gigabyte."""

    price: UnitPrice
    bytes: float | None = None
    bytes_per_second: float | None = None


class CostTerms(NamedTuple):
    """All that is paid for a run: how its devices are had, and what it keeps and sends."""

    currencies: TotalCurrency = TotalCurrency()
    rental: RentalTerms | None = None
    purchase: PurchaseTerms | None = None
    storage: StorageTerms | None = None
    egress: EgressTerms | None = None
