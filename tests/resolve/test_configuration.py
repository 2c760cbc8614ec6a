"""A training question that leaves its layout open is laid out as a good team would lay it out."""

from contextvars import ContextVar

import pytest

from service.planning.estimates.configuration import choose_configuration
from service.resolve import configuration
from tests.asking import ask, chosen_workload, codes, question, refusal, shipped

OPERATIONS = ("memory", "throughput", "cost", "utility-bill")


def trained(model, accelerator, count, batch=1024, **workload):
    return question(
        model,
        accelerator,
        count,
        **{"sequence_length": 4096, "global_batch_size": batch, "total_tokens": 10**12, **workload},
    )


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


def mfu(answer):
    return answer["model_flops_utilization"]["value"]


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        # Touvron et al. 2023, LLaMA, section 2.3: 380 tokens/s on each of 2,048 A100 80GB, 47%.
        (trained("llama-65b", "a100-sxm-80gb", 2048, 2048, sequence_length=2048), 0.40, 0.56),
        # Narayanan et al. 2021, Efficient Large-Scale Training, table 1: 44 to 52% on A100 80GB.
        (trained("gpt-175b", "a100-sxm-80gb", 1024, 1536, sequence_length=2048), 0.40, 0.56),
        # Google, MaxText: 60 to 70% on TPU v5p and 46 to 67% on v5e for models of 8B to 128B.
        (trained("llama-3.1-8b", "tpu-v5p", 64), 0.45, 0.77),
        (trained("llama-3.1-8b", "tpu-v5e", 256), 0.38, 0.66),
    ],
    ids=lambda value: (
        value["model"]["id"] + "-" + value["cluster"]["accelerator"]["id"] if isinstance(value, dict) else ""
    ),
)
def test_published_runs_are_met_without_their_layout(asked, low, high):
    answer = ask(shipped(), "throughput", asked)
    assert low < mfu(answer) < high
    assert "DOES_NOT_FIT" not in codes(answer["warnings"])


@pytest.mark.parametrize(
    "asked",
    [
        trained("llama-3.1-405b", "h100-sxm", 2048),
        trained("llama-3.1-8b", "l40s", 8, 64),
        trained("deepseek-v3", "h800-sxm", 2048, 4096),
    ],
)
def test_the_answers_to_one_question_name_the_same_configuration(asked):
    answers = [
        ask(
            shipped(), operation, asked if operation != "memory" else {**asked, "workload": asked["workload"]}
        )
        for operation in OPERATIONS
    ]
    assert all(answer["parallelism"] == answers[0]["parallelism"] for answer in answers)
    assert all(filled(answer) == filled(answers[0]) for answer in answers)
    assert answers[0]["fits"]
    assert answers[0]["headroom_bytes"] > 0.04 * answers[0]["usable_bytes"]


def test_what_is_stated_is_kept_and_not_among_the_defaults():
    stated = {"micro_batch_size": 2, "recomputation": {"strategy": "full"}}
    answer = ask(shipped(), "throughput", trained("llama-3.1-70b", "h100-sxm", 256, **stated))
    assert set(filled(answer)) & {"/workload/micro_batch_size", "/workload/recomputation"} == set()
    assert "recomputation" in [phase["phase"] for phase in answer["breakdown"]]
    layout = {"tensor": 8, "pipeline": 4, "data": 8, "sharding": "zero_1"}
    answer = ask(
        shipped(), "throughput", {**trained("llama-3.1-70b", "h100-sxm", 256), "parallelism": layout}
    )
    assert "/parallelism" not in filled(answer)
    assert answer["parallelism"]["chosen"] is False


def test_the_chosen_configuration_is_no_slower_than_the_first_that_fits():
    """Asked again with the layout of practice, the run takes at least as long."""
    asked = trained("llama-3.1-70b", "h100-sxm", 512, 2048)
    chosen = ask(shipped(), "throughput", asked)
    naive = {**asked, "parallelism": {"tensor": 8, "pipeline": 8, "data": 8, "sharding": "zero_1"}}
    assert mfu(chosen) >= mfu(ask(shipped(), "throughput", naive))


def test_the_stated_configuration_of_an_answer_gives_the_same_answer():
    asked = trained("llama-3.1-405b", "h100-sxm", 2048)
    answer = ask(shipped(), "throughput", asked)
    layout = {name: value for name, value in answer["parallelism"].items() if name != "chosen"}
    again = ask(
        shipped(), "throughput", {**asked, "workload": chosen_workload(asked, answer), "parallelism": layout}
    )
    assert again["step_seconds"] == answer["step_seconds"]


@pytest.mark.parametrize(
    ("framework", "shardings", "is_split"),
    [
        ("ddp", {"none"}, False),
        ("fsdp", {"zero_3"}, False),
        ("megatron_core", {"none", "zero_1"}, True),
        ("deepspeed", {"zero_1", "zero_2", "zero_3"}, False),
    ],
)
@pytest.mark.parametrize("batch", [{}, {"global_batch_size": 256}])
def test_a_framework_gets_a_layout_that_it_can_run(framework, shardings, is_split, batch):
    model = "llama-3.1-70b" if is_split else "llama-3.1-8b"
    asked = question(model, "h200-sxm", 64, framework={"name": framework}, **batch)
    layout = ask(shipped(), "memory", asked)["parallelism"]
    assert layout["sharding"] in shardings
    assert (layout["tensor"] * layout["pipeline"] > 1) == is_split


def test_a_stated_layout_recomputes_only_what_it_has_to():
    layout = {"tensor": 8, "data": 8, "sharding": "zero_1"}
    roomy = {**question("llama-3.1-8b", "h100-sxm", 64), "parallelism": layout}
    tight = {**question("llama-3.1-70b", "h100-sxm", 64, micro_batch_size=4), "parallelism": layout}
    assert filled(ask(shipped(), "memory", roomy))["/workload/recomputation"] == "none"
    answer = ask(shipped(), "memory", tight)
    assert filled(answer)["/workload/recomputation"] in ("selective", "full")
    assert not ask(
        shipped(),
        "memory",
        {**tight, "workload": {**tight["workload"], "recomputation": {"strategy": "none"}}},
    )["fits"]


def test_replicas_of_one_device_are_served_without_a_link():
    """A training run on the same cards is refused."""
    asked = question("llama-3.1-8b", "a100-pcie-80gb", 4, kind="inference", input_tokens=500, concurrency=8)
    asked["cluster"]["accelerators_per_node"] = 1
    asked["parallelism"] = {"data": 4}
    assert ask(shipped(), "throughput", asked)["output_tokens_per_second"]["value"] > 0.0
    asked["parallelism"] = {"tensor": 4}
    assert refusal(shipped(), "throughput", asked) == ("LINK_UNKNOWN", "/cluster/inter_node_link")


def test_an_unknown_link_is_no_rate():
    assert (
        refusal(shipped(), "throughput", trained("llama-3.1-8b", "a100-pcie-80gb", 64))[0] == "LINK_UNKNOWN"
    )


# --- what a stated layout leaves open ---------------------------------------------------------------------

STAGED = {"tensor": 8, "pipeline": 4, "data": 2, "sequence_parallel": True, "sharding": "zero_1"}


def staged(framework=None, *, layout=STAGED, **workload):
    """A question about a stated pipeline."""
    named = {} if framework is None else {"framework": {"name": framework}}
    return {**trained("llama-3.1-70b", "h100-sxm", 64, **named, **workload), "parallelism": layout}


def test_a_pipeline_without_a_schedule_is_interleaved_where_the_framework_can():
    """Narayanan et al. 2021, section 2.2: v chunks divide the bubble by v."""
    answer = ask(shipped(), "throughput", staged("megatron_core", micro_batch_size=1))
    layout = answer["parallelism"]
    assert layout["pipeline_schedule"] == "interleaved"
    assert layout["virtual_stages"] in (2, 4)
    assert filled(answer)["/parallelism/pipeline_schedule"] == "interleaved"
    assert filled(answer)["/parallelism/virtual_stages"] == str(layout["virtual_stages"])
    plain = {**STAGED, "pipeline_schedule": "one_f_one_b"}
    stated = ask(shipped(), "throughput", staged("megatron_core", layout=plain, micro_batch_size=1))
    assert "/parallelism/pipeline_schedule" not in filled(stated)
    assert answer["step_seconds"]["value"] < stated["step_seconds"]["value"]


@pytest.mark.parametrize(
    ("framework", "pipeline", "batch"),
    [
        ("megatron_deepspeed", 4, 1024),
        # 12 micro-batches are no whole groups of 8 stages.
        ("megatron_core", 8, 12),
    ],
)
def test_a_pipeline_that_cannot_be_interleaved_is_1f1b(framework, pipeline, batch):
    """The framework has no such schedule, or the micro-batches come in no whole groups of stages."""
    layout = {**STAGED, "pipeline": pipeline, "data": 8 // pipeline}
    answer = ask(
        shipped(), "throughput", staged(framework, layout=layout, global_batch_size=batch, micro_batch_size=1)
    )
    assert answer["parallelism"]["pipeline_schedule"] == "one_f_one_b"
    assert filled(answer)["/parallelism/pipeline_schedule"] == "one_f_one_b"
    assert "/parallelism/virtual_stages" not in filled(answer)


def test_chunks_that_do_not_divide_the_blocks_are_not_chosen():
    """Neither 32 blocks nor 34 with table and head are divided by 6 or 12 chunks."""
    asked = {**trained("llama-3.1-8b", "h200-sxm", 24, 768), "parallelism": {"pipeline": 3}}
    assert ask(shipped(), "throughput", asked)["parallelism"]["pipeline_schedule"] == "one_f_one_b"


def test_virtual_stages_without_a_schedule_are_interleaved():
    answer = ask(shipped(), "throughput", staged(layout={**STAGED, "virtual_stages": 5}))
    assert answer["parallelism"]["pipeline_schedule"] == "interleaved"
    assert answer["parallelism"]["virtual_stages"] == 5
    assert "/parallelism/pipeline_schedule" not in filled(answer)


def test_the_interleaved_schedule_without_virtual_stages_gets_their_number():
    answer = ask(shipped(), "throughput", staged(layout={**STAGED, "pipeline_schedule": "interleaved"}))
    assert filled(answer)["/parallelism/virtual_stages"] == str(answer["parallelism"]["virtual_stages"])
    assert answer["parallelism"]["virtual_stages"] in (2, 4)


def test_one_virtual_stage_contradicts_the_interleaved_schedule():
    layout = {**STAGED, "pipeline_schedule": "interleaved", "virtual_stages": 1}
    assert refusal(shipped(), "throughput", staged(layout=layout)) == (
        "VIRTUAL_STAGES",
        "/parallelism/virtual_stages",
    )


def test_a_layout_without_its_sharding_is_sharded_where_it_has_to_be():
    tight = {**trained("llama-3.1-70b", "h100-sxm", 64), "parallelism": {"tensor": 8}}
    answer = ask(shipped(), "memory", tight)
    assert answer["fits"]
    assert filled(answer)["/parallelism/sharding"] in ("zero_1", "zero_3")
    whole = {**tight, "parallelism": {"tensor": 8, "sharding": "none"}}
    assert not ask(shipped(), "memory", whole)["fits"]


@pytest.mark.parametrize(
    ("framework", "layout", "expected"),
    [
        (
            "megatron_core",
            {"tensor": 8},
            {"/parallelism/sequence_parallel": "true", "/parallelism/sharding": "zero_1"},
        ),
        (
            "torchtitan",
            {"tensor": 8},
            {
                "/parallelism/sequence_parallel": "true",
                "/parallelism/sharding": "zero_3",
                "/workload/recomputation": "selective",
            },
        ),
        ("torchtitan", {"pipeline": 4}, {"/parallelism/pipeline_schedule": "one_f_one_b"}),
        ("torchtune", {"tensor": 8}, {"/workload/recomputation": "full"}),
        ("maxtext", {}, {"/parallelism/sharding": "zero_3", "/workload/recomputation": "full"}),
        (
            "neuronx_distributed",
            {"tensor": 8},
            {
                "/parallelism/sequence_parallel": "true",
                "/parallelism/sharding": "zero_1",
                "/workload/recomputation": "selective",
            },
        ),
    ],
)
def test_documented_defaults_of_the_framework_come_before_the_search(framework, layout, expected):
    asked = trained("llama-3.1-8b", "h200-sxm", 64, framework={"name": framework})
    answer = ask(shipped(), "throughput", {**asked, "parallelism": layout})
    by_framework = {
        each["pointer"]: each["value"] for each in answer["defaults"] if each["rule"] == "framework"
    }
    assert expected.items() <= by_framework.items()


def test_what_is_stated_comes_before_the_documented_default():
    asked = trained(
        "llama-3.1-8b",
        "h200-sxm",
        64,
        framework={"name": "torchtitan"},
        recomputation={"strategy": "none"},
    )
    layout = {"tensor": 8, "sequence_parallel": False, "sharding": "zero_1"}
    answer = ask(shipped(), "throughput", {**asked, "parallelism": layout})
    assert not {"/workload/recomputation", "/parallelism/sharding", "/parallelism/sequence_parallel"} & set(
        filled(answer)
    )
    assert layout.items() <= answer["parallelism"].items()


def test_a_documented_default_that_does_not_fit_gives_way_to_the_search():
    """The Trainer of transformers recomputes nothing by default, which no device holds here."""
    asked = trained(
        "llama-3.1-8b", "h100-sxm", 8, 64, framework={"name": "transformers"}, sequence_length=8192
    )
    answer = ask(shipped(), "memory", asked)
    rules = {each["pointer"]: each["rule"] for each in answer["defaults"]}
    assert answer["fits"]
    assert filled(answer)["/workload/recomputation"] != "none"
    assert rules["/workload/recomputation"] == "search"


@pytest.mark.parametrize(
    ("framework", "accelerator", "shardings", "degrees"),
    [
        ("maxtext", "tpu-v5p", {"zero_3"}, {"virtual_stages": 1}),
        ("neuronx_distributed", "trainium2", {"none", "zero_1"}, {"context": 1}),
    ],
)
def test_frameworks_of_other_accelerators_get_layouts_that_they_can_run(
    framework, accelerator, shardings, degrees
):
    asked = trained("llama-3.1-70b", accelerator, 128, framework={"name": framework})
    answer = ask(shipped(), "throughput", asked)
    assert "FRAMEWORK_UNKNOWN" not in codes(answer["warnings"])
    assert answer["parallelism"]["sharding"] in shardings
    assert degrees.items() <= answer["parallelism"].items()


# --- the gain over the naive layout -----------------------------------------------------------------------


def test_the_gain_is_that_of_asking_for_the_naive_layout():
    asked = trained("llama-3.1-70b", "h100-sxm", 64)
    answer = ask(shipped(), "throughput", asked)
    naive = answer["naive_layout"]
    again = {
        **asked,
        "parallelism": {name: value for name, value in naive["parallelism"].items() if name != "chosen"},
        "workload": {
            **asked["workload"],
            "micro_batch_size": naive["micro_batch_size"],
            "recomputation": {"strategy": naive["recomputation"]},
        },
    }
    slower = ask(shipped(), "throughput", again)
    ratio = slower["step_seconds"]["value"] / answer["step_seconds"]["value"]
    assert naive["step_time_ratio"] == pytest.approx(ratio, rel=1e-9)
    assert ratio > 1.1
    assert ask(shipped(), "memory", again)["fits"]


def test_a_stated_layout_has_no_naive_one():
    assert "naive_layout" not in ask(shipped(), "throughput", staged("megatron_core"))
    assert "naive_layout" not in ask(shipped(), "throughput", trained("llama-3.1-8b", "h200-sxm", 1))


@pytest.mark.parametrize(
    ("adaptation", "expected"),
    [
        ({"kind": "full"}, {"/workload/precision": "bf16"}),
        (
            {"kind": "lora"},
            {"/workload/adaptation/rank": "16", "/workload/adaptation/target_modules": "query, value"},
        ),
        ({"kind": "qlora"}, {"/workload/adaptation/target_modules": "all_linear"}),
    ],
)
def test_members_of_the_workload_that_are_filled_are_named(adaptation, expected):
    answer = ask(shipped(), "memory", trained("llama-3.1-8b", "h200-sxm", 8, 64, adaptation=adaptation))
    assert expected.items() <= filled(answer).items()
    stated = {"kind": "lora", "rank": 8, "target_modules": ["query"]}
    asked = trained("llama-3.1-8b", "h200-sxm", 8, 64, adaptation=stated, precision="bf16")
    assert not set(filled(ask(shipped(), "memory", asked))) & {
        "/workload/precision",
        "/workload/adaptation/rank",
        "/workload/adaptation/target_modules",
    }


@pytest.mark.parametrize(
    ("workload", "layout", "rule", "overlaps"),
    [
        ({}, {"expert": 8}, "search", True),
        ({"framework": {"name": "megatron_core"}}, {"expert": 8}, "framework", False),
        ({"framework": {"name": "fsdp"}}, {"expert": 8}, None, False),
        ({}, {"expert": 8, "overlap_expert_communication": False}, None, False),
        (
            {"framework": {"name": "megatron_core"}},
            {"expert": 8, "overlap_expert_communication": True},
            None,
            True,
        ),
        ({}, {}, None, False),
    ],
)  # fmt: skip
def test_tokens_travel_to_experts_behind_work_where_the_software_can(workload, layout, rule, overlaps):
    asked = trained("mixtral-8x7b", "h200-sxm", 64, **workload)
    parallelism = {"tensor": 2, "sharding": "zero_1", **layout}
    answer = ask(shipped(), "throughput", {**asked, "parallelism": parallelism})
    pointer = "/parallelism/overlap_expert_communication"
    rules = {default["pointer"]: default["rule"] for default in answer["defaults"]}
    assert rules.get(pointer) == rule
    assert answer["parallelism"].get("overlap_expert_communication", False) is overlaps
    memory = ask(shipped(), "memory", {**asked, "parallelism": parallelism})
    assert memory["parallelism"] == answer["parallelism"]


def test_an_open_layout_with_spread_experts_overlaps_their_communication():
    answer = ask(shipped(), "throughput", trained("deepseek-v3", "h200-sxm", 512))
    layout = answer["parallelism"]
    assert layout["expert"] > 1
    assert layout["overlap_expert_communication"]
    assert "overlapped expert communication" in filled(answer)["/parallelism"]


_OVERLAP = "overlap_tensor_communication"
_LAID_OUT = {"tensor": 4, "sharding": "zero_1", "sequence_parallel": True}


def run_seconds(answer):
    return answer["step_seconds"]["value"]


@pytest.mark.parametrize("framework", ["megatron_core", None])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_an_overlap_of_tensor_parallelism_is_as_stated(model, framework):
    named = {"framework": {"name": framework}} if framework else {}
    asked = trained(model, "h200-sxm", 16, micro_batch_size=1, **named)
    habit, waits, overlaps = (
        ask(shipped(), "throughput", {**asked, "parallelism": {**_LAID_OUT, **said}})
        for said in ({}, {_OVERLAP: False}, {_OVERLAP: True})
    )
    assert _OVERLAP not in habit["parallelism"]
    assert (waits["parallelism"][_OVERLAP], overlaps["parallelism"][_OVERLAP]) == (False, True)
    assert run_seconds(waits) >= run_seconds(habit) >= run_seconds(overlaps)
    assert run_seconds(waits) > run_seconds(overlaps)
    assert all(f"/parallelism/{_OVERLAP}" not in filled(each) for each in (habit, waits, overlaps))


@pytest.mark.parametrize("layout", [{"tensor": 1}, {"sequence_parallel": False}])
def test_an_overlap_without_gathers_and_scatters_is_not_used(layout):
    asked = trained("llama-3.1-8b", "h200-sxm", 16, micro_batch_size=1)
    plain = {**asked, "parallelism": {**_LAID_OUT, **layout}}
    habit = ask(shipped(), "throughput", plain)
    answer = ask(shipped(), "throughput", {**asked, "parallelism": {**plain["parallelism"], _OVERLAP: True}})
    unused = {each["pointer"] for each in answer["warnings"] if each["code"] == "NOT_USED"}
    assert unused == {f"/parallelism/{_OVERLAP}"}
    assert answer["parallelism"] == habit["parallelism"]
    assert answer["step_seconds"] == habit["step_seconds"]


@pytest.mark.parametrize("framework", ["megatron_deepspeed", "fsdp", None])
def test_an_overlap_of_tensor_parallelism_means_sequence_parallelism(framework):
    named = {"framework": {"name": framework}} if framework else {}
    asked = trained("llama-3.1-8b", "h200-sxm", 16, **named)
    answer = ask(shipped(), "throughput", {**asked, "parallelism": {"tensor": 4, _OVERLAP: True}})
    assert answer["parallelism"]["sequence_parallel"]
    assert "NOT_USED" not in codes(answer["warnings"])
    assert "/parallelism/sequence_parallel" not in filled(answer)


@pytest.mark.parametrize("stated", [True, False])
def test_serving_has_no_overlap_of_tensor_parallelism(stated):
    served = {"kind": "inference", "input_tokens": 512, "output_tokens": 128}
    asked = {**trained("llama-3.1-8b", "h200-sxm", 4), "workload": served}
    habit, answer = (
        ask(shipped(), "throughput", {**asked, "parallelism": {"tensor": 4, **said}})
        for said in ({}, {_OVERLAP: stated})
    )
    assert "NOT_USED" not in codes(habit["warnings"])
    assert [each["pointer"] for each in answer["warnings"] if each["code"] == "NOT_USED"] == [
        f"/parallelism/{_OVERLAP}"
    ]
    assert answer["output_tokens_per_second"] == habit["output_tokens_per_second"]


def test_a_search_keeps_the_stated_overlap_of_tensor_parallelism():
    asked = trained("mixtral-8x7b", "h200-sxm", 16)
    answers = [
        ask(shipped(), "throughput", {**asked, "parallelism": {"tensor": 8, **said}})
        for said in ({_OVERLAP: True}, {_OVERLAP: False}, {})
    ]
    assert [each["parallelism"].get(_OVERLAP) for each in answers] == [True, False, None]
    assert run_seconds(answers[0]) < run_seconds(answers[1])


def test_questions_about_one_run_share_its_search(monkeypatch):
    searched = []

    def search(run, **ways):
        searched.append(run)
        return choose_configuration(run, **ways)

    monkeypatch.setattr(configuration, "choose_configuration", search)
    monkeypatch.setattr(configuration, "_searched", ContextVar("none", default=None))
    asked = trained("llama-3.1-8b", "h100-sxm", 8)
    alone = [ask(shipped(), name, asked)["parallelism"] for name in ("memory", "throughput")]
    assert len(searched) == 2
    with configuration.share_searches():
        shared = [ask(shipped(), name, asked)["parallelism"] for name in ("memory", "throughput")]
        ask(shipped(), "memory", trained("llama-3.1-8b", "h100-sxm", 16))
    assert shared == alone
    assert len(searched) == 4
