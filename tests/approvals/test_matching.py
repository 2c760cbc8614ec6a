"""Which policies speak of a quote: what nobody knows counts against whoever asks."""

from datetime import date
from decimal import Decimal

import pytest

from service.approvals.matching import ApprovalSubject, match_policies
from service.planning.cost.exchange import ExchangeRate, ExchangeRates
from service.policies.schemas import ApprovalPolicyRequest
from service.policies.service import VersionedPolicy
from service.quotes.schemas import LEFT_OUT

DAY = date(2026, 3, 1)
RATES = ExchangeRates(
    [
        ExchangeRate("EUR", "USD", Decimal("1.25"), date(2026, 1, 5), "a bank"),
        ExchangeRate("EUR", "USD", Decimal(9), date(2026, 3, 2), "a bank"),
        ExchangeRate("EUR", "SEK", Decimal(11), date(2026, 2, 1), "a bank"),
    ]
)
ASKS = [{"name": "step", "approvers": ["token:chief"]}]


def policy(name="policy", steps=ASKS, **conditions):
    body = {"id": name, "name": name, "conditions": conditions, "steps": steps}
    return VersionedPolicy(ApprovalPolicyRequest.model_validate(body), 3)


def above(amount, currency="USD", condition="total_above"):
    return {condition: {"amount": amount, "currency_code": currency}}


def quote(total="100", *, currency="USD", high=None, kg=None, warnings=(), requests=("cost",), **members):
    headlines = {}
    if total is not None:
        ends = {"amount": total, "low": total, "high": high or total}
        headlines["total"] = {**ends, "currency_code": currency}
    if kg is not None:
        headlines["location_based_kg_co2e"] = {"value": kg}
    told = [{"code": code, "pointer": "", "detail": ""} for code in warnings]
    made = {"headlines": headlines, "warnings": told, "requests": dict.fromkeys(requests), "providers": []}
    return made | members


def matched(asked, *policies, names=("token:asker",), also=()):
    names = frozenset(names)
    return match_policies(policies, ApprovalSubject(asked, names, names | {*also}), RATES, DAY)


def ids(found):
    return [each.body.id for each in found.policies]


def codes(found):
    return [each["code"] for each in found.warnings]


class TestThresholds:
    @pytest.mark.parametrize(
        ("asked", "limit", "speaks"),
        [
            (quote("100"), above("99.99"), True),
            (quote("100"), above("100"), False),
            (quote("100", high="120"), above("110", condition="total_high_above"), True),
            (quote("100", currency="EUR"), above("124"), True),
            (quote("100", currency="EUR"), above("126"), False),
            (quote("110", currency="SEK"), above("12.4"), True),
            (quote("110", currency="SEK"), above("12.6"), False),
            (quote(kg=10.0), {"location_based_kg_co2e_above": 9.0}, True),
            (quote(kg=10.0), {"location_based_kg_co2e_above": 10.0}, False),
        ],
    )
    def test_of_what_is_known(self, asked, limit, speaks):
        found = matched(asked, policy(**limit))
        assert ids(found) == ["policy"] * speaks
        assert codes(found) == []

    @pytest.mark.parametrize(
        ("asked", "limit", "code"),
        [
            (quote(None), above("1000"), "TOTAL_UNKNOWN"),
            (quote(None), above("1000", condition="total_high_above"), "TOTAL_UNKNOWN"),
            (quote("1", currency="JPY"), above("1000"), "RATE_UNKNOWN"),
            (quote(), {"location_based_kg_co2e_above": 1e9}, "CARBON_UNKNOWN"),
            *[(quote("1", warnings=[code]), above("1000"), "TOTAL_INCOMPLETE") for code in sorted(LEFT_OUT)],
        ],
    )
    def test_of_what_is_unknown_or_incomplete_count_it_as_above(self, asked, limit, code):
        found = matched(asked, policy(**limit))
        assert (ids(found), codes(found)) == (["policy"], [code])

    def test_of_an_incomplete_total_that_is_above_anyway_need_no_warning(self):
        found = matched(quote("1001", warnings=sorted(LEFT_OUT)), policy(**above("1000")))
        assert (ids(found), codes(found)) == (["policy"], [])

    def test_are_not_moved_by_other_warnings(self):
        assert ids(matched(quote("1", warnings=["PRICE_STALE"]), policy(**above("1000")))) == []


class TestPoliciesThatAskNobody:
    @pytest.mark.parametrize(
        ("asked", "conditions", "code"),
        [
            (quote(None), {}, "TOTAL_UNKNOWN"),
            (quote(None, requests=["utility_bill"]), {}, "TOTAL_UNKNOWN"),
            (quote(None), above("1"), "TOTAL_UNKNOWN"),
            (quote(None, requests=["memory"]), above("1"), "TOTAL_UNKNOWN"),
            (quote(currency="JPY"), above("1"), "RATE_UNKNOWN"),
            (quote(), {"location_based_kg_co2e_above": 0.0}, "CARBON_UNKNOWN"),
            (quote(warnings=["ELECTRICITY_NOT_IN_TOTAL"]), {}, "TOTAL_INCOMPLETE"),
            # Above its limit without what is left out: what it is in all nobody knows.
            (quote(warnings=["ELECTRICITY_NOT_IN_TOTAL"]), above("1"), "TOTAL_INCOMPLETE"),
        ],
    )
    def test_let_nothing_pass_that_nobody_knows(self, asked, conditions, code):
        found = matched(asked, policy("automatic", steps=[], **conditions), policy("asks"))
        assert (ids(found), codes(found)) == (["asks"], [code])

    @pytest.mark.parametrize("asked", [quote(), quote(None, requests=["memory", "throughput"])])
    def test_let_pass_what_is_known_or_costs_nothing(self, asked):
        found = matched(asked, policy(steps=[]))
        assert (ids(found), codes(found)) == (["policy"], [])

    def test_say_nothing_of_quotes_that_are_not_theirs(self):
        found = matched(quote(None), policy(steps=[], cost_center_ids=["other"]))
        assert (ids(found), codes(found)) == ([], [])


def test_whoever_asked_for_a_version_meets_their_policies_and_lends_nobody_their_leave():
    asks, leave = policy("asks", requesters=["token:a"]), policy("leave", steps=[], requesters=["token:a"])
    assert ids(matched(quote(), asks, leave, names=["token:b"], also=["token:a"])) == ["asks"]
    assert ids(matched(quote(), asks, leave, names=["token:a"])) == ["asks", "leave"]


def test_by_what_it_was_judged_is_told():
    policies = policy("a", **above("1")), policy("b", **above("1", "SEK")), policy("c", **above("1000"))
    assert matched(quote(currency="EUR"), *policies).judged == {
        "on": "2026-03-01",
        "policies": [
            {"policy_id": "a", "version": 3, "matches": True},
            {"policy_id": "b", "version": 3, "matches": True},
            {"policy_id": "c", "version": 3, "matches": False},
        ],
        "exchange_rates": [
            {"from_currency_code": "EUR", "to_currency_code": "USD", "rate": "1.25", "as_of": "2026-01-05"},
            {"from_currency_code": "EUR", "to_currency_code": "SEK", "rate": "11", "as_of": "2026-02-01"},
        ],
    }
