"""One rate while it is read: its keys, the charges found so far, and the facts that a load must state."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from service.formats.urdb.findings import ImportFindings, build_child_pointer
from service.formats.urdb.ladders import (
    DEMAND_UNITS,
    ENERGY_UNITS,
    LISTED_ENERGY_UNITS,
    LadderRules,
)
from service.formats.urdb.values import MemberPath
from service.planning.tariff.charges import TariffCharge

CUSTOMER = "customer"
MONTHLY_CUSTOMER = "monthly_customer"
YEARLY_CUSTOMER = "yearly_customer"
ENERGY = "energy"
ENERGY_PRICE = "energy_price"
ENERGY_TAX = "energy_tax"
FLAT_DEMAND = "flat_demand"
TIME_OF_USE_DEMAND = "time_of_use_demand"
ANNUAL_DEMAND = "annual_demand"
COINCIDENT_PEAK = "coincident_peak"
REACTIVE_DEMAND = "reactive_demand"
EXCESS_REACTIVE_DEMAND = "excess_reactive_demand"
MINIMUM = "minimum"
YEARLY_MINIMUM = "yearly_minimum"

ALL_HOURS = "all_hours"
"""The only period of a charge beside the structures."""
WINDOW = "window"
"""The only period of a charge row."""


def format_period_name(place: int) -> str:
    """The name of the period at a place of a structure."""
    return f"period_{place}"


@dataclass(slots=True)
class UrdbRate:
    """A rate's keys by name. ``only_listed`` refuses keys that only the database's own pages explain."""

    document: Mapping[str, object]
    pointer: str
    findings: ImportFindings
    only_listed: bool
    currency_code: str
    charges: list[TariffCharge] = field(default_factory=list)
    year_zero_peaks_kw: tuple[float, ...] | None = None

    def has_key(self, key: str) -> bool:
        """Returns true if the key has a value."""
        return self.document.get(key) is not None

    def get_field(self, key: str) -> MemberPath:
        """Returns the key's value and its place."""
        return MemberPath(self.document.get(key), build_child_pointer(self.pointer, key), self.findings)

    def list_present_keys(self, keys: Collection[str]) -> list[str]:
        """Returns those of the keys that are present."""
        return [key for key in keys if self.has_key(key)]

    @property
    def energy_ladders(self) -> LadderRules:
        """Rules for tiers of energy."""
        return LadderRules(LISTED_ENERGY_UNITS if self.only_listed else ENERGY_UNITS, not self.only_listed)

    @property
    def demand_ladders(self) -> LadderRules:
        """Rules for tiers of demand."""
        return LadderRules(DEMAND_UNITS, with_export=False)

    def check_currency(self, place: MemberPath, code: str) -> bool:
        """Returns true if ``code`` is the rate's currency; otherwise the price is refused."""
        if code == self.currency_code:
            return True
        place.record_refusal(f"is in {code}, but the rate is in {self.currency_code}")
        return False
