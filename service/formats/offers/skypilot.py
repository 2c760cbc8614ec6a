"""The catalog CSVs of SkyPilot (``vms.csv`` of one cloud; versions 1 to 8).

``Price`` is of the whole instance for an hour, in USD, whatever ``AcceleratorCount`` says. Columns come in
any order. Not read: ``GpuInfo`` (Python literals; its memory is that of the host for some clouds, of one
device or of all for others) and the columns of the host.

Google prices hosts and accelerators apart: a row of a host has no accelerator, a row of accelerators no
instance. They are added up where the machine type comes with its accelerators, zone by zone; what cannot be
added is refused, for half a price is a wrong price. TPU slices are whole.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from service.formats.offers.listed import (
    ListedOffer,
    ReadOffers,
    RefusedOffer,
    RowError,
    collect_offers,
    parse_count,
    parse_price,
    parse_text,
    read_table,
)
from service.formats.offers.names import (
    NamedAccelerator,
    PriceListContext,
    format_name,
    load_hosts,
    resolve_accelerator,
)

_COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
_NO_ACCELERATOR = RowError("NO_ACCELERATOR", "the instance has no accelerator")


class _PriceRow(NamedTuple):
    """A row as read; either price may be missing, and the reason why."""

    pointer: str
    instance_type: str | None
    accelerator: str | None
    devices: int
    region: str | None
    zone: str | None
    price: Decimal | None
    spot: Decimal | None
    faults: tuple[RowError, ...]


def offers_from_skypilot(content: str, asked: PriceListContext) -> ReadOffers:
    """The offers of a SkyPilot catalog of one provider, in USD; raises PlanningError if it is none."""
    rows, refused, total = read_table(content, _COLUMNS, _read_row)
    parts = _AcceleratorParts(rows)
    offers = []
    for row in rows:
        try:
            found = list(_build_offers(row, parts, asked))
        except RowError as error:
            refused.append(RefusedOffer(row.pointer, error.code, error.detail))
        else:
            offers += found
            refused += [RefusedOffer(row.pointer, fault.code, fault.detail) for fault in row.faults]
    refused += [RefusedOffer(row.pointer, *_APART) for row in parts.list_unused()]
    return collect_offers(_merge_zones(offers), refused, total)


def _read_row(pointer: str, cells: Mapping[str, str]) -> _PriceRow:
    faults: list[RowError] = []

    def read_price(column: str) -> Decimal | None:
        text = cells.get(column, "").strip()
        if not text or text.lower() == "nan":
            return None
        try:
            return parse_price(text)
        except RowError as fault:
            faults.append(fault)
            return None

    return _PriceRow(
        pointer,
        parse_text(cells["InstanceType"]),
        parse_text(cells["AcceleratorName"]),
        parse_count(cells["AcceleratorCount"]),
        parse_text(cells["Region"]),
        parse_text(cells.get("AvailabilityZone")),
        read_price("Price"),
        read_price("SpotPrice"),
        tuple(faults),
    )


_APART = ("HOST_PRICED_APART", "the price is without the instance that the accelerators are attached to")


class _AcceleratorParts:
    """Accelerators that are priced without a host, and which of them found one."""

    def __init__(self, rows: list[_PriceRow]) -> None:
        self._rows = {
            (row.accelerator, row.devices, row.region, row.zone): row
            for row in rows
            if row.instance_type is None and row.accelerator is not None and not _is_slice(row.accelerator)
        }
        self._taken: set[str] = set()

    def take_accelerators(self, host: _PriceRow, name: str, count: int) -> _PriceRow:
        """The accelerators of a host's machine type in its zone."""
        found = self._rows.get((name, count, host.region, host.zone))
        if found is None:
            devices = f"{count} {format_name(name)}"
            detail = f"the price is of the host alone, and the list has none of {devices} in its zone"
            raise RowError("ACCELERATORS_PRICED_APART", detail)
        self._taken.add(found.pointer)
        return found

    def list_unused(self) -> Iterator[_PriceRow]:
        """Returns the accelerators that no host used."""
        return (row for row in self._rows.values() if row.pointer not in self._taken)


def _is_slice(name: str) -> bool:
    return name.lower().startswith("tpu")


def _build_offers(row: _PriceRow, parts: _AcceleratorParts, asked: PriceListContext) -> Iterator[ListedOffer]:
    if row.instance_type is None and row.accelerator is None:
        raise RowError("NO_ACCELERATOR", "the row names neither an instance nor an accelerator")
    if row.instance_type is None and not _is_slice(row.accelerator or ""):
        return
    price, spot = row.price, row.spot
    name, count, is_sum = row.accelerator, row.devices, False
    if name is None or not count:
        host = load_hosts().get(row.instance_type or "")
        if host is None or asked.provider != "gcp":
            raise _NO_ACCELERATOR
        name, count = host
        part = parts.take_accelerators(row, name, count)
        price, spot, is_sum = _sum_prices(price, part.price), _sum_prices(spot, part.spot), True
    unit = resolve_accelerator(asked.accelerators, name, instance=row.instance_type or "")
    if not isinstance(unit, NamedAccelerator):
        raise RowError(unit.code, unit.detail)
    if price is None and spot is None and not row.faults:
        raise RowError("PRICE_MISSING", "the row has no price")
    base = ListedOffer(
        pointer=row.pointer,
        provider=asked.provider,
        accelerator_id=unit.accelerator_id,
        accelerator_count=count * unit.devices,
        purchase_option="on_demand",
        price=price,
        currency_code="USD",
        region=row.region,
        zone=row.zone,
        instance_type=row.instance_type or name,
        includes=("host",) if row.instance_type else None,
        doubt=unit.doubt,
        note="Host and accelerators, which the list prices apart, added up." if is_sum else None,
    )
    if price is not None:
        yield base
    if spot is not None:
        yield base._replace(purchase_option="spot", price=spot)


def _sum_prices(host: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if host is None or part is None else host + part


def _merge_zones(offers: list[ListedOffer]) -> Iterator[ListedOffer]:
    """Offers on demand of all zones of a region as one where they agree, as providers price them."""
    listed: dict[tuple[object, ...], set[tuple[object, ...]]] = {}
    for offer in offers:
        listed.setdefault(_build_product_key(offer), set()).add(
            (offer.price, offer.accelerator_id, offer.accelerator_count)
        )
    for offer in offers:
        agrees = (
            offer.purchase_option == "on_demand"
            and offer.region
            and len(listed[_build_product_key(offer)]) == 1
        )
        yield offer._replace(zone=None) if agrees else offer


def _build_product_key(offer: ListedOffer) -> tuple[object, ...]:
    return offer.instance_type, offer.region, offer.purchase_option
