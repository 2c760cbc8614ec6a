"""Prices of the configurations of a fleet, which the pieces of its search find and its last job reads."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from service.kit.http.cancellation import check_cancelled
from service.planning.errors import PlanningError
from service.plans.defaults import drop_default_levels, select_within_levels
from service.plans.pricing import CandidatePricer, PricedCandidate
from service.plans.space import KeptConfiguration, SearchOutcome, SearchSpace
from service.schemas.plan_answers import PlanConstraint

_NUMBERS: Final = ("devices", "time", "seconds", "kg_co2e", "kw")


def price_outcome(space: SearchSpace, outcome: SearchOutcome) -> SearchOutcome:
    """Returns the outcome of a piece with the prices of its configurations on the only supply of the space.

    Those that miss the default service levels are never asked for beside others that keep them. If nothing
    keeps them, all are priced without them.
    """
    keeps_levels = bool(select_within_levels(outcome).kept)
    if outcome.kept and not keeps_levels:
        space = drop_default_levels(space)
    pricer = CandidatePricer(space)
    return outcome._replace(
        kept=tuple(
            kept._replace(price=_price(pricer, kept)) if kept.keeps_levels == keeps_levels else kept
            for kept in outcome.kept
        )
    )


def _price(pricer: CandidatePricer, kept: KeptConfiguration) -> Mapping[str, Any] | None:
    """Returns the price of a configuration as JSON, or None if the estimators refuse it.

    Another piece may have a better one, so that only the last job knows whether the refusal counts.
    """
    check_cancelled()  # pricing takes as long as the search
    try:
        found = pricer.price_start(pricer.space.supplies[0], kept)
    except PlanningError:
        return None
    price: dict[str, Any] = {name: getattr(found, name) for name in _NUMBERS}
    if found.cost is not None:
        price["cost"] = str(found.cost)
    if found.ruled_out_by is not None:
        price["ruled_out_by"] = found.ruled_out_by.value
    return price


def read_candidate(pricer: CandidatePricer, kept: KeptConfiguration) -> PricedCandidate:
    """Returns a configuration with the price that its piece has found, else prices it."""
    supply, price = pricer.space.supplies[0], kept.price
    if price is None:
        return pricer.price_start(supply, kept)
    return PricedCandidate(
        kept,
        supply,
        cost=Decimal(price["cost"]) if "cost" in price else None,
        ruled_out_by=PlanConstraint(price["ruled_out_by"]) if "ruled_out_by" in price else None,
        **{name: price[name] for name in _NUMBERS},
    )
