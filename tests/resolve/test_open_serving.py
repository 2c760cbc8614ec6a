"""A serving question that leaves engine, layout or settings open is answered as a good team runs it."""

import json
from pathlib import Path

import pytest

from tests.asking import ask, codes, question, shipped

CONFIGS = Path(__file__).parents[1] / "data/configs"
OPERATIONS = ("memory", "throughput", "cost", "utility-bill")
ENGINE = "/workload/engine"


def served(model, accelerator, count=1, **workload):
    return question(
        model,
        accelerator,
        count,
        **{"kind": "inference", "input_tokens": 1024, "output_tokens": 512, **workload},
    )


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


def rule(answer, pointer):
    return next(default["rule"] for default in answer["defaults"] if default["pointer"] == pointer)


def degrees(answer):
    return {
        name: answer["parallelism"][name]
        for name in ("tensor", "pipeline", "data", "expert")
        if answer["parallelism"][name] > 1
    }


def rate(answer):
    return answer["output_tokens_per_second"]["value"]


@pytest.mark.parametrize(
    ("asked", "layout", "low", "high"),
    [
        # 65.5 GB of weights in bf16 on devices of 48 GB; 864 GB/s each (NVIDIA, L40S datasheet).
        (served("qwen3-32b", "l40s", 2), {"tensor": 2}, 15, 26),
        # vLLM and SGLang, recipes of DeepSeek-V3 and R1: tensor parallelism of 8 at a low load.
        (served("deepseek-r1", "h200-sxm", 8), {"tensor": 8}, 50, 150),
        (served("deepseek-r1", "b200-sxm", 8), {"tensor": 8}, 50, 200),
        (served("kimi-k2", "b200-sxm", 8), {"tensor": 8}, 50, 200),
        # OpenAI 2025, gpt-oss: runs on one device of 80 GB; 100 to 250 tokens/s of one stream are reported.
        (served("gpt-oss-120b", "h100-sxm"), {}, 100, 250),
        (served("llama-3.1-70b", "h100-sxm", 8), {"tensor": 8}, 60, 120),
        # Meta 2024, model card of Llama 3.1: 405B in FP8 runs on one node of eight H100.
        (served("llama-3.1-405b", "h100-sxm", 8, weight_precision="fp8"), {"tensor": 8}, 25, 60),
        # AMD 2024: 405B in bf16 runs on one node of eight MI300X.
        (served("llama-3.1-405b", "mi300x", 8), {"tensor": 8}, 20, 50),
        # 16 GB of weights at 300 GB/s (NVIDIA, L4 datasheet): at most 18.7 tokens/s.
        (served("llama-3.1-8b", "l4"), {}, 12, 18.7),
    ],
    ids=lambda value: (
        value["model"]["id"] + "-" + value["cluster"]["accelerator"]["id"]
        if isinstance(value, dict) and "model" in value
        else ""
    ),
)
def test_one_stream_of_a_model_on_the_machine_that_its_publishers_name(asked, layout, low, high):
    answer = ask(shipped(), "throughput", asked)
    assert degrees(answer) == layout
    assert low < rate(answer) < high
    assert not codes(answer["warnings"]) & {"DOES_NOT_FIT", "REPLICAS_IDLE"}
    assert ask(shipped(), "memory", asked)["fits"]


def test_replicas_wait_for_a_load_and_data_parallel_attention_for_a_high_one():
    few, many = (
        ask(shipped(), "throughput", served("llama-3.1-8b", "h100-sxm", 8, concurrency=requests))
        for requests in (1, 1024)
    )
    assert (degrees(few), degrees(many)) == ({"tensor": 8}, {"data": 8})
    # vLLM, recipe of DeepSeek-V3: data parallelism for a high load, tensor parallelism for a low one.
    crowded = ask(shipped(), "throughput", served("deepseek-r1", "h200-sxm", 8, concurrency=1024))
    assert degrees(crowded) == {"data": 8, "expert": 8}


def test_a_rate_that_small_replicas_carry_takes_them_unless_a_latency_asks_for_more():
    load = {"request_rate_per_second": 1.0}
    open_load = served("llama-3.1-70b", "h100-sxm", 8, **load)
    assert degrees(ask(shipped(), "throughput", open_load)) == {"tensor": 2, "data": 4}
    levels = {"time_per_output_token_seconds": 0.015}
    hurried = served("llama-3.1-70b", "h100-sxm", 8, **load, service_levels=levels)
    answer = ask(shipped(), "throughput", hurried)
    assert degrees(answer) == {"tensor": 8}
    assert answer["service_level_goodput"]["attained"]
    # No layout keeps a millisecond a token: the quickest misses it by the least.
    impossible = {**hurried["workload"], "service_levels": {"time_per_output_token_seconds": 0.001}}
    assert degrees(ask(shipped(), "throughput", {**hurried, "workload": impossible})) == {"tensor": 8}


@pytest.mark.parametrize("concurrency", [1, 16, 256])
def test_no_stated_layout_is_faster_by_more_than_the_kept_share(concurrency):
    asked = served("llama-3.1-70b", "h100-sxm", 8, concurrency=concurrency)
    chosen = rate(ask(shipped(), "throughput", asked))
    for tensor in (2, 4, 8):
        stated = ask(shipped(), "throughput", {**asked, "parallelism": {"tensor": tensor}})
        assert chosen >= 0.9 * rate(stated)


@pytest.mark.parametrize(
    "asked",
    [
        served("gpt-oss-120b", "h100-sxm", horizon={"duration_seconds": 3600.0}),
        served("deepseek-r1", "h200-sxm", 8, concurrency=512, horizon={"duration_seconds": 3600.0}),
    ],
)
def test_the_answers_to_one_question_name_the_same_settings(asked):
    answers = [ask(shipped(), operation, asked) for operation in OPERATIONS]
    assert all(answer["parallelism"] == answers[0]["parallelism"] for answer in answers)
    assert all(filled(answer) == filled(answers[0]) for answer in answers)


def test_each_setting_that_is_left_open_is_named_with_its_rule():
    answer = ask(shipped(), "throughput", served("llama-3.1-8b", "h100-sxm"))
    assert filled(answer) == {
        ENGINE: "vllm",
        "/workload/weight_precision": "bf16",
        "/workload/kv_cache_precision": "bf16",
        # vLLM, engine arguments and CacheConfig: the defaults on a device of 70 GiB and more.
        f"{ENGINE}/max_num_seqs": "1024",
        f"{ENGINE}/max_batched_tokens": "8192",
        f"{ENGINE}/block_tokens": "16",
        f"{ENGINE}/chunked_prefill": "true",
        f"{ENGINE}/attention_release": "native",
        "/workload/memory_fraction": "0.92",
        "/workload/scheduler": "continuous",
        "/workload/concurrency": "1",
        "/workload/prefix_cache_hit_rate": "0",
    }
    assert rule(answer, ENGINE) == "service"
    assert rule(answer, "/workload/memory_fraction") == "engine"


def test_what_is_stated_is_kept_and_not_among_the_defaults():
    engine = {
        "name": "sglang",
        "version": "0.5.4",
        "max_num_seqs": 32,
        "max_batched_tokens": 4096,
        "chunked_prefill": False,
        "attention_release": "second",
    }
    stated = {
        "engine": engine,
        "memory_fraction": 0.8,
        "kv_cache_precision": "fp8",
        "concurrency": 4,
        "prefix_cache_hit_rate": 0.0,
        "scheduler": "continuous",
    }
    answer = ask(shipped(), "throughput", served("llama-3.1-8b", "h100-sxm", **stated))
    assert set(filled(answer)) == {"/workload/weight_precision", f"{ENGINE}/block_tokens"}
    assert rule(answer, f"{ENGINE}/block_tokens") == "engine"


def test_a_stated_engine_keeps_its_own_share_and_an_open_one_makes_room():
    """vLLM's 0.92 of an H100 leaves no room beside gpt-oss-120b, whose guides raise it."""
    asked = served("gpt-oss-120b", "h100-sxm")
    raised = ask(shipped(), "memory", asked)
    assert (filled(raised)["/workload/memory_fraction"], raised["fits"]) == ("0.95", True)
    assert rule(raised, "/workload/memory_fraction") == "service"
    stated = ask(shipped(), "memory", served("gpt-oss-120b", "h100-sxm", engine={"name": "vllm"}))
    assert (filled(stated)["/workload/memory_fraction"], stated["fits"]) == ("0.92", False)
    hopeless = ask(shipped(), "memory", served("llama-3.1-70b", "h100-sxm"))
    assert (filled(hopeless)["/workload/memory_fraction"], hopeless["fits"]) == ("0.92", False)


@pytest.mark.parametrize(
    ("workload", "engine"),
    [
        ({"weight_format": "gguf_q4_k_m"}, "llama.cpp"),
        ({"kv_cache_precision": "q8_0"}, "llama.cpp"),
        ({"scheduler": "static"}, None),
        ({"passes": {}}, None),
    ],
)
def test_the_engine_follows_formats_and_work(workload, engine):
    answer = ask(shipped(), "memory", served("llama-3.1-8b", "h100-sxm", **workload))
    assert filled(answer).get(ENGINE) == engine


@pytest.mark.parametrize(
    ("device", "engine"),
    [
        ("apple-m4-max-64gb", "llama.cpp"),
        ("epyc-9654", "llama.cpp"),
        ("strix-halo-128gb", "llama.cpp"),
        ("jetson-orin-nano-8gb", "llama.cpp"),
        ("p40", "llama.cpp"),
        ("mi100", "llama.cpp"),
        ("groq-lpu-v1", None),
        ("gb10", "vllm"),
        ("jetson-thor-128gb", "vllm"),
        ("mi210", "vllm"),
        ("tpu-v6e", "vllm"),
        ("trainium2", "vllm"),
        ("gaudi3", "vllm"),
        ("arc-pro-b60", "vllm"),
    ],
)
def test_the_engine_is_one_that_runs_on_the_device(device, engine):
    assert filled(ask(shipped(), "memory", served("llama-3.2-1b", device))).get(ENGINE) == engine


class TestLlamaCpp:
    """What llama.cpp does where the question leaves it open, named with its rule."""

    @pytest.mark.parametrize("stated", [{}, {"engine": {"name": "llama.cpp"}}])
    def test_it_loads_the_file_that_it_downloads_by_default(self, stated):
        answer = ask(shipped(), "memory", served("llama-3.1-8b", "apple-m4-max-64gb", **stated))
        pointer = "/workload/weight_format"
        assert (filled(answer)[pointer], rule(answer, pointer)) == ("gguf_q4_k_m", "engine")
        # The file of bartowski has 4.92 GB.
        assert answer["stored_weight_bytes"] == pytest.approx(4.92e9, rel=0.01)

    def test_it_loads_the_width_that_a_name_states(self):
        answer = ask(shipped(), "memory", served("Qwen/Qwen3-8B-BF16", "apple-m4-max-64gb"))
        pointer = "/workload/weight_format"
        assert (filled(answer)[pointer], rule(answer, pointer)) == ("gguf_f16", "published")

    def test_it_keeps_published_blocks_and_reads_no_other_format(self):
        kept = ask(shipped(), "memory", served("gpt-oss-120b", "apple-m3-ultra-512gb"))
        assert filled(kept)["/workload/weight_precision"] == "mxfp4"
        other = ask(shipped(), "memory", served("deepseek-r1", "apple-m3-ultra-512gb"))
        assert filled(other)["/workload/weight_format"] == "gguf_q4_k_m"
        assert "CHECKPOINT_FORMAT_NOT_USED" in codes(other["warnings"])
        assert other["fits"]

    def test_a_file_of_its_own_brings_it_to_any_device_and_one_of_mlx_does_not(self):
        engines = [
            filled(ask(shipped(), "memory", served(model, device))).get(ENGINE)
            for model, device in (
                ("unsloth/Qwen3-8B-GGUF", "h100-sxm"),
                ("mlx-community/Qwen3-8B-4bit", "apple-m4-max-64gb"),
            )
        ]
        assert engines == ["llama.cpp", None]

    def test_its_devices_hold_whole_layers(self):
        asked = served("llama-3-70b", "rtx-4090", 2, weight_format="gguf_q4_k_m", input_tokens=1)
        answer = ask(shipped(), "throughput", asked)
        assert degrees(answer) == {"pipeline": 2}
        # GPU-Benchmarks-on-LLM-Inference: 19.06 tokens/s, layers split over two RTX 4090.
        low, high = (1 / answer["time_per_output_token_seconds"][end] for end in ("high", "low"))
        assert low < 19.06 < high

    def test_its_cache_is_of_16_bits_also_where_the_device_multiplies_in_32(self):
        answer = ask(shipped(), "memory", served("llama-3.1-8b", "p40"))
        assert filled(answer)["/workload/kv_cache_precision"] == "fp16"


class TestCacheFormat:
    CONFIG = json.loads((CONFIGS / "meta-llama--Meta-Llama-3.1-8B.json").read_text(encoding="utf-8"))

    def ask(self, accelerator, *, cache="FP8", **workload):
        quantized = {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": cache}
        config = {**self.CONFIG, "quantization_config": quantized}
        model = {"source": "huggingface_config", "config": config}
        return ask(shipped(), "memory", served(model, accelerator, **workload))

    def test_the_published_format_is_the_default(self):
        answer = self.ask("h100-sxm")
        assert rule(answer, "/workload/kv_cache_precision") == "published"
        assert filled(answer)["/workload/kv_cache_precision"] == "fp8"
        # 32 layers x 2 x 8 heads x 128 x 1 byte.
        assert answer["kv_cache"]["bytes_per_token"] == 65536
        assert "CACHE_WIDENED" not in codes(answer["warnings"])

    def test_what_is_stated_wins(self):
        answer = self.ask("h100-sxm", kv_cache_precision="bf16")
        assert answer["kv_cache"]["bytes_per_token"] == 131072
        assert "/workload/kv_cache_precision" not in filled(answer)

    @pytest.mark.parametrize("workload", [{"weight_precision": "bf16"}, {"engine": {"name": "transformers"}}])
    def test_other_weights_and_engines_that_do_not_read_it_keep_16_bits(self, workload):
        assert self.ask("h100-sxm", **workload)["kv_cache"]["bytes_per_token"] == 131072

    @pytest.mark.parametrize(
        ("accelerator", "cache", "stored", "size"),
        [
            # FlashInfer reads a cache of FP8 on Ampere; a cache of FP4 needs Blackwell.
            ("a100-sxm-80gb", "FP8", "fp8", 65536),
            ("h100-sxm", "NVFP4", "fp8", 65536),
        ],
    )
    def test_a_device_without_the_units_stores_the_nearest_and_says_so(
        self, accelerator, cache, stored, size
    ):
        answer = self.ask(accelerator, cache=cache)
        (noted,) = [note for note in answer["warnings"] if note["code"] == "CACHE_WIDENED"]
        assert noted["pointer"] == "/workload/kv_cache_precision"
        assert filled(answer)["/workload/kv_cache_precision"] == stored
        assert answer["kv_cache"]["bytes_per_token"] == size

    def test_blackwell_keeps_four_bits_and_a_scale_of_sixteen_elements(self):
        answer = self.ask("b200-sxm", cache="NVFP4")
        assert answer["kv_cache"]["bytes_per_token"] == 65536 * (0.5 + 1 / 16)
        assert "CACHE_WIDENED" not in codes(answer["warnings"])


@pytest.mark.parametrize("concurrency", [50, 120, 174, 300])
def test_a_layout_that_holds_the_stated_concurrency_goes_first(concurrency):
    """Llama 3.1 70B on two MI300X: alone each device holds fewer requests than both together."""
    asked = question("llama-3.1-70b", "mi300x", 2)
    load = {"kind": "inference", "input_tokens": 3000, "output_tokens": 1300, "concurrency": concurrency}
    asked = {**asked, "workload": {**load, "engine": {"name": "vllm"}}}
    layouts = ({"tensor": 1, "data": 2}, {"tensor": 2})
    fitting = [ask(shipped(), "memory", {**asked, "parallelism": layout})["fits"] for layout in layouts]
    assert ask(shipped(), "memory", asked)["fits"] == any(fitting)


def test_a_windowed_layer_holds_its_window_of_a_request_that_generates():
    """gpt-oss-20b on one H100: 12 of 24 layers cache 128 tokens, 2 x 8 x 64 x 2 bytes each.

    1,024 requests at their longest, 2,400 tokens, take 1024 x 12 x 2048 x (2400 + 128) = 64 GB, in the middle
    of their output 37 GB, of some 58 GB beside 14 GB of weights (vLLM, Hybrid KV Cache Manager, 2025).
    """
    load = {"kind": "inference", "input_tokens": 300, "output_tokens": 2100, "concurrency": 1024}
    engine = {"name": "vllm", "version": "0.11", "max_num_seqs": 1024}
    asked = {**question("gpt-oss-20b", "h100-sxm"), "workload": {**load, "engine": engine}}
    answer = ask(shipped(), "throughput", asked)
    assert answer["mean_batch"]["value"] > 1000
    assert answer["preemptions_per_request"]["value"] < 0.01
