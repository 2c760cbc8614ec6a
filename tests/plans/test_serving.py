"""Configurations of a service: the fewest replicas of each, by the figures of single estimates."""

import json
from itertools import pairwise, product

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from service.planning.errors import PlanningError
from service.plans.serving import build_workload, search_services, split_services
from service.plans.space import KeptConfiguration
from service.schemas.plan_answers import PlanConstraint, PruningRule
from tests.asking import ask, shipped
from tests.calibrated import a_set, with_sets
from tests.plans.served import asking, carried, fewest_alone, machine, searched, space_of

LOADS = st.one_of(
    st.builds(lambda requests: {"concurrency": requests}, st.integers(1, 300)),
    st.builds(lambda rate: {"request_rate_per_second": rate}, st.floats(0.1, 60.0)),
)
LEVELS = st.fixed_dictionaries(
    {"percentile": st.sampled_from([50.0, 80.0, 90.0, 99.0])},
    optional={
        "time_to_first_token_seconds": st.sampled_from([0.1, 0.5, 2.0]),
        "time_per_output_token_seconds": st.sampled_from([0.008, 0.015, 0.03]),
        "request_seconds": st.sampled_from([3.0, 8.0]),
    },
).filter(lambda levels: len(levels) > 1)
ENGINES = st.sampled_from(
    [
        None,
        {"name": "vllm"},
        {"name": "sglang"},
        {"name": "vllm", "max_num_seqs": 24},
        {"name": "transformers"},
    ]
)


def layout_of(kept):
    """Its replica, as a question has it."""
    layout = dict(kept.parallelism)
    return {**layout, "data": layout["expert"]}


def key(layout, settings):
    return json.dumps([layout, settings], sort_keys=True)


def conserved(outcome):
    """Whether every configuration is feasible, ruled out or pruned."""
    decided = sum(outcome.ruled_out.values()) + sum(outcome.pruned.values())
    return outcome.considered == outcome.feasible + decided and outcome.feasible == len(outcome.kept)


def levelled(levels, engine):
    given = {} if levels is None else {"service_levels": levels}
    return given if engine is None else {**given, "engine": engine}


class TestFewest:
    @settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
    @given(
        # Pairs on a bridge, wires of a mesh, a switch, cards on PCI Express.
        accelerator=st.sampled_from(["h100-sxm", "h100-nvl", "mi300x", "l40s"]),
        most=st.sampled_from([2, 6, 8]),
        model=st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b"]),
        load=LOADS,
        levels=st.one_of(st.none(), LEVELS),
        engine=ENGINES,
        outputs=st.sampled_from([1, 60, {"distribution": "lognormal", "mean_tokens": 200.0, "sigma": 0.8}]),
    )
    def test_it_is_what_asking_for_each_number_alone_finds(
        self, *, accelerator, most, model, load, levels, engine, outputs
    ):
        tensor, expert = (1, 4), (1, 2) if model.startswith("qwen") else (1,)
        space = space_of(
            [machine(accelerator, most)],
            model=model,
            search={"tensor": [*tensor], "expert": [*expert], "weight_precisions": ["bf16", "int8"]},
            input_tokens=1000,
            output_tokens=outputs,
            **load,
            **levelled(levels, engine),
        )
        outcome = searched(space)
        assert conserved(outcome)
        found = {key(layout_of(kept), dict(kept.workload)): kept for kept in outcome.kept}
        asked = 0
        for width, ranks, precision in product(tensor, expert, ("bf16", "int8")):
            for cut in {1, width} if len(expert) > 1 else {width}:
                layout = {"tensor": width, "pipeline": 1, "data": ranks, "expert": ranks}
                layout |= {} if cut == width else {"expert_tensor": cut}
                kept = found.get(key(layout, {"weight_precision": precision}))
                alone = fewest_alone(space, 0, layout, weight_precision=precision)
                asked += 1
                assert (kept is None) is (alone is None)
                if alone is not None:
                    replicas, answer = alone
                    assert kept.accelerator_count == replicas * width * ranks
                    assert kept.parallelism["data"] == replicas * ranks
                    assert kept.seconds == pytest.approx(answer["request_seconds"]["value"], rel=1e-9)
                    power = answer["power_per_device_watts"]["value"]
                    assert kept.watts == pytest.approx(power, rel=1e-9)
        assert outcome.considered == asked

    def test_the_serving_question_of_the_frontier(self):
        """37 requests at a time, on two replicas of four devices: the worked number of plans."""
        levels = {"time_to_first_token_seconds": 1.0, "time_per_output_token_seconds": 0.03}
        workload = {"input_tokens": 4000, "output_tokens": 500, "service_levels": levels}
        workload["engine"] = {"name": "of our own"}
        machines = [machine("h200-sxm", 8)]
        (kept,) = searched(space_of(machines, model="llama-3.1-70b", concurrency=37, **workload)).kept
        assert kept.parallelism == {"tensor": 4, "pipeline": 1, "data": 2, "expert": 1}
        one_more = searched(space_of(machines, model="llama-3.1-70b", concurrency=38, **workload))
        assert not one_more.kept

    def test_a_larger_load_never_takes_fewer_devices(self):
        def devices(rate):
            space = space_of([machine("h100-sxm", 4000)], request_rate_per_second=rate)
            return {key(layout_of(each), {}): each.accelerator_count for each in searched(space).kept}

        found = [devices(rate) for rate in (1.0, 30.0, 1000.0, 6000.0)]
        assert all(found[0].keys() >= more.keys() for more in found)
        for less, more in pairwise(found):
            assert all(less[layout] <= count for layout, count in more.items())
        assert min(found[-1].values()) > 100

    def test_of_a_trace_each_replica_takes_its_part(self):
        times = [float(second) + 0.1 * (second % 3) for second in range(40)]
        space = space_of(
            [machine("l40s", 4)],
            search={"tensor": [1]},
            arrivals={"process": "trace", "at_seconds": times},
            service_levels={"request_seconds": 9.5},
        )
        (kept,) = searched(space).kept
        replicas, answer = fewest_alone(space, 0, layout_of(kept))
        assert kept.accelerator_count == replicas == 2
        assert kept.seconds == pytest.approx(answer["request_seconds"]["value"], rel=1e-9)

    def test_a_run_lasts_until_its_horizon(self):
        loads = {"concurrency": 30, "horizon": {"total_requests": 500}}
        space = space_of([machine("h100-sxm", 8)], search={"tensor": [2]}, **loads)
        (kept,) = searched(space).kept
        asked = asking(space, 0, layout_of(kept), kept.parallelism["data"])
        answer = ask(shipped(), "throughput", asked)
        assert kept.lasting_seconds == pytest.approx(answer["duration_seconds"]["value"], rel=1e-9)
        (endless,) = searched(space_of([machine("h100-sxm", 8)], search={"tensor": [2]}, concurrency=30)).kept
        assert endless.lasting_seconds is None

    def test_devices_that_were_measured_are_searched_as_they_were_measured(self):
        slow = with_sets(shipped(), a_set(shipped(), "h100-sxm", streaming=0.6, matrices=0.6))
        given = {"request_rate_per_second": 100.0, "search": {"tensor": [1]}}
        machines = [machine("h100-sxm", 64, node_id="node-1")]
        (measured,) = searched(space_of(machines, catalog=slow, **given)).kept
        (expected,) = searched(space_of([machine("h100-sxm", 64)], **given)).kept
        assert measured.accelerator_count > expected.accelerator_count
        space = space_of(machines, catalog=slow, **given)
        replicas, _ = fewest_alone(space, 0, layout_of(measured), catalog=slow)
        assert measured.accelerator_count == replicas


class TestPruning:
    @settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
    @given(
        model=st.sampled_from(["llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b"]),
        accelerator=st.sampled_from(["h100-sxm", "l4", "a100-sxm-80gb"]),
        rule=st.sampled_from([PruningRule.STATE, PruningRule.LEVELS]),
        load=LOADS,
        levels=LEVELS,
        engine=ENGINES,
        outputs=st.sampled_from(
            [1, 2, 300, {"distribution": "histogram", "tokens": [1, 500], "weights": [1, 1]}]
        ),
    )
    def test_no_rule_changes_what_is_kept(self, *, model, accelerator, rule, load, levels, engine, outputs):
        space = space_of(
            [machine(accelerator, 64)],
            model=model,
            search={"expert": [1, 8]},
            output_tokens=outputs,
            **load,
            **levelled(levels, engine),
        )
        every, others = searched(space), searched(space, [each for each in PruningRule if each is not rule])
        assert conserved(others)
        assert others.kept == every.kept
        assert rule not in others.pruned
        assert every.considered == others.considered

    def test_a_level_is_tried_on_each_way_that_devices_are_joined(self):
        """Four cards on a bridge are faster than four of eight, which PCI Express joins."""
        levels = {"time_per_output_token_seconds": 0.00957}
        space = space_of(
            [machine("h200-nvl", 8)],
            model="llama-3.1-70b",
            search={"tensor": [4], "weight_precisions": ["fp8"]},
            input_tokens=100,
            output_tokens=50,
            request_rate_per_second=0.01,
            service_levels=levels,
        )
        outcome = searched(space)
        assert [each.accelerator_count for each in outcome.kept] == [4]

    def test_weights_that_are_larger_than_a_device_are_pruned(self):
        space = space_of([machine("l4", 8)], model="llama-3.1-70b", concurrency=1)
        outcome = searched(space)
        # 141 GB over 8 devices of 23.7 GB.
        assert outcome.pruned == {PruningRule.STATE: 3}
        assert [each.parallelism["tensor"] for each in outcome.kept] == [8]

    def test_a_level_below_one_iteration_is_pruned_at_any_load(self):
        levels = {"time_per_output_token_seconds": 0.001}
        space = space_of([machine("h100-sxm", 16_384)], request_rate_per_second=1.0, service_levels=levels)
        outcome = searched(space)
        assert outcome.pruned == {PruningRule.LEVELS: outcome.considered}
        assert outcome.scored == 0


class TestConstraints:
    def outcome(self, machines=(), search=None, **workload):
        space = space_of(machines or [machine("h100-sxm", 8)], search=search, **workload)
        outcome = searched(space)
        assert conserved(outcome)
        return outcome

    def test_each_is_counted(self):
        outcome = self.outcome(
            search={"tensor": [1, 3, 16], "pipeline": [1, 40]}, request_rate_per_second=1.0
        )
        assert outcome.ruled_out == {PlanConstraint.DEVICES: 4, PlanConstraint.HEADS: 1}
        outcome = self.outcome(
            [machine("h100-sxm", 64)],
            search={"tensor": [1, 16], "pipeline": [1, 40]},
            request_rate_per_second=1.0,
        )
        assert outcome.ruled_out == {
            PlanConstraint.DEVICES: 1,
            PlanConstraint.BLOCKS: 1,
            PlanConstraint.LINK: 1,
        }

    def test_groups_lie_on_one_fast_link(self):
        alone = [machine("h100-sxm", 64, accelerators_per_node=1)]
        outcome = self.outcome(alone, {"tensor": [1, 2]}, request_rate_per_second=10.0)
        assert outcome.ruled_out == {PlanConstraint.LINK: 1}
        assert [each.parallelism["tensor"] for each in outcome.kept] == [1]
        assert self.outcome(alone, {}, request_rate_per_second=10.0).considered == 1

    def test_groups_that_do_not_divide_a_node_stay_in_one(self):
        nodes = [machine("h100-sxm", 64, accelerators_per_node=6)]
        few = self.outcome(nodes, {"tensor": [4]}, request_rate_per_second=1.0)
        assert [each.accelerator_count for each in few.kept] == [4]
        many = self.outcome(nodes, {"tensor": [4]}, request_rate_per_second=200.0)
        assert many.ruled_out == {PlanConstraint.SERVICE_LEVEL: 1}
        whole = self.outcome(nodes, {"tensor": [2]}, request_rate_per_second=200.0)
        assert len(whole.kept) == 1

    def test_a_precision_without_a_rate(self):
        search = {"tensor": [1], "weight_precisions": ["bf16", "fp16"]}
        outcome = self.outcome([machine("v100-sxm2-32gb", 8)], search, request_rate_per_second=1.0)
        assert outcome.ruled_out == {PlanConstraint.PRECISION: 1}
        assert [dict(each.workload) for each in outcome.kept] == [{"weight_precision": "fp16"}]

    def test_experts_that_do_not_divide(self):
        outcome = self.outcome(
            [machine("h100-sxm", 8)],
            {"tensor": [1], "expert": [3]},
            model="qwen3-30b-a3b",
            request_rate_per_second=1.0,
        )
        assert outcome.ruled_out == {PlanConstraint.EXPERTS: 1}

    def test_requests_that_find_no_room_on_all_devices(self):
        outcome = self.outcome(search={"tensor": [1]}, concurrency=100_000)
        assert outcome.ruled_out == {PlanConstraint.MEMORY: 1}
        engine = {"name": "vllm", "max_num_seqs": 4}
        outcome = self.outcome(search={"tensor": [1]}, concurrency=33, engine=engine)
        assert outcome.ruled_out == {PlanConstraint.ENGINE: 1}
        outcome = self.outcome(search={"tensor": [1]}, concurrency=32, engine=engine)
        assert [each.accelerator_count for each in outcome.kept] == [8]

    def test_more_than_all_devices_can_serve(self):
        outcome = self.outcome(search={"tensor": [1]}, request_rate_per_second=10_000.0)
        assert outcome.ruled_out == {PlanConstraint.SERVICE_LEVEL: 1}
        assert outcome.scored == 1

    def test_a_model_that_needs_more_than_a_node_has_stages_of_whole_nodes(self):
        search = {"weight_precisions": ["bf16"]}
        given = {"model": "llama-3.1-405b", "search": search, "request_rate_per_second": 0.2}
        outcome = self.outcome([machine("h100-sxm", 64)], **given)
        assert {each.parallelism["pipeline"] for each in outcome.kept} >= {2, 4}
        few = self.outcome([machine("h100-sxm", 8)], **given)
        assert few.considered == few.pruned[PruningRule.STATE] == 4
        small = self.outcome([machine("h200-sxm", 64)], **given)
        assert {each.parallelism["pipeline"] for each in small.kept} == {1}


class TestKept:
    def test_it_applies_to_the_workload(self):
        search = {
            "tensor": [1],
            "weight_formats": ["awq_int4_g128"],
            "weight_precisions": ["fp8"],
            "kv_cache_precisions": ["fp8"],
        }
        space = space_of([machine("h100-sxm", 8)], search=search, request_rate_per_second=1.0)
        outcome = searched(space)
        assert len(outcome.kept) == 2
        for kept in outcome.kept:
            assert json.loads(json.dumps(dict(kept.workload))) == kept.workload
            workload = build_workload(space.question.workload, kept)
            settings = workload.model_dump(mode="json")
            assert {name: settings[name] for name in kept.workload} == kept.workload
            assert settings["kv_cache_precision"] == "fp8"
            assert ("weight_format" in settings) is not ("weight_precision" in settings)
            asked = asking(space, 0, layout_of(kept), kept.parallelism["data"], **kept.workload)
            answer = carried(asked)
            assert answer["request_seconds"]["value"] == pytest.approx(kept.seconds, rel=1e-9)

    def test_what_the_search_does_not_set_stays(self):
        space = space_of([machine("h100-sxm", 8)], weight_precision="fp8", request_rate_per_second=1.0)
        kept = KeptConfiguration(0, {}, {}, 1.0)
        assert build_workload(space.question.workload, kept) == space.question.workload


class TestPieces:
    def test_they_are_all_of_the_space_once(self):
        machines = [machine("h200-sxm", 256), machine("b200-sxm", 512)]
        space = space_of(
            machines, model="deepseek-v3", weight_format="fp8_block_128", request_rate_per_second=5.0
        )
        parts = split_services(space)
        assert parts == split_services(space)
        assert len(parts) == 2
        seen = [
            (place, number)
            for each in parts
            for place, *ends in each.part["ranges"]
            for number in range(*ends)
        ]
        assert len(seen) == len(set(seen)) == sum(each.candidates for each in parts)
        assert {place for place, _ in seen} == {0, 1}
        assert search_services(space, parts[1]).considered == parts[1].candidates

    def test_a_search_has_a_size(self):
        space = space_of([machine("h100-sxm", 8)], search={"tensor": [1, 2, 4, 8]}, concurrency=1)
        few = space._replace(question=space.question.model_copy(update={"most_candidates": 3}))
        assert refusal(few) == ("SEARCH_TOO_LARGE", "/search/serving/tensor")
        many = list(range(1, 65))
        search = {"tensor": many, "pipeline": many, "expert": many, "expert_tensor": many}
        space = space_of([machine("h100-sxm", 8)], search=search, model="qwen3-30b-a3b", concurrency=1)
        assert refusal(space)[0] == "SEARCH_TOO_LARGE"

    @pytest.mark.parametrize(
        ("members", "found"),
        [
            ({}, ("LOAD_REQUIRED", "/workload/request_rate_per_second")),
            (
                {"concurrency": 1, "request_rate_per_second": 1.0},
                ("LOAD_CONFLICT", "/workload/request_rate_per_second"),
            ),
            ({"concurrency": 1, "service_levels": {}}, ("LEVELS_REQUIRED", "/workload/service_levels")),
            ({"concurrency": 1, "passes": {}}, ("NOT_MODELLED", "/workload/passes")),
            (
                {
                    "concurrency": 1,
                    "disaggregated": {
                        "prefill": {"parallelism": {}, "replicas": 1},
                        "decode": {"parallelism": {}, "replicas": 1},
                    },
                },
                ("NOT_MODELLED", "/workload/disaggregated"),
            ),
            ({"concurrency": 1, "model": "bert-base"}, ("NOT_MODELLED", "/model")),
            (
                {"concurrency": 1, "model": {"source": "parameter_count", "parameter_count": 10**9}},
                ("ARCHITECTURE_REQUIRED", "/model"),
            ),
        ],
    )
    def test_what_is_no_service_under_a_load_is_refused(self, members, found):
        assert refusal(space_of([machine("h100-sxm", 8)], **members)) == found


def refusal(space):
    with pytest.raises(PlanningError) as caught:
        split_services(space)
    assert caught.value.detail
    return caught.value.code, caught.value.pointer
