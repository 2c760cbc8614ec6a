"""Prices published by dstack's gpuhunt: catalog CSVs (v1 and v2, one file of each provider) and TPU prices.

A catalog row is an instance: ``price`` in USD an hour for all of it, ``gpu_memory`` in GB of one device,
``spot`` True or False; v2 adds ``disk_size``, ``gpu_vendor`` and ``flags``. The TPU document has prices on
demand and spot of one chip by generation and region.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal

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
    read_table,
)
from service.formats.offers.names import NamedAccelerator, PriceListContext, resolve_accelerator
from service.planning.errors import PlanningError

_COLUMNS = ("instance_name", "location", "price", "gpu_count", "gpu_name", "spot")
_TPU_PRICES = {"On Demand (USD)": "on_demand", "Spot (USD)": "spot"}


def offers_from_gpuhunt(content: str, asked: PriceListContext) -> ReadOffers:
    """Reads a gpuhunt catalog of one provider; raises PlanningError for other content."""

    def read_row(pointer: str, cells: Mapping[str, str]) -> ListedOffer:
        return _read_row(pointer, cells, asked)

    offers, refused, total = read_table(content, _COLUMNS, read_row)
    return collect_offers(offers, refused, total)


def _read_row(pointer: str, cells: Mapping[str, str], asked: PriceListContext) -> ListedOffer:
    name, count = parse_text(cells["gpu_name"]), parse_count(cells["gpu_count"])
    if name is None or not count:
        raise RowError("NO_ACCELERATOR", "the instance has no accelerator")
    instance = parse_text(cells["instance_name"])
    unit = resolve_accelerator(
        asked.accelerators,
        name,
        instance=instance or "",
        memory_gb=_parse_memory_gb(cells.get("gpu_memory", "")),
    )
    if not isinstance(unit, NamedAccelerator):
        raise RowError(unit.code, unit.detail)
    spot = cells["spot"].strip().lower()
    if spot not in ("true", "false"):
        raise RowError("PURCHASE_OPTION_UNKNOWN", "spot is neither True nor False")
    return ListedOffer(
        pointer=pointer,
        provider=asked.provider,
        accelerator_id=unit.accelerator_id,
        accelerator_count=count * unit.devices,
        purchase_option="spot" if spot == "true" else "on_demand",
        price=parse_price(cells["price"]),
        currency_code="USD",
        region=parse_text(cells["location"]),
        instance_type=instance,
        includes=("host",),
        doubt=unit.doubt,
    )


def _parse_memory_gb(text: str) -> float | None:
    """GB of one device; empty or 0 (as of TPUs) is not known."""
    try:
        memory = float(text)
    except ValueError:
        return None
    return memory if 0 < memory < float("inf") else None


def offers_from_gpuhunt_tpu(content: str, asked: PriceListContext) -> ReadOffers:
    """Chip prices of ``tpu_pricing.json``; raises PlanningError if the content is none."""
    listed = parse_document(content)
    if not isinstance(listed, Mapping) or not all(isinstance(value, Mapping) for value in listed.values()):
        raise PlanningError("FORMAT", "/content", "the document holds no prices by TPU and region")
    offers, refused, total = [], [], 0
    for place, price in _list_chips(listed):
        total += 1
        pointer = "".join(f"/{_escape_pointer(part)}" for part in place)
        try:
            offers.append(_read_chip(place, price, asked)._replace(pointer=pointer))
        except RowError as error:
            refused.append(RefusedOffer(pointer, error.code, error.detail))
    return collect_offers(offers, refused, total)


def _list_chips(listed: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[tuple[str, str, str], object]]:
    for name, regions in listed.items():
        for region, prices in regions.items():
            if not isinstance(prices, Mapping):
                yield (name, region, ""), None
                continue
            for option in _TPU_PRICES:
                if option in prices:
                    yield (name, region, option), prices[option]


def _read_chip(place: tuple[str, str, str], price: object, asked: PriceListContext) -> ListedOffer:
    name, region, option = place
    if not isinstance(price, Decimal | int | str) or isinstance(price, bool):
        raise RowError("PRICE_MISSING", "there is no price")
    unit = resolve_accelerator(asked.accelerators, name)
    if not isinstance(unit, NamedAccelerator):
        raise RowError(unit.code, unit.detail)
    return ListedOffer(
        pointer="",
        provider=asked.provider,
        accelerator_id=unit.accelerator_id,
        accelerator_count=unit.devices,
        purchase_option=_TPU_PRICES[option],
        price=parse_price(str(price)),
        currency_code="USD",
        region=parse_text(region),
        instance_type=parse_text(name),
        doubt=unit.doubt,
    )


def _escape_pointer(part: str) -> str:
    return part[:100].replace("~", "~0").replace("/", "~1")
