"""LongCat-Flash: sizes that its release states, and what is refused of it by member."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.profile import build_profile
from service.planning.precision import NumberFormat

RELEASE = {"model_type": "longcat_flash", "architectures": ["LongcatFlashForCausalLM"]}


def test_the_release():
    """The files of LongCat-Flash-Prover hold 560,664,980,480 values, and no layer for drafts.

    768 values of each of 28 layers are biases that correct the router. Published: 27e9 active parameters on
    average. A token keeps a latent of 512 and a rotary key of 64 for each of two attentions of a layer.
    """
    profile = build_profile(import_config(RELEASE).architecture)
    assert profile.parameter_count == 560_664_980_480 - 28 * 768
    assert profile.active_parameter_count == pytest.approx(27e9, rel=0.04)
    assert profile.block_count == 28
    assert key_value_bytes(profile, 1.0, NumberFormat.BF16) == 2 * 28 * (512 + 64) * 2


LITE = {"architectures": ["LongcatFlashNgramForCausalLM"]}


def test_the_release_with_tables_of_ngrams():
    """The files of LongCat-Flash-Lite hold 69,073,335,552 values.

    384 of each of 14 layers are biases that correct the router; the layer for drafts has a token table of its
    own, attention, a feed-forward, a matrix of 6,144 by 3,072 and five norms. Published: 2.9e9 to 4.5e9
    active parameters, which leave out the tables.
    """
    read = import_config(LITE)
    profile = build_profile(read.architecture)
    draft = 131_072 * 3072 + 108_217_344
    assert profile.parameter_count == 69_073_335_552 - 14 * 384 - draft
    tables = sum((78 * 131_072 + 2 * place + 1) * 256 for place in range(12)) + 131_072 * 3072
    assert profile.active_parameter_count - tables == pytest.approx(3.7e9, rel=0.22)
    assert (read.model_type, read.context_tokens) == ("longcat_flash_ngram", 327_680)


@pytest.mark.parametrize("change", [{"emb_neighbor_num": 1}, {"emb_split_num": 5}, {"emb_split_num": 1024}])
def test_tables_that_do_not_divide_the_width_are_refused(change):
    with pytest.raises(PlanningError) as caught:
        import_config({**LITE, **change})
    assert (caught.value.code, caught.value.pointer) == ("CONFIG_FIELD_INVALID", "/emb_split_num")


def test_layers_are_counted_as_the_release_counts_them():
    """Transformers numbers the layers of the cache, two for each, and writes that number as well."""
    both = import_config({**RELEASE, "num_layers": 4, "num_hidden_layers": 8})
    assert both.architecture == import_config({**RELEASE, "num_layers": 4}).architecture


def test_a_published_file_names_a_class_and_no_type():
    bare = {name: value for name, value in RELEASE.items() if name != "model_type"}
    read = import_config(bare)
    assert (read.model_type, read.architecture) == ("longcat_flash", import_config(RELEASE).architecture)
    assert "model_type" in read.defaulted


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"moe_topk": 11}, "CONFIG_FIELD_UNSUPPORTED", "/zero_expert_num"),
        ({"moe_topk": 769}, "CONFIG_FIELD_INVALID", "/moe_topk"),
        ({"zero_expert_type": "copy"}, "CONFIG_FIELD_UNSUPPORTED", "/zero_expert_type"),
        ({"attention_method": "GQA"}, "CONFIG_FIELD_UNSUPPORTED", "/attention_method"),
    ],
)
def test_what_is_not_known_of_it_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**RELEASE, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)
