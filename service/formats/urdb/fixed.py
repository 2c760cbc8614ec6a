"""Fixed charges and minimum bills."""

from collections.abc import Mapping

from service.formats.urdb.rate import (
    CUSTOMER,
    MINIMUM,
    MONTHLY_CUSTOMER,
    YEARLY_CUSTOMER,
    YEARLY_MINIMUM,
    UrdbRate,
)
from service.formats.urdb.values import MemberPath
from service.planning.tariff.charges import FixedCharge, FixedChargePeriod, MinimumCharge

_PER = {"day": FixedChargePeriod.DAY, "month": FixedChargePeriod.MONTH, "year": FixedChargePeriod.YEAR}
_YEARLY = {"x_fixed_nok_per_year": "NOK", "x_fixed_sek_per_year": "SEK"}


def read_fixed_charges(rate: UrdbRate) -> None:
    """Customer charges by day, month and year."""
    if rate.has_key("fixedchargefirstmeter"):
        price = rate.get_field("fixedchargefirstmeter").read_price()
        per = _read_per(rate, "fixedchargeunits", _PER)
        if price is not None and per is not None:
            rate.charges.append(FixedCharge(name=CUSTOMER, price=price, per=per))
    elif rate.has_key("fixedchargeunits"):
        rate.findings.record_warning(rate.get_field("fixedchargeunits").pointer, "is the unit of no charge")
    _read_monthly_charge(rate)
    for key, code in _YEARLY.items():
        if rate.has_key(key) and rate.check_currency(rate.get_field(key), code):
            price = rate.get_field(key).read_price()
            if price is not None:
                rate.charges.append(
                    FixedCharge(name=YEARLY_CUSTOMER, price=price, per=FixedChargePeriod.YEAR)
                )
    if rate.has_key("x_annual_fees"):
        _read_annual_fees(rate, rate.get_field("x_annual_fees"))
    if rate.has_key("fixedchargeeaaddl"):
        rate.findings.record_approximation(rate.get_field("fixedchargeeaaddl").pointer, "one meter is billed")


def _read_monthly_charge(rate: UrdbRate) -> None:
    if not rate.has_key("fixedmonthlycharge"):
        return
    place = rate.get_field("fixedmonthlycharge")
    if rate.has_key("fixedchargefirstmeter"):
        place.record_refusal("is the older name of fixedchargefirstmeter, which is there too")
        return
    price = place.read_price()
    if price is not None:
        rate.charges.append(FixedCharge(name=MONTHLY_CUSTOMER, price=price))


def _read_annual_fees(rate: UrdbRate, place: MemberPath) -> None:
    if not isinstance(place.value, Mapping):
        place.record_refusal("must be an object")
        return
    for name in place.value:
        price = place.get_part(name).read_price()
        if price is not None:
            rate.charges.append(FixedCharge(name=f"fee {name}", price=price, per=FixedChargePeriod.YEAR))


def _read_per(rate: UrdbRate, key: str, known: Mapping[str, FixedChargePeriod]) -> FixedChargePeriod | None:
    """Returns the period after the slash of a unit; a month if none is written."""
    place = rate.get_field(key)
    if place.value is None:
        rate.findings.record_approximation(place.pointer, "is missing: read as a charge per month")
        return FixedChargePeriod.MONTH
    if isinstance(place.value, str):
        code, _, span = place.value.partition("/")
        if code in {"$", rate.currency_code} and span in known:
            return known[span]
    place.record_refusal(
        f"must be $ or {rate.currency_code} before one of {', '.join('/' + name for name in known)}"
    )
    return None


def read_minimum_charges(rate: UrdbRate) -> None:
    """Reads the minimum amounts of a month and of a year."""
    if rate.has_key("mincharge"):
        amount = rate.get_field("mincharge").read_price()
        known = {"month": FixedChargePeriod.MONTH} if rate.only_listed else _PER
        per = _read_per(rate, "minchargeunits", known)
        if amount is not None and per is not None:
            rate.charges.append(MinimumCharge(name=MINIMUM, amount=amount, per=per))
    elif rate.has_key("minchargeunits"):
        rate.findings.record_warning(rate.get_field("minchargeunits").pointer, "is the unit of no charge")
    if rate.has_key("annualmincharge"):
        amount = rate.get_field("annualmincharge").read_price()
        if amount is not None:
            rate.charges.append(MinimumCharge(name=YEARLY_MINIMUM, amount=amount, per=FixedChargePeriod.YEAR))
