"""What the choice of a plan hangs on: factors tried by searching and ranking anew just below and above."""

import json
import math
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache

import pytest

from service.app.examples import EXAMPLES
from service.plans.answer import build_row
from service.plans.ranking import rank_candidates
from service.plans.search import merge_outcomes, search_space, split_search
from service.plans.sensitivity import listing
from service.plans.service import estimate_plan, prepare_plan
from service.plans.space import REACH
from service.plans.supplies import build_space
from service.schemas.plans import PlanRequest
from tests.asking import shipped, usd

BESIDE = 1e-5
"""How far from a factor the plan is asked anew."""


def cluster(accelerator, count=16):
    return {"accelerator": {"source": "catalog", "id": accelerator}, "accelerator_count": count}


SITE = {
    "pue": 1.3,
    "electricity": {"price_per_kwh": usd("0.15")},
    "carbon_intensity_kg_co2e_per_kwh": 0.4,
}
OWN = {
    "name": "own a100",
    "cluster": cluster("a100-sxm-80gb"),
    "site": SITE,
    "purchase": {
        "price_per_device": usd("12000"),
        "ownership": {"years": 4.0, "utilization": 0.7},
    },
}
RENTED = [
    {
        "name": "h100 on demand",
        "cluster": cluster("h100-sxm"),
        "rental": {"price_per_device_hour": usd("2.2"), "billing": {"increment_seconds": 3600.0}},
        "region": "north",
    },
    {
        "name": "h100 spot",
        "cluster": cluster("h100-sxm"),
        "rental": {
            "price_per_device_hour": usd("1.9"),
            "spot": {"interruptions_per_hour": 0.05, "restart_seconds": 900.0},
        },
        "region": "north",
    },
    {"name": "h200", "cluster": cluster("h200-sxm"), "rental": {"price_per_device_hour": usd("2.6")}},
]
QUESTION = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 4096,
        "global_batch_size": 128,
        "total_tokens": 5_000_000_000,
        "precision": "bf16",
        "checkpointing": {"storage_bandwidth_bytes_per_second": 2e10},
        "reliability": {},
    },
    "goal": "cheapest",
    "search": {
        "offers": False,
        "accelerator_counts": [8, 16],
        "depth": 2,
        "rows": 4,
        "rows_per_supply": 1,
        "training": {
            "tensor": [1, 2],
            "pipeline": [1],
            "shardings": ["zero_1", "zero_3"],
            "micro_batch_sizes": [1, 2],
            "recomputations": [{"strategy": "none"}],
        },
    },
    "owned": [OWN],
    "rented": RENTED,
    "sites": [{"regions": ["north"], "site": {"pue": 1.1, "carbon_intensity_kg_co2e_per_kwh": 0.1}}],
    "site": {"pue": 1.2, "carbon_intensity_kg_co2e_per_kwh": 0.3},
}
PLANS = {
    "cheapest in time": {"constraints": {"duration_seconds": 150_000.0, "budget": usd("400")}},
    "fastest for the money": {"goal": "fastest", "constraints": {"budget": usd("300")}},
    "cleanest": {"goal": "cleanest", "constraints": {"finish_by": "2026-12-03T00:00:00Z"}}
    | {"starts_at": "2026-12-01T00:00:00Z"},
    "fewest devices": {"goal": "fewest_devices", "constraints": {"duration_seconds": 100_000.0}},
    "pareto": {"goal": "pareto"},
    "nothing is cheap enough": {"constraints": {"budget": usd("150")}},
}


@cache
def plan(name):
    return estimate_plan(read(QUESTION | PLANS[name]), shipped())


def read(question):
    return PlanRequest.model_validate_json(json.dumps(question))


def first_of(question):
    """The first row of the whole plan, searched anew; None where nothing is left."""
    space = build_space(read(question), shipped())
    outcome = merge_outcomes(
        [search_space(space, piece) for piece in split_search(space)], space.question.search.depth
    )
    rows = rank_candidates(space, outcome).rows
    return build_row(space, rows[0].candidate, 1) if rows else None


def switching(name):
    """Sensitivities that change the first row, the smallest movements first."""
    return [each for each in plan(name)["sensitivities"] if "factor" in each]


def moved(question, found, factor):
    """The question with an assumption at a factor, as a user would ask it."""
    kind, constraints = found["assumption"], question.get("constraints", {})
    if kind == "budget":
        amount = Decimal(constraints["budget"]["amount"]) * Decimal(factor)
        return question | {"constraints": constraints | {"budget": usd(f"{amount:.9f}")}}
    if kind == "deadline" and "duration_seconds" in constraints:
        limit = {"duration_seconds": constraints["duration_seconds"] * factor}
        return question | {"constraints": constraints | limit}
    if kind == "deadline":
        start, end = (
            datetime.fromisoformat(t)
            for t in (
                question.get("starts_at") or question["window"]["earliest_start_at"],
                constraints["finish_by"],
            )
        )
        end = start + timedelta(seconds=(end - start).total_seconds() * factor)
        return question | {"constraints": constraints | {"finish_by": end.isoformat()}}
    if kind == "work":
        work = question["workload"]
        return question | {"workload": work | {"total_tokens": round(work["total_tokens"] * factor)}}
    assumption = {"kind": kind, "factor": factor}
    if "of" in found:
        assumption["of"] = found["of"]
    return question | {"assumptions": [assumption]}


def choice(row):
    """What tells rows apart; a start follows."""
    if row is None:
        return None
    names = ("accelerator_count", "micro_batch_size", "gradient_accumulation_steps", "recomputation")
    layout = {name: value for name, value in row["parallelism"].items() if name != "chosen"}
    return row["supply"]["name"], *(row[name] for name in names), json.dumps(layout, default=str)


def first(name):
    return choice(next(iter(plan(name)["rows"]), None))


class TestAskedAnew:
    """By the plan of a question in which an assumption is moved."""

    @pytest.mark.parametrize("name", PLANS)
    def test_just_before_a_factor_the_choice_holds_and_just_behind_it_is_another(self, name):
        """Of one plan an assumption of each kind, of the others the first."""
        question, every = QUESTION | PLANS[name], switching(name)
        assert len(every) >= 2
        first_of_kind = {each["assumption"]: each for each in reversed(every)}
        found = first_of_kind.values() if name == "cheapest in time" else every[:1]
        for each in found:
            away = math.copysign(BESIDE, math.log(each["factor"]))
            before = first_of(moved(question, each, each["factor"] * math.exp(-away)))
            assert choice(before) == first(name), each
            behind = first_of(moved(question, each, each["factor"] * math.exp(away)))
            assert choice(behind) == choice(each.get("becomes")), each
            if behind is not None:
                assert middles(behind) == pytest.approx(middles(each["becomes"]), rel=1e-4)

    @pytest.mark.parametrize("name", ["cheapest in time", "cleanest"])
    def test_what_changes_nothing_changes_nothing_at_the_ends(self, name):
        still = [each for each in plan(name)["sensitivities"] if "factor" not in each]
        assert still
        for each in still[:2]:
            assert (each["searched_low"], each["searched_high"]) == (1 / REACH, REACH)
            for factor in (1 / REACH, REACH):
                assert choice(first_of(moved(QUESTION | PLANS[name], each, factor))) == first(name), each

    def test_no_nearer_factor_changes_it(self):
        for each in switching("cheapest in time")[:4]:
            halfway = moved(QUESTION | PLANS["cheapest in time"], each, math.sqrt(each["factor"]))
            assert choice(first_of(halfway)) == first("cheapest in time"), each


def middles(row):
    return [float(row["cost"]["amount"]), row["duration_seconds"]["value"]]


class TestList:
    """What is told, and in which order."""

    def test_the_smallest_movement_comes_first_and_what_moves_nothing_last(self):
        found = [each.get("factor") for each in plan("cheapest in time")["sensitivities"]]
        known = [abs(math.log(factor)) for factor in found if factor is not None]
        assert known == sorted(known)
        assert found[len(known) :] == [None] * (len(found) - len(known))

    def test_every_assumption_that_the_question_has_is_there(self):
        kinds = {each["assumption"] for each in plan("cheapest in time")["sensitivities"]}
        assert kinds == {
            "price",
            "time",
            "electricity_price",
            "interruption_rate",
            "budget",
            "deadline",
            "work",
        }
        kinds = {each["assumption"] for each in plan("cleanest")["sensitivities"]}
        assert "carbon_intensity" in kinds
        assert "budget" not in kinds

    def test_factors_lie_between_the_ends_of_what_was_searched(self):
        for each in plan("cheapest in time")["sensitivities"]:
            if "factor" in each:
                assert each["searched_low"] <= each["factor"] <= each["searched_high"]
                assert 1.0 in (each["searched_low"], each["searched_high"])

    def test_a_shorter_time_than_that_of_the_first_rules_it_out(self):
        answer = plan("cheapest in time")
        tighter = next(
            each
            for each in answer["sensitivities"]
            if each["assumption"] == "deadline" and each["searched_high"] == 1.0
        )
        lasting = answer["rows"][0]["duration_seconds"]["value"]
        assert tighter["factor"] == pytest.approx(lasting / 150_000.0, rel=2e-6)

    def test_what_is_needed_for_any_row(self):
        """150 USD pay for nothing: the least budget that does is the cost of the cheapest."""
        answer = plan("nothing is cheap enough")
        assert answer["rows"] == []
        assert "separation" not in answer
        budget = next(each for each in answer["sensitivities"] if each["assumption"] == "budget")
        cheapest = first_of(QUESTION)
        assert choice(budget["becomes"]) == choice(cheapest)
        assert budget["factor"] == pytest.approx(float(cheapest["cost"]["amount"]) / 150.0, rel=2e-6)

    def test_it_is_moved_no_further_than_an_estimate_can_be_asked(self):
        question = QUESTION | {"assumptions": [{"kind": "time", "factor": 500.0}]}
        answer = estimate_plan(read(question), shipped())
        highest = {each["searched_high"] for each in answer["sensitivities"] if each["assumption"] == "time"}
        assert highest <= {1.0, 2.0}

    def test_too_many_bills_under_a_tariff_are_a_gap(self, monkeypatch):
        site = EXAMPLES["estimate_utility_bill_shift"]["site"]
        window = {
            "earliest_start_at": "2026-11-20T00:00:00Z",
            "latest_start_at": "2026-11-20T12:00:00Z",
            "step_minutes": 720,
        }
        question = QUESTION | {"owned": [OWN | {"site": site}], "rented": [], "window": window}
        assert prepare_plan(read(question), shipped()).answer is None, "the caller waits for the bills"
        monkeypatch.setattr(listing, "_MOST_BILLS", 1)
        answer = estimate_plan(read(question), shipped())
        assert [gap["code"] for gap in answer["gaps"] if gap["pointer"] == "/sensitivities"] == [
            "TOO_MANY_BILLS"
        ]
        kinds = {each["assumption"] for each in answer["sensitivities"]}
        assert kinds == {"price"}

    def test_what_has_no_answer_when_it_is_moved_is_a_gap(self):
        """A run of 12 years where the PUE goes by the month: 48 are more than a load profile holds."""
        site = {"pue_by_month": [1.2, *[1.3] * 11], "electricity": {"price_per_kwh": usd("0.1")}}
        work = QUESTION["workload"] | {"total_tokens": 16_000_000_000_000}
        question = QUESTION | {"owned": [OWN | {"site": site}], "rented": [], "workload": work}
        answer = estimate_plan(read(question | {"starts_at": "2026-12-01T00:00:00Z"}), shipped())
        years = answer["rows"][0]["duration_seconds"]["value"] / (365.25 * 86400)
        assert 10.0 < years < 40.0
        found = [gap["code"] for gap in answer["gaps"] if gap["pointer"] == "/sensitivities"]
        assert set(found) == {"RUN_TOO_LONG"}
        assert "price" in {each["assumption"] for each in answer["sensitivities"]}
