"""A run in several buildings, and the best of them by cost, emissions and water."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from service.planning.cost import round_amount
from service.planning.cost.charges import CurrencyCharges
from service.planning.cost.exchange import ExchangeRates
from service.planning.estimates.bill import RunBill
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity


class RankedSite(NamedTuple):
    """The utility bill of a run in a building, and its electricity in the currency of the question."""

    name: str
    bill: RunBill
    converted: CurrencyCharges | None
    """None without a currency or a rate."""

    @property
    def electricity(self) -> CurrencyCharges | None:
        """The electricity by which sites are ranked."""
        return self.converted or self.bill.electricity.charged

    @property
    def emissions(self) -> Quantity | None:
        """Location-based kilograms of CO2e."""
        location = self.bill.carbon.location_based
        return location and location.kg_co2e


class SiteRanking(NamedTuple):
    """Names of the best sites, each None where a site lacks the figure."""

    cheapest: str | None
    cleanest: str | None
    least_water: str | None


def convert_charges(
    charged: CurrencyCharges, currency_code: str, rates: ExchangeRates, on: date
) -> CurrencyCharges | None:
    """Returns a sum in another currency by the rates of a day, without its lines; None without a rate."""
    ends: list[Decimal] = []
    for amount in (charged.amount, charged.low, charged.high):
        found = rates.convert(amount, charged.currency_code, currency_code, on)
        if found is None:
            return None
        ends.append(round_amount(found.amount, currency_code))
    return CurrencyCharges((), ends[0], ends[1], ends[2], currency_code, charged.basis)


def rank_sites(sites: Sequence[RankedSite], notes: AnswerNotes) -> SiteRanking:
    """Returns the best sites; a gap in ``notes`` for each figure that a site lacks."""
    cheapest = _find_cheapest(sites, notes)
    cleanest = _find_least(sites, [site.emissions for site in sites])
    if cleanest is None:
        notes.add_gap("/cleanest", "GRID_REQUIRED", "the emissions of a site are not known")
    driest = _find_least(sites, [site.bill.water.liters for site in sites])
    if driest is None:
        notes.add_gap("/least_water", "WATER_UNKNOWN", "the water of a site is not known")
    return SiteRanking(cheapest, cleanest, driest)


def _find_cheapest(sites: Sequence[RankedSite], notes: AnswerNotes) -> str | None:
    known = [(site.electricity.amount, place) for place, site in enumerate(sites) if site.electricity]
    currencies = {site.electricity.currency_code for site in sites if site.electricity}
    if len(known) < len(sites):
        notes.add_gap("/cheapest", "PRICE_REQUIRED", "the electricity of a site is not known")
        return None
    if len(currencies) > 1:
        detail = "the sites are billed in different currencies: give currency_code, and rates of them"
        notes.add_gap("/cheapest", "CURRENCY_MISMATCH", detail)
        return None
    return sites[min(known)[1]].name


def _find_least(sites: Sequence[RankedSite], figures: Sequence[Quantity | None]) -> str | None:
    known = [(figure.value, place) for place, figure in enumerate(figures) if figure is not None]
    return sites[min(known)[1]].name if len(known) == len(sites) else None
