"""The worked numbers of docs/methods/cost.md that no other test has."""

import pytest

from service.app.examples import EXAMPLES, REFERENCE_QUESTION
from tests.asking import ask, question, usd


def amounts(charged):
    return [line["amount"]["amount"] for line in charged["lines"]]


def test_the_reference_question(snapshot):
    answer = ask(snapshot, "cost", REFERENCE_QUESTION)
    assert answer["total"]["amount"] == "1415571.28"
    assert answer["cost_per_million_tokens"]["amount"] == "0.707786"
    assert answer["purchase"]["total"]["amount"] == "30000000.00"


def test_the_cluster_that_is_owned(snapshot):
    answer = ask(snapshot, "cost", EXAMPLES["estimate_cost_batch"]["requests"][1])
    assert amounts(answer) == ["1415571.28", "428.72", "118.85"]
    assert answer["rent"]["total"]["amount"] == "1416000.00"
    assert amounts(answer["purchase"]) == ["30000000.00", "6250000.00", "3000000.00"]
    owned = answer["ownership"]
    assert amounts(owned["yearly"]) == ["8831250.00", "1598744.47", "1962500.00", "500000.00"]
    assert owned["yearly"]["total"]["amount"] == "12892494.47"
    assert owned["price_per_device_hour"]["amount"] == "2.101055"
    assert owned["total"]["amount"] == "991397.76"
    rows = [
        (round(row["runs"]["value"], 2), round(row["months"]["value"], 2)) for row in answer["break_even"]
    ]
    assert rows == [(27.72, 17.9), (27.72, 25.58), (32.0, 29.53), (34.63, 31.95)]


def test_a_request_at_assumed_shares(snapshot):
    asked = {
        **question("llama-3.1-8b", "h100-sxm"),
        "workload": {
            "kind": "inference",
            "input_tokens": 1024,
            "output_tokens": 256,
            "concurrency": 32,
            "horizon": {"duration_seconds": 86_400.0},
        },
        "efficiency": {"source": "assumed", "utilization": 0.5, "bandwidth_utilization": 0.8},
        "rental": {"price_per_device_hour": usd("3")},
    }
    answer = ask(snapshot, "cost", asked)
    expected = {"request": 7.3717e-5, "million_input_tokens": 0.023977, "million_output_tokens": 0.192049}
    for name, amount in expected.items():
        assert float(answer[f"cost_per_{name}"]["amount"]) == pytest.approx(amount, rel=1e-4)
    assert answer["total"]["amount"] == "72.00"
