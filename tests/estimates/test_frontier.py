"""The frontier of a served model: by the figures of single estimates, and no configuration left out."""

import json
import threading
from itertools import product

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service.app.examples import EXAMPLES
from service.estimates import router
from service.estimates.frontier import estimate_frontier
from service.planning.errors import PlanningError
from service.schemas.frontier import ThroughputFrontier, ThroughputFrontierRequest
from tests.asking import ask, gaps, shipped

EXAMPLE = EXAMPLES["estimate_throughput_frontier"]
URL = "/v1/estimates/throughput:frontier"
WRITE = TypeAdapter(ThroughputFrontier).serializer.to_json
SAME = (
    "output_tokens_per_second",
    "requests_per_second",
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "request_seconds",
    "output_tokens_per_second_per_device",
)


def search(question, **searched):
    """The answer as a caller reads it."""
    asked = {**question, "search": {**question.get("search", {}), **searched}}
    parsed = ThroughputFrontierRequest.model_validate_json(json.dumps(asked))
    return json.loads(WRITE(estimate_frontier(parsed, shipped())))


def refusal(question, **searched):
    with pytest.raises(PlanningError) as caught:
        search(question, **searched)
    return caught.value.code, caught.value.pointer


def served(model="llama-3.1-8b", accelerator="h100-sxm", count=4, **workload):
    return {
        "model": {"source": "catalog", "id": model},
        "cluster": {"accelerator": {"source": "catalog", "id": accelerator}, "accelerator_count": count},
        "workload": {"kind": "inference", "input_tokens": 2000, "output_tokens": 500, **workload},
    }


def counts(answer):
    return {one["constraint"]: one["configurations"] for one in answer["configurations"]["ruled_out"]}


def rates(point):
    return (
        point["output_tokens_per_second_per_device"]["value"],
        point["output_tokens_per_second_per_user"]["value"],
    )


ASKED = 4
"""Of so many points, one is asked about, and so is the last."""


@pytest.mark.parametrize(
    "question",
    [
        EXAMPLE,
        served(),
        served("qwen3-30b-a3b", "b200-sxm", 8, engine={"name": "sglang"}),
        served("deepseek-v3", "h200-sxm", 16, weight_format="fp8_block_128"),
        served("qwen3-vl-8b", sample={"height": 448, "width": 448}, prefix_cache_hit_rate=0.3),
        served(
            output_tokens={"distribution": "lognormal", "mean_tokens": 300.0, "sigma": 0.8},
            speculative={"method": "ngram", "tokens": 3, "acceptance_rate": 0.5},
        ),
    ],
    ids=["example", "dense", "experts", "latent", "pictures", "lengths"],
)
def test_every_point_is_what_its_question_answers(question):
    points = search(question)["points"]
    assert len(points) > 2
    for point in {id(each): each for each in (*points[::ASKED], points[-1])}.values():
        alone = ask(shipped(), "throughput", point["throughput_question"])
        for name, end in product(SAME, ("value", "low", "high")):
            assert point[name][end] == pytest.approx(alone[name][end], rel=1e-9), name
        each = point["output_tokens_per_second_per_user"]["value"]
        assert each == pytest.approx(1.0 / alone["time_per_output_token_seconds"]["value"], rel=1e-9)
        if "service_level_share" in point:
            assert point["service_level_share"] == alone["service_level_goodput"]["share"]
        assert point["parallelism"] == alone["parallelism"]
        memory = {
            name: point["throughput_question"][name]
            for name in ("model", "workload", "cluster", "parallelism")
        }
        held = ask(shipped(), "memory", memory)
        assert held["fits"]
        assert point["headroom_bytes"] == pytest.approx(held["headroom_bytes"], abs=16)


LEVELS = st.fixed_dictionaries(
    {},
    optional={
        "time_to_first_token_seconds": st.sampled_from([0.2, 1.0, 5.0]),
        "time_per_output_token_seconds": st.sampled_from([0.01, 0.03, 0.1]),
        "request_seconds": st.sampled_from([3.0, 20.0]),
    },
).filter(bool)


class TestSearch:
    @settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate])
    @given(
        model=st.sampled_from(["llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b"]),
        accelerator=st.sampled_from(["h100-sxm", "a100-sxm-80gb", "l40s"]),
        count=st.sampled_from([1, 2, 4]),
        sizes=st.sets(st.integers(1, 600), min_size=1, max_size=6),
        workload=st.fixed_dictionaries(
            {"input_tokens": st.integers(1, 8000), "output_tokens": st.integers(2, 2000)},
            optional={"service_levels": LEVELS},
        ),
    )
    def test_it_finds_what_asking_for_each_alone_finds(self, model, accelerator, count, sizes, workload):
        """Same figures, same counts, and nothing left out that is better by more than its resolution."""
        # An engine whose rules are not known bounds no requests, so that memory alone rules them out.
        question = served(model, accelerator, count, **workload, engine={"name": "of our own"})
        answer = search(question, requests_per_replica=sorted(sizes), expert=[1])
        asked, outcomes = singly(question, sizes), {"memory": 0, "service_level": 0}
        for outcome in asked:
            if isinstance(outcome, str):
                outcomes[outcome] += 1
        kept = [outcome for outcome in asked if not isinstance(outcome, str)]
        assert answer["configurations"]["considered"] == len(asked)
        assert answer["configurations"]["feasible"] == len(kept)
        assert counts(answer) == {name: number for name, number in outcomes.items() if number}
        found = [rates(point) for point in answer["points"]]
        for device, user in found:
            assert any((device, user) == pytest.approx(one, rel=1e-9) for one in kept)
        for device, user in kept:
            assert any(d >= device * 0.99 and u >= user * 0.99 for d, u in found)


def singly(question, sizes):
    """Both rates of every configuration, or what rules it out, each by questions of its own."""
    count, outcomes = question["cluster"]["accelerator_count"], []
    levels = question["workload"].get("service_levels", {})
    experts = question["model"]["id"].startswith("qwen3-30b")
    for tensor, pipeline in product((1, 2, 4), repeat=2):
        if count % (tensor * pipeline):
            continue
        cuts = [{}, {"expert_tensor": 1}] if experts and tensor > 1 else [{}]
        data = count // (tensor * pipeline)
        for size, cut in product(sizes, cuts):
            one = {
                **question,
                "parallelism": {"tensor": tensor, "pipeline": pipeline, "data": data, **cut},
                "workload": {**question["workload"], "concurrency": size * data},
            }
            if not ask(shipped(), "memory", one)["fits"]:
                outcomes.append("memory")
                continue
            alone = ask(shipped(), "throughput", one)
            if levels and not alone["service_level_goodput"]["attained"]:
                outcomes.append("service_level")
                continue
            rate, each = alone["output_tokens_per_second"], alone["time_per_output_token_seconds"]
            outcomes.append((rate["value"] / count, 1.0 / each["value"]))
    return outcomes


class TestAnswer:
    def test_points_fall_per_device_and_rise_per_user(self):
        found = [rates(point) for point in search(served())["points"]]
        assert len(found) > 10
        assert found == sorted(found, reverse=True)
        assert [user for _, user in found] == sorted(user for _, user in found)

    def test_the_best_within_the_levels_makes_most_per_device(self):
        answer = search(EXAMPLE)
        best = answer["best"]
        assert best == answer["points"][0]
        assert best["service_level_share"]["value"] >= 0.9
        assert best["time_per_output_token_seconds"]["value"] <= 0.03
        assert counts(answer)["service_level"] > 0

    def test_without_levels_there_is_no_best(self):
        assert "best" not in search(served())

    def test_levels_that_nothing_keeps_are_a_gap(self):
        levels = {"time_to_first_token_seconds": 1e-6}
        answer = search(served(service_levels=levels))
        assert answer["points"] == []
        assert answer["configurations"]["feasible"] == 0
        assert gaps(answer) == {"/best": "NONE_WITHIN_LEVELS"}

    def test_all_that_is_considered_is_feasible_or_ruled_out(self):
        answer = search(served("llama-3.1-70b", "h100-sxm", 16, engine={"name": "vllm"}))
        found = counts(answer)
        assert found.keys() >= {"link", "memory", "engine"}
        numbers = answer["configurations"]
        assert numbers["considered"] == numbers["feasible"] + sum(found.values())

    def test_heads_and_blocks_that_do_not_divide_are_counted(self):
        sizes = [1, 2, 3]
        answer = search(served("llama-3.1-8b", count=3), requests_per_replica=sizes)
        # 32 heads on 3 devices: the one layout with tensor 3.
        assert counts(answer)["heads"] == len(sizes)

    def test_a_precision_that_the_device_has_no_rate_for_is_counted(self):
        answer = search(served(accelerator="v100-sxm2-16gb"), weight_precisions=["bf16", "fp16"])
        assert counts(answer)["precision"] * 2 == answer["configurations"]["considered"]
        assert {point["weight_format"] for point in answer["points"]} == {"fp16"}

    def test_precisions_and_accelerators_are_searched_where_listed(self):
        accelerators = [{"source": "catalog", "id": name} for name in ("a100-sxm-80gb", "h200-sxm")]
        answer = search(
            served(),
            accelerators=accelerators,
            weight_precisions=["bf16", "fp8"],
            kv_cache_precisions=["bf16", "fp8"],
        )
        # Faster in compute and memory, and as narrow as it may be.
        assert {point["accelerator_id"] for point in answer["points"]} == {"h200-sxm"}
        assert {point["weight_format"] for point in answer["points"]} == {"fp8"}
        assert {point["kv_cache_precision"] for point in answer["points"]} == {"fp8"}

    def test_requests_at_a_time_of_the_workload_are_not_used(self):
        answer = search(served(concurrency=7))
        assert [warning["pointer"] for warning in answer["warnings"] if warning["code"] == "NOT_USED"] == [
            "/workload/concurrency"
        ]

    def test_what_is_not_known_is_a_gap(self):
        bare = {**served(), "model": {"source": "parameter_count", "parameter_count": 10**10}}
        assert gaps(search(bare)) == {"/points": "ARCHITECTURE_REQUIRED"}
        card = {"source": "specification", "specification": {"peak_flops_per_second": {"bf16": 1e14}}}
        unknown = {**served(), "cluster": {"accelerator": card}}
        assert gaps(search(unknown)) == {"/points": "BANDWIDTH_UNKNOWN"}
        assert gaps(search(served("bert-base"))) == {"/points": "NOT_APPLICABLE"}
        assert gaps(search(served(output_tokens=1))) == {"/points": "NOT_APPLICABLE"}
        side = {"parallelism": {"tensor": 2}, "replicas": 1}
        apart = served(disaggregated={"prefill": side, "decode": side})
        assert gaps(search(apart)) == {"/points": "NOT_MODELLED"}


class TestRefusals:
    def test_a_search_has_a_size(self):
        sizes = list(range(1, 4001))
        precisions = ["fp32", "fp16", "bf16", "fp8", "int8"]
        found = refusal(served(count=8), requests_per_replica=sizes, kv_cache_precisions=precisions)
        assert found == ("SEARCH_TOO_LARGE", "/search/requests_per_replica")
        assert refusal(served(count=720_720)) == ("SEARCH_TOO_LARGE", "/cluster/accelerator_count")

    def test_an_unknown_accelerator_is_named_where_it_stands(self):
        names = ["h100-sxm", "nothing"]
        accelerators = [{"source": "catalog", "id": name} for name in names]
        found = refusal(served(), accelerators=accelerators)
        assert found == ("UNKNOWN_REFERENCE", "/search/accelerators/1/id")


class TestRoute:
    def test_over_http_the_answer_is_the_same(self, reader):
        response = reader.post(URL, EXAMPLE)
        assert response.status_code == 200
        answer, direct = response.json(), search(EXAMPLE)
        for one in (answer, direct):
            one["evidence"]["catalog_revision"] = 0
        assert answer == direct

    def test_a_refusal_is_a_problem_that_names_the_field(self, reader):
        refused = reader.post(URL, served(count=720_720))
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/cluster/accelerator_count"

    def test_a_search_leaves_the_event_loop(self, reader, monkeypatch):
        threads = []

        def noting(question, catalog):
            threads.append(threading.current_thread().name)
            return estimate_frontier(question, catalog)

        monkeypatch.setattr(router.frontier, "estimate_frontier", noting)
        assert reader.post(URL, EXAMPLE).status_code == 200
        assert threads == ["searches"]
