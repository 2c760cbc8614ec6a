"""Limits that a plan fills where its question leaves them open: headroom and service levels."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from service.plans.space import KeptConfiguration, SearchOutcome
from service.plans.stored import parse_outcome, to_document
from service.resolve.catalog import KnownLinks
from tests.asking import codes, shipped, usd
from tests.plans.asking import TRAINING, planned

HEADROOM = "/constraints/headroom_share"
LEVELS = "/workload/service_levels"
GPT = json.loads((Path(__file__).parents[1] / "data/plans/gpt-175b-64-a100.json").read_text())["question"]


def rented(name, accelerator, count, price):
    cluster = {"accelerator": {"source": "catalog", "id": accelerator}, "accelerator_count": count}
    return {"name": name, "cluster": cluster, "rental": {"price_per_device_hour": usd(price)}}


SERVICE = {
    "model": {"source": "catalog", "id": "llama-3.1-70b"},
    "workload": {
        "kind": "inference",
        "input_tokens": 4000,
        "output_tokens": 500,
        "request_rate_per_second": 4.0,
        "horizon": {"duration_seconds": 2_592_000},
    },
    "goal": "cheapest",
    "search": {"offers": False, "rows_per_supply": 1},
    "rented": [rented("slow", "l40s", 64, "0.2"), rented("fast", "h100-sxm", 16, "4")],
}
"""A service on 64 slow devices at a twentieth of the price of fast ones."""


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


def free(row):
    return row["headroom_bytes"] / (row["headroom_bytes"] + row["total_bytes"]["value"])


class TestHeadroom:
    def test_rows_leave_a_twentieth_and_the_answer_says_so(self):
        answer = planned(TRAINING)
        assert filled(answer) == {HEADROOM: "0.05"}
        assert min(map(free, answer["rows"])) >= 0.05

    def test_what_a_question_states_is_no_default(self):
        assert filled(planned(TRAINING, **{"/constraints": {"headroom_share": 0.0}})) == {}

    def test_a_layout_that_fills_the_device_is_no_first_row_unless_it_is_asked_for(self):
        """GPT-3 175B on 64 A100: four stages and two replicas are fastest, and leave 2% of a device."""
        full = planned(GPT, **{"/given": [], "/constraints/headroom_share": 0.0})["rows"][0]
        roomy = planned(GPT, **{"/given": []})
        assert free(full) < 0.05 <= free(roomy["rows"][0])
        assert full["duration_seconds"]["value"] < roomy["rows"][0]["duration_seconds"]["value"]
        assert full["fit_probability"] < roomy["rows"][0]["fit_probability"]
        given = {
            "name": "in use",
            **{name: full["requests"]["throughput"][name] for name in ("cluster", "parallelism", "workload")},
        }
        in_use = planned(GPT, **{"/given": [given]})
        assert in_use["given"][0]["rank"] == 1
        stated = planned(GPT, **{"/given": [given], "/constraints/headroom_share": 0.05})
        assert stated["given"][0]["ruled_out_by"] == "memory"

    def test_a_service_leaves_it_of_the_part_of_its_engine(self):
        """Llama 3.1 70B in bf16 fills pairs of H100: the next that leaves room is a pipeline of two pairs."""
        asked = {
            "/rented": [rented("pairs", "h100-sxm", 8, "2")],
            "/search/serving": {"tensor": [2]},
            "/workload/request_rate_per_second": 0.5,
            "/workload/memory_fraction": 0.95,
        }
        (full,) = planned(SERVICE, **asked, **{"/constraints": {"headroom_share": 0.0}})["rows"]
        assert 0.0 < free(full) < 0.05
        (roomy,) = planned(SERVICE, **asked)["rows"]
        assert roomy["parallelism"]["pipeline"] == 2
        assert free(roomy) >= 0.05

    def test_no_row_is_explained_by_it(self):
        answer = planned(TRAINING, **{"/model/id": "llama-3.1-405b"})
        (gap,) = (gap for gap in answer["gaps"] if gap["pointer"] == "/rows")
        assert "0.05 of the memory free" in gap["detail"]


class TestServiceLevels:
    def test_a_service_that_nobody_would_wait_for_is_not_first(self):
        """64 L40S, whose first token comes late, cost less than 12 H100."""
        answer = planned(SERVICE)
        (first,) = answer["rows"]
        assert first["supply"]["name"] == "fast"
        assert first["service_level_share"]["value"] >= 0.9
        assert first["requests"]["throughput"]["workload"]["service_levels"] == {
            "time_to_first_token_seconds": 2.0,
            "time_per_output_token_seconds": 0.2,
            "percentile": 90.0,
        }
        assert filled(answer) == {
            HEADROOM: "0.05",
            f"{LEVELS}/time_to_first_token_seconds": "2",
            f"{LEVELS}/time_per_output_token_seconds": "0.2",
        }
        ruled = {each["constraint"]: each["candidates"] for each in answer["candidates"]["ruled_out"]}
        assert ruled["service_level"] > 0

    def test_work_that_nobody_waits_for_states_a_long_request(self):
        answer = planned(SERVICE, **{"/workload/service_levels": {"request_seconds": 1e6}})
        assert filled(answer) == {HEADROOM: "0.05"}
        slow, fast = answer["rows"]
        assert [row["supply"]["name"] for row in (slow, fast)] == ["slow", "fast"]
        times = [row["time_per_output_token_seconds"]["value"] for row in (slow, fast)]
        assert times[0] > 2.0 * times[1]

    @pytest.mark.parametrize(
        ("stated", "open_level"),
        [
            ({"time_to_first_token_seconds": 10.0}, "time_per_output_token_seconds"),
            ({"time_per_output_token_seconds": 0.5}, "time_to_first_token_seconds"),
        ],
    )
    def test_a_level_that_is_stated_leaves_the_other_open(self, stated, open_level):
        answer = planned(SERVICE, **{"/workload/service_levels": stated})
        assert {each for each in filled(answer) if each.startswith(LEVELS)} == {f"{LEVELS}/{open_level}"}

    def test_where_nothing_keeps_them_the_rest_is_ranked_with_a_warning(self):
        """No device reads 60,000 tokens of a 70B model in two seconds here."""
        load = {"/workload/input_tokens": 60_000, "/workload/request_rate_per_second": 0.2}
        answer = planned(SERVICE, **load)
        assert "DEFAULT_LEVELS_MISSED" in codes(answer["warnings"])
        assert filled(answer) == {HEADROOM: "0.05"}
        patient = planned(SERVICE, **load, **{"/workload/service_levels": {"request_seconds": 1e6}})
        assert "DEFAULT_LEVELS_MISSED" not in codes(patient["warnings"])

        def chosen(found):
            return [(row["rank"], row["supply"], row["parallelism"], row["cost"]) for row in found["rows"]]

        assert chosen(answer) == chosen(patient)

    def test_a_budget_that_only_slow_devices_keep_ranks_these_with_a_warning(self):
        answer = planned(SERVICE, **{"/constraints": {"budget": usd("10000")}})
        assert "DEFAULT_LEVELS_MISSED" in codes(answer["warnings"])
        assert answer["rows"][0]["supply"]["name"] == "slow"

    def test_a_search_in_the_background_keeps_them_apart(self):
        kept = KeptConfiguration(0, {"tensor": 4}, {}, 2.0, accelerator_count=8, keeps_levels=False)
        outcome = SearchOutcome(2, 2, 1, {}, {}, (kept, kept._replace(keeps_levels=True)))
        assert parse_outcome(json.loads(json.dumps(to_document(outcome)))) == outcome


class TestWholeCatalog:
    """Questions as people ask them, over the offers of the catalog."""

    def test_offers_whose_links_are_unknown_are_left_out_and_no_refusal(self, monkeypatch):
        known = shipped()
        unjoined = replace(known.accelerators["inferentia2"], links=KnownLinks(), systems=())
        catalog = replace(known, accelerators={**known.accelerators, "inferentia2": unjoined})
        monkeypatch.setattr("tests.plans.asking.shipped", lambda: catalog)
        question = {**SERVICE, "rented": [], "search": {"accelerators": ["inferentia2", "mi300x"]}}
        answer = planned(question)
        assert {row["accelerator_id"] for row in answer["rows"]} == {"mi300x"}
        (note,) = (each for each in answer["warnings"] if "intra_node_link" in each["detail"])
        assert (note["code"], note["pointer"]) == ("LINK_UNKNOWN", "/search/offers")
        assert "inferentia2" in note["detail"]
        assert "NOT_USED" not in codes(answer["warnings"])
        # Replicas that lie within an instance wait for no network, known or not.
        assert answer["rows"][0]["accelerator_count"] > 1
