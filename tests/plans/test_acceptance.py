"""A plan as a user meets it over HTTP: answered at once, its rows and sensitivities checked by asking."""

from unittest.mock import patch

import pytest

from tests.plans.asking import TRAINING, with_members

ESTIMATES = {
    "memory": "memory",
    "throughput": "throughput",
    "cost": "cost",
    "utility_bill": "utility-bill",
}
TIMES = ("step_seconds", "tokens_per_second", "model_flops_utilization")
CHECKED = ("price", "deadline")
JUST = 1e-5
"""How far on either side of a factor the plan is asked again."""


def plan(client, **changes):
    """The plan of a question, which is small enough to be answered at once."""
    response = client.post("/v1/plans", with_members(TRAINING, changes))
    assert response.status_code == 200, response.text
    found = response.json()
    assert found["state"] == "done"
    assert found["progress"]["candidates_decided"] == found["answer"]["candidates"]["considered"]
    return response.headers["location"], found["answer"]


def choice(row):
    """What makes a row another choice."""
    names = ("supply", "accelerator_count", "parallelism", "micro_batch_size", "recomputation", "precision")
    return {name: row.get(name) for name in names}


def question_of(sensitivity, factor):
    """The question with the assumption of a sensitivity moved by ``factor``."""
    kind = sensitivity["assumption"]
    if kind == "deadline":
        return {"/constraints/duration_seconds": DEADLINE * factor}
    if kind == "budget":
        return {"/constraints/budget": {"amount": f"{BUDGET * factor:.6f}", "currency_code": "USD"}}
    if kind == "work":
        return {"/workload/total_tokens": round(TRAINING["workload"]["total_tokens"] * factor)}
    moved = {"kind": kind, "factor": factor}
    return {"/assumptions": [moved | ({"of": sensitivity["of"]} if "of" in sensitivity else {})]}


DEADLINE = 60_000.0
BUDGET = 500.0
LIMITS = {
    "/constraints": {
        "duration_seconds": DEADLINE,
        "budget": {"amount": f"{BUDGET:.2f}", "currency_code": "USD"},
    }
}


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
class TestOverHttp:
    def test_every_figure_of_every_row_is_that_of_its_requests(self, client):
        location, answer = plan(client, **LIMITS)
        assert client.get(location).json()["answer"] == answer
        assert len(answer["rows"]) > 2
        for row in answer["rows"]:
            found = {}
            for name, request in row["requests"].items():
                response = client.post(f"/v1/estimates/{ESTIMATES[name]}", request)
                assert response.status_code == 200, response.text
                found[name] = response.json()
            assert found["memory"]["fits"]
            energy, carbon = (found["utility_bill"][name] for name in ("energy", "carbon"))
            same = {
                "total_bytes": found["memory"]["per_device"]["total_bytes"],
                **{name: found["throughput"][name] for name in TIMES},
                "duration_seconds": found["cost"]["duration_seconds"],
                "device_hours": found["cost"]["device_hours"],
                "facility_kwh": energy["facility_kwh"],
                "peak_kw": energy["peak_kw"],
                "location_based_kg_co2e": carbon["location_based_kg_co2e"],
            }
            for name, quantity in same.items():
                for end in ("low", "value", "high"):
                    assert row[name][end] == pytest.approx(quantity[end], rel=1e-9), name
            assert row["cost"] == found["cost"]["total"]

    def test_a_sensitivity_is_where_the_choice_changes(self, client):
        _, answer = plan(client, **LIMITS)
        switching = [each for each in answer["sensitivities"] if "factor" in each]
        assert {each["assumption"] for each in switching} >= {"time", "work", *CHECKED}
        for name in CHECKED:
            each = next(each for each in switching if each["assumption"] == name)
            # Away from 1 the factor is passed, towards 1 it is not reached.
            outwards = 1 if each["factor"] > 1.0 else -1
            short, beyond = (
                {**LIMITS, **question_of(each, each["factor"] * (1.0 + side * outwards * JUST))}
                for side in (-1, 1)
            )
            # What the choice hangs on takes most of the time of a plan, and is not read again.
            with patch("service.plans.answer.list_sensitivities", return_value=[]):
                before, behind = (plan(client, **changes)[1]["rows"] for changes in (short, beyond))
            assert choice(before[0]) == choice(answer["rows"][0]), each["assumption"]
            if "becomes" in each:
                assert choice(behind[0]) == choice(each["becomes"]), each["assumption"]
            else:
                assert not behind, each["assumption"]
