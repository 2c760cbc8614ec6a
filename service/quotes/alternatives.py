"""Cheaper ways to the work of a quote, which an approver sees beside its total."""

import bisect
import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from pydantic import MISSING

from service.estimates.service import ESTIMATES, NoSoundEstimate, answer_question
from service.formats.providers import get_provider_name
from service.kit.clock import now
from service.planning.cost.prices import is_expired
from service.quotes.schemas import QuoteAlternative
from service.resolve.catalog import CatalogView, KnownOffer
from service.resolve.price_age import is_used_by_id_only
from service.schemas.base import MoneyQuantity, StrictModel
from service.schemas.references import ParallelismInput

Requests = Mapping[str, StrictModel]
Pricing = Callable[[Requests], MoneyQuantity | None]
"""Returns the total of a quote's requests, or None if it is unknown."""

_LEAST_SPARED: Final = 2
"""A service is sized again if it could be served by this part of its devices."""
_DEGREES: Final = ("tensor", "pipeline", "context", "expert", "expert_tensor")


def list_alternatives(
    requests: Requests,
    answers: Mapping[str, Any],
    total: MoneyQuantity | None,
    catalog: CatalogView,
    compute_total: Pricing,
) -> list[QuoteAlternative]:
    """Returns the alternatives that cost less than ``total``, the cheapest first, at most one of a kind."""
    if total is None:
        return []
    alternatives = (
        _find_fewer_devices(requests, answers, catalog, compute_total),
        _find_other_offer(requests, answers, catalog, compute_total),
        _find_token_price(answers),
    )
    cheaper = [each for each in alternatives if each is not None and _is_cheaper(each["total"], total)]
    return sorted(cheaper, key=lambda each: Decimal(each["total"]["amount"]))


def _is_cheaper(one: MoneyQuantity, other: MoneyQuantity) -> bool:
    return one["currency_code"] == other["currency_code"] and Decimal(one["amount"]) < Decimal(
        other["amount"]
    )


class _ServedLoad(NamedTuple):
    """A rate of requests that identical groups of replicas share."""

    request: Any
    groups: int
    layout: Mapping[str, Any]

    def resize(self, request: Any, groups: int) -> Any:  # noqa: ANN401  # a request of any of the questions
        """Returns a request with fewer groups, each laid out as before."""
        count = request.cluster.accelerator_count // self.groups * groups
        given = ParallelismInput() if request.parallelism is MISSING else request.parallelism
        degrees = {name: self.layout[name] for name in _DEGREES if name in self.layout}
        data = self.layout["data"] // self.groups * groups
        return request.model_copy(
            update={
                "cluster": request.cluster.model_copy(update={"accelerator_count": count}),
                "parallelism": given.model_copy(update={**degrees, "data": data}),
            }
        )

    def is_served_by(self, groups: int, catalog: CatalogView) -> bool:
        """Returns true if the groups serve the rate at the low end of their capacity, within its levels."""
        try:
            answer = answer_question(
                ESTIMATES["throughput"].estimator, self.resize(self.request, groups), catalog
            )
        except NoSoundEstimate:
            return False
        return _is_served(answer, self.request.workload.request_rate_per_second)


def _is_served(answer: Mapping[str, Any], rate: float) -> bool:
    load = answer.get("saturation")
    if load is None or load["saturated"] or load["most_requests_per_second"]["low"] < rate:
        return False
    levels = answer.get("service_level_goodput")
    return levels is None or bool(levels["attained"])


def _read_served_load(requests: Requests, answers: Mapping[str, Any]) -> _ServedLoad | None:
    """Returns the load of a service whose rate is given and served, or None."""
    request, answer = requests.get("throughput"), answers.get("throughput")
    workload = getattr(request, "workload", None)
    rate = getattr(workload, "request_rate_per_second", MISSING)
    if answer is None or rate is MISSING or getattr(workload, "disaggregated", MISSING) is not MISSING:
        return None
    layout = answer["parallelism"]
    groups, left = divmod(layout["data"], max(1, layout["expert"]))
    return _ServedLoad(request, groups, layout) if not left and _is_served(answer, rate) else None


def _find_fewer_devices(
    requests: Requests, answers: Mapping[str, Any], catalog: CatalogView, compute_total: Pricing
) -> QuoteAlternative | None:
    """Returns the fewest devices that serve the load, if at most half of them do."""
    load = _read_served_load(requests, answers)
    if load is None:
        return None
    most = answers["throughput"]["saturation"]["most_requests_per_second"]["low"]
    least = math.ceil(load.groups * load.request.workload.request_rate_per_second / most)
    if least * _LEAST_SPARED > load.groups:
        return None
    tried = range(least, load.groups)
    groups = least + bisect.bisect_left(tried, x=True, key=lambda each: load.is_served_by(each, catalog))
    if groups == load.groups:
        return None
    total = compute_total({name: load.resize(request, groups) for name, request in requests.items()})
    count = load.request.cluster.accelerator_count
    fewer = count // load.groups * groups
    return total and {
        "kind": "fewer_devices",
        "detail": f"{fewer:,} of the {count:,} devices serve the same load",
        "accelerator_count": fewer,
        "total": total,
    }


def _find_other_offer(
    requests: Requests, answers: Mapping[str, Any], catalog: CatalogView, compute_total: Pricing
) -> QuoteAlternative | None:
    """Returns the cheapest offer of the same accelerator on the same terms, in instances as large."""
    rental: Any = getattr(requests.get("cost"), "rental", MISSING)
    cited = (source["id"] for source in _list_sources(answers.get("cost")) if source["kind"] == "offer")
    quoted = None if rental is MISSING else catalog.offers.get(next(cited, ""))
    if quoted is None:
        return None
    others = dict(_list_comparable_offers(quoted, catalog))
    cheapest = min(others, key=lambda name: (others[name].price_per_device_hour, name), default=None)
    if cheapest is None:
        return None
    changed = {"rental": rental.model_copy(update={"offer_id": cheapest})}
    total = compute_total(
        {
            name: request.model_copy(update=changed) if hasattr(request, "rental") else request
            for name, request in requests.items()
        }
    )
    offer = others[cheapest]
    price = f"{offer.price_per_device_hour.normalize():f} {offer.currency_code}"
    return total and {
        "kind": "other_offer",
        "detail": f"{get_provider_name(offer.provider)} offers the same devices at {price} per device-hour",
        "offer_id": cheapest,
        "provider": offer.provider,
        "total": total,
    }


def _list_sources(answer: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    return [] if answer is None else answer["evidence"]["sources"]


def _list_comparable_offers(quoted: KnownOffer, catalog: CatalogView) -> Iterator[tuple[str, KnownOffer]]:
    """Yields the cheaper offers of today that plans would use too."""
    today = now().date()
    terms = (quoted.purchase_option, quoted.term, quoted.currency_code)
    for name, offer in catalog.offers.list_of_key("accelerator_id", quoted.accelerator_id).items():
        if (
            (offer.purchase_option, offer.term, offer.currency_code) == terms
            and offer.accelerator_count >= quoted.accelerator_count
            and offer.price_per_device_hour < quoted.price_per_device_hour
            and offer.doubt is None
            and not is_expired(offer.valid_until, today)
            and not is_used_by_id_only(offer, catalog)
        ):
            yield name, offer


def _find_token_price(answers: Mapping[str, Any]) -> QuoteAlternative | None:
    """Returns the cheapest list price of the tokens of the load."""
    prices = answers.get("cost", {}).get("list_prices", ())
    cheapest = min(prices, key=lambda each: Decimal(each["total"]["amount"]), default=None)
    if cheapest is None:
        return None
    seller = get_provider_name(cheapest["provider"])
    return {
        "kind": "token_price",
        "detail": f"{seller} sells the tokens of {cheapest['model']} at its list price",
        "token_price_id": cheapest["id"],
        "provider": cheapest["provider"],
        "total": cheapest["total"],
    }
