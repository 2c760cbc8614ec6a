"""A row of worked bills with its tariff, its load and its period."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import NamedTuple, TypeAlias

from accuracy.bill_loads import GivenLoad
from service.formats.urdb import UrdbImport
from service.formats.urdb.rate import WINDOW
from service.planning.tariff.charges import (
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    PeakSpan,
    Tariff,
    TariffCharge,
)

RowCells: TypeAlias = Mapping[str, str]
ChargeFilter: TypeAlias = Callable[[TariffCharge], bool]


class BillCase(NamedTuple):
    """A row with its tariff, its load and its period."""

    row: RowCells
    found: UrdbImport
    tariff: Tariff
    """Tariff in force at any time, with each demand over the intervals of the load."""
    given: GivenLoad
    year: int
    clock: str
    start: datetime
    end: datetime

    @property
    def last_day(self) -> date:
        """The day after the last day of the period."""
        return (self.end + timedelta(days=1) - timedelta(microseconds=1)).date()


def charges_of(tariff: Tariff) -> Sequence[TariffCharge]:
    """Returns the charges of the only revision of a rate."""
    (revision,) = tariff.revisions
    return revision.charges


def with_charges(tariff: Tariff, charges: Iterable[TariffCharge]) -> Tariff:
    """Returns the tariff with other charges, in force at any date."""
    (revision,) = tariff.revisions
    return replace(tariff, revisions=(replace(revision, effective_from=date.min, charges=tuple(charges)),))


def as_billed(tariff: Tariff) -> Tariff:
    """Returns the tariff in force at any date (rule 6), with demand as the load gives it (rule 5)."""
    return with_charges(
        tariff,
        (
            replace(charge, window_minutes=None) if isinstance(charge, DemandCharge) else charge
            for charge in charges_of(tariff)
        ),
    )


def only(tariff: Tariff, chosen: ChargeFilter) -> Tariff:
    """Returns the tariff with some of its charges."""
    return with_charges(tariff, (charge for charge in charges_of(tariff) if chosen(charge)))


def counts_later(charge: TariffCharge) -> bool:
    """Returns true if a charge is billed in the year after the load."""
    return isinstance(charge, CoincidentPeakCharge) and charge.in_following_year


def is_annual(charge: TariffCharge) -> bool:
    """Returns true if a charge is on the highest demand of the year."""
    return isinstance(charge, DemandCharge) and charge.span is PeakSpan.CALENDAR_YEAR


def is_row(charge: TariffCharge) -> bool:
    """Returns true if a charge is a row of ``x_charges`` that applies to some hours only."""
    return isinstance(charge, EnergyCharge | DemandCharge) and charge.periods[0].name == WINDOW


def later(day: date, years: int) -> date:
    """Returns the same day ``years`` later. Billing months begin on the first."""
    return day.replace(year=day.year + years)
