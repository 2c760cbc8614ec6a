"""OpenCost's custom prices: ``default.json`` and its like, and the CSV of assets.

The JSON has one price in USD an hour for a GPU of no name (``gpuLabelValue`` may give one), beside prices of
CPU, memory and storage. The CSV prices assets: a ``gpu`` by the value of a label of its node, on top of the
node's own price; a ``node`` says nothing of its accelerators. ``EndTimestamp`` and ``Version`` are not used
by OpenCost, so nothing is read into them.
"""

import re
from collections.abc import Mapping
from typing import Final

from service.formats.offers.listed import (
    ListedOffer,
    ReadOffers,
    RefusedOffer,
    RowError,
    collect_offers,
    parse_document,
    parse_price,
    parse_text,
    read_table,
)
from service.formats.offers.names import NamedAccelerator, PriceListContext, UnknownName, resolve_accelerator
from service.planning.errors import PlanningError

_COLUMNS = ("InstanceID", "Region", "AssetClass", "MarketPriceHourly")
_OPTIONS: Final = re.compile(r"(?<![-_ ])[-_ ]*+(on[-_ ]?demand|reserved|spot|preemptible)$", re.IGNORECASE)
_GPU_PRICES: Final = {"GPU": "on_demand", "spotGPU": "spot"}
_OTHER_PRICES: Final = frozenset(
    {
        "CPU",
        "spotCPU",
        "RAM",
        "spotRAM",
        "storage",
        "zoneNetworkEgress",
        "regionNetworkEgress",
        "internetNetworkEgress",
        "natGatewayEgress",
        "natGatewayIngress",
        "firstFiveForwardingRulesCost",
        "additionalForwardingRuleCost",
        "LBIngressDataCost",
    }
)
_NO_HOST = "The price of accelerators alone: their host is priced apart."


def offers_from_opencost_csv(content: str, asked: PriceListContext) -> ReadOffers:
    """GPU prices of an OpenCost price table; raises PlanningError if the content is none."""

    def read_row(pointer: str, cells: Mapping[str, str]) -> ListedOffer:
        return _read_asset(pointer, cells, asked)

    offers, refused, total = read_table(_blank_comments(content), _COLUMNS, read_row)
    return collect_offers(offers, refused, total)


def _blank_comments(content: str) -> str:
    """The lines of ``content``, those that begin with # emptied so that numbers of lines stay."""
    return re.sub(r"(?m)^#.*$", "", content)


def _read_asset(pointer: str, cells: Mapping[str, str], asked: PriceListContext) -> ListedOffer:
    kind = cells["AssetClass"].strip().lower()
    if kind == "node":
        raise RowError("NO_ACCELERATOR", "the price of a node does not say which accelerators it has")
    if kind != "gpu":
        raise RowError("NOT_A_DEVICE", "the price is not of a GPU")
    label = parse_text(cells["InstanceID"])
    if label is None:
        raise RowError("UNKNOWN_ACCELERATOR", "the row does not name its GPU")
    said = _OPTIONS.search(label)
    unit = resolve_accelerator(asked.accelerators, label[: said.start()] if said else label)
    if not isinstance(unit, NamedAccelerator):
        raise RowError(unit.code, unit.detail)
    return ListedOffer(
        pointer=pointer,
        provider=asked.provider,
        accelerator_id=unit.accelerator_id,
        accelerator_count=unit.devices,
        purchase_option=_parse_purchase_option(said[1]) if said else "on_demand",
        price=parse_price(cells["MarketPriceHourly"]),
        currency_code="USD",
        region=parse_text(cells["Region"]),
        instance_type=label,
        includes=(),
        doubt=unit.doubt,
        note=_NO_HOST,
    )


def _parse_purchase_option(said: str) -> str:
    word = re.sub(r"[-_ ]", "", said.lower())
    return {"ondemand": "on_demand", "reserved": "reserved"}.get(word, "spot")


def offers_from_opencost_json(content: str, asked: PriceListContext) -> ReadOffers:
    """The GPU price of an OpenCost price document, for the accelerator that it names or the caller does.

    A document without a GPU price has none: OpenCost then takes that of its ``default.json``, which is a
    price of something else. Raises PlanningError if the content is no such document.
    """
    prices = parse_document(content)
    if not isinstance(prices, Mapping) or not {"CPU", "RAM", "GPU"} & prices.keys():
        raise PlanningError("FORMAT", "/content", "the document has none of the members CPU, RAM and GPU")
    offers, refused = [], []
    given = [name for name in _GPU_PRICES if prices.get(name) not in (None, "")]
    for name in given:
        try:
            offers.append(_read_gpu_price(name, prices, asked))
        except RowError as error:
            refused.append(RefusedOffer(f"/{name}", error.code, error.detail))
    if not given:
        detail = "there is no price of a GPU; OpenCost would take that of its default.json"
        refused.append(RefusedOffer("/GPU", "PRICE_MISSING", detail))
    others = [name for name in prices if name in _OTHER_PRICES]
    refused += [RefusedOffer(f"/{name}", "NOT_A_DEVICE", "the price is not of a GPU") for name in others]
    return collect_offers(offers, refused, len(given) + len(others))


def _read_gpu_price(name: str, prices: Mapping[str, object], asked: PriceListContext) -> ListedOffer:
    label = parse_text(prices.get("gpuLabelValue"))
    unit = resolve_accelerator(asked.accelerators, asked.accelerator or label or "")
    if isinstance(unit, UnknownName):
        if asked.accelerator or label:
            raise RowError(unit.code, unit.detail)
        raise RowError("ACCELERATOR_NOT_NAMED", "the document does not say which GPU costs this")
    code = parse_text(prices.get("currencyCode")) or "USD"
    return ListedOffer(
        pointer=f"/{name}",
        provider=asked.provider,
        accelerator_id=unit.accelerator_id,
        accelerator_count=unit.devices,
        purchase_option=_GPU_PRICES[name],
        price=parse_price(str(prices[name])),
        currency_code=code,
        includes=(),
        doubt=unit.doubt,
        note=_NO_HOST,
    )
