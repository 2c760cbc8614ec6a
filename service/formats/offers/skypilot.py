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
    OfferImport,
    Refused,
    RowError,
    count_of,
    gathered,
    price_of,
    read_table,
    text_of,
)
from service.formats.offers.names import Asked, Meant, hosts, meant, shown

_COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
_NO_ACCELERATOR = RowError("NO_ACCELERATOR", "the instance has no accelerator")


class _Row(NamedTuple):
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


def offers_from_skypilot(content: str, asked: Asked) -> OfferImport:
    """The offers of a SkyPilot catalog of one provider, in USD; raises PlanningError if it is none."""
    rows, refused, total = read_table(content, _COLUMNS, _row)
    parts = _Parts(rows)
    offers = []
    for row in rows:
        try:
            found = list(_offers(row, parts, asked))
        except RowError as error:
            refused.append(Refused(row.pointer, error.code, error.detail))
        else:
            offers += found
            refused += [Refused(row.pointer, fault.code, fault.detail) for fault in row.faults]
    refused += [Refused(row.pointer, *_APART) for row in parts.left()]
    return gathered(_by_region(offers), refused, total)


def _row(pointer: str, cells: Mapping[str, str]) -> _Row:
    faults: list[RowError] = []

    def price(column: str) -> Decimal | None:
        text = cells.get(column, "").strip()
        if not text or text.lower() == "nan":
            return None
        try:
            return price_of(text)
        except RowError as fault:
            faults.append(fault)
            return None

    return _Row(
        pointer,
        text_of(cells["InstanceType"]),
        text_of(cells["AcceleratorName"]),
        count_of(cells["AcceleratorCount"]),
        text_of(cells["Region"]),
        text_of(cells.get("AvailabilityZone")),
        price("Price"),
        price("SpotPrice"),
        tuple(faults),
    )


_APART = ("HOST_PRICED_APART", "the price is without the instance that the accelerators are attached to")


class _Parts:
    """Accelerators that are priced without a host, and which of them found one."""

    def __init__(self, rows: list[_Row]) -> None:
        self._rows = {
            (row.accelerator, row.devices, row.region, row.zone): row
            for row in rows
            if row.instance_type is None and row.accelerator is not None and not _is_slice(row.accelerator)
        }
        self._taken: set[str] = set()

    def of(self, host: _Row, name: str, count: int) -> _Row:
        """The accelerators of a host's machine type in its zone."""
        found = self._rows.get((name, count, host.region, host.zone))
        if found is None:
            detail = (
                f"the price is of the host alone, and the list has none of {count} {shown(name)} in its zone"
            )
            raise RowError("ACCELERATORS_PRICED_APART", detail)
        self._taken.add(found.pointer)
        return found

    def left(self) -> Iterator[_Row]:
        """What no host came for."""
        return (row for row in self._rows.values() if row.pointer not in self._taken)


def _is_slice(name: str) -> bool:
    return name.lower().startswith("tpu")


def _offers(row: _Row, parts: _Parts, asked: Asked) -> Iterator[ListedOffer]:
    if row.instance_type is None and row.accelerator is None:
        raise RowError("NO_ACCELERATOR", "the row names neither an instance nor an accelerator")
    if row.instance_type is None and not _is_slice(row.accelerator or ""):
        return
    price, spot = row.price, row.spot
    name, count, is_sum = row.accelerator, row.devices, False
    if name is None or not count:
        host = hosts().get(row.instance_type or "")
        if host is None or asked.provider != "gcp":
            raise _NO_ACCELERATOR
        name, count = host
        part = parts.of(row, name, count)
        price, spot, is_sum = _added(price, part.price), _added(spot, part.spot), True
    unit = meant(asked.accelerators, name, instance=row.instance_type or "")
    if not isinstance(unit, Meant):
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


def _added(host: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if host is None or part is None else host + part


def _by_region(offers: list[ListedOffer]) -> Iterator[ListedOffer]:
    """Offers on demand of all zones of a region as one where they agree, as providers price them."""
    listed: dict[tuple[object, ...], set[tuple[object, ...]]] = {}
    for offer in offers:
        listed.setdefault(_sold(offer), set()).add(
            (offer.price, offer.accelerator_id, offer.accelerator_count)
        )
    for offer in offers:
        agrees = offer.purchase_option == "on_demand" and offer.region and len(listed[_sold(offer)]) == 1
        yield offer._replace(zone=None) if agrees else offer


def _sold(offer: ListedOffer) -> tuple[object, ...]:
    return offer.instance_type, offer.region, offer.purchase_option
