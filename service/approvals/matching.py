"""Matching of policies with a quote. Undecidable conditions count against the requester, with a warning.

A policy without steps admits quotes: an unknown figure keeps it from matching, and makes others match.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import MISSING

from service.approvals.schemas import EvaluatedExchangeRate, PolicyEvaluation
from service.planning.cost.exchange import ExchangeRate, ExchangeRates
from service.policies.service import VersionedPolicy
from service.quotes.schemas import LEFT_OUT
from service.schemas.base import AnswerWarning, MoneyInput


class ApprovalSubject(NamedTuple):
    """A quote, the names of its submitter, and the names of all requesters of its versions."""

    quote: Mapping[str, Any]
    names: frozenset[str]
    all_names: frozenset[str]


class MatchedPolicies(NamedTuple):
    """Policies that match a quote, warnings of undecidable conditions, and the inputs of the evaluation."""

    policies: list[VersionedPolicy]
    warnings: list[AnswerWarning]
    judged: PolicyEvaluation


class _UndecidableCondition(NamedTuple):
    """Reason why a condition cannot be evaluated."""

    code: str
    detail: str


def match_policies(
    policies: Iterable[VersionedPolicy], asked: ApprovalSubject, rates: ExchangeRates, on: date
) -> MatchedPolicies:
    """Returns the policies that match a quote, at the exchange rates of a day."""
    judge = _ConditionEvaluator(asked, rates, on)
    matched = MatchedPolicies([], [], {"on": on.isoformat(), "policies": [], "exchange_rates": []})
    for policy in policies:
        judged = judge.judge_conditions(policy)
        unknown = dict.fromkeys(each for each in judged if isinstance(each, _UndecidableCondition))
        matches = all(judged) and not (unknown and _is_automatic(policy))
        if matches:
            matched.policies.append(policy)
        if all(judged):
            matched.warnings.extend(_build_warning(policy, each) for each in unknown)
        matched.judged["policies"].append(
            {"policy_id": policy.body.id, "version": policy.version, "matches": matches}
        )
    matched.judged["exchange_rates"].extend(judge.used.values())
    return matched


def _is_automatic(policy: VersionedPolicy) -> bool:
    return not policy.body.steps


def _build_warning(policy: VersionedPolicy, unknown: _UndecidableCondition) -> AnswerWarning:
    counted = "does not approve it automatically" if _is_automatic(policy) else "treats it as above its limit"
    detail = f"{unknown.detail}: policy {policy.body.id} {counted}"
    return {"code": unknown.code, "pointer": "", "detail": detail}


def _rate_to_response(rate: ExchangeRate) -> EvaluatedExchangeRate:
    known: EvaluatedExchangeRate = {
        "from_currency_code": rate.from_code,
        "to_currency_code": rate.to_code,
        "rate": f"{rate.rate:f}",
        "as_of": rate.on.isoformat(),
    }
    if rate.row is not None:
        known |= {"id": rate.row["id"], "version": rate.row["version"]}
    return known


class _ConditionEvaluator:
    """Evaluator of policy conditions for one quote."""

    def __init__(self, asked: ApprovalSubject, rates: ExchangeRates, on: date) -> None:
        self._asked = asked
        self._rates = rates
        self._on = on
        self.used: dict[tuple[str, str], EvaluatedExchangeRate] = {}
        left_out = sorted({each["code"] for each in asked.quote["warnings"]} & LEFT_OUT)
        self._left_out = ", ".join(left_out)

    def judge_conditions(self, policy: VersionedPolicy) -> list[bool | _UndecidableCondition]:
        """Returns the result of each condition."""
        judged = [self._is_among(policy), *self._judge_limits(policy)]
        unpriced = self._find_price_gap() if _is_automatic(policy) else None
        return judged if unpriced is None else [*judged, unpriced]

    def _is_among(self, policy: VersionedPolicy) -> bool:
        """Returns true if the policy applies to this cost centre, provider and requester.

        Policies with steps apply to all requesters of any version; a policy without steps applies to the
        submitter only.
        """
        conditions, quote = policy.body.conditions, self._asked.quote
        names = self._asked.names if _is_automatic(policy) else self._asked.all_names
        of_the_quote = (
            (conditions.cost_center_ids, {quote.get("cost_center_id")}),
            (conditions.requesters, names),
            (conditions.providers, set(quote["providers"])),
        )
        return all(wanted is MISSING or not found.isdisjoint(wanted) for wanted, found in of_the_quote)

    def _find_price_gap(self) -> _UndecidableCondition | None:
        """Returns the reason why the cost of a quote with costs is unknown, or None."""
        if self._asked.quote["requests"].keys().isdisjoint({"cost", "utility_bill"}):
            return None
        if "total" not in self._asked.quote["headlines"]:
            return _UndecidableCondition("TOTAL_UNKNOWN", "the total of the quote is unknown")
        return self._find_total_gap()

    def _find_total_gap(self) -> _UndecidableCondition | None:
        detail = f"the total of the quote leaves out charges ({self._left_out})"
        return _UndecidableCondition("TOTAL_INCOMPLETE", detail) if self._left_out else None

    def _judge_limits(self, policy: VersionedPolicy) -> Iterator[bool | _UndecidableCondition]:
        conditions, headlines = policy.body.conditions, self._asked.quote["headlines"]
        for end, limit in (("amount", conditions.total_above), ("high", conditions.total_high_above)):
            if limit is not MISSING:
                yield self._is_above(headlines.get("total"), end, limit)
        carbon_limit = conditions.location_based_kg_co2e_above
        if carbon_limit is not MISSING:
            carbon = headlines.get("location_based_kg_co2e")
            unknown = _UndecidableCondition("CARBON_UNKNOWN", "the emissions of the quote are unknown")
            yield unknown if carbon is None else carbon["value"] > carbon_limit

    def _is_above(
        self, total: Mapping[str, Any] | None, end: str, limit: MoneyInput
    ) -> bool | _UndecidableCondition:
        if total is None:
            return _UndecidableCondition("TOTAL_UNKNOWN", "the total of the quote is unknown")
        currency, wanted = total["currency_code"], limit.currency_code
        converted = self._rates.convert(Decimal(str(total[end])), currency, wanted, self._on)
        if converted is None:
            return _UndecidableCondition(
                "RATE_UNKNOWN", f"no exchange rate from {currency} to {wanted} is known"
            )
        self.used |= {(rate.from_code, rate.to_code): _rate_to_response(rate) for rate in converted.rates}
        return converted.amount > Decimal(limit.amount) or self._find_total_gap() or False
