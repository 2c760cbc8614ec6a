"""A model of the catalog is loaded as its repository publishes it."""

import json
from pathlib import Path

import pytest

from service.catalog.shipped import list_shipped_documents
from tests.asking import ask, codes, question, shipped

CONFIGS = sorted((Path(__file__).parents[1] / "data/configs").glob("*--*.json"))
TEXT_MODELS = {
    alias
    for row in list_shipped_documents()["models"]
    if row.get("note") == "The text model; towers for images are not in it."
    for alias in row["aliases"]
}
"""Rows without the tower for images that the repository publishes beside the text model."""
REPOSITORY_BYTES = {
    # OpenAI 2025, gpt-oss model card, table 1: checkpoints of 60.8 and 12.8 GiB.
    "gpt-oss-120b": 60.8 * 2**30,
    "gpt-oss-20b": 12.8 * 2**30,
    # DeepSeek-V3, README: 671B parameters in FP8, without the module that predicts two tokens.
    "deepseek-v3": 671e9,
    "deepseek-r1": 671e9,
    "deepseek-v3.1": 671e9,
    # Moonshot AI, model cards: 1T parameters in block FP8, and about 594 GB in INT4.
    "kimi-k2": 1026e9,
    "kimi-k2-thinking": 594e9,
    # MiniMax, model card: 230 GB in FP8.
    "minimax-m2": 230e9,
    # Headers of the files of GLM-5.3-Flash, 328,326,771,576 bytes, less those of its layer for drafts.
    "glm-5.3-flash": 320.8e9,
    # Files of Qwen3.8-Flash-Next-FP8, 172.8 GiB, less its layer for drafts: 2,516,582,400 values in FP8 and
    # 90,568,448 in 16 bits.
    "qwen3.8-flash-next-fp8": 172.8 * 2**30 - 2.70e9,
}


def served(model, accelerator="h200-sxm", count=1, **workload):
    return question(
        model,
        accelerator,
        count,
        **{"kind": "inference", "input_tokens": 1024, "output_tokens": 512, "concurrency": 8, **workload},
    )


def component(answer, name):
    return next(part["bytes"] for part in answer["per_device"]["components"] if part["name"] == name)


def weights(answer):
    return component(answer, "weights")


def kv_cache(answer):
    return component(answer, "kv_cache")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_row_answers_as_its_published_configuration(path):
    hub_id, config = path.stem.replace("--", "/", 1), json.loads(path.read_text(encoding="utf-8"))
    row, published = (
        ask(shipped(), "memory", served(model))
        for model in (hub_id, {"source": "huggingface_config", "config": config})
    )
    if hub_id in TEXT_MODELS:
        tower = weights(published) - weights(row)
        assert 0 < tower < 1.2e9
        assert kv_cache(row) == kv_cache(published)
        return
    for member in ("per_device", "limits", "parameter_count", "parallelism"):
        assert row[member] == published[member]


@pytest.mark.parametrize(("model", "published"), REPOSITORY_BYTES.items())
def test_weights_take_as_much_as_the_repository(model, published):
    # SGLang loads the files as they are; kernels of vLLM pad them.
    answer = ask(shipped(), "memory", served(model, engine={"name": "sglang"}))
    assert weights(answer) == pytest.approx(published, rel=0.006)


@pytest.mark.parametrize(
    ("model", "accelerator", "count"),
    [
        ("gpt-oss-120b", "h100-sxm", 1),
        ("gpt-oss-20b", "l4", 1),
        ("deepseek-v3", "h200-sxm", 8),
        ("deepseek-r1", "h200-sxm", 8),
        ("kimi-k2", "b200-sxm", 8),
        ("kimi-k2-thinking", "h200-sxm", 8),
    ],
)
def test_models_fit_the_machines_that_their_publishers_name(model, accelerator, count):
    assert ask(shipped(), "memory", served(model, accelerator, count))["fits"]


def test_a_precision_that_is_asked_for_wins_and_the_answer_says_so():
    answer = ask(shipped(), "memory", served("gpt-oss-20b", weight_precision="bf16"))
    assert weights(answer) == pytest.approx(2 * answer["parameter_count"], rel=1e-3)
    noted = next(note for note in answer["warnings"] if note["code"] == "CHECKPOINT_FORMAT_NOT_USED")
    assert noted["pointer"] == "/model/id"


def test_devices_without_the_format_widen_the_weights_and_the_answer_says_so():
    native = ask(shipped(), "throughput", served("deepseek-v3", "h200-sxm", 8))
    widened = ask(shipped(), "throughput", served("deepseek-v3", "a100-sxm-80gb", 16))
    assert "WEIGHTS_WIDENED" not in codes(native["warnings"])
    (noted,) = [note for note in widened["warnings"] if note["code"] == "WEIGHTS_WIDENED"]
    assert "bf16" in noted["detail"]


def test_a_training_question_takes_its_own_precision():
    asked = question("deepseek-v3", "h200-sxm", 512, total_tokens=10**9, sequence_length=4096)
    assert "QUANTIZATION_NOT_READ" in codes(ask(shipped(), "memory", asked)["warnings"])


def test_a_draft_model_is_loaded_as_published_too():
    speculative = {"model": {"source": "catalog", "id": "gpt-oss-20b"}, "tokens": 4, "acceptance_rate": 0.7}
    answer = ask(shipped(), "memory", served("gpt-oss-120b", count=2, speculative=speculative))
    assert component(answer, "draft_weights") < 14e9


def test_fp4_weights_are_widened_to_16_bits_without_units_of_fp4():
    """Marlin and matmul_ogs multiply 16-bit activations, on Hopper too, although it has units of FP8."""
    answer = ask(shipped(), "throughput", served("gpt-oss-20b", "h100-sxm"))
    (noted,) = [note for note in answer["warnings"] if note["code"] == "WEIGHTS_WIDENED"]
    assert "widen them to bf16" in noted["detail"]
    native = ask(shipped(), "throughput", served("gpt-oss-20b", "b200-sxm"))
    assert "WEIGHTS_WIDENED" not in codes(native["warnings"])
