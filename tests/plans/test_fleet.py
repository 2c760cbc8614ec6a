"""Several workloads over pools and a budget, as a caller sees them."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from service.planning.errors import PlanningError
from service.plans import fleet_options
from service.plans.fleet import estimate_fleet
from service.schemas.fleet_plans import FleetPlanRequest
from tests.asking import ask, gaps, shipped, usd

FEW_LAYOUTS = {
    "tensor": [1, 2],
    "pipeline": [1],
    "shardings": ["zero_3"],
    "micro_batch_sizes": [1],
    "recomputations": [{"strategy": "full"}],
}
HALL = {
    "name": "hall",
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
    "site": {"pue": 1.2, "electricity": {"price_per_kwh": usd("0.12")}},
    "purchase": {"price_per_device": usd("30000"), "ownership": {"years": 5.0}},
}
CLOUD = {
    "name": "cloud",
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
    "rental": {"price_per_device_hour": usd("2.50")},
}
SERVICE = {
    "name": "chat",
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "inference",
        "input_tokens": 1000,
        "output_tokens": 300,
        "request_rate_per_second": 2.0,
        "service_levels": {"time_to_first_token_seconds": 1.0, "time_per_output_token_seconds": 0.03},
    },
    "serving": {"tensor": [1, 2]},
}


def run(name, tokens=2_000_000_000, **members):
    workload = {"kind": "training", "global_batch_size": 128, "total_tokens": tokens, "sequence_length": 4096}
    model = {"source": "catalog", "id": "llama-3.1-8b"}
    return {"name": name, "model": model, "workload": workload, "training": FEW_LAYOUTS, **members}


def fleet(*workloads, **members):
    return {
        "workloads": list(workloads),
        "owned": [HALL],
        "starts_at": "2026-12-30T00:00:00Z",
        "ends_at": "2027-01-08T00:00:00Z",
        **members,
    }


def plan(question):
    asked = FleetPlanRequest.model_validate_json(json.dumps(question))
    return dict(estimate_fleet(asked, shipped()))


def refused(question):
    with pytest.raises(PlanningError) as caught:
        plan(question)
    return caught.value.code, caught.value.pointer


def time(text):
    return datetime.fromisoformat(text)


def by_name(answer):
    return {each["workload"]: each for each in answer["assignments"]}


def reasons(answer):
    return {each["workload"]: each["reason"] for each in answer["unplaced"]}


def remedy(answer, change):
    return next(each for each in answer["unplaced"][0]["remedies"] if each["change"] == change)


def test_who_runs_where_and_when_has_the_figures_of_the_estimates():
    question = fleet(run("a"), run("b"), SERVICE, rented=[CLOUD], budget=usd("100000"))
    answer = plan(question)
    assert answer == plan(question)
    assert answer["is_optimal"]
    assert answer["unplaced"] == []
    total = Decimal(0)
    for each in answer["assignments"]:
        row = each["row"]
        asked = json.loads(json.dumps(row["requests"], default=lambda model: model.model_dump(mode="json")))
        assert ask(shipped(), "memory", asked["memory"])["fits"]
        duration = row["duration_seconds"]["value"]
        if each["workload"] != "chat":
            assert ask(shipped(), "throughput", asked["throughput"])["duration_seconds"]["value"] == duration
        paid = [ask(shipped(), "cost", asked["cost"])["total"]["amount"]]
        if each["pool"] == "hall":
            billed = ask(shipped(), "utility-bill", asked["utility_bill"])
            paid.append(billed["electricity"]["total"]["amount"])
        assert sum(map(Decimal, paid)) == Decimal(row["cost"]["amount"])
        total += Decimal(row["cost"]["amount"])
        lasting = time(each["ends_at"]) - time(each["starts_at"])
        assert lasting - timedelta(seconds=1) < timedelta(seconds=duration) <= lasting
    assert Decimal(answer["cost"]["amount"]) == total


def test_a_service_holds_its_devices_from_its_start_to_its_end():
    window = {"earliest_start_at": "2026-12-31T00:00:00Z", "finish_by": "2027-01-02T12:00:00Z"}
    chat = by_name(plan(fleet({**SERVICE, **window})))["chat"]
    assert (chat["starts_at"], chat["ends_at"]) == tuple(window.values())
    assert chat["row"]["duration_seconds"]["value"] == 60 * 3600
    assert not chat["may_end_late"]


def test_a_workload_takes_whole_nodes_unless_they_are_shared():
    whole = by_name(plan(fleet(SERVICE)))["chat"]
    shared = by_name(plan(fleet(SERVICE, share_nodes=True)))["chat"]
    assert whole["row"]["accelerator_count"] == shared["row"]["accelerator_count"] < 8
    assert whole["devices_taken"] == 8
    assert shared["devices_taken"] == shared["row"]["accelerator_count"]


def test_runs_wait_for_devices_and_what_is_taken_stands_span_by_span():
    asked = [run(name, accelerator_counts=[16]) for name in "ab"]
    answer = plan(fleet(*asked))
    first, second = answer["assignments"]
    assert second["starts_at"] == first["ends_at"]
    (pool,) = answer["pools"]
    assert [span["workloads"] for span in pool["spans"]] == [["a"], ["b"]]
    taken = sum(
        span["devices_taken"] * (time(span["ends_at"]) - time(span["starts_at"])) / timedelta(hours=1)
        for span in pool["spans"]
    )
    assert pool["share_taken"] == pytest.approx(taken / (16 * 9 * 24))


def test_what_is_spent_by_month_adds_up_against_the_budget():
    answer = plan(fleet(run("a", 40_000_000_000), SERVICE, budget=usd("5000")))
    spends = [Decimal(month["spend"]["amount"]) for month in answer["months"]]
    assert [month["month"] for month in answer["months"]] == ["2026-12", "2027-01"]
    assert sum(spends) == Decimal(answer["cost"]["amount"])
    assert Decimal(answer["months"][-1]["budget_left"]["amount"]) == 5000 - sum(spends)
    chat = Decimal(by_name(answer)["chat"]["row"]["cost"]["amount"])
    alone = plan(fleet(SERVICE))["months"][0]["spend"]["amount"]
    assert Decimal(alone) == pytest.approx(chat * 2 / 9, abs=Decimal("0.01"))


def test_a_model_that_no_device_holds_names_what_rules_it_out():
    large = run("large", model={"source": "catalog", "id": "llama-3.1-405b"})
    answer = plan(fleet(large))
    assert reasons(answer) == {"large": "configuration"}
    (pool,) = answer["unplaced"][0]["pools"]
    assert [each["rule"] for each in pool["pruned"]] == ["state"]
    assert "could_end_at" not in pool


def test_more_devices_hold_what_a_pool_does_not():
    model = {"source": "catalog", "id": "llama-2-70b"}
    workload = {"kind": "training", "global_batch_size": 128, "total_tokens": 10_000_000}
    large = run("large", model=model, workload=workload, accelerator_counts=[8, 16, 32, 64])
    found = remedy(plan(fleet(large, owned=[with_devices(HALL, 8)])), "devices")
    assert found["added_devices"] % 8 == 0
    assert found["accelerator_count"] == 8 + found["added_devices"]
    more = with_devices(HALL, 8 + found["added_devices"])
    less = with_devices(HALL, found["added_devices"])
    assert plan(fleet(large, owned=[more]))["unplaced"] == []
    assert reasons(plan(fleet(large, owned=[less]))) == {"large": "configuration"}


def with_devices(pool, count):
    return {**pool, "cluster": {**pool["cluster"], "accelerator_count": count}}


def test_a_service_that_needs_more_devices_says_how_many():
    busy = {**SERVICE, "workload": {**SERVICE["workload"], "request_rate_per_second": 200.0}}
    (missing,) = plan(fleet(busy, owned=[with_devices(HALL, 1)]))["unplaced"]
    assert missing["reason"] == "configuration"
    (found,) = missing["remedies"]
    assert found["added_devices"] + 1 >= found["accelerator_count"] > 1
    placed = plan(fleet(busy, owned=[with_devices(HALL, 1 + found["added_devices"])]))
    assert by_name(placed)["chat"]["row"]["cost"]["amount"] == found["cost"]["amount"]


def test_a_pool_that_is_smaller_than_any_number_that_is_named_is_no_mistake():
    answer = plan(fleet(run("a", accelerator_counts=[32]), rented=[with_devices(CLOUD, 64)]))
    assert by_name(answer)["a"]["pool"] == "cloud"
    (missing,) = plan(fleet(run("a", accelerator_counts=[32])))["unplaced"]
    assert missing["pools"][0]["ruled_out"] == [{"constraint": "devices", "candidates": 1}]
    assert [each["added_devices"] for each in missing["remedies"]] == [16]


def test_remedies_that_are_too_many_to_look_at_are_a_gap(monkeypatch):
    asked = fleet(run("a", 100_000_000_000, finish_by="2027-01-02T00:00:00Z"))
    monkeypatch.setattr(fleet_options, "MOST_CANDIDATES", 700)
    answer = plan(asked)
    assert gaps(answer) == {"/unplaced/0/remedies": "SEARCH_TOO_LARGE"}
    assert [each["change"] for each in answer["unplaced"][0]["remedies"]] == ["deadline"]


def test_searches_beyond_the_limit_are_not_prepared(monkeypatch):
    """Preparing the searches of remedies took most of the time of a fleet in which nothing fits."""
    prepared, build_space = [], fleet_options.build_space
    late = {"finish_by": "2026-12-30T00:01:00Z"}
    workloads = [run(name, tokens, **late) for name, tokens in (("a", 10**12), ("b", 10**13), ("c", 10**14))]
    monkeypatch.setattr(fleet_options, "MOST_CANDIDATES", 4 * fleet_options.LEAST_CANDIDATES)
    monkeypatch.setattr(
        fleet_options, "build_space", lambda *given: prepared.append(given) or build_space(*given)
    )
    answer = plan(fleet(*workloads))
    assert [each["pointer"] for each in answer["gaps"]] == ["/unplaced/1/remedies", "/unplaced/2/remedies"]
    assert len(prepared) == 4


def test_a_later_deadline_lets_a_long_run_end_and_not_a_second_before():
    long = run("long", 100_000_000_000, finish_by="2027-01-02T00:00:00Z")
    answer = plan(fleet(long))
    assert reasons(answer) == {"long": "deadline"}
    found = remedy(answer, "deadline")
    (pool,) = answer["unplaced"][0]["pools"]
    assert pool["could_end_at"] == found["finish_by"]
    assert plan(fleet({**long, "finish_by": found["finish_by"]}))["unplaced"] == []
    before = f"{time(found['finish_by']) - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
    assert reasons(plan(fleet({**long, "finish_by": before}))) == {"long": "deadline"}


def test_a_fleet_begins_at_a_whole_second():
    answer = plan(fleet(run("a"), starts_at="2026-12-30T00:00:00.25Z"))
    assert answer["assignments"][0]["starts_at"] == "2026-12-30T00:00:01Z"


def test_what_others_have_is_made_up_for_by_devices_or_time():
    """Two runs on all devices, each of two thirds of the window: the second waits for the first."""
    both = [run(name, accelerator_counts=[16]) for name in "ab"]
    alone = by_name(plan(fleet(both[0])))["a"]
    half = (time(alone["ends_at"]) - time(alone["starts_at"])) * 1.5
    end = f"{time('2026-12-30T00:00:00Z') + half:%Y-%m-%dT%H:%M:%SZ}"
    answer = plan(fleet(*both, ends_at=end))
    assert list(reasons(answer).values()) == ["devices"]
    assert remedy(answer, "devices")["added_devices"] == 16
    assert plan(fleet(*both, ends_at=end, owned=[with_devices(HALL, 32)]))["unplaced"] == []
    late = remedy(answer, "deadline")["finish_by"]
    assert plan(fleet(*both, ends_at=late))["unplaced"] == []


def test_the_least_budget_pays_for_all_and_a_cent_less_does_not():
    asked = [run("first"), run("second", priority=2)]
    whole = plan(fleet(*asked))
    alone = Decimal(by_name(whole)["first"]["row"]["cost"]["amount"])
    answer = plan(fleet(*asked, budget=usd(str(alone))))
    assert list(by_name(answer)) == ["first"]
    assert reasons(answer) == {"second": "budget"}
    needed = remedy(answer, "budget")["budget"]
    assert needed == whole["cost"]
    assert plan(fleet(*asked, budget=needed))["unplaced"] == []
    less = usd(str(Decimal(needed["amount"]) - Decimal("0.01")))
    assert reasons(plan(fleet(*asked, budget=less))) == {"second": "budget"}


def test_more_budget_never_places_fewer_and_never_costs_more_than_it():
    asked = [run("a"), run("b", priority=2), {**SERVICE, "priority": 2}]
    budgets = (10, 60, 200, 400)
    answers = [plan(fleet(*asked, budget=usd(str(budget)))) for budget in budgets]
    counts = [len(answer["assignments"]) for answer in answers]
    assert all(less <= more for less, more in pairwise(counts))
    assert (counts[0], counts[-1]) == (0, 3)
    assert all(
        Decimal(answer["cost"]["amount"]) <= most for answer, most in zip(answers, budgets, strict=True)
    )


def test_devices_without_a_price_run_what_has_to_be_early_but_not_what_has_to_be_cheap():
    bare = {name: HALL[name] for name in ("name", "cluster")}
    cheap = plan(fleet(run("a"), owned=[bare]))
    assert reasons(cheap) == {"a": "price"}
    early = plan(fleet(run("a"), owned=[bare], goal="earliest"))
    assert list(by_name(early)) == ["a"]
    assert "cost" not in early
    assert early["months"] == []
    assert gaps(early)["/cost"] == "PRICE_REQUIRED"


def test_the_earliest_schedule_takes_more_devices_than_the_cheapest():
    cheap, early = (
        by_name(plan(fleet(run("a"), rented=[CLOUD], owned=[], goal=goal)))["a"]
        for goal in ("cheapest", "earliest")
    )
    assert time(early["ends_at"]) < time(cheap["ends_at"])
    assert Decimal(early["row"]["cost"]["amount"]) >= Decimal(cheap["row"]["cost"]["amount"])


def test_a_run_is_kept_to_its_pools():
    asked = run("a", pools=["cloud"])
    assert by_name(plan(fleet(asked, rented=[CLOUD])))["a"]["pool"] == "cloud"


TARIFF = {**HALL, "site": {"site_id": "x", "electricity": {"tariff_id": "x"}}}


@pytest.mark.parametrize(
    ("question", "code", "pointer"),
    [
        (fleet(run("a"), run("a")), "NAME_TWICE", "/workloads/1/name"),
        (fleet(run("a"), rented=[{**CLOUD, "name": "hall"}]), "NAME_TWICE", "/rented/0/name"),
        (fleet(run("a"), owned=[]), "NO_SUPPLY", "/owned"),
        (fleet(run("a"), owned=[TARIFF]), "NOT_MODELLED", "/owned/0/site/electricity"),
        (fleet(run("a"), ends_at="2026-12-30T00:00:00Z"), "WINDOW_EMPTY", "/ends_at"),
        (
            fleet(run("a", earliest_start_at="2027-01-09T00:00:00Z")),
            "WINDOW_EMPTY",
            "/workloads/0/earliest_start_at",
        ),
        (
            fleet(run("a", earliest_start_at="2026-12-29T00:00:00Z")),
            "BEFORE_START",
            "/workloads/0/earliest_start_at",
        ),
        (fleet(run("a", finish_by="2026-12-30T00:00:00Z")), "WINDOW_EMPTY", "/workloads/0/finish_by"),
        (fleet(run("a", pools=["hall", "attic"])), "UNKNOWN_REFERENCE", "/workloads/0/pools/1"),
        (
            fleet({**SERVICE, "workload": {**SERVICE["workload"], "horizon": {"total_requests": 9}}}),
            "NOT_APPLICABLE",
            "/workloads/0/workload/horizon",
        ),
        (
            fleet({**SERVICE, "accelerator_counts": [8]}),
            "NOT_APPLICABLE",
            "/workloads/0/accelerator_counts",
        ),
        (
            fleet(run("a"), run("b", workload={"kind": "training", "total_tokens": 1})),
            None,
            "/workloads/1/workload/global_batch_size",
        ),
        (
            fleet(run("a", model={"source": "catalog", "id": "no-such"})),
            "UNKNOWN_REFERENCE",
            "/workloads/0/model/id",
        ),
        (
            fleet(
                run("a"), rented=[{**CLOUD, "cluster": {"accelerator": {"source": "catalog", "id": "no"}}}]
            ),
            "UNKNOWN_REFERENCE",
            "/rented/0/cluster/accelerator/id",
        ),
        (
            fleet(run("a"), owned=[{**HALL, "purchase": {"price_per_device": usd("1")}}]),
            "OWNERSHIP_REQUIRED",
            "/owned/0/purchase/ownership",
        ),
        (
            fleet(run("a"), budget=usd("1", "XTS"), currency_code="USD"),
            "CURRENCY_MISMATCH",
            "/budget/currency_code",
        ),
    ],
)
def test_what_is_wrong_is_refused_at_its_field(question, code, pointer):
    found = refused(question)
    assert found[1] == pointer
    assert code in (None, found[0])


def test_a_fleet_of_too_many_configurations_is_refused(monkeypatch):
    monkeypatch.setattr(fleet_options, "MOST_CANDIDATES", 700)
    assert refused(fleet(run("a"), run("b", 1_000_000_000))) == ("SEARCH_TOO_LARGE", "/workloads/1")
    assert len(plan(fleet(run("a"), run("equal")))["assignments"]) == 2


def test_over_http_a_fleet_is_planned_and_nothing_is_stored(reader):
    response = reader.post("/v1/plans:fleet", json=fleet(run("a")))
    assert response.status_code == 200
    assert response.json()["assignments"][0]["workload"] == "a"
    assert reader.post("/v1/plans:fleet", json=fleet(run("a"), run("a"))).json()["errors"] == [
        {
            "pointer": "/workloads/1/name",
            "code": "NAME_TWICE",
            "detail": "another workload has this name",
        }
    ]
