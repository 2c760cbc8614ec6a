"""What buying the devices of a run costs, and what of each year's cost the run bears."""

from decimal import Decimal
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.charges import GIVEN, Charges, Price, added, charges, given_price, in_one_currency
from service.estimates.currencies import Currencies, currencies_of
from service.estimates.run import Run
from service.planning.cost import Terms, rounded, share_of_year, used_device_hours, yearly_cost
from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.quantity import Basis, Quantity, assumed, exact, scaled
from service.resolve.catalog import Catalog
from service.schemas.answer import quantity
from service.schemas.cost_answers import OwnershipAnswer
from service.schemas.estimates import CostQuestion
from service.schemas.notes import Notes
from service.schemas.purchase import Ownership


def purchase(question: CostQuestion, run: Run, catalog: Catalog) -> Charges | None:
    """What buying the cluster costs; None without a price, or where its prices are in several currencies."""
    return _bought(question, run.cluster, catalog, run.notes)


def cost_of_device_hour(
    question: CostQuestion, cluster: Cluster, catalog: Catalog, notes: Notes
) -> Decimal | None:
    """What owning a cluster costs for each device-hour that is used; None where that is not known."""
    bought = _bought(question, cluster, catalog, notes)
    if bought is None or question.purchase is MISSING or question.purchase.ownership is MISSING:
        return None
    ownership = question.purchase.ownership
    prices = _yearly_prices(ownership, bought, currencies_of(question, catalog, notes))
    if prices is None:
        return None
    used = used_device_hours(float(cluster.accelerator_count), ownership.utilization)
    return sum((price.amount for price in prices.values()), Decimal(0)) / Decimal(used)


def _bought(question: CostQuestion, cluster: Cluster, catalog: Catalog, notes: Notes) -> Charges | None:
    if question.purchase is MISSING:
        return None
    given, count = question.purchase, cluster.accelerator_count
    price = given_price(given.price_per_device, given.price_range, "/purchase/price_range")
    price = price.times(given.price_factor)
    bought = [(price, "device", "devices", float(count))]
    if given.hosts is not MISSING:
        each = given.hosts.devices_per_host
        per_host = cluster.accelerators_per_node if each is MISSING else each
        bought.append(
            (given_price(given.hosts.price_per_host), "host", "hosts", float(-(-count // per_host)))
        )
    if given.network_per_device is not MISSING:
        bought.append((given_price(given.network_per_device), "device", "network", float(count)))
    if given.storage is not MISSING:
        bought.append((given_price(given.storage), "system", "storage", 1.0))
    currencies, parts = currencies_of(question, catalog, notes), []
    for price, unit, name, number in bought:
        exchanged = currencies.price(price, "/purchase/total")
        if exchanged is None:
            return None
        parts.append(charges(exchanged, unit, (name, assumed(number)), category="purchase"))
    return added(parts) if in_one_currency(parts, notes, "/purchase/total") else None


class Owned(NamedTuple):
    """A year's cost of bought devices, and the run's share of it."""

    yearly: Charges
    running: Charges | None
    """What of it is paid whatever they cost: maintenance, staff and space."""
    run: Charges | None
    """None where the duration is not known."""
    device_hours: Quantity
    """Used in a year."""


def owned(
    question: CostQuestion, run: Run, hours: Quantity | None, bought: Charges | None, catalog: Catalog
) -> Owned | None:
    """The cost of owning; None where the question does not ask for it."""
    if question.purchase is MISSING or question.purchase.ownership is MISSING or bought is None:
        return None
    given, currencies = question.purchase.ownership, currencies_of(question, catalog, run.notes)
    prices = _yearly_prices(given, bought, currencies)
    if prices is None:
        return None
    year = exact(1.0)
    found = {name: charges(price, "year", (name, year)) for name, price in prices.items()}
    yearly = added(found.values())
    assert yearly is not None  # noqa: S101
    devices, utilization = float(run.cluster.accelerator_count), given.utilization
    used = assumed(used_device_hours(devices, utilization))
    share = hours and scaled(hours, share_of_year(1.0, devices, utilization))
    borne = share and added(charges(price, "year", (name, share)) for name, price in prices.items())
    return Owned(yearly, added(found.get(name) for name in _RUNNING), borne, used)


_RUNNING = ("maintenance", "staff", "space")


def _yearly_prices(given: Ownership, bought: Charges, currencies: Currencies) -> dict[str, Price] | None:
    """Amounts of a year by what they are for, each at the ends of the purchase."""
    terms = Terms(given.years, given.residual_share, given.interest_rate, given.maintenance_share)
    costs = [yearly_cost(end, terms) for end in (bought.amount, bought.low, bought.high)]
    prices, currency = {}, bought.currency_code
    for name, *amounts in zip(costs[0]._fields, *costs, strict=True):
        value, low, high = (rounded(amount, currency) for amount in amounts)
        if high or name == "depreciation":
            prices[name] = Price(value, currency, GIVEN, Basis.ASSUMED, low, high)
    for name, money in (("staff", given.staff_per_year), ("space", given.space_per_year)):
        if money is MISSING:
            continue
        price = currencies.price(given_price(money), "/ownership/total")
        if price is None:
            return None
        if price.currency_code != currency:
            pointer = f"/purchase/ownership/{name}_per_year/currency_code"
            raise PlanningError("CURRENCY_MISMATCH", pointer, "must be the currency of the purchase")
        prices[name] = price
    return prices


def ownership_answer(found: Owned) -> OwnershipAnswer:
    """The cost of owning as it is answered."""
    answer: OwnershipAnswer = {
        "lines": [],
        "yearly": {"lines": found.yearly.lines, "total": found.yearly.total},
        "price_per_device_hour": found.yearly.per(found.device_hours),
        "device_hours_per_year": quantity(found.device_hours),
    }
    if found.run is not None:
        answer["lines"], answer["total"] = found.run.lines, found.run.total
    return answer
