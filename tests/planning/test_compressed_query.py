"""Attention by heads whose queries are rebuilt from a compressed one."""

from dataclasses import replace

from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import Attention, TensorSplit
from service.planning.models.profile import KernelChoice, build_profile
from service.planning.models.profile.activations import TrainedMatrices, activation_terms
from service.planning.models.profile.layer_operators import MatrixTemplate, StreamedTemplate, layer_templates

HIDDEN, HEADS, SIZE, RANK = 96, 8, 16, 24
PLAIN = Attention(hidden_size=HIDDEN, query_heads=HEADS, key_value_heads=1, head_size=SIZE)
COMPRESSED = replace(PLAIN, query_rank=RANK)
QUERY, KEY_VALUE, OUTPUT = HEADS * SIZE, 2 * SIZE, HEADS * SIZE


def test_a_compressed_query_takes_two_matrices_and_a_norm():
    tensors = {tensor.name: (tensor.shape, tensor.split) for tensor in COMPRESSED.list_tensors()}
    assert tensors["query_down"] == ((HIDDEN, RANK), TensorSplit.NONE)
    assert tensors["query_up"] == ((RANK, QUERY), TensorSplit.COLUMN)
    assert tensors["query_down_norm"] == ((RANK,), TensorSplit.NONE)
    assert "query" not in tensors
    elements = HIDDEN * RANK + RANK + RANK * QUERY + HIDDEN * KEY_VALUE + OUTPUT * HIDDEN
    profile = build_profile(Architecture(layers=(LayerBlock(layers=(COMPRESSED,), count=3),)))
    assert profile.parameter_count == 3 * elements
    assert profile.matmul_flops_per_token == 3 * 2 * (elements - RANK)


def test_its_operators_multiply_what_its_matrices_hold():
    templates = list(layer_templates(COMPRESSED, KernelChoice()))
    products = sum(
        each.depth * each.columns * each.times for each in templates if isinstance(each, MatrixTemplate)
    )
    assert products == HIDDEN * RANK + RANK * QUERY + HIDDEN * KEY_VALUE + OUTPUT * HIDDEN
    (norm,) = [each for each in templates if isinstance(each, StreamedTemplate) and each.name == "norm"]
    assert norm.forward.whole == 2 * RANK


def test_training_keeps_the_compressed_query_before_and_behind_its_norm():
    plain, compressed = activation_terms(PLAIN), activation_terms(COMPRESSED)
    assert compressed.whole_elements - plain.whole_elements == 2 * RANK
    assert (compressed.whole_normed, compressed.whole_inputs) == (RANK, HIDDEN + RANK)
    assert compressed.split_elements == plain.split_elements


def test_a_frozen_attention_keeps_what_the_matrices_of_low_rank_read():
    frozen = activation_terms(COMPRESSED, TrainedMatrices(frozenset({"value"}), 4))
    assert frozen.whole_elements == HIDDEN + RANK + 4
    adapted = activation_terms(COMPRESSED, TrainedMatrices(frozenset({"query_up"}), 4))
    assert adapted.whole_elements == RANK + RANK + 4
