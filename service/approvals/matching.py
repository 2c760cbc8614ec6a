"""Which policies speak of a quote. What cannot be judged counts against whoever asks, and is told.

A policy that asks nobody lets quotes pass: an unknown keeps it from matching, as it makes others match.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import MISSING

from service.approvals.policies.service import Policy
from service.approvals.schemas import JudgedRate, Judgement
from service.planning.cost.exchange import ExchangeRate, ExchangeRates
from service.quotes.schemas import LEFT_OUT
from service.schemas.base import AnswerWarning, MoneyInput


class Asked(NamedTuple):
    """A quote, the names of who asks for its approval, and those of all who have asked for a version."""

    quote: Mapping[str, Any]
    names: frozenset[str]
    all_names: frozenset[str]


class Matched(NamedTuple):
    """Policies that speak of a quote, what could not be judged, and by what all of them were judged."""

    policies: list[Policy]
    warnings: list[AnswerWarning]
    judged: Judgement


class _Unknown(NamedTuple):
    """Why a condition cannot be judged."""

    code: str
    detail: str


def match(policies: Iterable[Policy], asked: Asked, rates: ExchangeRates, on: date) -> Matched:
    """The policies that speak of what is asked, by the exchange rates of a day."""
    judge = _Judge(asked, rates, on)
    matched = Matched([], [], {"on": on.isoformat(), "policies": [], "exchange_rates": []})
    for policy in policies:
        judged = judge.conditions(policy)
        unknown = dict.fromkeys(each for each in judged if isinstance(each, _Unknown))
        matches = all(judged) and not (unknown and _is_automatic(policy))
        if matches:
            matched.policies.append(policy)
        if all(judged):
            matched.warnings.extend(_warning(policy, each) for each in unknown)
        matched.judged["policies"].append(
            {"policy_id": policy.body.id, "version": policy.version, "matches": matches}
        )
    matched.judged["exchange_rates"].extend(judge.used.values())
    return matched


def _is_automatic(policy: Policy) -> bool:
    return not policy.body.steps


def _warning(policy: Policy, unknown: _Unknown) -> AnswerWarning:
    counted = "so does not let it pass unasked" if _is_automatic(policy) else "counts it as above its limit"
    detail = f"{unknown.detail}: policy {policy.body.id} {counted}"
    return {"code": unknown.code, "pointer": "", "detail": detail}


def _judged_rate(rate: ExchangeRate) -> JudgedRate:
    known: JudgedRate = {
        "from_currency_code": rate.from_code,
        "to_currency_code": rate.to_code,
        "rate": f"{rate.rate:f}",
        "as_of": rate.on.isoformat(),
    }
    if rate.row is not None:
        known |= {"id": rate.row["id"], "version": rate.row["version"]}
    return known


class _Judge:
    """Judges the conditions of policies about one quote."""

    def __init__(self, asked: Asked, rates: ExchangeRates, on: date) -> None:
        self._asked = asked
        self._rates = rates
        self._on = on
        self.used: dict[tuple[str, str], JudgedRate] = {}
        left_out = sorted({each["code"] for each in asked.quote["warnings"]} & LEFT_OUT)
        self._left_out = ", ".join(left_out)

    def conditions(self, policy: Policy) -> list[bool | _Unknown]:
        """Whether each holds."""
        judged = [self._is_among(policy), *self._above(policy)]
        unpriced = self._unpriced() if _is_automatic(policy) else None
        return judged if unpriced is None else [*judged, unpriced]

    def _is_among(self, policy: Policy) -> bool:
        """Whether it speaks of this payer, provider and asker.

        Whoever has asked for a version meets their policies though another submits it; only who submits it
        has the leave of one that asks nobody.
        """
        conditions, quote = policy.body.conditions, self._asked.quote
        names = self._asked.names if _is_automatic(policy) else self._asked.all_names
        of_the_quote = (
            (conditions.cost_center_ids, {quote.get("cost_center_id")}),
            (conditions.requesters, names),
            (conditions.providers, set(quote["providers"])),
        )
        return all(wanted is MISSING or not found.isdisjoint(wanted) for wanted, found in of_the_quote)

    def _unpriced(self) -> _Unknown | None:
        """Why nobody knows what a quote costs that is of money."""
        if self._asked.quote["requests"].keys().isdisjoint({"cost", "utility_bill"}):
            return None
        if "total" not in self._asked.quote["headlines"]:
            return _Unknown("TOTAL_UNKNOWN", "the total of the quote is not known")
        return self._incomplete()

    def _incomplete(self) -> _Unknown | None:
        detail = f"the total of the quote leaves out charges ({self._left_out})"
        return _Unknown("TOTAL_INCOMPLETE", detail) if self._left_out else None

    def _above(self, policy: Policy) -> Iterator[bool | _Unknown]:
        conditions, headlines = policy.body.conditions, self._asked.quote["headlines"]
        for end, limit in (("amount", conditions.total_above), ("high", conditions.total_high_above)):
            if limit is not MISSING:
                yield self._is_above(headlines.get("total"), end, limit)
        carbon_limit = conditions.location_based_kg_co2e_above
        if carbon_limit is not MISSING:
            carbon = headlines.get("location_based_kg_co2e")
            unknown = _Unknown("CARBON_UNKNOWN", "the emissions of the quote are not known")
            yield unknown if carbon is None else carbon["value"] > carbon_limit

    def _is_above(self, total: Mapping[str, Any] | None, end: str, limit: MoneyInput) -> bool | _Unknown:
        if total is None:
            return _Unknown("TOTAL_UNKNOWN", "the total of the quote is not known")
        currency, wanted = total["currency_code"], limit.currency_code
        converted = self._rates.convert(Decimal(str(total[end])), currency, wanted, self._on)
        if converted is None:
            return _Unknown("RATE_UNKNOWN", f"no exchange rate from {currency} to {wanted} is known")
        self.used |= {(rate.from_code, rate.to_code): _judged_rate(rate) for rate in converted.rates}
        return converted.amount > Decimal(limit.amount) or self._incomplete() or False
