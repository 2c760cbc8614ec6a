"""Llama for retrieval, against the totals of its files in data/hf_models.json of llmfit 1.1.17 (MIT)."""

import pytest

from service.formats.huggingface import import_config
from service.planning.memory.caches import key_value_bytes
from service.planning.models.profile import build_profile
from service.planning.precision import NumberFormat

EMBEDDING = {
    "model_type": "llama_bidirec",
    "architectures": ["LlamaBidirectionalModel"],
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": True,
}
LARGER = {
    **EMBEDDING,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
}


@pytest.mark.parametrize(("config", "total"), [(EMBEDDING, 1_235_814_400), (LARGER, 7_504_924_672)])
def test_parameters_are_those_of_the_files(config, total):
    assert build_profile(import_config(config).architecture).parameter_count == total


def test_it_sees_both_ways_and_keeps_nothing():
    architecture = import_config(EMBEDDING).architecture
    seen = [layer for block in architecture.list_blocks() for layer in block.layers]
    assert {layer.causal for layer in seen if layer.kind == "attention"} == {False}
    assert key_value_bytes(build_profile(architecture), 1000.0, NumberFormat.BF16) == 0.0


def test_a_reranker_has_a_score():
    config = {
        **EMBEDDING,
        "architectures": ["LlamaBidirectionalForSequenceClassification"],
        "id2label": {"0": "LABEL_0"},
    }
    assert build_profile(import_config(config).architecture).parameter_count == 1_235_814_400 + 2048
