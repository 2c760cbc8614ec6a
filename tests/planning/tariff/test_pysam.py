"""Bills of random tariffs and loads against NREL-PySAM's (``make oracles`` compares thousands)."""

import json

import pytest

from tests.oracles.electricity_bills import CENT, SAMPLE, billed, furthest, random_load, random_rate

BILLS = json.loads(SAMPLE.read_text())["bills"]


@pytest.mark.parametrize("answer", BILLS, ids=lambda answer: answer["rate"]["name"])
def test_each_component_of_each_month_within_a_cent(answer):
    assert furthest(billed(answer["rate"], random_load(answer["load"])), answer["months"]) < CENT


def test_the_sample_has_every_kind_of_charge():
    """A comparison of nothing cannot fail: each component is charged in many of the sampled bills."""
    charged = {
        name: sum(any(one[name] for one in answer["months"]) for answer in BILLS)
        for name in BILLS[0]["months"][0]
    }
    assert len(BILLS) == 40
    assert min(charged.values()) >= 5
    assert sum("x_billing_demand" in answer["rate"] for answer in BILLS) >= 5
    units = {
        tier.get("unit")
        for answer in BILLS
        for ladder in answer["rate"]["energyratestructure"]
        for tier in ladder
    }
    assert {"kWh", "kWh/kW"} <= units


def test_the_sample_is_of_the_rates_that_the_oracle_draws():
    assert [answer["rate"] for answer in BILLS[:3]] == [random_rate(seed) for seed in range(3)]
