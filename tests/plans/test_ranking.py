"""What is ranked: as if every candidate were worked out, and each row as its own requests answer."""

import json
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest

from service.app.examples import EXAMPLES
from service.plans.answer import build_answer, build_row
from service.plans.bounds import compute_bounds
from service.plans.pricing import CandidatePricer
from service.plans.ranking import build_key, find_first_candidate, rank_candidates
from service.plans.requests import get_currency
from service.plans.runs import RunCache, build_columns
from service.plans.search import merge_outcomes, search_space, split_search
from service.schemas.plan_answers import PlanConstraint
from tests.asking import ask, gaps, shipped, usd
from tests.plans.kept import QUESTION, outcome, question, space

GOALS = ("cheapest", "fastest", "cleanest", "fewest_devices")
SITE = {"pue": 1.2, "grid_id": "egrid-us", "electricity": {"price_per_kwh": usd("0.11")}}
NODE = {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 32}
PURCHASE = {
    "price_per_device": usd("30000"),
    "ownership": {"years": 4.0, "interest_rate": 0.05, "utilization": 0.7},
}
OWNED = [{"name": "hall", "cluster": NODE, "site": SITE, "purchase": PURCHASE}]
SPOT = {
    "name": "spot",
    "cluster": NODE,
    "rental": {
        "price_per_device_hour": usd("1.10", "EUR"),
        "spot": {"interruptions_per_hour": 0.002, "restart_seconds": 600.0},
        "billing": {"increment_seconds": 3600.0},
    },
}
COMMITTED = {
    "name": "year",
    "cluster": NODE,
    "rental": {
        "price_per_device_hour": usd("1.5"),
        "commitment": {"term_hours": 2000.0, "upfront_per_device": usd("500"), "idle_share": 0.1},
    },
}
WORKLOAD = {
    **QUESTION["workload"],
    "checkpointing": {"storage_bandwidth_bytes_per_second": 1e10},
    "reliability": {"device_mtbf_hours": 50_000.0},
}
TARIFF = EXAMPLES["estimate_utility_bill_shift"]
WINDOWED = {
    "owned": [{"name": "hall", "cluster": NODE, "site": TARIFF["site"], "purchase": PURCHASE}],
    "window": TARIFF["window"],
}
H100 = {**QUESTION["search"], "accelerators": ["h100-sxm"], "accelerator_counts": [16, 32]}
VARIED = {
    "catalog": {"site": SITE},
    "owned": {
        "owned": OWNED,
        "site": SITE,
        "storage": {"price_per_gigabyte_month": usd("0.02"), "dataset_bytes": 1e13},
    },
    "terms": {
        "rented": [SPOT, COMMITTED],
        "workload": WORKLOAD,
        "owned": OWNED,
        "site": SITE,
        "search": H100,
        "currency_code": "EUR",
    },
}


RUNS = RunCache()
"""Shared by all, as runs depend on nothing else that these tests vary."""


def every(of, found):
    """All candidates, each worked out in full."""
    pricer = CandidatePricer(of, RUNS)
    return [
        candidate
        for supply in of.supplies
        for kept in found.kept
        if kept.cluster in supply.clusters
        for candidate in pricer.list_candidates(supply, kept)
    ]


class Drawn:
    """A space with configurations, of which all candidates are worked out once for each goal."""

    def __init__(self, members):
        self.of = space(**members)
        self.found = outcome(self.of, each=3)
        self._candidates = {}

    def get_candidates(self, goal):
        if goal not in self._candidates:
            self._candidates[goal] = every(with_(self.of, goal=goal), self.found)
        return self._candidates[goal]

    def get_feasible(self, goal):
        return [each for each in self.get_candidates(goal) if each.ruled_out_by is None]


@pytest.fixture(scope="module", params=VARIED)
def drawn(request):
    return Drawn(VARIED[request.param])


def with_(of, **members):
    return of._replace(question=of.question.model_copy(update=members))


@pytest.mark.parametrize("goal", GOALS)
class TestOrder:
    def test_rows_are_the_best_of_all_candidates(self, drawn, goal):
        of, found = drawn.of, drawn.found
        search = of.question.search.model_copy(update={"rows": 12, "rows_per_supply": 12})
        few, of = of.question.search, with_(of, goal=goal, search=search)
        keys = sorted(build_key(goal, each) for each in drawn.get_feasible(goal))
        self.check_few_of_each(with_(of, search=few), found, keys)
        best = keys[:12]
        rows = rank_candidates(of, found, RUNS).rows
        assert [build_key(goal, row.candidate) for row in rows] == best
        assert [row.rank for row in rows] == list(range(1, 13))

    def check_few_of_each(self, of, found, keys):
        """With a few rows of each supply, these keep their places among all."""
        rows = rank_candidates(of, found, RUNS).rows
        names = [row.candidate.supply.name for row in rows]
        assert len(rows) == 10
        assert max(map(names.count, names)) <= 3
        for row in rows:
            assert keys[row.rank - 1] == build_key(of.question.goal, row.candidate)

    def test_constraints_rule_out_what_breaks_them(self, drawn, goal):
        of, found, feasible = drawn.of, drawn.found, drawn.get_feasible(goal)
        middle = len(feasible) // 2
        cost, time = (
            sorted(each.cost for each in feasible)[middle],
            sorted(each.time for each in feasible)[middle],
        )
        budget = usd(str(cost), get_currency(of.question))
        limits = of.question.constraints.model_copy(
            update={
                "budget": question(constraints={"budget": budget}).constraints.budget,
                "duration_seconds": time,
            }
        )
        left = [each for each in feasible if each.cost <= cost and each.time <= time]
        keys = sorted(build_key(goal, each) for each in left)
        ranking = rank_candidates(with_(of, goal=goal, constraints=limits), found, RUNS)
        assert [build_key(goal, row.candidate) for row in ranking.rows][:1] == keys[:1]
        assert 0 < len(left) < len(drawn.get_candidates(goal))
        assert ranking.priced == ranking.priced_feasible + sum(ranking.priced_ruled_out.values())
        assert set(ranking.priced_ruled_out) <= {PlanConstraint.BUDGET, PlanConstraint.DEADLINE}

    def test_the_first_alone_is_the_first_row(self, drawn, goal):
        of, found = with_(drawn.of, goal=goal), drawn.found
        ranking = rank_candidates(of, found, RUNS)
        assert find_first_candidate(of, found, ranking.runs) == ranking.rows[0].candidate


MOVED = [
    {"kind": "price", "factor": 1.37},
    {"kind": "price", "of": "hall", "factor": 0.5},
    {"kind": "time", "of": "h100-sxm", "factor": 1.21},
    {"kind": "electricity_price", "factor": 2.5},
    {"kind": "carbon_intensity", "of": "hall", "factor": 0.3},
    {"kind": "interruption_rate", "of": "spot", "factor": 3.0},
]


def figures(row):
    """What a row's own requests answer, under the names of the row."""
    answers = {}
    for name, asked in row["requests"].items():
        said = json.loads(asked.model_dump_json(exclude_unset=True))
        answers[name] = ask(shipped(), name.replace("_", "-"), said)
    memory, throughput = answers["memory"], answers["throughput"]
    found = {
        name: throughput[name]
        for name in ("step_seconds", "tokens_per_second", "model_flops_utilization", "duration_seconds")
    }
    found |= {"total_bytes": memory["per_device"]["total_bytes"], "headroom_bytes": memory["headroom_bytes"]}
    interruptions = answers.get("cost", {}).get("rent", {}).get("interruptions")
    if interruptions:
        found["duration_seconds"] = interruptions["duration_seconds"]
    if "utility_bill" in answers:
        energy, carbon = answers["utility_bill"]["energy"], answers["utility_bill"]["carbon"]
        found |= {name: energy[name] for name in ("facility_kwh", "peak_kw")}
        found["location_based_kg_co2e"] = carbon["location_based_kg_co2e"]
    return found, answers


def numbers(figure):
    """Value, low and high."""
    return [figure[end] for end in ("value", "low", "high")] if isinstance(figure, dict) else [figure]


def paid(row, answers, currency):
    """The total of a row's cost request and, of own nodes, its electricity."""
    parts = [answers["cost"]["total"]] if "cost" in answers else []
    if row["supply"]["kind"] == "owned":
        parts.append(answers["utility_bill"]["electricity"]["total"])
    whole = Decimal(0)
    for part in parts:
        rates = shipped().exchange_rates
        newest = max(rate.on for rate in rates)
        found = rates.convert(Decimal(part["amount"]), part["currency_code"], currency, newest)
        whole += round(found.amount, 2)
    return whole


OFFERS = 6
"""Of so many rows of offers, which differ in their prices, one is asked about."""


def shown(of, found):
    """Rows of every supply that the question names, and of some offers."""
    names = dict.fromkeys(supply.name for supply in of.supplies)
    search = of.question.search.model_copy(update={"rows": 4 * len(names), "rows_per_supply": 2})
    of = with_(of, search=search)
    ranking = rank_candidates(of, found)
    offers = [row for row in ranking.rows if row.candidate.supply.kind == "offer"][::OFFERS]
    named = [row for row in ranking.rows if row.candidate.supply.kind != "offer"]
    return [build_row(of, row.candidate, row.rank, ranking.runs) for row in (*named, *offers)]


@pytest.mark.parametrize("assumptions", [[], MOVED], ids=["as_given", "moved"])
@pytest.mark.parametrize("varied", ["owned", "terms"])
def test_every_row_is_what_its_requests_answer(varied, assumptions):
    members = VARIED[varied]
    known = {"hall", "spot"} if varied == "terms" else {"hall"}
    moves = [each for each in assumptions if each.get("of", "hall") in {*known, "h100-sxm"}]
    of = space(**{**members, "search": H100}, assumptions=moves)
    found = outcome(of, each=2)
    rows = shown(of, found)
    assert known <= {row["supply"]["name"] for row in rows}
    for row in rows:
        expected, answers = figures(row)
        for name, figure in expected.items():
            assert numbers(row[name]) == pytest.approx(numbers(figure), rel=1e-9), name
        assert Decimal(row["cost"]["amount"]) == paid(row, answers, get_currency(of.question))
        hours = row["duration_seconds"]["value"] * row["accelerator_count"] / 3600
        assert row["device_hours"]["value"] == pytest.approx(hours, rel=1e-12)


@pytest.mark.parametrize("varied", VARIED)
def test_no_candidate_is_below_its_bounds(varied):
    of = space(**VARIED[varied], assumptions=[{"kind": "time", "factor": 0.8}])
    of = with_(of, goal="cleanest")
    found = outcome(of, each=3, seed=2)
    pricer, columns = CandidatePricer(of), build_columns(of, found.kept)
    looked_at = 0
    for supply in of.supplies[:6]:
        bounds = compute_bounds(pricer, supply, columns)
        for place, at in enumerate(bounds.kept.tolist()):
            exact = pricer.price_start(supply, found.kept[at])
            assert bounds.time[place] <= exact.time
            assert bounds.cost[place] <= float(exact.cost)
            assert bounds.kg_co2e[place] <= exact.kg_co2e
            assert bounds.kw[place] <= exact.kw
            looked_at += 1
    assert looked_at > 20


class TestAssumptions:
    """A moved assumption moves what it is about, by its factor, and nothing else."""

    def price_of(self, name, **members):
        of = space(**{**VARIED["terms"], "workload": QUESTION["workload"], **members})
        found = outcome(of, each=1)
        pricer = CandidatePricer(of)
        supply = next(supply for supply in of.supplies if supply.name == name)
        kept = next(kept for kept in found.kept if kept.cluster in supply.clusters)
        return pricer.price_start(supply, kept)

    def test_the_price_of_one_supply(self):
        moved = [{"kind": "price", "of": "year", "factor": 3.0}]
        assert self.price_of("year", assumptions=moved).cost == pytest.approx(
            3 * self.price_of("year").cost, rel=Decimal("1e-4")
        )
        assert self.price_of("spot", assumptions=moved).cost == self.price_of("spot").cost

    def test_the_price_of_own_nodes_leaves_their_electricity(self):
        plain, none = (
            self.price_of("hall"),
            self.price_of("hall", assumptions=[{"kind": "price", "factor": 0.001}]),
        )
        double = self.price_of("hall", assumptions=[{"kind": "price", "factor": 2.0}])
        assert none.cost > 0
        assert double.cost - plain.cost == pytest.approx(plain.cost - none.cost, rel=Decimal("0.002"))

    def test_time_and_carbon(self):
        moved = [{"kind": "time", "factor": 2.0}, {"kind": "carbon_intensity", "factor": 3.0}]
        plain = self.price_of("hall", goal="cleanest")
        slow = self.price_of("hall", goal="cleanest", assumptions=moved)
        assert slow.time == pytest.approx(2 * plain.time, rel=1e-12)
        assert slow.kg_co2e == pytest.approx(6 * plain.kg_co2e, rel=1e-9)

    def test_interruptions_make_a_spot_run_longer(self):
        rare = self.price_of("spot", workload=WORKLOAD)
        often = self.price_of(
            "spot", workload=WORKLOAD, assumptions=[{"kind": "interruption_rate", "factor": 5.0}]
        )
        assert often.time > rare.time
        assert often.cost > rare.cost


class TestStarts:
    """A run that may begin at several moments begins at the best of them."""

    @pytest.fixture(scope="class")
    @classmethod
    def of(cls):
        return space(**WINDOWED, search={"offers": False, "accelerator_counts": [8, 16, 32]})

    def test_the_start_is_the_cheapest_of_all(self, of):
        found = outcome(of, each=1)
        pricer, supply = CandidatePricer(of), of.supplies[0]
        [best] = pricer.list_candidates(supply, found.kept[-1])
        window = of.question.window
        step = (window.latest_start_at - window.earliest_start_at) / 6
        others = [
            pricer.price_start(supply, found.kept[-1], window.earliest_start_at + n * step) for n in range(7)
        ]
        assert best.cost <= min(other.cost for other in others)
        assert best.cost < max(other.cost for other in others)
        row = build_row(of, best, 1)
        assert row["starts_at"] == f"{best.starts_at:%Y-%m-%dT%H:%M:%SZ}"
        assert Decimal(row["cost"]["amount"]) == best.cost

    def every_start(self, of, kept):
        window, pricer = of.question.window, CandidatePricer(of)
        step, at = timedelta(minutes=window.step_minutes), window.earliest_start_at
        found = []
        while at <= window.latest_start_at:
            found.append(pricer.price_start(of.supplies[0], kept, at))
            at += step
        return found

    @pytest.fixture(scope="class")
    @classmethod
    def few(cls, of):
        """A window of few starts, and one configuration from each of them."""
        window = of.question.window
        last = window.earliest_start_at + timedelta(hours=18)
        of = with_(of, window=window.model_copy(update={"latest_start_at": last, "step_minutes": 180}))
        return of, outcome(of, each=1).kept[-1]

    def test_the_cleanest_start_is_another(self, few):
        of, kept = few
        starts = self.every_start(of, kept)
        [clean] = CandidatePricer(with_(of, goal="cleanest")).list_candidates(of.supplies[0], kept)
        assert clean.kg_co2e == pytest.approx(min(each.kg_co2e for each in starts), rel=1e-9)
        [cheap] = CandidatePricer(of).list_candidates(of.supplies[0], kept)
        assert cheap.cost == min(each.cost for each in starts)

    def test_a_pareto_set_has_all_starts_that_no_other_betters(self, few):
        of, kept = few
        starts = {(each.cost, round(each.kg_co2e, 6)) for each in self.every_start(of, kept)}
        best = {
            one for one in starts if not any(o != one and o[0] <= one[0] and o[1] <= one[1] for o in starts)
        }
        found = CandidatePricer(with_(of, goal="pareto")).list_candidates(of.supplies[0], kept)
        assert {(each.cost, round(each.kg_co2e, 6)) for each in found} == best

    def test_only_starts_in_time_count(self, few):
        of, kept = few
        of = with_(of, goal="cleanest")
        starts = self.every_start(of, kept)
        done = starts[1].starts_at + timedelta(seconds=starts[1].time + 60)
        limits = of.question.constraints.model_copy(update={"finish_by": done})
        [best] = CandidatePricer(with_(of, constraints=limits)).list_candidates(of.supplies[0], kept)
        assert best.starts_at == min(starts[:2], key=lambda each: each.kg_co2e).starts_at
        assert best.ruled_out_by is None

    def test_where_none_is_in_time_it_is_late(self, few):
        of = few[0]
        done = of.question.window.earliest_start_at + timedelta(hours=1)
        limits = of.question.constraints.model_copy(update={"finish_by": done})
        ranking = rank_candidates(with_(of, constraints=limits), outcome(of, each=1))
        assert ranking.rows == ()
        assert set(ranking.priced_ruled_out) == {PlanConstraint.DEADLINE}


class TestPareto:
    """What no other candidate betters in cost, time and emissions."""

    def test_it_is_the_set_of_all_candidates(self, drawn):
        of, found = drawn.of, drawn.found
        search = of.question.search.model_copy(update={"rows": 200})
        of = with_(of, goal="pareto", search=search)
        keys = {build_key("pareto", each) for each in drawn.get_candidates("pareto")}
        best = {
            key for key in keys if not any(other != key and all(np.less_equal(other, key)) for other in keys)
        }
        rows = rank_candidates(of, found, RUNS).rows
        assert [build_key("pareto", row.candidate) for row in rows] == sorted(best)

    def test_of_many_both_ends_are_shown(self):
        of = space(
            goal="pareto",
            site=SITE,
            search={**QUESTION["search"], "rows": 200, "accelerator_counts": [8, 64]},
        )
        found = outcome(of, each=6, seed=6)
        few = with_(of, search=of.question.search.model_copy(update={"rows": 2}))
        every_row, rows = rank_candidates(of, found).rows, rank_candidates(few, found).rows
        assert len(every_row) > 2
        assert rows == (every_row[0], every_row[-1])


GIVEN = {
    "name": "ours",
    "cluster": NODE,
    "parallelism": {"tensor": 2, "data": 16, "sharding": "zero_1"},
    "workload": {**QUESTION["workload"], "micro_batch_size": 1, "recomputation": {"strategy": "full"}},
}


class TestGiven:
    """Configurations of the question stand among the rest."""

    def given(self, **members):
        return space(**VARIED["owned"], given=[{**GIVEN, **members}])

    def test_it_has_its_place_among_all(self):
        of = self.given()
        found = outcome(of, each=3)
        ranking = rank_candidates(of, found)
        [ours] = ranking.given
        assert ours.candidate.name == "ours"
        keys = [build_key("cheapest", each) for each in every(of, found) if each.ruled_out_by is None]
        own = build_key("cheapest", ours.candidate)
        assert ours.rank == 1 + sum(key < own for key in keys)

    def test_one_that_is_searched_too_stands_once(self):
        of = self.given()
        found = outcome(of, each=1)
        of = of._replace(supplies=tuple(supply for supply in of.supplies if supply.name == "hall"))
        ours = rank_candidates(of, found).given[0].candidate
        place = next(
            n
            for n, each in enumerate(of.clusters)
            if each.accelerator_count == 32 and n in of.supplies[0].clusters
        )
        twin = found.kept[0]._replace(
            cluster=place,
            parallelism=GIVEN["parallelism"],
            workload={
                "micro_batch_size": 1,
                "gradient_accumulation_steps": 16,
                "precision": "bf16",
                "recomputation": {"strategy": "full"},
            },
            seconds=ours.seconds,
            watts=None,
        )
        rows = rank_candidates(of, found._replace(kept=(*found.kept, twin))).rows
        assert [row.candidate.name for row in rows if row.candidate.cost == ours.cost] == ["ours"]

    def test_one_that_does_not_fit_says_why_and_has_no_place(self):
        whole = {"data": 32, "sharding": "none"}
        of = self.given(parallelism=whole, workload={**GIVEN["workload"], "micro_batch_size": 8})
        found = outcome(of, each=1)
        ranking = rank_candidates(of, found)
        [given] = ranking.given
        ours = build_row(of, given.candidate, given.rank, ranking.runs)
        assert (ours["rank"], ours["ruled_out_by"], ours["name"]) == (0, "memory", "ours")
        assert ours["headroom_bytes"] < 0
        assert "ours" not in [row.candidate.name for row in ranking.rows]

    def test_more_devices_than_allowed(self):
        of = space(**VARIED["owned"], given=[GIVEN], constraints={"accelerator_count": 16})
        [ours] = rank_candidates(of, outcome(of, each=1)).given
        assert ours.candidate.ruled_out_by is PlanConstraint.DEVICES


class TestAnswer:
    """What the answer says beside its rows."""

    def test_nothing_left_says_what_rules_it_out(self):
        of = space(constraints={"budget": usd("1")})
        found = outcome(of, each=1)
        answer = build_answer(of, found, rank_candidates(of, found))
        assert answer["rows"] == []
        assert gaps(answer) == {"/rows": "NONE_FEASIBLE"}
        assert "budget" in answer["gaps"][0]["detail"]
        counts = answer["candidates"]
        assert counts["priced"] == sum(each["candidates"] for each in counts["priced_ruled_out"])

    def test_own_nodes_without_a_building_have_no_cost(self):
        members = {
            "owned": [{"name": "hall", "cluster": NODE}],
            "search": {"offers": False},
            "goal": "fastest",
        }
        of = space(**members)
        found = outcome(of, each=1)
        answer = build_answer(of, found, rank_candidates(of, found))
        assert "cost" not in answer["rows"][0]
        assert gaps(answer)["/rows/0/cost"] == "PRICE_UNKNOWN"
        ranking = rank_candidates(with_(of, goal="cheapest"), found)
        assert ranking.rows == ()
        assert set(ranking.priced_ruled_out) == {PlanConstraint.PRICE}

    def test_a_run_that_never_ends_is_late(self):
        often = {**SPOT, "rental": {**SPOT["rental"], "spot": {"interruptions_per_hour": 50.0}}}
        of = space(rented=[often], search={"offers": False}, workload=WORKLOAD)
        ranking = rank_candidates(of, outcome(of, each=1))
        assert ranking.rows == ()
        assert set(ranking.priced_ruled_out) == {PlanConstraint.DEADLINE}

    def test_warnings_name_the_offer_and_its_place(self):
        of = space(constraints={"providers": ["digitalocean"]}, search=H100)
        found = outcome(of, each=1)
        answer = build_answer(of, found, rank_candidates(of, found))
        of_offers = [each for each in answer["warnings"] if each["code"] == "OFFER_DOUBTFUL"]
        assert {each["pointer"] for each in of_offers} == {"/search/offers"}
        assert of_offers[0]["detail"].startswith("digitalocean-gpu-h100x8-640gb-on-demand: ")


SERVED = {
    "workload": {
        "kind": "inference",
        "input_tokens": 512,
        "output_tokens": 128,
        "request_rate_per_second": 8.0,
        "service_levels": {"time_to_first_token_seconds": 2.0, "percentile": 90.0},
        "horizon": {"duration_seconds": 864000.0},
    },
    "search": {"accelerators": ["h100-sxm"], "serving": {"tensor": [1, 2], "pipeline": [1]}},
    "owned": OWNED,
    "site": SITE,
}


@pytest.mark.parametrize("goal", ["cheapest", "cleanest", "fewest_devices"])
def test_a_row_of_a_service_is_what_its_requests_answer(goal):
    of = space(**SERVED, goal=goal, assumptions=[{"kind": "price", "of": "hall", "factor": 2.0}])
    found = merge_outcomes([search_space(of, piece) for piece in split_search(of)], of.question.search.depth)
    candidates = [each for each in every(of, found) if each.ruled_out_by is None]
    ranking = rank_candidates(of, found, RUNS)
    keys = sorted(build_key(goal, each) for each in candidates)
    assert [keys[row.rank - 1] for row in ranking.rows] == [
        build_key(goal, row.candidate) for row in ranking.rows
    ]
    for ranked_row in ranking.rows[:2]:
        row = build_row(of, ranked_row.candidate, ranked_row.rank, ranking.runs)
        answers = {
            name: ask(
                shipped(), name.replace("_", "-"), json.loads(asked.model_dump_json(exclude_unset=True))
            )
            for name, asked in row["requests"].items()
        }
        throughput, bill = answers["throughput"], answers["utility_bill"]
        expected = {name: throughput[name] for name in ("request_seconds", "time_to_first_token_seconds")}
        expected["service_level_share"] = throughput["service_level_goodput"]["share"]
        expected["total_bytes"] = answers["memory"]["per_device"]["total_bytes"]
        expected["facility_kwh"] = bill["energy"]["facility_kwh"]
        expected["location_based_kg_co2e"] = bill["carbon"]["location_based_kg_co2e"]
        for name, figure in expected.items():
            assert numbers(row[name]) == pytest.approx(numbers(figure), rel=1e-9), name
        assert row["service_level_share"]["value"] >= 0.9
        assert Decimal(row["cost"]["amount"]) == paid(row, answers, "USD")
