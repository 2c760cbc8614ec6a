"""What one request may take: every bill of it is counted before it is worked out."""

import json

import pytest

from service.estimates.allowance import spend_effort, use_allowance
from service.estimates.power_cap import estimate_power_cap
from service.estimates.service import NoSoundEstimate, answer_question
from service.estimates.shift import estimate_shift
from service.estimates.site_comparison import compare_sites
from service.estimates.tariff_bill import bill_tariff
from service.estimates.utility_bill import estimate_utility_bill
from service.planning.errors import PlanningError
from service.planning.tariff.allowance import Allowance
from service.planning.tariff.effort import MOST_STEPS, BillingEffort, EffortShare
from service.schemas.estimates import UtilityBillRequest
from service.schemas.tariff_bills import TariffBillRequest
from service.schemas.what_if import PowerCapEstimateRequest, SiteComparisonRequest, StartShiftEstimateRequest
from tests.asking import question, shipped

LADDER = [{"price": "1", "limit": 0.001 * (place + 1)} for place in range(49)] + [{"price": "1"}]
PERIODS = [
    {"name": "day", "tiers": [{"price": "9"}], "windows": [{"from_time": "12:00", "to_time": "18:00"}]},
    {"name": "night", "tiers": [{"price": "1"}], "windows": [{"from_time": "18:00", "to_time": "12:00"}]},
]
TERMS = {
    "currency_code": "USD",
    "time_zone": "America/Los_Angeles",
    "revisions": [
        {
            "effective_from": "2000-01-01",
            "charges": [
                {"kind": "energy", "name": "energy", "periods": PERIODS},
                {"kind": "demand", "name": "demand", "periods": PERIODS},
            ],
        }
    ],
}
ALL_HOURS = [{"name": "all", "tiers": [{"price": "9"}]}]
YEARS = 2.4e14
"""Tokens that take 17 years."""


def terms(*charges):
    return {**TERMS, "revisions": [{"effective_from": "2000-01-01", "charges": list(charges)}]}


def looking_far(charges, ratchets):
    rule = {
        "ratchets": [
            {"preceding_months": 120, "share_by_peak_month": [0.5 + n / 100] * 12} for n in range(ratchets)
        ]
    }
    return terms(
        *(
            {"kind": "demand", "name": f"demand {n}", "periods": ALL_HOURS, "billing_demand": rule}
            for n in range(charges)
        )
    )


def site(tariff=TERMS, **members):
    return {"pue": 1.2, "time_zone": "America/Los_Angeles", "electricity": {"tariff": tariff}, **members}


def run(tokens, **members):
    asked = question(
        "llama-3.1-8b", "h100-sxm", 64, total_tokens=int(tokens), sequence_length=4096, micro_batch_size=1
    )
    return {**asked, "starts_at": "2026-01-03T00:00:00Z", **members}


def asked(estimator, shape, body, allowed=None):
    return answer_question(estimator, shape.model_validate_json(json.dumps(body)), shipped(), "", allowed)


def refusal(estimator, shape, body, allowed=None):
    with pytest.raises(NoSoundEstimate) as caught:
        asked(estimator, shape, body, allowed)
    (error,) = caught.value.errors
    assert error.detail
    return error.code, error.pointer


def test_what_is_taken_is_counted_and_what_goes_beyond_is_refused():
    allowed, half = Allowance(), BillingEffort((EffortShare(MOST_STEPS / 2, "half"),))
    with use_allowance(allowed):
        spend_effort(half, "/first")
        spend_effort(half, "/second")
        with pytest.raises(PlanningError) as caught:
            spend_effort(BillingEffort((EffortShare(1.0, "more"),)), "/third")
    assert (caught.value.pointer, allowed.left) == ("/third", 0.0)
    spend_effort(half, "/a question without one")


def test_questions_of_a_batch_take_from_one_allowance():
    body = run(2e12, site=site(looking_far(20, 6), baseline_load={"kind": "constant", "kw": 90}))
    whole, questions = Allowance(), 0
    asked(estimate_utility_bill, UtilityBillRequest, body, whole)
    one = MOST_STEPS - whole.left
    allowed = Allowance(2.5 * one)
    with pytest.raises(NoSoundEstimate):  # noqa: PT012 - which of them is refused is counted
        for _ in range(5):
            asked(estimate_utility_bill, UtilityBillRequest, body, allowed)
            questions += 1
    assert questions == 2
    assert allowed.left == pytest.approx(one / 2)


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_batch_over_http_is_refused_at_the_question_that_goes_beyond(reader):
    one = run(2e12, site=site(looking_far(40, 6), baseline_load={"kind": "constant", "kw": 90}))
    answered = reader.post("/v1/estimates/utility-bill:batch", {"requests": [one] * 12})
    assert answered.status_code == 422
    (error,) = answered.json()["errors"]
    assert error["code"] == "BILL_TOO_COSTLY"
    _, _, place, rest = error["pointer"].split("/", 3)
    assert 0 < int(place) < 12
    assert rest == "site/electricity/tariff"


DEAR = {
    "ratchets that tie ten years to a run": (
        estimate_utility_bill,
        UtilityBillRequest,
        run(2e11, site=site(looking_far(200, 24), baseline_load={"kind": "constant", "kw": 500})),
        ("BILL_TOO_COSTLY", "/site/electricity/tariff"),
    ),
    "a run of many years by five minutes": (
        estimate_utility_bill,
        UtilityBillRequest,
        run(YEARS, site=site(), load_profile={"interval_minutes": 5}),
        ("LOAD_TOO_LONG", "/load_profile/interval_minutes"),
    ),
    "a run of many years by minutes of windows": (
        estimate_utility_bill,
        UtilityBillRequest,
        run(
            YEARS,
            site=site(
                terms(
                    {
                        "kind": "energy",
                        "name": "energy",
                        "periods": [
                            {
                                "name": "x",
                                "tiers": [{"price": "1"}],
                                "windows": [
                                    {"from_time": f"{n // 60:02}:{n % 60:02}", "to_time": "24:00"}
                                    for n in range(1, 600)
                                ],
                            }
                        ],
                    }
                )
            ),
        ),
        ("LOAD_TOO_LONG", "/load_profile/interval_minutes"),
    ),
    "starts far apart of many years": (
        estimate_shift,
        StartShiftEstimateRequest,
        run(
            YEARS,
            site=site(),
            window={
                "earliest_start_at": "2026-01-03T00:00:00Z",
                "latest_start_at": "2050-01-03T00:00:00Z",
                "step_minutes": 10080,
            },
        ),
        ("SHIFT_WINDOW", "/window"),
    ),
    "starts of many years": (
        estimate_shift,
        StartShiftEstimateRequest,
        run(
            YEARS,
            site=site(),
            window={
                "earliest_start_at": "2026-01-03T00:00:00Z",
                "latest_start_at": "2026-12-03T00:00:00Z",
                "step_minutes": 1440,
            },
        ),
        ("BILL_TOO_COSTLY", "/window"),
    ),
    "thousands of tiers": (
        bill_tariff,
        TariffBillRequest,
        {
            "tariff": {
                "source": "terms",
                "terms": terms(
                    *(
                        {"kind": "energy", "name": f"e{n}", "periods": [{"name": "x", "tiers": LADDER}]}
                        for n in range(200)
                    )
                ),
            },
            "load": {
                "kind": "constant",
                "starts_at": "2025-01-01T00:00",
                "ends_at": "2026-01-01T00:00",
                "kw": 5,
            },
        },
        ("BILL_TOO_COSTLY", "/tariff/terms"),
    ),
}


@pytest.mark.parametrize(("estimator", "shape", "body", "expected"), DEAR.values(), ids=DEAR)
def test_a_request_that_would_take_too_much_is_refused_where_it_says_so(estimator, shape, body, expected):
    assert refusal(estimator, shape, body) == expected


def test_sites_take_from_one_allowance_and_the_one_that_goes_beyond_is_named():
    sites = [{"name": str(n), "site": site(baseline_load={"kind": "constant", "kw": 90})} for n in range(20)]
    whole = Allowance()
    asked(compare_sites, SiteComparisonRequest, run(YEARS, sites=sites[:2]), whole)
    few = Allowance(1.4 * (MOST_STEPS - whole.left))
    assert refusal(compare_sites, SiteComparisonRequest, run(YEARS, sites=sites), few) == (
        "BILL_TOO_COSTLY",
        "/sites/2/site/electricity/tariff",
    )


def test_caps_take_from_one_allowance():
    caps, whole = [400 + 10 * n for n in range(20)], Allowance()
    body = run(YEARS, site=site(), power_caps_watts=caps)
    asked(estimate_power_cap, PowerCapEstimateRequest, {**body, "power_caps_watts": caps[:1]}, whole)
    few = Allowance(1.4 * (MOST_STEPS - whole.left))
    assert refusal(estimate_power_cap, PowerCapEstimateRequest, body, few) == (
        "BILL_TOO_COSTLY",
        "/site/electricity/tariff",
    )


def test_emissions_in_time_count_too():
    hours = {"kind": "hours_of_year", "time_zone": "Etc/UTC", "kg_co2e_per_kwh": [0.1] * 8760}
    asked_of = run(YEARS, site={"pue": 1.2, "carbon_intensity_series": hours})
    allowed = Allowance()
    asked(estimate_utility_bill, UtilityBillRequest, asked_of, allowed)
    assert allowed.left < MOST_STEPS - 90_000
    assert refusal(estimate_utility_bill, UtilityBillRequest, asked_of, Allowance(10.0)) == (
        "BILL_TOO_COSTLY",
        "/site",
    )
