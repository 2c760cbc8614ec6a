"""Fixed charges and minimum bills."""

from collections.abc import Mapping

from service.formats.urdb.rate import (
    CUSTOMER,
    MINIMUM,
    MONTHLY_CUSTOMER,
    YEARLY_CUSTOMER,
    YEARLY_MINIMUM,
    Rate,
)
from service.formats.urdb.values import Place
from service.planning.tariff.charges import FixedCharge, MinimumCharge, Per

_PER = {"day": Per.DAY, "month": Per.MONTH, "year": Per.YEAR}
_YEARLY = {"x_fixed_nok_per_year": "NOK", "x_fixed_sek_per_year": "SEK"}


def fixed_charges(rate: Rate) -> None:
    """Customer charges by day, month and year."""
    if rate.has("fixedchargefirstmeter"):
        price = rate.at("fixedchargefirstmeter").price()
        per = _per(rate, "fixedchargeunits", _PER)
        if price is not None and per is not None:
            rate.charges.append(FixedCharge(name=CUSTOMER, price=price, per=per))
    elif rate.has("fixedchargeunits"):
        rate.findings.warn(rate.at("fixedchargeunits").pointer, "is the unit of no charge")
    _monthly_charge(rate)
    for key, code in _YEARLY.items():
        if rate.has(key) and rate.in_currency(rate.at(key), code):
            price = rate.at(key).price()
            if price is not None:
                rate.charges.append(FixedCharge(name=YEARLY_CUSTOMER, price=price, per=Per.YEAR))
    if rate.has("x_annual_fees"):
        _annual_fees(rate, rate.at("x_annual_fees"))
    if rate.has("fixedchargeeaaddl"):
        rate.findings.approximate(rate.at("fixedchargeeaaddl").pointer, "one meter is billed")


def _monthly_charge(rate: Rate) -> None:
    if not rate.has("fixedmonthlycharge"):
        return
    place = rate.at("fixedmonthlycharge")
    if rate.has("fixedchargefirstmeter"):
        place.refuse("is the older name of fixedchargefirstmeter, which is there too")
        return
    price = place.price()
    if price is not None:
        rate.charges.append(FixedCharge(name=MONTHLY_CUSTOMER, price=price))


def _annual_fees(rate: Rate, place: Place) -> None:
    if not isinstance(place.value, Mapping):
        place.refuse("must be an object")
        return
    for name in place.value:
        price = place.part(name).price()
        if price is not None:
            rate.charges.append(FixedCharge(name=f"fee {name}", price=price, per=Per.YEAR))


def _per(rate: Rate, key: str, known: Mapping[str, Per]) -> Per | None:
    """What follows the slash of a unit; a month where none is written."""
    place = rate.at(key)
    if place.value is None:
        rate.findings.approximate(place.pointer, "is missing: read as a charge per month")
        return Per.MONTH
    if isinstance(place.value, str):
        code, _, span = place.value.partition("/")
        if code in {"$", rate.currency_code} and span in known:
            return known[span]
    place.refuse(f"must be $ or {rate.currency_code} before one of {', '.join('/' + name for name in known)}")
    return None


def minimum_charges(rate: Rate) -> None:
    """What a month, or a year, amounts to at least."""
    if rate.has("mincharge"):
        amount = rate.at("mincharge").price()
        known = {"month": Per.MONTH} if rate.only_listed else _PER
        per = _per(rate, "minchargeunits", known)
        if amount is not None and per is not None:
            rate.charges.append(MinimumCharge(name=MINIMUM, amount=amount, per=per))
    elif rate.has("minchargeunits"):
        rate.findings.warn(rate.at("minchargeunits").pointer, "is the unit of no charge")
    if rate.has("annualmincharge"):
        amount = rate.at("annualmincharge").price()
        if amount is not None:
            rate.charges.append(MinimumCharge(name=YEARLY_MINIMUM, amount=amount, per=Per.YEAR))
