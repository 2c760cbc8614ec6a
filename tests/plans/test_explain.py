"""What separates two rows: parts that add up to the headline, and whether the difference is within doubt."""

import json
import math
from functools import cache

import pytest

from service.plans.explain import build_separation, is_within, select_headline, split_headline
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)
from tests.asking import ask, shipped, usd

WORK = {
    "kind": "training",
    "sequence_length": 4096,
    "global_batch_size": 256,
    "micro_batch_size": 1,
    "total_tokens": 20_000_000_000,
    "precision": "bf16",
}
LAYOUT = {"tensor": 4, "pipeline": 1, "data": 16, "sharding": "zero_1"}
SITE = {
    "pue": 1.2,
    "electricity": {"price_per_kwh": usd("0.11")},
    "carbon_intensity_kg_co2e_per_kwh": 0.4,
}
FAULTS = {"checkpointing": {"storage_bandwidth_bytes_per_second": 5e9}, "reliability": {}}


@cache
def row(accelerator="h100-sxm", price="2.50", kind="rented", *, faults=False, **parallelism):
    """A row as a plan answers it, from the estimates that its requests ask."""
    work = WORK | (FAULTS if faults else {})
    base = {
        "model": {"source": "catalog", "id": "llama-3.1-8b"},
        "cluster": {"accelerator": {"source": "catalog", "id": accelerator}, "accelerator_count": 64},
        "workload": work,
        "parallelism": LAYOUT | parallelism,
    }
    if kind == "owned":
        bought = {
            "price_per_device": usd("30000"),
            "ownership": {"years": 5.0, "utilization": 0.7},
        }
        paid = base | {"purchase": bought}
    else:
        paid = base | {"rental": {"price_per_device_hour": usd(price)}}
    cost, bill = ask(shipped(), "cost", paid), ask(shipped(), "utility-bill", paid | {"site": SITE})
    speed = ask(shipped(), "throughput", base)
    total = cost["total"]
    if kind == "owned":
        electricity = bill["electricity"]["total"]
        total = {
            **total,
            **{end: str(float(total[end]) + float(electricity[end])) for end in ("amount", "low", "high")},
        }
    return {
        "rank": 1,
        "supply": {"name": f"{kind} {accelerator} {price}", "kind": kind},
        "accelerator_id": accelerator,
        "accelerator_count": 64,
        "parallelism": speed["parallelism"],
        "micro_batch_size": work["micro_batch_size"],
        "total_bytes": ask(shipped(), "memory", base)["per_device"]["total_bytes"],
        "step_seconds": speed["step_seconds"],
        "duration_seconds": cost["duration_seconds"],
        "cost": total,
        "facility_kwh": bill["energy"]["facility_kwh"],
        "location_based_kg_co2e": bill["carbon"]["location_based_kg_co2e"],
        "requests": {
            "memory": MemoryEstimateRequest.model_validate_json(json.dumps(base)),
            "throughput": ThroughputEstimateRequest.model_validate_json(json.dumps(base)),
            "cost": CostEstimateRequest.model_validate_json(json.dumps(paid)),
            "utility_bill": UtilityBillRequest.model_validate_json(json.dumps(paid | {"site": SITE})),
        },
    }


class TestParts:
    """Each headline is the sum of its parts."""

    @pytest.mark.parametrize("faults", [False, True])
    @pytest.mark.parametrize("name", ["duration_seconds", "cost", "location_based_kg_co2e"])
    @pytest.mark.parametrize("kind", ["rented", "owned"])
    def test_they_add_up(self, kind, name, faults):
        one = row(kind=kind, faults=faults, pipeline=2, data=8)
        parts = split_headline(name, one, shipped())
        value = float(one[name]["amount"]) if name == "cost" else one[name]["value"]
        assert math.fsum(parts.values()) == pytest.approx(value, rel=1e-9)
        assert len(parts) > 1 or kind == "rented"

    def test_phases_of_the_run_are_those_of_its_steps(self):
        one = row(pipeline=2, data=8)
        answer = ask(shipped(), "throughput", one["requests"]["throughput"].model_dump(mode="json"))
        steps = 20_000_000_000 / (256 * 4096)
        parts = split_headline("duration_seconds", one, shipped())
        assert parts == pytest.approx(
            {p["phase"]: p["seconds"]["value"] * steps for p in answer["breakdown"]}
        )

    def test_interruptions_are_what_the_run_takes_beyond_its_steps(self):
        quiet, troubled = (
            split_headline("duration_seconds", row(faults=faults), shipped()) for faults in (0, 1)
        )
        assert "interruptions" not in quiet
        lost = troubled.pop("interruptions")
        assert 0.0 < lost < 0.1 * math.fsum(troubled.values())
        assert troubled == pytest.approx(quiet)

    def test_electricity_of_own_devices_is_that_of_the_bill(self):
        one = row(kind="owned")
        bill = ask(shipped(), "utility-bill", one["requests"]["utility_bill"].model_dump(mode="json"))
        paid = float(bill["electricity"]["total"]["amount"])
        assert split_headline("cost", one, shipped())["electricity"] == pytest.approx(paid, rel=1e-9)

    def test_a_count_has_none(self):
        assert split_headline("accelerator_count", row(), shipped()) == {}


class TestSeparation:
    """What a reader learns of two rows."""

    def test_choices_that_differ_are_named_and_no_others(self):
        found = build_separation("fastest", row(), row(tensor=2, data=32), shipped())
        assert {each["name"]: (each["first"], each["second"]) for each in found["settings"]} == {
            "tensor": (4, 2),
            "data": (16, 32),
        }

    def test_a_cheaper_price_is_all_that_differs(self):
        found = build_separation("cheapest", row(price="2.00"), row(price="2.50"), shipped())
        assert [each["name"] for each in found["settings"]] == ["supply"]
        assert [each["name"] for each in found["figures"]] == ["cost"]
        assert found["figures"][0]["unit"] == "USD"
        assert found["figures"][0]["first"] == pytest.approx(0.8 * found["figures"][0]["second"], abs=0.01)
        assert not found["within_interval"]

    def test_the_headline_of_the_goal_is_first_and_its_parts_explain_it(self):
        first, second = row(tensor=2, data=32), row(tensor=8, data=8)
        found = build_separation("fastest", first, second, shipped())
        headline = found["figures"][0]
        assert headline["name"] == "duration_seconds"
        explained = [each.get("second", 0.0) - each.get("first", 0.0) for each in found["parts"]]
        assert math.fsum(explained) == pytest.approx(headline["second"] - headline["first"], rel=1e-6)
        assert [abs(each) for each in explained] == sorted(map(abs, explained), reverse=True)
        assert found["parts"][0]["name"] == "tensor_communication"

    @pytest.mark.parametrize(
        ("goal", "name"),
        [
            ("cheapest", "cost"),
            ("pareto", "cost"),
            ("fastest", "duration_seconds"),
            ("cleanest", "location_based_kg_co2e"),
            ("fewest_devices", "accelerator_count"),
        ],
    )
    def test_each_goal_has_its_headline(self, goal, name):
        assert select_headline(goal, row()) == name


class TestDoubt:
    """Whether the first is better by less than what the estimates leave in doubt."""

    def test_the_same_run_at_another_price_is_in_no_doubt(self):
        assert not is_within("cost", row(price="2.49"), row(price="2.50"), shipped())

    def test_own_devices_in_the_same_room_share_what_power_leaves_in_doubt(self):
        """The time of layouts is in doubt by 18%; the draw of the devices is wrong alike."""
        one = row(kind="owned")
        assert is_within("cost", one, row(kind="owned", tensor=2, data=32), shipped())

    def test_layouts_on_the_same_device_are_told_apart_where_devices_are_not(self):
        """A quarter as long again: beyond the 80% end of two layouts, within that of two devices."""
        first, second = row(), row(tensor=2, data=32)
        apart = _lasting(second, 1.25 * first["duration_seconds"]["value"])
        assert not is_within("duration_seconds", first, apart, shipped())
        elsewhere = _lasting(row(accelerator="h200-sxm"), 1.25 * first["duration_seconds"]["value"])
        assert is_within("duration_seconds", first, elsewhere, shipped())

    def test_a_tie_is_no_difference(self):
        assert is_within("accelerator_count", row(), row(tensor=2, data=32), shipped())

    def test_fewer_devices_are_fewer_without_doubt(self):
        assert not is_within("accelerator_count", row(), row() | {"accelerator_count": 128}, shipped())


def _lasting(one, seconds):
    """The row at another middle, its interval as wide."""
    factor = seconds / one["duration_seconds"]["value"]
    moved = {end: one["duration_seconds"][end] * factor for end in ("value", "low", "high")}
    return one | {"duration_seconds": one["duration_seconds"] | moved}
