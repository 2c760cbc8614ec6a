"""Time of objectives that run further models or generate, and of state that lies on the host."""

import pytest

from tests.asking import ask, codes, gaps, question, refusal, shipped

PARAMETERS = 7_000_000_000
SHARDED = {"data": 8, "sharding": "zero_3"}


def asked(model="llama-3.1-8b", count=8, parallelism=None, **workload):
    given = {"sequence_length": 2048, "global_batch_size": 256, "total_samples": 25_600, **workload}
    return {
        **question(model, "h100-sxm", count, **given),
        "parallelism": parallelism or {"data": count, "sharding": "zero_3"},
    }


def answered(*args, **kwargs):
    return ask(shipped(), "throughput", asked(*args, **kwargs))


def value(answer, name="step_seconds"):
    return answer[name]["value"]


def phases(answer):
    return {phase["phase"]: phase["seconds"]["value"] for phase in answer["breakdown"]}


def flops_per_parameter(objective, tokens=10**9, **workload):
    """FLOPs of one trained token over parameters, by the count alone."""
    model = {"source": "parameter_count", "parameter_count": PARAMETERS}
    given = {"objective": objective, "total_tokens": tokens, "sequence_length": 2048, **workload}
    answer = ask(
        shipped(),
        "throughput",
        {
            **question(model, "h100-sxm", 8, **given),
            "efficiency": {"source": "assumed", "utilization": 0.4},
        },
    )
    step = value(answer) if "step_seconds" in answer else None
    assert step is None or sum(phases(answer).values()) == pytest.approx(step)
    return answer["total_flops"] / tokens / PARAMETERS


class TestOperations:
    """Forward 2 N, training 6 N (Kaplan et al. 2020), for every model that takes part."""

    @pytest.mark.parametrize(
        ("objective", "workload", "expected"),
        [
            ("supervised", {}, 6.0),
            ("simpo", {}, 6.0),
            ("orpo", {}, 6.0),
            ("dpo", {}, 8.0),
            # Generation, four models' forward passes, two trainings (Ouyang et al. 2022).
            ("ppo", {}, 2.0 + 4 * 2.0 + 2 * 6.0),
            ("ppo", {"rollout": {"epochs": 4}}, (2.0 + 4 * 2.0) / 4 + 2 * 6.0),
            (
                "ppo",
                {"reward_parameter_count": PARAMETERS // 7, "critic_parameter_count": PARAMETERS // 7},
                2.0 + 2.0 + 2.0 + (2.0 + 2.0 + 6.0) / 7 + 6.0,
            ),
            # Half of a sequence is a prompt that eight samples share.
            ("grpo", {}, 2.0 * (0.5 + 0.5 / 8) + 2.0 + 2.0 + 6.0),
            ("grpo", {"reward_parameter_count": PARAMETERS, "rollout": {"samples_per_prompt": 1}}, 14.0),
        ],
    )
    def test_every_model_counts(self, objective, workload, expected):
        assert flops_per_parameter(objective, **workload) == pytest.approx(expected)


def test_claim_g20_a_teacher_of_70b_and_a_student_of_7b_take_182_gflop_a_token():
    each = flops_per_parameter("distillation", teacher_parameter_count=10 * PARAMETERS)
    assert each * PARAMETERS == pytest.approx(182e9)


class TestFurtherModels:
    def test_a_pair_is_two_sequences(self):
        plain, pairs = answered(objective="supervised"), answered(objective="simpo")
        assert phases(pairs)["forward"] == pytest.approx(2 * phases(plain)["forward"], rel=0.1)
        assert value(pairs, "tokens_per_second") == pytest.approx(
            2 * 2048 * value(pairs, "samples_per_second")
        )
        assert value(pairs, "duration_seconds") == pytest.approx(100 * value(pairs))

    def test_dpo_adds_the_forward_pass_of_its_reference(self):
        without, dpo = answered(objective="simpo"), answered(objective="dpo")
        reference = phases(dpo)["reference_forward"]
        assert value(dpo) == pytest.approx(value(without) + reference, rel=1e-6)
        assert phases(dpo)["forward"] <= reference < 1.2 * phases(dpo)["forward"]
        assert dpo["total_flops"] == pytest.approx(without["total_flops"] * 4 / 3)

    def test_a_teacher_takes_time_by_its_parameters(self):
        small, large = (
            phases(answered(objective="distillation", teacher_parameter_count=count))["teacher_forward"]
            for count in (10**9, 7 * 10**10)
        )
        assert large == pytest.approx(70 * small)

    @pytest.mark.parametrize(
        "objective", ["supervised", "dpo", "simpo", "orpo", "distillation", "ppo", "grpo"]
    )
    @pytest.mark.parametrize("layout", [SHARDED, {"tensor": 2, "pipeline": 2, "data": 2}])
    def test_phases_add_up_to_the_step(self, objective, layout):
        answer = answered(objective=objective, parallelism=layout)
        assert sum(phases(answer).values()) == pytest.approx(value(answer), rel=1e-9)
        assert 0.0 < value(answer, "model_flops_utilization") <= 1.0
        assert "/tokens_per_second" not in gaps(answer)

    def test_models_of_other_objectives_are_not_used(self):
        answer = answered(
            objective="dpo", reward_parameter_count=10**9, critic_parameter_count=10**9, rollout={}
        )
        pointers = {note["pointer"] for note in answer["warnings"] if note["code"] == "NOT_USED"}
        names = ("reward_parameter_count", "critic_parameter_count", "rollout")
        assert pointers == {f"/workload/{name}" for name in names}
        assert value(answer) == value(answered(objective="dpo"))


class TestRollout:
    def test_ppo_takes_longer_than_dpo_of_as_many_tokens(self):
        ppo, dpo = answered(objective="ppo"), answered(objective="dpo", global_batch_size=128)
        assert value(ppo) > 2 * value(dpo)
        found = phases(ppo)
        assert found["critic_training"] > found["policy_forward"] == found["reference_forward"]
        assert found["generation"] == pytest.approx(value(ppo["rollout"], "seconds"))

    def test_an_answer_says_how_a_rollout_is_made(self):
        rollout = answered(objective="grpo", rollout={"steps_per_rollout": 4})["rollout"]
        assert rollout["sequences"] == 4 * 256
        assert rollout["replicas"] * rollout["devices_per_replica"] == 8
        assert 0 < rollout["sequences_per_replica"] <= 1024 / rollout["replicas"]
        tokens = value(rollout, "generated_tokens_per_second") * value(rollout, "seconds")
        assert tokens == pytest.approx(1024 * 1024)

    def test_epochs_share_a_rollout(self):
        once, twice = (phases(answered(objective="ppo", rollout={"epochs": epochs})) for epochs in (1, 2))
        for name in ("generation", "reference_forward", "weight_synchronization"):
            assert twice[name] == pytest.approx(once[name] / 2)
        assert twice["forward"] == pytest.approx(once["forward"])

    def test_samples_of_a_group_share_their_prompt(self):
        alone, group = (
            value(answered(objective="grpo", rollout={"samples_per_prompt": samples})["rollout"], "seconds")
            for samples in (1, 8)
        )
        assert group < alone

    def test_the_longest_response_keeps_engines_busy(self):
        even, uneven = (
            value(answered(objective="grpo", rollout={"response_tokens": 512, **tail})["rollout"], "seconds")
            for tail in ({}, {"longest_response_tokens": 1536})
        )
        assert uneven > 1.2 * even

    def test_devices_of_their_own_generate_while_others_train(self):
        apart = {"placement": "separate", "accelerator_count": 8}
        layout = {"data": 8, "sharding": "zero_3"}
        waiting, ahead = (
            answered(
                count=16,
                parallelism=layout,
                objective="grpo",
                rollout={**apart, "asynchronous": asynchronous},
            )
            for asynchronous in (False, True)
        )
        assert waiting["rollout"] == ahead["rollout"]
        made = value(waiting["rollout"], "seconds")
        assert value(waiting) > value(ahead) >= made
        longest = max(made, value(waiting) - made)
        assert value(ahead) == pytest.approx(longest, rel=1e-6)

    def test_a_curve_needs_devices_that_all_train(self):
        curves = {}
        for name, rollout in (("beside", {}), ("apart", {"placement": "separate", "accelerator_count": 8})):
            given = asked(count=16, objective="grpo", rollout=rollout)
            given["parallelism"] = {"data": 16 if name == "beside" else 8, "sharding": "zero_3"}
            curves[name] = ask(shipped(), "throughput", {**given, "scaling": {}})
        assert gaps(curves["apart"])["/scaling"] == "NOT_MODELLED"
        points = curves["beside"]["scaling"]["strong"]["points"]
        assert points[-1]["speedup"] > 1.5

    @pytest.mark.parametrize(
        ("rollout", "code"),
        [
            ({"prompt_tokens": 1024, "response_tokens": 512}, "ROLLOUT_LENGTH"),
            ({"prompt_tokens": 2048}, "ROLLOUT_LENGTH"),
            ({"response_tokens": 512, "longest_response_tokens": 256}, "ROLLOUT_LENGTH"),
            ({"placement": "separate"}, "ROLLOUT_PLACEMENT"),
            ({"accelerator_count": 4}, "ROLLOUT_PLACEMENT"),
            ({"asynchronous": True}, "ROLLOUT_PLACEMENT"),
            ({"placement": "separate", "accelerator_count": 8}, "ROLLOUT_PLACEMENT"),
            ({"tensor": 3}, "PARALLELISM_MISMATCH"),
        ],
    )
    def test_a_rollout_that_cannot_be_is_refused(self, rollout, code):
        found, pointer = refusal(shipped(), "throughput", asked(objective="grpo", rollout=rollout))
        assert found == code
        assert pointer.startswith("/workload/rollout")

    def test_an_engine_without_room_is_told(self):
        answer = answered(
            "llama-3.1-70b", objective="grpo", rollout={"tensor": 1}, recomputation={"strategy": "full"}
        )
        warned = {note["pointer"] for note in answer["warnings"] if note["code"] == "DOES_NOT_FIT"}
        assert "/workload/rollout" in warned

    def test_a_count_generates_at_an_assumed_utilization_only(self):
        model = {"source": "parameter_count", "parameter_count": PARAMETERS}
        for workload in ({"objective": "ppo"}, {"offload": {"optimizer": "cpu"}}):
            answer = ask(shipped(), "throughput", question(model, "h100-sxm", 8, **workload))
            assert gaps(answer)["/tokens_per_second"] == "ARCHITECTURE_REQUIRED"


HOST = {
    "link_bandwidth_bytes_per_second": 50e9,
    "memory_bandwidth_bytes_per_second": 400e9,
    "drive_bandwidth_bytes_per_second": 20e9,
}
LLAMA_8B = 8_030_261_248


def offloaded(host=HOST, parallelism=SHARDED, model="llama-3.1-8b", **workload):
    given = asked(model, parallelism=parallelism, **workload)
    given["cluster"]["host"] = host
    return ask(shipped(), "throughput", given)


class TestOffload:
    def test_the_memory_of_the_host_bounds_the_optimizer(self):
        """Gradient and weight of 2 bytes, master copy and two moments of 4 read and written."""
        answer = offloaded(offload={"optimizer": "cpu"})
        update = phases(answer)["optimizer"] - phases(offloaded(offload={"parameters": "cpu"}))["optimizer"]
        expected = LLAMA_8B * (2 + 2 + 24) / (400e9 * 0.5)
        assert phases(answer)["optimizer"] == pytest.approx(expected, rel=0.05)
        assert update > 0.9 * expected
        bound = {phase["phase"]: phase["bound"] for phase in answer["breakdown"]}
        assert bound["optimizer"] == "host"

    def test_drives_bound_an_optimizer_that_lies_on_them(self):
        answer = offloaded(offload={"optimizer": "nvme"})
        assert phases(answer)["optimizer"] == pytest.approx(LLAMA_8B * 24 / 20e9, rel=0.05)

    def test_an_update_on_the_host_takes_as_long_as_the_published_one(self):
        """Ren et al. 2021, table 4 (recalled): 2.57 s for 10e9 parameters on a DGX-2."""
        answer = offloaded({"memory_bandwidth_bytes_per_second": 256e9}, offload={"optimizer": "cpu"})
        assert phases(answer)["optimizer"] * 10e9 / LLAMA_8B == pytest.approx(2.57, rel=0.2)

    @pytest.mark.parametrize(
        "offload",
        [{"optimizer": "cpu"}, {"parameters": "cpu"}, {"activations": "cpu"}, {"optimizer": "nvme"}],
    )
    def test_a_faster_host_is_never_slower(self, offload):
        slow = offloaded(offload=offload)
        for name, rate in HOST.items():
            fast = offloaded({**HOST, name: 4 * rate}, offload=offload)
            assert value(fast) <= value(slow)
        assert sum(phases(slow).values()) == pytest.approx(value(slow), rel=1e-9)

    def test_what_moves_for_nothing_is_not_waited_for(self):
        everything = {"optimizer": "cpu", "parameters": "cpu", "activations": "cpu"}
        free = offloaded(dict.fromkeys(HOST, 1e30), offload=everything)
        found, plain = phases(free), phases(answered())
        assert found.pop("offload_communication", 0.0) < 1e-12
        assert found.pop("optimizer") <= plain.pop("optimizer")
        assert found == pytest.approx(plain)

    def test_weights_come_for_every_micro_batch(self):
        few, many = (
            phases(offloaded({**HOST, "drive_bandwidth_bytes_per_second": 1e9}, **workload))
            for workload in (
                {"offload": {"parameters": "nvme"}, "micro_batch_size": 4},
                {"offload": {"parameters": "nvme"}, "micro_batch_size": 1},
            )
        )
        # 2 bytes a weight, forward and backward, of which the work of blocks hides little.
        assert many["offload_communication"] == pytest.approx(32 * 2 * LLAMA_8B * 2 / 1e9, rel=0.05)
        assert few["offload_communication"] < many["offload_communication"] / 3

    def test_what_is_assumed_of_a_host_is_told(self):
        assumed = offloaded({}, offload={"optimizer": "nvme"})
        pointers = {note["pointer"] for note in assumed["warnings"] if note["code"] == "HOST_ASSUMED"}
        assert pointers == {f"/cluster/host/{name}" for name in HOST}
        assert "HOST_ASSUMED" not in codes(offloaded(offload={"optimizer": "nvme"})["warnings"])
        assert "NOT_USED" in codes(offloaded()["warnings"])

    def test_an_adapter_leaves_little_to_move(self):
        adapted = {"kind": "lora", "rank": 16}
        answer = offloaded(offload={"optimizer": "cpu"}, adaptation=adapted)
        assert phases(answer)["optimizer"] < 0.01

    def test_state_that_fits_the_device_is_better_kept_there(self):
        answer, kept = offloaded(offload={"optimizer": "cpu"}), answered()
        advice = {each["code"]: each for each in answer["bottleneck"]["advice"]}
        assert advice["NO_OFFLOAD"]["gain_share"] == pytest.approx(1.0 - value(kept) / value(answer))
        assert "NO_OFFLOAD" not in codes(kept["bottleneck"]["advice"])
