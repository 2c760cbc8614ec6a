"""Annual demand, reactive power, coincident peaks, losses and conditions."""

from service.formats.urdb.rate import (
    ALL_HOURS,
    ANNUAL_DEMAND,
    COINCIDENT_PEAK,
    EXCESS_REACTIVE_DEMAND,
    REACTIVE_DEMAND,
    UrdbRate,
)
from service.formats.urdb.values import MemberPath
from service.planning.tariff.charges import (
    CoincidentPeakCharge,
    CoincidentPeakSet,
    DemandCharge,
    PeakSpan,
    PeakStatistic,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    TariffTierUnit,
)

_LONGEST_WINDOW_MINUTES = 60
_LONGEST_YEAR_HOURS = 8784
_MOST_INTERVALS = 1000
_OF_CALENDAR_YEAR = "calendar-year maximum"
_APPLIES = ("load year", "following calendar year")


def read_annual_demand_charge(rate: UrdbRate) -> None:
    """A price for the year's highest demand."""
    if not rate.has_key("x_annual_peak_demand_price"):
        return
    members = _read_complete_members(
        rate.get_field("x_annual_peak_demand_price"), ("price_eur_per_kw_year",), ("window_minutes", "basis")
    )
    if members is None or not rate.check_currency(members["price_eur_per_kw_year"], "EUR"):
        return
    price = members["price_eur_per_kw_year"].read_price()
    window = None
    if "window_minutes" in members:
        window = members["window_minutes"].read_integer(1, _LONGEST_WINDOW_MINUTES)
    if "basis" in members and members["basis"].read_choice((_OF_CALENDAR_YEAR,)) is None:
        return
    if price is not None:
        tier = PriceTier(price=price, unit=TariffTierUnit.KW)
        rate.charges.append(
            DemandCharge(
                name=ANNUAL_DEMAND,
                periods=(PricePeriod(name=ALL_HOURS, tiers=(tier,)),),
                window_minutes=window,
                span=PeakSpan.CALENDAR_YEAR,
            )
        )


def read_reactive_charges(rate: UrdbRate) -> None:
    """Prices per kvar at the month's peak."""
    if rate.has_key("demandreactivepowercharge"):
        price = rate.get_field("demandreactivepowercharge").read_price()
        if price is not None:
            rate.charges.append(ReactiveCharge(name=REACTIVE_DEMAND, price=price))
    if not rate.has_key("x_reactive"):
        return
    members = _read_complete_members(
        rate.get_field("x_reactive"), ("rate_sek_per_kvar_month",), ("free_fraction_of_active",)
    )
    if members is None or not rate.check_currency(members["rate_sek_per_kvar_month"], "SEK"):
        return
    price = members["rate_sek_per_kvar_month"].read_price()
    free: float | None = 0.0
    if "free_fraction_of_active" in members:
        free = members["free_fraction_of_active"].read_quantity()
    if price is not None and free is not None:
        rate.charges.append(
            ReactiveCharge(name=EXCESS_REACTIVE_DEMAND, price=price, free_share_of_active=free)
        )


def read_coincident_peak_charge(rate: UrdbRate) -> None:
    """A price for the demand in the grid's peak intervals."""
    if not rate.has_key("x_coincident_peak"):
        return
    members = _read_complete_members(rate.get_field("x_coincident_peak"), ("sets", "statistic"), ("applies",))
    if members is None:
        return
    statistic = members["statistic"].read_choice(tuple(PeakStatistic))
    applies = members["applies"].read_choice(_APPLIES) if "applies" in members else _APPLIES[0]
    entries = members["sets"].list_entries()
    sets = [_read_peak_set(entry) for entry in entries or ()]
    if not sets or None in sets:
        if entries == []:
            members["sets"].record_refusal("has no set")
        return
    if statistic is not None and applies is not None:
        rate.charges.append(
            CoincidentPeakCharge(
                name=COINCIDENT_PEAK,
                sets=tuple(one for one in sets if one is not None),
                statistic=PeakStatistic(statistic),
                in_following_year=applies == _APPLIES[1],
            )
        )


def _read_peak_set(place: MemberPath) -> CoincidentPeakSet | None:
    """One set: its price, and either hours of the year or how many demands the load states."""
    members = place.read_members(("rate", "hours_of_year_1based", "intervals_in_load"))
    if members is None:
        return None
    if ("hours_of_year_1based" in members) == ("intervals_in_load" in members):
        place.record_refusal("must have either hours_of_year_1based or intervals_in_load")
        return None
    price = members["rate"].read_price() if "rate" in members else None
    if "rate" in members and price is None:
        return None
    if "intervals_in_load" in members:
        given = members["intervals_in_load"].read_integer(1, _MOST_INTERVALS)
        return None if given is None else CoincidentPeakSet(price=price, given=given)
    entries = members["hours_of_year_1based"].list_entries()
    hours = [entry.read_integer(1, _LONGEST_YEAR_HOURS) for entry in entries or ()]
    if not hours or None in hours:
        if entries == []:
            members["hours_of_year_1based"].record_refusal("has no hour")
        return None
    return CoincidentPeakSet(price=price, hours_of_year=tuple(hour for hour in hours if hour is not None))


def read_secondary_loss_factor(rate: UrdbRate) -> float:
    """Returns the share by which kWh and kW of a load behind the customer's transformer are raised."""
    key = "x_secondary_metering_loss_factor"
    return (rate.get_field(key).read_quantity() or 0.0) if rate.has_key(key) else 0.0


def read_hours_of_use_minimum(rate: UrdbRate) -> float:
    """Annual hours of use below which the prices do not hold."""
    if not rate.has_key("x_condition"):
        return 0.0
    members = _read_complete_members(rate.get_field("x_condition"), ("hours_of_use_min",), ())
    return 0.0 if members is None else members["hours_of_use_min"].read_quantity() or 0.0


def _read_complete_members(
    place: MemberPath, needed: tuple[str, ...], further: tuple[str, ...]
) -> dict[str, MemberPath] | None:
    """The members of an object that has all of the needed ones."""
    members = place.read_members((*needed, *further))
    if members is None:
        return None
    for name in needed:
        if name not in members:
            place.get_part(name).record_refusal("is missing")
            return None
    return members
