"""Time of training what is no decoder: convolution nets, transformers of images, encoders, recommenders."""

import pytest

from tests.asking import ask, codes, gaps, question, shipped


def throughput(model, accelerator, count=1, **workload):
    return ask(shipped(), "throughput", question(model, accelerator, count, **workload))


PICTURE = {"height": 224, "width": 224}


@pytest.mark.parametrize(
    ("device", "count", "measured"),
    [
        ("a100-sxm-80gb", 1, 2470),
        ("a100-sxm-80gb", 8, 16621),
        ("v100-sxm2-16gb", 1, 1200),
        ("v100-sxm2-16gb", 8, 8322),
    ],
)
def test_resnet_50_of_which_nothing_was_fitted(device, count, measured):
    """NVIDIA DeepLearningExamples, ResNet-50 v1.5 for PyTorch in mixed precision, images/s."""
    answer = throughput("resnet-50", device, count, micro_batch_size=256, precision="fp16", sample=PICTURE)
    assert answer["samples_per_second"]["value"] == pytest.approx(measured, rel=0.3)


@pytest.mark.parametrize(
    ("model", "sample", "sequence"),
    [
        ("resnet-50", PICTURE, None),
        ("vit-large-patch16-224", PICTURE, None),
        ("bert-large", None, 512),
        ("t5-3b", {"source_tokens": 512}, 114),
        ("whisper-large-v3", {"audio_frames": 3000}, 448),
        ("stable-diffusion-2.1-unet", {"height": 512, "width": 512, "source_tokens": 77}, None),
        ("wan-2.1-14b", {"height": 480, "width": 832, "frames": 33, "source_tokens": 512}, None),
        ("dlrm-criteo-1tb", None, None),
    ],
)
def test_every_workload_has_a_time_that_its_phases_add_up_to(model, sample, sequence):
    given = {"micro_batch_size": 4, "total_samples": 100_000}
    given |= {"sample": sample} if sample else {}
    given |= {"sequence_length": sequence} if sequence else {}
    answer = throughput(model, "h100-sxm", 16, **given)
    step = answer["step_seconds"]["value"]
    assert sum(phase["seconds"]["value"] for phase in answer["breakdown"]) == pytest.approx(step, rel=1e-9)
    rate = answer["samples_per_second"]["value"]
    assert answer["duration_seconds"]["value"] == pytest.approx(100_000 / rate, rel=1e-9)
    assert 0.0 < answer["model_flops_utilization"]["value"] < 0.8
    assert answer["operators"]
    assert ("tokens_per_second" in answer) == (sequence is not None)


def test_tokens_of_an_encoder_decoder_are_those_of_its_decoder():
    answer = throughput(
        "t5-3b", "a100-sxm-80gb", 8, micro_batch_size=8, sequence_length=114, sample={"source_tokens": 512}
    )
    tokens, samples = answer["tokens_per_second"]["value"], answer["samples_per_second"]["value"]
    assert tokens == pytest.approx(114 * samples)


def test_larger_pictures_take_longer():
    rates = [
        throughput("resnet-50", "a100-sxm-80gb", micro_batch_size=64, sample={"height": side, "width": side})[
            "samples_per_second"
        ]["value"]
        for side in (160, 224, 320)
    ]
    assert rates[0] > 1.3 * rates[1] > 1.69 * rates[2]


def test_tables_of_a_recommender_are_neither_exchanged_nor_updated_whole():
    """24 billion parameters of tables would take 0.3 s a step; their rows are looked up, sent and updated."""
    answer = throughput("dlrm-criteo-1tb", "a100-sxm-80gb", 8, micro_batch_size=8192)
    assert answer["step_seconds"]["value"] < 0.1
    alone = throughput("dlrm-criteo-1tb", "a100-sxm-80gb", 1, micro_batch_size=8192)
    phases = [{phase["phase"] for phase in each["breakdown"]} for each in (answer, alone)]
    assert "tensor_communication" in phases[0]
    assert not {phase for phase in phases[1] if phase.endswith("communication")}


def test_a_sample_without_a_size_is_a_gap():
    kernel = {"kernel_height": 3, "kernel_width": 3, "input_channels": 3, "output_channels": 64}
    model = {
        "source": "architecture",
        "architecture": {
            "inputs": [{"name": "image", "kind": "image", "channels": 3}],
            "layers": [{"kind": "convolution", **kernel}],
        },
    }
    answer = throughput(model, "h100-sxm", micro_batch_size=8)
    assert gaps(answer)["/samples_per_second"] == "SAMPLE_FIELD_MISSING"
    assert "samples_per_second" not in answer
    known = throughput(model, "h100-sxm", micro_batch_size=8, sample=PICTURE)
    assert known["samples_per_second"]["value"] > 0.0


def test_pictures_have_no_cost_per_token():
    asked = {
        **question(
            "resnet-50", "a100-sxm-80gb", 8, micro_batch_size=256, sample=PICTURE, total_samples=10_000_000
        ),
        "rental": {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}},
    }
    answer = ask(shipped(), "cost", asked)
    assert gaps(answer)["/cost_per_million_tokens"] == "NO_TOKENS"
    assert float(answer["total"]["amount"]) > 0.0


def test_recomputation_of_a_tower_is_one_more_forward_pass_of_its_blocks():
    times = {}
    for strategy in ("none", "full"):
        answer = throughput(
            "vit-large-patch16-224",
            "h100-sxm",
            micro_batch_size=64,
            sample=PICTURE,
            recomputation={"strategy": strategy},
        )
        times[strategy] = {phase["phase"]: phase["seconds"]["value"] for phase in answer["breakdown"]}
    assert "recomputation" not in times["none"]
    assert times["full"]["recomputation"] == pytest.approx(times["full"]["forward"], rel=0.1)
    assert "DOES_NOT_FIT" not in codes(answer["warnings"])


def test_a_model_that_sees_is_served_text_alone_unless_pictures_are_given():
    asked = {"kind": "inference", "input_tokens": 1000, "output_tokens": 200, "concurrency": 16}
    question = {
        "model": {"source": "catalog", "id": "qwen3-vl-8b"},
        "workload": asked,
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1},
    }
    alone = ask(shipped(), "throughput", question)
    pictured = {**asked, "sample": {"height": 1024, "width": 1024, "images": 1}}
    seen = ask(shipped(), "throughput", {**question, "workload": pictured})
    assert "TOKENS_ALONE_COUNTED" in codes(alone["warnings"])
    assert "TOKENS_ALONE_COUNTED" not in codes(seen["warnings"])
    assert alone["output_tokens_per_second"]["value"] > 1.1 * seen["output_tokens_per_second"]["value"] > 0
