"""Requests that are forward passes: embedding, ranking, classification, pictures and videos."""

import pytest

from tests.asking import ask, codes, gaps, question, refusal, shipped

CLIP = {"model": {"source": "catalog", "id": "clip-vit-large-patch14"}}
T5 = {"model": {"source": "catalog", "id": "t5-v1.1-xxl-encoder"}}
DECODER = {"model": {"source": "catalog", "id": "stable-diffusion-vae"}}


def asked(model, accelerator="h100-sxm", count=1, *, operation="throughput", **workload):
    given = question(model, accelerator, count) | {"workload": {"kind": "inference", **workload}}
    return ask(shipped(), operation, given)


def value(answer, *path):
    for name in path:
        answer = answer[name]
    return answer["value"] if isinstance(answer, dict) else answer


def phases(answer):
    return {phase["phase"]: phase["seconds"]["value"] for phase in answer["breakdown"]}


def flops(answer, phase):
    return sum(model["flops"] for model in answer["passes"]["models"] if model["phase"] == phase)


@pytest.mark.parametrize(
    ("model", "workload"),
    [
        ("bert-large", {"input_tokens": 512}),
        ("modernbert-large", {"input_tokens": 512, "passes": {}}),
        ("qwen3-8b", {"input_tokens": 512, "passes": {"task": "embedding"}}),
        ("vit-large-patch16-224", {}),
        ("resnet-50", {}),
        ("clip-vit-large-patch14", {}),
        ("t5-v1.1-xxl-encoder", {"input_tokens": 512}),
        ("stable-diffusion-1.5-unet", {"sample": {"height": 512}}),
        ("stable-diffusion-vae", {"sample": {"height": 512}}),
        ("dlrm-criteo-1tb", {}),
    ],
)
def test_every_kind_of_pass_has_a_latency_that_its_phases_add_up_to(model, workload):
    answer = asked(model, concurrency=4, **workload)
    request = value(answer, "request_seconds")
    assert sum(phases(answer).values()) == pytest.approx(request)
    assert value(answer, "requests_per_second") * request == pytest.approx(4)
    assert gaps(answer)["/output_tokens_per_second"] == "NOT_APPLICABLE"
    low, high = (answer["request_seconds"][end] for end in ("low", "high"))
    assert low < request < high
    assert "DOES_NOT_FIT" not in codes(answer["warnings"])


def test_embedding_skips_the_head_and_ranking_takes_one_token_through_it():
    whole, embedded, ranked = (
        flops(asked("bert-large", input_tokens=512, **changes), "forward")
        for changes in ({}, {"passes": {}}, {"passes": {"task": "reranking"}})
    )
    head = 2 * 1024 * 30522
    assert whole - embedded == pytest.approx(512 * head)
    assert ranked - embedded == pytest.approx(head)


def test_a_query_with_twenty_documents_is_twenty_sequences():
    one, twenty = (
        asked("qwen3-8b", input_tokens=512, passes={"task": "reranking", "sequences": sequences})
        for sequences in (1, 20)
    )
    assert flops(twenty, "forward") == pytest.approx(20 * flops(one, "forward"))
    assert value(twenty, "passes", "samples_per_second") == pytest.approx(
        20 * value(twenty, "requests_per_second")
    )


def test_an_embedding_decoder_is_its_prefill_without_a_head():
    """2 FLOPs for each of the 6.95 billion weights inside blocks, and half of the scores."""
    answer = asked("qwen3-8b", input_tokens=512, passes={})
    assert flops(answer, "forward") == pytest.approx(512 * 2 * 6.946e9, rel=0.02)


SDXL = {"steps": 30, "text_encoders": [CLIP], "autoencoder": DECODER | {"precision": "tf32"}}


@pytest.mark.parametrize(
    ("accelerator", "measured"), [("a10", 8.160), ("a100-sxm-80gb", 2.742), ("h100-sxm", 1.471)]
)
def test_pictures_of_stable_diffusion_xl_in_tensorrt(accelerator, measured):
    """Model card of stable-diffusion-xl-1.0-tensorrt: 30 steps at 1024 x 1024."""
    answer = asked(
        "sdxl-unet",
        accelerator,
        sample={"height": 1024},
        weight_precision="fp16",
        engine={"name": "tensorrt"},
        diffusion=SDXL,
    )
    request = answer["request_seconds"]
    assert request["value"] == pytest.approx(measured, rel=0.3)
    assert request["low"] < measured < request["high"]
    found = phases(answer)
    assert set(found) == {"text_encoder", "denoiser", "autoencoder"}
    assert found["denoiser"] > 0.9 * request["value"]
    models = {model["phase"]: model for model in answer["passes"]["models"]}
    assert (models["denoiser"]["evaluations"], models["denoiser"]["samples"]) == (30, 2)


def test_a_denoiser_without_sampling_is_one_evaluation():
    answer = asked("dit-xl-2")
    (model,) = answer["passes"]["models"]
    assert (model["phase"], model["evaluations"], model["samples"]) == ("forward", 1, 1)
    assert model["flops"] == pytest.approx(2 * 118.64e9, rel=0.03)


def test_fifty_guided_steps_of_a_dit():
    """G09: 119 giga multiplications, 50 steps, 2 evaluations: 23.7 TFLOP."""
    answer = asked("dit-xl-2", diffusion={"sampler": "ddim"})
    assert flops(answer, "denoiser") == pytest.approx(23.7e12, rel=0.03)
    assert {"/workload/diffusion/text_encoders", "/workload/diffusion/autoencoder"} <= {
        warning["pointer"] for warning in answer["warnings"]
    }
    slow = asked("dit-xl-2", diffusion={"sampler": "ddpm"})
    assert flops(slow, "denoiser") == pytest.approx(20 * flops(answer, "denoiser"))


def test_a_model_that_guidance_was_distilled_into():
    sampled = {"sampler": "euler", "guidance": "none", "text_encoders": [CLIP, T5], "autoencoder": DECODER}
    answer = asked("flux.1-dev", sample={"height": 1024}, diffusion=sampled)
    models = [
        (model["phase"], model["evaluations"], model["samples"]) for model in answer["passes"]["models"]
    ]
    assert models == [
        ("text_encoder", 1, 1),
        ("text_encoder", 1, 1),
        ("denoiser", 28, 1),
        ("autoencoder", 1, 1),
    ]
    # 74.4 TFLOP a step at 1024 x 1024.
    assert flops(answer, "denoiser") == pytest.approx(28 * 74.4e12, rel=0.01)


def test_a_video_takes_minutes():
    """A clip of 81 frames at 480 x 832 in 50 guided steps of 14 billion parameters."""
    answer = asked("wan-2.1-14b", sample={"height": 480, "width": 832, "frames": 81}, diffusion={})
    assert 180.0 < value(answer, "request_seconds") < 900.0


def test_tiles_of_a_decoder_overlap():
    def decoding(**changes):
        sampled = {"steps": 1, "autoencoder": DECODER | changes}
        return flops(asked("sdxl-unet", sample={"height": 1024}, diffusion=sampled), "autoencoder")

    assert 1.5 < decoding(tile_pixels=512) / decoding() < 9 / 4 * 1.05


def test_memory_counts_what_a_picture_passes_beside_its_denoiser():
    def parts(**workload):
        answer = asked("sdxl-unet", operation="memory", sample={"height": 1024}, **workload)
        return {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}

    assert "auxiliary_models" not in parts()
    found = parts(diffusion={"text_encoders": [T5], "autoencoder": DECODER})
    # 4.76 billion parameters of the encoder and 84 million of the autoencoder.
    assert found["auxiliary_models"] == pytest.approx(2 * (4.762e9 + 83.65e6), rel=0.01)


def test_requests_at_a_rate_are_batched():
    """Waiting fills passes: the latency is that of the queue, the batch what arrives in a pass."""
    answer = asked("vit-large-patch16-224", request_rate_per_second=1000.0, engine={"name": "tensorrt"})
    assert value(answer, "requests_per_second") == 1000.0
    seconds = answer["request_seconds_percentiles"]
    assert seconds["p50"] <= seconds["p95"] <= seconds["p99"]
    assert answer["passes"]["batch"] > 1.0
    assert answer["saturation"]["limit"] == "arrivals"
    assert value(answer, "utilization") < 1.0


def test_more_than_can_be_served_is_said_so():
    answer = asked("vit-large-patch16-224", request_rate_per_second=1e6)
    assert answer["saturation"]["saturated"]
    assert gaps(answer)["/request_seconds"] == "SATURATED"
    assert "SATURATED" in codes(answer["warnings"])


def test_a_bounded_batch_waits_and_a_delay_fills_it():
    free = asked("vit-large-patch16-224", concurrency=64)
    bound = asked("vit-large-patch16-224", concurrency=64, batching={"max_requests": 8})
    assert free["passes"]["batch"] == 64
    assert bound["passes"]["batch"] == 8
    assert "waiting" in phases(bound)
    rate = {"request_rate_per_second": 100.0}
    at_once = asked("vit-large-patch16-224", **rate)
    later = asked("vit-large-patch16-224", **rate, batching={"delay_seconds": 0.05})
    assert later["passes"]["batch"] > 2 * at_once["passes"]["batch"]


def test_replicas_and_tensor_parallelism():
    one, eight = (asked("flux.1-dev", count=n, concurrency=8, sample={"height": 1024}) for n in (1, 8))
    assert value(eight, "requests_per_second") == pytest.approx(
        8 * value(one, "requests_per_second"), rel=0.1
    )
    given = question("flux.1-dev", "h100-sxm", 8) | {
        "workload": {"kind": "inference", "sample": {"height": 1024}},
        "parallelism": {"tensor": 8},
    }
    cut = ask(shipped(), "throughput", given)
    assert value(cut, "request_seconds") < 0.4 * value(one, "request_seconds") / 8 * 2


def test_eager_programs_are_bound_by_their_host():
    eager = asked("resnet-50", engine={"name": "pytorch"})
    built = asked("resnet-50", engine={"name": "tensorrt"})
    assert eager["bottleneck"]["bound"] == "host"
    assert value(built, "request_seconds") < 0.2 * value(eager, "request_seconds")
    assert "FEWER_LAUNCHES" in codes(eager["bottleneck"]["advice"])


def test_an_assumed_utilization_is_the_roofline():
    """BERT-large over 64 x 512 tokens: FLOPs over half of the peak rate, and norms at full bandwidth."""
    given = question("bert-large", "h100-sxm") | {
        "workload": {"kind": "inference", "input_tokens": 512, "concurrency": 64, "passes": {}},
        "efficiency": {"source": "assumed", "utilization": 0.5, "bandwidth_utilization": 1.0},
    }
    answer = ask(shipped(), "throughput", given)
    seconds = answer["request_seconds"]
    assert seconds["low"] == seconds["value"] == seconds["high"]
    least = 64 * flops(answer, "forward") / (0.5 * 989e12)
    assert least < seconds["value"] < 1.25 * least


def test_power_and_energy_of_a_picture():
    answer = asked("sdxl-unet", sample={"height": 1024}, engine={"name": "tensorrt"}, diffusion=SDXL)
    watts = value(answer, "power_per_device_watts")
    assert 300.0 < watts <= 700.0
    joules = value(answer, "passes", "energy_per_sample_joules")
    assert joules == pytest.approx(watts * value(answer, "request_seconds"), rel=0.01)
    idle = asked("sdxl-unet", count=8, sample={"height": 1024}, engine={"name": "tensorrt"}, diffusion=SDXL)
    assert value(idle, "power_per_device_watts") < 0.5 * watts


def test_cost_of_a_million_pictures():
    given = question("sdxl-unet", "h100-sxm", 8) | {
        "workload": {
            "kind": "inference",
            "sample": {"height": 1024},
            "diffusion": SDXL,
            "concurrency": 8,
            "horizon": {"total_requests": 1_000_000},
        },
        "rental": {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}},
    }
    answer = ask(shipped(), "cost", given)
    rate = ask(shipped(), "throughput", {name: given[name] for name in ("model", "cluster", "workload")})
    assert value(answer, "duration_seconds") == pytest.approx(1e6 / value(rate, "requests_per_second"))
    assert gaps(answer)["/cost_per_million_tokens"] == "NO_TOKENS"


@pytest.mark.parametrize(
    ("model", "workload", "code", "pointer"),
    [
        ("bert-large", {"diffusion": {}}, "NOT_A_DENOISER", "/workload/diffusion"),
        (
            "sdxl-unet",
            {"diffusion": {"autoencoder": CLIP}},
            "NOT_AN_AUTOENCODER",
            "/workload/diffusion/autoencoder/model",
        ),
        (
            "sdxl-unet",
            {"diffusion": {"text_encoders": [{"model": {"source": "catalog", "id": "none"}}]}},
            "NOT_FOUND",
            "/workload/diffusion/text_encoders/0/model/id",
        ),
    ],
)
def test_what_contradicts_the_model_is_refused(model, workload, code, pointer):
    given = question(model, "h100-sxm") | {"workload": {"kind": "inference", **workload}}
    found = refusal(shipped(), "throughput", given)
    assert found[1] == pointer
    if code != "NOT_FOUND":
        assert found[0] == code


def test_a_picture_without_a_size_is_a_gap():
    assert gaps(asked("stable-diffusion-vae"))["/requests_per_second"] == "SAMPLE_FIELD_MISSING"
