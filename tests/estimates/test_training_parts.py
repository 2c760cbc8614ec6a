"""What a training answer says beside its step: data, checkpoints, failures, scaling and hints."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.asking import ask, codes, gaps, question, refusal, shipped

DAY = 86_400


def trained(count=64, **workload):
    given = {"total_tokens": 10**11, "global_batch_size": 512, "sequence_length": 4096, **workload}
    return question("llama-3.1-8b", "h100-sxm", count, **given)


def answered(asked):
    return ask(shipped(), "throughput", asked)


def value(answer, name):
    return answer[name]["value"]


SLOW_STORAGE = {
    "stored_bytes_per_sample": 16_384,
    "storage_bandwidth_bytes_per_second": 1e6,
    "preprocessing_seconds_per_sample": 0.01,
    "host_to_device_bandwidth_bytes_per_second": 52e9,
}
SAVED = {"storage_bandwidth_bytes_per_second": 10e9}


class TestData:
    def test_a_slow_storage_is_the_bottleneck(self):
        plain, fed = answered(trained()), answered(trained(data_pipeline=SLOW_STORAGE))
        reading = 512 * 16_384 / 1e6
        assert value(plain, "step_seconds") < reading
        assert value(fed, "step_seconds") == pytest.approx(reading)
        assert (fed["bottleneck"]["bound"], fed["bottleneck"]["axis"]) == ("data", "data")
        (advice,) = fed["bottleneck"]["advice"]
        assert advice["code"] == "FASTER_STORAGE"
        assert advice["gain_share"] == pytest.approx(1 - value(plain, "step_seconds") / reading)
        assert fed["data_pipeline"]["slowest"] == "storage"
        assert sum(phase["seconds"]["value"] for phase in fed["breakdown"]) == pytest.approx(reading)
        assert fed["breakdown"][-1]["phase"] == "data"
        busy = value(plain, "step_seconds") / reading
        assert fed["data_pipeline"]["device_utilization"]["value"] == pytest.approx(busy)
        shares = [value(answer, "model_flops_utilization") for answer in (fed, plain)]
        assert shares[0] / shares[1] == pytest.approx(busy)

    def test_data_in_time_changes_nothing(self):
        fast = {**SLOW_STORAGE, "storage_bandwidth_bytes_per_second": 1e12}
        plain, fed = answered(trained()), answered(trained(data_pipeline=fast))
        assert value(fed, "step_seconds") == pytest.approx(value(plain, "step_seconds"))
        assert fed["data_pipeline"]["slowest"] == "compute"
        assert fed["breakdown"] == plain["breakdown"]
        assert fed["bottleneck"] == plain["bottleneck"]

    def test_without_prefetching_all_stages_add_up(self):
        serial = {**SLOW_STORAGE, "prefetch": False}
        plain, fed = answered(trained()), answered(trained(data_pipeline=serial))
        stages = {stage["name"]: stage["seconds"]["value"] for stage in fed["data_pipeline"]["stages"]}
        assert value(fed, "step_seconds") == pytest.approx(sum(stages.values()))
        assert stages["compute"] == pytest.approx(value(plain, "step_seconds"))
        gains = {advice["code"]: advice["gain_share"] for advice in fed["bottleneck"]["advice"]}
        prefetched = answered(trained(data_pipeline=SLOW_STORAGE))
        shorter = value(prefetched, "step_seconds") / value(fed, "step_seconds")
        assert gains["PREFETCH"] == pytest.approx(1 - shorter)

    def test_too_few_workers_are_counted(self):
        slow = {"preprocessing_seconds_per_sample": 2.0, "worker_count": 1}
        fed = answered(trained(data_pipeline=slow))
        # Eight sequences of each replica, two seconds each.
        needed = fed["data_pipeline"]["workers_needed"]
        compute = fed["data_pipeline"]["stages"][-1]["seconds"]["value"]
        assert needed == -(-8 * 2.0 // compute)
        enough = answered(trained(data_pipeline={**slow, "worker_count": needed}))
        assert enough["data_pipeline"]["slowest"] == "compute"

    def test_four_workers_for_each_of_eight_devices(self):
        slow = {"preprocessing_seconds_per_sample": 1.0}
        fed = answered(trained(8, global_batch_size=8, data_pipeline=slow))["data_pipeline"]
        # One sequence of each replica by four workers, 32 in all.
        assert fed["stages"][0]["seconds"]["value"] == pytest.approx(1 / 4)

    def test_what_is_not_given_is_a_gap(self):
        fed = answered(trained(data_pipeline={}))
        assert gaps(fed)["/data_pipeline/stages"] == "STAGE_UNKNOWN"
        assert [stage["name"] for stage in fed["data_pipeline"]["stages"]] == ["compute"]

    def test_a_dataset_is_streamed_and_repeated(self):
        fed = answered(trained(data_pipeline={**SLOW_STORAGE, "dataset_bytes": 200e9}))
        assert fed["data_pipeline"]["stream_seconds"]["value"] == pytest.approx(200e9 / 1e6)
        assert fed["data_pipeline"]["epochs"] == pytest.approx(1e11 / 4096 * 16_384 / 200e9)

    def test_a_dataset_that_is_not_given_is_what_the_run_reads(self):
        fed = answered(trained(data_pipeline=SLOW_STORAGE))["data_pipeline"]
        assert fed["dataset_bytes"] == pytest.approx(1e11 / 4096 * 16_384)
        assert fed["stream_seconds"]["value"] == pytest.approx(fed["dataset_bytes"] / 1e6)
        assert "epochs" not in fed

    def test_cost_and_bill_pay_for_waiting(self):
        price = {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}}
        asked = {**trained(data_pipeline=SLOW_STORAGE), "rental": price}
        answer = ask(shipped(), "cost", asked)
        reading = 1e11 / 4096 * 16_384 / 1e6
        assert float(answer["total"]["amount"]) == pytest.approx(reading / 3600 * 64 * 2, abs=0.01)
        bill = ask(shipped(), "utility-bill", asked)
        assert bill["rent"]["total"]["amount"] == answer["total"]["amount"]

    @settings(max_examples=25)
    @given(
        st.sampled_from(
            [
                "storage_bandwidth_bytes_per_second",
                "node_bandwidth_bytes_per_second",
                "host_to_device_bandwidth_bytes_per_second",
                "worker_count",
            ]
        ),
        st.integers(2, 1000),
        st.booleans(),
    )
    def test_more_never_slows_a_run(self, name, more, prefetch):
        pipeline = {
            **SLOW_STORAGE,
            "node_bandwidth_bytes_per_second": 2e5,
            "worker_count": 1,
            "prefetch": prefetch,
        }
        better = {**pipeline, name: pipeline[name] * more}
        before, after = (answered(trained(data_pipeline=p)) for p in (pipeline, better))
        assert value(after, "duration_seconds") <= value(before, "duration_seconds") * (1 + 1e-12)


class TestFailures:
    def test_the_run_lasts_longer_by_what_it_loses(self):
        plain = answered(trained(16_384, global_batch_size=16_384))
        asked = trained(16_384, global_batch_size=16_384, checkpointing=SAVED, reliability={})
        answer = answered(asked)
        share = value(answer, "goodput")
        assert 0.5 < share < 1.0
        productive = value(plain, "duration_seconds")
        assert value(answer, "duration_seconds") * share == pytest.approx(productive)
        lost = answer["reliability"]
        parts = ("productive_seconds", "checkpoint_seconds", "lost_work_seconds", "restarting_seconds")
        assert sum(value(lost, name) for name in parts) == pytest.approx(value(answer, "duration_seconds"))
        assert value(lost, "productive_seconds") == pytest.approx(productive)
        # 50,677 hours of a device in published runs.
        assert value(lost, "mean_time_between_failures_seconds") == pytest.approx(50_677 * 3600 / 16_384)
        failures = value(answer, "duration_seconds") / value(lost, "mean_time_between_failures_seconds")
        assert lost["expected_failures"] == pytest.approx(failures)

    def test_cost_pays_for_lost_work(self):
        price = {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}}
        failing = {"checkpointing": SAVED, "reliability": {"device_mtbf_hours": 500}}
        plain, lossy = (
            ask(shipped(), "cost", {**trained(**workload), "rental": price}) for workload in ({}, failing)
        )
        share = value(answered(trained(**failing)), "goodput")
        paid, without = (float(answer["total"]["amount"]) for answer in (lossy, plain))
        assert paid * share == pytest.approx(without, abs=0.01)

    def test_checkpoint_of_eight_billion_parameters(self):
        answer = answered(trained(checkpointing=SAVED, reliability={"device_mtbf_hours": 50_000}))
        saved = answer["checkpoint"]
        assert saved["bytes"] == 14 * 8_030_261_248
        assert saved["bytes_per_device"] == pytest.approx(saved["bytes"] / 64, abs=1)
        assert value(saved, "stall_seconds") == pytest.approx(saved["bytes"] / 10e9)
        mtbf = 50_000 * 3600 / 64
        young = (2 * value(saved, "stall_seconds") * mtbf) ** 0.5
        assert value(saved, "interval_seconds") == pytest.approx(young, rel=0.01)
        assert saved["interval_steps"] == round(
            value(saved, "interval_seconds") / value(answer, "step_seconds")
        )

    def test_in_the_background_only_the_copy_to_the_host_stops_training(self):
        background = {
            **SAVED,
            "mode": "asynchronous",
            "device_to_host_bandwidth_bytes_per_second": 52e9,
        }
        both = [
            answered(trained(checkpointing=mode, reliability={"device_mtbf_hours": 500}))
            for mode in (SAVED, background)
        ]
        stalls = [value(answer["checkpoint"], "stall_seconds") for answer in both]
        assert stalls[1] == pytest.approx(14 * 8_030_261_248 / 64 / 52e9)
        assert stalls[1] < stalls[0]
        assert value(both[0], "goodput") < value(both[1], "goodput")

    def test_one_device_that_saves_all_takes_longer(self):
        alone = {
            "mode": "asynchronous",
            "sharded": False,
            "device_to_host_bandwidth_bytes_per_second": 52e9,
            "interval_steps": 100,
        }
        stalls = [
            value(answered(trained(checkpointing=given))["checkpoint"], "stall_seconds")
            for given in (alone, {**alone, "sharded": True})
        ]
        assert stalls[0] == pytest.approx(64 * stalls[1])

    def test_an_interval_in_steps_without_failures(self):
        answer = answered(trained(checkpointing={"stall_seconds": 30.0, "interval_steps": 100}))
        interval = 100 * value(answer, "step_seconds")
        assert value(answer["checkpoint"], "interval_seconds") == pytest.approx(interval)
        assert value(answer, "goodput") == pytest.approx(interval / (interval + 30))
        assert "reliability" not in answer

    def test_what_is_missing_is_a_gap(self):
        failing = answered(trained(reliability={}))
        assert gaps(failing) == {"/goodput": "CHECKPOINTING_REQUIRED"}
        plain = answered(trained())
        assert value(failing, "duration_seconds") == value(plain, "duration_seconds")
        saving = answered(trained(checkpointing={}))
        assert gaps(saving)["/checkpoint/stall_seconds"] == "BANDWIDTH_REQUIRED"
        assert gaps(saving)["/checkpoint/interval_seconds"] == "INTERVAL_REQUIRED"
        assert "goodput" not in saving
        stalled = {"stall_seconds": 5.0}
        loading = answered(trained(checkpointing=stalled, reliability={}))
        assert gaps(loading) == {
            "/checkpoint/write_seconds": "BANDWIDTH_REQUIRED",
            "/reliability/restart_seconds": "BANDWIDTH_REQUIRED",
        }

    def test_two_intervals_are_refused(self):
        twice = {"interval_seconds": 600.0, "interval_steps": 10, **SAVED}
        assert refusal(shipped(), "throughput", trained(checkpointing=twice)) == (
            "INTERVAL_CONFLICT",
            "/workload/checkpointing/interval_steps",
        )

    @pytest.mark.parametrize("hours", [1e-3, 1e-9])
    def test_a_cluster_that_never_gets_on_is_refused(self, hours):
        asked = trained(checkpointing=SAVED, reliability={"device_mtbf_hours": hours})
        assert refusal(shipped(), "throughput", asked) == ("NO_PROGRESS", "/workload/reliability")

    def test_written_slower_than_the_interval(self):
        slow = {
            "mode": "asynchronous",
            "storage_bandwidth_bytes_per_second": 1e7,
            "device_to_host_bandwidth_bytes_per_second": 52e9,
            "interval_seconds": 60.0,
        }
        assert "CHECKPOINT_INTERVAL" in codes(answered(trained(checkpointing=slow))["warnings"])

    @settings(max_examples=10)
    @given(st.sampled_from([1, 8, 64, 1024]), st.floats(100, 1e6), st.floats(0, 3600))
    def test_goodput_is_a_share_and_more_devices_lose_more(self, count, hours, restart):
        failing = {"device_mtbf_hours": hours, "restart_seconds": restart}

        def share(devices):
            asked = trained(devices, global_batch_size=4096, checkpointing=SAVED, reliability=failing)
            return value(answered(asked), "goodput")

        assert 0.0 < share(2 * count) <= share(count) * (1 + 1e-12) <= 1.0 + 1e-12


class TestScaling:
    def test_nothing_is_scaled_unasked(self):
        assert not {"scaling", "scaling_decision"} & answered(trained()).keys()

    def test_curves_agree_with_questions_of_their_own(self):
        asked = {**trained(), "scaling": {"accelerator_counts": [16, 64, 128]}}
        layout = {"tensor": 2, "sequence_parallel": True, "sharding": "zero_1"}
        asked["parallelism"] = layout
        curves = answered(asked)["scaling"]
        for point in curves["strong"]["points"]:
            alone = {**trained(point["accelerator_count"]), "parallelism": layout}
            assert value(answered(alone), "step_seconds") == pytest.approx(value(point, "step_seconds"))
            assert point["global_batch_size"] == 512
        assert [p["global_batch_size"] for p in curves["weak"]["points"]] == [128, 512, 1024]
        for curve in curves.values():
            first, *others = curve["points"]
            assert first["speedup"] == first["efficiency"] == first["work_cost_factor"] == 1.0
            for point in others:
                ratio = point["accelerator_count"] / 16
                assert point["speedup"] == pytest.approx(point["efficiency"] * ratio)
                assert point["law_speedup"] <= ratio * (1 + 1e-9)

    def test_a_pipeline_scales_worse_the_fewer_micro_batches_it_has(self):
        asked = {**trained(64, global_batch_size=64), "scaling": {}}
        asked["parallelism"] = {"tensor": 2, "pipeline": 4, "sequence_parallel": True}
        strong = answered(asked)["scaling"]["strong"]
        shares = [point["efficiency"] for point in strong["points"]]
        assert shares == sorted(shares, reverse=True)
        assert shares[-1] < 0.9
        assert strong["serial_share"] > 0

    def test_slow_storage_ends_weak_scaling(self):
        asked = {**trained(data_pipeline=SLOW_STORAGE), "scaling": {}}
        weak = answered(asked)["scaling"]["weak"]
        assert weak["points"][-1]["efficiency"] < 0.2
        assert "empirical" in weak

    def test_an_open_curve_begins_where_the_step_fits(self):
        weak = answered({**trained(), "scaling": {}})["scaling"]["weak"]["points"]
        counts = [point["accelerator_count"] for point in weak]
        assert counts[0] > 1
        assert counts[-1] == 4 * 64
        assert all(point["fits"] for point in weak)
        alone = answered({**trained(), "scaling": {"accelerator_counts": [1, 64]}})
        assert [point["fits"] for point in alone["scaling"]["weak"]["points"]] == [False, True]

    def test_counts_that_do_not_divide_are_a_gap(self):
        asked = {**trained(), "scaling": {"accelerator_counts": [48, 64]}}
        answer = answered(asked)
        assert gaps(answer)["/scaling/strong/points"] == "NOT_DIVISIBLE"
        assert [p["accelerator_count"] for p in answer["scaling"]["strong"]["points"]] == [64]
        assert len(answer["scaling"]["weak"]["points"]) == 2

    def test_memory_and_time_decide_on_the_scale(self):
        def decided(count, **workload):
            return answered({**trained(count, **workload), "scaling": {}})["scaling_decision"]

        long = decided(512, total_tokens=10**12)
        verdicts = [(o["scale"], o.get("fits"), o.get("in_time")) for o in long["options"]]
        assert verdicts[0] == ("single_device", False, False)
        assert verdicts[1] == ("single_node", True, False)
        assert verdicts[2] == ("cluster", True, True)
        assert long["scale"] == "cluster"
        # 16 bytes for each of 8.03e9 parameters on devices of 79 GiB.
        assert long["least_accelerator_count"] == 2
        assert decided(512, total_tokens=10**9)["scale"] == "single_node"
        assert "scale" not in decided(8, total_tokens=10**14)

    def test_the_rule_of_thumb_stands_beside(self):
        pipeline = {"dataset_bytes": 20e12}
        decision = answered({**trained(data_pipeline=pipeline), "scaling": {}})["scaling_decision"]
        assert (decision["rule_of_thumb"], decision["streaming"]) == ("cluster", True)

    def test_twice_the_devices_cost_twice_as_much_an_hour(self):
        price = {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}}

        def hourly(count):
            asked = {**trained(count), "rental": price}
            answer = ask(shipped(), "cost", asked)
            return float(answer["total"]["amount"]) / value(answer, "duration_seconds") * 3600

        # Amounts are rounded to the cent.
        assert hourly(64) == pytest.approx(2 * 64, rel=1e-4)
        assert hourly(128) == pytest.approx(2 * 128, rel=1e-4)

    def test_serving_is_not_scaled(self):
        asked = question("llama-3.1-8b", "h100-sxm")
        asked = {**asked, "workload": {"kind": "inference"}, "scaling": {}}
        assert gaps(answered(asked))["/scaling"] == "NOT_APPLICABLE"

    def test_without_a_batch_there_are_no_steps(self):
        model = {"source": "parameter_count", "parameter_count": 10**9}
        asked = {**question(model, "h100-sxm", 8, total_tokens=10**9), "scaling": {}}
        assert gaps(answered(asked))["/scaling"] == "BATCH_REQUIRED"


class TestHints:
    def test_learning_rates_of_eight_replicas(self):
        asked = trained(8, global_batch_size=256, micro_batch_size=32, optimizer="sgd")
        asked["workload"]["learning_rate"] = {"base": 0.1, "base_batch_size": 32}
        linear, root, warm = answered(asked)["hints"][:3]
        assert (linear["code"], linear["factor"]) == ("LINEAR_LEARNING_RATE", 8.0)
        assert linear["learning_rate"] == pytest.approx(0.8)
        assert root["learning_rate"] == pytest.approx(0.2828, abs=5e-5)
        assert warm["code"] == "WARM_UP"

    def test_adaptive_optimizers_hear_of_the_square_root_first(self):
        assert answered(trained())["hints"][0]["code"] == "SQUARE_ROOT_LEARNING_RATE"

    def test_beyond_32768_sequences_rates_go_by_layer(self):
        def found(**workload):
            return codes(answered(trained(8, **workload)).get("hints", []))

        assert "LAYERWISE_LEARNING_RATES" in found(global_batch_size=65_536)
        assert "LAYERWISE_LEARNING_RATES" not in found(global_batch_size=32_768)
        assert "LAYERWISE_LEARNING_RATES" not in found(global_batch_size=65_536, optimizer="lamb")

    def test_small_work_scales_poorly(self):
        small = question("gpt2", "h100-sxm", 64, global_batch_size=64, sequence_length=1024)
        assert "SMALL_DEVICE_BATCH" in codes(answered(small)["hints"])
        model = {"source": "parameter_count", "parameter_count": 60_000_000}
        tiny = question(model, "h100-sxm", 8, global_batch_size=640)
        assert "SMALL_MODEL" in codes(answered(tiny)["hints"])

    def test_one_device_has_none(self):
        assert "hints" not in answered(question("llama-3.1-8b", "h100-sxm"))


class TestLinks:
    def test_links_that_nobody_measured_widen_the_interval_by_what_waits_for_them(self):
        """InfiniBand has no measured collective, EFA has."""

        def asked(kind):
            given = trained(count=64, micro_batch_size=1)
            link = {"kind": kind, "bandwidth_bytes_per_second": 1e9}
            given["cluster"]["inter_node_link"] = {"source": "specification", "specification": link}
            return answered({**given, "parallelism": {"data": 64, "sharding": "zero_3"}})

        measured, unmeasured = asked("efa"), asked("ethernet")
        width = {
            name: answer["step_seconds"]["high"] / answer["step_seconds"]["value"]
            for name, answer in (("measured", measured), ("unmeasured", unmeasured))
        }
        waits = sum(
            phase["seconds"]["value"]
            for phase in unmeasured["breakdown"]
            if phase["bound"] == "communication"
        )
        share = waits / value(unmeasured, "step_seconds")
        assert share > 0.1
        # Ethernet is known to a rate between 0.5 and 0.8 of its line, 0.65 in the middle.
        expected = width["measured"] * (1.0 + share * (0.65 / 0.5 - 1.0))
        assert width["unmeasured"] == pytest.approx(expected)
