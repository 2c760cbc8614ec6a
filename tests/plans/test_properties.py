"""Properties of whole plans: candidates are conserved, freedom never hurts, and rows are their estimates."""

import json
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.asking import ask, shipped, usd
from tests.plans.asking import SERVING, TRAINING, planned

FIGURES = {
    "cost": lambda row: float(row["cost"]["amount"]),
    "time": lambda row: (row.get("request_seconds") or row["duration_seconds"])["value"],
    "emissions": lambda row: row["location_based_kg_co2e"]["value"],
    "devices": lambda row: row["accelerator_count"],
}
GOALS = {"cheapest": "cost", "fastest": "time", "cleanest": "emissions", "fewest_devices": "devices"}
QUESTIONS = {"training": TRAINING, "serving": SERVING}
SAME = {
    "memory": {"total_bytes": lambda found: found["per_device"]["total_bytes"]},
    "throughput": {
        name: lambda found, name=name: found[name]
        for name in (
            "step_seconds",
            "tokens_per_second",
            "model_flops_utilization",
            "time_to_first_token_seconds",
            "time_per_output_token_seconds",
            "request_seconds",
        )
    },
    "utility_bill": {
        "facility_kwh": lambda found: found["energy"]["facility_kwh"],
        "peak_kw": lambda found: found["energy"]["peak_kw"],
        "location_based_kg_co2e": lambda found: found["carbon"]["location_based_kg_co2e"],
    },
}


def best(answer, goal):
    """The goal's figure of the first row; infinite without one."""
    rows = answer["rows"]
    return FIGURES[GOALS[goal]](rows[0]) if rows else float("inf")


def asked_again(row):
    """What the estimates answer to the requests of a row."""
    return {
        name: ask(shipped(), name.replace("_", "-"), question) for name, question in row["requests"].items()
    }


@pytest.fixture(params=QUESTIONS, scope="module")
def question(request):
    return QUESTIONS[request.param]


@pytest.mark.parametrize("goal", [*GOALS, "pareto"])
def test_no_candidate_is_lost(question, goal):
    found = planned(question, goal=goal)["candidates"]
    gone = sum(each["candidates"] for each in (*found["ruled_out"], *found["pruned"]))
    assert found["considered"] == gone + found["feasible"]
    assert found["feasible"] <= found["scored"] <= found["considered"]
    refused = sum(each["candidates"] for each in found["priced_ruled_out"])
    assert found["priced"] == found["priced_feasible"] + refused


@pytest.mark.parametrize("goal", GOALS)
def test_rows_are_ordered_by_the_goal(question, goal):
    rows = planned(question, goal=goal)["rows"]
    assert [row["rank"] for row in rows] == sorted(row["rank"] for row in rows)
    assert rows[0]["rank"] == 1
    assert all(
        FIGURES[GOALS[goal]](one) <= FIGURES[GOALS[goal]](other) * (1 + 1e-12)
        for one, other in pairwise(rows)
    )


def test_none_of_a_pareto_set_betters_another(question):
    rows = planned(question, goal="pareto")["rows"]
    points = [tuple(FIGURES[name](row) for name in ("cost", "time", "emissions")) for row in rows]
    assert [point[0] for point in points] == sorted(point[0] for point in points)
    for point in points:
        for other in points:
            assert not (all(a <= b for a, b in zip(other, point, strict=True)) and other != point)


def test_the_best_by_each_goal_are_in_the_pareto_set(question):
    rows = planned(question, goal="pareto")["rows"]
    for goal, name in GOALS.items():
        if goal != "fewest_devices":
            least = min(FIGURES[name](row) for row in rows)
            assert least == pytest.approx(best(planned(question, goal=goal), goal), rel=1e-12)


@pytest.mark.parametrize("goal", [*GOALS, "pareto"])
def test_every_row_is_what_its_requests_answer(question, goal):
    for row in planned(question, goal=goal)["rows"]:
        again = asked_again(row)
        for operation, figures in SAME.items():
            for name, of in figures.items():
                if name in row and operation in again:
                    expected = of(again[operation])
                    for end in ("low", "value", "high"):
                        assert row[name][end] == pytest.approx(expected[end], rel=1e-9), name
        assert row["cost"]["amount"] == again["cost"]["total"]["amount"]
        assert again["memory"]["fits"]


@settings(max_examples=2, phases=[Phase.generate])
@given(st.floats(0.2, 3.0), st.floats(1.0, 3.0), st.sampled_from(["fastest", "cleanest"]))
def test_more_money_never_makes_it_worse(share, more, goal):
    cheapest = best(planned(TRAINING), "cheapest")
    less, much = (
        planned(TRAINING, goal=goal, constraints={"budget": usd(f"{cheapest * factor:.2f}")})
        for factor in (share, share * more)
    )
    assert best(much, goal) <= best(less, goal) * (1 + 1e-12)
    for row in (*less["rows"], *much["rows"]):
        assert Decimal(row["cost"]["amount"]) <= Decimal(f"{cheapest * share * more:.2f}")


@settings(max_examples=2, phases=[Phase.generate])
@given(st.floats(0.5, 3.0), st.floats(1.0, 3.0))
def test_more_time_never_costs_more(share, more):
    fastest = best(planned(TRAINING, goal="fastest"), "fastest")
    short, long = (
        planned(TRAINING, constraints={"duration_seconds": fastest * factor})
        for factor in (share, share * more)
    )
    assert best(long, "cheapest") <= best(short, "cheapest") * (1 + 1e-12)
    assert all(row["duration_seconds"]["value"] <= fastest * share for row in short["rows"])


@pytest.mark.parametrize(
    ("goal", "less", "more"),
    [
        ("cheapest", {"constraints": {"providers": ["one"]}}, {"constraints": {"providers": ["one", "two"]}}),
        (
            "fastest",
            {"constraints": {"regions": ["south"]}},
            {"constraints": {"regions": ["north", "south"]}},
        ),
        ("fastest", {"constraints": {"accelerator_count": 8}}, {"constraints": {"accelerator_count": 16}}),
        ("fastest", {"constraints": {"facility_kw": 15.0}}, {"constraints": {"facility_kw": 30.0}}),
        ("cheapest", {"constraints": {"facility_kw": 15.0}}, {"constraints": {"facility_kw": 30.0}}),
        ("fastest", {"constraints": {"location_based_kg_co2e": 500.0}}, {}),
    ],
    ids=["providers", "regions", "devices", "power", "power and cost", "carbon"],
)
def test_more_freedom_never_makes_it_worse(question, goal, less, more):
    bound, free = (planned(question, goal=goal, **changes) for changes in (less, more))
    assert free["rows"]
    assert best(free, goal) <= best(bound, goal) * (1 + 1e-12)


def test_what_is_told_apart_does_not_move_the_first_row(question):
    first = planned(question, goal="cleanest")["rows"][0]
    for depth in (1, 40):
        other = planned(question, goal="cleanest", **{"/search/depth": depth})["rows"][0]
        assert other["supply"] == first["supply"]
        assert FIGURES["emissions"](other) == FIGURES["emissions"](first)


def test_a_supply_that_nobody_would_take_changes_no_row(question):
    dear = {**question["rented"][0], "name": "for nobody", "rental": {"price_per_device_hour": usd("300")}}
    rows = planned(question, rented=[*question["rented"], dear])["rows"]
    assert [row for row in rows if row["supply"]["name"] != "for nobody"][:3] == planned(question)["rows"][:3]


def test_the_same_question_has_the_same_answer(question):
    """Members in another order, supplies that are named again."""
    turned = json.loads(json.dumps(question, sort_keys=True))
    one, other = planned(question), planned(turned)
    assert {name: one[name] for name in one if name != "evidence"} == {
        name: other[name] for name in other if name != "evidence"
    }


OFFERED = {
    "model": {"source": "catalog", "id": "qwen2.5-0.5b"},
    "workload": TRAINING["workload"],
    "goal": "fastest",
    "search": {
        "accelerators": ["h100-sxm", "gh200-96gb"],
        "accelerator_counts": [1, 8],
        "training": TRAINING["search"]["training"],
        "rows": 50,
    },
}


def test_no_layer_is_cut_over_instances_that_are_joined_by_a_network():
    """Devices of one instance share a fast link; those of several meet over a network, if one is known."""
    offers = shipped().offers
    sizes = {name: offer.accelerator_count for name, offer in offers.items()}
    rows = planned(OFFERED)["rows"]
    assert rows
    for row in rows:
        instance = sizes[row["supply"]["name"]]
        cluster = row["requests"]["throughput"]["cluster"]
        assert cluster.get("accelerators_per_node", 8) <= instance
        assert row["parallelism"]["tensor"] <= instance
