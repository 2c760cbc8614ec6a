"""Terms of rental, purchase, storage and egress: prices with every choice made."""

from typing import NamedTuple

from service.planning.cost.charges import UnitPrice
from service.planning.cost.currencies import TotalCurrency
from service.planning.cost.ownership import OwnershipTerms as YearlyTerms
from service.planning.cost.rent import count_paid_devices
from service.planning.quantity import Quantity


class SpotTerms(NamedTuple):
    """Spot terms: mean rate at which the provider interrupts one instance.

    ``restart_seconds`` is None for that of the run, or that of published runs.
    """

    interruptions_per_hour: float
    restart_seconds: Quantity | None = None


class RentalTerms(NamedTuple):
    """Terms of a rental; a member is None where it is not stated."""

    price: UnitPrice
    """Price of one device for an hour."""
    option: str | None = None
    """Purchase option, such as on_demand or spot."""
    devices_per_instance: int = 1
    increment_seconds: float | None = None
    minimum_seconds: float = 0.0
    term_hours: float | None = None
    upfront: UnitPrice | None = None
    """Upfront payment per device and term."""
    idle_share: float | None = None
    least_instances: int = 1
    least_spend_per_hour: UnitPrice | None = None
    """Minimum spend of a commitment in each of its hours."""
    block_hours: float | None = None
    spot: SpotTerms | None = None
    offer_id: str | None = None
    provider: str | None = None
    region: str | None = None
    zone: str | None = None

    def count_instances(self, devices: int) -> int:
        """Returns the whole instances that hold so many devices."""
        paid = count_paid_devices(devices, self.devices_per_instance, self.least_instances)
        return paid // self.devices_per_instance


class PurchasedPart(NamedTuple):
    """A purchased item: a number of units at a price."""

    name: str
    price: UnitPrice
    unit: str
    number: float


class OwnershipTerms(NamedTuple):
    """Terms that turn a purchase into a yearly cost; ``utilization`` is the used share of its hours."""

    yearly: YearlyTerms
    utilization: float = 1.0
    staff_per_year: UnitPrice | None = None
    space_per_year: UnitPrice | None = None


class PurchaseTerms(NamedTuple):
    """Purchased items, the devices first; without ``ownership`` the purchase is only a total."""

    parts: tuple[PurchasedPart, ...]
    ownership: OwnershipTerms | None = None


class StorageTerms(NamedTuple):
    """Stored data, and the price of a gigabyte and month.

    None stands for the data set, the checkpoints and the duration of the run.
    """

    price: UnitPrice
    dataset_bytes: float | None = None
    checkpoints_kept: float = 0.0
    checkpoint_bytes: float | None = None
    kept_seconds: float | None = None


class EgressTerms(NamedTuple):
    """Data transferred out over the whole run, or per second, and the price of a gigabyte."""

    price: UnitPrice
    bytes: float | None = None
    bytes_per_second: float | None = None


class CostTerms(NamedTuple):
    """All costs of a run: rental or purchase of its devices, storage and egress."""

    currencies: TotalCurrency = TotalCurrency()
    rental: RentalTerms | None = None
    purchase: PurchaseTerms | None = None
    storage: StorageTerms | None = None
    egress: EgressTerms | None = None
