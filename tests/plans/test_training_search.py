"""The search of training runs: its figures are those of estimates, and it leaves out nothing better."""

import json
import random
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.estimates.memory import estimate_memory
from service.estimates.rates import plan_run
from service.evidence.service import known_rows
from service.planning.errors import PlanningError
from service.planning.estimates.layouts import TrainingLayouts
from service.planning.estimates.power import estimate_draw
from service.planning.search import PROOFS, FoundLayout, SearchShape
from service.planning.search.layouts import apply_batch_size, build_grid, expand_interleaved, match_choice
from service.planning.search.shapes import apply_rules
from service.plans import training
from service.plans.search import build_workload, merge_outcomes, search_space, select_best, split_search
from service.plans.space import KeptConfiguration
from service.resolve.calibrated import apply_calibrations
from service.resolve.open_training import resolve_open_training
from service.resolve.own_runs import apply_own_runs
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest
from service.schemas.plan_answers import PlanConstraint, PruningRule
from tests.asking import shipped, usd
from tests.calibrated import a_set, with_sets
from tests.planning.test_local_evidence import DEVIATIONS
from tests.plans.spaces import WORK, space
from tests.resolve.test_own_runs import FAMILIES, measured


def found(of, **changed):
    """The outcome of a whole space."""
    parts = [training.search_training(of, piece, **changed) for piece in training.split_training(of)]
    return merge_outcomes(parts, of.question.search.depth)


def body(of, kept):
    """The question that a single estimate of a configuration answers."""
    workload = build_workload(of.question.workload, kept)
    return {
        "model": json.loads(of.question.model.model_dump_json()),
        "cluster": json.loads(of.clusters[kept.cluster].model_dump_json()),
        "workload": json.loads(workload.model_dump_json()),
        "parallelism": dict(kept.parallelism),
    }


def alone(of, asked):
    """Productive seconds, watts, bytes and verdict of a configuration by single estimates."""
    catalog = apply_own_runs(of.catalog, known_rows())
    question = ThroughputEstimateRequest.model_validate_json(json.dumps(asked))
    view = apply_calibrations(catalog, question.cluster)
    run = plan_run(question, view)
    draw = estimate_draw(run)
    held = estimate_memory(MemoryEstimateRequest.model_validate_json(json.dumps(asked)), catalog)
    return (
        run.interruptions.productive.value,
        None if draw is None else draw.watts.value,
        held["per_device"]["total_bytes"]["value"],
        held.get("headroom_bytes", 0) >= of.headroom_share * held.get("usable_bytes", 0),
    )


# --- the same figures -------------------------------------------------------------------------------------

OWN_RUN = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
    "workload": {"kind": "training", "sequence_length": 4096, "global_batch_size": 64, "micro_batch_size": 2},
    "parallelism": {
        "tensor": 2,
        "pipeline": 2,
        "sequence_parallel": True,
        "sharding": "zero_1",
        "pipeline_schedule": "one_f_one_b",
    },
}


@cache
def measured_catalog():
    """A tenant with a calibrated device, a step slower than estimated and a memory that was fuller."""
    seen = with_sets(shipped(), a_set(shipped(), "h100-sxm", streaming=0.9, matrices=0.93))
    answers = (
        measured(OWN_RUN, "training_step", 1.3),
        measured(OWN_RUN, "training_memory", 1.1, "memory"),
    )
    curves = replace(seen.curves, deviations=dict.fromkeys(FAMILIES, DEVIATIONS))
    return replace(seen, measured_answers=answers, curves=curves)


FED = {
    "stored_bytes_per_sample": 2e6,
    "storage_bandwidth_bytes_per_second": 2e7,
    "node_bandwidth_bytes_per_second": 4e6,
    "preprocessing_seconds_per_sample": 0.4,
}
WORKLOADS = {
    "plain": {},
    "fed": {"data_pipeline": FED, "framework": {"name": "torchtitan"}},
    "serially fed": {"data_pipeline": {**FED, "prefetch": False}, "total_tokens": None, "total_steps": 900},
    "compressed": {"gradient_compression": {"kind": "power_sgd"}},
    "generated": {"objective": "grpo", "framework": {"name": "megatron_lm"}},
    "ahead": {
        "objective": "ppo",
        "rollout": {"placement": "separate", "accelerator_count": 8, "asynchronous": True},
    },
    "paired": {"objective": "dpo", "offload": {"optimizer": "cpu", "activations": "cpu"}},
    "adapted": {"adaptation": {"kind": "qlora"}, "framework": {"name": "litgpt"}},
    "narrow": {"precision": "fp8_delayed", "framework": {"name": "megatron_core"}},
    "stored scores": {"attention": "standard", "optimizer": "muon", "framework": {"name": "fsdp"}},
}
CASES = [
    *(("llama-3.1-8b", name, False) for name in WORKLOADS),
    ("mixtral-8x7b", "plain", False),
    ("mixtral-8x7b", "narrow", True),
    ("llama-3.1-8b", "plain", True),
    ("llama-3.1-8b", "fed", True),
]
EVERYTHING = {
    "shardings": ["none", "zero_1", "zero_2", "zero_3", "hybrid"],
    "sharding_group_sizes": [2],
    "pipeline_schedules": ["gpipe", "one_f_one_b", "interleaved", "zero_bubble"],
    "sequence_parallel": [True, False],
    "context": [1, 2],
    "micro_batch_sizes": [1, 2],
    "recomputations": [
        {"strategy": "none"},
        {"strategy": "selective"},
        {"strategy": "full"},
        {"strategy": "sqrt"},
        {"strategy": "every_k", "k": 3},
    ],
}


def sampled(of, chosen, choices):
    """A few of the layouts that the rules allow, of some choices: each as an array of several clusters."""
    [alike] = training._group_clusters(of)
    options = training._build_options(of, alike.per_node)
    batch = of.question.workload.global_batch_size
    shape = SearchShape(of.model.profile, of.question.workload.sequence_length, batch, alike.domain)
    every = apply_batch_size(build_grid(alike.many, options), batch)
    for choice in chosen.sample(list(options.list_choices()), choices):
        layouts = expand_interleaved(every.select_rows(match_choice(every, choice, options)), choice, options)
        layouts = layouts.select_rows(apply_rules(layouts, choice, shape)[0])
        if layouts:
            some = chosen.sample(range(layouts.number), min(3, layouts.number))
            yield alike.precisions[0], choice, layouts.select_rows(np.array(sorted(some)))


@pytest.mark.parametrize(("model", "name", "is_measured"), CASES)
def test_layouts_at_once_have_the_figures_of_single_estimates(model, name, is_measured):
    catalog = measured_catalog() if is_measured else shipped()
    work = {key: value for key, value in (WORK | WORKLOADS[name]).items() if value is not None}
    apart = work.get("rollout", {}).get("accelerator_count", 0)
    counts = [16 + apart] if "objective" in work else [16, 24, 64]
    of = space(
        ("h100-sxm", 64),
        model=model,
        catalog=catalog,
        counts=counts,
        goal="pareto",
        work=work,
        replaced=True,
        **EVERYTHING,
    )
    run = resolve_open_training(
        of.model, of.question.workload, of.clusters[-1], apply_own_runs(catalog, known_rows())
    )
    subject = TrainingLayouts(run, weighs_power=True)
    compared = 0
    for precision, choice, layouts in sampled(of, random.Random(name), 5):  # noqa: S311 - a sample
        seconds, watts = subject.estimate_runs(layouts, choice)
        held = subject.estimate_bytes(layouts, choice)
        for entry in range(layouts.number):
            one = FoundLayout(
                choice, layouts.select_rows(slice(entry, entry + 1)), seconds[entry], watts[entry]
            )
            expected = alone(of, body(of, training._build_kept(one, precision)))
            assert (seconds[entry], watts[entry]) == pytest.approx(expected[:2], rel=1e-9)
            # An answered memory is a sum of whole bytes.
            assert held[entry] == pytest.approx(expected[2], rel=1e-9, abs=8.0)
            compared += 1
        # The proofs hold.
        assert np.all(subject.compute_least_seconds(layouts, choice) <= seconds)
        assert np.all(subject.compute_least_bytes(layouts, choice) <= held)
    assert compared >= 4


def test_a_layout_of_an_own_run_is_known_again():
    """Of it the run says more than of its neighbours; both as single estimates have it."""
    of = space(
        ("h100-sxm", 16), counts=[16], catalog=measured_catalog(), goal="pareto", depth=100, tensor=[2],
        pipeline=[1, 2, 4], shardings=["zero_1"], micro_batch_sizes=[2],
        recomputations=[{"strategy": "none"}],
        pipeline_schedules=["one_f_one_b"],
    )  # fmt: skip
    outcome = found(of)
    assert {kept.parallelism["pipeline"] for kept in outcome.kept} == {1, 2, 4}
    plain = {
        kept.parallelism["pipeline"]: kept.seconds
        for kept in found(of._replace(catalog=replace(of.catalog, measured_answers=()))).kept
    }
    factors = {}
    for kept in outcome.kept:
        assert kept.seconds == pytest.approx(alone(of, body(of, kept))[0], rel=1e-9)
        factors[kept.parallelism["pipeline"]] = kept.seconds / plain[kept.parallelism["pipeline"]]
    assert factors[2] > factors[1] * 1.001
    assert factors[1] == pytest.approx(factors[4], rel=1e-9)


def test_a_device_without_a_bandwidth_is_timed_by_its_share_of_the_peak():
    specification = {"name": "own", "peak_flops_per_second": {"bf16": 4e14}, "memory_bytes": 80 * 10**9}
    device = {
        "name": "own",
        "cluster": {
            "accelerator": {"source": "specification", "specification": specification},
            "accelerator_count": 16,
            "intra_node_link": {"source": "catalog", "id": "nvlink-4"},
            "inter_node_link": {"source": "catalog", "id": "infiniband-ndr"},
        },
        "rental": {"price_per_device_hour": usd("1")},
    }
    of = space(device, counts=[16], depth=30)
    for kept in found(of).kept:
        assert kept.seconds == pytest.approx(alone(of, body(of, kept))[0], rel=1e-9)
    moved = space(device, counts=[16], work={"offload": {"optimizer": "cpu"}})
    outcome = found(moved)
    assert outcome.ruled_out == {PlanConstraint.PRECISION: outcome.considered}


# --- the best ---------------------------------------------------------------------------------------------


def every_layout(devices, blocks, heads):
    """Every layout of practice on some devices, made up without the search."""
    for tensor, pipeline in product((1, 2, 4, 8), range(1, devices + 1)):
        if devices % (tensor * pipeline) or heads % tensor:
            continue
        data = devices // (tensor * pipeline)
        schedules = [("one_f_one_b", 1)]
        if pipeline > 1:
            schedules += [("interleaved", parts) for parts in (2, 4) if pipeline * parts <= blocks + 2]
        for sharding in ("none", "zero_1", "zero_3") if data > 1 else ("none",):
            for schedule, parts in schedules:
                yield {
                    "tensor": tensor,
                    "pipeline": pipeline,
                    "data": data,
                    "sequence_parallel": tensor > 1,
                    "sharding": sharding,
                    "pipeline_schedule": schedule,
                    "virtual_stages": parts,
                }


@pytest.mark.parametrize("goal", ["cheapest", "pareto"])
def test_of_a_small_space_the_best_are_found(goal):
    """Against single estimates of every configuration, one after the other."""
    again = [{"strategy": "none"}, {"strategy": "full"}]
    of = space(
        ("h100-sxm", 8), counts=[8], goal=goal, micro_batch_sizes=[1, 2], recomputations=again, depth=3
    )
    profile = of.model.profile
    figures = []
    for layout, size, again in product(
        every_layout(8, profile.block_count, profile.attention[0].query_heads), (1, 2), ("none", "full")
    ):
        steps, rest = divmod(64, size * layout["data"])
        if rest or (layout["virtual_stages"] > 1 and steps % layout["pipeline"]):
            continue
        workload = {
            "micro_batch_size": size,
            "gradient_accumulation_steps": steps,
            "precision": "bf16",
            "recomputation": {"strategy": again},
        }
        seconds, watts, _, fits = alone(of, body(of, KeptConfiguration(0, layout, workload, 0.0)))
        if fits:
            figures.append((seconds, watts if goal == "pareto" else 0.0))
    figures.sort()
    best = [
        one for place, one in enumerate(figures) if sum(other[1] <= one[1] for other in figures[:place]) < 3
    ]
    outcome = found(of)
    assert outcome.feasible + outcome.pruned.get(PruningRule.ROOFLINE, 0) == len(figures) > 50
    measures = [(kept.seconds, kept.watts or 0.0) for kept in outcome.kept]
    assert np.array(measures) == pytest.approx(np.array(best), rel=1e-9)


def random_space(seed):
    """Tens of thousands of candidates on clusters of two kinds of devices, some of them too small."""
    chosen = random.Random(seed)  # noqa: S311 - a sample
    first, second = chosen.sample(["h100-sxm", "a100-sxm-80gb", "b200-sxm", "l40s", "mi300x"], 2)
    return space(
        (first, 1024),
        (second, 1024),
        model=chosen.choice(["llama-3.1-70b", "llama-3.1-8b", "mixtral-8x7b", "qwen3-32b"]),
        counts=chosen.sample([64, 96, 128, 192, 256, 384, 512, 768, 1024], 3),
        work={
            "global_batch_size": chosen.choice([768, 1024, 1536, 3072]),
            "sequence_length": chosen.choice([4096, 8192, 32_768]),
            "framework": {"name": chosen.choice(["megatron_core", "torchtitan", "fsdp", "deepspeed"])},
        },
        shardings=chosen.sample(["none", "zero_1", "zero_2", "zero_3"], 3),
        pipeline_schedules=["one_f_one_b", chosen.choice(["interleaved", "zero_bubble", "gpipe"])],
        context=[1],
        expert=[1, 4],
        sequence_parallel=[True, False],
        micro_batch_sizes=[1, 2, 3, 4, 6, 8],
        recomputations=EVERYTHING["recomputations"],
        depth=chosen.choice([1, 5, 20]),
    )


def test_what_proofs_leave_out_changes_nothing():
    """In a random space, against the same with all of its candidates worked out."""
    of = random_space(6)
    pruned, unpruned = found(of), found(of, proofs=frozenset())
    assert pruned.considered == unpruned.considered > 30_000
    assert pruned.kept == unpruned.kept
    assert pruned.kept
    assert not unpruned.pruned
    assert pruned.pruned.total() > 1000
    for outcome in (pruned, unpruned):
        decided = outcome.ruled_out.total() + outcome.pruned.total() + outcome.feasible
        assert decided == outcome.considered


@pytest.mark.parametrize("bound", sorted(PROOFS))
def test_without_a_bound_the_answer_is_the_same(bound):
    """Each of them decides some of this space, and none of the others does all that it does."""
    of = tight_space()
    every, without = found(of), found(of, proofs=PROOFS - {bound})
    assert every.pruned[PruningRule(bound)] > 0
    assert without.pruned[PruningRule(bound)] == 0
    assert without.kept == every.kept
    assert without.considered == every.considered


def tight_space():
    """A run that hurries, of a model that is large for its devices."""
    of = space(
        ("h100-sxm", 64), model="llama-3.1-70b", counts=[8, 32, 64], depth=2,
        work={"framework": {"name": "megatron_core"}, "global_batch_size": 512},
        micro_batch_sizes=[1, 2, 4, 8, 16, 32], recomputations=[{"strategy": "none"}, {"strategy": "full"}],
        sequence_parallel=[True, False],
    )  # fmt: skip
    constraints = of.question.constraints.model_copy(update={"duration_seconds": 1e5})
    return of._replace(question=of.question.model_copy(update={"constraints": constraints}))


def test_pieces_of_any_size_in_any_order_are_the_whole(monkeypatch):
    """A piece may be some clusters, or a part of one."""
    of = space(
        ("h100-sxm", 64), counts=[8, 32, 64], depth=4, goal="pareto", shardings=["zero_1"],
        recomputations=[{"strategy": "none"}, {"strategy": "full"}],
    )  # fmt: skip
    whole = found(of)
    monkeypatch.setattr(training, "PIECE", 300)
    parts = split_search(of)
    assert {len(piece.part["clusters"]) for piece in parts} == {1}
    assert len(parts) > 3
    assert all(json.loads(json.dumps(piece.part)) == piece.part for piece in parts)
    outcomes = [search_space(of, piece) for piece in parts]
    again = merge_outcomes(reversed(outcomes), 4)
    assert again.kept == whole.kept
    assert again.considered == whole.considered == sum(piece.candidates for piece in parts)
    assert merge_outcomes([again], 4) == again


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_parts_that_are_thinned_first_leave_the_same(measures, depth, parts):
    kept = [
        KeptConfiguration(0, {"tensor": place}, {}, float(seconds), float(watts))
        for place, (seconds, watts) in enumerate(measures)
    ]
    whole = select_best(kept, depth)
    thinned = [one for first in range(parts) for one in select_best(kept[first::parts], depth)]
    assert select_best(thinned, depth) == whole
    for one in kept:
        betters = [
            other
            for other in kept
            if other.seconds <= one.seconds and other.watts <= one.watts and other is not one
            if (other.seconds, other.watts) != (one.seconds, one.watts)
            or other.parallelism["tensor"] < one.parallelism["tensor"]
        ]
        assert (one in whole) == (len(betters) < depth)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "varied", "code", "pointer"),
    [
        ({"global_batch_size": None}, {}, "BATCH_REQUIRED", "/workload/global_batch_size"),
        ({"total_tokens": None}, {}, "TOTAL_REQUIRED", "/workload/total_tokens"),
        ({}, {"virtual_stages": [2, 1]}, "VIRTUAL_STAGES", "/search/training/virtual_stages/1"),
        (
            {},
            {"recomputations": [{"strategy": "every_k"}]},
            "RECOMPUTATION_INTERVAL",
            "/search/training/recomputations/0/k",
        ),
        (
            {},
            {"micro_batch_sizes": list(range(1, 60))},
            "TOO_MANY_CANDIDATES",
            "/search/training/micro_batch_sizes",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused(work, varied, code, pointer):
    given_work = {key: value for key, value in (WORK | work).items() if value is not None}
    with pytest.raises(PlanningError) as caught:
        split_search(space(("h100-sxm", 64), work=given_work, replaced=True, most=10_000, **varied))
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


def test_a_bare_number_of_parameters_has_no_layouts():
    of = space(("h100-sxm", 8), model={"source": "parameter_count", "parameter_count": 7_000_000_000})
    with pytest.raises(PlanningError) as caught:
        split_search(of)
    assert (caught.value.code, caught.value.pointer) == ("ARCHITECTURE_REQUIRED", "/model")


def test_a_device_without_a_rate_is_counted():
    of = space(("v100-sxm2-32gb", 8), counts=[8], precisions=["bf16", "fp16"])
    outcome = found(of)
    assert outcome.ruled_out[PlanConstraint.PRECISION] == outcome.considered / 2
    assert {kept.workload["precision"] for kept in outcome.kept} == {"fp16"}


def test_each_rule_of_shape_is_counted():
    of = space(
        ("h100-sxm", 64), model="mixtral-8x7b", counts=[24, 64], work={"sequence_length": 4100},
        tensor=[1, 3, 4, 16, 32], pipeline=[1, 8, 64], expert=[1, 3, 8], context=[1, 8],
        micro_batch_sizes=[1, 5], sequence_parallel=[False],
    )  # fmt: skip
    outcome = found(of)
    shapes = {"devices", "heads", "blocks", "experts", "sequence", "batch", "link", "memory"}
    assert shapes <= {rule.value for rule in outcome.ruled_out}
    assert outcome.considered == (outcome.ruled_out.total() + outcome.pruned.total() + outcome.feasible)


def test_defaults_are_those_of_practice():
    of = space(("h100-sxm", 64), model="mixtral-8x7b", counts=[64], work={"sequence_length": 65_536})
    [alike] = training._group_clusters(of)
    [devices] = alike.many
    assert devices.tensor == (1, 2, 4, 8)
    assert devices.pipeline == (1, 2, 4, 8, 16, 32)
    assert devices.context == (1, 2, 4, 8, 16)
    assert devices.expert == (1, 2, 4, 8)
    assert alike.precisions == ("bf16",)
