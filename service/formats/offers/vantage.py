"""The instances of ec2instances.info (Vantage): one object or a list of them.

``pricing[region][system]`` holds prices of the whole instance in USD an hour as text: ``ondemand``,
``spot_avg`` (or ``spot_min``), and ``reserved`` by term, class and payment, spread over the hours of the
term. Prices of ``linux`` are read; other systems are the same machine with a licence. Paid all up front, the
sum is price x hours; paid in part, the split is not published.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from service.formats.offers.listed import (
    ListedOffer,
    ReadOffers,
    RefusedOffer,
    RowError,
    collect_offers,
    parse_count,
    parse_document,
    parse_price,
    parse_text,
)
from service.formats.offers.names import NamedAccelerator, PriceListContext, resolve_accelerator
from service.planning.cost.prices import CommitmentTerm
from service.planning.errors import PlanningError

_SYSTEM: Final = "linux"
_TERM: Final = re.compile(r"yrTerm([1-5])(Standard|Convertible|[A-Za-z]*Savings)\.(no|partial|all)Upfront")
_YEAR_DAYS: Final = 365
_CENT: Final = Decimal("0.01")
_SPOTS: Final = {"spot_avg": "Average over zones.", "spot_min": "Lowest of the zones."}
_KINDS: Final = {
    "Standard": "Standard reserved instance",
    "Convertible": "Convertible reserved instance",
    "Savings": "Compute savings plan",
    "InstanceSavings": "Instance savings plan",
}


def offers_from_ec2instances(content: str, asked: PriceListContext) -> ReadOffers:
    """The offers of ``instances.json``, or of one object of it; raises PlanningError if it is neither."""
    listed = parse_document(content)
    instances = listed if isinstance(listed, list) else [listed]
    if not any(isinstance(one, Mapping) and "instance_type" in one for one in instances):
        raise PlanningError("FORMAT", "/content", "the document holds no object with an instance_type")
    offers: list[ListedOffer] = []
    refused: list[RefusedOffer] = []
    for index, instance in enumerate(instances):
        pointer = f"/{index}" if isinstance(listed, list) else ""
        try:
            base, prices = _read_instance(pointer, instance, asked)
        except RowError as error:
            refused.append(RefusedOffer(pointer or "/", error.code, error.detail))
            continue
        for at, region, system in _list_systems(pointer, prices):
            offers += _price_offers(base._replace(pointer=at, region=region), system, refused)
    return collect_offers(offers, refused, len(instances))


def _read_instance(
    pointer: str, instance: object, asked: PriceListContext
) -> tuple[ListedOffer, Mapping[str, object]]:
    """The offer of an instance before it has a price, and its prices by region."""
    if not isinstance(instance, Mapping) or "instance_type" not in instance:
        raise RowError("NOT_AN_INSTANCE", "the object is not an instance")
    name, model = parse_text(instance["instance_type"]), parse_text(instance.get("GPU_model"))
    count = parse_count(str(instance.get("GPU") or ""))
    if not count:
        raise RowError("NO_ACCELERATOR", "the instance has no accelerator")
    if model is None:
        raise RowError("UNKNOWN_ACCELERATOR", "the instance does not name its accelerator")
    unit = resolve_accelerator(asked.accelerators, model, instance=name or "")
    if not isinstance(unit, NamedAccelerator):
        raise RowError(unit.code, unit.detail)
    prices = instance.get("pricing")
    if not isinstance(prices, Mapping) or not prices:
        raise RowError("PRICE_MISSING", "the instance has no price")
    base = ListedOffer(
        pointer=pointer,
        provider=asked.provider,
        accelerator_id=unit.accelerator_id,
        accelerator_count=count * unit.devices,
        purchase_option="on_demand",
        price=None,
        currency_code="USD",
        instance_type=name,
        includes=("host",),
        doubt=unit.doubt,
    )
    return base, prices


def _list_systems(
    pointer: str, prices: Mapping[str, object]
) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    for region, systems in prices.items():
        system = systems.get(_SYSTEM) if isinstance(systems, Mapping) else None
        if isinstance(system, Mapping):
            yield f"{pointer}/pricing/{region}/{_SYSTEM}", region, system


def _price_offers(
    base: ListedOffer, system: Mapping[str, object], refused: list[RefusedOffer]
) -> Iterator[ListedOffer]:
    """The offers of one region; a price that cannot be one is added to ``refused``."""
    reserved = system.get("reserved")
    named = {"ondemand": system.get("ondemand")}
    named |= dict([(name, system[name]) for name in _SPOTS if system.get(name)][:1])
    named |= {f"reserved/{name}": price for name, price in _list_members(reserved)}
    for member, price in named.items():
        pointer = f"{base.pointer}/{member}"
        if price in (None, "", "N/A"):
            continue
        try:
            listed = _build_offer(base, member.removeprefix("reserved/"), parse_price(str(price)))
            yield listed._replace(pointer=pointer, region=parse_text(base.region))
        except RowError as error:
            refused.append(RefusedOffer(pointer, error.code, error.detail))


def _list_members(value: object) -> Iterator[tuple[str, object]]:
    return iter(value.items() if isinstance(value, Mapping) else ())


def _build_offer(base: ListedOffer, member: str, price: Decimal) -> ListedOffer:
    if member == "ondemand":
        return base._replace(price=price)
    if member in _SPOTS:
        return base._replace(purchase_option="spot", price=price, note=_SPOTS[member])
    said = _TERM.fullmatch(member)
    if said is None:
        raise RowError("TERM_UNKNOWN", "the term is not one of those that are known for this list")
    years, kind, payment = int(said[1]), said[2], said[3]
    term = CommitmentTerm(years * _YEAR_DAYS)
    if payment == "all":
        term = term._replace(upfront=(price * term.hours).quantize(_CENT))
    elif payment == "no":
        term = term._replace(hourly=price)
    return base._replace(
        purchase_option="committed" if kind.endswith("Savings") else "reserved",
        price=price if payment == "partial" else None,
        term=term,
        term_name=f"{years}y-{kind}-{payment}-upfront",
        note=f"{_KINDS.get(kind, kind)}, {payment} upfront.",
    )
