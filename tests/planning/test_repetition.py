"""Repetition is a number: what is kept of a model does not grow with it, and its bounds name the member."""

from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.hardware.storage import GGUF_FORMATS
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import (
    Attention,
    Convolution,
    EmbeddingTable,
    FeedForward,
    LearnedVectors,
    Linear,
    Normalization,
)
from service.planning.models.positions import MOST_REPEATED, SampleShape, block_positions
from service.planning.models.profile import build_profile
from service.planning.models.profile.limits import MOST_BLOCKS, MOST_DIFFERENT, MOST_LAYERS, MOST_WRITTEN
from service.planning.models.profile.runs import running_sums
from service.planning.models.profile.sampled import training_profile
from service.planning.parallelism import list_divisors

ATTENTION = Attention(hidden_size=64, query_heads=4, key_value_heads=4, head_size=16)
BLOCK = LayerBlock(layers=(ATTENTION, FeedForward(hidden_size=64, inner_size=64)))
LOOSE = [
    Normalization(size=8),
    Linear(input_size=4, output_size=2),
    LearnedVectors(purpose="bias", size=8),
    EmbeddingTable(rows=2, size=4),
]


def kept(value):
    """How many numbers, texts and ranges hang on a value."""
    if isinstance(value, dict):
        return sum(map(kept, value.values()))
    if isinstance(value, tuple | list | set | frozenset):
        return sum(map(kept, value))
    if hasattr(value, "__dataclass_fields__"):
        return sum(kept(getattr(value, name)) for name in value.__dataclass_fields__)
    return 1


@pytest.mark.parametrize("layer", LOOSE, ids=lambda layer: layer.kind)
def test_layers_outside_blocks_are_counted_not_listed(layer):
    few, many = (
        build_profile(Architecture(layers=(BLOCK, replace(layer, count=count))))
        for count in (2, MOST_LAYERS - 2)
    )
    assert kept(many) == kept(few)
    one = few.parameter_count - build_profile(Architecture(layers=(BLOCK,))).parameter_count
    assert many.parameter_count - few.parameter_count == one // 2 * (MOST_LAYERS - 4)
    assert sum(tensor.size * n for tensor, n in many.head_tensors) == one // 2 * (MOST_LAYERS - 2)


def test_blocks_are_counted_not_listed():
    few, many = (build_profile(Architecture(layers=(replace(BLOCK, count=n),))) for n in (2, MOST_BLOCKS))
    assert kept(many) == kept(few)
    assert many.block_count == MOST_BLOCKS
    assert many.prefixes[-1][0] == MOST_BLOCKS // 2 * few.prefixes[-1][0]


def test_blocks_of_a_sample_are_counted_not_listed():
    stem = LayerBlock(layers=(Linear(input_size=8, output_size=64),), unit=False)

    def trained(count):
        made = Architecture(layers=(stem, replace(BLOCK, count=count), replace(stem, count=1)))
        return training_profile(build_profile(made), made, SampleShape(tokens=16))

    few, many = trained(3), trained(9000)
    assert kept(many.activation_prefixes) == kept(few.activation_prefixes)
    middle = few.blocks[0].activations.whole_elements
    assert many.activations.whole_elements - few.activations.whole_elements == 8997 * middle


def test_a_format_by_layer_asks_each_kind_of_layer_once():
    asked = []
    stated = GGUF_FORMATS["gguf_q4_k_m"]
    counting = replace(stated, scheme_of=lambda *place: asked.append(place) or stated.scheme_of(*place))
    weights = build_profile(Architecture(layers=(replace(BLOCK, count=MOST_BLOCKS),))).weights
    assert weights.get_stored_weights(counting) == weights.get_stored_weights(stated)
    assert len(asked) < 8 * len(weights.matrices)


@given(
    st.lists(
        st.tuples(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), st.integers(0, 9)), max_size=6
    )
)
def test_running_sums_are_those_of_rows_one_by_one(runs):
    sums = running_sums([(tuple(map(float, row)), count) for row, count in runs], 2)
    rows = [row for row, count in runs for _ in range(count)]
    plain = list(accumulate(rows, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0)))
    assert [sums[place] for place in range(len(plain))] == plain
    assert sums[-1] == plain[-1]
    columns = sums[np.arange(len(plain))]
    assert columns.T.tolist() == [list(map(float, row)) for row in plain]


def norms(*counts):
    return tuple(Normalization(size=place + 1, count=count) for place, count in enumerate(counts))


@pytest.mark.parametrize(
    ("layers", "code", "pointer"),
    [
        (norms(MOST_LAYERS, 1), "TOO_MANY_LAYERS", "/layers/1/count"),
        ((BLOCK, replace(BLOCK, count=MOST_BLOCKS)), "TOO_MANY_BLOCKS", "/layers/1/count"),
        (norms(*[1] * (MOST_DIFFERENT + 1)), "TOO_MANY_LAYERS", f"/layers/{MOST_DIFFERENT}"),
        ((BLOCK,) * (MOST_WRITTEN // 2 + 1), "TOO_MANY_LAYERS", f"/layers/{MOST_WRITTEN // 2}"),
        ((BLOCK, Linear(input_size=2**31, output_size=2**31)), "TOO_MANY_PARAMETERS", "/layers/1"),
    ],
)
def test_what_no_model_has_is_refused_by_the_member_that_is_too_much(layers, code, pointer):
    with pytest.raises(PlanningError) as refused:
        build_profile(Architecture(layers=layers))
    assert (refused.value.code, refused.value.pointer) == (code, pointer)


def test_repetitions_that_change_a_grid_are_walked_so_often_and_no_more():
    """Each is a step of its own, so their number is bounded over the whole model."""
    shrinking = Convolution(
        input_channels=1, output_channels=1, kernel_height=2, kernel_width=1, padded=False, count=900
    )
    image = ModelInputShape(name="image", kind="image", height=2**31 - 1, width=1)

    def walked(layers):
        block = LayerBlock(layers=(shrinking,) * layers, over=("image",))
        return block_positions(Architecture(layers=(block,), inputs=(image,)), SampleShape())

    assert walked(10)[0].leaving == 2**31 - 1 - 9000
    with pytest.raises(PlanningError) as refused:
        walked(100)
    assert (refused.value.code, str(MOST_REPEATED) in refused.value.detail) == ("REPEATED_RESAMPLING", True)


GPT_NEO = {
    "model_type": "gpt_neo",
    "architectures": ["GPTNeoForCausalLM"],
    "vocab_size": 1000,
    "hidden_size": 64,
    "num_layers": 4,
    "num_heads": 4,
    "max_position_embeddings": 64,
    "attention_types": [[["global", "local"], 2]],
}


def test_a_repeated_pattern_of_a_configuration_is_no_longer_than_the_model():
    assert build_profile(import_config(GPT_NEO).architecture).block_count == 4
    for groups in ([[["global"], 10**12]], [[["global", "local"], 2], [["global"], 10**12]]):
        with pytest.raises(PlanningError) as refused:
            import_config({**GPT_NEO, "attention_types": groups})
        assert refused.value.pointer == "/attention_types"


def test_divisors_are_all_there_in_order():
    assert all(
        list_divisors(number) == tuple(d for d in range(1, number + 1) if number % d == 0)
        for number in range(1, 400)
    )
    assert list_divisors(999_983) == (1, 999_983)
